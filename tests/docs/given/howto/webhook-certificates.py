"""Webhooks, the operator's namespace, and a manager without controllers."""

from __future__ import annotations

import trio

from trioformer import Client, ObjectMeta
from trioformer.models.core_v1 import Namespace
from trioformer.testing import APIServer
from trioformer.webhooks import Webhooks

webhooks = Webhooks()
initializers: dict[str, object] = {}
stop = trio.Event()


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    api_server.create(Namespace(metadata=ObjectMeta(name="websites")))
    return {}
