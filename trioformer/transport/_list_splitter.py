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
- After a few failures the brackets of the block are counted, which is slow and always right: inside an item that is
  larger than a block, and where an item is not JSON, or has more levels than the decoder accepts.  Only that item is
  undecodable, not the list.
- The count remembers where it was, and goes on for :data:`SLICE` bytes at a time: 16 MB of brackets take seconds.
  An item that is larger than the limit is counted to its end, and only its beginning is kept.

The comma at the cut becomes the ``]`` of one block and then the ``[`` of the next, so only the items are copied.
The rest at the end of the body, with ``{"items":`` before it, is an object: the last items and the members after them.
A body of another form (no ``items`` near its beginning, or not a list) is buffered and decoded at its end, up to 4 MiB.
"""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, final

import attrs

from ..errors import DecodeError
from ..models._internal import Raw, kind_problem, level_decoder, list_items
from ._describe import excerpt
from ._frames import KEPT
from ._grammar import GRAMMAR_SLICE, MAX_LEVELS, Grammar
from ._limits import DEFAULT_LIMITS
from ._list_head import EXPECTED, MAX_CANDIDATES, TWICE, ListHead, check_names, make_head

BLOCK: Final = 128 * 1024
"""Bytes to buffer before a cut: a dozen pods, some 0.3 ms of work."""

SLICE: Final = 32 * 1024
"""Bytes of which the brackets are counted at a time: some 10 ms of work if all of them are brackets."""

_MAX_GUESSES: Final = 8
_MAX_MEMBERS: Final = 4 * 1024 * 1024
"""Bytes of everything beside the items."""
_MAX_NAME: Final = 64
_MAX_PREFIX: Final = 1024
_INVALID: Final = f"{EXPECTED} something that is not JSON, or an incomplete list"


_COMMA, _OPEN, _CLOSE = b",[]"

_OBJECT: Final = re.compile(rb"[ \t\r\n]*\{")
# The quote before the name must not be escaped: {"say \"items":[…]} has a member of another name.
_ITEMS: Final = re.compile(rb'(?<!\\)"items"[ \t\r\n]*:[ \t\r\n]*\[')
_OTHER_NAME: Final = os.urandom(8).hex()
"""A name that no server uses; for the items, where another member may have theirs."""
_PLACE: Final = b'"%s"' % _OTHER_NAME.encode()
"""Stands for the items among the other members."""
# The beginning of an item: up to the metadata if only the kind precedes it, otherwise up to the first name.
_PREFIX: Final = re.compile(
    rb'\s*\{\s*(?:(?:"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,\s*)*"metadata"\s*:\s*\{|"[^"\\]*"\s*:)?'
)
# Up to the next bracket outside a string; else up to the quote of an incomplete string, or up to the end.
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]|\Z)', re.DOTALL)
# The same, with the commas between the items.
_BRACKET_OR_COMMA: Final = re.compile(rb'(?:[^",\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([",\[\]{}]|\Z)', re.DOTALL)
# The rest of a string, up to its quote, or up to a backslash at the end.
_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+("|\\?\Z)', re.DOTALL)

_ESCAPED: Final = 2
_STRING_STATES: Final = {b'"': 0, b"": 1, b"\\": _ESCAPED}
"""Outside a string, inside, or after a backslash, by the mark at which the scan of a string ends."""

_LevelDecoder: TypeAlias = Callable[[bytes | Raw], tuple[Raw, ...]]
_items_of: Final[_LevelDecoder] = level_decoder(("items",))
_members_of: Final[_LevelDecoder] = level_decoder(("items", "metadata", "kind", "apiVersion"))
_first_of: Final[_LevelDecoder] = level_decoder((_OTHER_NAME,))


@final
@attrs.frozen
class LargeItem:
    """An item that is larger than the limit."""

    beginning: bytes = attrs.field(repr=False)
    """Its first bytes."""
    size: int
    """Its size, in bytes."""


@final
@attrs.define(eq=False)
class ListSplitter:
    """Splits the body of a list into its items while it arrives.

    It accepts every JSON list: members in any order, items of any form, any white space.
    """

    _block: int = attrs.field(default=BLOCK, kw_only=True)  # bytes to buffer before a cut
    _max_item: int = attrs.field(default=DEFAULT_LIMITS.item_bytes, kw_only=True, alias="max_item")  # in bytes
    _slice: int = attrs.field(default=SLICE, kw_only=True)  # bytes of which the brackets are counted at a time
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
    # Brackets are counted: up to where, in how many levels, where in a string, and how many bytes are left of the
    # block in which the guesses have failed.
    _is_counting: bool = attrs.field(default=False, init=False)
    _position: int = attrs.field(default=1, init=False)
    _depth: int = attrs.field(default=1, init=False)
    _in_string: int = attrs.field(default=0, init=False)
    _has_brackets: bool = attrs.field(default=False, init=False)  # an item has one value
    _left: float = attrs.field(default=0, init=False)
    # Of an item that is too large: its beginning, and how many bytes of it have been dropped.
    _beginning: bytes = attrs.field(default=b"", init=False, repr=False)
    _dropped: int = attrs.field(default=0, init=False)
    # What has been dropped and was not checked yet; the end of an item is an empty piece.
    _unchecked: deque[bytes] = attrs.field(factory=deque, init=False, repr=False)
    _grammar: Grammar = attrs.field(factory=Grammar, init=False, repr=False)
    large: list[LargeItem] = attrs.field(factory=list, init=False)
    """The items so far that are larger than the limit; the caller removes them."""
    _rest: tuple[list[bytes], ListHead] | None = attrs.field(default=None, init=False, repr=False)

    @property
    def _kept(self) -> int:
        return min(KEPT, self._max_item)

    @property
    def is_behind(self) -> bool:
        """Whether ``feed(b"")`` has more to do."""
        return bool(self._unchecked) or (self._is_counting and self._position < len(self._buffer))

    def feed(self, chunk: bytes | memoryview) -> list[bytes]:
        """Add the next bytes of the body, and return the complete items that could be cut off, each as a copy.

        Raises:
            DecodeError: The body is not JSON, or has too much beside its items.
        """
        buffer = self._buffer
        buffer += chunk
        if self._unchecked:
            self._check_dropped()
            if not chunk:
                return []
        if self._is_counting:
            return self._count()
        if len(buffer) < self._cut_at:
            return []
        if self._is_done or (not self._head and not self._find_items()):
            if len(buffer) > _MAX_MEMBERS:
                raise DecodeError(f"{EXPECTED} more than {_MAX_MEMBERS} bytes beside its items: {self._excerpt()}")
            self._cut_at = len(buffer) + self._block
            return []
        items = self._cut()
        if items is None:
            return self._begin_counting()
        self._cut_at = len(buffer) + self._block
        return items

    @property
    def begin(self) -> bytes:
        """All of the body, unless items were cut off."""
        return self._head + bytes(self._buffer)

    def end(self) -> None:
        """End the body; what is left is fed with ``feed(b"")`` as long as :attr:`is_behind`, before :meth:`finish`.

        Raises:
            DecodeError: The body is not JSON, ends early, or is not a list (it has no ``items``).
        """
        if self._is_counting:
            return
        with self._as_decode_error():
            try:
                if self._head or len(self._buffer) <= 2 * self._block:
                    self._rest = self._decode_rest()
                    return
            except (ValueError, RecursionError):
                # One of the last items may be what is not JSON.
                if self._is_done or not self._buffer or not (self._head or self._find_items()):
                    raise
            if self._head or self._locate_items():
                self._is_counting, self._left = True, math.inf
            else:
                self._rest = self._decode_rest()

    def finish(self) -> tuple[list[bytes], ListHead]:
        """End the body, and return the last items and the other members of the list.

        Raises:
            DecodeError: The body is not JSON, ends early, or is not a list (it has no ``items``).
        """
        items: list[bytes] = []
        if self._rest is None:
            self.end()
        while self.is_behind:
            items += self.feed(b"")
        with self._as_decode_error():
            rest, head = self._rest or self._decode_rest()
        return items + rest, head

    @contextmanager
    def _as_decode_error(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError) as exc:
            if isinstance(exc, DecodeError):
                raise
            raise DecodeError(f"{_INVALID}: {self._excerpt()}") from exc

    def _decode_rest(self) -> tuple[list[bytes], ListHead]:
        if not self._head:
            whole = bytes(self._buffer)
            items, *others = _members_of(whole)
            if bytes(items):
                self._find_items()
            if not self._head:
                check_names(whole)
                head = make_head(*map(bytes, others))
                if not bytes(items):
                    found = "JSON object" if kind_problem(head.kind) else head.kind
                    raise DecodeError(f"{EXPECTED} a {found} without items: {self._excerpt()}")
                return self._within_limit(list_items(items), len(whole)), head
        rest = bytes(self._buffer)
        # Under another name, they are not replaced by other items behind them.
        (items,) = _first_of(b'{"%s":' % _OTHER_NAME.encode() + rest)
        others = self._members_beside(rest[len(bytes(items)) :])
        return self._within_limit(list_items(items), len(rest)), make_head(*map(bytes, others))

    def _members_beside(self, tail: bytes) -> list[Raw]:
        """Decode the members beside the items, whose text behind them is given.

        Of two arrays, the first would be delivered where another parser reads the second; so neither is read.
        """
        text = self._head + _PLACE + tail
        items, *others = _members_of(text)
        if bytes(items) != _PLACE:
            raise DecodeError(TWICE)
        check_names(text)
        return others

    def _within_limit(self, found: list[Raw], size: int) -> list[bytes]:
        """Copy the items, without those that are too large; ``size`` is that of all."""
        items = [bytes(item) for item in found]
        if size > self._max_item:
            self.large += [LargeItem(item[: self._kept], len(item)) for item in items if len(item) > self._max_item]
            items = [item for item in items if len(item) <= self._max_item]
        return items

    def _excerpt(self) -> str:
        return excerpt(self._head + self._buffer[:400])

    def _find_items(self) -> bool:
        """Find the array ``items`` of the top level, and remove what precedes its bracket from the buffer."""
        body = bytes(self._buffer)  # a match of the bytearray itself would lock its size
        if not _OBJECT.match(body):
            raise DecodeError(f"{EXPECTED} something that is not a JSON object: {self._excerpt()}")
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
        self._is_done = self._candidates > MAX_CANDIDATES or len(body) > _MAX_MEMBERS
        return False

    def _locate_items(self) -> bool:
        """Find the items in a complete body in which they could not be found while it arrived."""
        body = bytes(self._buffer)
        items = bytes(_items_of(body)[0])
        begin = body.find(items) if items.startswith(b"[") else -1
        # The same text may be the value of another member.
        for _ in range(MAX_CANDIDATES):
            if begin < 0:
                break
            if _ends_at_top_level(body[:begin]):
                self._head, self._buffer, self._is_done = body[:begin], bytearray(body[begin:]), False
                return True
            begin = body.find(items, begin + 1)
        return False

    def _cut(self) -> list[bytes] | None:
        """Cut off as many complete items as the buffer has, if a guess is right."""
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
        return None

    def _take(self, comma: int) -> list[bytes] | None:
        """Take the items before a comma; None when it is not between two items, or one of them is not valid."""
        buffer = self._buffer
        buffer[comma] = _CLOSE
        with memoryview(buffer) as view:
            block = bytes(view[: comma + 1])
        try:
            items = self._within_limit(list_items(block), len(block))
        except (ValueError, RecursionError):
            buffer[comma] = _COMMA
            return None
        del buffer[:comma]
        buffer[0] = _OPEN
        return items

    def _begin_counting(self) -> list[bytes]:
        self._is_counting, self._left = True, len(self._buffer)
        self._position, self._depth, self._in_string, self._has_brackets = 1, 1, 0, False
        return self._count()

    def _count(self) -> list[bytes]:
        """Count the brackets of a slice, and cut off the items that end in it."""
        buffer, begin = self._buffer, self._position
        items: list[bytes] = []
        comma = 0
        with memoryview(buffer) as view:
            data = bytes(view[begin : begin + self._slice])
            for end, is_last in self._ends(data):
                item = bytes(view[comma + 1 : begin + end])
                comma = begin + end
                if self._dropped:
                    self._unchecked += [item, b""] if item else [b""]
                    self.large.append(LargeItem(self._beginning, self._dropped + len(item)))
                    self._beginning, self._dropped = b"", 0
                elif item := item.strip():
                    items.append(item)
                elif not is_last:
                    raise DecodeError(_INVALID)
                if is_last:
                    comma -= 1  # keep the bracket
                    self._is_counting, self._is_done = False, True
        if comma or self._is_done:
            del buffer[:comma]
            buffer[0] = _OPEN
            self._position -= comma
            self._left -= comma
        if self._depth > MAX_LEVELS:
            raise DecodeError(f"{EXPECTED} one with an object of more than {MAX_LEVELS} levels")
        if self._position - 1 + self._dropped > self._max_item:
            self._beginning = self._beginning or bytes(buffer[1 : 1 + self._kept])
            self._unchecked.append(bytes(buffer[1 : self._position]))
            self._dropped += self._position - 1
            del buffer[1 : self._position]
            self._position = 1
        elif self._left <= 0 and self._position <= self._block:
            self._is_counting, self._cut_at = False, self._block
        return items

    def _check_dropped(self) -> None:
        """Check the grammar of a slice of an item that is too large: where it has none, its end is not known."""
        piece = self._unchecked.popleft()
        if piece:
            is_json = self._grammar.feed(piece[:GRAMMAR_SLICE])
            if len(piece) > GRAMMAR_SLICE:
                self._unchecked.appendleft(piece[GRAMMAR_SLICE:])
        else:
            is_json, self._grammar = self._grammar.end(), Grammar()
        if not is_json:
            raise DecodeError(_INVALID)

    def _ends(self, data: bytes) -> Iterator[tuple[int, bool]]:
        """Yield the ends of items in a slice, and whether the list ends there; moves the position."""
        begin, position, end = self._position, 0, len(data)
        depth, in_string = self._depth, self._in_string
        while position < end:
            if in_string:
                found = _STRING.match(data, position + (in_string == _ESCAPED))
                assert found is not None  # the empty rest matches
                position, in_string = found.end(), _STRING_STATES[found[1]]
                continue
            mark = b""
            if depth == 1:
                found = _BRACKET_OR_COMMA.match(data, position)
                assert found is not None
                mark, position = found[1], found.end()
                if mark == b"," or mark == b"]":
                    self._has_brackets = False
                    yield position - 1, mark == b"]"
                    if mark == b"]":
                        break
                elif (mark == b"[" or mark == b"{") and not self._has_brackets:
                    self._has_brackets, depth = True, 2
                elif mark and mark != b'"':
                    raise DecodeError(_INVALID)
            else:
                for found in _BRACKET.finditer(data, position):
                    mark, position = found[1], found.end()
                    if mark == b"[" or mark == b"{":
                        depth += 1
                    elif mark == b"]" or mark == b"}":
                        depth -= 1
                        if depth == 1:
                            break
                    else:
                        break
            in_string = int(mark == b'"')
        self._position, self._depth, self._in_string = begin + position, depth, in_string


def _ends_at_top_level(head: bytes) -> bool:
    """Whether one brace completes the object, so that its last member is at the top level."""
    try:
        return bytes(_items_of(head + b"null}")[0]) == b"null"
    except (ValueError, RecursionError):
        return False
