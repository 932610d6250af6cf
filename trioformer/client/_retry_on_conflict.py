"""Retry a change after a conflict (client-go ``util/retry``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from .._retry import Backoff, BackoffPolicy
from ..errors import AlreadyExistsError, ApplyConflictError, ConflictError

T = TypeVar("T")

CONFLICT_BACKOFF: Final = BackoffPolicy(initial=0.01, factor=1.0, maximum=0.01, jitter=0.1)
"""Ten milliseconds each time: another client has just written, and is unlikely to write again immediately."""


async def retry_on_conflict(
    change: Callable[[], Awaitable[T]], *, tries: int = 5, backoff: BackoffPolicy = CONFLICT_BACKOFF
) -> T:
    """Call ``change`` again until it does not raise a :class:`~trioformer.errors.ConflictError`.

    Each call must read the object from the server (a cache may still have the old one), change it, and write it.
    An :class:`~trioformer.errors.AlreadyExistsError` is not retried, because the name stays taken (apimachinery's
    ``IsConflict`` is false for it).
    An :class:`~trioformer.errors.ApplyConflictError` is not retried, because the other manager still owns the field.

    Args:
        change: Reads, changes and writes the object.
        tries: The maximum number of calls.
        backoff: The delays between calls.

    Returns:
        The result of ``change``.

    Raises:
        ConflictError: The last call raised it.
        AlreadyExistsError: A call raised it.
        ApplyConflictError: A call raised it.
        Exception: Any other exception of ``change``; it is not retried.

    Cancellation: between two calls, no request is in flight.
    """
    if tries < 1:
        raise ValueError(f"tries must be at least 1, not {tries}")
    delays = Backoff(backoff)
    while True:
        tries -= 1
        try:
            return await change()
        except (AlreadyExistsError, ApplyConflictError):
            raise
        except ConflictError:
            if not tries:
                raise
        await trio.sleep(delays.next_delay())
