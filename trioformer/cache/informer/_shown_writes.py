"""The writes of a client that an informer's cache does not show yet, and the functions to call when it does.

A cache shows a write when its resourceVersion has reached that of the write, because a watch delivers the changes of
all objects of a resource in order, bad objects and bookmarks included.  The resourceVersion of a removal is often not
known, so the cache shows a removal when the object is gone, has a deletionTimestamp, or is in quarantine.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import attrs
import trio

from ...client import Api
from ...client._internal import WrittenObject, written_caches
from ...errors import DecodeError
from ...models import FieldSelector, KubernetesObject, LabelSelector
from ...models._internal import decode
from ..reflector._list_watch import ApiListWatch, ListWatch
from ..store._indexer import Indexer
from ..store._quarantine import Quarantine
from ..store._resource_versions import ResourceVersions, parse_resource_version

if TYPE_CHECKING:
    from ..store._division import Division

T = TypeVar("T", bound=KubernetesObject)

_order: Final = itertools.count()

_LONGEST: Final = 600.0
"""How long a write is remembered, in seconds.  A broken cache would keep all writes until it has recovered.  A request
waits at most five minutes, so one that is added five minutes after its write still waits as long as others."""


@final
@attrs.frozen
class _Removal:
    """A removal that the cache does not show yet."""

    key: str
    uid: str
    version: int
    """A resourceVersion that the cache must have reached: that of the object in the response, or of an earlier write
    that the cache did not show either; otherwise 0."""
    since: float
    """When the object was removed."""
    shown: Callable[[bool], None]


@final
@attrs.define(eq=False)
class ShownWrites(Generic[T]):
    """The writes that one reflector's part of a cache does not show yet."""

    _source: ApiListWatch[T]
    _namespace: str
    """The part of the reflector in a cache of several parts, or an empty string."""
    _division: Division | None
    _indexer: Indexer[T]
    _quarantine: Quarantine
    _versions: ResourceVersions
    _reached: int = attrs.field(default=0, init=False)
    _writes: list[tuple[int, int, float, str, str, Callable[[bool], None]]] = attrs.field(factory=list, init=False)
    """A heap of the versions, the order, the times, the keys, the uids and the functions of the writes."""
    _removals: list[_Removal] = attrs.field(factory=list, init=False)

    @property
    def api(self) -> Api[T]:
        """The API that is listed and watched."""
        return self._source.api

    def call_when_shown(self, written: WrittenObject, version: str, shown: Callable[[bool], None]) -> bool:
        """Call a function once, as soon as this part shows a write, or will never show it."""
        if self.api.namespace not in (None, written.namespace):
            return False
        if self._division is not None and self._division.part_of_write(written) != self._namespace:
            return False
        try:
            number = parse_resource_version(version)
            # The version is empty before the first list, which may have begun before the write.
            self._reached = parse_resource_version(self._versions.newest(self._namespace) or "0")
        except DecodeError:
            return False
        self._forget_old()
        if not number:
            return self._wait_for_removal(written, shown)
        contains = self._contains(written)
        if number <= self._reached or contains is False:
            return False
        if contains is None:  # an object that is missing then is not gone
            call = shown
            shown = lambda _: call(True)  # noqa: E731
        entry = (number, next(_order), trio.current_time(), written.key, written.write.uid, shown)
        heapq.heappush(self._writes, entry)
        self._versions.observe(self._namespace, self._advance)
        return True

    def _forget_old(self) -> None:
        oldest = trio.current_time() - _LONGEST
        while self._writes and self._writes[0][2] < oldest:
            heapq.heappop(self._writes)[-1](True)
        while self._removals and self._removals[0].since < oldest:
            self._removals.pop(0).shown(True)

    def _wait_for_removal(self, written: WrittenObject, shown: Callable[[bool], None]) -> bool:
        cached, uid = self._indexer.get(written.key), written.write.uid or _uid_in(written.body)
        versions = [version for version, _, _, _, other, _ in self._writes if other == uid]
        if self._contains(written) is not False:
            with suppress(DecodeError):  # a response without an object
                versions.append(parse_resource_version(written.write.resource_version))
        if cached is not None and not uid:
            uid = cached.uid  # an eviction
        removal = _Removal(written.key, uid, max(versions, default=0), trio.current_time(), shown)
        if self._is_shown(removal):
            return False
        self._removals.append(removal)
        self._versions.observe(self._namespace, self._advance)
        return True

    def _is_shown(self, removal: _Removal) -> bool:
        if removal.version > self._reached:
            return False
        cached = self._indexer.get(removal.key)
        if cached is None or cached.uid != removal.uid or removal.key in self._quarantine.entries:
            return True
        return cached.metadata.deletion_timestamp is not None

    def _contains(self, written: WrittenObject) -> bool | None:
        """Return whether the cache contains the written object, or will contain it; None if only the server knows."""
        source, uid = self._source, written.write.uid
        if not (uid and (source.label_selector or source.field_selector or source.query)):
            return True
        if (cached := self._indexer.get(written.key)) is not None and cached.uid == uid:
            return True
        try:
            obj: dict[str, Any] = decode(written.body)
            labels = obj["metadata"].get("labels") or {}
            fields = FieldSelector.selectable_fields(written.resource)
            matches = LabelSelector.of(source.label_selector).matches(labels) and FieldSelector.of(
                source.field_selector
            ).matches(partial(fields.read, obj))
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
        return None if matches and source.query else matches

    def _advance(self, resource_version: str) -> bool:
        """Call the functions of the writes that the cache shows now, and return whether others remain."""
        try:
            reached = parse_resource_version(resource_version)
        except DecodeError:
            reached = 0
        if reached < self._reached:  # the server was restored from a backup
            self.forget()
            return False
        self._reached = reached
        while self._writes and self._writes[0][0] <= reached:
            *_, key, uid, shown = heapq.heappop(self._writes)
            cached = self._indexer.get(key)
            is_cached = cached is not None and cached.uid == uid
            shown(is_cached or not uid or key in self._quarantine.entries)
        if self._removals:
            waiting, self._removals = self._removals, []
            for removal in waiting:
                if self._is_shown(removal):
                    removal.shown(True)
                else:
                    self._removals.append(removal)
        return bool(self._writes or self._removals)

    def forget(self) -> None:
        """Call the functions of all writes, because the cache will never show them."""
        shown = [each[-1] for each in self._writes] + [each.shown for each in self._removals]
        self._writes.clear()
        self._removals.clear()
        for call in shown:
            call(True)


@contextmanager
def showing_writes(
    sources: Mapping[str, ListWatch[T]],
    division: Division | None,
    indexer: Indexer[T],
    quarantine: Quarantine,
    versions: ResourceVersions,
) -> Iterator[None]:
    """Let those who have written with the client of a cache wait for the cache while the block runs."""
    parts = [
        ShownWrites(source, namespace, division, indexer, quarantine, versions)
        for namespace, source in sources.items()
        if isinstance(source, ApiListWatch)
    ]
    for part in parts:
        written_caches(part.api)[part] = None
    try:
        yield
    finally:
        for part in parts:
            del written_caches(part.api)[part]
            part.forget()


def _uid_in(body: bytes) -> str:
    """Return the uid of a deleted object from the Status in the response, or an empty string."""
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        return str(decode(body)["details"]["uid"])
    return ""
