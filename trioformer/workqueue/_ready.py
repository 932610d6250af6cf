"""The keys that are ready for workers, in the order in which workers take them.

There is one FIFO queue for each priority.  The time to add, take or move a key depends only on the number of
priorities, which is usually two or three.
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
    """A collection of keys, ordered by priority and then by the time when they were added.

    Args:
        oldest_every: If set to *n*, every *n*-th call to :meth:`pop` takes the oldest key, regardless of its priority.
            The default, None, always takes a key with the highest priority.
    """

    oldest_every: int | None = None  # without a validator, which would slow down every assignment
    size: int = attrs.field(default=0, init=False)
    """The number of keys."""
    # A level other than 0 exists only while it holds a key, so only level 0 can be empty.
    _levels: dict[int, OrderedDict[K, None]] = attrs.field(init=False)
    _priorities: list[int] = attrs.field(init=False)  # the keys of _levels, ascending
    # Every key in the order of arrival; empty without oldest_every.
    _by_age: OrderedDict[K, None] = attrs.field(factory=OrderedDict, init=False)
    _choices: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._levels = {0: OrderedDict()}
        self._priorities = [0]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, beginning with the highest priority."""
        for priority in reversed(self._priorities):
            yield from self._levels[priority]

    def push(self, key: K, priority: int) -> None:
        """Add a new key after all other keys of the same priority."""
        self.size += 1
        if self.oldest_every is not None:
            self._by_age[key] = None
        level = self._levels.get(priority)
        if level is None:
            level = self._add_level(priority)
        level[key] = None

    def _add_level(self, priority: int) -> OrderedDict[K, None]:
        insort(self._priorities, priority)
        level = self._levels[priority] = OrderedDict()
        return level

    def pop(self) -> tuple[K, int]:
        """Remove and return the next key and its priority; there must be at least one key."""
        key, priority = (next(iter(self._levels[0])), 0) if len(self._priorities) == 1 else self._choose()
        self.size -= 1
        self._by_age.pop(key, None)
        level = self._levels[priority]
        del level[key]
        if priority and not level:
            self._remove_level(priority)
        return key, priority

    def _choose(self) -> tuple[K, int]:
        """Return the next key and its priority when there are several priority levels. Level 0 may be empty."""
        priorities = self._priorities if self._levels[0] else [each for each in self._priorities if each]
        if self.oldest_every is not None and len(priorities) > 1:
            self._choices += 1
            if self._choices == self.oldest_every:
                self._choices = 0
                key = next(iter(self._by_age))
                return key, next(each for each in priorities if key in self._levels[each])
        return next(iter(self._levels[priorities[-1]])), priorities[-1]

    def _remove_level(self, priority: int) -> None:
        del self._levels[priority]
        self._priorities.remove(priority)

    def move(self, key: K, old: int, new: int) -> None:
        """Change the priority of a key, and move it to the end of its new level, without changing its age."""
        held = self._levels[old]
        del held[key]
        if old and not held:
            self._remove_level(old)
        level = self._levels.get(new)
        if level is None:
            level = self._add_level(new)
        level[key] = None
