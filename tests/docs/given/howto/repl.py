"""The pod that the page has read at trio's prompt."""

from __future__ import annotations

import trio

from trioformer import Client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    return {"web": await client.api(Pod, namespace="default").get("web-0")}
