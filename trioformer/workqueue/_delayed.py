"""The keys that are not due yet: a heap beside a dict, and no timer.

What was merged or cancelled stays in the heap until it comes to the top, or until such leftovers are the greater part.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, NamedTuple, TypeVar, final

import attrs

K = TypeVar("K", bound=Hashable)

SPARE = 64
"""Leftovers that are not worth cleaning up."""


class Delay(NamedTuple):
    """When a key comes due, and with which priority."""

    due: float
    number: int
    """Tells this entry of the heap from older ones of the same key, and orders those that are due at the same time."""
    priority: int


@final
@attrs.define(eq=False)
class DelayedKeys(Generic[K]):
    """Keys by the time at which they come due."""

    due: float = attrs.field(default=math.inf, init=False)
    """When the first one does; infinity when there is none."""
    _delays: dict[K, Delay] = attrs.field(factory=dict, init=False)
    _heap: list[tuple[float, int, K]] = attrs.field(factory=list, init=False)
    _numbers: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._delays)

    def __iter__(self) -> Iterator[K]:
        """Go through the keys in the order in which they come due."""
        return iter(sorted(self._delays, key=self._delays.__getitem__))

    def get(self, key: K) -> Delay | None:
        """Return a key's delay."""
        return self._delays.get(key)

    def add(self, key: K, due: float, priority: int) -> None:
        """Add a key; one that is there keeps the earlier time and the higher priority."""
        old = self._delays.get(key)
        if old is not None:
            priority = max(priority, old.priority)
            if old.due <= due:
                self._delays[key] = old._replace(priority=priority)
                return
        self._numbers += 1
        self._delays[key] = Delay(due, self._numbers, priority)
        heappush(self._heap, (due, self._numbers, key))
        self._tidy()

    def remove(self, key: K) -> Delay | None:
        """Take a key out; None when it is not there."""
        delay = self._delays.pop(key, None)
        if delay is not None:
            self._tidy()
        return delay

    def pop_due(self, now: float) -> list[tuple[K, Delay]]:
        """Take out every key that is due."""
        found: list[tuple[K, Delay]] = []
        while self.due <= now:
            _, _, key = heappop(self._heap)
            found.append((key, self._delays.pop(key)))
            self._tidy()
        return found

    def _tidy(self) -> None:
        """Leave a heap whose first entry counts, and few that do not."""
        heap, delays = self._heap, self._delays
        if len(heap) > 2 * len(delays) + SPARE:
            heap[:] = [(delay.due, delay.number, key) for key, delay in delays.items()]
            heapify(heap)
        while heap:
            due, number, key = heap[0]
            delay = delays.get(key)
            if delay is not None and delay.number == number:
                self.due = due
                return
            heappop(heap)
        self.due = math.inf
