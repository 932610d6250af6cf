"""A pod that no scheduler has bound to a node."""

from __future__ import annotations

import trio

from trioformer import Client, ObjectMeta
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    spec = PodSpec(containers=(Container(name="main", image="nginx"),))
    api_server.create(Pod(metadata=ObjectMeta(name="pending-0", namespace="default"), spec=spec))
    return {}
