"""The reconciler, which calls ``reconcile`` for a request and decides whether the request is retried."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, cast, final

import attrs
import trio

from .._surroundings import new_uuid
from .._text import describe_error, one_line
from .._util import enclosing_tasks
from ..client._internal import WrittenObject
from ..errors import TrioformerError
from ..workqueue import RateLimitingQueue
from ._current_request import CurrentRequest, current, log_fields
from ._delays import RetryDelays
from ._journal import Journal, JournalRecord
from ._options import ControllerOptions
from ._own_writes import OwnWrites
from ._request import K
from ._results import (
    Reconcile,
    ReconcileDeadlineError,
    ReconcileResult,
    RequeueAfter,
    is_terminal,
    requeue_in,
    without_cancelled,
)
from ._statistics import ControllerObserver, Counters

logger = logging.getLogger("trioformer.controller")


class Failures(NamedTuple):
    """The number of failures of a request since its last success."""

    in_a_row: int
    """The number of all failures."""
    counted: int
    """The number of failures that count for ``max_retries``; external failures do not count."""


NO_FAILURES: Final = Failures(0, 0)


@final
@attrs.define(eq=False, kw_only=True)
class Reconciler(Generic[K]):
    """The calls to ``reconcile`` during one run of a controller.

    The workers of the queue call :meth:`handle`, which does not raise the errors from ``reconcile``.  So the queue
    forgets the failures of the request, unless :meth:`handle` has called ``add_rate_limited``.
    """

    name: str
    reconcile: Reconcile[K]
    options: ControllerOptions[K]
    observers: Sequence[ControllerObserver[K]]
    queue: RateLimitingQueue[K]
    delays: RetryDelays[K]
    counters: Counters
    journal: Journal[K] | None
    own_writes: OwnWrites[K] | None
    running: dict[trio.lowlevel.Task, tuple[K, float]] = attrs.field(factory=dict, init=False)
    """The request and the start time of each busy worker."""
    cancelled: list[K] = attrs.field(factory=list, init=False)
    """The requests that were being processed when the run was cancelled."""
    _open_calls: dict[str, JournalRecord[K] | None] = attrs.field(factory=dict, init=False)
    """The entries of the running calls to ``reconcile`` in the journal, by the identifiers of the calls."""
    failures: dict[K, Failures] = attrs.field(factory=dict, init=False)
    """The failures of requests that will be retried.  The failures are counted here because a user's limiter may not
    count them."""

    async def handle(self, request: K) -> None:
        """Call ``reconcile`` once for a request, and handle its result or its exception."""
        task = trio.lowlevel.current_task()
        self.running[task] = (request, trio.current_time())
        reconcile_id, journal, own_writes = new_uuid(), self.journal, self.own_writes
        token = current.set(CurrentRequest(controller=self.name, request=request, reconcile_id=reconcile_id))
        try:
            if own_writes is not None and own_writes.may_be_early(request):
                try:
                    if await own_writes.is_early(request):
                        return
                except Exception as unread:  # noqa: BLE001  # as from reconcile
                    await self._handle_failure(request, unread)
                    return
            entry = None if journal is None else journal.begin(request, reconcile_id)
            requeue, error = await self._call_observed(request, reconcile_id, entry)
            if error is not None:
                await self._handle_failure(request, error)
                if journal is not None and request in self.failures:
                    journal.add(request, "retry", reconcile_id)
                return
            if self.failures.pop(request, None) is not None:
                self.delays.forget(request)
            self.counters.succeeded += 1
            if requeue is not None:
                self.counters.requeued += 1
                self.queue.add_after(request, requeue.after)
                if journal is not None:
                    journal.add(request, "requeue", reconcile_id)
        finally:
            current.reset(token)
            del self.running[task]

    async def _call_observed(
        self, request: K, reconcile_id: str, entry: JournalRecord[K] | None
    ) -> tuple[RequeueAfter | None, Exception | None]:
        observers, began = self.observers, trio.current_time()
        for observer in observers:
            observer.began(request)
        self._open_calls[reconcile_id] = entry
        result: ReconcileResult = "cancelled"
        requeue: RequeueAfter | None = None
        failure: Exception | None = None
        raised: Exception | None = None
        try:
            try:
                requeue = await self._call(request)
                result = "success" if requeue is None else "requeue_after"
            except BaseException as error:  # the documented boundary to a user's reconcile
                failure = raised = self._failure_in(error, request)
                if failure is None:
                    raise
                requeue = requeue_in(failure)
                if requeue is None:
                    result = "error"
                else:
                    result = "requeue_after"
                    logger.debug("controller %s: reconcile of %s: %s", self.name, request, describe_error(failure))
                    failure = None
            finally:
                del self._open_calls[reconcile_id]
                if entry is not None:
                    entry.end(result, raised)
                for observer in observers:
                    observer.ended(
                        request,
                        result=result,
                        duration=trio.current_time() - began,
                        is_terminal=failure is not None and is_terminal(failure),
                        has_timed_out=isinstance(failure, ReconcileDeadlineError),
                    )
            return requeue, failure
        finally:
            failure = raised = None  # no reference cycle of the error and this frame

    def _failure_in(self, error: BaseException, request: K) -> Exception | None:
        """Return the failure of a request, or None if the error must propagate.

        An error that is raised during a cancellation is a failure too, because the next checkpoint raises the
        cancellation again.
        """
        rest = without_cancelled(error)
        if isinstance(rest, Exception):
            return rest
        if rest is None:
            self.cancelled.append(request)
        else:
            error.add_note(f"in controller {self.name}, on {request}")
        return None

    async def _call(self, request: K) -> RequeueAfter | None:
        deadline = self.options.reconcile_deadline
        with trio.move_on_after(deadline) as scope:
            reconciling = self.reconcile(request)
            if not hasattr(reconciling, "__await__"):  # the error of await does not name the function
                raise TypeError("reconcile must be an async function")
            result = await reconciling
            _check_result(result)
            return result
        over = trio.current_time() - scope.deadline
        ended = f", and ended {over:.1f} s later" if over >= 1 else ""
        raise ReconcileDeadlineError(f"the reconcile was cancelled at its deadline, after {deadline:g} s{ended}")

    async def _handle_failure(self, request: K, error: Exception) -> None:
        """Log the error of a request, and decide whether the request is retried."""
        counters, before, failure = self.counters, self.failures.pop(request, NO_FAILURES), self.delays.classify(error)
        count, counted = before.in_a_row + 1, before.counted + failure.counts
        max_retries, on_dropped = self.options.max_retries, self.options.on_dropped
        counters.failed += 1
        counters.timed_out += isinstance(error, ReconcileDeadlineError)
        is_dropped = False
        if is_terminal(error):
            counters.terminal += 1
            then = "not retrying (terminal error)"
        elif trio.current_effective_deadline() == -math.inf:
            then = "not retrying (the controller is cancelled)"
        elif max_retries is not None and failure.counts and counted > max_retries:
            counters.dropped += 1
            is_dropped = True
            then = f"giving up (failure {count} in a row)"
        elif self.delays.add(request, failure):
            self.failures[request] = Failures(count, counted)
            due = self.queue.due_time(request)
            wait = 0.0 if due is None else due - trio.current_time()
            then = f"retrying in {wait:.3g} s (failure {count} in a row)"
        else:
            then = "not retrying (the controller is stopping)"
        if request not in self.failures:
            self.delays.forget(request)
        # The library's errors need no traceback; one for each object in an outage would flood the log.
        trace = None if isinstance(error, TrioformerError) else error
        logger.error(
            "controller %s: reconcile of %s failed, %s: %s",
            self.name,
            one_line(str(request)),
            then,
            describe_error(error),
            exc_info=trace,
            extra=log_fields(),
        )
        if is_dropped and on_dropped is not None:
            try:
                await on_dropped(request, error)
            except Exception as raised:
                raised.add_note(f"in on_dropped of controller {self.name}, on {request}")
                raise

    def observe_write(self, written: WrittenObject) -> None:
        """Record a write of a call to ``reconcile``.  Writes of tasks that it has left behind belong to no request."""
        call = current.get()
        if call is None or call.reconcile_id not in self._open_calls:
            return
        if (entry := self._open_calls[call.reconcile_id]) is not None:
            entry.writes.append(written.write)
        if self.own_writes is not None:
            self.own_writes.record(cast("K", call.request), written)

    @property
    def is_called_from_inside(self) -> bool:
        """Whether the current task is inside a call to ``reconcile``."""
        return any(task in self.running for task in enclosing_tasks())


def _check_result(result: object) -> None:
    if result is not None and not isinstance(result, RequeueAfter):
        raise TypeError(f"reconcile must return None or RequeueAfter, not {type(result).__name__}")
