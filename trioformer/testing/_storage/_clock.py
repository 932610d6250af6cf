"""The clock of the embedded cluster, for the timestamps in its objects."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import trio

Clock: TypeAlias = Callable[[], datetime]
"""Returns the time, with its time zone."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at which a mock clock starts."""


def wall_clock() -> datetime:
    """Return the time for timestamps in objects.

    Under trio's ``MockClock``, the time is :data:`EPOCH` plus the virtual time.  So timestamps in tests are
    reproducible, and leases and ages follow virtual time.
    Under other clocks, and outside trio, this function returns the real time.
    """
    try:
        clock = trio.lowlevel.current_clock()
    except RuntimeError:  # not inside trio
        return datetime.now(UTC)
    # Importing trio.testing would import pytest, which doubles the start of a program with an embedded server.
    testing = sys.modules.get("trio.testing")
    if testing is not None and isinstance(clock, testing.MockClock):
        return EPOCH + timedelta(seconds=clock.current_time())
    return datetime.now(UTC)


def timestamp(clock: Clock) -> str:
    """Return the current time of a clock in the format of ``metav1.Time``, in UTC and whole seconds."""
    return _text(math.floor(clock().timestamp()))


@functools.lru_cache(16)
def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00") + "Z"
