"""Many requests at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import trio


async def in_parallel(calls: Iterable[Callable[[], Awaitable[object]]], *, at_once: int = 20) -> None:
    """Await the result of each function, a limited number of them at a time."""
    limiter = trio.CapacityLimiter(at_once)

    async def await_one(call: Callable[[], Awaitable[object]]) -> None:
        async with limiter:
            await call()

    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(await_one, call)
