"""What type checkers infer for leader election; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from trioformer import Client
from trioformer.leaderelection import Leadership, leadership, run_as_leader


async def work(leadership: Leadership) -> int:
    return leadership.transitions


async def leading(client: Client) -> None:
    assert_type(await run_as_leader(client, work, name="x", namespace="y"), int)
    async with leadership(client, name="x", namespace="y") as term:
        assert_type(term, Leadership)
        assert_type(term.identity, str)
