"""What type checkers must find out of leadership; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from trioformer import Client
from trioformer.leaderelection import Leadership, leadership, run_as_leader


async def body(lead: Leadership) -> int:
    return lead.transitions


async def leading(client: Client) -> None:
    assert_type(await run_as_leader(client, body, name="x", namespace="y"), int)
    async with leadership(client, name="x", namespace="y") as lead:
        assert_type(lead, Leadership)
