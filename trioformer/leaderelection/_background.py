"""Run a task beside a block of the caller, as the hold of a Lease and its watch need it.

The problem: a nursery around the block wraps what the block raises in an exception group, and the caller's cancellation
reaches the task as it reaches the block.  But the lease must be renewed until the block has ended, and the caller's
exceptions must arrive unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from .._util import open_serving_nursery


@asynccontextmanager
async def background(async_fn: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Run ``async_fn`` until the block has ended, then cancel it, and wait until it has ended.

    - The block runs in the caller's task.  What it raises is raised unchanged.
    - ``async_fn`` is shielded from the caller's cancellation, which the block receives.
    - ``async_fn`` must handle its own errors: one that it raises cancels the block, and leaves in an exception group.
    """
    scope = trio.CancelScope(shield=True)
    async with open_serving_nursery() as nursery:
        nursery.start_soon(_run_in, scope, async_fn)
        try:
            yield
        finally:
            scope.cancel()


async def _run_in(scope: trio.CancelScope, async_fn: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await async_fn()
