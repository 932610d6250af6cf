"""Work on many items in a few tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import trio

from .._util import Slices

T = TypeVar("T")


async def parallelize(workers: int, items: Iterable[T], fn: Callable[[T], Awaitable[object]]) -> None:
    """Call ``fn(item)`` for every item, so many at once, and return when all are done.

    The items are read one by one, when a worker is free, so there may be any number of them.
    They begin in their order; nothing is said of how they end.

    Args:
        workers: How many are worked on at once.
        items: What is to be done.
        fn: Does it.

    Raises:
        ExceptionGroup: What ``fn`` raised, or the iterable; the first error cancels the other workers, and no further
            item is begun.
        ValueError: There are no workers.

    Cancellation: the workers are cancelled; items that none had begun stay in an iterator.

    Ownership: its tasks have ended when it returns.

    Source: client-go ``util/workqueue/parallelizer.go``, ``ParallelizeUntil``; there an error is the caller's affair.
    """
    if workers < 1:
        raise ValueError(f"there must be at least one worker, not {workers}")
    await trio.lowlevel.checkpoint()
    shared = iter(items)
    async with trio.open_nursery() as nursery:
        for first in islice(shared, workers):  # no more tasks than items
            nursery.start_soon(_work, chain((first,), shared), fn)


async def _work(items: Iterator[T], fn: Callable[[T], Awaitable[object]]) -> None:
    slices = Slices()
    for item in items:
        await fn(item)
        if slices.is_over():  # fn may never have waited
            await slices.checkpoint()
