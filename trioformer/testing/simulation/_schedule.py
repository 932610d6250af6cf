"""The order in which trio runs the tasks of a story.

trio runs the tasks that are ready in batches, in random order.  Hypothesis makes the order repeatable with a hook of
trio, which this module uses in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import attrs
from trio._core import _run

if TYPE_CHECKING:
    from ._story import Schedule

MOST_BATCHES = 50_000
"""The number of batches without a change of the virtual time after which a program is considered to be in a loop."""
LATE_BATCHES = 0.75
"""The share of the batches in which the policy ``late`` runs a replica last."""


@final
@attrs.define(eq=False)
class Order:
    """A replacement for trio's random number generator, which orders each batch."""

    schedule: Schedule
    replica_of: Callable[[Any], int]
    """Returns the number of the replica to which a task belongs, or -1."""
    now: Callable[[], float]
    """Returns the virtual time."""
    stop: Callable[[], None]
    """Called once if the program is in a loop."""
    _random: random.Random = attrs.field(init=False)
    _time: float = -1.0
    _batches: int = 0

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.schedule.number)

    def shuffle(self, batch: list[Any]) -> None:
        """Order a batch, which trio has sorted by the age of the tasks.  trio runs the last task first."""
        if self.now() != self._time:
            self._time, self._batches = self.now(), 0
        self._batches += 1
        if self._batches == MOST_BATCHES:
            self.stop()
        draw = self._random.random
        if self.schedule.policy == "random":
            keys = {task: draw() for task in batch}
            batch.sort(key=keys.__getitem__)
            return
        batch.reverse()
        if self.schedule.policy == "late" and draw() < LATE_BATCHES:
            batch.sort(key=lambda task: self.replica_of(task) != self.schedule.number % 3)


@contextmanager
def ordered(order: Order) -> Iterator[None]:
    """Let ``order`` decide the order of tasks in the runs of trio during the block."""
    names = ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r")
    if not all(hasattr(_run, name) for name in names):
        raise RuntimeError("this version of trio has no hook for the order of tasks; install trio 0.32 to 0.35")
    before = {name: getattr(_run, name) for name in names}
    try:
        for name, value in zip(names, (True, order), strict=True):
            setattr(_run, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(_run, name, value)
