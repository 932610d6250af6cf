"""Time, chance and the name of the host: everything that a run of the library takes from its surroundings.

Other modules call the functions of this module instead of those of :mod:`time`, :mod:`random`, :mod:`uuid` and
:mod:`socket`.  Therefore a simulation can replace them for one replica, and repeat a run exactly.  Deadlines use trio's
clock, and secrets use :mod:`secrets`.
"""

from __future__ import annotations

import random
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import attrs

_BOOT_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def _boot_time() -> float:
    return time.perf_counter() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


@attrs.frozen(kw_only=True)
class Surroundings:
    """The functions that a task and the tasks that it starts use."""

    wall_time: Callable[[], float] = time.time
    machine_time: Callable[[], float] = time.perf_counter
    boot_time: Callable[[], float] = _boot_time
    host_name: Callable[[], str] = socket.gethostname
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    new_generator: Callable[[], random.Random] = random.Random
    is_simulated: bool = False
    """Whether this is a simulation, in which no ports are opened and no files are followed."""


_REAL: Final = Surroundings()
surroundings: Final = ContextVar("surroundings", default=_REAL)
"""The surroundings of the current task."""

_is_operator: Final = ContextVar("is_operator", default=False)


def wall_time() -> float:
    """Return the seconds since 1970.  The time can be set, so no deadline depends on it."""
    return surroundings.get().wall_time()


def machine_time() -> float:
    """Return the time of a monotonic clock in seconds, which stops while the machine is suspended."""
    return surroundings.get().machine_time()


def boot_time() -> float:
    """Return the time of a monotonic clock in seconds.  The clock includes suspend time if the system supports this."""
    return surroundings.get().boot_time()


def host_name() -> str:
    """Return the name of the host, which is the name of the pod in a cluster."""
    return surroundings.get().host_name()


def new_uuid() -> str:
    """Return a random UUID."""
    return str(surroundings.get().new_uuid())


def new_generator() -> random.Random:
    """Return a new random number generator.  Take a generator when an object is made, not when a module is imported."""
    return surroundings.get().new_generator()


def is_simulated() -> bool:
    """Return whether the current task runs in a simulation, in which no ports are opened and no files are followed."""
    return surroundings.get().is_simulated


@contextmanager
def as_operator() -> Iterator[None]:
    """Mark the requests of the current task, and of the tasks that it starts during the block, as an operator's."""
    token = _is_operator.set(True)
    try:
        yield
    finally:
        _is_operator.reset(token)


def is_operator() -> bool:
    """Return whether the requests of the current task are those of an operator, whose role a test may record."""
    return _is_operator.get()
