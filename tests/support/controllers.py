"""What the tests of controllers share: informers of pods, a scripted reconcile function, and a recording observer."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import attrs
import pytest
import trio

from tests.support.scripted_list_watch import ScriptedListWatch, listing, pod
from tests.support.scripted_list_watch import Step as WatchStep
from trioformer import SharedInformer
from trioformer.controller import Controller, Request, RequeueAfter
from trioformer.controller._results import ReconcileResult
from trioformer.models.core_v1 import Pod

Step: TypeAlias = BaseException | RequeueAfter | float | Callable[[Request], Awaitable[RequeueAfter | None]] | None


def pods(*names: str, steps: list[WatchStep] | None = None, resync_period: float = 0.0) -> SharedInformer[Pod]:
    """An informer whose first list has these pods, and whose watch has these steps."""
    return informer_of(ScriptedListWatch([listing(*map(pod, names))], [[*(steps or ()), None]]), resync_period)


def informer_of(source: ScriptedListWatch, resync_period: float = 0.0) -> SharedInformer[Pod]:
    return SharedInformer(source, resync_period=resync_period)


@attrs.define(eq=False)
class Reconcile:
    """A reconcile function that records its calls and follows a script; after the end of the script it succeeds.

    A step is an error to raise, a result to return, seconds to sleep, or an async function to call.
    """

    script: deque[Step] = attrs.field(factory=deque, converter=deque)
    calls: list[str] = attrs.field(factory=list)
    at: list[float] = attrs.field(factory=list)
    done: list[str] = attrs.field(factory=list)
    cancelled: list[str] = attrs.field(factory=list)
    running: set[str] = attrs.field(factory=set)
    most_at_once: int = 0

    async def __call__(self, request: Request) -> RequeueAfter | None:
        self.calls.append(request.name)
        self.at.append(trio.current_time())
        with self._running(request.name):
            result = await self._act(request)
        self.done.append(request.name)
        return result

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        assert name not in self.running, "two workers have one request"
        self.running.add(name)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            yield
        except trio.Cancelled:
            self.cancelled.append(name)
            raise
        finally:
            self.running.remove(name)

    async def _act(self, request: Request) -> RequeueAfter | None:
        step = self.script.popleft() if self.script else None
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, int | float):
            await trio.sleep(step)
            return None
        if callable(step):
            return await step(request)
        return step

    def gaps(self) -> list[float]:
        """Return the seconds between the calls."""
        return [round(after - before, 6) for before, after in zip(self.at, self.at[1:], strict=False)]


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors in nested groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves(each)]
    return [error]


async def start(nursery: trio.Nursery, controller: Controller, *informers: SharedInformer[Pod]) -> None:
    """Run informers and a controller, and return when the controller has started."""
    for informer in informers:
        nursery.start_soon(informer.run)
    await nursery.start(controller.run)


async def watch_and_start(nursery: trio.Nursery, controller: Controller, informer: SharedInformer[Pod]) -> None:
    """Watch an informer, run it and the controller, and return when the controller has started."""
    controller.watch(informer)
    await start(nursery, controller, informer)


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of the logged errors."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@attrs.define(eq=False)
class Observer:
    """An observer of a controller and of its queue that records its calls."""

    calls: list[str] = attrs.field(factory=list)

    @property
    def results(self) -> list[str]:
        """The ends of reconciles, without the steps of the queue."""
        steps = ("began", "added", "delayed", "taken", "finished")
        return [call for call in self.calls if call.split()[1] not in steps]

    def began(self, request: Request) -> None:
        self.calls.append(f"{request.name} began")

    def ended(
        self, request: Request, *, result: ReconcileResult, duration: float, is_terminal: bool, has_timed_out: bool
    ) -> None:
        self.calls.append(
            f"{request.name} {result} {duration:g}{' terminal' * is_terminal}{' timeout' * has_timed_out}"
        )

    def added(self, request: Request, *, priority: int) -> None:
        self.calls.append(f"{request.name} added {priority}")

    def delayed(self, request: Request, *, delay: float) -> None:
        self.calls.append(f"{request.name} delayed {delay:g}")

    def taken(self, request: Request, *, waited: float) -> None:
        self.calls.append(f"{request.name} taken")

    def finished(self, request: Request, *, duration: float) -> None:
        self.calls.append(f"{request.name} finished")
