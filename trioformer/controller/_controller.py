"""Informers feed a queue, workers reconcile: the loop of every controller.

The problem: a controller must look at every object that changed, not at every change, with several workers and never
two for one object, again when it failed, and not before it knows what there is.  The queue sees to the first of these;
here are the order of things, and their ends.

- Start.  Handlers are registered; when all caches are filled, the first events are looked at, so that functions which
  find the requests may look into any of them; when all handlers have returned from what was there, workers begin.
- Errors.  What a reconcile raises is the business of its request.  What predicates and enqueue functions raise would be
  lost events, so it ends the run.  It ends only that, and not the informer in whose task it was raised.
- End.  Cancellation ends everything at once.  ``stop()`` lets the reconciles that are running come to their ends.
  Requests that wait are not begun in either case: the next start finds them in the first lists.

Source: controller-runtime ``pkg/internal/controller``; client-go ``examples/workqueue``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar, final

import attrs
import trio
from attrs import validators

from ..cache import SharedInformer
from ..models import KubernetesObject
from ..workqueue import QueueObserver, RateLimiter
from ._controller_run import ControllerRun
from ._enqueue import Enqueue, request_for_object
from ._predicates import Predicate
from ._reconciler import DroppedHandler
from ._request import Request
from ._results import Reconcile
from ._sources import WatchedSource
from ._statistics import ControllerObserver, ControllerStatistics, Counters

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.define(eq=False, repr=False)
class Controller:
    """Calls ``reconcile`` for every object that something happened to.

    - A request is handled by one worker at a time.  What comes meanwhile, however often, is one further request.
    - ``reconcile(request)`` is given a name; it reads the object from a lister, and finds None when it is gone.
    - When it returns, the request is done, and its failures are forgotten.  When it returns
      :class:`~trioformer.controller.RequeueAfter`, it also comes again by itself.
    - When it raises, the error is logged, and the request comes again after the limiter's delay.  Errors never end the
      controller.  After a :class:`~trioformer.controller.TerminalError` it does not come again by itself.
    - What is no ``Exception``, such as ``KeyboardInterrupt``, ends the controller.
    - Requests for what was there at the beginning, and for what a resync repeats, have a low priority; every eighth
      place goes to whoever has waited longest, so that they come to pass beside any number of others.

    A controller owns nothing before :meth:`run`, and may run again after it has ended, for example each time that this
    process becomes the leader.  Each run has a queue of its own.

    Args:
        name: For logs, messages and metrics.
        reconcile: Is called with each request.
        workers: How many requests are handled at once.
        max_retries: After how many further tries in a row a request that keeps failing is given up; None for never.
            Classic controllers have 5.
        on_dropped: Called when it is; what it raises ends the run.
        reconcile_deadline: Seconds after which a reconcile is cancelled, which counts as a failure.
        limiter: Delays failures; `default_controller_rate_limiter` unless given, a new one for each run.
        observer: Is told of each reconcile.
        queue_observer: Is told of what happens in the queue.

    Raises:
        ValueError: A number is too small.
    """

    name: str
    """For logs, messages and metrics."""
    # The aliases are what attrs makes of the names anyway; pyright does not know that.
    _reconcile: Reconcile = attrs.field(alias="reconcile")
    workers: int = attrs.field(default=1, kw_only=True, validator=validators.ge(1))
    """How many requests are handled at once."""
    max_retries: int | None = attrs.field(default=None, kw_only=True, validator=validators.optional(validators.ge(0)))
    """After how many further tries in a row a request that keeps failing is given up."""
    _on_dropped: DroppedHandler | None = attrs.field(default=None, kw_only=True, alias="on_dropped")
    reconcile_deadline: float = attrs.field(default=math.inf, kw_only=True, validator=validators.gt(0))
    """Seconds after which a reconcile is cancelled."""
    _limiter: RateLimiter[Request] | None = attrs.field(default=None, kw_only=True, alias="limiter")
    _observer: ControllerObserver | None = attrs.field(default=None, kw_only=True, alias="observer")
    _queue_observer: QueueObserver[Request] | None = attrs.field(default=None, kw_only=True, alias="queue_observer")
    _watches: list[WatchedSource[Any]] = attrs.field(factory=list, init=False)
    _tally: Counters = attrs.field(factory=Counters, init=False)
    _run: ControllerRun | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Controller {self.name!r}: {self._run.phase if self._run is not None else 'not running'}>"

    def watch(
        self,
        informer: SharedInformer[T],
        *,
        enqueue: Enqueue[T] = request_for_object,
        predicates: Sequence[Predicate[T]] = (),
    ) -> None:
        """Have events of an informer looked at, from the next run on, or at once while one is going on.

        A controller that watches late is first told of all that is in the cache, and goes on working meanwhile.
        Watching while it stops is for the next run.

        Predicates and ``enqueue`` are called once the caches of all informers are filled that are watched before the
        run, so they may read any of these.
        What they raise leaves :meth:`run`, with a note that names controller and object; the informer goes on.

        Args:
            informer: Where events come from.  It is for somebody else to run it.
            enqueue: From an object to the requests that it concerns; of an update, it is asked for both states.
            predicates: An event is looked at if all of them pass it.

        Raises:
            RuntimeError: The controller is running, and the informer has stopped.
        """
        watch = WatchedSource(informer, enqueue, tuple(predicates))
        if self._run is not None:
            self._run.join(watch)
        self._watches.append(watch)

    def add(self, request: Request, *, priority: int = 0) -> bool:
        """Ask for a request to be handled, for a reason that no informer tells of.

        Args:
            request: What to look at.
            priority: Higher is earlier.

        Returns:
            Whether it will be; False when the controller does not run, or is stopping.
        """
        return self._run is not None and self._run.queue.add(request, priority=priority)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled or stopped; with ``nursery.start`` it has started when the workers have.

        That is when every handler has returned from what was there in the beginning.
        There is no deadline for this; :meth:`statistics` tells what is missing and why, and so does the log, again and
        again.
        A run that is stopped before that returns to ``nursery.start`` as if it had started.

        Raises:
            RuntimeError: It runs already.
            ExceptionGroup: Of what a predicate, an enqueue function, ``on_dropped`` or an observer raised; of
                `CacheSyncError`, when an informer has stopped before its handler had synced; of ``RuntimeError``, when
                it had stopped before this began.

        Cancellation: reconciles are cancelled at once, and no further one begins.

        Ownership: all its tasks have ended when it returns, and its handlers have been removed.
        """
        if self._run is not None:
            raise RuntimeError(f"controller {self.name} runs already; it can run again when that has ended")
        run = self._run = ControllerRun(
            name=self.name,
            reconcile=self._reconcile,
            workers=self.workers,
            max_retries=self.max_retries,
            on_dropped=self._on_dropped,
            reconcile_deadline=self.reconcile_deadline,
            limiter=self._limiter,
            observer=self._observer,
            queue_observer=self._queue_observer,
            counters=self._tally,
        )
        try:
            await run.run(self._watches, task_status)
        finally:
            self._run = None
            run.ended.set()

    async def stop(self) -> None:
        """End the run in good order: take no more events, begin no more requests, wait for the reconciles that run.

        How long they may take is for the caller to say::

            with trio.move_on_after(30):
                await controller.stop()

        Then :meth:`run` returns, whichever way it went.
        When there is no run, or it has ended, there is nothing to wait for.

        Raises:
            RuntimeError: The caller is inside of a reconcile, which it would wait for.

        Cancellation: the reconciles that are running are cancelled.
        """
        if self._run is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._run.stop()

    def statistics(self) -> ControllerStatistics:
        """Count, and tell what the controller is doing."""
        run, counters = self._run, self._tally
        return ControllerStatistics(
            phase="not running" if run is None else run.phase,
            waiting_for=() if run is None else run.waiting_for(),
            workers=self.workers,
            active=0 if run is None else len(run.reconciler.busy),
            succeeded=counters.succeeded,
            requeued=counters.requeued,
            failed=counters.failed,
            late=counters.late,
            terminal=counters.terminal,
            dropped=counters.dropped,
            failing=0 if run is None else len(run.reconciler.failures),
            queue=None if run is None else run.queue.statistics(),
            handlers=() if run is None else tuple(handler.statistics() for _, handler in run.sources.joined),
        )
