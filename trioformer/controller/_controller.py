"""The controller: informers feed a queue, and workers reconcile.

A controller looks at every object that changed, but not at every change.  It has several workers, but never two for one
object.  It retries what failed, and starts when its caches are complete.  The queue does most of this; the rest is the
order in which a run starts, fails and ends:

- Start.  The handlers are registered.  When all caches have synced, the handlers process their first notifications, so
  that enqueue functions may read any of the caches.  When all handlers have processed the initial objects, the workers
  start.
- Errors.  An exception of a reconcile affects its request only.  An exception of a predicate or an enqueue function
  would lose an event, so it ends the run; it does not end the informer in whose task it was raised.
- End.  Cancellation ends everything immediately; ``stop()`` lets the running reconciles finish.  Requests that wait are
  not started in either case: the next run finds their objects in its initial lists.

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

_REQUEST_FOR_OBJECT: Final[Any] = request_for_object  # with overloads, mypy does not infer the types of lambdas


class ControllerRegistry(Protocol):
    """What measures controllers: :class:`trioformer.metrics.Metrics`."""

    def register_controller(self, controller: Controller[H]) -> None:
        """Measure a controller from now on."""
        ...


@final
@attrs.define(eq=False, repr=False, init=False)
class Controller(Generic[K]):
    """Calls ``reconcile`` for every object that was added, changed or deleted.

    - A request has one worker at a time.  However often it is added meanwhile, it is reconciled once more.
    - ``reconcile(request)`` receives a name; it reads the object from a lister, which returns None if the object was
      deleted.
    - When it returns, the request is done, and its failures are forgotten.  When it returns
      :class:`~trioformer.controller.RequeueAfter`, the request is also added again after that time.
    - When it raises, the error is logged, and the request is retried after the limiter's delay.  Such errors never end
      the controller.  After a :class:`~trioformer.controller.TerminalError` the request is not retried.
    - A ``BaseException`` that is not an ``Exception``, such as ``KeyboardInterrupt``, ends the controller.
    - Requests for the initial objects and for resyncs have a low priority; every eighth request is the one that has
      waited longest, so low ones make progress beside any number of others.

    A controller has no resources before :meth:`run`, and may run again after a run has ended, for example each time
    this process becomes the leader.  Each run has its own queue.

    Requests are :class:`~trioformer.controller.Request`, unless ``reconcile`` takes another type: any hashable value,
    for example one that also names a cluster.  Then each watch needs a function ``enqueue`` that makes such requests.

    Args:
        name: The name in logs, errors and metrics.
        reconcile: Called with each request.
        metrics: Measures the controller, as `Metrics.register_controller` does.
        workers, max_retries, on_dropped, reconcile_deadline, limiter, observer: see the fields of
            :class:`~trioformer.controller.ControllerOptions`.

    Raises:
        TypeError: ``name`` is not a string, or ``reconcile`` or ``on_dropped`` is not an async function that takes its
            arguments.
        ValueError: A number is too small; or ``metrics`` has another controller of this name.
    """

    name: str
    """The name in logs, errors and metrics."""
    options: ControllerOptions[K]
    """The keyword arguments; they do not change."""
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
        # mypy does not find K from a reconcile and a limiter or an observer of any key
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
        """Watch the events of an informer, in the current run and in all later ones.

        A controller that is running first receives all objects in the cache, and continues to work meanwhile.
        In a run that is stopping this has no effect before the next run.

        Predicates and ``enqueue`` receive every state that the cache has from then on, in order.
        They must be quick: when they are slower than the events, the cache waits for them.
        They are called after the caches of all informers have synced that are watched before the
        run, so they may read any of these.
        Their exceptions end :meth:`run`, with a note that names the controller and the object; the informer continues.
        A `DecodeError` or a `QuarantinedError` does not: the requests of all other calls are added, and a warning is
        logged at most once in ten minutes.

        Args:
            informer: The source of the events.  The controller does not run it.
            enqueue: Returns the requests for an object; for an update it is called with both states.
            predicates: An event is processed if all of them return True.

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
        """Watch the objects of a kind that objects of another kind control, and reconcile these owners.

        It is ``watch(factory.informer(kind), enqueue=request_for_owner(owner))``, and what controller-runtime's builder
        calls ``Owns``.

        Args:
            factory: Has the informer, with its own namespace and selectors.
            kind: The kind of the owned objects, such as Deployment.
            owner: The kind that this controller reconciles.
            predicates: An event is processed if all of them return True.

        Returns:
            The informer, whose lister has the owned objects.

        Raises:
            TypeError: An argument is not of its type.
            RuntimeError: The controller is running, and the informer has stopped.
        """
        if not isinstance(factory, SharedInformerFactory):
            raise TypeError(f"owns() needs the factory of the informer, not {describe(factory)}")
        enqueue = request_for_owner(owner)
        informer = factory.informer(kind)
        self.watch(informer, enqueue=enqueue, predicates=predicates)
        return informer

    def add(self, request: K, *, priority: int = 0) -> bool:
        """Add a request for a reason that no informer reports.

        Args:
            request: The object to reconcile.
            priority: Higher comes first.

        Returns:
            Whether the request was accepted; False when the controller is not running, or is stopping.
        """
        return self._run is not None and self._run.queue.add(request, priority=priority)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled or stopped; ``nursery.start`` returns when the workers have started.

        They start when every handler has processed the initial objects.
        There is no deadline for this; :meth:`statistics` and a periodic log line say what is missing, and why.
        When a run is stopped before it has started, ``nursery.start`` returns as if it had.

        Raises:
            RuntimeError: The controller is running already.
            ExceptionGroup: Exceptions of predicates, enqueue functions, ``on_dropped`` and observers; `CacheSyncError`
                when an informer stopped before its handler had synced; ``RuntimeError`` when it had stopped before the
                run began.

        Cancellation: the running reconciles are cancelled immediately, and no others start.

        Ownership: when it returns, all its tasks have ended, and its handlers have been removed.
        """
        if self._run is not None:
            raise RuntimeError(f"controller {self.name} is already running; run it again when that run has ended")
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
        """Accept no more events, start no more reconciles, and wait for the running ones.

        The caller limits the time::

            with trio.move_on_after(30):
                await controller.stop()

        Then :meth:`run` returns in either case.
        When the controller is not running, there is nothing to wait for.

        Raises:
            RuntimeError: The caller is inside a reconcile, for which it would wait.

        Cancellation: the running reconciles are cancelled.
        """
        if self._run is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._run.stop()

    def statistics(self) -> ControllerStatistics:
        """Return the phase and the counts."""
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
        raise TypeError('the name of a controller comes first: Controller("pods", reconcile)')
    if not isinstance(name, str):
        raise TypeError(f"the name of a controller must be a string, not {describe(name)}")
    if hasattr(reconcile, "reconcile") and (
        isinstance(reconcile, type) or not callable(reconcile)
    ):  # controller-runtime's Reconciler is an object with this method
        raise TypeError(f"reconcile must be an async function, not {describe(reconcile)}; pass its method reconcile")
    request = Request(None, "")
    check_async(reconcile, "reconcile", _RECONCILE, request)
    if on_dropped is not None:
        check_async(on_dropped, "on_dropped", "async def on_dropped(request: Request, error)", request, Exception())


def _check_watch(informer: object, enqueue: object, predicates: object) -> None:
    if not isinstance(informer, SharedInformer):
        kind = informer.__name__ if isinstance(informer, type) else "Pod"
        raise TypeError(
            f"a controller watches an informer, not {describe(informer)}; "
            f"write controller.watch(factory.informer({kind}))"
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
