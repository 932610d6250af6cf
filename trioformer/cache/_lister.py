"""Reading a cache: never a request, never a wait, never an answer from a cache that is not filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, final

import attrs

from .._util import NoPublicConstructor
from ..errors import CacheNotSyncedError, NotFoundError
from ..models import KubernetesObject, LabelMatcher
from ._indexer import NAMESPACE_INDEX, Indexer

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.define(eq=False, repr=False)
class Lister(Generic[T], metaclass=NoPublicConstructor):
    """A read-only view of an informer's cache (client-go ``tools/cache/listers.go``).

    All methods are synchronous and cost no request.
    Between two checkpoints the answers are consistent with each other.
    The objects are shared and immutable; the tuples are new.

    Raises:
        CacheNotSyncedError: From every method that answers about objects, before the first list has filled the cache.
            An empty answer would make a controller delete everything.
    """

    _name: str
    _indexer: Indexer[T]
    _has_synced: Callable[[], bool]

    def __repr__(self) -> str:
        return f"<Lister of {self._name}: {len(self._indexer)} objects{'' if self._has_synced() else ', not synced'}>"

    def _synced(self) -> Indexer[T]:
        if not self._has_synced():
            raise CacheNotSyncedError(
                f"the cache of {self._name} is not filled yet; start its factory with "
                "`await nursery.start(factory.run)` before listing from it"
            )
        return self._indexer

    def get(self, name: str, *, namespace: str | None = None) -> T | None:
        """The object of that name, or None; cluster-scoped kinds take no namespace."""
        return self._synced().get(f"{namespace}/{name}" if namespace else name)

    def __getitem__(self, key: str) -> T:
        """The object under ``namespace/name`` (or ``name``).

        Raises:
            NotFoundError: It is not in the cache.
        """
        obj = self._synced().get(key)
        if obj is None:
            raise NotFoundError(f"{self._name} {key!r} is not in the cache", code=404, reason="NotFound")
        return obj

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._synced().get(key) is not None

    def __iter__(self) -> Iterator[T]:
        return iter(self._synced().snapshot())

    def __len__(self) -> int:
        return len(self._synced())

    def list(self, *, selector: str | Mapping[str, str] | None = None, namespace: str | None = None) -> tuple[T, ...]:
        """The objects of a namespace (default: of all) whose labels match.

        Args:
            selector: A label selector in kubectl's grammar, or labels that must all be equal.
            namespace: Only objects of this namespace.

        Raises:
            SelectorError: The selector does not parse.
        """
        indexer = self._synced()
        objects = indexer.snapshot() if namespace is None else indexer.by_index(NAMESPACE_INDEX, namespace)
        if selector is None:
            return objects
        matcher = LabelMatcher.parse(selector) if isinstance(selector, str) else LabelMatcher.of(selector)
        if matcher.is_empty:
            return objects
        return tuple([obj for obj in objects if matcher.matches(obj.metadata.labels)])

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that the index function ``index`` gave ``value`` for.

        Raises:
            IndexerError: There is no such index.
        """
        return self._synced().by_index(index, value)

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """The keys of those objects.

        Raises:
            IndexerError: There is no such index.
        """
        return self._synced().index_keys(index, value)

    def index_values(self, index: str) -> tuple[str, ...]:
        """Every value that at least one object has in ``index``.

        Raises:
            IndexerError: There is no such index.
        """
        return self._synced().index_values(index)

    @property
    def resource_version(self) -> str:
        """The newest resourceVersion that the cache has taken in."""
        return self._synced().resource_version
