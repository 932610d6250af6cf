"""The base class of API objects, and the classes of their metadata.

The names and types of the fields follow ``meta/v1`` in apimachinery.
These classes are written by hand, because the library itself reads their fields.  All other classes of ``meta/v1`` are
generated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast, final

import attrs
import msgspec

from .._text import one_line
from ..errors import DecodeError
from . import _lazy
from ._definitions import fields_for_subclasses
from ._evolve import set_once
from ._lazy import Model, set_origin
from ._resources import ResourceInfo, resource_of
from ._serde import ABSENT, FAULTS, INVALID_JSON, Raw, decode_error, dumps, map_items
from ._values import EMPTY_MAP, JSON, Time

__all__ = [
    "Head",
    "KubernetesObject",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "encode_for_server",
    "encode_request",
    "key_of",
    "make_object",
    "scan_head",
    "scan_whole",
    "scan_without_managed_fields",
]


H = TypeVar("H", bound="Headed")


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


# --- heads: the fields that the library itself reads of every object ---


@final
class MetadataHead(msgspec.Struct, gc=False):
    """The metadata fields that caches and queues need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  # with the API's name msgspec needs no rename


@final
class Head(msgspec.Struct, gc=False):
    """The fields that a scan extracts from an object's JSON.

    The class uses ``gc=False``, because heads contain no containers and a large number of heads would slow down every
    garbage collection.
    """

    metadata: MetadataHead
    spec: msgspec.Raw = ABSENT

    @property
    def key(self) -> str:
        """``namespace/name``, or only the name if the object has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_decode_head = msgspec.json.Decoder(Head).decode


class _NullableMetadataHead(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815  # as in MetadataHead


class _NullableHead(msgspec.Struct, gc=False):
    metadata: _NullableMetadataHead
    spec: msgspec.Raw = ABSENT


_decode_nullable_head = msgspec.json.Decoder(_NullableHead).decode


def scan_head(data: bytes) -> Head:
    """Return the head of an object from its JSON; null is read as an empty value, as in Go.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        return _decode_head(data)
    except INVALID_JSON:
        pass  # not below, where it would be the context of the next error
    try:
        found = _decode_nullable_head(data)
    except INVALID_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    metadata = found.metadata
    texts = (metadata.name, metadata.namespace, metadata.uid, metadata.resourceVersion)
    return Head(MetadataHead(*(text or "" for text in texts)), found.spec)


def scan_whole(data: bytes) -> tuple[bytes, Head]:
    """Scan an object's JSON, and return the unchanged bytes with the head.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    return data, scan_head(data)


class _ManagedMetadataHead(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = ABSENT  # noqa: N815  # as in MetadataHead


class _ManagedHead(msgspec.Struct, gc=False):
    metadata: _ManagedMetadataHead


_find_managed_fields = msgspec.json.Decoder(_ManagedHead).decode
_MANAGED_FIELDS = b'"managedFields":'


def scan_without_managed_fields(data: bytes) -> tuple[bytes, Head]:
    """Remove ``metadata.managedFields`` from an object's bytes, and return the rest with the object's head.

    The removal often halves the size of the object.  The remaining bytes are copied once, and nothing is decoded.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        found = _find_managed_fields(data).metadata.managedFields
    except INVALID_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    value = memoryview(found)
    if not value:
        return scan_whole(data)
    begin = data.find(_MANAGED_FIELDS)
    end = begin + len(_MANAGED_FIELDS) + len(value)
    # The key cannot be inside a string, which escapes quotes; but it may be in a nested object, or have white space.
    if begin > 0 and data[end - len(value) : end] == value:
        if data[begin - 1] == _COMMA:
            begin -= 1
        elif data[end] == _COMMA:
            end += 1
        rest = data[:begin] + data[end:]
        if _has_no_managed_fields(rest):
            return scan_whole(rest)
    return scan_whole(_without_managed_fields(data))


def _has_no_managed_fields(rest: bytes) -> bool:
    try:
        return not memoryview(_find_managed_fields(rest).metadata.managedFields)
    except INVALID_JSON:  # white space before the key: the comma before it is left
        return False


_COMMA = ord(",")


def _without_managed_fields(data: bytes) -> bytes:
    """Remove ``managedFields`` from an object in any JSON formatting, by decoding its members."""
    try:
        members = map_items(data)
        metadata = map_items(members["metadata"])
    except ValueError as error:
        raise decode_error(error, "an object's metadata") from error
    del metadata["managedFields"]
    members["metadata"] = Raw(_join(metadata))
    return _join(members)


def _join(members: dict[str, Raw]) -> bytes:
    return b"{" + b",".join([dumps(key) + b":" + bytes(raw) for key, raw in members.items()]) + b"}"


def make_head(name: str, namespace: str, uid: str, resource_version: str) -> Head:
    """Make the head of an object that was not decoded from JSON."""
    return Head(MetadataHead(name, namespace, uid, resource_version))


class Headed(Model):
    """A base class with a slot for the head."""

    __slots__ = ("_head",)
    _head: Head


set_head: Callable[[Headed, Head], None] = Headed.__dict__["_head"].__set__


def _own_api_version(it: object) -> str:
    return resource_of(it if isinstance(it, type) else type(it)).api_version


def _own_kind(it: object) -> str:
    return resource_of(it if isinstance(it, type) else type(it)).kind


@fields_for_subclasses
@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class KubernetesObject(Headed):
    """The base class of every kind.

    A subclass adds fields and a ``__resource__``.  For custom kinds, see ``examples`` and the how-to guide "Your own
    kinds".
    The hash depends only on the kind, namespace, name and uid, so hashing does not decode the object.
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
            # The scan for the head found the spec.  Only the first field of the level is decoded from that slice:
            # a later read decodes all the others, and must not decode this one again.
            if name == "spec" and self._once is None and self._head.spec != ABSENT:
                plan = _lazy._plan_of(type(self))
                if name in plan.fields:
                    try:
                        value = plan.read_one(self, plan.fields[name], self._head.spec)
                    except DecodeError:
                        return super().__getattr__(name)  # which knows what follows
                    set_once(self, name)
                    return value
            return super().__getattr__(name)

    @property
    def name(self) -> str:
        """The value of ``metadata.name``, read without decoding the metadata."""
        return self._head.metadata.name

    @property
    def namespace(self) -> str | None:
        """The value of ``metadata.namespace``, or None if it is absent, read without decoding the metadata."""
        return self._head.metadata.namespace or None

    @property
    def key(self) -> str:
        """The key in caches and queues: ``namespace/name``, or only the name; see :func:`key_of`.

        If a kind has a field named ``key``, the attribute is that field.
        """
        return self._head.key

    @property
    def uid(self) -> str:
        """The value of ``metadata.uid``, read without decoding the metadata."""
        return self._head.metadata.uid

    @property
    def resource_version(self) -> str:
        """The value of ``metadata.resourceVersion``, read without decoding the metadata."""
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
    """Compare two objects of the same class without decoding them; return None if the bytes are not sufficient.

    Objects with different names, uids or resourceVersions are not equal.
    A list item and a watch event's object are equal even if only the latter begins with the kind and apiVersion.
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
    """Return the first bytes of an object's JSON, with kind and apiVersion, as kube-apiserver writes them."""
    info: ResourceInfo | None = getattr(cls, "__resource__", None)
    return f'{{"kind":"{info.kind}","apiVersion":"{info.api_version}",'.encode() if info is not None else b"-"


_type_meta_of = cast("Callable[[type[object]], bytes]", functools.cache(_make_type_meta))


_MAX_REPR = 800
"""The maximum length of a repr; kind, namespace and name have at most 63, 63 and 253 characters."""


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


def make_object(cls: type[H], raw: bytes, head: Head | None = None) -> H:
    """Make an object from its JSON without decoding the fields.

    Args:
        cls: The class of the kind.
        raw: The object's JSON.  Pass a copy and not a slice of a larger response, because the object keeps these bytes
            alive.
        head: The head of the object. The default, None, scans ``raw`` for the head.

    Raises:
        DecodeError: ``head`` is None, and the bytes are not a JSON object with metadata.
    """
    made: H = object.__new__(cls)  # as make() of _lazy.py, without a call: this runs once for each object that arrives
    set_origin(made, raw)
    set_once(made, None)
    set_head(made, head if head is not None else scan_head(raw))
    return made


def key_of(obj: KubernetesObject) -> str:
    """Return an object's key in caches and queues: ``namespace/name``, or only the name if there is no namespace.

    Source: client-go ``MetaNamespaceKeyFunc``.
    """
    return obj._head.key


def encode_for_server(obj: KubernetesObject) -> bytes:
    """Encode an object as a server stores it, with the kind and apiVersion that list items omit."""
    return _with_type_meta(obj, _lazy.encode(obj))


def encode_request(obj: KubernetesObject, *, is_applied: bool = False) -> bytes:
    """Encode an object as a request body, with kind, apiVersion, and every value that the program set.

    Args:
        obj: The object to encode.
        is_applied: Whether the request is a server-side apply. For an apply request, only fields that the program set
            are encoded, in a form that is also valid YAML.
    """
    if not is_applied:
        return _with_type_meta(obj, _lazy.encode_given(obj))
    return _NOT_YAML.sub(_escape, _with_type_meta(obj, _lazy.encode_applied(obj)))


# Characters in UTF-8 that YAML must escape, unlike JSON: DEL, C1, U+FFFE and U+FFFF.
# The others are not escaped, because go-yaml does not read escaped surrogates.
_NOT_YAML: Final = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _with_type_meta(obj: KubernetesObject, data: bytes) -> bytes:
    try:
        members = map_items(data)
    except FAULTS as error:
        raise decode_error(error, type(obj).__name__) from error
    if "kind" in members and "apiVersion" in members:
        return data
    api_version = members.pop("apiVersion", None) or dumps(obj.api_version)
    kind = members.pop("kind", None) or dumps(obj.kind)
    head = b'{"apiVersion":' + bytes(api_version) + b',"kind":' + bytes(kind)
    return b"".join((head, *(b"," + dumps(k) + b":" + bytes(v) for k, v in members.items()), b"}"))
