"""The indexer: objects by key, and keys by the values of index functions.

Except for :meth:`Indexer.stage` everything is synchronous, so each change is atomic and needs no lock.
Only the process loop changes the objects; all other code reads them through a :class:`~trioformer.cache.Lister`.

Source: client-go ``tools/cache/thread_safe_store.go``; unlike there, an index function that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..._util import Slices
from ...errors import IndexerError
from ...models import KubernetesObject, key_of

T = TypeVar("T", bound=KubernetesObject)
V = TypeVar("V")

IndexFunc: TypeAlias = Callable[[T], Iterable[str]]
"""Returns the values under which an object is indexed: none, one or many."""

NAMESPACE_INDEX = "namespace"
"""The name of the index that every cache has; its values are the namespaces."""

_Buckets: TypeAlias = dict[str, dict[str, None]]


def _by_namespace(obj: KubernetesObject) -> tuple[str, ...]:
    namespace = obj.namespace
    return (namespace,) if namespace else ()


@final
@attrs.define(eq=False)
class Staged(Generic[T]):
    """The next content of an indexer, built while the current content is still in use."""

    items: dict[str, T] = attrs.field(factory=dict)
    indices: dict[str, _Buckets] = attrs.field(factory=dict)

    async def release(self) -> None:
        """Drop the content in slices: freeing 100,000 objects in one step would block the event loop for 70 ms."""
        await drain(self.items)
        for buckets in self.indices.values():
            for bucket in buckets.values():
                await drain(bucket)


async def drain(members: dict[str, V]) -> None:
    """Empty a dict in slices of about a millisecond."""
    slices = Slices()
    while members:
        members.popitem()
        if slices.is_over():
            await slices.checkpoint()


@final
@attrs.define(eq=False, repr=False, init=False)
class Indexer(Generic[T]):
    """Objects by key, with indices that follow every change.

    Args:
        indexers: Index functions by name, in addition to the namespace index.

    Raises:
        IndexerError: An index function has the name ``namespace``.
    """

    _items: dict[str, T]
    _functions: dict[str, IndexFunc[T]]
    _indices: dict[str, _Buckets]
    _resource_version: str

    def __init__(self, indexers: Mapping[str, IndexFunc[T]] | None = None) -> None:
        self._items = {}
        self._functions = {NAMESPACE_INDEX: _by_namespace}
        self._indices = {NAMESPACE_INDEX: {}}
        self._resource_version = ""
        self.add_indexers(indexers or {})

    def __len__(self) -> int:
        return len(self._items)

    @property
    def resource_version(self) -> str:
        """The newest resourceVersion that the indexer has reached; empty before the first list."""
        return self._resource_version

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indices."""
        return tuple(self._functions)

    # --- reading ---

    def get(self, key: str) -> T | None:
        """Return the object under ``namespace/name`` (or ``name``), or None."""
        return self._items.get(key)

    def snapshot(self) -> tuple[T, ...]:
        """Return every object, in the order in which the keys were added; a new tuple of shared objects."""
        return tuple(self._items.values())

    def keys(self) -> tuple[str, ...]:
        """Return every key."""
        return tuple(self._items)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects for which the index function returned ``value``; the cost grows with their number only.

        Raises:
            IndexerError: The index does not exist.
        """
        items = self._items
        return tuple([items[key] for key in self._buckets(index).get(value, ())])

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """Return the keys of those objects.

        Raises:
            IndexerError: The index does not exist.
        """
        return tuple(self._buckets(index).get(value, ()))

    def index_values(self, index: str) -> tuple[str, ...]:
        """Return every value that at least one object has.

        Raises:
            IndexerError: The index does not exist.
        """
        return tuple(self._buckets(index))

    def _buckets(self, index: str) -> _Buckets:
        try:
            return self._indices[index]
        except KeyError:
            raise IndexerError(f"no index {index!r}; the indices are {', '.join(sorted(self._indices))}") from None

    # --- writing ---

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> list[tuple[T, IndexerError]]:
        """Add index functions, and index the stored objects.

        An object that a function fails on stays stored, and is not in that index.

        Returns:
            These objects, each with its error.

        Raises:
            IndexerError: A name is in use, or a function failed on each of several objects; no index is added then.
            TypeError: ``indexers`` is not a mapping of functions.
        """
        given: object = indexers
        if not isinstance(given, Mapping) or not all(map(callable, given.values())):
            raise TypeError("indexers must be a mapping of names to functions, such as {'by-node': field_index(...)}")
        existing = sorted(name for name in indexers if name in self._functions)
        if existing:
            raise IndexerError(f"index {existing[0]!r} already exists; choose another name")
        failed: list[tuple[T, IndexerError]] = []
        built = {name: self._build_index(name, function, failed) for name, function in indexers.items()}
        self._indices.update(built)
        self._functions.update(indexers)
        return failed

    def _build_index(self, name: str, function: IndexFunc[T], failed: list[tuple[T, IndexerError]]) -> _Buckets:
        buckets, errors = _index_all(name, function, self._items)
        if len(errors) == len(self._items) > 1:
            raise errors[0][1]
        failed += errors
        return buckets

    def put(self, key: str, obj: T) -> None:
        """Store an object, in place of the one under its key if there is one.

        Raises:
            IndexerError: An index function failed; the indexer is unchanged.
        """
        old = self._items.get(key)
        nothing: tuple[str, ...] = ()
        if old is None:
            moved = [(name, nothing, _index_values(name, function, obj)) for name, function in self._functions.items()]
        elif len(self._functions) == 1:
            # The namespace is part of the key: an update cannot move it.
            moved = []
        else:
            try:
                moved = [
                    (name, _index_values(name, function, old), _index_values(name, function, obj))
                    for name, function in self._functions.items()
                    if name != NAMESPACE_INDEX
                ]
            except IndexerError:
                moved = [
                    (name, self._values_of(name, function, key, old), _index_values(name, function, obj))
                    for name, function in self._functions.items()
                ]
        self._items[key] = obj
        for name, before, after in moved:
            if before != after:
                self._move(name, key, before, after)
        self._resource_version = obj.resource_version or self._resource_version

    def remove(self, key: str) -> None:
        """Remove the object under ``key``, if there is one."""
        old = self._items.get(key)
        if old is not None:
            moved = [(name, self._values_of(name, function, key, old)) for name, function in self._functions.items()]
            del self._items[key]
            for name, before in moved:
                self._move(name, key, before, ())

    def _values_of(self, name: str, function: IndexFunc[T], key: str, stored: T) -> tuple[str, ...]:
        """Return the values under which a stored object is indexed, also when the function fails on it now."""
        try:
            return _index_values(name, function, stored)
        except IndexerError:
            return tuple([value for value, bucket in self._indices[name].items() if key in bucket])

    def _move(self, name: str, key: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        buckets = self._indices[name]
        for value in before:
            if value not in after and (bucket := buckets.get(value)) is not None:
                bucket.pop(key, None)
                if not bucket:
                    del buckets[value]
        for value in after:
            buckets.setdefault(value, {})[key] = None

    def advance(self, resource_version: str) -> None:
        """Record that the indexer has reached ``resource_version`` (a bookmark, or a deletion)."""
        self._resource_version = resource_version or self._resource_version

    async def stage(
        self, objects: Iterable[T], marked: Container[str] = ()
    ) -> tuple[Staged[T], list[tuple[T, IndexerError]]]:
        """Build new content for :meth:`swap`, in slices of about a millisecond.

        Of two objects with the same key the later one counts.
        An object that an index function fails on is left out; the object that is stored under its key stays.
        Readers do not see the new content before the swap.

        Args:
            objects: The new content.
            marked: The keys of stored states that are reported as well if a function fails on them again.

        Returns:
            The content, and the objects that were left out, each with its error.
        """
        staged: Staged[T] = Staged(indices={name: {} for name in self._functions})
        functions = [(self._functions[name], name, buckets) for name, buckets in staged.indices.items()]
        failed: list[tuple[T, IndexerError]] = []
        slices = Slices()
        for obj in objects:
            staged.items[key_of(obj)] = obj
            if slices.is_over():
                await slices.checkpoint()
        for key, obj in staged.items.items():
            try:
                found = [_index_values(name, function, obj) for function, name, _ in functions]
            except IndexerError as error:
                failed.append((obj, error))
            else:
                for (_, _, buckets), values in zip(functions, found, strict=True):
                    for value in values:
                        buckets.setdefault(value, {})[key] = None
            if slices.is_over():
                await slices.checkpoint()
        return staged, self._keep_stored(staged, failed, marked)

    def _keep_stored(
        self, staged: Staged[T], failed: list[tuple[T, IndexerError]], marked: Container[str]
    ) -> list[tuple[T, IndexerError]]:
        """Put the stored states of objects that are not indexed in their places; return the changed or marked ones."""
        for obj, _ in failed:
            key = key_of(obj)
            del staged.items[key]
            if (known := self._items.get(key)) is not None:
                staged.items[key] = known
                for name, buckets in staged.indices.items():
                    for value in self._values_of(name, self._functions[name], key, known):
                        buckets.setdefault(value, {})[key] = None
        return [each for each in failed if (key := key_of(each[0])) in marked or each[0] is not self._items.get(key)]

    def swap(
        self, staged: Staged[T], resource_version: str, marked: Container[str] = ()
    ) -> tuple[Staged[T], list[tuple[T, IndexerError]]]:
        """Replace the whole content by staged content; atomic.

        Returns:
            The previous content, which the caller releases in slices, and the objects that were left out, because an
            index function that was added after :meth:`stage` failed on them; their stored states stay.
        """
        before = Staged(self._items, self._indices)
        failed = self._add_late_indexers(staged, marked)
        self._items, self._indices = staged.items, staged.indices
        self._resource_version = resource_version or self._resource_version
        return before, failed

    def _add_late_indexers(self, staged: Staged[T], marked: Container[str]) -> list[tuple[T, IndexerError]]:
        """Index staged content by the functions that were added after it was staged."""
        failed: dict[str, tuple[T, IndexerError]] = {}
        for name, function in self._functions.items():
            if name in staged.indices:
                continue
            staged.indices[name], errors = _index_all(name, function, staged.items)
            for obj, error in errors:
                failed.setdefault(key_of(obj), (obj, error))
        for key in failed:
            for indexed in staged.indices.values():
                for value in [value for value, bucket in indexed.items() if key in bucket]:
                    del indexed[value][key]
                    if not indexed[value]:
                        del indexed[value]
        return self._keep_stored(staged, list(failed.values()), marked)


def _index_all(
    name: str, function: IndexFunc[T], items: Mapping[str, T]
) -> tuple[_Buckets, list[tuple[T, IndexerError]]]:
    """Index objects by one function; return the buckets, and the objects that it fails on, each with its error."""
    buckets: _Buckets = {}
    failed: list[tuple[T, IndexerError]] = []
    for key, obj in items.items():
        try:
            values = _index_values(name, function, obj)
        except IndexerError as error:
            failed.append((obj, error))
        else:
            for value in values:
                buckets.setdefault(value, {})[key] = None
    return buckets, failed


def _index_values(name: str, function: IndexFunc[T], obj: T) -> tuple[str, ...]:
    try:
        found = function(obj)
        values = tuple(found)
    except Exception as error:  # a user's function may raise anything
        where = f"{type(obj).__name__} {key_of(obj)}"
        raise IndexerError(f"index function {name!r} failed on {where}: {type(error).__name__}", name) from error
    if isinstance(found, str):
        raise _invalid_values(name, found, obj)
    for value in values:  # a loop: this runs twice for every event, and all() takes five times as long
        if not isinstance(value, str):
            raise _invalid_values(name, values, obj)
    return values


def _type_of(found: object) -> str:
    """Describe the type of a value, never the value itself, which may be part of a secret."""
    if isinstance(found, tuple):
        return f"({', '.join(sorted({type(value).__name__ for value in found}))})"
    return f"a {type(found).__name__}"


def _invalid_values(name: str, found: object, obj: KubernetesObject) -> IndexerError:
    return IndexerError(
        f"index function {name!r} must return strings in a list or tuple, not {_type_of(found)} for {key_of(obj)}", name
    )


def field_index(path: str) -> IndexFunc[KubernetesObject]:
    """Return an index function for a dotted attribute path, such as ``spec.node_name``.

    An object whose value is None or empty is not indexed; if the value is a tuple, the object is indexed under each of
    its elements.
    """
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
