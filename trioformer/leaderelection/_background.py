"""Run a task during a block of the caller; the hold of a Lease and its watch need this.

The problem: a nursery around the block wraps the block's exceptions in a group, and the caller's cancellation reaches
the task and the block alike.  But the lease must be renewed until the block has ended, and the caller's
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

    - The block runs in the caller's task.  Its exceptions are raised unchanged.
    - ``async_fn`` is shielded from the caller's cancellation, which the block receives.
    - ``async_fn`` must handle its errors: an exception that it raises cancels the block, and is raised in a group.
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
