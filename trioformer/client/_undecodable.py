"""Objects and events that cannot be decoded, for callers that handle the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast, final

import attrs

from ..errors import DecodeError
from ..models._internal import Raw, decode, level_decoder


@final
@attrs.frozen
class Undecodable:
    """An object in a list, or a frame of a watch, that cannot be decoded.

    It is not JSON, its metadata is missing or of a wrong type, it has no name, the type of the event is unknown, or the
    object is of another kind than the requested one.
    """

    kind: str
    """The requested kind, such as ``Pod``."""
    key: str
    """``namespace/name`` if it can be found, otherwise empty."""
    raw: bytes = attrs.field(repr=lambda raw: f"<{len(raw)} bytes>")
    """The bytes of the object, or of the frame if no object can be found in it."""
    event_type: str
    """Such as ``MODIFIED``, as the server spells it; empty for an item of a list, or if it cannot be found."""
    error: DecodeError
    """Why it cannot be decoded."""


UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""Called with each object that cannot be decoded; an exception that it raises ends the list or the watch."""

_event: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))
_TYPE: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([A-Z]+)"')


def undecodable_item(kind: str, item: bytes, error: DecodeError) -> Undecodable:
    """Describe an item of a list."""
    return Undecodable(kind, key_in(item), item, "", error)


def undecodable_frame(kind: str, frame: bytes, error: DecodeError) -> Undecodable:
    """Describe a frame of a watch, with the bytes of its object if it has one."""
    try:
        raw_type, raw_object = map(bytes, _event(frame))
    except (ValueError, RecursionError):
        found = _TYPE.match(frame)
        return Undecodable(kind, "", frame, found[1].decode() if found else "", error)
    data = raw_object if raw_object.startswith(b"{") else frame
    return Undecodable(kind, key_in(raw_object), data, _text(_decoded(raw_type)), error)


def key_in(data: bytes) -> str:
    """Return the key of an object that cannot be decoded, empty if it cannot be found.  Never raises."""
    metadata = _members(_members(_decoded(data)).get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name or not (namespace is None or isinstance(namespace, str)):
        return ""
    return f"{namespace}/{name}" if namespace else name


def _decoded(data: bytes) -> object:
    try:
        found: object = decode(data)
    except DecodeError:
        return None
    return found


def _members(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
