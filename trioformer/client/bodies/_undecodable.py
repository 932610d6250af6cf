"""Objects and events that cannot be decoded, for callers that handle the others.

A cache needs their keys: it marks the object by its key, and handles all other objects.
So the bytes are scanned once more, without recursion and only for brackets and strings.  This finds the key in objects
of any depth, and with members of wrong types.
Finding metadata behind a million brackets takes half a second, so the scan is done in slices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, final

import attrs

from ..._text import quoted
from ..._util import Slices, remove_frames
from ...errors import DecodeError
from ...models._internal import decode


@final
@attrs.frozen
class Undecodable:
    """An object in a list, or a frame of a watch, that cannot be decoded.

    It is not JSON, its metadata is missing or has a wrong type, it lacks a name, the type of the event is unknown, or
    the object is not of the requested kind.
    """

    kind: str
    """The requested kind, such as ``Pod``."""
    key: str = attrs.field(repr=quoted)
    """``namespace/name`` if it can be found, otherwise empty."""
    raw: bytes = attrs.field(repr=lambda raw: f"<{len(raw)} bytes>")
    """The bytes of the object; the whole frame if no object can be found in it."""
    event_type: str = attrs.field(repr=quoted)
    """The server's event type, such as ``MODIFIED``; empty for an item of a list, or if it cannot be found."""
    error: DecodeError
    """The reason; without tracebacks, which would keep the whole list in memory."""
    resource_version: str = attrs.field(default="", repr=quoted)
    """The object's version if it can be found, otherwise empty."""

    def __attrs_post_init__(self) -> None:
        remove_frames(self.error)


UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""Called with each object that cannot be decoded; an exception that it raises ends the list or the watch."""

_FRAME: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]*)"(?:\s*,\s*"object"\s*:\s*(\{.*\})\s*\}\s*\Z)?', re.DOTALL)
_NAME: Final = re.compile(rb'\s*[{,]\s*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
_SCALAR: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],:"]++', re.DOTALL)
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_TOKENS: Final = 256
"""The number of brackets between checks of the slice's time."""


async def undecodable_item(kind: str, item: bytes, error: DecodeError, slices: Slices) -> Undecodable:
    """Describe an item of a list; execute a checkpoint when a slice is over."""
    key, version = await _identity(item, slices)
    return Undecodable(kind, key, item, "", error, version)


async def undecodable_frame(kind: str, frame: bytes, error: DecodeError) -> Undecodable:
    """Describe a frame of a watch, with the bytes of its object if it has one; execute a checkpoint."""
    slices = Slices()
    await slices.checkpoint()
    match = _FRAME.match(frame)
    event_type, data = (match[1].decode(errors="replace"), match[2] or b"") if match else ("", b"")
    key, version = await _identity(data, slices)
    return Undecodable(kind, key, data or frame, event_type, error, version)


async def _identity(data: bytes, slices: Slices) -> tuple[str, str]:
    """Return the key and the version of an object, each empty if it cannot be found."""
    found = await _members(data, ("metadata",), slices)
    metadata = await _members(found.get("metadata", b""), ("name", "namespace", "resourceVersion"), slices)
    name, namespace = _text(metadata.get("name", b"")), metadata.get("namespace", b"null")
    version = _text(metadata.get("resourceVersion", b""))
    if not name or (namespace != b"null" and not namespace.startswith(b'"')):
        return "", version
    return f"{_text(namespace)}/{name}".lstrip("/"), version


async def _members(data: bytes, wanted: Collection[str], slices: Slices) -> Mapping[str, bytes]:
    """Return the wanted members of a JSON object; none if it is cut off before the last of them."""
    found: dict[str, bytes] = {}
    end = 0
    while len(found) < len(wanted) and (match := _NAME.match(data, end)):
        if slices.is_over():
            await slices.checkpoint()
        begin = match.end()
        scalar = _SCALAR.match(data, begin)
        end = scalar.end() if scalar else await _end_of_brackets(data, begin, slices)
        if not end:
            return {}
        if (name := _text(match[1])) in wanted:
            found[name] = data[begin:end]
    return found


async def _end_of_brackets(data: bytes, end: int, slices: Slices) -> int:
    """Return the end of the object or array that begins here; 0 if it is not found."""
    depth = number = 0
    # Not finditer(): without a match, it would try each later position, each time up to the end.
    while match := _BRACKET.match(data, end):
        number += 1
        if number % _TOKENS == 0 and slices.is_over():
            await slices.checkpoint()
        end = match.end()
        depth += 1 if match[1] in b"{[" else -1
        if depth <= 0:
            return end
    return 0


def _text(raw: bytes) -> str:
    if not raw.startswith(b'"'):
        return ""
    try:
        value: object = decode(raw)
    except DecodeError:
        return ""
    return value if isinstance(value, str) else ""
