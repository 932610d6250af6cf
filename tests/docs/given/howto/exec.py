"""A pod whose commands are played."""

from __future__ import annotations

import trio

from trioformer import Client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedProcess


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    async def execute(process: ScriptedProcess) -> int:
        async for data in process.stdin:
            await process.stdout.send_all(data)
        return 1 if process.command[0] == "grep" else 0

    api_server.patch(Pod, "web-0", {"spec": {"nodeName": "node-1"}})
    web = api_server.script_pod("web-0")
    web.script_command(["ls", "/etc"], stdout="web.conf\n")
    web.on_exec(execute)
    return {}
