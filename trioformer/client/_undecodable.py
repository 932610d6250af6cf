"""Objects and events that cannot be decoded, for callers that handle the others.

Their key must be found all the same: a cache marks the object by its key, and handles all other objects.
So the bytes are scanned once more, without recursion and without a check of what is not needed: the key is found in
objects of any depth, with members of wrong types, and up to the place where what was kept of a large one ends.
What has not the grammar of JSON has no key: nothing says where it ends, and the event of another object may be in it.
Metadata behind a million brackets are found after half a second, so the scan is done in slices.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, final

import attrs

from .._text import quoted
from .._util import Slices, remove_frames
from ..errors import DecodeError, LimitExceededError
from ..models._internal import Raw, decode, is_path_segment, level_decoder
from ..transport._internal import GRAMMAR_SLICE, Grammar, LargeFrame


@final
@attrs.frozen
class Undecodable:
    """An object in a list, or a frame of a watch, that cannot be decoded.

    It is not JSON, its metadata is missing or of a wrong type, it has no valid name, the type of the event is unknown,
    or the object is of another kind or namespace than the requested one.
    """

    kind: str
    """The requested kind, such as ``Pod``."""
    key: str = attrs.field(repr=quoted)
    """``namespace/name`` if it can be found, otherwise empty."""
    raw: bytes = attrs.field(repr=lambda raw: f"<{len(raw)} bytes>")
    """The bytes of the object, or of the frame if none can be found in it; only the first of what is too large."""
    event_type: str = attrs.field(repr=quoted)
    """Such as ``MODIFIED``, as the server spells it; empty for an item of a list, or if it cannot be found."""
    error: DecodeError
    """Why it cannot be decoded; without tracebacks, which would keep the whole list in memory."""
    resource_version: str = attrs.field(default="", repr=quoted)
    """Its version if it can be found, otherwise empty."""

    def __attrs_post_init__(self) -> None:
        remove_frames(self.error)


UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""Called with each object that cannot be decoded; an exception that it raises ends the list or the watch."""

_event: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))

_FRAME: Final = re.compile(rb'\{"type":"[A-Z]+","object":(\{.*\})\}', re.DOTALL)
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.DOTALL)
# Inside levels in which nothing is wanted, only brackets are read, which is five times as fast.
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_CLOSERS: Final[Mapping[bytes, bytes]] = {b"{": b"}", b"[": b"]"}
_TOKENS: Final = 256
"""After how many tokens the time of a slice is looked at."""
_REPORTED: Final = 64 * 1024
"""Bytes that are reported of what is too large: a list may have hundreds of them, and all are kept to its end."""
_MAX_DEPTH: Final = 3
"""How many levels the wanted members have at most: those of ``object.metadata.name`` in a frame."""


async def is_grammatical(data: bytes, slices: Slices) -> bool:
    """Whether bytes are JSON but for what they mean; a checkpoint when a slice is over."""
    grammar = Grammar()
    for begin in range(0, len(data), GRAMMAR_SLICE):
        if not grammar.feed(data[begin : begin + GRAMMAR_SLICE]):
            return False
        if begin or slices.is_over():
            await slices.checkpoint()
    return grammar.end()


async def undecodable_item(kind: str, item: bytes, error: DecodeError, slices: Slices) -> Undecodable:
    """Describe an item of a list; a checkpoint when a slice is over."""
    key, version = _identity(await find_members(item, slices))
    return Undecodable(kind, key, item, "", error, version)


def too_large(exceeded: LimitExceededError) -> DecodeError:
    """Make the error of an object that is reported because it is too large."""
    error = DecodeError(str(exceeded))
    error.__cause__ = exceeded
    return error


async def too_large_item(kind: str, beginning: bytes, error: DecodeError, slices: Slices) -> Undecodable:
    """Describe an item of a list that is too large, by what has been kept of it."""
    found = await undecodable_item(kind, beginning, error, slices)
    return attrs.evolve(found, raw=beginning[:_REPORTED])


async def undecodable_frame(kind: str, frame: bytes, error: DecodeError) -> Undecodable:
    """Describe a frame of a watch, with the bytes of its object if it has one; a checkpoint."""
    slices = Slices()
    await slices.checkpoint()
    try:
        raw_object = bytes(_event(frame)[1])
    except RecursionError:
        match = _FRAME.fullmatch(frame)
        raw_object = match[1] if match else b""
    except ValueError:
        raw_object = b""
    found = await find_members(frame, slices)
    # In a line that is not JSON, the event of another object may follow; of one that is too large, the end is missing.
    is_known = isinstance(frame, LargeFrame) or await is_grammatical(frame, slices)
    key, version = _identity({path[1:]: raw for path, raw in found.items() if path[0] == "object"})
    data = raw_object if raw_object.startswith(b"{") else frame
    if isinstance(frame, LargeFrame):
        data = data[:_REPORTED]
    if not is_known:
        key = version = ""
    return Undecodable(kind, key, data, _text(found.get(("type",), b"")), error, version)


def _identity(members: Mapping[tuple[str, ...], bytes]) -> tuple[str, str]:
    """Return the key and the version in an object's members, each empty if it cannot be found.  Never raises."""
    name, namespace = (members.get(("metadata", member), b"null") for member in ("name", "namespace"))
    # In metadata that are cut off, a namespace may have followed.
    if not _text(name) or (members.get(("metadata",)) != b"{}" and not _text(namespace)):
        return "", ""
    version = _text(members.get(("metadata", "resourceVersion"), b""))
    # With a slash in it, the name would make the key of another object.
    if not is_path_segment(_text(name)) or "/" in _text(namespace):
        return "", version
    if _text(namespace):
        return f"{_text(namespace)}/{_text(name)}", version
    return (_text(name), version) if namespace in (b"null", b'""') else ("", "")


async def find_members(data: bytes, slices: Slices) -> Mapping[tuple[str, ...], bytes]:
    """Find the type and the metadata of an object or a frame by their paths, as far as the JSON is complete.

    Scalars are returned raw, objects and arrays as their bracket, and complete metadata, which end the scan, as ``{}``.
    """
    found: dict[tuple[str, ...], bytes] = {}
    closers = bytearray()  # of the open objects and arrays
    path: list[str | None] = []  # the current member of each open object, None in an array; at most _MAX_DEPTH
    expects_key = False
    end = 0
    for number in itertools.count(1):
        if number % _TOKENS == 0 and slices.is_over():
            await slices.checkpoint()
        depth = len(closers)
        if depth > _MAX_DEPTH:
            end = await _end_of_deep(data, end, slices)
            if not end:
                break
            del closers[-1]
            expects_key = False
            continue
        match = _TOKEN.search(data, end)
        if match is None:
            break
        token, end = match[match.lastindex or 0], match.end()
        if token in _CLOSERS:
            if 0 < depth <= _MAX_DEPTH and None not in path:
                found[tuple(map(str, path))] = token
            closers += _CLOSERS[token]
            if depth < _MAX_DEPTH:
                path.append(None)
            expects_key = token == b"{"
        elif token in (b"}", b"]"):
            if not closers.endswith(token):
                break
            del closers[-1]
            if depth <= _MAX_DEPTH:
                path.pop()  # what is left is the path of the value that ends here
                if path in (["metadata"], ["object", "metadata"]):
                    found[tuple(map(str, path))] = b"{}"
                    break
                if path:
                    path[-1] = None  # what follows the value is not its
            expects_key = False
        elif token == b",":
            expects_key = closers.endswith(b"}")
        elif token == b'"':
            break  # a string that does not end
        elif token == b":":
            continue
        elif expects_key:
            path[-1] = _text(token)
            expects_key = False
        elif None not in path and path:
            found[tuple(map(str, path))] = token
            path[-1] = None
    return found


async def _end_of_deep(data: bytes, begin: int, slices: Slices) -> int:
    """Return the end of an object or array in which nothing is wanted; 0 if it is not found."""
    depth, end = 1, begin
    for number in itertools.count(1):
        if number % _TOKENS == 0 and slices.is_over():
            await slices.checkpoint()
        # Not finditer(): where nothing matches, it tries each later position, each of them up to the end.
        match = _BRACKET.match(data, end)
        if match is None:
            break  # a string that does not end
        end = match.end()
        depth += 1 if match[1] in _CLOSERS else -1
        if not depth:
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
