"""The writes of a client that an informer's cache does not show yet, and the functions to call when it does.

A cache shows a write when its resourceVersion has reached that of the write, because a watch delivers the changes of
all objects of a resource in order, bad objects and bookmarks included.  The resourceVersion of a removal is not known,
so the cache shows a removal when the object is gone or has a deletionTimestamp.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar, final

import attrs

from ...client import Api
from ...client._internal import WrittenObject, written_caches
from ...errors import DecodeError
from ...models import FieldSelector, KubernetesObject, LabelSelector
from ...models._internal import decode
from ..reflector._list_watch import ApiListWatch, ListWatch
from ..store._indexer import Indexer
from ..store._resource_versions import ResourceVersions, parse_resource_version

T = TypeVar("T", bound=KubernetesObject)

_order: Final = itertools.count()


@final
@attrs.frozen
class _Removal:
    """A removal that the cache does not show yet."""

    key: str
    uid: str
    version: int
    """The resourceVersion of an earlier write of this object that the cache did not show either, or 0."""
    shown: Callable[[bool], None]


@final
@attrs.define(eq=False)
class ShownWrites(Generic[T]):
    """The writes that one reflector's part of a cache does not show yet."""

    _source: ApiListWatch[T]
    _namespace: str
    """The namespace of the reflector in a cache of several namespaces, or an empty string."""
    _indexer: Indexer[T]
    _versions: ResourceVersions
    _reached: int = attrs.field(default=0, init=False)
    _writes: list[tuple[int, int, str, str, Callable[[bool], None]]] = attrs.field(factory=list, init=False)
    """A heap of the versions, the order, the keys, the uids and the functions of the writes."""
    _removals: list[_Removal] = attrs.field(factory=list, init=False)

    @property
    def api(self) -> Api[T]:
        """The API that is listed and watched."""
        return self._source.api

    def call_when_shown(self, written: WrittenObject, version: int, shown: Callable[[bool], None]) -> bool:
        """Call a function once, as soon as this part shows a write, or will never show it."""
        text = self._versions.newest(self._namespace)
        if not text or self.api.namespace not in (None, written.namespace):
            return False  # nothing can be read from the cache yet, or it does not contain the object
        try:
            self._reached = parse_resource_version(text)
        except DecodeError:
            return False
        if not version:
            return self._wait_for_removal(written, shown)
        if version <= self._reached or not self._contains(written):
            return False
        heapq.heappush(self._writes, (version, next(_order), written.key, written.write.uid, shown))
        self._versions.observe(self._namespace, self._advance)
        return True

    def _wait_for_removal(self, written: WrittenObject, shown: Callable[[bool], None]) -> bool:
        cached, uid = self._indexer.get(written.key), written.write.uid or _uid_in(written.body)
        earlier = max((version for version, _, _, other, _ in self._writes if other == uid), default=0)
        if cached is not None and not uid:
            uid = cached.uid  # an eviction
        removal = _Removal(written.key, uid, earlier, shown)
        if self._is_shown(removal):
            return False
        self._removals.append(removal)
        self._versions.observe(self._namespace, self._advance)
        return True

    def _is_shown(self, removal: _Removal) -> bool:
        if removal.version > self._reached:
            return False
        cached = self._indexer.get(removal.key)
        return cached is None or cached.uid != removal.uid or cached.metadata.deletion_timestamp is not None

    def _contains(self, written: WrittenObject) -> bool:
        """Return whether the cache contains the written object, or will contain it."""
        source, uid = self._source, written.write.uid
        if not (uid and (source.label_selector or source.field_selector)):
            return True
        if (cached := self._indexer.get(written.key)) is not None and cached.uid == uid:
            return True
        try:
            obj: dict[str, Any] = decode(written.body)
            labels = obj["metadata"].get("labels") or {}
            return LabelSelector.of(source.label_selector).matches(labels) and FieldSelector.of(
                source.field_selector
            ).matches(lambda path: _text_at(obj, path))
        except (ValueError, LookupError, TypeError, AttributeError):
            return True  # until the next bookmark

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
            _, _, key, uid, shown = heapq.heappop(self._writes)
            cached = self._indexer.get(key)
            shown(not uid or (cached is not None and cached.uid == uid))
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


@final
@attrs.define(eq=False)
class CacheOfWrites(Generic[T]):
    """The parts of an informer's cache, of which one contains a written object."""

    _parts: Mapping[str, ShownWrites[T]]

    def call_when_shown(self, written: WrittenObject, version: int, shown: Callable[[bool], None]) -> bool:
        """Call a function once, as soon as the cache shows a write, or will never show it."""
        part = self._parts.get("") or self._parts.get(written.namespace)
        return part is not None and part.call_when_shown(written, version, shown)


@contextmanager
def showing_writes(
    sources: Mapping[str, ListWatch[T]], indexer: Indexer[T], versions: ResourceVersions
) -> Iterator[None]:
    """Let those who have written with the client of a cache wait for the cache while the block runs."""
    parts = {
        namespace: ShownWrites(source, namespace, indexer, versions)
        for namespace, source in sources.items()
        if isinstance(source, ApiListWatch)
    }
    registries = {id(found): found for found in (written_caches(part.api) for part in parts.values())}.values()
    cache = CacheOfWrites(parts)
    for caches in registries:
        caches[cache] = None
    try:
        yield
    finally:
        for caches in registries:
            del caches[cache]
        for part in parts.values():
            part.forget()


def _uid_in(body: bytes) -> str:
    """Return the uid of a deleted object from the Status in the response, or an empty string."""
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        return str(decode(body)["details"]["uid"])
    return ""


def _text_at(obj: dict[str, Any], path: str) -> str:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if value is not None else None
    if isinstance(value, dict | list):
        raise TypeError(f"{path} is not a scalar")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
