"""The operator of the example."""

from __future__ import annotations

import trio

from examples.website_operator import serve
from trioformer import Client
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    return {"serve": serve}
