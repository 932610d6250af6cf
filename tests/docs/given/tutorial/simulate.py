"""The kind of step 8, which step 9 imports."""

from __future__ import annotations

import trio
from step_8_stop_cleanly import App

from trioformer import Client
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    return {"App": App}
