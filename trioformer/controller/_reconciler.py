"""What a worker does with a request: call, judge, and say when it comes again."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs
import trio

from .._util import enclosing_tasks
from ..errors import TrioformerError
from ..workqueue import RateLimitingQueue
from ._request import Request
from ._results import (
    Reconcile,
    ReconcileDeadlineError,
    ReconcileResult,
    RequeueAfter,
    is_terminal,
    without_cancelled,
)
from ._statistics import ControllerObserver, Counters

DroppedHandler: TypeAlias = Callable[[Request, Exception], Awaitable[None]]
"""Given a request that has been tried often enough, and its last error."""

logger = logging.getLogger("trioformer.controller")


@final
@attrs.define(eq=False, kw_only=True)
class Reconciler:
    """The work of one run of a controller; called by the queue's workers.

    How a request goes on is decided inside of the queue's block: after ``add_rate_limited`` the queue does nothing by
    itself, and else it forgets the failures.
    """

    name: str
    reconcile: Reconcile
    queue: RateLimitingQueue[Request]
    deadline: float
    max_retries: int | None
    on_dropped: DroppedHandler | None
    observer: ControllerObserver | None
    counters: Counters
    is_stopping: bool = attrs.field(default=False, init=False)
    """Once true, requests are taken out of the queue and left undone."""
    busy: dict[trio.lowlevel.Task, tuple[Request, float]] = attrs.field(factory=dict, init=False)
    """The workers that have a request, which, and since when."""
    cancelled: list[Request] = attrs.field(factory=list, init=False)
    """Whose reconcile was cancelled by the end of the run."""
    # Not left to the limiter: one of the user's own may count nothing.
    failures: dict[Request, int] = attrs.field(factory=dict, init=False)
    """How often in a row those requests have failed that will be tried again."""

    async def handle(self, request: Request) -> None:
        """Reconcile once; what a reconcile raises as an ``Exception`` ends here."""
        if self.is_stopping:
            return
        task = trio.lowlevel.current_task()
        self.busy[task] = (request, trio.current_time())
        try:
            requeue, error = await self._observed(request)
            if error is not None:
                await self._failed(request, error)
                return
            self.failures.pop(request, None)
            self.counters.succeeded += 1
            if requeue is not None:
                self.counters.requeued += 1
                self.queue.add_after(request, requeue.after)
        finally:
            del self.busy[task]

    async def _observed(self, request: Request) -> tuple[RequeueAfter | None, Exception | None]:
        began = trio.current_time()
        if self.observer is not None:
            self.observer.began(request)
        result: ReconcileResult = "cancelled"
        requeue: RequeueAfter | None = None
        failure: Exception | None = None
        try:
            try:
                requeue = await self._call(request)
                result = "success" if requeue is None else "requeue_after"
            except BaseException as error:  # the documented boundary to a user's reconcile
                failure = self._failure_in(error, request)
                if failure is None:
                    raise
                result = "error"
            finally:
                if self.observer is not None:
                    self.observer.ended(
                        request,
                        result=result,
                        lasted=trio.current_time() - began,
                        is_terminal=failure is not None and is_terminal(failure),
                        is_late=isinstance(failure, ReconcileDeadlineError),
                    )
            return requeue, failure
        finally:
            failure = None  # no cycle of the error and this frame

    def _failure_in(self, error: BaseException, request: Request) -> Exception | None:
        """The failure of a request; None when it is more than that, and goes on.

        What failed while it was cancelled has failed; the cancellation comes again at the next checkpoint.
        """
        rest = without_cancelled(error)
        if isinstance(rest, Exception):
            return rest
        if rest is None:
            self.cancelled.append(request)
        else:
            error.add_note(f"in controller {self.name}, on {request}")
        return None

    async def _call(self, request: Request) -> RequeueAfter | None:
        with trio.move_on_after(self.deadline) as scope:
            result = await self.reconcile(request)
            _check_result(result)
            return result
        over = trio.current_time() - scope.deadline
        went_on = f", and ended {over:.1f} s later" if over >= 1 else ""
        raise ReconcileDeadlineError(f"the reconcile was cancelled at its deadline, after {self.deadline:g} s{went_on}")

    async def _failed(self, request: Request, error: Exception) -> None:
        """Log an error, once, and decide on another try."""
        counters, count = self.counters, self.failures.pop(request, 0) + 1
        counters.failed += 1
        counters.late += isinstance(error, ReconcileDeadlineError)
        is_dropped = False
        if is_terminal(error):
            counters.terminal += 1
            then = "not tried again, since the error is terminal"
        elif trio.current_effective_deadline() == -math.inf:
            then = "not tried again, since the controller is cancelled"
        elif self.max_retries is not None and count > self.max_retries:
            counters.dropped += 1
            is_dropped = True
            then = f"given up, since it is failure number {count} in a row"
        elif self.queue.add_rate_limited(request):
            self.failures[request] = count
            due = self.queue.due_time(request)
            wait = 0.0 if due is None else due - trio.current_time()
            then = f"to be tried again in {wait:.3g} s, after failure number {count} in a row"
        else:
            then = "not tried again, since the controller stops"
        # The library's own errors say what failed, and where; forty lines for each object of an outage would hide that.
        trace = None if isinstance(error, TrioformerError) else error
        logger.error(
            "controller %s: reconcile of %s failed, %s: %s", self.name, request, then, in_words(error), exc_info=trace
        )
        if is_dropped and self.on_dropped is not None:
            try:
                await self.on_dropped(request, error)
            except Exception as raised:
                raised.add_note(f"in on_dropped of controller {self.name}, on {request}")
                raise

    @property
    def is_called_from_inside(self) -> bool:
        """Whether the current task is a worker with a request, or inside of one's reconcile."""
        return any(task in self.busy for task in enclosing_tasks())


def _check_result(result: object) -> None:
    if result is not None and not isinstance(result, RequeueAfter):
        raise TypeError(f"a reconcile must return None or RequeueAfter, not {type(result).__name__}")


def in_words(error: BaseException) -> str:
    """Say in one line what an error is."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
