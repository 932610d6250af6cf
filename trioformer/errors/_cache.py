"""The errors of caches and leader election."""

from __future__ import annotations

import attrs

from ._base import TrioformerError

__all__ = [
    "CacheNotSyncedError",
    "CacheSyncError",
    "HandlerOverflowError",
    "IndexerError",
    "LeadershipLostError",
    "NotOwnedError",
    "NotSynced",
    "QuarantinedError",
    "TransformError",
]


class CacheNotSyncedError(TrioformerError):
    """A lister was used before its cache had synced.

    If the lister returned an empty result instead, a controller would treat all objects as deleted.
    """


@attrs.frozen
class NotSynced:
    """An informer or a handler that has not synced yet."""

    name: str
    """The informer or handler, such as ``Pod in namespace default``."""
    phase: str
    """Its phase, such as ``listing`` or ``failed``."""
    error: Exception | None
    """The reason, if known."""
    since: float
    """The start time on trio's clock; infinity if it was not started."""


class CacheSyncError(TrioformerError):
    """Caches did not sync in time, or can no longer sync.

    Attributes:
        not_synced: The informers and handlers that have not synced.
    """

    def __init__(self, message: str, *, not_synced: tuple[NotSynced, ...]) -> None:
        super().__init__(message)
        self.not_synced = not_synced


class QuarantinedError(TrioformerError):
    """An object exists, but the cache cannot store its newest state. Listers raise this error for the object's key.

    Attributes:
        key: The object's key.
        reason: The reason, such as ``undecodable`` or ``transform failed``.
        since: The time of the failure, on trio's clock.
    """

    def __init__(self, message: str, *, key: str, reason: str, since: float) -> None:
        super().__init__(message)
        self.key = key
        self.reason = reason
        self.since = since


class NotOwnedError(TrioformerError):
    """A cache with shares was asked for an object that another process caches, or whose range it does not cache yet.

    If the lister returned None instead, a controller would treat the object as deleted.
    """


class IndexerError(TrioformerError):
    """An index does not exist or already exists, or the index function failed. The store is unchanged.

    Attributes:
        index: The name of the index if the index function failed, or otherwise an empty string.
    """

    def __init__(self, message: str, index: str = "") -> None:
        super().__init__(message)
        self.index = index


class LeadershipLostError(TrioformerError):
    """The lease was not renewed in time, or another candidate holds it. The leader's code was cancelled."""


class TransformError(TrioformerError):
    """An informer's transform failed for an object, or changed the object's identity.

    Attributes:
        key: The object's key.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class HandlerOverflowError(TrioformerError):
    """A handler with ``overflow="block"`` did not receive a notification within its ``patience``."""
