"""A service account, a metrics server, and a pod that logs."""

from __future__ import annotations

import trio

from trioformer import Client, ObjectMeta, ResourceInfo
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod, ServiceAccount
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    api_server.create(ServiceAccount(metadata=ObjectMeta(name="deployer", namespace="default")))
    api_server.register(
        ResourceInfo(group="metrics.k8s.io", version="v1beta1", kind="NodeMetrics", plural="nodes", namespaced=False)
    )
    metadata = {"name": "api-0", "namespace": "default"}
    api_server.create(from_dict(Pod, {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}}))
    api_server.script_pod("api-0").write_log("listening on port 8080")
    return {}
