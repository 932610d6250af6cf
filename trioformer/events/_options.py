"""Options and statistics of an event recorder."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import final

import attrs

from .._surroundings import new_generator, wall_time


@final
@attrs.frozen(kw_only=True)
class EventRecorderOptions:
    """Limits and durations of an event recorder.

    The defaults are client-go's.

    Source: client-go ``tools/record/events_cache.go``, ``CorrelatorOptions``.
    """

    queue_size: int = 1_000
    """The maximum number of Events that wait to be written.  If the queue is full, new Events are dropped."""
    cache_size: int = 4_096
    """The maximum number of remembered series, and also of groups of similar events and of rate-limited objects."""
    max_similar: int = 10
    """Similar events are combined when there are at least this many.  Similar events differ only in their note or
    ``related`` object."""
    similar_period: float = 600.0
    """The time without a similar event after which the count of similar events restarts, in seconds."""
    spam_burst: int = 25
    """The maximum number of new Events of one type that an object may get in a burst."""
    spam_refill_period: float = 300.0
    """After a burst, the time until an object may get one more Event of that type, in seconds."""
    flush_period: float = 5.0
    """How long a cancelled :meth:`EventRecorder.run` may still write, in seconds.  Then the remaining Events are
    dropped and logged."""
    wall_clock: Callable[[], float] = wall_time
    """A function that returns the seconds since 1970, for the times in Events.  Deadlines and periods use trio's clock
    instead."""
    rng: random.Random = attrs.field(factory=new_generator, eq=False, repr=False)
    """The random number generator for the jitter of delays."""

    def __attrs_post_init__(self) -> None:
        for name in ("queue_size", "cache_size", "max_similar", "spam_burst"):
            count = getattr(self, name)
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")
        for name in ("similar_period", "spam_refill_period", "flush_period"):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds > 0):
                raise ValueError(f"{name} must be a number of seconds above 0, not {seconds}")


@final
@attrs.frozen(kw_only=True)
class EventRecorderStatistics:
    """Statistics of an event recorder.

    Each call to :meth:`EventRecorder.event` is counted in exactly one of the fields ``written``, ``waiting``,
    ``dropped`` and ``filtered``, so ``recorded == written + waiting + dropped + filtered``.
    """

    recorded: int
    """The number of calls to :meth:`EventRecorder.event`."""
    written: int
    """The number of calls that an Event on the server counts."""
    waiting: int
    """The number of calls that are not written yet.  Most of them repeat an event, so their count is written when the
    series ends."""
    dropped: int
    """The number of lost calls: the queue was full, or the server rejected the Event or did not respond in time."""
    filtered: int
    """The number of calls that were discarded because the object exceeded its rate limit."""
    combined: int
    """The number of calls that became part of a combined event.  Each of them is also counted in one of the four
    fields."""
    queued: int
    """The number of Events that wait to be created or patched."""
    series: int
    """The number of active series."""
    is_running: bool
    """Whether :meth:`EventRecorder.run` is running."""
