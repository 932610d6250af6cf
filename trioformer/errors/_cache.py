"""The errors of caches, and of what works with them."""

from __future__ import annotations

import attrs

from ._base import TrioformerError

__all__ = [
    "CacheNotSyncedError",
    "CacheSyncError",
    "HandlerOverflowError",
    "IndexerError",
    "LeadershipLostError",
    "NotSynced",
    "QuarantinedError",
    "TransformError",
]


class CacheNotSyncedError(TrioformerError):
    """A lister was used before its cache had synced.

    With an empty result instead, a controller would take all objects for deleted.
    """


@attrs.frozen
class NotSynced:
    """An informer or a handler that has not synced."""

    name: str
    """Which, such as ``Pod in namespace default``."""
    phase: str
    """Its phase, such as ``listing`` or ``failed``."""
    error: Exception | None
    """Why it has not synced, if known."""
    since: float
    """When it was started, on trio's clock; infinity if it was not started."""


class CacheSyncError(TrioformerError):
    """Caches have not synced in time, or cannot sync any more.

    Attributes:
        not_synced: The informers and handlers that have not synced.
    """

    def __init__(self, message: str, *, not_synced: tuple[NotSynced, ...]) -> None:
        super().__init__(message)
        self.not_synced = not_synced


class QuarantinedError(TrioformerError):
    """An object exists, and the cache cannot take its newest state; raised by reading its key from a lister.

    Attributes:
        key: The object's key.
        reason: Why, such as ``undecodable`` or ``transform failed``.
        since: Since when, on trio's clock.
    """

    def __init__(self, message: str, *, key: str, reason: str, since: float) -> None:
        super().__init__(message)
        self.key = key
        self.reason = reason
        self.since = since


class IndexerError(TrioformerError):
    """An index is unknown or exists already, or its function failed; the store is unchanged.

    Attributes:
        index: The name of the index whose function failed; otherwise empty.
    """

    def __init__(self, message: str, index: str = "") -> None:
        super().__init__(message)
        self.index = index


class LeadershipLostError(TrioformerError):
    """The lease was not renewed in time, or another candidate holds it, and the leader code was cancelled."""


class TransformError(TrioformerError):
    """An informer's transform failed on an object, or returned another object than it was given.

    Attributes:
        key: The object's key.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class HandlerOverflowError(TrioformerError):
    """A handler with ``overflow="block"`` took no notification for its patience."""
