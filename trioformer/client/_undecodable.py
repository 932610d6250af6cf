"""What a server sent and nobody can read, and how it is told to whoever wants the rest all the same."""

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
    """An object in a list, or a frame of a watch, that does not decode.

    That is: no JSON, metadata missing or of a wrong type, no name, an event without a known type, an event whose object
    is of another kind than was asked for.
    """

    kind: str
    """The kind that was asked for, such as ``Pod``."""
    key: str
    """``namespace/name`` if it can be found, otherwise empty."""
    raw: bytes = attrs.field(repr=lambda raw: f"<{len(raw)} bytes>")
    """The object's bytes; the whole frame's when no object can be found in it."""
    event_type: str
    """Such as ``MODIFIED``, in the server's spelling; empty for an item of a list, or when it cannot be found."""
    error: DecodeError
    """What is wrong."""


UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""Is told of what does not decode; what it raises ends the list or the watch."""

_event: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))
_TYPE: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([A-Z]+)"')


def undecodable_item(kind: str, item: bytes, error: DecodeError) -> Undecodable:
    """Describe an item of a list."""
    return Undecodable(kind, key_in(item), item, "", error)


def undecodable_frame(kind: str, frame: bytes, error: DecodeError) -> Undecodable:
    """Describe a frame of a watch, by its object where it has one."""
    try:
        raw_type, raw_object = map(bytes, _event(frame))
    except (ValueError, RecursionError):
        found = _TYPE.match(frame)
        return Undecodable(kind, "", frame, found[1].decode() if found else "", error)
    data = raw_object if raw_object.startswith(b"{") else frame
    return Undecodable(kind, key_in(raw_object), data, _text(_decoded(raw_type)), error)


def key_in(data: bytes) -> str:
    """Find an object's key whatever else is wrong with it; empty where there is none.  Never raises."""
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
