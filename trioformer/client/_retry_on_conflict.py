"""Trying a change again when somebody else was quicker (client-go ``util/retry``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from .._retry import Backoff, BackoffPolicy
from ..errors import ConflictError

T = TypeVar("T")

CONFLICT_BACKOFF: Final = BackoffPolicy(initial=0.01, factor=1.0, maximum=0.01, jitter=0.1)
"""Ten milliseconds each time: another client has just written, and will not do so at once again."""


async def retry_on_conflict(
    change: Callable[[], Awaitable[T]], *, tries: int = 5, backoff: BackoffPolicy = CONFLICT_BACKOFF
) -> T:
    """Run a change until it does not end in a conflict.

    ``change`` must read the object anew each time, from the server and not from a cache that may still hold the old
    one, change it, and write it.

    Args:
        change: What to do; called once for each try.
        tries: How often at most.
        backoff: The delays between tries.

    Returns:
        What ``change`` returned.

    Raises:
        ConflictError: The last try has ended in one, too.
        Exception: Whatever else ``change`` raises; only conflicts are tried again.

    Cancellation: between two tries nothing is under way.
    """
    if tries < 1:
        raise ValueError(f"tries must be at least 1, not {tries}")
    delays = Backoff(backoff)
    while True:
        tries -= 1
        try:
            return await change()
        except ConflictError:
            if not tries:
                raise
        await trio.sleep(delays.next_delay())
