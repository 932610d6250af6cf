"""The workers that wait for a key.  The first worker wakes when the next delayed key is due."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar, final

import attrs
import trio

from ._delayed import DelayedKeys

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False)
class Waiter(Generic[K]):
    """A worker that waits for a key."""

    task: trio.lowlevel.Task
    scope: trio.CancelScope
    """The cancel scope that ends the wait.  Only the first worker has a finite deadline."""
    has_key: bool = attrs.field(default=False, init=False)
    key: K = attrs.field(init=False)
    """The key that was given to the worker."""


@final
@attrs.define(eq=False)
class WaitQueue(Generic[K]):
    """The waiting workers, in the order in which they began to wait.

    After each change of the waiting workers or the delayed keys, :meth:`update_deadline` must be called.
    """

    _delayed: DelayedKeys[K]
    waiters: OrderedDict[Waiter[K], None] = attrs.field(factory=OrderedDict, init=False)
    """The waiting workers, beginning with the one that has waited longest."""
    given: set[K] = attrs.field(factory=set, init=False)
    """The keys that were given to workers which have not run since then."""

    def update_deadline(self) -> None:
        """Set the deadline of the first worker to the time when the next delayed key is due."""
        if self.waiters:
            next(iter(self.waiters)).scope.deadline = self._delayed.due

    def hand_off(self, key: K) -> None:
        """Give a key to the first worker, and wake the worker."""
        waiter, _ = self.waiters.popitem(last=False)
        waiter.key, waiter.has_key = key, True
        self.given.add(key)
        trio.lowlevel.reschedule(waiter.task)

    def wake_all(self) -> None:
        """Wake all waiting workers, without giving them keys."""
        for waiter in self.waiters:
            trio.lowlevel.reschedule(waiter.task)
        self.waiters.clear()

    async def wait(self, *, in_front: bool) -> Waiter[K]:
        """Wait until the current task receives a key, its deadline passes, or all workers are woken.

        A key that was given to a task is never lost, because the task cannot be cancelled before it runs.

        Args:
            in_front: Whether the current task becomes the first waiting worker.
        """
        waiter: Waiter[K] = Waiter(trio.lowlevel.current_task(), trio.CancelScope())
        try:
            with waiter.scope:
                self.waiters[waiter] = None
                if in_front:
                    self.waiters.move_to_end(waiter, last=False)
                self.update_deadline()
                await self._sleep(waiter)
        except BaseException:
            self.update_deadline()  # the first waiter has changed
            raise
        if waiter.has_key:
            self.given.remove(waiter.key)
        # If the deadline has passed, set the next waiter's deadline only when the caller has taken the due keys.
        # Otherwise the deadlines of all waiters would pass immediately.
        return waiter

    async def _sleep(self, waiter: Waiter[K]) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del self.waiters[waiter]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
