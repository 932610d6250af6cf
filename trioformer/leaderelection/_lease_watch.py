"""Watch the Lease, so that a candidate is notified of a release at once.

The problem: after a release, a candidate that only polls may take up to a retry period to take over.  A watch reports
the release within milliseconds, but it may be late, fail, or be forbidden.  So watch events are only hints:

- A watch event never decides which candidate leads.  If an event shows a Lease without a holder, the candidate tries
  to acquire the Lease at once.  If several candidates do so, only one of their updates succeeds, and the others fail
  with a conflict.
- If an event shows a renewal, the candidate puts off its next poll.  Without such events, it polls as often as without
  a watch.
- All candidates are notified of a release at the same time.  Each candidate waits for a random time of a few
  milliseconds, and does not try if the watch has reported a new holder by then.

A watch starts at the version that a poll has read. So no ``list`` request is needed, and no release is missed.  Watch
requests do not count against the client's rate limit, except for a small list after a lost connection.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Final, final

import attrs
import trio

from .._retry import REQUEST_ERRORS
from ..client import WatchEvent
from ..errors import DecodeError, ExpiredError, ForbiddenError
from ..models.coordination_v1 import Lease
from ._lease_lock import LeaseLock, LeaseRecord

logger = logging.getLogger("trioformer.leaderelection")

JITTER: Final = 0.05
"""The longest random delay of a candidate after a release, in seconds.  It is longer than two requests usually take,
so most candidates observe the new holder before they try."""

REOPEN_PERIOD: Final = 60.0
"""The delay before a watch that the server rejected is requested again, in seconds."""


@final
@attrs.define(eq=False)
class LeaseWatch:
    """A watch that notifies a candidate when the Lease is released.

    Ownership:
        The object owns no tasks.  The candidate runs :meth:`run` while it waits for the Lease.
    """

    _lock: LeaseLock
    _rng: random.Random
    _on_record: Callable[[LeaseRecord], None]
    """Called with the record of each event that shows a holder."""
    _version: str = attrs.field(default="", init=False)  # of the Lease, when a poll last read it
    _polled: trio.Event = attrs.field(factory=trio.Event, init=False)  # replaced with each poll
    _released: trio.Event = attrs.field(factory=trio.Event, init=False)  # set while the Lease has no holder
    _logged: str = attrs.field(default="", init=False)

    def begin(self) -> None:
        """Reset the state before waiting for the Lease again."""
        self._version, self._released = "", trio.Event()

    def record_poll(self) -> None:
        """Record that a poll has read the Lease, so that a watch can start at its version."""
        self._version = self._lock.resource_version
        self._polled.set()
        self._polled = trio.Event()

    def use_hint(self) -> None:
        """Clear the last hint, because the candidate now tries to acquire the Lease."""
        if self._released.is_set():
            self._released = trio.Event()

    async def wait_released(self) -> None:
        """Wait until an event reports a release, and no event reports a new holder during a random delay."""
        while True:
            released = self._released
            await released.wait()
            await trio.sleep(self._rng.uniform(0, JITTER))
            if self._released is released:
                return

    async def run(self) -> None:
        """Watch the Lease until cancelled.  Errors are only logged, because the candidate also polls."""
        unusable = ""
        while True:
            while self._version in ("", unusable):
                await self._polled.wait()
            version = self._version
            try:
                async with self._lock.watch(version, on_retry=self._on_retry) as events:
                    async for event in events:
                        self._notice(event)
            except ExpiredError as error:
                logger.debug("lease %s: the watch restarts at the next change: %s", self._lock, error)
                unusable = version
            except REQUEST_ERRORS as error:
                self._log(f"{error}; grant the verb watch for leases" if isinstance(error, ForbiddenError) else error)
                await trio.sleep(REOPEN_PERIOD)
            except Exception as error:  # noqa: BLE001  # such as a closed client, which the next poll raises
                self._log(repr(error))
                return

    def _notice(self, event: WatchEvent[Lease]) -> None:
        if event.object.name != self._lock.name:
            return  # the server ignores field selectors
        try:
            record = LeaseRecord.of(event.object)
        except DecodeError:
            return  # the next poll raises it
        if not record.holder_identity and event.type != "DELETED":
            self._released.set()
            return
        self.use_hint()
        if event.type != "DELETED":
            self._on_record(record)

    def _on_retry(self, error: Exception) -> None:
        # The polls warn about each outage.
        logger.debug("lease %s: the watch was interrupted: %s", self._lock, error)

    def _log(self, problem: object) -> None:
        """Log a problem as a warning, or at DEBUG if it repeats the last problem."""
        line = f"cannot be watched, a release is noticed up to a retry period later: {problem}"
        logger.log(logging.DEBUG if line == self._logged else logging.WARNING, "lease %s: %s", self._lock, line)
        self._logged = line
