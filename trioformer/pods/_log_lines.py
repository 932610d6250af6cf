"""Split logs into lines, and recognize lines that were already received before a connection broke.

A log has no version to resume from, but only a timestamp for each line.  If a log is requested again, three problems
arise:

- The API server rounds ``sinceTime`` down to a second, so it sends the lines of up to one second again.
- Several lines may have the same timestamp, and lines of standard output and standard error may be out of order.
- The node may have started a new log file, so the repeated lines may start anywhere.

So :class:`ReceivedLines` remembers the last received lines by timestamp and content, and compares them with the
repeated lines.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import Final, final

import attrs

REMEMBERED: Final = 1024
"""The maximum number of remembered lines.  Older lines are recognized only by their timestamps."""
DISORDER: Final = 1_000_000_000
"""The number of nanoseconds by which a line may be older than an earlier line."""
MIN_LINE: Final = 256
"""The minimum value of ``max_line_bytes``.  A timestamp has at most 35 bytes."""

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)")
_SECOND: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@final
@attrs.frozen(kw_only=True)
class LogLine:
    """One line in the log of a container; ``str(line)`` is the text of the line."""

    data: bytes
    """The content of the line, without the timestamp and the line end."""
    timestamp: str = ""
    """The time when the container wrote the line, in RFC 3339 format with nanoseconds; empty if unknown."""
    pod: str = ""
    """The name of the pod."""
    namespace: str = ""
    """The namespace of the pod."""
    container: str = ""
    """The name of the container."""
    is_cut: bool = False
    """Whether the line is longer than ``max_line_bytes`` and continues in the next object."""

    @property
    def text(self) -> str:
        """The content as text, in which bytes that are not UTF-8 are replaced with U+FFFD."""
        return self.data.decode(errors="replace")

    @property
    def time(self) -> datetime | None:
        """The time when the container wrote the line, with microseconds, or None if it is unknown."""
        return datetime.fromisoformat(self.timestamp) if self.timestamp else None

    def __str__(self) -> str:
        return self.text


@final
@attrs.frozen
class Piece:
    """A line, or one piece of a line that is too long."""

    data: bytes
    index: int
    """The index of the piece in its line, starting from 0."""
    is_last: bool


@final
class LineSplitter:
    """A splitter of bytes into lines, and of long lines into pieces of equal size.

    The cuts depend only on the content of the line, so a repeated line is cut in the same places.

    Args:
        limit: The maximum size of a piece in bytes.
    """

    __slots__ = ("_begin", "_index", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begin = bytearray()
        self._index = 0

    def feed(self, data: bytes) -> list[Piece]:
        """Add received bytes, and return all complete lines and pieces."""
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
        """At the end of the log, return the last line if it does not end with a newline."""
        return [self._take_last()] if self._begin or self._index else []

    def clear(self) -> None:
        """Discard an incomplete line."""
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
    """Return the seconds since 1970, or -1 for an invalid time."""
    try:
        return (datetime.fromisoformat(text.decode()) - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return -1


def split_stamp(line: bytes) -> tuple[int, str, bytes]:
    """Split a line into the time in nanoseconds since 1970 (-1 if there is none), the timestamp, and the content."""
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
    """A record of the last received lines, used to recognize repeated lines.

    Repeated lines are read from the same file in the same order.
    Before the first remembered line in the repetition, every line up to the oldest remembered time was already
    received or was not requested.  After the first remembered line, only the remembered lines were already received,
    each as many times as it is remembered.
    """

    __slots__ = ("_forgotten", "_horizon", "_last", "_newest", "_received", "_repeated", "_to_skip", "_was_found")

    def __init__(self) -> None:
        self._received: deque[tuple[int, int]] = deque()
        self._horizon = -1
        """The horizon: the newest time of a forgotten line, or the time of the first line."""
        self._forgotten = 0
        """The number of forgotten lines with the horizon's time."""
        self._newest = -1
        self._last = -1
        """The time of the last line.  If the clock of the node was set back, this is not the newest time."""
        self._repeated: Counter[int] = Counter()
        """The remembered lines that may still be repeated."""
        self._to_skip = 0
        """The number of repeated lines with the horizon's time before the remembered lines."""
        self._was_found = True

    @property
    def since(self) -> str:
        """The ``sinceTime`` for a request that misses no line; empty if no line with a timestamp was received."""
        if self._last < 0:
            return ""
        seconds = max((self._last - DISORDER) // _SECOND, 0)
        return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    def begin_repetition(self) -> None:
        """Start to recognize repeated lines after a new request."""
        self._repeated = Counter(digest for _, digest in self._received)
        self._to_skip = self._forgotten
        self._was_found = False

    def is_new(self, instant: int, content: tuple[bytes, int]) -> bool:
        """Return whether a line is new, and remember it.

        Args:
            instant: The time of the line.
            content: The bytes of the piece and its index.
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
