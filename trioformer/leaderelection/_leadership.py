"""What leader code receives, and the state behind it: how long the leadership is certain, and why it was lost."""

from __future__ import annotations

import enum
import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Final, final

import attrs
import trio

from .._util import NoPublicConstructor
from ..models import EMPTY_MAP

JITTER: Final = 1.2
"""After a failure a candidate waits for 1 to ``1 + JITTER`` retry periods (client-go's ``JitterFactor``)."""

RETRY_FACTORS: Final = (0.4, 0.8)
"""A candidate reads the Lease again after a random delay between these multiples of the retry period.

The delay is how late the candidate sees a renewal, and therefore how late it takes over after the last one.
client-go's candidates wait as long as after a failure and do not read the Lease at the time of its expiry, which adds
up to 4.4 retry periods.
"""


_BOOT_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def boot_clock() -> float:
    """Return seconds of a clock that cannot be set, and that includes suspend time where the system supports that."""
    return time.perf_counter() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


@final
@attrs.frozen(kw_only=True)
class LeaderElectionOptions:
    """Durations and callbacks of an election.

    The defaults and the rule ``lease_duration > renew_deadline > 1.2 * retry_period`` are client-go's.
    Use the same durations for all candidates.
    """

    lease_duration: float = 15.0
    """Seconds without a renewal after which another candidate takes over.  The Lease holds it rounded up to a whole
    number."""
    renew_deadline: float = 10.0
    """Seconds without a renewal after which the leader code is cancelled.  It has the rest of ``lease_duration`` to
    clean up."""
    retry_period: float = 2.0
    """Seconds between two renewals.  Candidates read the Lease twice as often, when it expires, and when they see in a
    watch that it was released.

    So another candidate leads within ``lease_duration + retry_period`` after the last renewal of a leader that failed,
    and within 0.2 s after a release; within ``retry_period`` if the Lease cannot be watched."""
    grace_period: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    """Seconds of only permanent errors, such as 403, after which a candidate raises the last one.
    With infinity it retries forever, as client-go does."""
    labels: Mapping[str, str] = EMPTY_MAP
    """Labels to set on the Lease; its other labels are kept."""
    on_new_leader: Callable[[str], None] | None = None
    """Called with the new holder's identity whenever the observed holder changes, also to this candidate; with ``""``
    if the lease has no holder.  Must return quickly; an exception from it ends the election."""
    on_overrun: Callable[[], None] | None = None
    """Called if the leader code still runs when another candidate may take over; this is also logged.
    A program that must never have two leaders can exit here with ``os._exit``.  Must return quickly."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since 1970, for the times in the Lease; no decision depends on it."""
    boot_clock: Callable[[], float] = boot_clock
    """Seconds since an arbitrary time, including the time that the machine was suspended, when trio's clock stops."""
    rng: random.Random = attrs.field(factory=random.Random, eq=False, repr=False)
    """Source of the jitter."""

    def __attrs_post_init__(self) -> None:
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number of seconds above 0, not {value}")
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"lease_duration must be longer than renew_deadline, but {self.lease_duration:g} s is not longer than "
                f"{self.renew_deadline:g} s; the leader code has the difference to clean up"
            )
        if not self.renew_deadline > JITTER * self.retry_period:
            raise ValueError(
                f"renew_deadline must be longer than {JITTER} * retry_period, but {self.renew_deadline:g} s is not "
                f"longer than {JITTER * self.retry_period:g} s"
            )

    @property
    def request_deadline(self) -> float:
        """Seconds allowed for a single request: two requests fit into ``renew_deadline``, as in client-go."""
        return min(max(1.0, self.renew_deadline / 2), self.renew_deadline)


@final
@attrs.frozen
class Stamp:
    """The same moment on three clocks."""

    trio: float
    """Trio's clock, which deadlines refer to."""
    machine: float
    """The real clock, which stops while the machine is suspended; trio's may be a virtual one in tests."""
    boot: float
    """A clock that includes the time of suspends."""


@final
@attrs.frozen
class Clocks:
    """Measures elapsed time; suspend time counts."""

    boot_clock: Callable[[], float]

    def now(self) -> Stamp:
        """Read all clocks."""
        return Stamp(trio.current_time(), time.perf_counter(), self.boot_clock())

    def age(self, then: Stamp) -> float:
        """Return the seconds since a moment, including the time that the machine was suspended.

        The wall clock is not used, because it can be set.
        """
        now = self.now()
        passed = now.trio - then.trio
        suspended = now.boot - then.boot - max(passed, now.machine - then.machine)
        return passed + max(0.0, suspended)


class TermState(enum.Enum):
    """The state of a leadership; it only moves downwards."""

    HELD = "the leader code runs, and the lease is renewed in time"
    LOST = "the leader code is cancelled and still runs; the lease is renewed until another candidate holds it"
    ENDED = "the leader code has ended"


@final
@attrs.frozen
class Loss:
    """Why a leadership was lost."""

    reason: str
    """The reason, in words."""
    cause: Exception | None
    """The error that it followed from, if any."""


@final
@attrs.define(eq=False)
class Term:
    """State of one leadership: written by its lease claim and its :class:`Hold`, read by :class:`Leadership`."""

    identity: str
    transitions: int
    clocks: Clocks
    lease_duration: float
    renewed_at: Stamp
    """When the last successful renewal was sent."""
    state: TermState = attrs.field(default=TermState.HELD, init=False)
    loss: Loss | None = attrs.field(default=None, init=False)
    """The loss; None unless the leadership was lost before the leader code ended."""
    lost: trio.Event = attrs.field(factory=trio.Event, init=False)
    unexpected_error: Exception | None = attrs.field(default=None, init=False)
    """An exception of a renewal or a callback that is not retried."""
    has_successor: bool = attrs.field(default=False, init=False)
    """Whether another candidate holds the lease, or has held it."""

    @property
    def is_held(self) -> bool:
        """See :attr:`Leadership.is_held`."""
        return self.state is TermState.HELD and self.age() < self.lease_duration

    def age(self) -> float:
        """Return the seconds since the last successful renewal was sent."""
        return self.clocks.age(self.renewed_at)

    def lose(self, loss: Loss) -> None:
        """Record that the leadership is lost; only from ``HELD``."""
        self.state, self.loss = TermState.LOST, loss
        self.lost.set()

    def end(self) -> None:
        """Record that the leader code has ended."""
        self.state = TermState.ENDED


@final
@attrs.define(eq=False)
class TermCounts:
    """The terms of one elector, counted."""

    terms: int = 0
    losses: int = 0
    overruns: int = 0


@final
@attrs.define(eq=False, repr=False)
class Leadership(metaclass=NoPublicConstructor):
    """One term as the leader, passed to the leader code.

    The leader code is cancelled when the leadership is lost, which takes effect at its next checkpoint.  After its
    process was stopped or its machine suspended, it may run until then although another process leads.  So check
    :attr:`is_held` immediately before each action with an outside effect, and write :attr:`transitions` with it.
    """

    _term: Term

    def __repr__(self) -> str:
        term = self._term
        state = (
            "over" if term.state is TermState.ENDED else "held" if term.loss is None else f"lost: {term.loss.reason}"
        )
        return f"<{type(self).__name__} of {term.identity!r}, transitions {term.transitions}, {state}>"

    @property
    def identity(self) -> str:
        """The leader's identity."""
        return self._term.identity

    @property
    def transitions(self) -> int:
        """The Lease's ``leaseTransitions``, which increases with every change of the holder.

        A fencing token: stored with each write, it distinguishes late writes of a former leader from those of the
        current one.  It restarts from 0 when the Lease is deleted, its holder does not create it again, and the next
        leader has never read it.
        """
        return self._term.transitions

    @property
    def is_held(self) -> bool:
        """Whether no other candidate can have taken over yet, and the leader code has not been cancelled."""
        return self._term.is_held

    @property
    def expires_at(self) -> float:
        """When another candidate may take over, on trio's clock, if the lease is not renewed before.

        It counts from when the last successful renewal was *sent*, so it is never later than candidates expect.
        """
        return trio.current_time() + self._term.lease_duration - self._term.age()


@final
@attrs.frozen(kw_only=True)
class LeaderElectionStatistics:
    """Statistics of a :class:`LeaderElector`."""

    leader: str
    """Identity of the last observed holder of the lease; empty without one."""
    is_leader: bool
    """Whether this candidate leads."""
    terms: int
    """How often it became the leader."""
    losses: int
    """How often it lost the leadership while the leader code ran."""
    overruns: int
    """How often the leader code still ran when another candidate could take over."""
    renewals: int
    """How often it renewed the lease."""
    failures: int
    """Failed requests, including conflicts."""
    renewal_age: float
    """Seconds since the last successful renewal was sent; infinity unless it leads."""
    last_error: Exception | None
    """The last failure."""
