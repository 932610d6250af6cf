"""The queue of Events to write, with one line for each object.

A line is a FIFO queue.  The Events of an object keep their order, and a retry delays only the later Events in the same
line.  Lines whose first Event was never tried are written first.  Otherwise, the line that has waited longest is next.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import math
from collections import deque
from collections.abc import Hashable, Iterator
from typing import final

import attrs

from ._series import Series


class LineState(enum.Enum):
    """The state of a line.  Each value says what the line waits for."""

    READY = "its turn"
    DELAYED = "the time of the next try"
    WRITING = "the response to the write of its first Event"


@final
@attrs.define(eq=False)
class Line:
    """The waiting Events of one object, oldest first."""

    key: Hashable
    """The identity of the object."""
    turn: int
    """The position among the lines.  Lines with a lower number are written first."""
    state: LineState = LineState.READY
    was_tried: bool = False
    """Whether a write of the first Event has failed or hung."""
    waiting: deque[Series] = attrs.field(factory=deque)
    """The waiting Events.  The first Event stays until it is written or dropped."""


@final
@attrs.define(eq=False)
class WriteQueue:
    """The queue of all lines.  ``len()`` returns the number of Events."""

    _lines: dict[Hashable, Line] = attrs.field(factory=dict, init=False)
    _ready: list[tuple[bool, int, Line]] = attrs.field(factory=list, init=False)  # a heap: untried first, by turn
    _delayed: list[tuple[float, int, Line]] = attrs.field(factory=list, init=False)  # a heap by time
    _turns: Iterator[int] = attrs.field(factory=itertools.count, init=False)
    _length: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return self._length

    def add(self, series: Series) -> None:
        """Append a series to the line for its object."""
        key = series.observation.obj
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(key, next(self._turns))
            self._push(line)
        line.waiting.append(series)
        series.is_queued = True
        self._length += 1

    def take(self, now: float) -> Line | None:
        """Return the line whose first Event must be written next, or None if no line is ready."""
        self._end_delays(now)
        if not self._ready:
            return None
        line = heapq.heappop(self._ready)[2]
        line.state = LineState.WRITING
        return line

    def next_due(self) -> float:
        """Return the time when the next delayed line is due, on trio's clock, or infinity if no line is delayed."""
        return self._delayed[0][0] if self._delayed else math.inf

    # --- after a write ---

    def remove_first(self, line: Line) -> None:
        """Remove the first Event of a line after it was written or dropped."""
        line.waiting.popleft().is_queued = False
        self._length -= 1
        line.was_tried = False
        if line.waiting:
            line.turn = next(self._turns)
            self._push(line)
        else:
            del self._lines[line.key]

    def delay(self, line: Line, until: float) -> None:
        """Delay a line until the next try of its first Event, and move it behind the other lines."""
        line.state, line.turn, line.was_tried = LineState.DELAYED, next(self._turns), True
        heapq.heappush(self._delayed, (until, line.turn, line))

    def put_back(self, line: Line, *, was_tried: bool) -> None:
        """Return a line to the queue after its write was cancelled."""
        line.was_tried |= was_tried
        self._push(line)

    # --- at the end ---

    def end_delays(self) -> None:
        """Make all delayed lines ready immediately."""
        self._end_delays(math.inf)

    def clear(self) -> list[Series]:
        """Remove all Events from the queue, and return them."""
        left = [series for line in self._lines.values() for series in line.waiting]
        for series in left:
            series.is_queued = False
        self._lines.clear()
        self._ready.clear()
        self._delayed.clear()
        self._length = 0
        return left

    def _end_delays(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            self._push(heapq.heappop(self._delayed)[2])

    def _push(self, line: Line) -> None:
        line.state = LineState.READY
        heapq.heappush(self._ready, (line.was_tried, line.turn, line))
