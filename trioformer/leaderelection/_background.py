"""Run a task beside a block of the caller, as the hold of a Lease and its watch need it.

The problem: a nursery around the block wraps what the block raises in an exception group, and the caller's cancellation
reaches the task as it reaches the block.  But the lease must be renewed until the block has ended, and the caller's
exceptions must arrive unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background(async_fn: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Run ``async_fn`` until the block has ended, then cancel it, and wait until it has ended.

    - The block runs in the caller's task.  What it raises is raised unchanged.
    - ``async_fn`` is shielded from the caller's cancellation, which the block receives.
    - ``async_fn`` must handle its own errors: one that it raises cancels the block, and leaves in an exception group.
    """
    raised: BaseException | None = None
    task_scope = trio.CancelScope(shield=True)
    try:
        with trio.CancelScope() as nursery_scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_run_in, task_scope, async_fn)
                try:
                    yield
                except BaseException as error:  # noqa: BLE001  # raised below, where no nursery can wrap it
                    raised = error
                task_scope.cancel()
                # The nursery waits for the task.  If the caller's cancellation reached that wait, the nursery would
                # raise it in place of what the block has raised.
                nursery_scope.shield = True
        if raised is not None:
            raise raised
    finally:
        del raised


async def _run_in(scope: trio.CancelScope, async_fn: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await async_fn()
