"""How many turns another task gets while something runs: whether a loop holds up the program."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import trio

T = TypeVar("T")


async def turns_during(work: Awaitable[T]) -> tuple[int, T]:
    """Await something, and return the turns of another task meanwhile, and the result.

    Under a mock clock, slices have a fixed number of items, and so the turns are always the same.
    """
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        result = await work
        nursery.cancel_scope.cancel()
    return turns, result
