"""The lines of a log: how its bytes are split, and which of them were received before a connection broke.

A log has no version from which it could be resumed, only the time of each line, and three things stand in the way:

- The API server rounds ``sinceTime`` down to a second, so the lines of up to a second are sent again.
- Lines may have the same time, and the lines of standard output and standard error may be out of order in the file.
- The node may have begun a new file, so that what is sent again begins anywhere.

So the last lines that were received are remembered, each by its time and its content, and what is sent again is
compared with them (:class:`ReceivedLines`).
"""

from __future__ import annotations

import functools
import re
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import Final, final

import attrs

REMEMBERED: Final = 1024
"""Lines that are remembered at most; those before them are known by their time alone."""
DISORDER: Final = 1_000_000_000
"""Nanoseconds by which a line may be older than one before it."""
MIN_LINE: Final = 256
"""The smallest bound of a line; a time has at most 35 bytes."""

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)")
_SECOND: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@final
@attrs.frozen(kw_only=True)
class LogLine:
    """One line of the log of a container; ``str(line)`` is its text."""

    data: bytes
    """Its content, without the time and the line end."""
    timestamp: str = ""
    """When the container has written it, as the server sends it: RFC 3339 with nanoseconds; empty without a time."""
    pod: str = ""
    """The name of the pod."""
    namespace: str = ""
    """The namespace of the pod."""
    container: str = ""
    """The name of the container."""
    is_cut: bool = False
    """Whether it is only a piece of a line that is longer than ``max_line_bytes``, and the next one continues it."""

    @property
    def text(self) -> str:
        """Its content as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode(errors="replace")

    @property
    def time(self) -> datetime | None:
        """When the container has written it, without the nanoseconds below a microsecond; None if it has no time."""
        return datetime.fromisoformat(self.timestamp) if self.timestamp else None

    def __str__(self) -> str:
        return self.text


@final
@attrs.frozen
class Piece:
    """A line, or a piece of one that is too long."""

    data: bytes
    index: int
    """0 for the beginning of a line."""
    is_last: bool


@final
class LineSplitter:
    """Splits bytes into lines, and lines that are too long into pieces of the same size each.

    Where a line is cut depends on its content alone, so that it is cut in the same way when it is sent again.

    Args:
        limit: The largest number of bytes of a piece.
    """

    __slots__ = ("_begin", "_index", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begin = bytearray()
        self._index = 0

    def feed(self, data: bytes) -> list[Piece]:
        """Add bytes, and return the lines and pieces that are complete."""
        pieces: list[Piece] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._begin += end
            self._cut(pieces)
            pieces.append(self._take_last())
        self._begin += rest
        self._cut(pieces)
        return pieces

    def end(self) -> list[Piece]:
        """Return what is left at the end: a line without a line end."""
        return [self._take_last()] if self._begin or self._index else []

    def clear(self) -> None:
        """Drop the beginning of a line."""
        self._begin.clear()
        self._index = 0

    def _cut(self, pieces: list[Piece]) -> None:
        while len(self._begin) > self._limit:
            pieces.append(Piece(bytes(self._begin[: self._limit]), self._index, is_last=False))
            del self._begin[: self._limit]
            self._index += 1

    def _take_last(self) -> Piece:
        piece = Piece(bytes(self._begin).removesuffix(b"\r"), self._index, is_last=True)
        self.clear()
        return piece


@functools.lru_cache(maxsize=64)
def _seconds_of(text: bytes) -> int:
    """Return the seconds since 1970 of a time without a fraction; -1 if there is no such day."""
    try:
        return (datetime.fromisoformat(text.decode()) - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return -1


def split_stamp(line: bytes) -> tuple[int, str, bytes]:
    """Split the time off a line: nanoseconds since 1970, the text of the time, and the rest; -1 if it has no time."""
    found = _STAMP.match(line)
    if found is None:
        return -1, "", line
    whole, fraction, zone = found.groups()
    seconds = _seconds_of(whole + zone)
    if seconds < 0:
        return -1, "", line
    end = found.end()
    return seconds * _SECOND + int((fraction or b"0").ljust(9, b"0")), line[:end].rstrip().decode(), line[end:]


@final
class ReceivedLines:
    """The lines that were received last, to tell which of those that are sent again are new.

    What is sent again is a part of the same file, in the same order.
    Before the first line in it that is remembered, all lines up to the oldest remembered time were received, or come
    before the lines that were asked for.
    After it, exactly those that are remembered were received, each as often as it is remembered.
    """

    __slots__ = ("_forgotten", "_horizon", "_last", "_newest", "_received", "_repeated", "_to_skip", "_was_found")

    def __init__(self) -> None:
        self._received: deque[tuple[int, int]] = deque()
        self._horizon = -1
        """The newest time of the lines that are not remembered, or that of the first line."""
        self._forgotten = 0
        """How many lines of this time are not remembered."""
        self._newest = -1
        self._last = -1
        """The time of the last line, which is far before the newest one if the clock of the node was set back."""
        self._repeated: Counter[int] = Counter()
        """The remembered lines that may still be sent again."""
        self._to_skip = 0
        """How many lines of the horizon's time are sent again before those that are remembered."""
        self._was_found = True

    @property
    def since(self) -> str:
        """The ``sinceTime`` from which nothing is missed; empty if no line with a time was received."""
        if self._last < 0:
            return ""
        seconds = max((self._last - DISORDER) // _SECOND, 0)
        return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    def begin_repetition(self) -> None:
        """From here on, lines may be sent again."""
        self._repeated = Counter(digest for _, digest in self._received)
        self._to_skip = self._forgotten
        self._was_found = False

    def is_new(self, instant: int, content: tuple[bytes, int]) -> bool:
        """Return whether a line was not received before, and remember it.

        Args:
            instant: Its time.
            content: What it contains, with its time, and which piece of a line it is.
        """
        digest = hash((instant, content))
        if self._repeated:
            if instant == self._horizon and self._to_skip:
                self._to_skip -= 1
                return False
            if digest in self._repeated:
                self._was_found = True
                self._repeated[digest] -= 1
                if not self._repeated[digest]:
                    del self._repeated[digest]
                return False
            if not self._was_found and instant <= self._horizon:
                return False
            if instant > self._newest + DISORDER:
                self._repeated.clear()
        if self._horizon < 0:
            self._horizon = instant
        self._received.append((instant, digest))
        self._last, self._newest = instant, max(self._newest, instant)
        while len(self._received) > REMEMBERED or self._received[0][0] < self._newest - 3 * DISORDER:
            forgotten, _ = self._received.popleft()
            if forgotten > self._horizon:
                self._horizon, self._forgotten = forgotten, 0
            self._forgotten += forgotten == self._horizon
        return True
