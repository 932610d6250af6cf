"""What leadership is to the one who leads: for how long it is certain, whether it is lost, and why."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Final, final

import attrs
import trio

from .._util import NoPublicConstructor
from ..errors import TrioformerError
from ..models import EMPTY_MAP

JITTER: Final = 1.2
"""After a failure a candidate waits from one retry period to ``1 + JITTER`` of them (client-go's ``JitterFactor``)."""

RETRY_FACTORS: Final = (0.4, 0.8)
"""In retry periods, from when to when a candidate looks at the Lease again, at random.

It sees a renewal that much late, and takes over as much later when that was the last one.  client-go's candidates wait
as long as after a failure, and do not look when the lease runs out, which makes up to 4.4 retry periods.
"""


_SLEEPLESS: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def boot_clock() -> float:
    """Seconds on a clock that cannot be set, and that goes on while the machine sleeps, where the system has one."""
    return time.perf_counter() if _SLEEPLESS is None else time.clock_gettime(_SLEEPLESS)


class LeadershipLostError(TrioformerError):
    """The lease could not be kept, so the body was cancelled."""


@final
@attrs.frozen(kw_only=True)
class LeaderElectionOptions:
    """The times of an election, and whom it tells what.

    The defaults are client-go's, and so are the rules: ``lease_duration > renew_deadline > 1.2 * retry_period``.
    All candidates should have the same times.
    """

    lease_duration: float = 15.0
    """Seconds without a renewal after which the others take over.  The lease names whole ones, rounded up."""
    renew_deadline: float = 10.0
    """Seconds without a renewal after which the leader gives up.  What is left until ``lease_duration`` is what the
    body has to end in after that."""
    retry_period: float = 2.0
    """Seconds from one renewal to the next; candidates look twice as often, and when the lease runs out.

    So another one leads within ``lease_duration + retry_period`` after the last renewal of a leader that is lost, and
    within ``retry_period`` after a release."""
    grace_period: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    """Seconds of nothing but answers that waiting does not mend, such as 403, before a candidate raises one;
    infinity retries for ever, as client-go does."""
    labels: Mapping[str, str] = EMPTY_MAP
    """Labels that the Lease is to have; others that it has stay."""
    on_new_leader: Callable[[str], None] | None = None
    """Called with the holder's identity whenever another one is observed, this one included; with ``""`` for nobody.
    Must be quick; what it raises ends the election."""
    on_overrun: Callable[[], None] | None = None
    """Called when the body still runs at the time when others may take over.  It is logged in any case; a program that
    must not have two leaders under any circumstances ends itself here, with ``os._exit``.  Must be quick."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since 1970, for the stamps in the Lease; nothing is decided by it."""
    boot_clock: Callable[[], float] = boot_clock
    """Seconds since some moment, those included that the machine slept for; trio's clock stands still meanwhile."""
    rng: random.Random = attrs.field(factory=random.Random, eq=False, repr=False)
    """Where the jitter comes from."""

    def __attrs_post_init__(self) -> None:
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number of seconds above 0, not {value}")
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"lease_duration must be longer than renew_deadline, but {self.lease_duration:g} s is not longer than "
                f"{self.renew_deadline:g} s; the difference is the time that the body has to end in"
            )
        if not self.renew_deadline > JITTER * self.retry_period:
            raise ValueError(
                f"renew_deadline must be longer than {JITTER} * retry_period, but {self.renew_deadline:g} s is not "
                f"longer than {JITTER * self.retry_period:g} s"
            )

    @property
    def request_deadline(self) -> float:
        """Seconds that a single request may take: two fit into ``renew_deadline``, as in client-go."""
        return min(max(1.0, self.renew_deadline / 2), self.renew_deadline)


@final
@attrs.frozen
class Stamp:
    """A moment on three clocks."""

    trio: float
    """Trio's: what deadlines are measured with."""
    machine: float
    """The real one behind it, which stands still while a machine sleeps; trio's may be a virtual one, in tests."""
    boot: float
    """One that goes on while a machine sleeps."""


@final
@attrs.frozen
class Clocks:
    """Tells how long ago something was, whichever clock says more."""

    boot_clock: Callable[[], float]

    def now(self) -> Stamp:
        """Read all of them."""
        return Stamp(trio.current_time(), time.perf_counter(), self.boot_clock())

    def age(self, then: Stamp) -> float:
        """Seconds since then, those included that the machine slept for.

        The wall clock has no say: it jumps whenever somebody puts it right.
        """
        now = self.now()
        passed = now.trio - then.trio
        slept = now.boot - then.boot - max(passed, now.machine - then.machine)
        return passed + max(0.0, slept)


@final
@attrs.define(eq=False, repr=False)
class Leadership(metaclass=NoPublicConstructor):
    """One term as the leader; what the body is given.

    A body is cancelled when the leadership is lost, which it notices at its next ``await``.  After its process was
    stopped, or its machine slept, it may run up to there although others lead.  So look at :attr:`is_held` right before
    each act that others can see, and write :attr:`transitions` along with it.
    """

    identity: str
    """Whose."""
    transitions: int
    """The Lease's ``leaseTransitions``, which rises with every change of the holder.

    A fencing token: who writes it next to the work can tell late writes of a former leader from those of the present
    one.  It begins anew when the Lease is deleted and neither its holder nor whoever takes it had seen it.
    """
    _clocks: Clocks
    _lease_duration: float
    _renewed: Stamp
    _lost: trio.Event = attrs.field(factory=trio.Event, init=False)
    _loss: str = attrs.field(default="", init=False)
    _cause: Exception | None = attrs.field(default=None, init=False)
    _crash: Exception | None = attrs.field(default=None, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _has_successor: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        state = "over" if self._is_over else f"lost: {self._loss}" if self._loss else "held"
        return f"<{type(self).__name__} of {self.identity!r}, transitions {self.transitions}, {state}>"

    @property
    def is_held(self) -> bool:
        """Whether nobody else can have taken over yet, and the body has not been told to end."""
        return not self._is_over and not self._loss and self._age() < self._lease_duration

    @property
    def expires_at(self) -> float:
        """When others may take over, on trio's clock, unless the lease is renewed until then.

        It is counted from when the last successful renewal was *sent*, so it is never later than the others think.
        """
        return trio.current_time() + self._lease_duration - self._age()

    def _age(self) -> float:
        """Seconds since the last renewal that succeeded was sent."""
        return self._clocks.age(self._renewed)


@final
@attrs.frozen(kw_only=True)
class LeaderElectionStatistics:
    """The figures of a :class:`LeaderElector`."""

    leader: str
    """Who held the lease when it was last seen; empty for nobody."""
    is_leader: bool
    """Whether this one leads."""
    terms: int
    """How often it became the leader."""
    losses: int
    """How often it lost that against its will."""
    overruns: int
    """How often a body was still running when others could take over."""
    renewals: int
    """How often the lease was renewed."""
    failures: int
    """How many requests have failed, conflicts included."""
    renewal_age: float
    """Seconds since the last successful renewal was sent; infinity unless it leads."""
    last_error: Exception | None
    """What the last failure was."""
