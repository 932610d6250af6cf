"""Caches that other threads read, with one lock for each cache.

The process loop holds the lock while it changes the cache, and each read holds it while it copies.  All other caches
have no lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, TypeVar, final

import attrs

from ...errors import DecodeError
from ...models import KubernetesObject, LabelSelector
from .._bad_objects import Quarantined
from ..store._lister import Lister
from ._shared_informer import SharedInformer

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(eq=False, repr=False)
class ThreadsLister(Lister[T]):
    """A lister for other threads than the informer's, which holds a lock while it copies, but not while it decodes.

    The process loop holds the same lock while it changes the cache.
    """

    _clock: ClassVar[Callable[[], float]] = staticmethod(time.monotonic)
    _lock: threading.RLock = attrs.field(kw_only=True, alias="lock")

    def _read(self, key: str, *, allow_stale: bool = False) -> T | None:
        with self._lock:
            return super()._read(key, allow_stale=allow_stale)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return super().__contains__(key)

    def quarantined(self) -> Mapping[str, Quarantined]:
        with self._lock:
            return super().quarantined()

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            return super().__iter__()

    def _candidates(self, labels: LabelSelector, namespace: str | None, name: str | None = None) -> tuple[T, ...]:
        with self._lock:
            return super()._candidates(labels, namespace, name)

    def _log_undecodable(self, obj: T, error: DecodeError) -> None:
        with self._lock:
            super()._log_undecodable(obj, error)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        with self._lock:
            return super().by_index(index, value)

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        with self._lock:
            return super().index_keys(index, value)

    def index_values(self, index: str) -> tuple[str, ...]:
        with self._lock:
            return super().index_values(index)


def share_with_threads(informer: SharedInformer[T]) -> Lister[T]:
    """Make the cache of an informer that has not been started readable from other threads; return their lister."""
    lock = threading.RLock()
    informer._loop.hold(lock)
    own = informer.lister
    return ThreadsLister[T]._create(own._name, own._indexer, own._has_synced, own._kind, own._quarantine, lock=lock)
