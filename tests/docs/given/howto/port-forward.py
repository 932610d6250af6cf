"""Pods whose ports are played."""

from __future__ import annotations

import trio

from trioformer import Client
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer
from trioformer.testing._serving._scripted_connections import ScriptedConnection


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    async def respond(connection: ScriptedConnection) -> None:
        await connection.receive_some()
        await connection.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    async def pong(connection: ScriptedConnection) -> None:
        async for _ in connection:
            await connection.send_all(b"+PONG\r\n")

    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    api_server.create(from_dict(Pod, {"metadata": {"name": "redis-0"}, "spec": spec}))
    api_server.script_pod("redis-0").on_connect(6379, pong)
    for name in ("web-0", "web-1"):
        api_server.script_pod(name).on_connect(80, respond)
    return {}
