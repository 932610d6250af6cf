"""The store: objects by key, and keys by the values of index functions.

Everything here is plain synchronous code, so each change is atomic between two checkpoints and needs no lock.
Only the process loop holds the methods that write; everybody else is given a :class:`~trioformer.cache.Lister`.

Source: client-go ``tools/cache/thread_safe_store.go``; unlike there, an index function that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..._util import Slices
from ...errors import IndexerError
from ...models import KubernetesObject, key_of

T = TypeVar("T", bound=KubernetesObject)
V = TypeVar("V")

IndexFunc: TypeAlias = Callable[[T], Iterable[str]]
"""Which values an object is found under; none, one or many."""

NAMESPACE_INDEX = "namespace"
"""The index that every indexer has."""

_Buckets: TypeAlias = dict[str, dict[str, None]]


def _by_namespace(obj: KubernetesObject) -> tuple[str, ...]:
    namespace = obj.namespace
    return (namespace,) if namespace else ()


@final
@attrs.define(eq=False)
class Staged(Generic[T]):
    """The next content of an indexer, built beside the present one."""

    items: dict[str, T] = attrs.field(factory=dict)
    indices: dict[str, _Buckets] = attrs.field(factory=dict)

    async def release(self) -> None:
        """Let go of everything, in slices: freeing 100,000 objects at once would hold up the loop for 70 ms."""
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
class Indexer(Generic[T]):
    """Objects by key, with indices that are kept in step.

    Args:
        indexers: Index functions by name; the namespace index is always there.

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
        """The newest resourceVersion that the store has taken in; empty before the first list."""
        return self._resource_version

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indices."""
        return tuple(self._functions)

    # --- reading ---

    def get(self, key: str) -> T | None:
        """The object under ``namespace/name`` (or ``name``), or None."""
        return self._items.get(key)

    def snapshot(self) -> tuple[T, ...]:
        """Every object, in the order in which the keys came; a new tuple of shared objects."""
        return tuple(self._items.values())

    def keys(self) -> tuple[str, ...]:
        """Every key."""
        return tuple(self._items)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that the index function gave ``value`` for; cost grows with their number only.

        Raises:
            IndexerError: There is no such index.
        """
        items = self._items
        return tuple([items[key] for key in self._buckets(index).get(value, ())])

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """The keys of those objects.

        Raises:
            IndexerError: There is no such index.
        """
        return tuple(self._buckets(index).get(value, ()))

    def index_values(self, index: str) -> tuple[str, ...]:
        """Every value that at least one object has.

        Raises:
            IndexerError: There is no such index.
        """
        return tuple(self._buckets(index))

    def _buckets(self, index: str) -> _Buckets:
        try:
            return self._indices[index]
        except KeyError:
            raise IndexerError(f"there is no index {index!r}; there are {', '.join(sorted(self._indices))}") from None

    # --- writing ---

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Add index functions; what is stored is indexed at once.

        Raises:
            IndexerError: A name is taken, or a function failed; nothing is added then.
        """
        taken = sorted(name for name in indexers if name in self._functions)
        if taken:
            raise IndexerError(f"index {taken[0]!r} exists already; give the new one another name")
        built = {name: self._built(name, function) for name, function in indexers.items()}
        self._indices.update(built)
        self._functions.update(indexers)

    def _built(self, name: str, function: IndexFunc[T]) -> _Buckets:
        buckets: _Buckets = {}
        for key, obj in self._items.items():
            for value in _values(name, function, obj):
                buckets.setdefault(value, {})[key] = None
        return buckets

    def put(self, key: str, obj: T) -> None:
        """Store an object in place of what is under its key.

        Raises:
            IndexerError: An index function failed; the store is unchanged.
        """
        old = self._items.get(key)
        none: tuple[str, ...] = ()
        if old is None:
            moved = [(name, none, _values(name, function, obj)) for name, function in self._functions.items()]
        elif len(self._functions) == 1:
            # The namespace is part of the key: an update cannot move it.
            moved = []
        else:
            moved = [
                (name, _values(name, function, old), _values(name, function, obj))
                for name, function in self._functions.items()
                if name != NAMESPACE_INDEX
            ]
        self._items[key] = obj
        for name, before, after in moved:
            if before != after:
                self._move(name, key, before, after)
        self._resource_version = obj.resource_version or self._resource_version

    def remove(self, key: str) -> None:
        """Forget the object under ``key``, if there is one."""
        old = self._items.get(key)
        if old is not None:
            moved = [(name, _values(name, function, old)) for name, function in self._functions.items()]
            del self._items[key]
            for name, before in moved:
                self._move(name, key, before, ())

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
        """Note that the store is as new as ``resource_version`` (a bookmark, or a deletion)."""
        self._resource_version = resource_version or self._resource_version

    async def stage(self, objects: Iterable[T]) -> tuple[Staged[T], list[tuple[T, IndexerError]]]:
        """Build the content that :meth:`swap` puts in place, in slices of about a millisecond.

        Of two objects with one key the later counts.
        One that an index function fails on is left out; what is stored under its key now stays.
        Readers see nothing of it.

        Returns:
            The content, and the objects that were left out, each with its error.

        Raises:
            IndexerError: A function failed on what it had indexed before; the store is unchanged.
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
                found = [_values(name, function, obj) for function, name, _ in functions]
            except IndexerError as error:
                failed.append((obj, error))
            else:
                for (_, _, buckets), values in zip(functions, found, strict=True):
                    for value in values:
                        buckets.setdefault(value, {})[key] = None
            if slices.is_over():
                await slices.checkpoint()
        for obj, _ in failed:
            key = key_of(obj)
            del staged.items[key]
            if (known := self._items.get(key)) is not None:
                staged.items[key] = known
                for function, name, buckets in functions:
                    for value in _values(name, function, known):
                        buckets.setdefault(value, {})[key] = None
        return staged, failed

    def swap(self, staged: Staged[T], resource_version: str) -> Staged[T]:
        """Put staged content in place of all there is, in one step.

        Returns:
            What was there before, for the caller to let go of in slices.

        Raises:
            IndexerError: An index function that was added meanwhile failed; the store is unchanged.
        """
        before = Staged(self._items, self._indices)
        self._items = staged.items
        try:
            late = {n: self._built(n, f) for n, f in self._functions.items() if n not in staged.indices}
        except IndexerError:
            self._items = before.items
            raise
        self._indices = staged.indices | late
        self._resource_version = resource_version or self._resource_version
        return before


def _values(name: str, function: IndexFunc[T], obj: T) -> tuple[str, ...]:
    try:
        found = function(obj)
        values = tuple(found)
    except Exception as error:  # a user's function: whatever it raises becomes one clear error
        where = f"{type(obj).__name__} {key_of(obj)}"
        raise IndexerError(f"index function {name!r} failed on {where}: {type(error).__name__}") from error
    if isinstance(found, str):
        raise _no_values(name, found, obj)
    for value in values:  # a loop, since this runs twice for every event and all() takes five times as long
        if not isinstance(value, str):
            raise _no_values(name, values, obj)
    return values


def _types(found: object) -> str:
    """What kind of value was found; never the value, which may be a secret's."""
    if isinstance(found, tuple):
        return f"({', '.join(sorted({type(value).__name__ for value in found}))})"
    return f"a {type(found).__name__}"


def _no_values(name: str, found: object, obj: KubernetesObject) -> IndexerError:
    return IndexerError(
        f"index function {name!r} must return strings in a list or tuple, not {_types(found)} for {key_of(obj)}"
    )


def field_index(path: str) -> IndexFunc[KubernetesObject]:
    """Make an index function of a dotted attribute path, such as ``spec.node_name``.

    An object whose value is None or empty is not indexed; a tuple indexes the object under each of its strings.
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
