"""The keys that a worker may take now, in the order in which they are to be taken.

One FIFO for each priority, the highest first.  Adding, taking and moving a key to another priority take the same time
however many keys there are; only the number of different priorities counts, and programs have two or three.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, final

import attrs

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False)
class ReadyKeys(Generic[K]):
    """Keys by priority, first come first served among equals.

    Args:
        oldest_every: Of the takes that find keys of several priorities, every how many-th goes to the key that came
            first, whatever its priority; None for never.
    """

    oldest_every: int | None = None  # no validator: attrs would run it at every assignment to any attribute
    size: int = attrs.field(default=0, init=False)
    """How many keys there are."""
    # The value of a key is the number of its arrival.  A level other than 0 exists only while it holds a key, so that
    # of all levels none but 0 is ever empty.
    _levels: dict[int, OrderedDict[K, int]] = attrs.field(init=False)
    _priorities: list[int] = attrs.field(init=False)  # those of _levels, ascending
    _arrivals: int = attrs.field(default=0, init=False)
    _choices: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._levels = {0: OrderedDict()}
        self._priorities = [0]

    def __iter__(self) -> Iterator[K]:
        """Go through the keys in the order of their priorities."""
        for priority in reversed(self._priorities):
            yield from self._levels[priority]

    def push(self, key: K, priority: int) -> None:
        """Add a key that is not there, behind its equals."""
        self._arrivals += 1
        self.size += 1
        level = self._levels.get(priority)
        if level is None:
            level = self._open(priority)
        level[key] = self._arrivals

    def _open(self, priority: int) -> OrderedDict[K, int]:
        insort(self._priorities, priority)
        level = self._levels[priority] = OrderedDict()
        return level

    def pop(self) -> tuple[K, int]:
        """Take out the key whose turn it is, with its priority; there must be one."""
        priority = 0 if len(self._priorities) == 1 else self._choose()
        level = self._levels[priority]
        key, _ = level.popitem(last=False)
        self.size -= 1
        if priority and not level:
            self._close(priority)
        return key, priority

    def _choose(self) -> int:
        """Choose between several levels, of which 0 may be empty."""
        priorities = self._priorities if self._levels[0] else [one for one in self._priorities if one]
        if self.oldest_every is None or len(priorities) == 1:
            return priorities[-1]
        self._choices += 1
        if self._choices < self.oldest_every:
            return priorities[-1]
        self._choices = 0
        return min(priorities, key=self._first_arrival)

    def _first_arrival(self, priority: int) -> int:
        return next(iter(self._levels[priority].values()))

    def _close(self, priority: int) -> None:
        del self._levels[priority]
        self._priorities.remove(priority)

    def move(self, key: K, old: int, new: int) -> None:
        """Put a key behind those of another priority; it stays as old as it is."""
        held = self._levels[old]
        arrival = held.pop(key)
        if old and not held:
            self._close(old)
        level = self._levels.get(new)
        if level is None:
            level = self._open(new)
        level[key] = arrival
