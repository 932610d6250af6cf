"""The read-only view of a cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Generic, TypeVar

import attrs
import trio

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


@attrs.frozen(eq=False, repr=False)
class Lister(Generic[T], metaclass=NoPublicConstructor):
    """A read-only view of an informer's cache (client-go ``tools/cache/listers.go``).

    All methods are synchronous and send no requests.
    Results are consistent with each other if they are read without a checkpoint in between.
    The objects are immutable and shared by all readers.  Each call returns a new tuple.
    A lister cannot change the cache.

    An object is in quarantine if the cache cannot store its newest state; :meth:`quarantined` returns these objects.
    Reading the key of such an object raises `QuarantinedError`, because None would mean that the object was deleted.
    The methods that return several objects include the earlier state of an object in quarantine, if there is one.

    Raises:
        CacheNotSyncedError: If the cache has not synced.  All methods that read the cache raise this error, because an
            empty result could make a controller delete everything.
    """

    _clock: ClassVar[Callable[[], float]] = staticmethod(trio.current_time)
    _name: str
    _indexer: Indexer[T]
    _has_synced: Callable[[], bool]
    _kind: type[T] | None = None
    _quarantine: Quarantine = attrs.field(factory=Quarantine)
    _undecodable_log: UndecodableLog = attrs.field(
        default=attrs.Factory(
            lambda self: UndecodableLog(f"a selector of the lister of {self._name}", self._clock), True
        ),
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
        """Return the object with this name, or None if it is not in the cache.

        In a reconcile function, ``lister.get(request)`` returns the object that the request names.  ``lister.get(obj)``
        returns the cached object with the same name and namespace, even if its uid differs.  :meth:`Api.get
        <trioformer.client.Api.get>` takes the same arguments.

        Args:
            name: The object's name; its key ``namespace/name``, if ``namespace`` is omitted; an
                :class:`~trioformer.client.ObjectRef`, such as a controller's request; or an object of the kind.
            namespace: The object's namespace.  Omit it for cluster-scoped kinds.
            allow_stale: Whether to return the earlier state of an object in quarantine instead of raising
                `QuarantinedError`.

        Raises:
            QuarantinedError: The object is in quarantine, and ``allow_stale`` is false or the cache has no earlier
                state of the object.
            ValueError: The kind is namespaced and the namespace is missing, the kind is cluster-scoped and a namespace
                is given, or ``namespace`` differs from the namespace of ``name``.
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
        """Return the object with the key ``namespace/name``, or ``name`` for a cluster-scoped kind.

        Raises:
            NotInCacheError: The object is not in the cache.  The error is also a `NotFoundError`.
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
        """Return whether an object with this key exists, in the cache or in quarantine.

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
        """Return a new mapping from keys to the objects in quarantine.

        Each value has the fields ``key``, ``reason``, ``since``, ``error``, ``resource_version`` and ``is_stored``,
        which says whether an earlier state is in the cache.
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
        """Return the objects that match the selectors, by the rules of the API server.

        The field selectors ``metadata.name=…`` and ``metadata.namespace=…`` use an index, and so does a label selector
        with ``=`` or ``in`` if the cache has an index of this label (:func:`label_index`).  All other selectors are
        checked against every object.  The order of the result is not specified.
        If a selector reads a field that cannot be decoded, the object is skipped and logged.

        Args:
            label_selector: A label selector in kubectl's syntax, or a mapping of labels.
            field_selector: A field selector in kubectl's syntax, or a mapping of fields.  The selector may use only
                fields that the API server supports for the kind.
            namespace: The namespace of the objects.  The default, None, returns the objects of all namespaces.

        Raises:
            SelectorError: A selector is not valid, or the API server does not support a field selector for this kind
                and field.
            ValueError: The namespace is an empty string, or a namespace is given for a cluster-scoped kind.
        """
        self._synced_indexer()
        _check_namespace(namespace, self._kind)
        labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
        if fields.is_empty:
            objects = self._candidates(labels, namespace)
        else:
            objects = self._with_fields(fields, labels, namespace)
        return objects if labels.is_empty else self._matching(objects, lambda obj: labels.matches(obj.metadata.labels))

    def _candidates(self, labels: LabelSelector, namespace: str | None, name: str | None = None) -> tuple[T, ...]:
        """Return the objects that may match the selectors, without decoding their fields."""
        indexer = self._indexer
        return indexer.candidates(labels, namespace) if name is None else _named(indexer, name, namespace)

    def _with_fields(self, fields: FieldSelector, labels: LabelSelector, namespace: str | None) -> tuple[T, ...]:
        kind = self._kind or _kind_in(self._indexer)
        if kind is None:
            return ()
        supported = FieldSelector.selectable_fields(kind)
        supported.check(requirement.path for requirement in fields.requirements)
        # The objects found by name are compared too: a selector may have two names, or a name with a slash.
        equal = {path: value for path, operator, value in fields.requirements if operator == "="}
        namespace = namespace if namespace is not None else equal.get("metadata.namespace") or None
        objects = self._candidates(labels, namespace, equal.get("metadata.name"))
        return self._matching(objects, lambda obj: fields.matches(functools.partial(supported.read, obj)))

    def _matching(self, objects: tuple[T, ...], matches: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the matching objects; skip and log an object that cannot be decoded."""
        try:
            return tuple([obj for obj in objects if matches(obj)])
        except DecodeError:
            return tuple([obj for obj in objects if self._matches(obj, matches)])

    def _matches(self, obj: T, matches: Callable[[T], bool]) -> bool:
        try:
            return matches(obj)
        except DecodeError as error:
            self._log_undecodable(obj, error)
            return False

    def _log_undecodable(self, obj: T, error: DecodeError) -> None:
        self._undecodable_log.warn(obj, error)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
            ValueError: ``index`` is ``"namespace"``, and ``value`` is empty or the kind is cluster-scoped.
        """
        if index == NAMESPACE_INDEX:
            _check_namespace(value, self._kind)
        return self._synced_indexer().by_index(index, value)

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """Return the keys of the objects for which the index function ``index`` returned ``value``.

        Raises:
            IndexerError: The index does not exist.
            ValueError: ``index`` is ``"namespace"``, and ``value`` is empty or the kind is cluster-scoped.
        """
        if index == NAMESPACE_INDEX:
            _check_namespace(value, self._kind)
        return self._synced_indexer().index_keys(index, value)

    def index_values(self, index: str) -> tuple[str, ...]:
        """Return all values that the index function ``index`` returned for the stored objects.

        Raises:
            IndexerError: The index does not exist.
        """
        return self._synced_indexer().index_values(index)


def _named(indexer: Indexer[T], name: str, namespace: str | None) -> tuple[T, ...]:
    """Return the objects with this name, in one namespace or in all namespaces."""
    if namespace is not None:
        keys = [f"{namespace}/{name}"]
    else:
        keys = [name, *(f"{one}/{name}" for one in indexer.index_values(NAMESPACE_INDEX))]
    return tuple([obj for key in keys if (obj := indexer.get(key)) is not None])


def _kind_in(indexer: Indexer[T]) -> type[T] | None:
    """Return the class of the stored objects, or None if the cache is empty.

    The function is used if the lister's kind is unknown.
    """
    return next((type(obj) for obj in indexer.snapshot()), None)


def _check_namespace(namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Check that a namespace can contain objects of this kind.

    Raises:
        ValueError: The namespace is empty, or the kind is cluster-scoped.
    """
    if namespace == "":
        raise ValueError("a namespace must not be empty; pass None for all namespaces")
    if namespace is not None and kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")


# --- checks of names and keys that were not found: an impossible one must not look like a deleted object ---


def _check_name(name: str, namespace: str | None, kind: type[KubernetesObject] | None) -> None:
    """Raise an error if no object of the kind can have this name and namespace. Called after a lookup found no object.

    Args:
        name: The object's name, or its key if ``namespace`` is None.
        namespace: The object's namespace, or None.
        kind: The object's class, or None if it is unknown.

    Raises:
        ValueError: The kind is namespaced and the namespace is missing, the kind is cluster-scoped and a namespace is
            given, or the name contains a slash.
    """
    if not namespace:
        _check_key(name, kind)
    elif kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")
    elif "/" in name:
        raise ValueError(f"{quoted(name)} is not a valid name, because it contains '/'; pass a key without namespace=")


def _check_key(key: object, kind: type[KubernetesObject] | None) -> None:
    """Raise an error if no object of the kind can have this key. Called after a lookup found no object.

    Raises:
        TypeError: The key is not a string.
        ValueError: The kind is namespaced and the key has no namespace, or the kind is cluster-scoped and the key has
            one.
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
