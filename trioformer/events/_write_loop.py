"""Write the queued Events one after another, without waiting long for a slow request.

A write can fail for two reasons.  If a webhook rejects a single Event again and again, the other Events must still be
written.  If the server cannot be reached, it is useless to try each of a thousand Events every ten seconds, and all of
them would be dropped after twelve tries.  This leads to the following rules:

- After a failure, only the line of the failed Event's object is delayed.
- If a request gets no response for a quarter of a second, the next request is sent.  At most fifty may be in flight.
- Events that were never tried are written before Events that have failed or hung.
- If the Events of twenty objects fail without a success in between, the server counts as unavailable.  Events are then
  tried one at a time, and after a failure or a hang, all Events wait for the retry.
- Until the next success, only the tries of one Event count, so an outage drops one Event every two minutes.
- The first success ends these restrictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Final, final

import attrs
import trio

from .._util import open_serving_nursery
from ._series import Series
from ._write_queue import Line, WriteQueue
from ._writer import FAILURES, RETRY_PERIOD, EventWriter, is_transient

MAX_UNDER_WAY: Final = 50
"""The maximum number of requests in flight: half of the client's maximum, so that other requests are not delayed."""
MAX_FINAL: Final = 8
"""The maximum number of requests in flight during a flush, not counting hanging requests.  It is small to avoid a
burst."""
PATIENCE: Final = 0.25
"""The time to wait for a response before the next Event is sent, in seconds."""
FINAL_PATIENCE: Final = 0.002
"""The time to wait for a response during a flush before the next Event is sent, in seconds."""
MAX_FAILING: Final = 20
"""The server counts as unavailable if the Events of this many objects have failed since the last success."""


@final
@attrs.frozen(kw_only=True)
class WriteResults:
    """The callbacks of the loop."""

    written: Callable[[Series, int], None]
    """Called after a write, with the series and the number of events that the write added."""
    retried: Callable[[Series, Exception], None]
    """Called after a failure that is retried."""
    dropped: Callable[[Series, Exception], None]
    """Called after a failure that is not retried."""


@final
@attrs.define(eq=False)
class WriteLoop:
    """Takes Events from the queue and writes them."""

    _queue: WriteQueue
    _writer: EventWriter
    _results: WriteResults
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)  # set by every change of the queue
    _under_way: dict[Line, float] = attrs.field(factory=dict, init=False)  # with their start times, oldest first
    _failing: set[Hashable] = attrs.field(factory=set, init=False)  # the objects that failed since the last success
    _counted: Series | None = attrs.field(default=None, init=False)  # its tries count until the next success
    _paused_until: float = attrs.field(default=-math.inf, init=False)
    _unexpected: Exception | None = attrs.field(default=None, init=False)

    @property
    def is_unavailable(self) -> bool:
        """Whether the server counts as unavailable."""
        return len(self._failing) >= MAX_FAILING

    def notify(self) -> None:
        """Wake the loop after an Event was added to the queue."""
        self._changed.set()

    async def run(self, prepare: Callable[[], float]) -> None:
        """Write Events until cancelled.

        Args:
            prepare: A function that is called before the next line is taken.  It returns the time of its next call, on
                trio's clock.

        Raises:
            Exception: If a request raises an unexpected error, such as ``trio.ClosedResourceError``.

        Cancellation:
            Requests in flight are cancelled, and their Events stay in the queue.
        """
        self._unexpected = None
        async with open_serving_nursery() as nursery:
            while True:
                until = prepare()
                line = self._next_line()
                if line is not None:
                    await self._start(nursery, line, PATIENCE, is_final=False)
                else:
                    self._changed = trio.Event()  # no checkpoint since there was nothing to write
                    with trio.move_on_at(min(until, self._next_look())):
                        await self._changed.wait()
                if self._unexpected is not None:
                    raise self._unexpected

    async def flush(self, prepare: Callable[[], None]) -> None:
        """Try to write each Event once, and drop it after any error.

        Args:
            prepare: A function that adds further Events when the queue is empty.
        """
        self._queue.end_delays()
        async with open_serving_nursery() as nursery:
            while True:
                if not self._queue:
                    prepare()
                now = trio.current_time()
                free_at = self._free_at(MAX_FINAL, PATIENCE)
                line = self._queue.take(now) if free_at <= now else None
                if line is not None:
                    await self._start(nursery, line, FINAL_PATIENCE, is_final=True)
                elif self._under_way:
                    self._changed = trio.Event()
                    with trio.move_on_at(free_at if free_at > now else math.inf):
                        await self._changed.wait()
                else:
                    return

    # --- what comes next ---

    def _next_line(self) -> Line | None:
        now = trio.current_time()
        if self._next_start() > now:
            return None
        return self._queue.take(now)

    def _next_look(self) -> float:
        """Return the time when the loop must check the queue again, unless the queue changes earlier."""
        start = self._next_start()
        return start if start > trio.current_time() else self._queue.next_due()

    def _next_start(self) -> float:
        """Return the earliest time for the next request, unless a response arrives earlier."""
        if not self.is_unavailable:
            return max(self._paused_until, self._free_at(MAX_UNDER_WAY, math.inf))
        return max(self._paused_until, self._free_at(1, RETRY_PERIOD))

    def _free_at(self, limit: int, patience: float) -> float:
        """Return the earliest time when fewer than ``limit`` requests are in flight.

        Requests that are older than ``patience`` seconds are not counted.
        """
        begun = list(self._under_way.values())
        if len(begun) < limit:
            return -math.inf
        return begun[-limit] + patience if len(begun) < MAX_UNDER_WAY else math.inf

    # --- one write ---

    async def _start(self, nursery: trio.Nursery, line: Line, patience: float, *, is_final: bool) -> None:
        self._under_way[line] = trio.current_time()
        ended = trio.Event()
        nursery.start_soon(self._write, line, ended, is_final)
        with trio.move_on_after(patience):
            await ended.wait()

    async def _write(self, line: Line, ended: trio.Event, is_final: bool) -> None:
        series = line.waiting[0]
        before = series.written
        try:
            await self._writer.write(series)
        except FAILURES as error:
            self._record_failure(line, series, error, is_final=is_final)
        except Exception as error:  # noqa: BLE001  # raised by the loop, in the caller's task
            if is_final:
                self._record_failure(line, series, error, is_final=True)
            else:
                self._put_back(line)
                self._unexpected = error
        except BaseException:
            self._put_back(line)
            raise
        else:
            self._failing.clear()
            self._counted, self._paused_until = None, -math.inf
            self._queue.remove_first(line)
            self._results.written(series, series.written - before)
        finally:
            del self._under_way[line]
            ended.set()
            self._changed.set()

    def _put_back(self, line: Line) -> None:
        self._queue.put_back(line, was_tried=trio.current_time() >= self._under_way[line] + PATIENCE)

    def _record_failure(self, line: Line, series: Series, error: Exception, *, is_final: bool) -> None:
        if self._counted is None:
            self._counted = series
        delay = None if is_final else self._writer.delay_after(series, error, counts=self._counted is series)
        if delay is None:
            if self._counted is series:
                self._counted = None
            self._queue.remove_first(line)
            self._results.dropped(series, error)
        else:
            self._queue.delay(line, trio.current_time() + delay)
            self._results.retried(series, error)
        if not is_final and is_transient(error):
            if not self.is_unavailable:
                self._failing.add(line.key)
            now = trio.current_time()
            # A request that hung has already delayed the others.  Many of these must not delay the next try forever.
            if self.is_unavailable and now < self._under_way[line] + RETRY_PERIOD:
                pause = RETRY_PERIOD if delay is None else delay
                self._paused_until = max(self._paused_until, now + pause)
