"""The state of a leadership: how long it is guaranteed, and why it was lost."""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Callable, Mapping
from typing import Final, final

import attrs
import trio

from .._surroundings import boot_time, machine_time, new_generator, wall_time
from .._util import NoPublicConstructor
from ..models._internal import EMPTY_MAP

JITTER: Final = 1.2
"""After a failure, a candidate waits for 1 to ``1 + JITTER`` retry periods, as with client-go's ``JitterFactor``."""

RETRY_FACTORS: Final = (0.4, 0.8)
"""A candidate reads the Lease again after a random delay between these multiples of the retry period.

With a longer delay, the candidate observes the last renewal later, and therefore takes over later.
client-go's candidates always wait as long as after a failure, and do not read the Lease when it expires.  This delays
the takeover by up to 4.4 retry periods.
"""


@final
@attrs.frozen(kw_only=True)
class LeaderElectionOptions:
    """The durations and callbacks of an election.

    The defaults and the rule ``lease_duration > renew_deadline > 1.2 * retry_period`` are the same as in client-go.
    Use the same durations for all candidates.
    """

    lease_duration: float = 15.0
    """Seconds without a renewal after which another candidate takes over.  In the Lease, the value is rounded up to a
    whole number."""
    renew_deadline: float = 10.0
    """Seconds without a renewal after which the leader code is cancelled.  The leader code then has the rest of
    ``lease_duration`` to clean up."""
    retry_period: float = 2.0
    """Seconds between two renewals.  Candidates read the Lease about twice as often, and also when it expires or a
    watch reports its release.

    If a leader fails, another candidate leads within ``lease_duration + retry_period`` after the last renewal.  After
    a release, another candidate leads within 0.2 s, or within ``retry_period`` if the Lease cannot be watched."""
    grace_period: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    """Seconds after which a candidate raises the error if it has only received permanent errors, such as 403.  With
    ``math.inf``, the candidate retries forever, as client-go does."""
    labels: Mapping[str, str] = EMPTY_MAP
    """Labels to set on the Lease.  Other labels of the Lease are kept."""
    on_new_leader: Callable[[str], None] | None = None
    """A function that is called with the identity of the new holder whenever the observed holder changes, even if this
    candidate is the new holder.  The identity is ``""`` if the lease has no holder.  The function must return quickly.
    If it raises an exception, the election ends."""
    on_overrun: Callable[[], None] | None = None
    """A function that is called if the leader code still runs when another candidate may take over, which is also
    logged.  The function must return quickly.  If there must never be two leaders, the function can end the process
    with ``os._exit``."""
    wall_clock: Callable[[], float] = wall_time
    """A function that returns the seconds since 1970.  The function only provides the times in the Lease, and no
    decision depends on it."""
    boot_clock: Callable[[], float] = boot_time
    """A function that returns the seconds since an arbitrary time, including the time that the machine was suspended.
    Trio's clock stops during a suspend."""
    rng: random.Random = attrs.field(factory=new_generator, eq=False, repr=False)
    """The random number generator for the jitter."""

    def __attrs_post_init__(self) -> None:
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number of seconds above 0, not {value}")
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"lease_duration must be longer than renew_deadline, but {self.lease_duration:g} s is not longer than "
                f"{self.renew_deadline:g} s; the leader code needs the difference to clean up"
            )
        if not self.renew_deadline > JITTER * self.retry_period:
            raise ValueError(
                f"renew_deadline must be longer than {JITTER} * retry_period, but {self.renew_deadline:g} s is not "
                f"longer than {JITTER * self.retry_period:g} s"
            )

    @property
    def request_deadline(self) -> float:
        """The time limit of a single request, in seconds.

        As in client-go, two requests fit into ``renew_deadline``.
        """
        return min(max(1.0, self.renew_deadline / 2), self.renew_deadline)


@final
@attrs.frozen
class Stamp:
    """A point in time, as read from three clocks."""

    trio: float
    """The time on trio's clock, which deadlines refer to."""
    machine: float
    """The time on the real clock, which stops while the machine is suspended.  In tests, trio's clock may be
    virtual."""
    boot: float
    """The time on a clock that continues while the machine is suspended."""


@final
@attrs.frozen
class Clocks:
    """The clocks that measure elapsed time, including the time during which the machine was suspended."""

    boot_clock: Callable[[], float]

    def now(self) -> Stamp:
        """Read all clocks."""
        return Stamp(trio.current_time(), machine_time(), self.boot_clock())

    def age(self, then: Stamp) -> float:
        """Return the seconds since ``then``, including the time during which the machine was suspended.

        The wall clock is not used, because it can be set.
        """
        now = self.now()
        passed = now.trio - then.trio
        suspended = now.boot - then.boot - max(passed, now.machine - then.machine)
        return passed + max(0.0, suspended)


class TermState(enum.Enum):
    """The state of a leadership, which changes only in the order in which the members are defined."""

    HELD = "the leader code runs, and the lease is renewed in time"
    LOST = "the leader code is cancelled and still runs; the lease is renewed until another candidate holds it"
    ENDED = "the leader code has ended"


@final
@attrs.frozen
class Loss:
    """The reason why a leadership was lost."""

    reason: str
    """The reason for the loss, as a text."""
    cause: Exception | None
    """The error that caused the loss, if any."""


@final
@attrs.define(eq=False)
class Term:
    """The state of one leadership, written by :class:`LeaseClaim` and :class:`Hold` and read by :class:`Leadership`."""

    identity: str
    transitions: int
    clocks: Clocks
    lease_duration: float
    renewed_at: Stamp
    """The time when the last successful renewal was sent."""
    state: TermState = attrs.field(default=TermState.HELD, init=False)
    loss: Loss | None = attrs.field(default=None, init=False)
    """The loss, or None if the leadership was not lost before the leader code ended."""
    lost: trio.Event = attrs.field(factory=trio.Event, init=False)
    unexpected_error: Exception | None = attrs.field(default=None, init=False)
    """An exception that is not retried, from a renewal or a callback."""
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
        """Record that the leadership is lost.  The state must be ``HELD``."""
        self.state, self.loss = TermState.LOST, loss
        self.lost.set()

    def end(self) -> None:
        """Record that the leader code has ended."""
        self.state = TermState.ENDED


@final
@attrs.define(eq=False)
class TermCounts:
    """Counts of an elector's terms, losses and overruns."""

    terms: int = 0
    losses: int = 0
    overruns: int = 0


@final
@attrs.define(eq=False, repr=False)
class Leadership(metaclass=NoPublicConstructor):
    """The current term of a leader, passed to the leader code.

    When the leadership is lost, the leader code is cancelled at its next checkpoint.  If the process was stopped or
    the machine suspended, another process may already lead before this checkpoint.  So check :attr:`is_held`
    immediately before each action with an external effect, and store :attr:`transitions` with each external write.
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
        """The identity of the leader."""
        return self._term.identity

    @property
    def transitions(self) -> int:
        """The Lease's ``leaseTransitions``, a number that increases with every change of the holder.

        Use this number as a fencing token: store it with each write, so that late writes by a former leader can be
        detected.
        The number starts again from 0 if the Lease is deleted and the next leader has never read it.
        """
        return self._term.transitions

    @property
    def is_held(self) -> bool:
        """Whether this process is certainly the leader: the lease has not expired and the leadership is not lost."""
        return self._term.is_held

    @property
    def expires_at(self) -> float:
        """The time, on trio's clock, from which another candidate may take over unless the lease is renewed.

        The time is computed from the time when the last successful renewal was *sent*, so no candidate takes over
        earlier.
        """
        return trio.current_time() + self._term.lease_duration - self._term.age()


@final
@attrs.frozen(kw_only=True)
class LeaderElectionStatistics:
    """The statistics of a :class:`LeaderElector`."""

    leader: str
    """The identity of the last observed holder of the lease, or an empty string."""
    is_leader: bool
    """Whether this candidate leads."""
    terms: int
    """How often this candidate became the leader."""
    losses: int
    """How often this candidate lost the leadership while its leader code ran."""
    overruns: int
    """How often the leader code still ran when another candidate could take over."""
    renewals: int
    """How often this candidate renewed the lease."""
    failures: int
    """The number of failed requests, including conflicts."""
    renewal_age: float
    """Seconds since the last successful renewal was sent, or infinity if this candidate does not lead."""
    last_error: Exception | None
    """The last failure."""
