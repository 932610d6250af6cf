"""Write what is in the queue: one request at a time as long as the server responds, and no Event waits for another's.

The problem: Events fail for two reasons.  One of them fails in a webhook, or times out in it, again and again; then the
others must go on.  Or the server cannot be reached; then to try each of a thousand Events every ten seconds is useless,
and all of them would be dropped after twelve tries.

- After a failure the line of that object is delayed, and the others go on.
- A request that has had no response for a quarter of a second does not hold up the next one; fifty may be under way.
- An Event that was never tried goes before those that have failed or hung.
- When the Events of twenty objects have failed and none has succeeded since, the server is the likely reason.  Then one
  Event is tried at a time, and the delay after its failure is that of all; one that hangs delays the next one as long.
- As long as nothing succeeds, only the tries of one Event count, the first that has failed.  So an outage costs one
  Event every two minutes.
- The first success ends both.
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
from ._writer import FAILURES, EventWriter, is_transient

MAX_UNDER_WAY: Final = 50
"""Requests under way; half of those that a client sends at a time, so that others of the program are not held up."""
MAX_FINAL: Final = 8
"""The same at the end, not counting those that hang: then many may be waiting, and the server needs no burst."""
PATIENCE: Final = 0.25
"""Seconds to wait for a response before the next Event is sent as well."""
FINAL_PATIENCE: Final = 0.002
"""The same at the end, when there is no time to lose."""
MAX_FAILING: Final = 20
"""Objects whose Events have failed since the last success, after which the server is taken to be unavailable."""


@final
@attrs.frozen(kw_only=True)
class WriteResults:
    """What the loop reports."""

    written: Callable[[Series, int], None]
    """An Event, and how many occurrences more it counts."""
    retried: Callable[[Series, Exception], None]
    """A failure that is tried again."""
    dropped: Callable[[Series, Exception], None]
    """A failure that is not."""


@final
@attrs.define(eq=False)
class WriteLoop:
    """Takes Events from the queue and writes them."""

    _queue: WriteQueue
    _writer: EventWriter
    _results: WriteResults
    _retry_period: float
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)  # set by every change of the queue
    _under_way: dict[Line, float] = attrs.field(factory=dict, init=False)  # and when they were begun, oldest first
    _failing: set[Hashable] = attrs.field(factory=set, init=False)  # objects, since the last success
    _counted: Series | None = attrs.field(default=None, init=False)  # that whose tries count until the next success
    _paused_until: float = attrs.field(default=-math.inf, init=False)
    _unexpected: Exception | None = attrs.field(default=None, init=False)

    @property
    def is_unavailable(self) -> bool:
        """Whether the server is taken to be unavailable."""
        return len(self._failing) >= MAX_FAILING

    def notify(self) -> None:
        """Look into the queue again, because something was added."""
        self._changed.set()

    async def run(self, prepare: Callable[[], float]) -> None:
        """Write until cancelled.

        Args:
            prepare: Called before each look into the queue; returns when to call it again, on trio's clock.

        Raises:
            Exception: What a request has raised that is not a failure, such as ``trio.ClosedResourceError``.

        Cancellation:
            Requests that are under way are cancelled, and their Events stay in the queue.
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
        """Try to write each Event once; those that fail are dropped, whatever the error is.

        Args:
            prepare: Called when the queue is empty, to add what else is to be written.
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
        """Return when there may be something to write, if nothing changes until then."""
        start = self._next_start()
        return start if start > trio.current_time() else self._queue.next_due()

    def _next_start(self) -> float:
        """Return when the next request may be sent, if nothing changes until then."""
        if not self.is_unavailable:
            return max(self._paused_until, self._free_at(MAX_UNDER_WAY, math.inf))
        return max(self._paused_until, self._free_at(1, self._retry_period))

    def _free_at(self, limit: int, patience: float) -> float:
        """Return when fewer than ``limit`` requests are under way, if those under way for ``patience`` do not count."""
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
            # One that hung has held up the others already, and many of them must not put off the next try for ever.
            if self.is_unavailable and now < self._under_way[line] + self._retry_period:
                pause = self._retry_period if delay is None else delay
                self._paused_until = max(self._paused_until, now + pause)
