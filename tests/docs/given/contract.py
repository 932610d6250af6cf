"""An informer that runs, and a pod that is not created yet."""

from __future__ import annotations

import trio

from trioformer import Client, ObjectMeta, SharedInformerFactory
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import APIServer

pod = Pod(metadata=ObjectMeta(name="web-7"), spec=PodSpec(containers=[Container(name="web", image="web:1")]))


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    return {"informer": informer, "pods": client.api(Pod, namespace="default")}
