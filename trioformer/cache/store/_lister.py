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
    Between two checkpoints their results are consistent with each other.
    The objects are shared and immutable; the tuples are new.
    A lister cannot change the cache: it has no method that writes, and its attributes cannot be set.

    An object whose newest state the cache cannot take is in quarantine (:meth:`quarantined`).
    To read its key raises `QuarantinedError`, so that it never looks as if it had been deleted.
    All other methods return what is stored: an earlier state of the object, or nothing.

    Raises:
        CacheNotSyncedError: From every method that returns objects, keys or index values, before the cache has synced.
            An empty result could make a controller delete everything.
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
        """Return the object of that name, or None; cluster-scoped kinds take no namespace.

        ``lister.get(request)`` in a reconcile returns the request's object, and ``lister.get(obj)`` the cached state of
        an object, whatever its uid; :meth:`Api.get <trioformer.client.Api.get>` is written in the same way.

        Args:
            name: The object's name; without ``namespace`` also its key, ``namespace/name``; an
                :class:`~trioformer.client.ObjectRef`, such as a controller's request; or an object of the kind.
            namespace: The object's namespace.
            allow_stale: Return the stored state of an object that is in quarantine.

        Raises:
            QuarantinedError: The object is in quarantine; with ``allow_stale``, only if no state is stored.
            ValueError: The kind is namespaced and there is no namespace, or the other way round: the result would be
                None, as for an object that was deleted; or ``namespace`` is not that of ``name``.
            TypeError: The name is none of these, or an object of another kind.
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
            NotInCacheError: It is not in the cache; it is a NotFoundError.
            QuarantinedError: It is in quarantine.
            ValueError: No object of the kind can have this key.
            TypeError: The key is not a string.
        """
        obj = self._read(key)
        if obj is None:
            _check_key(key, self._kind)
            raise NotInCacheError(f"{self._name} {quoted(key)} is not in the cache")
        return obj

    def __contains__(self, key: object) -> bool:
        """Whether an object exists under the key; true for one in quarantine, whether a state is stored or not.

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
        """Return the objects whose newest state the cache cannot take, by key; a new mapping."""
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

        ``metadata.name=…`` and ``metadata.namespace=…`` are looked up, other selectors are compared with each object.
        An object is left out, and logged, if a field that a selector reads does not decode.

        Args:
            label_selector: A label selector in kubectl's grammar, or labels that must all be equal.
            field_selector: A field selector in kubectl's grammar, or fields that must all be equal; only fields that
                the API server supports for the kind.
            namespace: Only objects of this namespace; None is all namespaces.

        Raises:
            SelectorError: A selector does not parse, or the kind cannot be selected by one of the fields, whatever the
                cache holds.
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
        # The found objects are compared as well: a selector may have two names, or a name that contains a slash.
        equal = {path: value for path, operator, value in fields.requirements if operator == "="}
        namespace = namespace if namespace is not None else equal.get("metadata.namespace") or None
        name = equal.get("metadata.name")
        objects = _all(indexer, namespace) if name is None else _named(indexer, name, namespace)
        return self._matching(objects, lambda obj: fields.matches(functools.partial(supported.read, obj)))

    def _matching(self, objects: tuple[T, ...], matches: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the objects that match; one that does not decode is left out and logged."""
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
        """Return the keys of those objects.

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
    """Return the objects of a name in one namespace or in each: one look-up for each namespace, without a scan."""
    if namespace is not None:
        keys = [f"{namespace}/{name}"]
    else:
        keys = [name, *(f"{one}/{name}" for one in indexer.index_values(NAMESPACE_INDEX))]
    return tuple([obj for key in keys if (obj := indexer.get(key)) is not None])


def _kind_in(indexer: Indexer[T]) -> type[T] | None:
    """Return the class of the stored objects, for a lister that was made without a class."""
    return next((type(obj) for obj in indexer.snapshot()), None)


def _check_namespace(namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Check a namespace whose objects are listed; the result would be silently empty.

    Raises:
        ValueError: It is empty, or the kind is cluster-scoped.
    """
    if namespace == "":
        raise ValueError("a namespace must not be empty; pass None for all namespaces")
    if namespace is not None and kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")


# --- names and keys that no object of a kind can have: a lister would find nothing, as for a deleted object ---
# They are checked after nothing was found, so that reading an object costs nothing more.


def _check_name(name: str, namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Check a name and a namespace under which a lister has found nothing.

    Args:
        name: The name; without a namespace it may be a key.
        namespace: The namespace; None or empty for none.
        kind: The kind, or None if it is not known.

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
    """Check a key under which a lister has found nothing.

    Raises:
        TypeError: It is not a string.
        ValueError: No object of the kind can have it: the namespace is missing, or too much.
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
