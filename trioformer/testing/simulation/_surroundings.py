"""Time and chance in a story, for the code of the operator that does not ask the library.

time-machine replaces ``time.time``, ``datetime.now`` and their relatives in every module that has imported them.  The
global generator of :mod:`random` gets a seed, and ``os.urandom``, from which uuids come, is replaced.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import attrs
import time_machine
import trio

from .._storage._clock import EPOCH
from ._life import START
from ._replica import current_life

if TYPE_CHECKING:
    from time_machine import Traveller


@final
@attrs.define(eq=False)
class _WallClock(trio.abc.Instrument):
    """Sets the wall clock before each step of a task to the clock of its replica."""

    _traveller: Traveller
    _shown: float = -1.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        life = task.context.get(current_life)
        now = START + trio.current_time() if life is None else life.wall_time()
        if now != self._shown:
            self._shown = now
            self._traveller.move_to(now)


@contextmanager
def replaced(seed: int) -> Iterator[trio.abc.Instrument]:
    """Replace the wall clock and the sources of random numbers during the block, and return trio's instrument."""
    before, urandom = random.getstate(), os.urandom
    generator = random.Random(seed)

    def repeatable(size: int) -> bytes:
        return generator.getrandbits(8 * size).to_bytes(size, "big") if size else b""

    random.seed(seed)
    os.urandom = repeatable
    setattr(random, "_urandom", repeatable)  # noqa: B010  # SystemRandom, and so the module secrets, has its own name
    try:
        with time_machine.travel(EPOCH, tick=False) as traveller:
            yield _WallClock(traveller)
    finally:
        os.urandom = urandom
        setattr(random, "_urandom", urandom)  # noqa: B010
        random.setstate(before)
