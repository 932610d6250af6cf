"""Options and statistics of an event recorder."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import final

import attrs


@final
@attrs.frozen(kw_only=True)
class EventRecorderOptions:
    """Limits and durations of an event recorder; the defaults are client-go's.

    Source: client-go ``tools/record/events_cache.go``, ``CorrelatorOptions``.
    """

    queue_size: int = 1_000
    """The maximum number of Events that wait to be written; further ones are dropped."""
    cache_size: int = 4_096
    """Maximum number of series, of groups of similar events, and of rate-limited objects that are remembered."""
    max_similar: int = 10
    """Similar events, which differ only in their note or ``related``, are combined from this number on."""
    similar_period: float = 600.0
    """Seconds without a similar event after which counting them restarts."""
    spam_burst: int = 25
    """How many Events of one type an object may get in a burst."""
    spam_refill_period: float = 300.0
    """Seconds after which it may get another one."""
    flush_period: float = 5.0
    """Seconds for which a cancelled :meth:`EventRecorder.run` may still write; the rest is dropped, and logged."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since 1970, for the times in Events; deadlines and periods are measured on trio's clock."""
    rng: random.Random = attrs.field(factory=random.Random, eq=False, repr=False)
    """Source of the jitter."""

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

    Each call of :meth:`EventRecorder.event` is counted in one of four fields:
    ``recorded == written + waiting + dropped + filtered``.
    """

    recorded: int
    """Calls of :meth:`EventRecorder.event`."""
    written: int
    """Calls that an Event on the server counts."""
    waiting: int
    """Calls that are not written yet; most are repetitions, whose count is written when their series ends."""
    dropped: int
    """Lost calls: the queue was full, or the server rejected them or did not respond in time."""
    filtered: int
    """Calls that the rate limit of their object discarded."""
    combined: int
    """Calls that became part of a combined event; another field also counts them."""
    queued: int
    """Events that wait to be created or patched."""
    series: int
    """Active series."""
    is_running: bool
    """Whether :meth:`EventRecorder.run` is running."""
