"""Splitting a JSON list into the bytes of its items while the list arrives.

Decoding a list of 10,000 pods (100 MB) in one step would keep the pods in memory twice, and would block other tasks for
a tenth of a second. Splitting the list item by item in Python would take longer than all other steps together. So the
body is cut into blocks of complete items, and msgspec decodes each block as an array of raw slices.

The splitter guesses where to cut. It searches the buffer backwards for ``},`` followed by the beginning of the first
item (``},{"metadata":{``), and tries each occurrence. The decoder verifies each guess: if ``[`` block ``]`` is valid
JSON, the block is a sequence of complete items.

After several wrong guesses, the splitter counts brackets, which is slow but always correct. This happens if the server
writes white space, or if an item is larger than a block, is nested too deeply or is not JSON. In the last two cases,
only the item is undecodable, and the rest of the list is decoded.

=========  ========================  ================================================================================
state      buffer                    next state
=========  ========================  ================================================================================
SEARCHING  beginning of the body     CUTTING at ``"items":[``, but ENDING if that is not at the top level
CUTTING    ``[`` and items           COUNTING if no guess is right or the last items are not JSON
COUNTING   ``[``, items; a position  IN_STRING if a slice ends in a string, ENDING at the end of the items, CUTTING if
                                     less than a block is left
IN_STRING  ``[``, items; a position  COUNTING after the string
ENDING     end of the list           none; also for a body that is not a list
=========  ========================  ================================================================================

The comma at a cut becomes the ``[`` of the next block. So the text before the items and the remaining text always form
a valid list.
"""

from __future__ import annotations

import enum
import re
from contextlib import suppress
from typing import Final, cast, final

import attrs

from ..._suggestions import with_article
from ...errors import DecodeError
from ...models._internal import decode, kind_problem, level_decoder, list_items

BLOCK: Final = 128 * 1024
"""The number of bytes that are buffered before a cut: about a dozen pods, or about 0.3 ms of work."""
SLICE: Final = 32 * 1024
"""The number of bytes in which brackets are counted at a time: at most about 10 ms of work."""
_MAX_GUESSES: Final = 8
_MAX_OTHERS: Final = 4 * 1024 * 1024
"""The maximum size in bytes of a list without its items."""
_EXPECTED: Final = "expected a list, but the server sent"

# The quote before the name must not be escaped: {"say \"items":[…]} has a member with another name.
_ITEMS: Final = re.compile(rb'(?<!\\)"items"\s*:\s*\[')
_BEGINNING: Final = re.compile(rb'\[(\s*\{\s*(?:"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,\s*)*"metadata"\s*:\s*\{)')
# These match up to the next bracket or comma outside a string, the quote of an incomplete string, or the data's end.
_IN_ITEM: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]|\Z)', re.DOTALL)
_BETWEEN: Final = re.compile(rb'(?:[^",\[\]{]++|"(?:[^"\\]++|\\.)*+")*+([",\[\]{]|\Z)', re.DOTALL)
# This matches the rest of a string with its closing quote.  Without a closing quote, it matches all of the data except
# a backslash at the end, which may escape the next byte.
_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)

_items_of: Final = level_decoder(("items",))
_members_of: Final = level_decoder(("items", "metadata", "kind", "apiVersion"))


@final
@attrs.frozen(kw_only=True)
class ListHead:
    """The members of a list except its items. ``ObjectList`` describes these members."""

    kind: str = ""
    api_version: str = ""
    resource_version: str = ""
    continue_token: str = ""
    remaining_item_count: int | None = None
    shard_selector: str = ""


@final
class State(enum.Enum):
    """The state of a splitter. The table at the beginning of this module explains the states."""

    SEARCHING = "search the items"
    CUTTING = "cut off a block of items by a guess"
    COUNTING = "count brackets, and cut off each item"
    IN_STRING = "search the end of a string, in an item whose brackets are counted"
    ENDING = "keep the rest for the end of the body"


_COUNTING: Final = (State.COUNTING, State.IN_STRING)


@final
@attrs.define(eq=False)
class ListSplitter:
    """Splits the body of a list into items while the body arrives.

    The members of the list may be in any order, and any white space is accepted.
    """

    _block: int = attrs.field(default=BLOCK, kw_only=True)  # bytes to buffer before a cut
    _slice: int = attrs.field(default=SLICE, kw_only=True)  # see SLICE; at least 2
    _state: State = attrs.field(default=State.SEARCHING, init=False)
    _head: bytes = attrs.field(default=b"", init=False, repr=False)  # the text before the items, once they are found
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    _try_at: int = attrs.field(default=0, init=False)  # the length of the buffer at which the next step is worthwhile
    # Brackets were counted up to this position, at this depth inside an item.
    _position: int = attrs.field(default=0, init=False)
    _depth: int = attrs.field(default=0, init=False)

    @property
    def is_behind(self) -> bool:
        """Whether buffered data remains for ``feed(b"")`` to process."""
        # The last byte waits for the next one: it may be a backslash.
        return self._state in _COUNTING and self._position < len(self._buffer) - 1

    @property
    def begin(self) -> bytes:
        """The text before the items and the buffered text: the complete body if no items were cut off."""
        return self._head + bytes(self._buffer)

    def feed(self, chunk: bytes | memoryview) -> list[bytes]:
        """Add the next bytes of the body, and return copies of the complete items that can be cut off."""
        if self._state is State.COUNTING and chunk and not self.is_behind and len(self._buffer) < self._block:
            self._state = State.CUTTING
        buffer = self._buffer
        buffer += chunk
        if self._state in _COUNTING:
            return self._count() if self._state is State.COUNTING else self._leave_string()
        if len(buffer) < max(self._block, self._try_at):
            return []
        if self._state is State.SEARCHING:
            self._search()
        if self._state is State.CUTTING:
            return self._cut()
        if len(buffer) > _MAX_OTHERS:
            raise DecodeError(f"the server sent a list with more than {_MAX_OTHERS} bytes outside its items")
        self._try_at = min(2 * len(buffer), _MAX_OTHERS)  # so that each byte is searched at most twice
        return []

    def finish(self) -> tuple[list[bytes], ListHead] | None:
        """Process the end of the body, and return the last items and the other members of the list.

        If brackets must be counted first, the result is None. In this case, call ``feed(b"")`` while :attr:`is_behind`
        is true, and then call this method again.
        """
        if self.is_behind:
            return None
        try:
            raw, *others = _members_of(self.begin)
            items = [bytes(item) for item in list_items(raw)] if bytes(raw) else None
        except (ValueError, RecursionError) as exc:
            if self._state is State.SEARCHING:
                self._search()
            if self._state is not State.CUTTING:
                raise DecodeError(
                    f"{_EXPECTED} something that is not JSON, is incomplete, or has no array of items"
                ) from exc
            self._state, self._position, self._depth = State.COUNTING, 1, 0
            return None
        head = _make_head(*(decode(other) if bytes(other) else None for other in others))
        if items is None:
            found = "JSON object" if kind_problem(head.kind) else head.kind
            raise DecodeError(f"{_EXPECTED} {with_article(found)} without items")
        return items, head

    def _search(self) -> None:
        """Find the ``items`` array, and remove everything before its opening bracket from the buffer."""
        if found := _ITEMS.search(self._buffer):
            head, self._state = bytes(self._buffer[: found.end() - 1]), State.ENDING
            with suppress(ValueError, RecursionError):
                if bytes(_items_of(head + b"null}")[0]) == b"null":  # at the top level: a brace completes the object
                    self._state, self._head, self._try_at = State.CUTTING, head, 0
                    del self._buffer[: len(head)]

    def _cut(self) -> list[bytes]:
        """Guess where the last complete item in the buffer ends, and cut off all items up to this position."""
        buffer = self._buffer
        if found := _BEGINNING.match(buffer):
            separator, position = b"}," + found[1], len(buffer)
            for _ in range(_MAX_GUESSES):
                position = buffer.rfind(separator, 0, position)
                if position < 0:
                    break
                with memoryview(buffer) as view:
                    block = b"".join((view[: position + 1], b"]"))
                try:
                    items = [bytes(item) for item in list_items(block)]
                except (ValueError, RecursionError):
                    continue
                buffer[: position + 2] = b"["
                self._try_at = len(buffer) + self._block
                return items
        self._state, self._position, self._depth = State.COUNTING, 1, 0
        return self._count()

    def _count(self) -> list[bytes]:
        """Count the brackets in the next slice of the buffer, and cut off the items that end in this slice."""
        buffer, begin, depth = self._buffer, self._position, self._depth
        data = bytes(buffer[begin : begin + self._slice])
        items: list[bytes] = []
        position = comma = 0
        while position < len(data):
            found = (_IN_ITEM if depth else _BETWEEN).match(data, position)
            assert found is not None  # the empty rest matches
            mark, position = found[1], found.end()
            if mark in (b"{", b"["):
                depth += 1
            elif mark == b'"':
                self._state = State.IN_STRING
                break
            elif depth and mark:
                depth -= 1
            elif mark:  # a comma between items, or the end of the list
                end = begin + position - 1
                if item := bytes(buffer[comma + 1 : end]).strip():
                    items.append(item)
                comma = end
                if mark == b"]":
                    self._state, comma = State.ENDING, end - 1  # keep the bracket
                    break
        self._position, self._depth = begin + position - comma, depth
        buffer[: comma + 1] = b"["
        return items

    def _leave_string(self) -> list[bytes]:
        data = bytes(self._buffer[self._position : self._position + self._slice])
        found = _STRING.match(data)
        assert found is not None
        self._position += found.end()
        if found[1]:
            self._state = State.COUNTING
        return []


def _make_head(metadata: object, kind: object, api_version: object) -> ListHead:
    members = cast("dict[str, object]", metadata) if isinstance(metadata, dict) else {}
    version, token, remaining = map(members.get, ("resourceVersion", "continue", "remainingItemCount"))
    shard = members.get("shardInfo")
    shard_selector = shard.get("selector") if isinstance(shard, dict) else ""
    # Without this check, the list would seem to be complete, or to have no version.
    if not isinstance(version, str | None) or not isinstance(token, str | None):
        raise DecodeError("the server sent a list whose metadata.resourceVersion or metadata.continue is not a string")
    return ListHead(
        kind=kind if isinstance(kind, str) else "",
        api_version=api_version if isinstance(api_version, str) else "",
        resource_version=version or "",
        continue_token=token or "",
        remaining_item_count=remaining if isinstance(remaining, int) else None,
        shard_selector=shard_selector if isinstance(shard_selector, str) else "",
    )
