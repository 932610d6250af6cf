"""The base of API objects, their metadata, and the resource of a kind.

Names and types of the fields are those of apimachinery's ``meta/v1``.
These classes are written by hand because the library itself reads them; all others of ``meta/v1`` are generated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import attrs

from .._text import one_line
from ..errors import DecodeError
from . import _lazy, _serde
from ._definitions import fields_for_subclasses
from ._heads import Head, Headed, make_head, scan_head, set_head
from ._lazy import Model
from ._mistakes import not_a_kind
from ._names import check_resource
from ._serde import Raw
from ._values import EMPTY_MAP, JSON, Time

__all__ = [
    "GroupVersionKind",
    "KubernetesObject",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "ResourceInfo",
    "encode_for_server",
    "encode_request",
    "key_of",
    "resource_of",
]


@attrs.frozen
class GroupVersionKind:
    """The name of a kind, such as ``apps/v1 Deployment``."""

    group: str
    """API group; empty for the core group."""
    version: str
    """Version, such as ``v1``."""
    kind: str
    """Kind, such as ``Deployment``."""

    @property
    def api_version(self) -> str:
        """``group/version``, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@attrs.frozen(kw_only=True)
class ResourceInfo:
    """The resource of a kind: its name and properties on the server.

    URL paths are made of the names, so they must be such as an API server accepts.

    Raises:
        ValueError: A name is not valid.
        TypeError: A name is not a string.
    """

    group: str
    """API group, a DNS subdomain such as ``apps`` or ``example.com``; empty for the core group."""
    version: str
    """Version, a DNS label such as ``v1``."""
    kind: str
    """Kind, such as ``Pod``."""
    plural: str
    """The resource's name in URLs, a DNS label such as ``pods``."""
    namespaced: bool
    """Whether each object belongs to a namespace."""
    short_names: tuple[str, ...] = ()
    """The names that kubectl accepts instead of the plural."""
    subresources: tuple[str, ...] = ()
    """Subresources, such as ``status`` and ``scale``."""
    categories: tuple[str, ...] = ()
    """Groups of resources such as ``all``."""
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    """The verbs that the server supports for it."""
    singular: str = attrs.field(default=attrs.Factory(lambda it: str(it.kind).lower(), takes_self=True))
    """The name for one object, such as ``pod``."""

    def __attrs_post_init__(self) -> None:
        check_resource(self.group, self.version, self.kind, self.plural, self.subresources)

    @property
    def api_version(self) -> str:
        """``group/version``, or only the version for the core group."""
        return self.gvk.api_version

    @property
    def gvk(self) -> GroupVersionKind:
        """Group, version and kind."""
        return GroupVersionKind(self.group, self.version, self.kind)

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, of one object, or of its subresource; names are not quoted."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class OwnerReference(Model):
    """The owner of an object (``meta/v1 OwnerReference``)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ManagedFieldsEntry(Model):
    """The fields that one manager has set (``meta/v1 ManagedFieldsEntry``)."""

    _json_names: ClassVar[Mapping[str, str]] = {"fields_v1": "fieldsV1"}

    api_version: str | None = None
    fields_type: str | None = None
    fields_v1: JSON = None
    manager: str | None = None
    operation: str | None = None
    subresource: str | None = None
    time: Time | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ObjectMeta(Model):
    """The metadata of an object (``meta/v1 ObjectMeta``)."""

    _deferred: ClassVar[frozenset[str]] = frozenset({"managed_fields"})

    annotations: Mapping[str, str] = EMPTY_MAP
    creation_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] = ()
    generate_name: str | None = None
    generation: int | None = None
    labels: Mapping[str, str] = EMPTY_MAP
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
    name: str = ""
    namespace: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    resource_version: str = ""
    self_link: str | None = None
    uid: str = ""


if attrs.evolve(OwnerReference(), name="")._origin.names != {"name"}:  # see _lazy.py
    raise ImportError("trioformer does not support this attrs: attrs.evolve() does not pass its changes first")


def _own_api_version(it: object) -> str:
    return resource_of(it if isinstance(it, type) else type(it)).api_version


def _own_kind(it: object) -> str:
    return resource_of(it if isinstance(it, type) else type(it)).kind


@fields_for_subclasses
@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class KubernetesObject(Headed):
    """The base of every kind.

    A subclass adds fields and a ``__resource__``; for custom kinds see ``examples`` and the how-to "Your own kinds".
    The hash is of kind, namespace, name and uid, so it does not decode the object.
    """

    __resource__: ClassVar[ResourceInfo]
    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = attrs.field(default=attrs.Factory(_own_api_version, takes_self=True))
    kind: str = attrs.field(default=attrs.Factory(_own_kind, takes_self=True))
    metadata: ObjectMeta = ObjectMeta()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "_head":
                return _fill_head(self)
            # The scan for the head has found the spec.  Only the first field of the level is decoded from that slice:
            # a later read decodes all the others, and must not decode this one again.
            if name == "spec" and self._once is None and self._head.spec != _NO_SPEC:
                plan = _lazy._plan_of(type(self))
                if name in plan.fields:
                    try:
                        value = plan.read_one(self, plan.fields[name], self._head.spec)
                    except DecodeError:
                        return super().__getattr__(name)  # which knows what follows
                    _lazy.set_once(self, name)
                    return value
            return super().__getattr__(name)

    @property
    def name(self) -> str:
        """``metadata.name``, without decoding the metadata."""
        return self._head.metadata.name

    @property
    def namespace(self) -> str | None:
        """``metadata.namespace``, or None if it is absent, without decoding the metadata."""
        return self._head.metadata.namespace or None

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` without a namespace: the key in caches and queues; see :func:`key_of`.

        A kind with a field of this name keeps its field.
        """
        return self._head.key

    @property
    def uid(self) -> str:
        """``metadata.uid``, without decoding the metadata."""
        return self._head.metadata.uid

    @property
    def resource_version(self) -> str:
        """``metadata.resourceVersion``, without decoding the metadata."""
        return self._head.metadata.resourceVersion

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is type(self) and (found := _compare_bytes(self, other)) is not None:
            return found
        return super().__eq__(other)

    def __hash__(self) -> int:
        metadata = self._head.metadata
        return hash((type(self), metadata.namespace, metadata.name, metadata.uid))

    def _complete(self, data: bytes) -> bytes:
        return _with_type_meta(self, data)

    def __repr__(self) -> str:
        try:
            version = f" at {self.resource_version}" if self.resource_version else ""
            text = f"<{self.kind} {key_of(self)}{version}>"
        except DecodeError as error:
            text = f"<{type(self).__name__}: {error}>"
        return one_line(text, longest=_MAX_REPR)


def _compare_bytes(one: KubernetesObject, other: KubernetesObject) -> bool | None:
    """Return whether decoded objects of a class are equal, or None if that cannot be said without decoding them.

    They are not if their names, uids or resourceVersions differ.
    An item of a list and the object of an event are equal if only the latter begins with its kind and apiVersion.
    """
    mine, theirs = one._origin, other._origin
    if type(mine) is not bytes or type(theirs) is not bytes:
        return None
    try:
        if one._head.metadata != other._head.metadata:
            return False
    except DecodeError:
        return None
    if mine == theirs:
        return True
    longer, shorter = (mine, theirs) if len(mine) > len(theirs) else (theirs, mine)
    type_meta = _type_meta_of(type(one))
    is_longer_by_that = longer.startswith(type_meta) and len(longer) - len(type_meta) == len(shorter) - 1
    return True if is_longer_by_that and longer.endswith(memoryview(shorter)[1:]) else None


def _make_type_meta(cls: type[object]) -> bytes:
    """Return the beginning of an object of a kind, as kube-apiserver writes it."""
    info: ResourceInfo | None = getattr(cls, "__resource__", None)
    return f'{{"kind":"{info.kind}","apiVersion":"{info.api_version}",'.encode() if info is not None else b"-"


_type_meta_of = cast("Callable[[type[object]], bytes]", functools.cache(_make_type_meta))


_NO_SPEC = Raw(b"")
_MAX_REPR = 800
"""Characters of a repr; kind, namespace and name have 63, 63 and 253 at most."""


def _fill_head(made: KubernetesObject) -> Head:
    head = _scanned(made._origin)
    if head is None:
        metadata = made.metadata
        head = make_head(metadata.name, metadata.namespace or "", metadata.uid, metadata.resource_version)
    set_head(made, head)
    return head


def _scanned(origin: object) -> Head | None:
    if not isinstance(origin, bytes):
        return None
    try:
        return scan_head(origin)
    except DecodeError:  # an object that is not from a server may have no metadata, or nulls in it
        return None


def key_of(obj: KubernetesObject) -> str:
    """Return the object's key in caches and queues: ``namespace/name``, or ``name`` if it has no namespace.

    Source: client-go ``MetaNamespaceKeyFunc``.
    """
    return obj._head.key


def resource_of(cls: type[object]) -> ResourceInfo:
    """Return the resource of a kind.

    Raises:
        TypeError: The class is not a kind: it has no ``__resource__``, or fields that attrs has not made.
    """
    if not isinstance(cls, type):
        raise not_a_kind(cls)
    if issubclass(cls, _lazy.Model):
        _lazy.check_made(cls)
    info = getattr(cls, "__resource__", None)
    if not isinstance(info, ResourceInfo):
        raise TypeError(f"{cls.__name__} is not a kind: it needs __resource__ = ResourceInfo(…)")
    return info


def encode_for_server(obj: KubernetesObject) -> bytes:
    """Encode an object with the kind and apiVersion that items of lists omit, as a server stores it."""
    return _with_type_meta(obj, _lazy.encode(obj))


def encode_request(obj: KubernetesObject, *, is_applied: bool = False) -> bytes:
    """Encode an object as a request's body: with kind and apiVersion, and with all that the program gave.

    Args:
        obj: The object.
        is_applied: Whether it is applied, and must have nothing else; the server decodes it as YAML.
    """
    if not is_applied:
        return _with_type_meta(obj, _lazy.encode_given(obj))
    return _NOT_YAML.sub(_escape, _with_type_meta(obj, _lazy.encode_applied(obj)))


# Characters, in UTF-8, that JSON has as they are and YAML only with an escape: DEL, C1, U+FFFE and U+FFFF.
# The others stay as they are, because go-yaml has no escapes of surrogates.
_NOT_YAML: Final = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _with_type_meta(obj: KubernetesObject, data: bytes) -> bytes:
    try:
        members = _serde.map_items(data)
    except _serde.FAULTS as error:
        raise _serde.decode_error(error, type(obj).__name__) from error
    if "kind" in members and "apiVersion" in members:
        return data
    api_version = members.pop("apiVersion", None) or _serde.dumps(obj.api_version)
    kind = members.pop("kind", None) or _serde.dumps(obj.kind)
    head = b'{"apiVersion":' + bytes(api_version) + b',"kind":' + bytes(kind)
    return b"".join((head, *(b"," + _serde.dumps(k) + b":" + bytes(v) for k, v in members.items()), b"}"))
