"""The class :class:`Metrics`: a registry, observers that count events, and registered objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, final

import attrs
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from ..cache import HandlerRegistration, SharedInformerFactory
from ..controller import Controller, ControllerObserver
from ..controller._internal import attach_observer, detach_observer
from ..leaderelection import LeaderElector
from ..models import KubernetesObject
from ..transport import RequestObserver
from ..workqueue import QueueObserver, WorkQueue
from ._collector import Collector, SharesOwner
from ._observers import ControllerCounts, QueueCounts, QueueMetrics, ReconcileCounts, ReconcileMetrics, RequestMetrics

T = TypeVar("T", bound=KubernetesObject)
K = TypeVar("K", bound=Hashable)


def _registry_or_new(registry: CollectorRegistry | None) -> CollectorRegistry:
    if registry is None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
    return registry


@final
@attrs.define(eq=False, repr=False)
class Metrics:
    """The metrics of a program in a Prometheus registry.

    For example::

        metrics = Metrics()
        controller = Controller("web", reconcile, workers=4)
        metrics.register_controller(controller)

    *Observers* count events when they happen.  Pass each observer to the object that it observes.  A registered
    controller gets its observer automatically.
    *Registered* objects are read at each scrape, and cost nothing between scrapes.  An object stays registered until
    :meth:`unregister` is called.  The counters of its observer are kept after that.

    There is no global state, so several instances in one process are independent.

    Args:
        registry: The registry for the metrics, such as ``prometheus_client.REGISTRY``.  If None, a new registry is
            created, which also contains metrics of the process: CPU, memory and open files.

    Raises:
        ValueError: If the registry already contains metrics with the same names, for example from another
            :class:`Metrics`.
    """

    registry: CollectorRegistry = attrs.field(default=None, converter=_registry_or_new)
    """The registry that contains the metrics.  Programs can add their own metrics to this registry."""
    _reconciles: ReconcileMetrics = attrs.field(init=False)
    _queues: QueueMetrics = attrs.field(init=False)
    _requests: RequestMetrics = attrs.field(init=False)
    _collector: Collector = attrs.field(factory=Collector, init=False)
    _added: dict[Controller[Any], ControllerObserver[Hashable]] = attrs.field(factory=dict, init=False)
    """The observers that were added to registered controllers."""

    def __attrs_post_init__(self) -> None:
        self._reconciles = ReconcileMetrics(self.registry)
        self._queues = QueueMetrics(self.registry)
        self._requests = RequestMetrics(self.registry)
        self.registry.register(self._collector)

    def controller_observer(self, name: str, workers: int) -> ControllerObserver[Hashable]:
        """Return the ``observer=`` argument of a controller, which counts reconciles and keys of the queue.

        The names of the metrics begin with ``controller_runtime_`` and ``workqueue_``.  Observers with the same name
        share their counters, for example if a new controller is created whenever this process becomes the leader.

        Args:
            name: The name of the controller, which is also the value of the label ``controller``.
            workers: The number of workers of the controller.
        """
        return ControllerCounts(ReconcileCounts(self._reconciles, name, workers), QueueCounts(self._queues, name))

    def queue_observer(self, name: str) -> QueueObserver[Hashable]:
        """Return the ``observer=`` argument of a queue, which counts keys and measures durations.

        The other ``workqueue_*`` metrics require :meth:`register_controller` or :meth:`register_queue`.

        Args:
            name: The name of the queue, which is also the value of the labels ``name`` and ``controller``.
        """
        return QueueCounts(self._queues, name)

    def request_observer(self) -> RequestObserver:
        """Return the ``observer=`` argument of :func:`~trioformer.client.open_client`, which counts requests.

        The names of the metrics begin with ``rest_client_``.
        """
        return self._requests

    def register_controller(self, controller: Controller[K]) -> None:
        """Register a controller to measure its reconciles, its queue and its handlers.

        If the controller is already running, reconciles and keys are counted from its next run on.  The values that are
        read at each scrape include the current run.  If the controller already has an observer from this
        :class:`Metrics`, no other observer is added.

        Raises:
            ValueError: If a controller or queue with the same name is already registered.
        """
        name, options = controller.name, controller.options
        self._collector.queues.add(name, controller)
        own = options.observer
        if isinstance(own, ControllerCounts) and own.reconciles.metrics is self._reconciles:
            own.reconciles.record_workers(options.workers)
            return
        observer = self._added[controller] = self.controller_observer(name, options.workers)
        attach_observer(controller, observer)

    def register_queue(self, queue: WorkQueue[K]) -> None:
        """Register a queue to measure its waiting keys and the keys in progress.

        Raises:
            ValueError: If the queue has no name, or a controller or queue with the same name is already registered.
        """
        if not queue.name:
            raise ValueError("a queue without a name cannot be registered; create the queue with name=")
        self._collector.queues.add(queue.name, queue)

    def register_factory(self, factory: SharedInformerFactory, *, name: str = "") -> None:
        """Register a factory to measure the state, the number of objects and the data age of each informer.

        Args:
            factory: The factory whose informers are measured.
            name: The value of the label ``name``, which distinguishes several factories.

        Raises:
            ValueError: If a factory with the same name is already registered.
        """
        self._collector.factories.add(name, factory)

    def register_handler(self, registration: HandlerRegistration[T]) -> None:
        """Register a handler to measure its waiting notifications and its calls.

        The handlers of a controller are already included in :meth:`register_controller`.
        """
        self._collector.handlers.append(registration)

    def register_elector(self, elector: LeaderElector, *, name: str) -> None:
        """Register an elector to measure whether this process is the leader.

        Args:
            elector: The elector of this process.
            name: The value of the label ``name``, by convention the name of the Lease.

        Raises:
            ValueError: If an elector with the same name is already registered.
        """
        self._collector.electors.add(name, elector)

    def register_shares(self, shares: SharesOwner, *, name: str) -> None:
        """Register open shares to measure their ranges and moves.

        Args:
            shares: The open shares of this process.
            name: The value of the label ``name``, by convention the name of the shares.

        Raises:
            ValueError: If shares with the same name are already registered.
        """
        self._collector.shares.add(name, shares)

    def unregister(
        self,
        registered: Controller[K]
        | WorkQueue[K]
        | SharedInformerFactory
        | HandlerRegistration[T]
        | LeaderElector
        | SharesOwner,
    ) -> None:
        """Stop measuring an object, and release its name.

        If the object is not registered, this method does nothing.
        """
        self._collector.discard(registered)
        if isinstance(registered, Controller):
            observer = self._added.pop(registered, None)
            if observer is not None:
                detach_observer(registered, observer)

    def is_registered(self, obj: object) -> bool:
        """Return whether a controller, queue, factory, handler or elector is registered, under any name."""
        return self._collector.has(obj)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Render all metrics for a scrape.

        If objects are registered, this method must be called in trio's thread.

        Args:
            accept: The ``Accept`` header of the request, which selects the Prometheus text format or OpenMetrics.

        Returns:
            The body of the response, and its ``Content-Type``.
        """
        encode, content_type = _encoder(accept)
        return encode(self.registry), content_type


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Choose the format for an ``Accept`` header.

    A header that prometheus-client cannot parse, such as ``version=abc``, is ignored.  A server may ignore the header
    (RFC 9110, 12.5.1), and every scraper can read the default format.
    """
    if len(accept) <= _LONGEST_ACCEPT:
        try:
            return choose_encoder(accept)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            pass
    return choose_encoder("")


_LONGEST_ACCEPT = 4_096
