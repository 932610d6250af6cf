"""The base class of API objects, and the classes for their metadata.

The names and types of the fields follow ``meta/v1`` in apimachinery.
These classes are written by hand, because the library itself reads their fields.  All other classes of ``meta/v1`` are
generated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import attrs

from .._text import one_line
from ..errors import DecodeError
from . import _lazy
from ._classes import frozen_model
from ._definitions import fields_for_subclasses
from ._evolve import set_once
from ._heads import Head, make_head, scan_head
from ._lazy import Model, set_origin
from ._protobuf._heads import envelope_of, scan_message
from ._protobuf._wire import Message, Unknown, newer_field_in
from ._resources import ResourceInfo, resource_of
from ._serde import ABSENT, FAULTS, decode_error, dumps, map_items
from ._values import EMPTY_MAP, JSON, Time

__all__ = [
    "KubernetesObject",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "encode_for_server",
    "encode_request",
    "key_of",
    "make_object",
]


H = TypeVar("H", bound="Headed")


@frozen_model(kw_only=True)
class OwnerReference(Model):
    """The owner of an object (``meta/v1 OwnerReference``)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@frozen_model(kw_only=True)
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


@frozen_model(kw_only=True)
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
@frozen_model(kw_only=True)
class KubernetesObject(Headed):
    """The base class of every kind.

    A subclass adds fields and a ``__resource__``.  For custom kinds, see ``examples`` and the how-to guide "Your own
    kinds".
    The hash depends only on the kind, namespace, name and uid, so hashing does not decode the object.
    """

    __resource__: ClassVar[ResourceInfo]
    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = attrs.Factory(_own_api_version, takes_self=True)
    kind: str = attrs.Factory(_own_kind, takes_self=True)
    metadata: ObjectMeta = ObjectMeta()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "_head":
                return _fill_head(self)
            # The scan for the head found the spec.  Only the first field of the level is decoded from that slice:
            # a later read decodes all the others, and must not decode this one again.
            if name == "spec" and self._once is None and self._head.spec != ABSENT:
                plan = _lazy.plan_of(type(self))
                if name in plan.fields:
                    try:
                        value = plan.read_one(self, plan.fields[name], self._head.spec)
                    except DecodeError:
                        return Model.__getattr__(self, name)  # which knows what follows
                    set_once(self, name)
                    return value
            return Model.__getattr__(self, name)

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
        return Model.__eq__(self, other)

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
    if type(mine) not in _ENCODINGS or type(theirs) not in _ENCODINGS:
        return None
    try:
        if one._head.metadata != other._head.metadata:
            return False
    except DecodeError:
        return None
    if mine == theirs:
        return True
    if type(mine) is Message or type(theirs) is Message:
        return None
    longer, shorter = (mine, theirs) if len(mine) > len(theirs) else (theirs, mine)
    type_meta = _type_meta_of(type(one))
    is_longer_by_that = longer.startswith(type_meta) and len(longer) - len(type_meta) == len(shorter) - 1
    return True if is_longer_by_that and longer.endswith(memoryview(shorter)[1:]) else None


_ENCODINGS: Final = (bytes, Message)
"""The types of the bytes of an object that was decoded and not changed: JSON, or a message."""


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
    if not isinstance(origin, bytes | Message):
        return None
    try:
        return _scan(origin)
    except DecodeError:  # an object that is not from a server may have no metadata, or nulls in it
        return None


def _scan(data: bytes | Message) -> Head:
    if type(data) is not Message:
        return scan_head(data)
    return scan_message(data.data, 0, len(data.data), drops_managed_fields=False)[1]


def make_object(cls: type[H], raw: bytes | Message, head: Head | None = None) -> H:
    """Make an object from its JSON or its message, without decoding the fields.

    Args:
        cls: The class of the kind.
        raw: The object's bytes.  Pass a copy and not a slice of a larger response, because the object keeps these bytes
            alive.
        head: The head of the object.  The default, None, scans ``raw`` for the head.

    Raises:
        DecodeError: ``head`` is None, and the bytes are not a JSON object with metadata.
    """
    made: H = object.__new__(cls)  # as make() of _lazy.py, without a call: this runs once for each object that arrives
    set_origin(made, raw)
    set_once(made, None)
    set_head(made, head if head is not None else _scan(raw))
    return made


def detached(obj: H) -> H:
    """Return a changed object with bytes of its own, so that the bytes of its source can be freed.

    Raises:
        DecodeError: A changed value does not have the type of its field.
    """
    origin = obj._origin
    if isinstance(origin, _lazy.Edits) and (type(origin.raw) is Message or _has_newer_parts(obj)):
        from ._messages import message_of  # noqa: PLC0415  # only for objects that a transform changes

        lost: list[str] = []
        data = message_of(obj, lost)
        if not lost:
            return make_object(type(obj), Message(data))
    return make_object(type(obj), _lazy.encode(obj))


def _has_newer_parts(obj: Headed) -> bool:
    """Return whether a new object contains parts with fields that JSON cannot represent."""
    unknown: Unknown = []
    if obj._origin.raw is None:
        _lazy.encode_for_request(obj, unknown=unknown)
    return bool(unknown) and _is_in_table(type(obj))


def _is_in_table(cls: type[Headed]) -> bool:
    from ._protobuf._fields import type_of_class  # noqa: PLC0415  # which JSON does not need

    return type_of_class(cls) is not None


def bytes_of(obj: KubernetesObject) -> bytes:
    """Return the bytes of an object that was decoded and not changed."""
    return bytes(obj._origin)


def size_of(obj: KubernetesObject) -> int:
    """Return the number of bytes from which an object was decoded.  An object that a program has made counts as 0."""
    origin = obj._origin
    return len(origin if type(origin) is bytes else origin.data if type(origin) is Message else b"")


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

    The body is JSON, unless the object or a part of it was read as a protobuf message and has fields that are newer
    than the table of types.  In that case, the body is a message, so that no fields are lost.  (client-go drops such
    fields.)

    Args:
        obj: The object.
        is_applied: Whether the request is an apply.  If so, only fields that the program set are encoded, and the
            server decodes the body as YAML.

    Raises:
        ValueError: The object has such fields, but the request must be JSON, or other parts were decoded from JSON and
            have fields that do not exist in messages.
    """
    unknown: Unknown = []
    data = _with_type_meta(obj, _lazy.encode_for_request(obj, is_applied=is_applied, unknown=unknown))
    if unknown and not is_applied and _is_in_table(type(obj)):
        return _encode_as_message(obj)
    if name := newer_field_in(unknown):  # an apply, or a custom kind with parts of built-in kinds
        raise ValueError(newer_field_problem(obj, name))
    return _NOT_YAML.sub(_escape, data) if is_applied else data


def _encode_as_message(obj: KubernetesObject) -> bytes:
    from ._messages import message_of  # noqa: PLC0415  # only for servers that are newer than this release

    lost: list[str] = []
    data = message_of(obj, lost)
    if lost:
        raise ValueError(newer_field_problem(obj, lost[0]))
    return envelope_of(obj.api_version, obj.kind, data)


def newer_field_problem(obj: object, name: str) -> str:
    """Return the text of an error about a request that would remove a field that is newer than the table of types."""
    return (
        f"{obj!r} has a field that is newer than this version of trioformer ({name}), and the request could remove it; "
        f"read the object with get(), or pass options=ClientOptions(protobuf=False) to open_client()"
    )


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
