"""What time it is in the embedded cluster, for the time stamps in its objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import trio
import trio.testing

Clock: TypeAlias = Callable[[], datetime]
"""Returns the time, with its time zone."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""When a mock clock starts, for people."""


def wall_clock() -> datetime:
    """Return the time that objects are stamped with.

    Under trio's ``MockClock`` it is :data:`EPOCH` plus the time on that clock, so that the stamps of a test are the
    same in every run and leases and ages follow virtual time.
    Anywhere else, outside of trio too, it is the real time.
    """
    try:
        clock = trio.lowlevel.current_clock()
    except RuntimeError:  # not inside trio
        return datetime.now(UTC)
    if isinstance(clock, trio.testing.MockClock):
        return EPOCH + timedelta(seconds=clock.current_time())
    return datetime.now(UTC)


def timestamp(clock: Clock) -> str:
    """Read the clock as ``metav1.Time`` is written: UTC, whole seconds."""
    return clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
