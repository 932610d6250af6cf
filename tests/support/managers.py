"""What the tests of the manager have in common: runnables and starters that do as they are told."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import trio

from trioformer.manager import ControllerInitializer, ManagerContext


@attrs.define(eq=False)
class Worker:
    """Works until it is told to stop, and writes down what becomes of it."""

    name: str
    diary: list[str]
    begin_after: float = 0.0
    end_after: float = 0.0
    """Seconds from ``stop()`` to the end."""
    fail_after: float = math.inf
    work_for: float = math.inf
    on_end: Callable[[], None] = lambda: None
    _stopping: trio.Event = attrs.field(factory=trio.Event)
    _ended: trio.Event = attrs.field(factory=trio.Event)

    def note(self, what: str) -> None:
        self.diary.append(f"{trio.current_time():g} {self.name} {what}")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await trio.sleep(self.begin_after)
            self.note("begins")
            task_status.started()
            with trio.move_on_after(min(self.fail_after, self.work_for)) as scope:
                await self._stopping.wait()
            if scope.cancelled_caught and self.fail_after < self.work_for:
                raise KeyError("a bug")
            if not scope.cancelled_caught:
                await trio.sleep(self.end_after)
            self.note("ends")
        except trio.Cancelled:
            self.note("is cancelled")
            raise
        finally:
            self.on_end()
            self._ended.set()

    async def stop(self) -> None:
        self.note("is stopped")
        self._stopping.set()
        await self._ended.wait()

    async def start(self, context: ManagerContext) -> Worker:
        """A starter that makes this one."""
        return self


def starting(*workers: Worker) -> dict[str, ControllerInitializer]:
    return {worker.name: worker.start for worker in workers}
