"""The body of a list: bytes to the bytes of each item while they arrive, and the list's metadata at the end.

The problem: 10,000 pods are a body of 100 MB.  Decoded in one step, it is in memory twice and stops all other tasks for
a tenth of a second; split item by item in Python, it costs more than everything else together.

So the body is cut into blocks of complete items, and msgspec decodes each block as an array of raw slices.
Where to cut is a guess that the decoder verifies:

- A block begins where an item begins.  If ``[`` block ``]`` is valid JSON and a comma follows the block, the block is a
  sequence of complete items: a JSON value that is read from its start has only one possible end.
- The guess is the last position in the buffer where the text is that of the first item's beginning
  (``},{"metadata":{``).  If this text is inside an item, the decoder finds the brackets unbalanced, and an earlier
  position is tried.
- After a few failures the brackets of the block are counted, which is slow and always right.  So are those of a block
  with an item of more levels than the decoder accepts: only that item is undecodable, not the list.

The comma at the cut becomes the ``]`` of one block and then the ``[`` of the next, so only the items are copied.
The rest at the end of the body, with ``{"items":`` before it, is an object: the last items and the members after them.
A body of another form (no ``items`` near its beginning, or not a list) is buffered and decoded at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast, final

import attrs

from ..errors import DecodeError
from ..models._internal import Raw, decode, kind_problem, level_decoder, list_items
from ._describe import excerpt

BLOCK: Final = 128 * 1024
"""Bytes to buffer before a cut: a dozen pods, some 0.3 ms of work."""

_MAX_GUESSES: Final = 8
_MAX_CANDIDATES: Final = 16
_MAX_HEAD: Final = 1024 * 1024
_MAX_NAME: Final = 64
_MAX_PREFIX: Final = 1024
_EXPECTED: Final = "expected a list, but the server sent"

_COMMA, _OPEN, _CLOSE = b",[]"

_OBJECT: Final = re.compile(rb"[ \t\r\n]*\{")
# The quote before the name must not be escaped: {"say \"items":[…]} has a member of another name.
_ITEMS: Final = re.compile(rb'(?<!\\)"items"[ \t\r\n]*:[ \t\r\n]*\[')
# The beginning of an item: up to the metadata if only the kind precedes it, otherwise up to the first name.
_PREFIX: Final = re.compile(
    rb'\s*\{\s*(?:(?:"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,\s*)*"metadata"\s*:\s*\{|"[^"\\]*"\s*:)?'
)
# Up to the next bracket outside a string; else up to the quote of an incomplete string, or up to the end.
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]|\Z)', re.DOTALL)

_LevelDecoder: TypeAlias = Callable[[bytes | Raw], tuple[Raw, ...]]
_items_of: Final[_LevelDecoder] = level_decoder(("items",))
_members_of: Final[_LevelDecoder] = level_decoder(("items", "metadata", "kind", "apiVersion"))


@final
@attrs.frozen(kw_only=True)
class ListHead:
    """The members of a list beside its items."""

    kind: str = ""
    """Kind, such as ``PodList``."""
    api_version: str = ""
    """``group/version``."""
    resource_version: str = ""
    """The version of the collection."""
    continue_token: str = ""
    """The token for the next page; empty on the last page."""
    remaining_item_count: int | None = None
    """The number of items on further pages, if the server reports it."""


@final
@attrs.define(eq=False)
class ListSplitter:
    """Splits the body of a list into its items while it arrives.

    It accepts every JSON list: members in any order, items of any form, any white space.
    """

    _block: int = attrs.field(default=BLOCK, kw_only=True)  # bytes to buffer before a cut
    # The length of the buffer at which the next cut is tried.
    _cut_at: int = attrs.field(default=attrs.Factory(lambda it: it._block, takes_self=True), init=False)
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    # What precedes the items, once they are found; the buffer then begins with their "[".
    _head: bytes = attrs.field(default=b"", init=False, repr=False)
    _searched: int = attrs.field(default=0, init=False)
    _candidates: int = attrs.field(default=0, init=False)
    _separator: bytes | None = attrs.field(default=None, init=False, repr=False)
    # Nothing more to cut: the items have ended, or were not found.
    _is_done: bool = attrs.field(default=False, init=False)

    def feed(self, chunk: bytes | memoryview) -> list[bytes]:
        """Add the next bytes of the body, and return the complete items that could be cut off, each as a copy.

        Raises:
            DecodeError: The body is not JSON.
        """
        buffer = self._buffer
        buffer += chunk
        if len(buffer) < self._cut_at or self._is_done:
            return []
        if not self._head and not self._find_items():
            return []
        items = self._cut()
        # Inside an item that is larger than a block, wait for twice the bytes; a constant step has quadratic cost.
        self._cut_at = len(buffer) + (self._block if items else len(buffer))
        return items

    @property
    def begin(self) -> bytes:
        """All of the body, unless items were cut off."""
        return self._head + bytes(self._buffer)

    def finish(self) -> tuple[list[bytes], ListHead]:
        """End the body, and return the last items and the other members of the list.

        Raises:
            DecodeError: The body is not JSON, ends early, or is not a list (it has no ``items``).
        """
        deep: list[bytes] | None = None
        try:
            try:
                rest = bytes(self._buffer)
                late = _members_of(b'{"items":' + rest if self._head else rest)
            except RecursionError:
                if not self._head and not self._find_items():
                    raise
                rest = bytes(self._buffer)
                deep, end = _split_by_brackets(rest)
                late = _members_of(b'{"items":[]' + rest[end:])
            early = _members_of(self._head + b"null}") if self._head else late
            items, *others = (value if bytes(value) else other for value, other in zip(late, early, strict=True))
            head = _make_head(*map(bytes, others))
            if not bytes(items):
                found = "JSON object" if kind_problem(head.kind) else head.kind
                raise DecodeError(f"{_EXPECTED} a {found} without items: {self._excerpt()}")
            return deep if deep is not None else [bytes(item) for item in list_items(items)], head
        except (ValueError, RecursionError) as exc:
            if isinstance(exc, DecodeError):
                raise
            raise DecodeError(f"{_EXPECTED} something else, or an incomplete list ({exc}): {self._excerpt()}") from exc

    def _excerpt(self) -> str:
        return excerpt(self._head + self._buffer[:400])

    def _find_items(self) -> bool:
        """Find the array ``items`` of the top level, and remove what precedes its bracket from the buffer."""
        body = bytes(self._buffer)  # a match of the bytearray itself would lock its size
        if not _OBJECT.match(body):
            raise DecodeError(f"{_EXPECTED} something that is not a JSON object: {self._excerpt()}")
        for found in _ITEMS.finditer(body, self._searched):
            head = body[: found.end() - 1]
            if _ends_at_top_level(head):
                self._head = head
                del self._buffer[: len(head)]
                return True
            self._searched = found.end()
            self._candidates += 1
        self._searched = max(self._searched, len(body) - _MAX_NAME)
        # Not a list, or an unusual one: decode all of it at the end.
        self._is_done = self._candidates > _MAX_CANDIDATES or len(body) > _MAX_HEAD
        return False

    def _cut(self) -> list[bytes]:
        """Cut off as many complete items as the buffer has."""
        buffer = self._buffer
        if self._separator is None:
            found = _PREFIX.match(bytes(buffer[1:_MAX_PREFIX]))
            self._separator = b"}," + found[0] if found else b""
        if separator := self._separator:
            end = len(buffer)
            for _ in range(_MAX_GUESSES):
                position = buffer.rfind(separator, 0, end)
                if position < 0:
                    break
                items = self._take(position + 1)
                if items is not None:
                    return items
                end = position + len(separator) - 1
        comma, self._is_done = _last_comma(bytes(buffer))
        if not comma:
            return []
        items = self._take(comma)
        if items is None:
            raise DecodeError(f"{_EXPECTED} something that is not JSON: {self._excerpt()}")
        return items

    def _take(self, comma: int) -> list[bytes] | None:
        """Take the items before a comma; None when it is not between two items."""
        buffer = self._buffer
        buffer[comma] = _CLOSE
        with memoryview(buffer) as view:
            block = bytes(view[: comma + 1])
        items: list[bytes] | None = None
        try:
            items = [bytes(item) for item in list_items(block)]
        except RecursionError:
            deep, end = _split_by_brackets(block)
            items = deep if end == len(block) else None
        except ValueError:
            pass
        if items is None:
            buffer[comma] = _COMMA
            return None
        del buffer[:comma]
        buffer[0] = _OPEN
        return items


def _ends_at_top_level(head: bytes) -> bool:
    """Whether one brace completes the object, so that its last member is at the top level."""
    try:
        return bytes(_items_of(head + b"null}")[0]) == b"null"
    except (ValueError, RecursionError):
        return False


def _last_comma(body: bytes) -> tuple[int, bool]:
    """Count brackets: the position of the last comma before an item with brackets, or 0, and if the array ends."""
    depth = comma = 0
    for found in _BRACKET.finditer(body):
        mark = found[1]
        if mark in (b'"', b""):
            break
        if mark in b"[{":
            if depth == 1:
                comma = max(body.rfind(b",", comma, found.start(1)), comma)
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return comma, True
    return comma, False


def _split_by_brackets(body: bytes) -> tuple[list[bytes], int]:
    """Split an array into its items by their brackets; return them and the end of the array, 0 if it does not end."""
    items: list[bytes] = []
    closers = bytearray()
    begin = 1
    for found in _BRACKET.finditer(body):
        mark, end = found[1], found.end()
        if mark in (b'"', b""):
            break
        if mark in b"[{":
            if len(closers) == 1:
                begin = found.start(1)
            closers += b"]" if mark == b"[" else b"}"
        elif not closers or closers[-1:] != mark:
            break
        else:
            closers.pop()
            if len(closers) == 1:
                items.append(body[begin:end])
            elif not closers:
                return items, end
    return items, 0


def _make_head(raw_metadata: bytes, raw_kind: bytes, raw_api_version: bytes) -> ListHead:
    metadata: object = decode(raw_metadata or b"null")
    if metadata is None:
        metadata = {}
    elif not isinstance(metadata, dict):
        raise DecodeError(f"{_EXPECTED} metadata that is not an object: {excerpt(raw_metadata)}")
    members = cast("dict[str, object]", metadata)
    remaining = members.get("remainingItemCount")
    return ListHead(
        kind=_text(decode(raw_kind or b"null")),
        api_version=_text(decode(raw_api_version or b"null")),
        resource_version=_text(members.get("resourceVersion")),
        continue_token=_text(members.get("continue")),
        remaining_item_count=remaining if isinstance(remaining, int) else None,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
