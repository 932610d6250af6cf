"""How an event recorder is set, and what it says of itself."""

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
    """The bounds and times of an event recorder; the defaults are client-go's.

    Source: client-go ``tools/events/event_broadcaster.go`` for series, ``tools/record/events_cache.go`` for similar
    events and spam, ``tools/record/event.go`` for tries.
    """

    queue_size: int = 1_000
    """How many events may wait to be written; the next ones are dropped."""
    cache_size: int = 4_096
    """How many series are known at once, and of how many objects and reasons it is known what came before."""
    max_similar: int = 10
    """From this many similar events on, which differ in their note or ``related`` only, they are combined into one."""
    similar_period: float = 600.0
    """Seconds without a similar event after which they are counted from the beginning."""
    spam_burst: int = 25
    """How many Events of one type an object may get at once."""
    spam_refill_period: float = 300.0
    """Seconds after which it may get one more."""
    idle_period: float = 360.0
    """Seconds without the same event after which a series is over: its count is written, and the next one begins
    anew."""
    refresh_period: float = 1_800.0
    """Seconds after which the count of a series that goes on is written."""
    max_tries: int = 12
    """How often an event is sent before it is dropped, if that is because of the server or the way to it.

    It is dropped after ``max_tries * retry_period`` at the latest, by requests that take long or a server that asks for
    more patience."""
    retry_period: float = 10.0
    """Seconds between two tries; those before the second try are shortened at random."""
    request_deadline: float = 30.0
    """Seconds that a single request may take; fewer when fewer are left until its event is dropped."""
    flush_period: float = 5.0
    """Seconds that a cancelled :meth:`EventRecorder.run` may still write for."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since 1970, for what is written; deadlines and periods are measured on trio's clock."""
    rng: random.Random = attrs.field(factory=random.Random, eq=False, repr=False)
    """Where the jitter comes from."""

    def __attrs_post_init__(self) -> None:
        for name in ("queue_size", "cache_size", "max_similar", "spam_burst", "max_tries"):
            count = getattr(self, name)
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")
        for name in (
            "similar_period",
            "spam_refill_period",
            "idle_period",
            "refresh_period",
            "retry_period",
            "request_deadline",
            "flush_period",
        ):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds > 0):
                raise ValueError(f"{name} must be a number of seconds above 0, not {seconds}")


@final
@attrs.frozen(kw_only=True)
class EventRecorderStatistics:
    """How an event recorder does, at one moment.

    Every call of :meth:`EventRecorder.event` is in one of four: ``recorded == written + waiting + dropped + filtered``.
    """

    recorded: int
    """Events that it was told of."""
    written: int
    """Those that the server has counted."""
    waiting: int
    """Those that are not written yet; most are repetitions, which are only counted until their series is over."""
    dropped: int
    """Those that were lost: the queue was full, or the server refused them, or it did not answer for too long, and may
    have them all the same."""
    filtered: int
    """Those that were left out because their object had too many."""
    combined: int
    """Those that became part of a combined event; they are among the others, too."""
    queued: int
    """How many Events are to be created or changed as soon as may be."""
    series: int
    """How many series are known."""
    is_running: bool
    """Whether it writes now."""
