"""The bounded buffer between the tasks that follow logs and the one that reads their lines."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import final

import attrs
import trio

from ..cache import Overflow
from ._log_lines import LogLine

Source = tuple[str, str, str]
"""Namespace, pod and container of a line."""


def source_of(line: LogLine) -> Source:
    """Return where a line is from."""
    return line.namespace, line.pod, line.container


@final
@attrs.define(eq=False)
class LogBuffer:
    """Lines that wait for one reader, in the order in which they were received.

    When it is full, ``overflow`` decides: the writers wait (``block``), or the lines are counted and left out
    (``coalesce``).
    """

    size: int
    overflow: Overflow
    high_water: int = attrs.field(default=0, init=False)
    omitted: int = attrs.field(default=0, init=False)
    """How many lines were left out so far."""
    delivered: int = attrs.field(default=0, init=False)
    _lines: deque[LogLine] = attrs.field(factory=deque, init=False)
    _pending: Counter[Source] = attrs.field(factory=Counter, init=False)
    """How many lines of each container were left out since its last one."""
    _error: Exception | None = attrs.field(default=None, init=False)
    _arrival: trio.Event | None = attrs.field(default=None, init=False)
    """Set when a line arrives; None unless the reader waits."""
    _room: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    """The writers that wait."""

    def __attrs_post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise ValueError(f"buffer_size must be an int of at least 1, not {self.size!r}")
        if self.overflow not in ("block", "coalesce"):
            raise ValueError(f"overflow must be 'coalesce' or 'block', not {self.overflow!r}")

    def __len__(self) -> int:
        return len(self._lines)

    async def put_all(self, lines: Iterable[LogLine]) -> None:
        """Add lines of one container; with ``block``, wait until they fit.

        Cancellation:
            The lines that did not fit are lost.
        """
        for line in lines:
            while len(self._lines) >= self.size and self.overflow == "block" and self._error is None:
                await self._room.park()
            if self._error is not None:
                return
            if len(self._lines) < self.size:
                self._put(line)
            else:
                self.omitted += 1
                self._pending[source_of(line)] += 1 + line.omitted

    def _put(self, line: LogLine) -> None:
        if self._pending and (omitted := self._pending.pop(source_of(line), 0)):
            line = attrs.evolve(line, omitted=omitted)
        self._lines.append(line)
        self.high_water = max(self.high_water, len(self._lines))
        if self._arrival is not None:
            self._arrival.set()

    def fail(self, error: Exception) -> None:
        """Let the reader get an error, and drop what waits."""
        if self._error is None:
            self._error = error
            self._lines.clear()
            self._room.unpark_all()
            if self._arrival is not None:
                self._arrival.set()

    async def take(self, limit: int) -> list[LogLine]:
        """Wait for lines, and take at most so many of them.

        Raises:
            trio.BusyResourceError: Another task is taking.
            Exception: That of :meth:`fail`.

        Cancellation: nothing is lost.
        """
        if self._arrival is not None:
            raise trio.BusyResourceError("another task is already reading these lines")
        while not self._lines:
            if self._error is not None:
                raise self._error
            self._arrival = trio.Event()
            try:
                await self._arrival.wait()
            finally:
                self._arrival = None
        count = min(limit, len(self._lines))
        taken = [self._lines.popleft() for _ in range(count)]
        self.delivered += count
        self._room.unpark(count=count)
        return taken
