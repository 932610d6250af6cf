"""Record Events about objects, which ``kubectl describe`` and ``kubectl events`` show.

::

    event() ─▶ combine similar ones ─▶ known series? ─ yes ─▶ count it, enqueue it if due ──▶┐
               from the 10th on             │ no                                             │
                                            └▶ rate limit exceeded? ─ no ─▶ enqueue it ──────┴▶ run(): create or patch
                                                        └ yes ─▶ filter it  (drop it if 1,000 wait)

:meth:`EventRecorder.event` makes these decisions immediately and never blocks.
The queue contains series rather than single events, so repetitions before a write do not need another request.
The queue has one line for each object (``_write_queue.py``), and ``_write_loop.py`` decides which line is next.

Source: client-go ``tools/events``, and ``tools/record`` for combining and filtering.
"""

from __future__ import annotations

import logging
import math
import re
from collections import OrderedDict
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, Literal, final

import attrs
import trio

from .._surroundings import host_name
from .._text import one_line
from .._util import LogLimit
from ..client import Client
from ..client._internal import without_retries
from ..models import KubernetesObject
from ..models.core_v1 import ObjectReference
from ..models.events_v1 import Event
from ._correlation import Aggregator, SpamFilter, remember
from ._options import EventRecorderOptions, EventRecorderStatistics
from ._series import MAX_NOTE, MAX_WORD, SUBDOMAIN, Observation, Series, reference_to, truncate
from ._write_loop import WriteLoop, WriteResults
from ._write_queue import WriteQueue
from ._writer import EventWriter

logger = logging.getLogger("trioformer.events")

LOG_PERIOD: Final = 60.0
"""The period in which a problem of the same kind is logged only once, in seconds."""

IDLE_PERIOD: Final = 360.0
"""The time without an equal event after which a series ends, in seconds.  The count of the series is then written, and
the next event starts a new series (client-go ``tools/events/event_broadcaster.go``)."""

MAX_NAMED: Final = 5
"""The maximum number of series in the log line about lost events."""

_QUALIFIED_NAME: Final = re.compile(rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")


def _options_or_default(options: EventRecorderOptions | None) -> EventRecorderOptions:
    return EventRecorderOptions() if options is None else options


def _instance_or_hostname(instance: str | None) -> str:
    return truncate(host_name(), MAX_WORD) if instance is None else instance


def _check_word(name: str, value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_WORD:
        raise ValueError(f"the {name} of an event must be 1 to {MAX_WORD} bytes long, not {len(value.encode())}")
    return value


def _text(series: Series, error: Exception) -> str:
    """Return the text of an error without the name of the event at its beginning."""
    return str(error).removeprefix(f"event {series}: ") or repr(error)


@final
@attrs.define(eq=False, repr=False)
class EventRecorder:
    """Records Events about objects without blocking its caller.

    For example::

        recorder = EventRecorder(client, controller="example.com/widgets")
        await nursery.start(recorder.run)
        recorder.event(widget, reason="Resized", action="Resizing", note="resized from 3 to 5")

    :meth:`event` queues Events, and the task that runs :meth:`run` writes them.  Without that task, Events stay queued.

    - If an event repeats, no new Event is created.  Instead, the ``series`` field of the existing Event counts it.
      The second occurrence is written immediately.  Further occurrences are written every half hour, or when the event
      has not occurred for six minutes.  Events are equal if all their fields, except for the object versions, are
      equal.
    - Similar events differ only in their note or ``related`` object.  From the tenth similar event on, they are
      combined into one Event, until ten minutes pass without a similar event.  The note of this Event begins with
      ``(combined from similar events):``.
    - An object gets at most 25 Events of a type in a burst, and then one more every five minutes.  Further Events are
      filtered.
    - At most 1,000 Events wait to be written.  If the queue is full, new Events are dropped.  An Event is also dropped
      if the server rejects it or if 12 tries fail.
    - The Events of an object are written in order.  A retry delays only Events of the same object.

    Filtered and dropped events do not raise exceptions.  Drops are logged at most once a minute for each reason.
    :meth:`statistics` returns the number of filtered and dropped events.

    The client must stay open until :meth:`run` has ended, so open the client before the nursery that runs :meth:`run`.
    The process needs a role with ``create`` and ``patch`` for ``events`` in ``events.k8s.io``.

    Args:
        client: The client that sends the Events.
        controller: The name of the reporting controller, such as ``example.com/widgets`` or ``widget-controller``.
        instance: The name of the reporting process.  If None, the host name is used.
        options: The limits and durations of the recorder.

    Raises:
        ValueError: If an API server would not accept ``controller`` or ``instance``.

    Ownership:
        The recorder does not start tasks by itself.  The caller runs :meth:`run` in a task.  A recorder belongs to one
        ``trio.run``.  Other threads must call :meth:`event` with ``trio.from_thread.run_sync``.

    Source: client-go ``tools/events``.  Combining and filtering follow ``tools/record``, which writes to core/v1.
    """

    _client: Client
    controller: str = attrs.field(kw_only=True)
    """The name of the reporting controller."""
    instance: str = attrs.field(default=None, kw_only=True, converter=_instance_or_hostname)
    """The name of the reporting process."""
    options: EventRecorderOptions = attrs.field(default=None, kw_only=True, converter=_options_or_default)
    """The limits and durations of the recorder."""
    _aggregator: Aggregator = attrs.field(init=False)
    _spam_filter: SpamFilter = attrs.field(init=False)
    _loop: WriteLoop = attrs.field(init=False)
    _series: OrderedDict[Hashable, Series] = attrs.field(factory=OrderedDict, init=False)  # ordered by last event
    _queue: WriteQueue = attrs.field(factory=WriteQueue, init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _has_ended: bool = attrs.field(default=False, init=False)  # whether run() has ended and was not called again
    _last_stamp: int = attrs.field(default=0, init=False)
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(LOG_PERIOD), init=False)
    _recorded: int = attrs.field(default=0, init=False)
    _written: int = attrs.field(default=0, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _filtered: int = attrs.field(default=0, init=False)
    _combined: int = attrs.field(default=0, init=False)
    _lost: list[Series] | None = attrs.field(default=None, init=False)  # the series that a flush has dropped

    def __attrs_post_init__(self) -> None:
        if not _QUALIFIED_NAME.fullmatch(self.controller):
            raise ValueError(
                "the controller of an event recorder must be a name of at most 63 letters, digits, '-', '_' and '.', "
                f"optionally prefixed with a domain and '/', not {self.controller!r}"
            )
        _check_word("reporting instance", self.instance)
        self._aggregator = Aggregator(self.options)
        self._spam_filter = SpamFilter(self.options)
        results = WriteResults(written=self._on_written, retried=self._on_retry, dropped=self._on_dropped)
        self._loop = WriteLoop(self._queue, EventWriter(self.options.rng, self._new_stamp), results)

    def __repr__(self) -> str:
        state = "running" if self._is_running else "not running"
        return f"<{type(self).__name__} of {self.controller!r}, {state}, {len(self._queue)} queued>"

    # --- recording ----------------------------------------------------------------------------------------------------

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
        """Record an event about an object without blocking.

        The Event is written to the namespace of the object, or to ``default`` if the object is cluster-scoped.

        Args:
            regarding: The object.  An ``ObjectReference`` can name a part of the object in its ``field_path``.
            type: ``Normal``, or ``Warning`` if a person should look at the object.
            reason: The reason for the event, a machine-readable word such as ``BackOff``, of at most 128 bytes.
            action: The action that succeeded or failed, such as ``Pulling``, of at most 128 bytes.
            note: A human-readable description, which is truncated to 1,024 bytes.
            related: Another object that the event involves.  The default is None.

        Raises:
            ValueError: If an API server would not accept an argument.
            TypeError: If ``regarding`` or ``related`` is not a Kubernetes object.
            RuntimeError: If this method is called outside of ``trio.run``.
        """
        if type not in ("Normal", "Warning"):
            raise ValueError(f"the type of an event must be 'Normal' or 'Warning', not {type!r}")
        observation = Observation(
            regarding=reference_to(regarding),
            related=None if related is None else reference_to(related),
            type=type,
            reason=_check_word("reason", reason),
            action=_check_word("action", action),
            note=truncate(note, MAX_NOTE),
        )
        api = without_retries(self._client.api(Event, namespace=observation.regarding.namespace or "default"))
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
            self._drop(1, "queue", f"the queue is full with {len(self._queue)} Events")
        elif not self._spam_filter.allows(observation):
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
            self._remember(series)
        if self._has_ended:
            self._log("ended", f"events not written, because run() has ended: {self._waiting()}")

    def _repeat(self, series: Series, now: float) -> None:
        series.count += 1
        series.observed, series.observed_at = self._wall_time(), now
        self._series.move_to_end(series.observation.key)
        if series.is_due(now):
            self._enqueue(series)  # if the queue is full, the next occurrence or the end of the series enqueues it

    def _remember(self, series: Series) -> None:
        evicted = remember(self._series, series.observation.key, series, self.options.cache_size)
        if evicted is not None and evicted.unwritten and not self._enqueue(evicted):
            self._drop(evicted.unwritten, "queue", "the queue is full, and the series was evicted")

    def _enqueue(self, series: Series) -> bool:
        """Add a series to the queue unless the queue is full, and return whether the series is in the queue."""
        if not series.is_queued:
            if len(self._queue) >= self.options.queue_size:
                return False
            self._queue.add(series)
            self._loop.notify()
        return True

    def _new_stamp(self) -> int:
        # Event names contain the stamp, so it must be unique even if the clock is coarse or set back.
        self._last_stamp = max(round(self.options.wall_clock() * 1e6) * 1_000, self._last_stamp + 1)
        return self._last_stamp

    def _wall_time(self) -> datetime:
        return datetime.fromtimestamp(self.options.wall_clock(), UTC)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write the recorded Events until cancelled.

        Raises:
            trio.BusyResourceError: If the recorder is already running.

        Cancellation:
            Each remaining Event or count is tried once.  These writes are shielded from cancellation, and take at most
            ``flush_period`` seconds in total.  The remaining Events are then dropped, and one log line shows the
            number of lost events and their objects.

        Ownership:
            All tasks have ended when this method returns.  A later run also writes the events that were recorded in the
            meantime.  If this method raises an error, unwritten events stay queued, and their number is logged.
        """
        if self._is_running:
            raise trio.BusyResourceError(f"the event recorder of {self.controller!r} is already running")
        self._is_running, self._has_ended = True, False
        try:
            task_status.started()
            try:
                await self._loop.run(self._end_idle_series)
            except trio.Cancelled:
                await self._flush()
                raise
            except Exception:
                if waiting := self._waiting():
                    logger.warning(
                        "event recorder %s: events not written when run() failed: %d", self.controller, waiting
                    )
                raise
        finally:
            self._is_running, self._has_ended = False, True

    def _end_idle_series(self) -> float:
        """End the series that were idle for too long, and enqueue their final counts.

        Returns:
            The time when the next series ends, on trio's clock.
        """
        while (series := next(iter(self._series.values()), None)) is not None:
            ends_at = series.observed_at + IDLE_PERIOD
            if ends_at > trio.current_time():
                return ends_at
            if series.unwritten and not self._enqueue(series):
                return math.inf  # tried again when the queue has room
            del self._series[series.observation.key]
        return math.inf

    def _on_written(self, series: Series, count: int) -> None:
        self._written += count
        if series.is_due(trio.current_time()):
            self._enqueue(series)  # it was recorded again in the meantime

    def _on_dropped(self, series: Series, error: Exception) -> None:
        self._forget(series)
        if self._lost is not None:
            self._lost.append(series)
        self._drop(series.unwritten, repr(error.__class__), f"event {series} cannot be written: {_text(series, error)}")

    def _forget(self, series: Series) -> None:
        if self._series.get(series.observation.key) is series:
            del self._series[series.observation.key]

    async def _flush(self) -> None:
        """Try to write each remaining Event once within ``flush_period``, and drop the rest."""
        lost = self._lost = []
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.options.flush_period):
                await self._loop.flush(self._enqueue_all)
        finally:
            self._drop_rest(lost)
            self._lost = None

    def _drop_rest(self, lost: list[Series]) -> None:
        """Drop all remaining Events, and log the lost events."""
        self._enqueue_all()
        for series in self._queue.clear():
            self._forget(series)
            self._dropped += series.unwritten
            lost.append(series)
        if lost:
            lost.sort(key=lambda series: -series.unwritten)
            named = ", ".join(f"{series.what} ({series.unwritten})" for series in lost[:MAX_NAMED])
            others = f" and {more} others" if (more := len(lost) - MAX_NAMED) > 0 else ""
            logger.warning(
                "event recorder %s: events not written at shutdown: %d: %s%s",
                self.controller,
                sum(series.unwritten for series in lost),
                one_line(named),
                others,
            )

    def _enqueue_all(self) -> None:
        """Enqueue all unwritten series, even if the queue is full."""
        for series in self._series.values():
            if series.unwritten and not series.is_queued:
                self._queue.add(series)

    # --- statistics and log -------------------------------------------------------------------------------------------

    def statistics(self) -> EventRecorderStatistics:
        """Return the current counts of the recorder."""
        return EventRecorderStatistics(
            recorded=self._recorded,
            written=self._written,
            waiting=self._waiting(),
            dropped=self._dropped,
            filtered=self._filtered,
            combined=self._combined,
            queued=len(self._queue),
            series=len(self._series),
            is_running=self._is_running,
        )

    def _waiting(self) -> int:
        return self._recorded - self._written - self._dropped - self._filtered

    def _drop(self, count: int, problem: str, why: str) -> None:
        self._dropped += count
        self._log(f"dropped: {problem}", f"events dropped: {count}, {self._dropped} in total; {why}")

    def _on_retry(self, series: Series, error: Exception) -> None:
        self._log(
            f"retried: {error.__class__!r}", f"event {series} cannot be written, retrying: {_text(series, error)}"
        )

    def _log(self, kind: str, text: str) -> None:
        """Log a warning, or use the level DEBUG if a warning of this kind was logged within ``LOG_PERIOD``."""
        level = logging.WARNING if self._log_limit.count(kind) else logging.DEBUG
        logger.log(level, "event recorder %s: %s", self.controller, one_line(text))
