"""The workers that wait for a key, the first of which wakes when the next delayed key is due."""

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
    """A worker that waits."""

    task: trio.lowlevel.Task
    scope: trio.CancelScope
    """Ends the wait; its deadline is infinite except for the first waiter."""
    has_key: bool = attrs.field(default=False, init=False)
    key: K = attrs.field(init=False)
    """The key that the worker received."""


@final
@attrs.define(eq=False)
class WaitQueue(Generic[K]):
    """Workers in the order in which they began to wait.

    Only the first waiter is woken when the next delayed key is due.
    Code that changes the waiters or that time calls :meth:`update_deadline`.
    """

    _delayed: DelayedKeys[K]
    waiters: OrderedDict[Waiter[K], None] = attrs.field(factory=OrderedDict, init=False)
    """The workers that wait, the one that has waited longest first."""

    def update_deadline(self) -> None:
        """Set the first waiter's deadline to the time when the next delayed key is due."""
        if self.waiters:
            next(iter(self.waiters)).scope.deadline = self._delayed.due

    def hand_off(self, key: K) -> None:
        """Give a key to the first waiter, wake it, and remove it from the waiters."""
        waiter, _ = self.waiters.popitem(last=False)
        waiter.key, waiter.has_key = key, True
        trio.lowlevel.reschedule(waiter.task)

    def wake_all(self) -> None:
        """Wake all waiters without a key."""
        for waiter in self.waiters:
            trio.lowlevel.reschedule(waiter.task)
        self.waiters.clear()

    async def wait(self, *, in_front: bool) -> Waiter[K]:
        """Wait until this task receives a key, its deadline passes, or all waiters are woken.

        A key that was handed off is never lost: from then on the task cannot be cancelled before it runs.

        Args:
            in_front: Whether to wait as the first waiter, because the task was the first one before.
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
            self.update_deadline()  # the next waiter is the first one now
            raise
        # If the deadline has passed, no waiter has one until the caller has taken what is due: the next waiter's would
        # pass immediately, and so would those of all others.
        return waiter

    async def _sleep(self, waiter: Waiter[K]) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del self.waiters[waiter]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
