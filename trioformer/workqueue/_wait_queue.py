"""The workers that wait for a key, and the one of them that watches the clock."""

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
    """A worker in line."""

    task: trio.lowlevel.Task
    alarm: trio.CancelScope
    """Its deadline is infinite, but for the first in line."""
    has_key: bool = attrs.field(default=False, init=False)
    key: K = attrs.field(init=False)
    """What it was handed."""


@final
@attrs.define(eq=False)
class WaitQueue(Generic[K]):
    """Workers in the order in which they came.

    The first in line, and no other, is woken when the next delayed key comes due.
    Whoever changes the line or that time calls :meth:`set_alarm`.
    """

    _delayed: DelayedKeys[K]
    waiters: OrderedDict[Waiter[K], None] = attrs.field(factory=OrderedDict, init=False)
    """Those that wait, first come first."""

    def set_alarm(self) -> None:
        """Let the first in line sleep no longer than until the next delayed key is due."""
        if self.waiters:
            next(iter(self.waiters)).alarm.deadline = self._delayed.due

    def give(self, key: K) -> None:
        """Hand a key to the first in line; it leaves the line."""
        waiter, _ = self.waiters.popitem(last=False)
        waiter.key, waiter.has_key = key, True
        trio.lowlevel.reschedule(waiter.task)

    def dismiss(self) -> None:
        """Wake everybody empty-handed."""
        for waiter in self.waiters:
            trio.lowlevel.reschedule(waiter.task)
        self.waiters.clear()

    async def wait(self, *, in_front: bool) -> Waiter[K]:
        """Wait until this task is handed a key, its alarm rings, or everybody is dismissed.

        A key that was handed out is never lost: from then on the task cannot be cancelled before it runs.

        Args:
            in_front: Whether to wait as the first in line: the task has been there before.
        """
        waiter: Waiter[K] = Waiter(trio.lowlevel.current_task(), trio.CancelScope())
        try:
            with waiter.alarm:
                self.waiters[waiter] = None
                if in_front:
                    self.waiters.move_to_end(waiter, last=False)
                self.set_alarm()
                await self._sleep(waiter)
        except BaseException:
            self.set_alarm()  # the next one watches the clock from now on
            raise
        # When it was the alarm that rang, nobody watches until the caller has taken what is due: the alarm of the next
        # in line would ring at once, and so those of all others.
        return waiter

    async def _sleep(self, waiter: Waiter[K]) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del self.waiters[waiter]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
