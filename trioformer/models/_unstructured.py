"""Objects of kinds that have no class: read-only mappings of JSON.

Like a model, an unstructured object stores the bytes of its JSON.  A top-level member is decoded when it is first read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, overload

from .._suggestions import describe, with_article
from ..errors import DecodeError
from . import _lazy, _serde
from ._classes import frozen_model
from ._merge_patch import find_model
from ._meta import KubernetesObject, ObjectMeta
from ._resources import ResourceInfo, resource_of
from ._serde import Raw

__all__ = ["Unstructured", "unstructured_kind"]

U = TypeVar("U", bound="Unstructured")


class _WithMembers(KubernetesObject):
    """A base class with a slot for the decoded members."""

    __slots__ = ("_members",)
    _members: dict[str, Any]


@frozen_model(kw_only=True)
class Unstructured(_WithMembers):
    """An object of a kind that has no class: a read-only mapping of its JSON, with typed metadata.

    For example::

        Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
        for widget in await client.api(Widget, namespace="default").list():
            print(widget.metadata.name, widget["spec"]["size"], widget.get("status", {}).get("phase"))

    The keys are the JSON's top-level keys.  The values are read-only maps, tuples and scalars.
    Reading an absent key raises ``KeyError``, because there are no defaults for the fields.

    This class itself is not a kind, because it has no resource.  :func:`unstructured_kind` and
    :meth:`trioformer.client.Client.discover` return subclasses that are kinds.
    Two objects are equal if they have the same kind and equal JSON.

    Raises:
        DecodeError: The program reads a member that is not valid JSON, or a metadata field with the wrong type.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "_members":
                members: dict[str, Any] = {}
                _set_members(self, members)
                return members
            return KubernetesObject.__getattr__(self, name)

    @classmethod
    def of(cls, mapping: Mapping[str, object]) -> Self:
        """Make an object from plain values, such as a parsed manifest.

        ``apiVersion`` and ``kind`` may be omitted.

        Raises:
            DecodeError: The mapping is an object of another kind, has neither a name nor a ``generateName``, has
                invalid metadata, or contains a value that cannot be encoded as JSON.
            TypeError: This class is not a kind.
        """
        resource = resource_of(cls)
        type_meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        try:
            data = _serde.dumps(_serde.plain({**type_meta, **mapping}))
        except _serde.FAULTS as error:
            raise _serde.encode_error(error, resource.kind) from error
        return _checked(cls, data)

    def merge(self, patch: Mapping[str, object]) -> Self:
        """Return a copy with a JSON merge patch (RFC 7386) applied, for example for ``Api.replace``.

        For example, ``widget.merge({"spec": {"size": 3, "color": None}})`` sets one member of the spec and removes
        another.
        The patch replaces lists as a whole, and unchanged members keep their bytes.

        Raises:
            DecodeError: The result is not a valid object of this kind; see :meth:`of`.
            TypeError: The patch contains a model outside a list.  Use a mapping instead, because a model cannot remove
                a field.
        """
        kind = type(self).__name__
        if (found := find_model(patch)) is not None:
            problem = f"{found[0] or 'the patch'} must be a mapping, not {describe(found[1])}"
            what = f"cannot merge into {with_article(kind)}"
            raise TypeError(f"{what}: {problem}; pass a mapping with None for each field to remove")
        try:
            data = _merged(_lazy.encode(self), _as_mapping(_serde.plain(patch)))
        except _serde.FAULTS as error:
            raise _serde.encode_error(error, kind) from error
        return _checked(type(self), data)

    def __getitem__(self, key: str) -> Any:
        members = self._members
        if key in members:
            return members[key]
        value = self._read(key)
        members[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return a top-level member, or ``default`` if the member is absent."""
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> tuple[str, ...]:
        """Return the top-level keys in the order of the JSON."""
        return tuple(self)

    def __contains__(self, key: object) -> bool:
        return key in _TYPE_META or key in self._raws()

    def __iter__(self) -> Iterator[str]:
        raws = self._raws()
        yield from (key for key in _TYPE_META if key not in raws)
        yield from raws

    def __len__(self) -> int:
        return len(self._raws().keys() | _TYPE_META)

    def _read(self, key: str) -> Any:
        if key in _TYPE_META:  # items of a list of built-in objects omit them
            return self.kind if key == "kind" else self.api_version
        spec = self._head.spec if key == "spec" else _ABSENT  # the scan for the head found it
        raw = spec if memoryview(spec) else self._raws()[key]
        try:
            return _serde.loads(raw)
        except DecodeError as error:
            shown = repr(key) if _NAME.fullmatch(key) else "…"  # other keys are content, not names of fields
            raise _serde.decode_error(error, f"{type(self).__name__}[{shown}]") from error

    def _raws(self) -> dict[str, Raw]:
        try:
            return _serde.map_items(_lazy.encode(self))
        except _serde.FAULTS as error:
            raise _serde.decode_error(error, type(self).__name__) from error

    def __reduce__(self) -> tuple[Callable[..., KubernetesObject], tuple[object, ...]]:
        return _unpickled, (resource_of(type(self)), _lazy.encode(self))


_set_members: Callable[[Unstructured, dict[str, Any]], None] = _WithMembers.__dict__["_members"].__set__
_NAME: Final = re.compile(r"[A-Za-z]\w{0,62}", re.ASCII)
_TYPE_META: Final = {"apiVersion": None, "kind": None}.keys()
_ABSENT: Final = Raw(b"")


@overload
def unstructured_kind(resource: ResourceInfo, /) -> type[Unstructured]: ...
@overload
def unstructured_kind(api_version: str, kind: str, /, *, plural: str, namespaced: bool) -> type[Unstructured]: ...


def unstructured_kind(
    resource: ResourceInfo | str, kind: str = "", /, *, plural: str = "", namespaced: bool = True
) -> type[Unstructured]:
    """Return a kind for objects without a typed class.

    For example, ``unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)``.  This function
    does not send a request; :meth:`trioformer.client.Client.discover` gets the resource from the server.  Calls with
    the same resource return the same class.

    Args:
        resource: The resource, or the ``apiVersion`` of the kind, such as ``apps/v1``.
        kind: The name of the kind, such as ``Deployment``.
        plural: The name of the resource in URLs, such as ``deployments``.
        namespaced: Whether each object belongs to a namespace.

    Raises:
        ValueError: A name is missing or not valid; see :class:`ResourceInfo`.
    """
    if isinstance(resource, str):
        group, _, version = resource.rpartition("/")
        if not (version and kind and plural):
            raise ValueError(f"a kind must have a version, a name and a plural, not {(version, kind, plural)!r}")
        resource = ResourceInfo(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)
    return _kind_at(resource)


@functools.cache
def _kind_at(resource: ResourceInfo) -> type[Unstructured]:
    doc = f"Objects of {resource.api_version} {resource.kind}, as read-only mappings."
    members = {"__slots__": (), "__module__": __name__, "__doc__": doc, "__resource__": resource}
    return type(resource.kind, (Unstructured,), members)


def _unpickled(resource: ResourceInfo, data: bytes) -> KubernetesObject:
    return _lazy.from_json(_kind_at(resource), data)


def _as_mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a merge patch must be a mapping, not {describe(value)}")
    return cast("Mapping[str, object]", value)


def _merged(old: bytes | Raw, patch: Mapping[str, object]) -> bytes:
    """Apply a merge patch to JSON; members that the patch does not change keep their bytes."""
    members: dict[str, bytes | Raw] = {}
    if bytes(old).lstrip().startswith(b"{"):
        members |= _serde.map_items(old)
    for key, value in patch.items():
        if value is None:
            members.pop(key, None)
        elif isinstance(value, Mapping):
            members[key] = _merged(members.get(key, b""), cast("Mapping[str, object]", value))
        else:
            members[key] = _serde.dumps(value)
    return b"{" + b",".join([_serde.dumps(key) + b":" + bytes(value) for key, value in members.items()]) + b"}"


def _checked(cls: type[U], data: bytes) -> U:
    """Make an object from JSON after checking its kind and metadata."""
    obj = _lazy.from_json(cls, data)
    resource = resource_of(cls)
    _serde.check_object(bytes(_serde.map_items(data).get("metadata", b"{}")), f"{resource.kind}.metadata")
    if (obj.api_version, obj.kind) != (resource.api_version, resource.kind):
        found = f"{obj.api_version} {obj.kind}"
        raise DecodeError(f"the object is a {found}, not a {resource.api_version} {resource.kind}")
    metadata = obj.metadata
    for name in _lazy.plan_of(ObjectMeta).fields:
        getattr(metadata, name)
    if not metadata.name and not metadata.generate_name:
        raise DecodeError(f"the {resource.kind} has neither a name nor a generateName in its metadata")
    return obj
