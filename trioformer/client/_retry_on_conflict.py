"""Retry a change after a conflict (client-go ``util/retry``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from .._retry import Backoff, BackoffPolicy
from ..errors import AlreadyExistsError, ApplyConflictError, ConflictError

T = TypeVar("T")

CONFLICT_BACKOFF: Final = BackoffPolicy(initial=0.01, factor=1.0, maximum=0.01, jitter=0.1)
"""A delay of ten milliseconds.

After a conflict, another client has just written the object, and is unlikely to write it again immediately.
"""


async def retry_on_conflict(
    change: Callable[[], Awaitable[T]], *, tries: int = 5, backoff: BackoffPolicy = CONFLICT_BACKOFF
) -> T:
    """Call a function, and retry the call if it raises a :class:`~trioformer.errors.ConflictError`.

    Each call must read the object from the server, change it, and write it. Do not read the object from a cache,
    because the cache may still contain the old version.

    An :class:`~trioformer.errors.AlreadyExistsError` is not retried, because the name remains in use. For this error,
    apimachinery's ``IsConflict`` is also false. An :class:`~trioformer.errors.ApplyConflictError` is not retried,
    because the other manager still owns the field.

    Args:
        change: The function that reads, changes and writes the object.
        tries: The maximum number of calls.
        backoff: The delays between the calls. By default, each delay is ten milliseconds.

    Returns:
        The result of ``change``.

    Raises:
        ConflictError: The last call raised this error.
        AlreadyExistsError: A call raised this error.
        ApplyConflictError: A call raised this error.
        Exception: A call raised a different exception, which is not retried.

    Cancellation:
        Between two calls, no request is in flight.
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
