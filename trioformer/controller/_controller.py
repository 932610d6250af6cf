"""The controller: informers add requests to a queue, and workers reconcile the requested objects.

The queue ensures that each changed object is reconciled by one worker at a time, and that failed requests are retried.
The controller starts and ends its parts in the right order:

- Start: the handlers are registered, but paused.  When all caches have synced, the handlers start, so that enqueue
  functions can read every cache.  When all handlers have processed their initial objects, the workers start.
- Errors: an exception from ``reconcile`` affects only its request.  An exception from a predicate or an enqueue
  function ends the run, because an event would be lost otherwise.  The informer continues.
- End: cancellation ends the run immediately, and ``stop()`` waits for the running calls to ``reconcile``.  Pending
  requests are then dropped, because the next run receives all objects again.

Source: controller-runtime ``pkg/internal/controller``; client-go ``examples/workqueue``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar, final

import attrs
import trio

from .._suggestions import check_async, check_sync, describe
from ..cache import SharedInformer, SharedInformerFactory
from ..models import KubernetesObject
from ..workqueue import QueueObserver, RateLimiter
from ._controller_run import ControllerRun
from ._enqueue import request_for_object, request_for_owner
from ._journal import Journal, JournalEntry, new_journal
from ._observers import Observers
from ._options import ControllerOptions, ErrorHandler, PausedHandler
from ._own_writes import OwnWrites
from ._predicates import Predicate
from ._request import K, Request
from ._results import Reconcile
from ._sources import WatchedSource, share_in
from ._statistics import ControllerObserver, ControllerStatistics, Counters

H = TypeVar("H", bound=Hashable)
T = TypeVar("T", bound=KubernetesObject)

_REQUEST_FOR_OBJECT: Final[Any] = request_for_object  # with overloads, mypy cannot infer the types of lambdas


class ControllerRegistry(Protocol):
    """A registry that measures controllers, such as :class:`trioformer.metrics.Metrics`."""

    def register_controller(self, controller: Controller[H]) -> None:
        """Begin to measure a controller."""
        ...


@final
@attrs.define(eq=False, repr=False, init=False)
class Controller(Generic[K]):
    """A controller that calls ``reconcile`` for each object that was added, changed or deleted.

    - A request is processed by one worker at a time.  A request that is added while it is being processed is processed
      again.
    - ``reconcile(request)`` receives the name of an object.  The function reads the object from a lister, which
      returns None if the object was deleted.
    - If ``reconcile`` returns None, the request has succeeded, and its earlier failures are forgotten.  If it returns
      :class:`~trioformer.controller.RequeueAfter`, the request has also succeeded, and is processed again after the
      given delay.
    - If ``reconcile`` raises an ``Exception``, the error is logged, and the request is retried after a delay that
      grows with each failure.  The controller continues.  After a :class:`~trioformer.controller.TerminalError`, the
      request is not retried.
    - A ``BaseException`` that is not an ``Exception``, such as ``KeyboardInterrupt``, ends the controller.
    - Requests for initial objects and for resyncs have a low priority.  Every eighth time, a worker takes the oldest
      request regardless of its priority, so that low priorities make progress.

    A controller can be run several times, for example each time this process becomes the leader.  Each run has its own
    queue.

    A request is a :class:`~trioformer.controller.Request`, or an object of another hashable type that ``reconcile``
    accepts, for example a type that includes the name of a cluster.  With another type, each call to :meth:`watch`
    requires
    ``enqueue``.

    Args:
        name: The controller's name in log messages, errors and metrics.
        reconcile: The async function that is called with each request.
        metrics: A registry that measures the controller, such as `Metrics`.
        journal: Whether the controller keeps a journal for :meth:`journal`.  The fixtures of trioformer for pytest set
            this for all controllers.
        workers, max_retries, on_error, reconcile_deadline, limiter, observer, reads_own_writes: See
            :class:`~trioformer.controller.ControllerOptions`.
        paused_by, on_paused, min_interval, resync_every: See :class:`~trioformer.controller.ControllerOptions`.

    Raises:
        TypeError: ``name`` is not a string, or ``reconcile`` or ``on_error`` is not an async function that accepts
            its arguments.
        ValueError: A numeric option is too small, or ``metrics`` already has a controller with this name.
    """

    name: str
    """The controller's name in log messages, errors and metrics."""
    options: ControllerOptions[K]
    """The options that were passed as keyword arguments."""
    _reconcile: Reconcile[K]
    _watches: list[WatchedSource[Any, K]]
    _observers: Observers[K]
    _counters: Counters
    _journal: Journal[K] | None
    _own_writes: OwnWrites[K] | None
    _run: ControllerRun[K] | None

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        *,
        workers: int = 1,
        max_retries: int | None = None,
        on_error: ErrorHandler[K] | None = None,
        reconcile_deadline: float = math.inf,
        # mypy cannot infer K from a reconcile and a limiter or an observer of any key
        limiter: RateLimiter[Any] | None = None,
        observer: ControllerObserver[Any] | QueueObserver[Any] | None = None,
        metrics: ControllerRegistry | None = None,
        journal: bool = False,
        reads_own_writes: bool = True,
        paused_by: str | None = None,
        on_paused: PausedHandler[K] | None = None,
        min_interval: float = 0.0,
        resync_every: float = math.inf,
    ) -> None:
        _check_arguments(name, reconcile, on_error)
        self.name = name
        self.options = ControllerOptions(
            workers=workers,
            max_retries=max_retries,
            on_error=on_error,
            reconcile_deadline=reconcile_deadline,
            limiter=limiter,
            observer=observer,
            reads_own_writes=reads_own_writes,
            paused_by=paused_by,
            on_paused=on_paused,
            min_interval=min_interval,
            resync_every=resync_every,
        )
        if on_paused is not None:
            check_async(on_paused, "on_paused", "async def on_paused(request: Request)", Request(None, ""))
        self._reconcile = reconcile
        self._watches = []
        self._observers = Observers()
        if observer is not None:
            self._observers.add(observer)
        self._counters = counters = Counters()
        self._journal = new_journal(journal)
        self._own_writes = None
        if reads_own_writes:
            self._own_writes = OwnWrites(name, counters.stale_sync_skips, counters.stale_syncs, self._journal)
        self._run = None
        if metrics is not None:
            metrics.register_controller(self)

    def __repr__(self) -> str:
        return f"<Controller {self.name!r}: {self._run.phase if self._run is not None else 'not running'}>"

    def watch(
        self,
        informer: SharedInformer[T],
        *,
        enqueue: Callable[[T], Iterable[K]] = _REQUEST_FOR_OBJECT,
        predicates: Sequence[Predicate[T]] = (),
        priority: int = 0,
    ) -> None:
        """Watch the events of an informer, in the current run and all later runs.

        If the controller is running, it first receives all objects in the cache, while it continues to work. If the
        controller is stopping, the call takes effect in the next run.

        The predicates and ``enqueue`` receive all states of the cached objects in order. These functions must be fast,
        because the cache waits for them. They can read the caches of all informers that were watched before the run,
        because these caches have synced before the first call. An exception from a predicate or from ``enqueue`` ends
        :meth:`run`,
        but not the informer.  A note names the controller and the object. A `DecodeError` or `QuarantinedError` does
        not end the run: other requests are still added, and a warning is logged at most once a minute.

        Args:
            informer: The informer whose events are watched.  The controller does not run the informer.
            enqueue: A function that returns the requests for an object.  For an update, it is called with the old and
                the new state.  The default returns a request for the object itself.
            predicates: Functions that select events.  An event is processed if all predicates return True.
            priority: The priority of the requests.  Requests with a higher priority are processed first.  The requests
                for initial objects and resyncs keep their low priority.

        Raises:
            TypeError: ``informer`` is not an informer, or ``enqueue`` or a predicate is not a function with one
                parameter.
            RuntimeError: The controller is running, but the informer has stopped.
        """
        _check_watch(informer, enqueue, predicates)
        watch = WatchedSource(informer, enqueue, tuple(predicates), priority)
        if self._run is not None:
            self._run.register(watch)
        self._watches.append(watch)

    def owns(
        self: Controller[Request],
        factory: SharedInformerFactory,
        kind: type[T],
        *,
        owner: type[KubernetesObject],
        predicates: Sequence[Predicate[T]] = (),
    ) -> SharedInformer[T]:
        """Watch the objects of a kind, and reconcile their controlling owners.

        This method is equivalent to ``watch(factory.informer(kind), enqueue=request_for_owner(owner))``.  In
        controller-runtime, the builder's ``Owns`` is similar.

        Args:
            factory: The factory that provides the informer.
            kind: The class of the owned objects, such as Deployment.
            owner: The class of the owners, which this controller reconciles.
            predicates: Functions that select events.  An event is processed if all predicates return True.

        Returns:
            The informer of the owned objects.

        Raises:
            TypeError: An argument has the wrong type.
            RuntimeError: The controller is running, but the informer has stopped.
        """
        if not isinstance(factory, SharedInformerFactory):
            raise TypeError(f"owns() requires a SharedInformerFactory, not {describe(factory)}")
        enqueue = request_for_owner(owner)
        informer = factory.informer(kind)
        self.watch(informer, enqueue=enqueue, predicates=predicates)
        return informer

    def add(self, request: K, *, priority: int = 0) -> bool:
        """Add a request to the queue.

        Args:
            request: The request for the object to reconcile.
            priority: The priority of the request.  Requests with a higher priority are processed first.

        Returns:
            Whether the request was accepted.  A request is not accepted if the controller is stopping or not running.
        """
        is_added = self._run is not None and self._run.queue.add(request, priority=priority)
        if is_added and self._journal is not None:
            self._journal.add(request, "Controller.add")
        return is_added

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled or stopped; ``nursery.start()`` returns when the workers have started.

        The workers start when all handlers have processed their initial objects. There is no deadline for the start.
        :meth:`statistics` and a periodic log message name the missing caches and handlers. If the controller is
        stopped before the workers have started, ``nursery.start()`` returns too.

        Raises:
            RuntimeError: The controller is already running, or ``paused_by`` or ``resync_every`` is set and all
                informers are watched with ``enqueue``.
            ExceptionGroup: A predicate, an enqueue function or an observer raised an exception.  The group contains a
                `CacheSyncError` if an informer stopped before its handler had synced, and a ``RuntimeError`` if an
                informer had stopped before the run.

        Cancellation: the running calls to ``reconcile`` are cancelled immediately, and no further calls start.

        Ownership: when this method returns, all tasks of the controller have ended, and its handlers are removed.
        """
        if self._run is not None:
            raise RuntimeError(f"controller {self.name} is already running")
        needs_objects = self.options.paused_by or self.options.resync_every < math.inf
        if needs_objects and not any(watch.is_primary for watch in self._watches):
            raise RuntimeError(f"controller {self.name} watches no objects that it reconciles; call watch(informer)")
        run = self._run = ControllerRun(
            name=self.name,
            reconcile=self._reconcile,
            options=self.options,
            observers=self._observers,
            counters=self._counters,
            journal=self._journal,
            own_writes=self._own_writes,
        )
        try:
            await run.run(self._watches, task_status)
        finally:
            self._run = None
            run.ended.set()

    async def stop(self) -> None:
        """Stop the controller, and wait until the running calls to ``reconcile`` have returned.

        The controller accepts no more events and starts no more calls.  Then :meth:`run` returns.  To limit the time,
        use a cancel scope::

            with trio.move_on_after(30):
                await controller.stop()

        If the controller is not running, this method returns immediately.

        Raises:
            RuntimeError: The caller is inside a call to ``reconcile``, which would wait for itself.

        Cancellation: the running calls to ``reconcile`` are cancelled.
        """
        if self._run is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._run.stop()

    def statistics(self) -> ControllerStatistics:
        """Return statistics about the controller, such as ``phase``, ``waiting_for``, ``succeeded`` and ``failed``."""
        run, counters = self._run, self._counters
        return ControllerStatistics(
            phase="not running" if run is None else run.phase,
            waiting_for=() if run is None else run.waiting_for(),
            workers=self.options.workers,
            active=0 if run is None else len(run.reconciler.running),
            succeeded=counters.succeeded,
            requeued=counters.requeued,
            failed=counters.failed,
            timed_out=counters.timed_out,
            terminal=counters.terminal,
            dropped=counters.dropped,
            stale_sync_skips=MappingProxyType(dict(counters.stale_sync_skips)),
            stale_syncs=MappingProxyType(dict(counters.stale_syncs)),
            failing=0 if run is None else len(run.reconciler.failures),
            paused=0 if run is None or run.pauses is None else len(run.pauses.parked),
            queue=None if run is None else run.queue.statistics(),
            handlers=() if run is None else tuple(handler.statistics() for _, handler in run.sources.handlers),
        )

    def journal(self, request: K | None = None) -> tuple[JournalEntry[K], ...]:
        """Return the last calls to ``reconcile``, with their causes and writes.

        The journal contains the last 256 calls of all runs, including calls that are still running.  It can answer why
        an object was reconciled, which fields changed, and whether the controller itself caused the event::

            for entry in controller.journal(Request("default", "web")):
                print(entry)

        An entry has the fields ``request``, ``reconcile_id``, ``began``, ``ended``, ``result``, ``error``, ``causes``,
        ``more_causes`` and ``writes``.  A write has the fields ``at``, ``method``, ``path``, ``code``, ``uid`` and
        ``resource_version``.

        Args:
            request: The request whose entries are returned.  The default, None, means all requests.

        Raises:
            RuntimeError: The controller has no journal.
        """
        if self._journal is None:
            raise RuntimeError(f"controller {self.name} has no journal; create it with journal=True")
        return self._journal.entries(request)


_RECONCILE: Final = "async def reconcile(request: Request)"
_ON_ERROR: Final = "async def on_error(request: Request, error, then)"


def _check_arguments(name: object, reconcile: object, on_error: object) -> None:
    if callable(name):
        raise TypeError('the first argument of Controller must be a name, as in Controller("pods", reconcile)')
    if not isinstance(name, str):
        raise TypeError(f"the name of a controller must be a string, not {describe(name)}")
    if hasattr(reconcile, "reconcile") and (
        isinstance(reconcile, type) or not callable(reconcile)
    ):  # like controller-runtime's Reconciler
        raise TypeError(f"reconcile must be an async function, not {describe(reconcile)}; pass its reconcile method")
    request = Request(None, "")
    check_async(reconcile, "reconcile", _RECONCILE, request)
    if on_error is not None:
        check_async(on_error, "on_error", _ON_ERROR, request, Exception(), "retry")


def _check_watch(informer: object, enqueue: object, predicates: object) -> None:
    if not isinstance(informer, SharedInformer):
        kind = informer.__name__ if isinstance(informer, type) else "Pod"
        raise TypeError(
            f"watch() requires an informer, not {describe(informer)}; write controller.watch(factory.informer({kind}))"
        )
    check_sync(enqueue, "enqueue", "def requests(obj): return [Request(...)]")
    if callable(predicates) or not isinstance(predicates, Iterable):
        raise TypeError("predicates must be a sequence of functions; write predicates=[...]")
    for predicate in predicates:
        check_sync(predicate, "a predicate", "def is_wanted(event): return True")


def journal_of(controller: Controller[Any]) -> tuple[JournalEntry[Any], ...]:
    """Return the entries of a controller's journal, or an empty tuple if it has no journal."""
    return () if controller._journal is None else controller._journal.entries()


def is_divided(controller: Controller[Any]) -> bool:
    """Return whether the objects that a controller reconciles are divided between processes."""
    return share_in(controller.name, controller._watches) is not None


def attach_observer(controller: Controller[K], observer: ControllerObserver[K] | QueueObserver[K]) -> None:
    """Add an observer to a controller; later runs call the observer."""
    controller._observers.add(observer)


def detach_observer(controller: Controller[K], observer: ControllerObserver[K] | QueueObserver[K]) -> None:
    """Remove an observer from a controller; a run that has begun still calls the observer."""
    controller._observers.discard(observer)


def convert_functions(controller: Controller[Any], convert: Callable[[Any], Any]) -> None:
    """Replace the async functions of a controller by the results of ``convert``, before it runs."""
    options = controller.options
    controller._reconcile = convert(controller._reconcile)
    controller.options = attrs.evolve(
        options,
        on_error=None if options.on_error is None else convert(options.on_error),
        on_paused=None if options.on_paused is None else convert(options.on_paused),
    )
