"""Workers that wait for a key.  The first one wakes when the next delayed key is due."""

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
    """Ends the wait.  Only the first waiter's deadline is finite."""
    has_key: bool = attrs.field(default=False, init=False)
    key: K = attrs.field(init=False)
    """The key that was handed to the worker."""


@final
@attrs.define(eq=False)
class WaitQueue(Generic[K]):
    """Workers in the order in which they began to wait.

    Code that changes the waiters or the delayed keys must call :meth:`update_deadline`.
    """

    _delayed: DelayedKeys[K]
    waiters: OrderedDict[Waiter[K], None] = attrs.field(factory=OrderedDict, init=False)
    """The waiting workers, the longest wait first."""

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

        A key that was handed off is never lost: the task cannot be cancelled before it runs.

        Args:
            in_front: Wait as the first waiter again.
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
            self.update_deadline()  # there is another first waiter now
            raise
        # If the deadline has passed, set the next waiter's deadline only when the caller has taken the due keys.
        # Otherwise it would pass immediately, and so would all others.
        return waiter

    async def _sleep(self, waiter: Waiter[K]) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del self.waiters[waiter]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
