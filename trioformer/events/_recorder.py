"""Record what happens to objects, as Events that ``kubectl describe`` and ``kubectl events`` show.

::

    event() ─▶ similar ones combined ─▶ the same again? ─ yes ─▶ counted, and written now and then ─┐
               from the 10th on               │ no                                                  ▼
                                              └▶ too many of the object? ─ no ─▶ queue ─▶ run(): create, patch
                                                       └ yes ─▶ left out      (1,000, else dropped)

All that is decided is decided at once, in :meth:`EventRecorder.event`, which nothing can block.
What waits in the queue is not events but series, so one that happens again before it is written costs nothing.

Source: client-go ``tools/events``, and ``tools/record`` for what that does not have.
"""

from __future__ import annotations

import logging
import math
import re
import socket
from collections import OrderedDict, deque
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, Literal, final

import attrs
import trio

from ..client import Client
from ..models import KubernetesObject
from ..models.core_v1 import ObjectReference
from ..models.events_v1 import Event
from ._correlation import Aggregator, SpamFilter, remember
from ._options import EventRecorderOptions, EventRecorderStatistics
from ._series import MAX_NOTE, MAX_WORD, SUBDOMAIN, Observation, Series, reference_to, shortened
from ._writer import EventWriter

logger = logging.getLogger("trioformer.controller")

LOG_PERIOD: Final = 60.0
"""Seconds after which a trouble of the same kind is worth another line in the log."""

_QUALIFIED_NAME: Final = re.compile(rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")


def _given_or_default(options: EventRecorderOptions | None) -> EventRecorderOptions:
    return EventRecorderOptions() if options is None else options


def _given_or_hostname(instance: str | None) -> str:
    return shortened(socket.gethostname(), MAX_WORD) if instance is None else instance


def _word(name: str, value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_WORD:
        raise ValueError(f"the {name} of an event must have 1 to {MAX_WORD} bytes, not {len(value.encode())}")
    return value


@final
@attrs.define(eq=False, repr=False)
class EventRecorder:
    """Writes Events about objects, and never keeps anybody waiting for that.

    For example::

        recorder = EventRecorder(client, controller="example.com/widgets")
        await nursery.start(recorder.run)
        recorder.event(widget, reason="Resized", action="Resizing", note="resized from 3 to 5")

    :meth:`event` only takes notes; the task that runs :meth:`run` writes.  Until there is one, events wait.

    - The same event again makes no new Event: the server's one counts it, in its ``series``.  The second time is
      written at once, the next ones half an hour later, or when it did not happen again for six minutes.
      It is the same if all of it is, whatever the version of the objects.
    - Of similar events, which differ in their note or ``related`` only, the tenth and the following ones become one,
      until there was none for ten minutes.  Its note begins with ``(combined from similar events):``.
    - An object gets 25 Events of a type, and then one more every five minutes.  The others are left out.
    - 1,000 may wait to be written; the next ones are dropped.  So are those that the server refuses, and those that
      could not be written in 12 tries or two minutes, during which the others wait.

    Nothing of that raises.  Drops are logged, at most once a minute for each reason, and :meth:`statistics` counts
    everything.

    The client must stay open until :meth:`run` has ended, so its block belongs outside.
    The process needs a role with ``create`` and ``patch`` for ``events`` in ``events.k8s.io``.

    Args:
        client: The connection.
        controller: Who reports, such as ``example.com/widgets`` or ``widget-controller``.
        instance: Which of its processes; None for the host's name.
        options: The bounds and times.

    Raises:
        ValueError: From making one: ``controller`` or ``instance`` is not what a server takes.

    Ownership:
        It keeps no task; :meth:`run` belongs to the caller.  It belongs to one ``trio.run``; another thread uses
        ``trio.from_thread.run_sync``.

    Source: client-go ``tools/events``; combining and leaving out ``tools/record``, which writes to core/v1.
    """

    _client: Client
    controller: str = attrs.field(kw_only=True)
    """Who reports."""
    instance: str = attrs.field(default=None, kw_only=True, converter=_given_or_hostname)
    """Which of its processes."""
    options: EventRecorderOptions = attrs.field(default=None, kw_only=True, converter=_given_or_default)
    """The bounds and times."""
    _aggregator: Aggregator = attrs.field(init=False)
    _spam_filter: SpamFilter = attrs.field(init=False)
    _writer: EventWriter = attrs.field(init=False)
    _series: OrderedDict[Hashable, Series] = attrs.field(factory=OrderedDict, init=False)  # the longest idle one first
    _queue: deque[Series] = attrs.field(factory=deque, init=False)  # the first one stays until it is written
    _arrived: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _last_stamp: int = attrs.field(default=0, init=False)
    _silent_until: dict[str, float] = attrs.field(factory=dict, init=False)
    _recorded: int = attrs.field(default=0, init=False)
    _written: int = attrs.field(default=0, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _filtered: int = attrs.field(default=0, init=False)
    _combined: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        if not _QUALIFIED_NAME.fullmatch(self.controller):
            raise ValueError(
                "the controller of an event recorder must be a name of at most 63 letters, digits, '-', '_' and '.', "
                f"if need be after a domain and '/', not {self.controller!r}"
            )
        _word("reporting instance", self.instance)
        self._aggregator = Aggregator(self.options)
        self._spam_filter = SpamFilter(self.options)
        self._writer = EventWriter(self.options, self._on_retry, self._new_stamp)

    def __repr__(self) -> str:
        state = "running" if self._is_running else "not running"
        return f"<{type(self).__name__} of {self.controller!r}, {state}, {len(self._queue)} queued>"

    # --- taking notes -------------------------------------------------------------------------------------------------

    def event(
        self,
        regarding: KubernetesObject | ObjectReference,
        *,
        type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002  # its name in the API
        reason: str,
        action: str,
        note: str,
        related: KubernetesObject | ObjectReference | None = None,
    ) -> None:
        """Record that something happened to an object; returns at once.

        The Event is written to the object's namespace, or to ``default`` for one that has none.

        Args:
            regarding: The object.  A reference can name a part of it, too, in its ``field_path``.
            type: ``Normal``, or ``Warning`` for what somebody should look at.
            reason: Why, in one word for machines, such as ``BackOff``; 128 bytes at most.
            action: What was done about it or failed, in one word for machines, such as ``Pulling``; 128 bytes at most.
            note: For people.  It is cut off at 1,024 bytes.
            related: Another object that has to do with it.

        Raises:
            ValueError: An argument is not what a server takes.
            TypeError: An object is none of a kind.
            RuntimeError: Outside of ``trio.run``.
        """
        if type not in ("Normal", "Warning"):
            raise ValueError(f"the type of an event must be 'Normal' or 'Warning', not {type!r}")
        observation = Observation(
            regarding=reference_to(regarding),
            related=None if related is None else reference_to(related),
            type=type,
            reason=_word("reason", reason),
            action=_word("action", action),
            note=shortened(note, MAX_NOTE),
        )
        api = self._client.api(Event, namespace=observation.regarding.namespace or "default")
        now = trio.current_time()
        self._recorded += 1
        combined = self._aggregator.combine(observation, now)
        if combined is not None:
            self._combined += 1
            observation = combined
        series = self._series.get(observation.key)
        if series is not None:
            self._repeat(series, now)
        elif len(self._queue) >= self.options.queue_size:
            self._drop(1, "queue", f"its queue is full with {len(self._queue)} that are not written yet")
        elif not self._spam_filter.admits(observation):
            self._filtered += 1
        else:
            series = Series(
                observation=observation,
                api=api,
                controller=self.controller,
                instance=self.instance,
                stamp=self._new_stamp(),
                observed=self._wall_time(),
                observed_at=now,
            )
            self._enqueue(series)
            self._know(series)

    def _repeat(self, series: Series, now: float) -> None:
        series.count += 1
        series.observed, series.observed_at = self._wall_time(), now
        self._series.move_to_end(series.observation.key)
        if series.is_due(now, self.options.refresh_period):
            self._enqueue(series)  # where there is no room, its next occurrence or its end is soon enough

    def _know(self, series: Series) -> None:
        forgotten = remember(self._series, series.observation.key, series, self.options.cache_size)
        if forgotten is not None and forgotten.unwritten and not self._enqueue(forgotten):
            self._drop(forgotten.unwritten, "queue", "its queue is full, and there is no room for their series")

    def _enqueue(self, series: Series) -> bool:
        """Have a series written; False if there is no room."""
        if not series.is_queued:
            if len(self._queue) >= self.options.queue_size:
                return False
            series.is_queued = True
            self._queue.append(series)
            self._arrived.set()
        return True

    def _new_stamp(self) -> int:
        # Names are made of it, and two events may come at the same time, by a coarse clock or one that is put back.
        self._last_stamp = max(round(self.options.wall_clock() * 1e6) * 1_000, self._last_stamp + 1)
        return self._last_stamp

    def _wall_time(self) -> datetime:
        return datetime.fromtimestamp(self.options.wall_clock(), UTC)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write what is recorded, until cancelled.

        Raises:
            trio.BusyResourceError: It is running already.

        Cancellation:
            What is not written yet is then written, counts of series included: each is tried once, for
            ``flush_period`` seconds at most.  What is left after that is dropped, and logged.

        Ownership:
            It opens no nursery.  It may be run again, and goes on where it was.
        """
        if self._is_running:
            raise trio.BusyResourceError(f"the event recorder of {self.controller!r} is running already")
        self._is_running = True
        try:
            task_status.started()
            try:
                await self._write_for_ever()
            except trio.Cancelled:
                await self._flush()
                raise
        finally:
            self._is_running = False

    async def _write_for_ever(self) -> None:
        while True:
            self._end_idle_series()
            if self._queue:
                await self._write_first(self.options.max_tries)
            else:
                self._arrived = trio.Event()  # no checkpoint between here and the look at the queue
                with trio.move_on_at(self._next_end()):
                    await self._arrived.wait()

    def _next_end(self) -> float:
        longest_idle = next(iter(self._series.values()), None)
        return math.inf if longest_idle is None else longest_idle.observed_at + self.options.idle_period

    def _end_idle_series(self) -> None:
        """Forget series that do not go on; the count of the last occurrences is to be written."""
        while self._next_end() <= trio.current_time():
            series = next(iter(self._series.values()))
            if series.unwritten and not self._enqueue(series):
                return  # until there is room again
            del self._series[series.observation.key]

    async def _write_first(self, tries: int) -> None:
        series = self._queue[0]
        written = series.written
        error = await self._writer.write(series, tries=tries)
        self._written += series.written - written
        self._queue.popleft()
        series.is_queued = False
        if error is not None:
            self._forget(series)
            self._drop(series.unwritten, repr(error.__class__), f"{series} was given up: {error}")
        elif series.is_due(trio.current_time(), self.options.refresh_period):
            self._enqueue(series)  # it has happened again meanwhile

    def _forget(self, series: Series) -> None:
        if self._series.get(series.observation.key) is series:
            del self._series[series.observation.key]

    async def _flush(self) -> None:
        """Write what there is to write, once, and as long as the time for it lasts; what is left is lost."""
        dropped = self._dropped
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self.options.flush_period):
            while self._queue or self._queue_all():
                await self._write_first(1)
        self._queue_all()
        for series in self._queue:
            series.is_queued = False
            self._forget(series)
            self._dropped += series.unwritten
        self._queue.clear()
        if lost := self._dropped - dropped:
            logger.warning("event recorder %s: events that could not be written at its end: %d", self.controller, lost)

    def _queue_all(self) -> int:
        """Have the counts written of all series that go on, whatever the bound; returns how many wait now."""
        for series in self._series.values():
            if series.unwritten and not series.is_queued:
                series.is_queued = True
                self._queue.append(series)
        return len(self._queue)

    # --- what it says -------------------------------------------------------------------------------------------------

    def statistics(self) -> EventRecorderStatistics:
        """Return the figures of the moment."""
        return EventRecorderStatistics(
            recorded=self._recorded,
            written=self._written,
            waiting=self._recorded - self._written - self._dropped - self._filtered,
            dropped=self._dropped,
            filtered=self._filtered,
            combined=self._combined,
            queued=len(self._queue),
            series=len(self._series),
            is_running=self._is_running,
        )

    def _drop(self, count: int, trouble: str, why: str) -> None:
        self._dropped += count
        self._say(f"dropped: {trouble}", f"events dropped: {count}, {self._dropped} in all; {why}")

    def _on_retry(self, series: Series, error: Exception) -> None:
        self._say(f"retried: {error.__class__!r}", f"{series} cannot be written, trying again: {error}")

    def _say(self, kind: str, text: str) -> None:
        """Log, and the same kind of thing once in a while only."""
        now = trio.current_time()
        is_news = now >= self._silent_until.get(kind, -math.inf)
        if is_news:
            self._silent_until[kind] = now + LOG_PERIOD
        logger.log(logging.WARNING if is_news else logging.DEBUG, "event recorder %s: %s", self.controller, text)
