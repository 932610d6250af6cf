"""The delayed keys, which are not due yet, in a heap and a dict.

If a key is added again or removed, its stale entry stays in the heap. Stale entries are dropped when they reach the
top of the heap or outnumber the valid entries.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, NamedTuple, TypeVar, final

import attrs

K = TypeVar("K", bound=Hashable)

MIN_STALE = 64
"""The number of stale entries that the heap may contain in addition to one for each delayed key."""


class Delay(NamedTuple):
    """The time when a key becomes due, and its priority."""

    due: float
    number: int
    """A number that distinguishes heap entries of the same key, and orders keys that are due at the same time."""
    priority: int


@final
@attrs.define(eq=False)
class DelayedKeys(Generic[K]):
    """A collection of keys in the order in which they become due."""

    due: float = attrs.field(default=math.inf, init=False)
    """The time when the first key becomes due; infinity if there are no delayed keys."""
    _delays: dict[K, Delay] = attrs.field(factory=dict, init=False)
    _heap: list[tuple[float, int, K]] = attrs.field(factory=list, init=False)
    _numbers: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._delays)

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys in the order in which they become due."""
        return iter(sorted(self._delays, key=self._delays.__getitem__))

    def get(self, key: K) -> Delay | None:
        """Return the delay of a key, or None if the key is not delayed."""
        return self._delays.get(key)

    def add(self, key: K, due: float, priority: int) -> None:
        """Add a key; if it is already delayed, keep the earlier due time and the higher priority."""
        old = self._delays.get(key)
        if old is not None:
            priority = max(priority, old.priority)
            if old.due <= due:
                self._delays[key] = old._replace(priority=priority)
                return
        self._numbers += 1
        self._delays[key] = Delay(due, self._numbers, priority)
        heappush(self._heap, (due, self._numbers, key))
        self._drop_stale()

    def remove(self, key: K) -> Delay | None:
        """Remove a key and return its delay, or None if the key is not delayed."""
        delay = self._delays.pop(key, None)
        if delay is not None:
            self._drop_stale()
        return delay

    def pop_due(self, now: float) -> list[tuple[K, Delay]]:
        """Remove and return the keys that are due."""
        found: list[tuple[K, Delay]] = []
        while self.due <= now:
            _, _, key = heappop(self._heap)
            found.append((key, self._delays.pop(key)))
            self._drop_stale()
        return found

    def _drop_stale(self) -> None:
        """Remove stale entries from the top of the heap, or all stale entries if there are many."""
        heap, delays = self._heap, self._delays
        if len(heap) > 2 * len(delays) + MIN_STALE:
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
