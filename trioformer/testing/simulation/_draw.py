"""Random choices that are the same on every Python, because they use only ``random()``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar, final

T = TypeVar("T")


@final
class Draw(random.Random):
    """A source of choices."""

    def below(self, limit: int) -> int:
        """Return a number from 0 to ``limit - 1``."""
        return int(self.random() * limit)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.below(len(choices))]


def mix(*numbers: int) -> int:
    """Return a seed that depends on each of the numbers."""
    seed = 0
    for number in numbers:
        seed = random.Random(seed * 1_000_003 + number).getrandbits(48)
    return seed
