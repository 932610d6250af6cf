"""Record Events about objects, which ``kubectl describe`` and ``kubectl events`` show.

::

    event() ─▶ combine similar ones ─▶ known series? ─ yes ─▶ count it, enqueue it if due ──▶┐
               from the 10th on             │ no                                             │
                                            └▶ rate limit exceeded? ─ no ─▶ enqueue it ──────┴▶ run(): create or patch
                                                        └ yes ─▶ filter it  (drop it if 1,000 wait)

:meth:`EventRecorder.event` makes these decisions immediately and never blocks.
The queue holds series, not events, so an event that repeats before its series is written costs no request.
It has a line for each object (``_write_queue.py``), and ``_write_loop.py`` decides which one is written next.

Source: client-go ``tools/events``, and ``tools/record`` for combining and filtering.
"""

from __future__ import annotations

import logging
import math
import re
import socket
from collections import OrderedDict
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, Literal, final

import attrs
import trio

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
"""Seconds in which a problem of the same kind is logged once."""

IDLE_PERIOD: Final = 360.0
"""Seconds without an equal event after which a series ends: its count is written, and the next event starts a new
series (client-go ``tools/events/event_broadcaster.go``)."""

MAX_NAMED: Final = 5
"""The maximum number of series in the log line about lost events."""

_QUALIFIED_NAME: Final = re.compile(rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")


def _options_or_default(options: EventRecorderOptions | None) -> EventRecorderOptions:
    return EventRecorderOptions() if options is None else options


def _instance_or_hostname(instance: str | None) -> str:
    return truncate(socket.gethostname(), MAX_WORD) if instance is None else instance


def _check_word(name: str, value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_WORD:
        raise ValueError(f"the {name} of an event must have 1 to {MAX_WORD} bytes, not {len(value.encode())}")
    return value


def _text(series: Series, error: Exception) -> str:
    """The text of an error, without the name at the beginning of the line."""
    return str(error).removeprefix(f"event {series}: ") or repr(error)


@final
@attrs.define(eq=False, repr=False)
class EventRecorder:
    """Records Events about objects without blocking its caller.

    For example::

        recorder = EventRecorder(client, controller="example.com/widgets")
        await nursery.start(recorder.run)
        recorder.event(widget, reason="Resized", action="Resizing", note="resized from 3 to 5")

    :meth:`event` queues Events; the task that runs :meth:`run` writes them.  Without that task they stay queued.

    - An equal event creates no new Event: the ``series`` of the existing one counts it.  The second occurrence is
      written immediately, the following ones every half hour, or after six minutes without another.
      Events are equal if all their fields are, except for the version of the objects.
    - Similar events differ only in their note or ``related``.  The tenth and the following ones are combined into one,
      until ten minutes pass without another.  Its note begins with ``(combined from similar events):``.
    - An object gets 25 Events of a type, and then one more every five minutes.  The others are filtered.
    - At most 1,000 Events wait to be written; further ones are dropped, and so are Events that the server rejects or
      that fail 12 times.
    - The Events of an object are written in order.  A retry delays only Events of its object.

    None of these raises an exception.  Drops are logged, at most once a minute for each reason, and
    :meth:`statistics` counts everything.

    The client must stay open until :meth:`run` has ended, so open it outside.
    The process needs a role with ``create`` and ``patch`` for ``events`` in ``events.k8s.io``.

    Args:
        client: The client.
        controller: Name of the reporting controller, such as ``example.com/widgets`` or ``widget-controller``.
        instance: Name of the reporting process; None for the host name.
        options: Limits and durations.

    Raises:
        ValueError: The constructor, if a server would reject ``controller`` or ``instance``.

    Ownership:
        It owns no task; the caller owns :meth:`run`.  It belongs to one ``trio.run``; another thread uses
        ``trio.from_thread.run_sync``.

    Source: client-go ``tools/events``; combining and filtering ``tools/record``, which writes to core/v1.
    """

    _client: Client
    controller: str = attrs.field(kw_only=True)
    """Name of the reporting controller."""
    instance: str = attrs.field(default=None, kw_only=True, converter=_instance_or_hostname)
    """Name of the reporting process."""
    options: EventRecorderOptions = attrs.field(default=None, kw_only=True, converter=_options_or_default)
    """Limits and durations."""
    _aggregator: Aggregator = attrs.field(init=False)
    _spam_filter: SpamFilter = attrs.field(init=False)
    _loop: WriteLoop = attrs.field(init=False)
    _series: OrderedDict[Hashable, Series] = attrs.field(factory=OrderedDict, init=False)  # ordered by last event
    _queue: WriteQueue = attrs.field(factory=WriteQueue, init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _has_ended: bool = attrs.field(default=False, init=False)  # it has run, and does not run now
    _last_stamp: int = attrs.field(default=0, init=False)
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(LOG_PERIOD), init=False)
    _recorded: int = attrs.field(default=0, init=False)
    _written: int = attrs.field(default=0, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _filtered: int = attrs.field(default=0, init=False)
    _combined: int = attrs.field(default=0, init=False)
    _lost: list[Series] | None = attrs.field(default=None, init=False)  # what a flush has dropped

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
        """Record an event about an object; returns immediately.

        The Event is written to the object's namespace, or to ``default`` if it has none.

        Args:
            regarding: The object.  A reference can name a part of it in its ``field_path``.
            type: ``Normal``, or ``Warning`` if a person should look at it.
            reason: The reason, a machine-readable word such as ``BackOff``; at most 128 bytes.
            action: The action that was done or failed, such as ``Pulling``; at most 128 bytes.
            note: A human-readable description.  It is truncated to 1,024 bytes.
            related: Another object that is involved.

        Raises:
            ValueError: A server would reject an argument.
            TypeError: An object is not a Kubernetes object.
            RuntimeError: It is called outside of ``trio.run``.
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
            self._log("ended", f"recorded after the end of run(), events wait until it runs again: {self._waiting()}")

    def _repeat(self, series: Series, now: float) -> None:
        series.count += 1
        series.observed, series.observed_at = self._wall_time(), now
        self._series.move_to_end(series.observation.key)
        if series.is_due(now):
            self._enqueue(series)  # if the queue is full, the next occurrence or the end of the series enqueues it

    def _remember(self, series: Series) -> None:
        evicted = remember(self._series, series.observation.key, series, self.options.cache_size)
        if evicted is not None and evicted.unwritten and not self._enqueue(evicted):
            self._drop(evicted.unwritten, "queue", "the queue is full, and their series was evicted")

    def _enqueue(self, series: Series) -> bool:
        """Add a series to the queue; False if the queue is full."""
        if not series.is_queued:
            if len(self._queue) >= self.options.queue_size:
                return False
            self._queue.add(series)
            self._loop.notify()
        return True

    def _new_stamp(self) -> int:
        # Names are derived from it, so it must be unique even if the clock is coarse or set back.
        self._last_stamp = max(round(self.options.wall_clock() * 1e6) * 1_000, self._last_stamp + 1)
        return self._last_stamp

    def _wall_time(self) -> datetime:
        return datetime.fromtimestamp(self.options.wall_clock(), UTC)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write the recorded Events until cancelled.

        Raises:
            trio.BusyResourceError: It is already running.

        Cancellation:
            It writes the remaining Events and counts of series: each is tried once, for ``flush_period`` seconds in
            total, while it is shielded.  The rest is dropped; one log line has the number of lost events and their
            objects.

        Ownership:
            Its tasks have ended when it returns.  A later run continues with the events recorded meanwhile.
            If it ends with an error, unwritten events stay queued, which is logged.
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
        """End the series that were idle for too long, and enqueue their final counts; return when the next one ends."""
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
        """Try to write everything once within ``flush_period``, and drop the rest."""
        lost = self._lost = []
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.options.flush_period):
                await self._loop.flush(self._enqueue_all)
        finally:
            self._drop_rest(lost)
            self._lost = None

    def _drop_rest(self, lost: list[Series]) -> None:
        """Drop the rest, and log all lost events."""
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
        """Enqueue all unwritten series, ignoring the limit."""
        for series in self._series.values():
            if series.unwritten and not series.is_queued:
                self._queue.add(series)

    # --- statistics and log -------------------------------------------------------------------------------------------

    def statistics(self) -> EventRecorderStatistics:
        """Return counts of recorded, written, waiting, dropped, filtered and combined events, and of the queue."""
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
        """Log a warning, or at DEBUG if one of the same kind was logged less than ``LOG_PERIOD`` ago."""
        level = logging.WARNING if self._log_limit.count(kind) else logging.DEBUG
        logger.log(level, "event recorder %s: %s", self.controller, one_line(text))
