"""Who may send a request again after a connection failure, and when: the callers of one client take turns.

The problem: when a server returns after an outage, every watch of a client wants to be opened at once, and each has
waited for another time.
So the first response wakes those that sleep, and they go one after another, at a rate that a server can bear; during
the outage itself, at a much lower rate.
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import trio

FAILING_INTERVAL: Final = 1 / 5
"""Seconds between two retries while requests fail."""
ANSWERING_INTERVAL: Final = 1 / 46
"""Seconds between two retries while requests have responses; 50 a second is the limit for one client."""
RECENT: Final = 1.0
"""Seconds after a response for which failures do not slow down the line: they may be those of one path only."""
WAKE_PERIOD: Final = 15.0
"""Seconds between two wake-ups: a server that fails again and again must not be asked by everybody each time."""
MIN_SLEEP: Final = 0.5
"""Seconds that a caller sleeps in any case, unless its own time comes earlier."""


@final
@attrs.define(eq=False)
class RetryLine:
    """Lets the callers of one client send again: when their time comes or the server answers, and in a line."""

    _is_failing: bool = attrs.field(default=False, init=False)
    """Whether requests of the client fail, and none has had a response lately."""
    responded_at: float = attrs.field(default=-math.inf, init=False)
    """When a request of the client last had a response."""
    _must_wake: bool = attrs.field(default=False, init=False)
    """Whether a request has failed since the last wake-up."""
    _woken_at: float = attrs.field(default=-math.inf, init=False)
    _passed_at: float = attrs.field(default=-math.inf, init=False)
    _sleepers: dict[trio.CancelScope, float] = attrs.field(factory=dict, init=False)
    """The callers whose time has not come, and when they began to sleep; the deadline of each is its time."""
    _turns: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The line; the deadline of the first is when it may pass, the others have none."""

    async def wait(self, until: float) -> None:
        """Sleep until a time, or until the server answers again, and then wait for a turn.

        Args:
            until: A time of trio's clock.

        Cancellation:
            The next caller moves up.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        sleeper = trio.CancelScope(deadline=until)
        self._sleepers[sleeper] = trio.current_time()
        try:
            with sleeper:
                await trio.sleep_forever()
        finally:
            del self._sleepers[sleeper]
        turn = trio.CancelScope()
        self._turns[turn] = None
        self._set_first()
        try:
            with turn:
                await trio.sleep_forever()
            self._passed_at = trio.current_time()
        finally:
            del self._turns[turn]
            self._set_first()

    def record_response(self) -> None:
        """Record that a request has a response."""
        self.responded_at = trio.current_time()
        if self._is_failing:
            self._is_failing = False
            self._set_first()
        if self._must_wake:
            self._wake()

    def record_failure(self) -> None:
        """Record that a connection failed."""
        self._must_wake = True
        if not self._is_failing and trio.current_time() >= self.responded_at + RECENT:
            self._is_failing = True
            self._set_first()

    def _wake(self) -> None:
        now = trio.current_time()
        if now < self._woken_at + WAKE_PERIOD:
            return  # a response after that wakes those that still sleep
        self._must_wake = False
        if not self._sleepers:
            return
        self._woken_at = now
        for sleeper, began_at in self._sleepers.items():
            sleeper.deadline = min(sleeper.deadline, max(now, began_at + MIN_SLEEP))

    def _set_first(self) -> None:
        # The first alone has a deadline: trio runs the tasks that wake together in any order.
        first = next(iter(self._turns), None)
        if first is not None:
            first.deadline = self._passed_at + (FAILING_INTERVAL if self._is_failing else ANSWERING_INTERVAL)
