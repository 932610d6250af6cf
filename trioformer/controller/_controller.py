"""The controller: informers feed a queue, and workers reconcile.

The queue ensures that every changed object is reconciled, by one worker at a time, and that failures are retried.  The
rest is the order in which a run starts, fails and ends:

- Start: the handlers are registered.  When all caches have synced, the handlers process their first notifications, so
  that enqueue functions can read any of the caches.  When all handlers have processed the initial objects, the workers
  start.
- Errors: an exception of a reconcile affects only its request.  An exception of a predicate or an enqueue function
  would lose an event, so it ends the run, but not the informer.
- End: cancellation ends everything immediately; ``stop()`` lets the running reconciles finish.  Neither starts further
  requests: the next run finds their objects in its initial lists.

Source: controller-runtime ``pkg/internal/controller``; client-go ``examples/workqueue``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, final

import attrs
import trio

from .._suggestions import check_async, check_sync, describe
from ..cache import SharedInformer, SharedInformerFactory
from ..models import KubernetesObject
from ..workqueue import QueueObserver, RateLimiter
from ._controller_run import ControllerRun
from ._enqueue import request_for_object, request_for_owner
from ._observers import Observers
from ._options import ControllerOptions, DroppedHandler
from ._predicates import Predicate
from ._request import K, Request
from ._results import Reconcile
from ._sources import WatchedSource
from ._statistics import ControllerObserver, ControllerStatistics, Counters

H = TypeVar("H", bound=Hashable)
T = TypeVar("T", bound=KubernetesObject)

_REQUEST_FOR_OBJECT: Final[Any] = request_for_object  # with overloads, mypy cannot infer the types of lambdas


class ControllerRegistry(Protocol):
    """Measures controllers; implemented by :class:`trioformer.metrics.Metrics`."""

    def register_controller(self, controller: Controller[H]) -> None:
        """Start to measure a controller."""
        ...


@final
@attrs.define(eq=False, repr=False, init=False)
class Controller(Generic[K]):
    """Calls ``reconcile`` for every object that was added, changed or deleted.

    - A request has at most one worker.  If it is added during a reconcile, it is reconciled once more.
    - ``reconcile(request)`` receives a name.  It reads the object from a lister, which returns None if the object was
      deleted.
    - If it returns, its failures are forgotten.  If it returns :class:`~trioformer.controller.RequeueAfter`, it is
      called again after that time.
    - If it raises, the error is logged, and the request is retried after the limiter's delay.  Errors do not end the
      controller.  After a :class:`~trioformer.controller.TerminalError` the request is not retried.
    - A ``BaseException`` that is not an ``Exception``, such as ``KeyboardInterrupt``, ends the controller.
    - Requests for the initial objects and for resyncs have a low priority.  Every eighth request is the oldest one, so
      low priorities always make progress.

    A controller has no resources before :meth:`run`, and can run again, for example each time this process becomes the
    leader.  Each run has its own queue.

    Requests are :class:`~trioformer.controller.Request` or, depending on ``reconcile``, any other hashable type, for
    example with the name of a cluster.  In that case, each watch requires ``enqueue``.

    Args:
        name: The name in logs, errors and metrics.
        reconcile: Called with each request.
        metrics: Measures the controller, as `Metrics.register_controller` does.
        workers, max_retries, on_dropped, reconcile_deadline, limiter, observer: See
            :class:`~trioformer.controller.ControllerOptions`.

    Raises:
        TypeError: ``name`` is not a string, or ``reconcile`` or ``on_dropped`` is not an async function with the right
            parameters.
        ValueError: A number is too small, or ``metrics`` already has a controller of this name.
    """

    name: str
    """The name in logs, errors and metrics."""
    options: ControllerOptions[K]
    """The keyword arguments."""
    _reconcile: Reconcile[K]
    _watches: list[WatchedSource[Any, K]]
    _observers: Observers[K]
    _counters: Counters
    _run: ControllerRun[K] | None

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        *,
        workers: int = 1,
        max_retries: int | None = None,
        on_dropped: DroppedHandler[K] | None = None,
        reconcile_deadline: float = math.inf,
        # mypy cannot infer K from a reconcile and a limiter or an observer of any key
        limiter: RateLimiter[Any] | None = None,
        observer: ControllerObserver[Any] | QueueObserver[Any] | None = None,
        metrics: ControllerRegistry | None = None,
    ) -> None:
        _check_arguments(name, reconcile, on_dropped)
        self.name = name
        self.options = ControllerOptions(
            workers=workers,
            max_retries=max_retries,
            on_dropped=on_dropped,
            reconcile_deadline=reconcile_deadline,
            limiter=limiter,
            observer=observer,
        )
        self._reconcile = reconcile
        self._watches = []
        self._observers = Observers()
        if observer is not None:
            self._observers.add(observer)
        self._counters = Counters()
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
    ) -> None:
        """Watch the events of an informer, in this and all later runs.

        A running controller first receives all objects in the cache, and continues to work meanwhile.
        While a run is stopping, this takes effect in the next run.

        Predicates and ``enqueue`` receive every state of the cache in order.
        They must be quick, because the cache waits for them.
        They are called when the caches of all informers that were watched before the run have synced, so they can read
        any of these caches.
        Their exceptions end :meth:`run`, but not the informer; a note names the controller and the object.
        A `DecodeError` or `QuarantinedError` is an exception to this: other requests are still added, and a warning is
        logged at most once in ten minutes.

        Args:
            informer: The source of the events.  The controller does not run it.
            enqueue: Returns the requests for an object.  For an update, it is called with both states.
            predicates: An event is processed if all predicates return True.

        Raises:
            TypeError: ``informer`` is not an informer, or ``enqueue`` or a predicate is not a function of one argument.
            RuntimeError: The controller is running, and the informer has stopped.
        """
        _check_watch(informer, enqueue, predicates)
        watch = WatchedSource(informer, enqueue, tuple(predicates))
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
        """Watch objects of a kind, and reconcile the objects that control them.

        This is short for ``watch(factory.informer(kind), enqueue=request_for_owner(owner))``, and corresponds to
        ``Owns`` of controller-runtime's builder.

        Args:
            factory: The factory of the informer.
            kind: The kind of the owned objects, such as Deployment.
            owner: The kind that this controller reconciles.
            predicates: An event is processed if all predicates return True.

        Returns:
            The informer of the owned objects.

        Raises:
            TypeError: An argument has the wrong type.
            RuntimeError: The controller is running, and the informer has stopped.
        """
        if not isinstance(factory, SharedInformerFactory):
            raise TypeError(f"owns() requires a SharedInformerFactory, not {describe(factory)}")
        enqueue = request_for_owner(owner)
        informer = factory.informer(kind)
        self.watch(informer, enqueue=enqueue, predicates=predicates)
        return informer

    def add(self, request: K, *, priority: int = 0) -> bool:
        """Add a request without an event of an informer.

        Args:
            request: The object to reconcile.
            priority: Higher comes first.

        Returns:
            Whether the request was accepted; False when the controller is stopping or not running.
        """
        return self._run is not None and self._run.queue.add(request, priority=priority)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled or stopped; ``nursery.start`` returns when the workers have started.

        They start when every handler has processed the initial objects.
        There is no deadline for this.  :meth:`statistics` and a periodic log line show what is missing.
        If the run is stopped before that, ``nursery.start`` returns too.

        Raises:
            RuntimeError: The controller is already running.
            ExceptionGroup: Exceptions of predicates, enqueue functions, ``on_dropped`` and observers; `CacheSyncError`
                if an informer stopped before its handler had synced; ``RuntimeError`` if it stopped before the run.

        Cancellation: the running reconciles are cancelled immediately, and no others start.

        Ownership: when it returns, all its tasks have ended, and its handlers are removed.
        """
        if self._run is not None:
            raise RuntimeError(f"controller {self.name} is already running")
        run = self._run = ControllerRun(
            name=self.name,
            reconcile=self._reconcile,
            options=self.options,
            observers=self._observers,
            counters=self._counters,
        )
        try:
            await run.run(self._watches, task_status)
        finally:
            self._run = None
            run.ended.set()

    async def stop(self) -> None:
        """Accept no more events, start no more reconciles, and wait for the running ones; then :meth:`run` returns.

        To limit the time::

            with trio.move_on_after(30):
                await controller.stop()

        If the controller is not running, this returns immediately.

        Raises:
            RuntimeError: Called inside a reconcile, which would wait for itself.

        Cancellation: the running reconciles are cancelled.
        """
        if self._run is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._run.stop()

    def statistics(self) -> ControllerStatistics:
        """Return the state and the counts, such as ``phase``, ``waiting_for``, ``succeeded`` and ``failed``."""
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
            failing=0 if run is None else len(run.reconciler.failures),
            queue=None if run is None else run.queue.statistics(),
            handlers=() if run is None else tuple(handler.statistics() for _, handler in run.sources.handlers),
        )


_RECONCILE: Final = "async def reconcile(request: Request)"


def _check_arguments(name: object, reconcile: object, on_dropped: object) -> None:
    if callable(name):
        raise TypeError('the first argument of a controller is its name: Controller("pods", reconcile)')
    if not isinstance(name, str):
        raise TypeError(f"the name of a controller must be a string, not {describe(name)}")
    if hasattr(reconcile, "reconcile") and (
        isinstance(reconcile, type) or not callable(reconcile)
    ):  # like controller-runtime's Reconciler
        raise TypeError(f"reconcile must be an async function, not {describe(reconcile)}; pass the method reconcile")
    request = Request(None, "")
    check_async(reconcile, "reconcile", _RECONCILE, request)
    if on_dropped is not None:
        check_async(on_dropped, "on_dropped", "async def on_dropped(request: Request, error)", request, Exception())


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


def attach_observer(controller: Controller[K], observer: ControllerObserver[K] | QueueObserver[K]) -> None:
    """Add an observer to the one of the arguments; later runs call it."""
    controller._observers.add(observer)


def detach_observer(controller: Controller[K], observer: ControllerObserver[K] | QueueObserver[K]) -> None:
    """Remove an observer that was attached; a run that has begun still calls it."""
    controller._observers.discard(observer)
