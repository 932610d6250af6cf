"""The read-only view of a cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, final

import attrs

from ..._text import quoted
from ..._util import NoPublicConstructor
from ...client import ObjectRef
from ...client._internal import FieldSelectorLike, LabelSelectorLike, reference_to
from ...errors import CacheNotSyncedError, DecodeError, NotInCacheError
from ...models import FieldSelector, KubernetesObject, LabelSelector, resource_of
from .._bad_objects import Quarantined, UndecodableLog
from ._indexer import NAMESPACE_INDEX, Indexer
from ._quarantine import Quarantine

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(eq=False, repr=False)
class Lister(Generic[T], metaclass=NoPublicConstructor):
    """A read-only view of an informer's cache (client-go ``tools/cache/listers.go``).

    All methods are synchronous and send no request.
    Their results are consistent with each other until the next checkpoint.
    The objects are shared and immutable; the tuples are new.
    A lister cannot change the cache: it has no method that writes, and its attributes cannot be set.

    A bad object, whose newest state the cache cannot store, is in quarantine (:meth:`quarantined`).
    Reading its key raises `QuarantinedError`, so that it does not look as if it was deleted.
    All other methods return its earlier state, if there is one.

    Raises:
        CacheNotSyncedError: Before the cache has synced, from every method that returns objects, keys or index values:
            an empty result could make a controller delete everything.
    """

    _name: str
    _indexer: Indexer[T]
    _has_synced: Callable[[], bool]
    _kind: type[T] | None = None
    _quarantine: Quarantine = attrs.field(factory=Quarantine)
    _undecodable_log: UndecodableLog = attrs.field(
        default=attrs.Factory(lambda self: UndecodableLog(f"a selector of the lister of {self._name}"), True),
        init=False,
    )

    def __repr__(self) -> str:
        return f"<Lister of {self._name}: {len(self._indexer)} objects{'' if self._has_synced() else ', not synced'}>"

    def _synced_indexer(self) -> Indexer[T]:
        if not self._has_synced():
            raise CacheNotSyncedError(
                f"the cache of {self._name} has not synced yet; start its factory with "
                "`await nursery.start(factory.run)` before reading from it"
            )
        return self._indexer

    def get(self, name: str | ObjectRef | T, *, namespace: str | None = None, allow_stale: bool = False) -> T | None:
        """Return an object by name, or None if it is not in the cache; omit the namespace for cluster-scoped kinds.

        In a reconcile, ``lister.get(request)`` returns the request's object.  ``lister.get(obj)`` returns the cached
        state of an object, whatever its uid.  :meth:`Api.get <trioformer.client.Api.get>` takes the same arguments.

        Args:
            name: The object's name; without ``namespace`` also its key, ``namespace/name``; an
                :class:`~trioformer.client.ObjectRef`, such as a controller's request; or an object of the kind.
            namespace: The object's namespace.
            allow_stale: Return the stored state of an object that is in quarantine.

        Raises:
            QuarantinedError: The object is in quarantine; with ``allow_stale``, only if no state is stored.
            ValueError: The kind is namespaced and there is no namespace, or the other way round, where None would look
                like a deleted object; or ``namespace`` differs from the namespace of ``name``.
            TypeError: The name is not a string, an ObjectRef or an object of the kind.
        """
        if not isinstance(name, str):
            name, namespace = self._located(name, namespace)
        obj = self._read(f"{namespace}/{name}" if namespace else name, allow_stale=allow_stale)
        if obj is None:
            _check_name(name, namespace, self._kind)
        return obj

    def _located(self, target: ObjectRef | T, namespace: str | None) -> tuple[str, str | None]:
        ref = reference_to(target, None if self._kind is None else resource_of(self._kind), reader="lister")
        if ref.namespace and namespace and ref.namespace != namespace:
            raise ValueError(f"{target!r} is not in namespace {quoted(namespace)}")
        return ref.name, ref.namespace or namespace

    def _read(self, key: str, *, allow_stale: bool = False) -> T | None:
        obj = self._synced_indexer().get(key)
        if self._quarantine.entries and key in self._quarantine.entries and not (allow_stale and obj is not None):
            raise self._quarantine.error_for(key)
        return obj

    def __getitem__(self, key: str) -> T:
        """Return the object under ``namespace/name`` (or ``name``).

        Raises:
            NotInCacheError: The object is not in the cache; this is a NotFoundError.
            QuarantinedError: The object is in quarantine.
            ValueError: No object of the kind can have this key.
            TypeError: The key is not a string.
        """
        obj = self._read(key)
        if obj is None:
            _check_key(key, self._kind)
            raise NotInCacheError(f"{self._name} {quoted(key)} is not in the cache")
        return obj

    def __contains__(self, key: object) -> bool:
        """Whether an object exists under the key; true for every object in quarantine.

        Raises:
            ValueError: No object of the kind can have this key.
            TypeError: The key is not a string.
        """
        if isinstance(key, str):
            if self._synced_indexer().get(key) is not None or key in self._quarantine.entries:
                return True
            if not key:
                return False
        _check_key(key, self._kind)
        return False

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return the objects in quarantine, by key, as a new mapping.

        Each has ``key``, ``reason``, ``since``, ``error``, ``resource_version`` and ``is_stored``: whether an earlier
        state is in the cache.
        """
        self._synced_indexer()
        return dict(self._quarantine.entries)

    def __iter__(self) -> Iterator[T]:
        return iter(self._synced_indexer().snapshot())

    def __len__(self) -> int:
        return len(self._synced_indexer())

    def list(
        self,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        namespace: str | None = None,
    ) -> tuple[T, ...]:
        """Return the objects whose labels and fields match, by the rules of the API server.

        ``metadata.name=…`` and ``metadata.namespace=…`` are looked up; other selectors are compared with each object.
        An object with an undecodable field that a selector reads is left out and logged.

        Args:
            label_selector: A label selector in kubectl's grammar, or a mapping of labels.
            field_selector: A field selector in kubectl's grammar, or a mapping of fields; only fields that the API
                server supports for the kind.
            namespace: Only objects of this namespace; None is all namespaces.

        Raises:
            SelectorError: A selector does not parse, or the API server does not support a field for the kind.
            ValueError: The namespace is empty, or the kind is cluster-scoped: the result would always be empty.
        """
        indexer = self._synced_indexer()
        _check_namespace(namespace, self._kind)
        labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
        objects = _all(indexer, namespace) if fields.is_empty else self._with_fields(indexer, fields, namespace)
        return objects if labels.is_empty else self._matching(objects, lambda obj: labels.matches(obj.metadata.labels))

    def _with_fields(self, indexer: Indexer[T], fields: FieldSelector, namespace: str | None) -> tuple[T, ...]:
        kind = self._kind or _kind_in(indexer)
        if kind is None:
            return ()
        supported = FieldSelector.selectable_fields(kind)
        supported.check(requirement.path for requirement in fields.requirements)
        # The objects found by name are compared too: a selector may have two names, or a name with a slash.
        equal = {path: value for path, operator, value in fields.requirements if operator == "="}
        namespace = namespace if namespace is not None else equal.get("metadata.namespace") or None
        name = equal.get("metadata.name")
        objects = _all(indexer, namespace) if name is None else _named(indexer, name, namespace)
        return self._matching(objects, lambda obj: fields.matches(functools.partial(supported.read, obj)))

    def _matching(self, objects: tuple[T, ...], matches: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the objects that match; leave out and log undecodable ones."""
        try:
            return tuple([obj for obj in objects if matches(obj)])
        except DecodeError:
            return tuple([obj for obj in objects if self._matches(obj, matches)])

    def _matches(self, obj: T, matches: Callable[[T], bool]) -> bool:
        try:
            return matches(obj)
        except DecodeError as error:
            self._undecodable_log.warn(obj, error)
            return False

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
            ValueError: It is the index ``namespace``, and no object of the kind can have the value.
        """
        if index == NAMESPACE_INDEX:
            _check_namespace(value, self._kind)
        return self._synced_indexer().by_index(index, value)

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """Return the keys of the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
            ValueError: It is the index ``namespace``, and no object of the kind can have the value.
        """
        if index == NAMESPACE_INDEX:
            _check_namespace(value, self._kind)
        return self._synced_indexer().index_keys(index, value)

    def index_values(self, index: str) -> tuple[str, ...]:
        """Return every value that at least one object has in ``index``.

        Raises:
            IndexerError: The index does not exist.
        """
        return self._synced_indexer().index_values(index)


def _all(indexer: Indexer[T], namespace: str | None) -> tuple[T, ...]:
    return indexer.snapshot() if namespace is None else indexer.by_index(NAMESPACE_INDEX, namespace)


def _named(indexer: Indexer[T], name: str, namespace: str | None) -> tuple[T, ...]:
    """Return the objects of a name in one or all namespaces, with one look-up for each namespace."""
    if namespace is not None:
        keys = [f"{namespace}/{name}"]
    else:
        keys = [name, *(f"{one}/{name}" for one in indexer.index_values(NAMESPACE_INDEX))]
    return tuple([obj for key in keys if (obj := indexer.get(key)) is not None])


def _kind_in(indexer: Indexer[T]) -> type[T] | None:
    """Return the class of the stored objects, for a lister without a class."""
    return next((type(obj) for obj in indexer.snapshot()), None)


def _check_namespace(namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Check that a namespace can have objects of a kind.

    Raises:
        ValueError: The namespace is empty, or the kind is cluster-scoped.
    """
    if namespace == "":
        raise ValueError("a namespace must not be empty; pass None for all namespaces")
    if namespace is not None and kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")


# --- checks of names and keys that were not found: an impossible one must not look like a deleted object ---


def _check_name(name: str, namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Check a name and a namespace that were not found.

    Args:
        name: The name; without a namespace also a key.
        namespace: The namespace, if any.
        kind: The kind; None if it is unknown.

    Raises:
        ValueError: The kind is namespaced and there is no namespace, or the other way round, or the name has a slash.
    """
    if not namespace:
        _check_key(name, kind)
    elif kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")
    elif "/" in name:
        raise ValueError(f"{quoted(name)} is not a name: it contains '/'; pass a key without a namespace")


def _check_key(key: object, kind: type[KubernetesObject] | None) -> None:
    """Check a key that was not found.

    Raises:
        TypeError: The key is not a string.
        ValueError: The key lacks a namespace, or has one although the kind is cluster-scoped.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key must be a string, 'namespace/name' or 'name', not {type(key).__name__}; see key_of()")
    if kind is None:
        return
    resource = resource_of(kind)
    if resource.namespaced and "/" not in key:
        raise ValueError(
            f"{resource} are namespaced, and {quoted(key)} has no namespace; "
            f"write lister.get(name, namespace=...) or lister['namespace/name']"
        )
    if not resource.namespaced and "/" in key:
        raise ValueError(f"{resource} are not namespaced, and {quoted(key)} has a namespace; pass only the name")
