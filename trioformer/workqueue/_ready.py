"""The keys that workers may take now, in the order in which they are taken.

There is one FIFO for each priority, and the highest priority comes first.  The time to add, take or move a key does not
depend on the number of keys, but only on the number of different priorities; programs have two or three.
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
    """Keys by priority; keys of the same priority in the order in which they were added.

    Args:
        oldest_every: When there are keys of several priorities, every n-th :meth:`pop` takes the oldest key, whatever
            its priority; None for never.
    """

    oldest_every: int | None = None  # no validator: attrs would run it at every assignment to any attribute
    size: int = attrs.field(default=0, init=False)
    """How many keys there are."""
    # By priority, keys and their numbers in the order of arrival.  A level other than 0 exists only while it holds a
    # key, so only level 0 can be empty.
    _levels: dict[int, OrderedDict[K, int]] = attrs.field(init=False)
    _priorities: list[int] = attrs.field(init=False)  # those of _levels, ascending
    _arrivals: int = attrs.field(default=0, init=False)
    _choices: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._levels = {0: OrderedDict()}
        self._priorities = [0]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys in the order of their priorities."""
        for priority in reversed(self._priorities):
            yield from self._levels[priority]

    def push(self, key: K, priority: int) -> None:
        """Add a new key, behind the others of its priority."""
        self._arrivals += 1
        self.size += 1
        level = self._levels.get(priority)
        if level is None:
            level = self._add_level(priority)
        level[key] = self._arrivals

    def _add_level(self, priority: int) -> OrderedDict[K, int]:
        insort(self._priorities, priority)
        level = self._levels[priority] = OrderedDict()
        return level

    def pop(self) -> tuple[K, int]:
        """Remove and return the next key, with its priority; there must be one."""
        priority = 0 if len(self._priorities) == 1 else self._choose_priority()
        level = self._levels[priority]
        key, _ = level.popitem(last=False)
        self.size -= 1
        if priority and not level:
            self._remove_level(priority)
        return key, priority

    def _choose_priority(self) -> int:
        """Choose between several levels, of which level 0 may be empty."""
        priorities = self._priorities if self._levels[0] else [each for each in self._priorities if each]
        if self.oldest_every is None or len(priorities) == 1:
            return priorities[-1]
        self._choices += 1
        if self._choices < self.oldest_every:
            return priorities[-1]
        self._choices = 0
        return min(priorities, key=self._first_arrival)

    def _first_arrival(self, priority: int) -> int:
        return next(iter(self._levels[priority].values()))

    def _remove_level(self, priority: int) -> None:
        del self._levels[priority]
        self._priorities.remove(priority)

    def move(self, key: K, old: int, new: int) -> None:
        """Place a key behind those of another priority; its age for ``oldest_every`` does not change."""
        held = self._levels[old]
        arrival = held.pop(key)
        if old and not held:
            self._remove_level(old)
        level = self._levels.get(new)
        if level is None:
            level = self._add_level(new)
        level[key] = arrival
