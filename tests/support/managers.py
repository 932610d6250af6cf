"""Runnables and controller initializers for tests of the manager."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import trio

from trioformer.manager import ManagerContext
from trioformer.manager._initializers import ControllerInitializer


@attrs.define(eq=False)
class Worker:
    """A runnable that runs until it is stopped, and records what happens to it in a log."""

    name: str
    log: list[str]
    start_after: float = 0.0
    end_after: float = 0.0
    """Seconds from ``stop()`` to the end."""
    fail_after: float = math.inf
    work_for: float = math.inf
    on_end: Callable[[], None] = lambda: None
    _stopping: trio.Event = attrs.field(factory=trio.Event)
    _ended: trio.Event = attrs.field(factory=trio.Event)

    def record(self, what: str) -> None:
        self.log.append(f"{trio.current_time():g} {self.name} {what}")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await trio.sleep(self.start_after)
            self.record("starts")
            task_status.started()
            with trio.move_on_after(min(self.fail_after, self.work_for)) as scope:
                await self._stopping.wait()
            if scope.cancelled_caught and self.fail_after < self.work_for:
                raise KeyError("a bug")
            if not scope.cancelled_caught:
                await trio.sleep(self.end_after)
            self.record("ends")
        except trio.Cancelled:
            self.record("is cancelled")
            raise
        finally:
            self.on_end()
            self._ended.set()

    async def stop(self) -> None:
        self.record("is stopped")
        self._stopping.set()
        await self._ended.wait()

    async def initialize(self, context: ManagerContext) -> Worker:
        """An initializer that returns this worker."""
        return self


def initializing(*workers: Worker) -> dict[str, ControllerInitializer]:
    return {worker.name: worker.initialize for worker in workers}
