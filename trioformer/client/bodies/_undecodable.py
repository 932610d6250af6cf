"""Objects and events that cannot be decoded. The caller skips them and continues with the remaining ones.

A cache marks an undecodable object under its key. To find this key, the bytes of the object are scanned a second time.
This scan is not recursive and looks only for brackets and strings. So it also finds the key in an object that is nested
too deeply or has members of wrong types.

If a million brackets come before the metadata, the scan takes half a second. So the scan is done in slices, with
checkpoints between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, final

import attrs

from ..._text import quoted
from ..._util import Slices, remove_frames
from ...errors import DecodeError
from ...models._internal import decode, find_key, parts_of


@final
@attrs.frozen
class Undecodable:
    """A list item or watch frame that cannot be decoded.

    There are several possible reasons:

    - the data is not JSON
    - the metadata is missing, has a wrong type, or does not contain a name
    - the type of the event is unknown
    - the object is not of the requested kind
    """

    kind: str
    """The name of the requested kind, such as ``Pod``."""
    key: str = attrs.field(repr=quoted)
    """The object's key, ``namespace/name`` or ``name``; empty if the key cannot be found."""
    raw: bytes = attrs.field(repr=lambda raw: f"<{len(raw)} bytes>")
    """The bytes of the object, or the whole frame if no object can be found in it."""
    event_type: str = attrs.field(repr=quoted)
    """The event type that the server sent, such as ``MODIFIED``; empty for a list's item, or if it cannot be found."""
    error: DecodeError
    """The reason why the object cannot be decoded.

    The error has no traceback, because a traceback would keep the whole list in memory.
    """
    resource_version: str = attrs.field(default="", repr=quoted)
    """The object's resourceVersion; empty if it cannot be found."""

    def __attrs_post_init__(self) -> None:
        remove_frames(self.error)


UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""A function that is called with each undecodable object. An exception in the function ends the list or the watch."""

_FRAME: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]*)"(?:\s*,\s*"object"\s*:\s*(\{.*\})\s*\}\s*\Z)?', re.DOTALL)
_NAME: Final = re.compile(rb'\s*[{,]\s*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
_SCALAR: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],:"]++', re.DOTALL)
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_TOKENS: Final = 256
"""The number of brackets after which the scan checks whether its slice is over."""


async def undecodable_item(
    kind: str, item: bytes, error: DecodeError, slices: Slices, *, is_message: bool = False
) -> Undecodable:
    """Describe an undecodable item of a list, with a checkpoint after each slice of the scan."""
    key, version = find_key(item) if is_message else await _identity(item, slices)
    return Undecodable(kind, key, item, "", error, version)


async def undecodable_frame(kind: str, frame: bytes, error: DecodeError, *, is_message: bool = False) -> Undecodable:
    """Describe an undecodable frame of a watch, with at least one checkpoint.

    If the frame contains an object, the description contains only the bytes of the object.
    """
    slices = Slices()
    await slices.checkpoint()
    if is_message:
        event_type, data = parts_of(frame)
        key, version = find_key(data)
        return Undecodable(kind, key, data or frame, event_type, error, version)
    match = _FRAME.match(frame)
    event_type, data = (match[1].decode(errors="replace"), match[2] or b"") if match else ("", b"")
    key, version = await _identity(data, slices)
    return Undecodable(kind, key, data or frame, event_type, error, version)


async def _identity(data: bytes, slices: Slices) -> tuple[str, str]:
    """Return the key and the resourceVersion of an object, or an empty string for a value that cannot be found."""
    found = await _members(data, ("metadata",), slices)
    metadata = await _members(found.get("metadata", b""), ("name", "namespace", "resourceVersion"), slices)
    name, namespace = _text(metadata.get("name", b"")), metadata.get("namespace", b"null")
    version = _text(metadata.get("resourceVersion", b""))
    if not name or (namespace != b"null" and not namespace.startswith(b'"')):
        return "", version
    return f"{_text(namespace)}/{name}".lstrip("/"), version


async def _members(data: bytes, wanted: Collection[str], slices: Slices) -> Mapping[str, bytes]:
    """Return the wanted members of a JSON object.

    The result is empty if the data ends before all wanted members are found.
    """
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
    """Return the end position of the object or array that begins at ``end``, or 0 if the data is incomplete."""
    depth = number = 0
    # finditer() is not used: without a match, it would search from each later position to the end.
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
