"""List bodies: bytes as they arrive → the items' own bytes, and the list's metadata at the end.

The problem: 10,000 pods are a body of 100 MB.  Read whole and decoded at once it stands in memory twice and stops all
other tasks for a tenth of a second; split item by item in Python it costs more than everything else together.

So the body is cut into blocks of whole items, and each block is decoded as an array of raw slices, at C speed.
Where to cut is guessed, and the decoder judges the guess:

- A block begins where an item begins.  If ``[`` block ``]`` is valid JSON and a comma follows the block, then the
  block is a sequence of whole items: reading JSON from the left leaves no choice where a value ends.
- The guess is the last place in the buffer that looks as the first item looked at its beginning
  (``},{"metadata":{``).  Inside of an item, which may hold such a place too, the decoder finds the brackets unbalanced,
  and an earlier place is tried.
- When that fails a few times, the brackets of the block are counted, which needs no luck, only time.

The comma under the knife becomes the ``]`` of one block and then the ``[`` of the next one, so nothing is copied but
the items.
What is left when the body ends, with ``{"items":`` before it, is an object again: the last items and whatever members
follow them.
A body of another shape (no ``items`` near its beginning, not a list at all) is kept whole and judged at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast, final

import attrs

from ..errors import DecodeError
from ..models._internal import Raw, decode, level_decoder, list_items
from ._frames import excerpt

BLOCK: Final = 128 * 1024
"""Bytes gathered before a cut is tried: a dozen pods, some 0.3 ms of work."""

_GUESSES: Final = 8
_MOST_CANDIDATES: Final = 16
_LONGEST_HEAD: Final = 1024 * 1024
_LONGEST_NAME: Final = 64
_LONGEST_OPENING: Final = 1024
_EXPECTED: Final = "a list was expected, but the server answered with"

_COMMA, _OPEN, _CLOSE = b",[]"

_OBJECT: Final = re.compile(rb"[ \t\r\n]*\{")
# The quote before the name must not be an escaped one: {"say \"items":[…]} has a member of another name.
_ITEMS: Final = re.compile(rb'(?<!\\)"items"[ \t\r\n]*:[ \t\r\n]*\[')
# How an item begins: as far as the metadata where only the kind precedes it, otherwise the first name.
_OPENING: Final = re.compile(
    rb'\s*\{\s*(?:(?:"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,\s*)*"metadata"\s*:\s*\{|"[^"\\]*"\s*:)?'
)
# Up to the next bracket, strings skipped; or to the quote of a string that goes on after the end, or to the end.
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]|\Z)', re.DOTALL)

_LevelDecoder: TypeAlias = Callable[[bytes | Raw], tuple[Raw, ...]]
_items_of: Final[_LevelDecoder] = level_decoder(("items",))
_members_of: Final[_LevelDecoder] = level_decoder(("items", "metadata", "kind", "apiVersion"))


@final
@attrs.frozen(kw_only=True)
class ListHead:
    """What a list says of itself."""

    kind: str = ""
    """Kind, such as ``PodList``."""
    api_version: str = ""
    """``group/version``."""
    resource_version: str = ""
    """The version of the whole collection that the list shows."""
    continue_token: str = ""
    """What to ask the next page with; empty when there is none."""
    remaining_item_count: int | None = None
    """How many items are still to come, if the server says so."""


@final
class ListSplitter:
    """Split a list's body into its items while it arrives.

    Any JSON list will do: members in any order, items of any shape, any white space.

    Args:
        block: How many bytes to gather before a cut is tried.
    """

    __slots__ = ("_block", "_buffer", "_candidates", "_gave_up", "_head", "_searched", "_separator", "_want")

    def __init__(self, *, block: int = BLOCK) -> None:
        self._block = block
        self._want = block
        self._buffer = bytearray()
        self._head = b""  # what stands before the items, once they are found; then the buffer begins with their "["
        self._searched = 0
        self._candidates = 0
        self._separator: bytes | None = None
        self._gave_up = False  # nothing more to cut: the items have ended, or will not be found

    def feed(self, chunk: bytes | memoryview) -> list[bytes]:
        """Take the next bytes of the body and return the items that could be cut off, each a copy of its own.

        Raises:
            DecodeError: The body is not JSON.
        """
        buffer = self._buffer
        buffer += chunk
        if len(buffer) < self._want or self._gave_up:
            return []
        if not self._head and not self._find_items():
            return []
        items = self._cut()
        # An item larger than the block is looked at again when twice as much has come; sooner would cost its square.
        self._want = len(buffer) + (self._block if items else len(buffer))
        return items

    def finish(self) -> tuple[list[bytes], ListHead]:
        """Take the end of the body and return the last items and what the list says of itself.

        Raises:
            DecodeError: The body is not JSON, breaks off, or is no list (it has no ``items``).
        """
        rest = bytes(self._buffer)
        try:
            late = _members_of(b'{"items":' + rest if self._head else rest)
            early = _members_of(self._head + b"null}") if self._head else late
            items, *others = (mine if bytes(mine) else other for mine, other in zip(late, early, strict=True))
            head = _make_head(*map(bytes, others))
            if not bytes(items):
                raise DecodeError(f"{_EXPECTED} a {head.kind or 'JSON object'} without items: {self._excerpt()}")
            return [bytes(item) for item in list_items(items)], head
        except (ValueError, RecursionError) as exc:
            if isinstance(exc, DecodeError):
                raise
            raise DecodeError(f"{_EXPECTED} something else or broke off ({exc}): {self._excerpt()}") from exc

    def _excerpt(self) -> str:
        return excerpt(self._head + self._buffer[:400])

    def _find_items(self) -> bool:
        """Find the array ``items`` of the top level and let the buffer begin with its bracket."""
        body = bytes(self._buffer)  # because a match keeps a bytearray from being shortened
        if not _OBJECT.match(body):
            raise DecodeError(f"{_EXPECTED} no JSON object: {self._excerpt()}")
        for found in _ITEMS.finditer(body, self._searched):
            head = body[: found.end() - 1]
            if _ends_at_top_level(head):
                self._head = head
                del self._buffer[: len(head)]
                return True
            self._searched = found.end()
            self._candidates += 1
        self._searched = max(self._searched, len(body) - _LONGEST_NAME)
        # Not a list, or an odd one: what is left to do can be done once, at the end.
        self._gave_up = self._candidates > _MOST_CANDIDATES or len(body) > _LONGEST_HEAD
        return False

    def _cut(self) -> list[bytes]:
        """Cut off as many whole items as the buffer holds."""
        buffer = self._buffer
        if self._separator is None:
            found = _OPENING.match(bytes(buffer[1:_LONGEST_OPENING]))
            self._separator = b"}," + found[0] if found else b""
        if separator := self._separator:
            end = len(buffer)
            for _ in range(_GUESSES):
                place = buffer.rfind(separator, 0, end)
                if place < 0:
                    break
                items = self._take(place + 1)
                if items is not None:
                    return items
                end = place + len(separator) - 1
        comma, self._gave_up = _last_comma(bytes(buffer))
        if not comma:
            return []
        items = self._take(comma)
        if items is None:
            raise DecodeError(f"{_EXPECTED} no JSON: {self._excerpt()}")
        return items

    def _take(self, comma: int) -> list[bytes] | None:
        """Take the items before a comma; None when it does not stand between two items."""
        buffer = self._buffer
        buffer[comma] = _CLOSE
        with memoryview(buffer) as view:
            block = bytes(view[: comma + 1])
        try:
            items = [bytes(item) for item in list_items(block)]
        except (ValueError, RecursionError):
            buffer[comma] = _COMMA
            return None
        del buffer[:comma]
        buffer[0] = _OPEN
        return items


def _ends_at_top_level(head: bytes) -> bool:
    """Whether one brace completes the object: then its last member is one of the top level."""
    try:
        return bytes(_items_of(head + b"null}")[0]) == b"null"
    except (ValueError, RecursionError):
        return False


def _last_comma(body: bytes) -> tuple[int, bool]:
    """Count brackets: the place of the last comma before an item with brackets, or 0; whether the array ends here."""
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


def _make_head(raw_metadata: bytes, raw_kind: bytes, raw_api_version: bytes) -> ListHead:
    metadata: object = decode(raw_metadata or b"null")
    if metadata is None:
        metadata = {}
    elif not isinstance(metadata, dict):
        raise DecodeError(f"{_EXPECTED} metadata that is no object: {excerpt(raw_metadata)}")
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
