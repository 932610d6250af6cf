"""Many requests at a time."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable

from trioformer.workqueue import parallelize


async def in_parallel(calls: Iterable[Callable[[], Awaitable[object]]], *, at_once: int = 20) -> None:
    """Await what each of the functions returns, so many of them at a time."""
    await parallelize(at_once, calls, operator.call)
