"""A service account, and a metrics server."""

from __future__ import annotations

import trio

from trioformer import Client, ObjectMeta, ResourceInfo
from trioformer.models.core_v1 import ServiceAccount
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    api_server.create(ServiceAccount(metadata=ObjectMeta(name="deployer", namespace="default")))
    api_server.register(
        ResourceInfo(group="metrics.k8s.io", version="v1beta1", kind="NodeMetrics", plural="nodes", namespaced=False)
    )
    return {}
