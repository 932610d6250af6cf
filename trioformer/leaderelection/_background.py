"""Run a background task during the caller's ``async with`` block.

The problem: a nursery around the block wraps the block's exceptions in a group, and the caller's cancellation cancels
both the task and the block.  But the lease must be renewed until the block has ended, and the block's exceptions must
propagate unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from .._util import open_serving_nursery


@asynccontextmanager
async def background(async_fn: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Run ``async_fn`` in the background until the block ends, then cancel it and wait until it has ended.

    - The block runs in the caller's task.  The block's exceptions propagate unchanged.
    - The caller's cancellation cancels the block, but not ``async_fn``.
    - ``async_fn`` must handle its errors.  If ``async_fn`` raises an exception, the block is cancelled, and the
      exception is raised in a group.
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
