"""A kind of the reader's, whose controller this is, and an object of it."""

from __future__ import annotations

import trio

from trioformer import Client, KubernetesObject, Model, ObjectMeta
from trioformer.crds import custom_resource, resource_part
from trioformer.testing import APIServer


@resource_part()
class WebsiteStatus(Model):
    ready_replicas: int = 0
    message: str | None = None


@custom_resource("example.com/v1")
class Website(KubernetesObject):
    status: WebsiteStatus | None = None


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    api_server.register(Website)
    status = WebsiteStatus(ready_replicas=2, message="a pod is missing")
    site = api_server.create(Website(metadata=ObjectMeta(name="shop", namespace="default"), status=status))
    return {"websites": client.api(Website, namespace="default"), "site": site}
