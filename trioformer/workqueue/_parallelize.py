"""Process many items in a few tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import trio

from .._util import Slices

T = TypeVar("T")


async def parallelize(workers: int, items: Iterable[T], fn: Callable[[T], Awaitable[object]]) -> None:
    """Call ``fn(item)`` for every item in several tasks, and return when all calls have returned.

    Each worker reads the next item when it is free, so the iterable may be endless.
    The calls start in the order of the items.

    Args:
        workers: The maximum number of concurrent calls.
        items: The arguments of the calls.
        fn: The function to call.

    Raises:
        ExceptionGroup: Exceptions of ``fn`` or the iterable.  The first one cancels the other calls.
        ValueError: ``workers`` is less than 1.

    Cancellation: the running calls are cancelled; items that were not read stay in the iterator.

    Ownership: its tasks have ended when it returns.

    Source: client-go ``util/workqueue/parallelizer.go``, ``ParallelizeUntil``.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    await trio.lowlevel.checkpoint()
    shared = iter(items)
    async with trio.open_nursery() as nursery:
        for first in islice(shared, workers):  # no more tasks than items
            nursery.start_soon(_work, chain((first,), shared), fn)


async def _work(items: Iterator[T], fn: Callable[[T], Awaitable[object]]) -> None:
    slices = Slices()
    for item in items:
        await fn(item)
        if slices.is_over():  # fn need not be a checkpoint
            await slices.checkpoint()
