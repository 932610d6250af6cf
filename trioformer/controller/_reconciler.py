"""The reconciler, which calls ``reconcile`` for a request and decides whether the request is retried."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast, final

import attrs
import trio

from .._surroundings import new_uuid
from .._text import describe_error, error_names, one_line, suppressed_lines
from .._util import LogLimit, enclosing_tasks
from ..client._internal import WrittenObject
from ..errors import TrioformerError
from ..workqueue import RateLimitingQueue
from ._current_request import CurrentRequest, current, log_fields
from ._delays import RetryDelays
from ._journal import Journal, JournalRecord
from ._options import ControllerOptions
from ._own_writes import OwnWrites
from ._parking import Pace, Pauses
from ._request import K
from ._results import (
    NextStep,
    Reconcile,
    ReconcileDeadlineError,
    ReconcileResult,
    RequeueAfter,
    is_terminal,
    requeue_in,
    without_cancelled,
)
from ._statistics import ControllerObserver, Counters

if TYPE_CHECKING:
    from ..cache._internal import Share

T = TypeVar("T")

logger = logging.getLogger("trioformer.controller")


class Failures(NamedTuple):
    """The number of failures of a request since its last success."""

    in_a_row: int
    """The number of all failures."""
    counted: int
    """The number of failures that count for ``max_retries``; external failures do not count."""


NO_FAILURES: Final = Failures(0, 0)

FAILURE_LOG_PERIOD: Final = 60.0
"""The shortest time between two log lines for the same class of error and the same next step, in seconds."""


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
    pauses: Pauses[K] | None
    pace: Pace[K] | None
    share: Share | None = None
    """The share of this process, if the reconciled objects are divided between processes."""
    running: dict[trio.lowlevel.Task, tuple[K, float]] = attrs.field(factory=dict, init=False)
    """The request and the start time of each busy worker."""
    cancelled: list[K] = attrs.field(factory=list, init=False)
    """The requests that were being processed when the run was cancelled."""
    _open_calls: dict[str, JournalRecord[K] | None] = attrs.field(factory=dict, init=False)
    """The entries of the running calls to ``reconcile`` in the journal, by the identifiers of the calls."""
    failures: dict[K, Failures] = attrs.field(factory=dict, init=False)
    """The failures of requests that will be retried.  The failures are counted here because a user's limiter may not
    count them."""
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(FAILURE_LOG_PERIOD), init=False)

    async def handle(self, request: K) -> None:
        """Call ``reconcile`` once for a request, and handle its result or its exception.

        In a cache that is divided between processes, a request for an object of another process is dropped.
        """
        if self.share is None:
            await self._handle(request)
            return
        with self.share.open_call(str(request), _Again(self.queue, request)) as scope:
            if scope is not None:
                await self._handle(request)
        if scope is not None and not scope.cancelled_caught:
            return
        logger.debug("controller %s: %s is not in a range that this process owns", self.name, one_line(str(request)))
        if scope is not None and request in self.cancelled:  # the range was lost during the call
            self.cancelled.remove(request)
        self._forget(request)

    def _forget(self, request: K) -> None:
        self.failures.pop(request, None)
        self.delays.forget(request)

    async def _handle(self, request: K) -> None:
        task = trio.lowlevel.current_task()
        self.running[task] = (request, trio.current_time())
        reconcile_id, journal, own_writes = new_uuid(), self.journal, self.own_writes
        token = current.set(CurrentRequest(controller=self.name, request=request, reconcile_id=reconcile_id))
        try:
            entry: JournalRecord[K] | None = None
            error: Exception | None = None
            try:
                may_be_early = own_writes is not None and own_writes.may_be_early(request)
                may_wait = may_be_early or self.pauses is not None or self.pace is not None
                if may_wait and await self._call(self._is_parked, request):
                    return
            except BaseException as raised:  # from on_paused, as from reconcile
                if (error := self._failure_in(raised, request)) is None:
                    raise
                if (requeue := requeue_in(error)) is not None:
                    error = None
            else:
                if journal is not None:
                    entry = journal.begin(request, reconcile_id)
                requeue, error = await self._call_observed(request, reconcile_id, entry)
            if error is not None:
                await self._handle_failure(request, error)
                if journal is not None and entry is not None and request in self.failures:
                    journal.add(request, "retry", reconcile_id)
                return
            if request in self.failures:
                self._forget(request)
            self.counters.succeeded += 1
            if requeue is not None:
                self.counters.requeued += 1
                is_added = self.queue.add_after(request, requeue.after, priority=requeue.priority)
                if is_added and journal is not None and entry is not None:
                    journal.add(request, "requeue", reconcile_id)
        finally:
            error = None  # no reference cycle of the error and this frame
            current.reset(token)
            del self.running[task]

    async def _is_parked(self, request: K) -> bool:
        """Park a request and return True if its call must not begin yet."""
        if self.own_writes is not None and await self.own_writes.is_early(request):
            return True
        if self.pauses is not None and await self.pauses.is_paused(request):
            return True
        return self.pace is not None and self.pace.is_early(request)  # last, because otherwise the call begins

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
                requeue = await self._call(self.reconcile, request)
                _check_result(requeue)
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

    async def _call(self, function: Callable[[K], Awaitable[T]], request: K) -> T:
        deadline = self.options.reconcile_deadline
        with trio.move_on_after(deadline) as scope:
            reconciling = function(request)
            if not hasattr(reconciling, "__await__"):  # the error of await does not name the function
                raise TypeError("reconcile must be an async function")
            return await reconciling
        over = trio.current_time() - scope.deadline
        ended = f", and ended {over:.1f} s later" if over >= 1 else ""
        raise ReconcileDeadlineError(f"the reconcile was cancelled at its deadline, after {deadline:g} s{ended}")

    async def _handle_failure(self, request: K, error: Exception) -> None:
        """Decide whether a request is retried after an error, log the error, and call ``on_error``."""
        counters, before, failure = self.counters, self.failures.pop(request, NO_FAILURES), self.delays.classify(error)
        count, counted = before.in_a_row + 1, before.counted + failure.counts
        max_retries, on_error = self.options.max_retries, self.options.on_error
        counters.failed += 1
        counters.timed_out += isinstance(error, ReconcileDeadlineError)
        step: NextStep = "dropped"
        if is_terminal(error):
            counters.terminal += 1
            step, then = "terminal", "not retrying (terminal error)"
        elif trio.current_effective_deadline() == -math.inf:
            then = "not retrying (the controller is cancelled)"
        elif max_retries is not None and failure.counts and counted > max_retries:
            counters.dropped += 1
            then = f"giving up (failure {count} in a row)"
        elif self.delays.add(request, failure):
            step = "retry"
            self.failures[request] = Failures(count, counted)
            due = self.queue.due_time(request)
            wait = 0.0 if due is None else due - trio.current_time()
            then = f"retrying in {wait:.3g} s (failure {count} in a row)"
        else:
            then = "not retrying (the controller is stopping)"
        if request not in self.failures:
            self.delays.forget(request)
        self._log("reconcile", request, error, step, then)
        if on_error is not None:
            try:
                await on_error(request, error, step)
            except BaseException as raised:  # the documented boundary to a user's function
                rest = without_cancelled(raised)
                if not isinstance(rest, Exception):
                    raise
                self._log("on_error", request, rest, "ignored", "ignoring the exception")
                del rest  # no reference cycle of the exception and this frame

    def _log(self, what: str, request: K, error: Exception, step: str, then: str) -> None:
        """Log a failure, or log it at level DEBUG and count it for the next line of its kind."""
        name = one_line(str(request))
        count = self._log_limit.count((what, step, error_names(error)), name)
        logger.log(
            logging.ERROR if count else logging.DEBUG,
            "controller %s: %s of %s failed, %s: %s%s",
            self.name,
            what,
            name,
            then,
            describe_error(error),
            suppressed_lines(count - 1),
            # The library's errors need no traceback, because they describe the failure.
            exc_info=None if isinstance(error, TrioformerError) else error,
            extra=log_fields(),
        )

    def log_rest(self) -> None:
        """Log the failures that were only counted."""
        for (what, step, names), count, name in self._log_limit.sum_up():
            text = "controller %s: %s of %s failed with %s, %s%s"
            logger.error(text, self.name, what, name, names, step, suppressed_lines(count))

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


@final
@attrs.frozen
class _Again(Generic[K]):
    """Adds a request to a queue again.  Equal ones are called only once."""

    queue: RateLimitingQueue[K]
    request: K

    def __call__(self) -> None:
        self.queue.add(self.request)


def _check_result(result: object) -> None:
    if result is not None and not isinstance(result, RequeueAfter):
        raise TypeError(f"reconcile must return None or RequeueAfter, not {type(result).__name__}")
