"""The indexer, which stores objects by key, and stores these keys by the values of index functions.

All methods except :meth:`Indexer.stage` are synchronous, so each change is atomic without a lock.
Only the process loop changes the objects.  All other code reads them through a :class:`~trioformer.cache.Lister`.

Source: client-go ``tools/cache/thread_safe_store.go``.  Unlike in client-go, a failing index function leaves the
indexer unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Generic, Literal, TypeAlias, TypeVar, final

import attrs

from ..._suggestions import describe
from ..._util import Slices
from ...errors import IndexerError
from ...models import KubernetesObject, LabelSelector, key_of
from ...models._internal import LabelRequirement, size_of

T = TypeVar("T", bound=KubernetesObject)
V = TypeVar("V")

IndexFunc: TypeAlias = Callable[[T], Iterable[str]]
"""A function that returns the values under which an object is indexed."""

NAMESPACE_INDEX = "namespace"
"""The name of the index that every cache has, with the namespaces of the objects as values."""


def _by_namespace(obj: KubernetesObject) -> tuple[str, ...]:
    namespace = obj.namespace
    return (namespace,) if namespace else ()


@final
@attrs.define(eq=False)
class _Index(Generic[T]):
    """The index of one index function: a set of keys for each value.

    The values of each object are stored, because an index function may return different values when it is called again.
    """

    name: str
    function: IndexFunc[T]
    buckets: dict[str, dict[str, None]] = attrs.field(factory=dict, init=False)
    """The keys of the objects for each value."""
    values: dict[str, tuple[str, ...]] = attrs.field(factory=dict, init=False)
    """The values of each key that has at least one.  The namespace index does not need this mapping, because the keys
    contain the value."""

    def values_for(self, obj: T) -> tuple[str, ...]:
        """Call the index function, and return its values for an object.

        Raises:
            IndexerError: The function failed.
        """
        return _index_values(self.name, self.function, obj)

    def values_of(self, key: str) -> tuple[str, ...]:
        """Return the values under which a key is stored in this index."""
        if self.name != NAMESPACE_INDEX:
            return self.values.get(key, ())
        namespace = key.rpartition("/")[0]
        return (namespace,) if key in self.buckets.get(namespace, ()) else ()

    def move(self, key: str, after: tuple[str, ...]) -> None:
        """Index a key under the values ``after`` instead of its current values."""
        before = self.values_of(key)
        if before == after:
            return
        for value in before:
            if value not in after and (bucket := self.buckets.get(value)) is not None:
                bucket.pop(key, None)
                if not bucket:
                    del self.buckets[value]
        self.add(key, after)
        if before and not after:
            self.values.pop(key, None)

    def add(self, key: str, values: tuple[str, ...]) -> None:
        """Index a key under values, in addition to its current values."""
        for value in values:
            self.buckets.setdefault(value, {})[key] = None
        if values and self.name != NAMESPACE_INDEX:
            self.values[key] = values

    def add_all(self, items: Mapping[str, T]) -> list[tuple[T, IndexerError]]:
        """Index objects; return the objects on which the function failed, with their errors."""
        failed: list[tuple[T, IndexerError]] = []
        for key, obj in items.items():
            try:
                self.move(key, self.values_for(obj))
            except IndexerError as error:
                failed.append((obj, error))
        return failed


@final
@attrs.define(eq=False)
class Staged(Generic[T]):
    """The next content of an indexer, which is built while the current content is still in use."""

    items: dict[str, T] = attrs.field(factory=dict)
    indices: dict[str, _Index[T]] = attrs.field(factory=dict)
    encoded_bytes: int = 0

    async def release(self) -> None:
        """Free the content in slices; freeing 100,000 objects in one step would block the event loop for 70 ms."""
        await drain(self.items)
        for index in self.indices.values():
            await drain(index.values)
            for bucket in index.buckets.values():
                await drain(bucket)


async def drain(members: dict[str, V]) -> None:
    """Empty a dict, with a checkpoint about once a millisecond."""
    slices = Slices(8)
    while members:
        members.popitem()
        if slices.is_over():
            await slices.checkpoint()


@final
class Indexer(Generic[T]):
    """A store of objects by key, with indices that are updated with every change.

    Args:
        indexers: A mapping of names to index functions, in addition to the namespace index.

    Raises:
        IndexerError: An index function is named ``namespace``.
    """

    def __init__(self, indexers: Mapping[str, IndexFunc[T]] | None = None) -> None:
        self._items: dict[str, T] = {}
        self.encoded_bytes = 0
        """The number of bytes from which the stored objects were decoded."""
        self._indices: dict[str, _Index[T]] = {NAMESPACE_INDEX: _Index(NAMESPACE_INDEX, _by_namespace)}
        self._by_label: dict[str, str] = {}
        """The names of the indices by the keys of their labels."""
        self.add_indexers(indexers or {})

    def __len__(self) -> int:
        return len(self._items)

    # --- reading ---

    def get(self, key: str) -> T | None:
        """Return the object with the key ``namespace/name`` or ``name``, or None if it is not stored."""
        return self._items.get(key)

    def snapshot(self) -> tuple[T, ...]:
        """Return all objects in a new tuple, in the order in which their keys were added."""
        return tuple(self._items.values())

    def keys(self) -> tuple[str, ...]:
        """Return all keys."""
        return tuple(self._items)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
        """
        items = self._items
        return tuple([items[key] for key in self._buckets(index).get(value, ())])

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """Return the keys of the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
        """
        return tuple(self._buckets(index).get(value, ()))

    def index_values(self, index: str) -> tuple[str, ...]:
        """Return all values that the index function ``index`` returned for the stored objects.

        Raises:
            IndexerError: The index does not exist.
        """
        return tuple(self._buckets(index))

    def candidates(self, labels: LabelSelector, namespace: str | None) -> tuple[T, ...]:
        """Return the objects of a namespace that may match a label selector, from the index with the fewest."""
        buckets: list[dict[str, None]] | None = None
        prefix, fewest = "", len(self._items)
        if namespace is not None:
            buckets = [self._buckets(NAMESPACE_INDEX).get(namespace, {})]
            fewest = len(buckets[0])
        for requirement in labels.requirements if self._by_label else ():
            name = self._by_label.get(requirement.key)
            if name is None or requirement.operator not in ("=", "in"):
                continue
            found = self._buckets(name)
            chosen = [found[value] for value in requirement.values if value in found]
            count = sum(map(len, chosen))
            if count < fewest:
                buckets, fewest = chosen, count
                prefix = f"{namespace}/" if namespace is not None else ""
        if buckets is None:
            return self.snapshot()
        items = self._items
        return tuple([items[key] for bucket in buckets for key in bucket if key.startswith(prefix)])

    def _buckets(self, index: str) -> dict[str, dict[str, None]]:
        try:
            return self._indices[index].buckets
        except KeyError:
            raise IndexerError(f"no index {index!r}; the indices are {', '.join(sorted(self._indices))}") from None

    # --- writing ---

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> list[tuple[T, IndexerError]]:
        """Add index functions, and add the stored objects to the new indices.

        An object on which a function fails stays in the store, but is not in the index of this function.
        Adding the same function under the same name again changes nothing.

        Returns:
            The objects on which an index function failed, each with its error.

        Raises:
            IndexerError: An index with this name exists with a different function, or a function failed on every
                stored object and the store contains at least two objects.  After either error, no index is added.
            TypeError: ``indexers`` is not a mapping of names to functions.
        """
        given: object = indexers
        if not isinstance(given, Mapping) or not all(map(callable, given.values())):
            raise TypeError("indexers must be a mapping of names to functions, such as {'by-node': field_index(...)}")
        added = {name: _Index(name, function) for name, function in indexers.items() if name not in self._indices}
        for name in sorted(indexers.keys() - added):
            if self._indices[name].function != indexers[name]:
                raise IndexerError(f"index {name!r} already exists with a different function; choose another name")
        failed: list[tuple[T, IndexerError]] = []
        for index in added.values():
            errors = index.add_all(self._items)
            if len(errors) == len(self._items) > 1:
                raise errors[0][1]
            failed += errors
        self._indices.update(added)
        for name, index in added.items():
            if isinstance(index.function, _MetadataIndex) and index.function.field == "labels":
                self._by_label.setdefault(index.function.key, name)
        return failed

    def put(self, key: str, obj: T) -> None:
        """Store an object under a key.

        Raises:
            IndexerError: An index function failed.  The indexer is unchanged.
        """
        # The namespace is part of the key, so an update cannot change it.
        known = self._items[key] if key in self._items else None  # noqa: SIM401  # faster than get()
        if len(self._indices) > 1 or known is None:
            moved = [(index, index.values_for(obj)) for index in self._indices.values()]
            for index, values in moved:
                index.move(key, values)
        new, old = obj._origin, b"" if known is None else known._origin
        if type(new) is bytes and type(old) is bytes:  # for each event of JSON, so without another call
            self.encoded_bytes += len(new) - len(old)
        else:
            self.encoded_bytes += size_of(obj) - (0 if known is None else size_of(known))
        self._items[key] = obj

    def remove(self, key: str) -> None:
        """Remove the object with this key, if there is one."""
        if (obj := self._items.pop(key, None)) is not None:
            self.encoded_bytes -= size_of(obj)
            for index in self._indices.values():
                index.move(key, ())

    async def stage(
        self, objects: Iterable[T], marked: Container[str] = ()
    ) -> tuple[Staged[T], list[tuple[T, IndexerError]]]:
        """Build new content for :meth:`swap`, with a checkpoint about once a millisecond.

        If two objects have the same key, the later one is stored.
        If an index function fails on an object, the object is skipped, and the stored object with the same key is kept.
        Readers do not see the new content until :meth:`swap` is called.

        Args:
            objects: All objects of the new content.
            marked: The keys in quarantine.  If a function fails again on the stored object with such a key, the object
                is returned too.

        Returns:
            The new content, and the skipped objects with their errors.
        """
        staged: Staged[T] = Staged(indices={name: _Index(name, each.function) for name, each in self._indices.items()})
        namespaces, *others = staged.indices.values()
        failed: list[tuple[T, IndexerError]] = []
        slices = Slices(8)
        for obj in objects:
            staged.items[key_of(obj)] = obj
            if slices.is_over():
                await slices.checkpoint()
        slices = Slices(1 if others else 8)
        for key, obj in staged.items.items():
            staged.encoded_bytes += size_of(obj)
            try:
                found = [index.values_for(obj) for index in others] if others else ()
            except IndexerError as error:
                failed.append((obj, error))
            else:
                namespaces.add(key, _by_namespace(obj))
                for index, values in zip(others, found, strict=True) if others else ():
                    index.add(key, values)
            if slices.is_over():
                await slices.checkpoint()
        left_out: list[tuple[T, IndexerError]] = []
        for each in failed:
            if self._keep_stored(staged, each[0], marked):
                left_out.append(each)
            if slices.is_over():
                await slices.checkpoint()
        return staged, left_out

    def _keep_stored(self, staged: Staged[T], obj: T, marked: Container[str]) -> bool:
        """Keep the stored state of an object that cannot be indexed; return whether to report the object as bad."""
        key = key_of(obj)
        del staged.items[key]
        staged.encoded_bytes -= size_of(obj)
        known = self._items.get(key)
        if known is not None:
            staged.items[key] = known
            staged.encoded_bytes += size_of(known)
            for name, index in staged.indices.items():
                index.move(key, self._indices[name].values_of(key))
        return key in marked or obj is not known

    def swap(self, staged: Staged[T], marked: Container[str] = ()) -> tuple[Staged[T], list[tuple[T, IndexerError]]]:
        """Atomically replace the whole content with the staged content.

        Returns:
            The previous content, which the caller must free in slices, and the bad objects.  If index functions were
            added after :meth:`stage`, these are the objects on which they failed.  The stored states of these objects
            are kept.
        """
        before = Staged(self._items, self._indices)
        failed = self._add_late_indexers(staged, marked)
        self._items, self._indices, self.encoded_bytes = staged.items, staged.indices, staged.encoded_bytes
        return before, failed

    def _add_late_indexers(self, staged: Staged[T], marked: Container[str]) -> list[tuple[T, IndexerError]]:
        """Add staged content to the indices that were added after :meth:`stage`."""
        failed: dict[str, tuple[T, IndexerError]] = {}
        for name, current in self._indices.items():
            if name not in staged.indices:
                staged.indices[name] = index = _Index(name, current.function)
                for obj, error in index.add_all(staged.items):
                    failed.setdefault(key_of(obj), (obj, error))
        for key in failed:
            for index in staged.indices.values():
                index.move(key, ())
        return [each for each in failed.values() if self._keep_stored(staged, each[0], marked)]


def _index_values(name: str, function: IndexFunc[T], obj: T) -> tuple[str, ...]:
    try:
        found = function(obj)
        values = tuple(found)
    except Exception as error:  # a user's function may raise anything
        where = f"{type(obj).__name__} {key_of(obj)}"
        raise IndexerError(f"index function {name!r} failed on {where}: {type(error).__name__}", name) from error
    if isinstance(found, str):
        raise _invalid_values(name, found, obj)
    for value in values:  # runs twice for every event, and all() would take five times as long
        if not isinstance(value, str):
            raise _invalid_values(name, values, obj)
    return values


def _type_of(found: object) -> str:
    """Return the type of a value as text, without the value itself, which may be part of a secret."""
    if isinstance(found, tuple):
        return f"({', '.join(sorted({type(value).__name__ for value in found}))})"
    return describe(found)


def _invalid_values(name: str, found: object, obj: KubernetesObject) -> IndexerError:
    return IndexerError(
        f"index function {name!r} must return strings in a list or tuple, not {_type_of(found)} for {key_of(obj)}", name
    )


def field_index(path: str) -> IndexFunc[KubernetesObject]:
    """Return an index function for a dotted attribute path, such as ``spec.node_name``.

    The attribute's value is the index value.  If the attribute is None or empty, the object is not in the index.  If
    the attribute is a tuple, the object is indexed under each of its elements.
    Calls with the same path return the same function, so several users of an informer can add the same index.
    """
    return _values_at(path)


@functools.lru_cache
def _values_at(path: str) -> IndexFunc[KubernetesObject]:
    names = path.split(".")

    def values(obj: KubernetesObject) -> tuple[str, ...]:
        value: object = obj
        for name in names:
            value = getattr(value, name)
            if value is None:
                return ()
        if isinstance(value, tuple):
            return tuple(map(str, value))
        return (str(value),) if value != "" else ()

    return values


@final
@attrs.frozen
class _MetadataIndex:
    """An index function for one label or annotation.  Functions for the same key are equal."""

    field: Literal["labels", "annotations"]
    key: str

    def __call__(self, obj: KubernetesObject) -> tuple[str, ...]:
        value = getattr(obj.metadata, self.field).get(self.key)
        return () if value is None else (value,)


def label_index(key: str) -> IndexFunc[KubernetesObject]:
    """Return an index function for a label, such as ``app``.

    The value of the label is the index value.  Objects without the label are not in the index.
    :meth:`Lister.list` uses the index for label selectors that require one value or one of several values.

    Raises:
        SelectorError: The key is not valid.
    """
    return _MetadataIndex("labels", LabelRequirement(key, "exists").key)


def annotation_index(key: str) -> IndexFunc[KubernetesObject]:
    """Return an index function for an annotation, such as ``example.com/owner``.

    The value of the annotation is the index value.  Objects without the annotation are not in the index.
    """
    return _MetadataIndex("annotations", key)
