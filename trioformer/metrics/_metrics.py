"""The object that a program uses: a registry, observers that count events, and registered objects."""

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
from ._collector import Collector
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
    """The metrics of a program, in their own registry.

    For example::

        metrics = Metrics()
        controller = Controller("web", reconcile, workers=4)
        metrics.register_controller(controller)

    Pass *observers* to the objects that they observe.  They count as long as these live; a registered controller gets
    its observer automatically.
    *Registered* objects are read at each scrape, and cost nothing in between.
    They are kept until :meth:`unregister`; counters of observers stay after that.

    There is no global state: several instances in one process are independent.

    Args:
        registry: Where to register the metrics, such as ``prometheus_client.REGISTRY``; None makes a registry that also
            has metrics of the process: CPU, memory, open files.

    Raises:
        ValueError: The registry has metrics with the same names, for example those of another :class:`Metrics`.
    """

    registry: CollectorRegistry = attrs.field(default=None, converter=_registry_or_new)
    """The registry of the metrics; a program can add its own metrics."""
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
        """Make the ``observer=`` of a controller, for its reconciles and its queue: ``controller_runtime_*``.

        Another observer of the same name continues its counters, for example when a controller is created anew for
        each term as the leader.

        Args:
            name: The controller's name, the label ``controller``.
            workers: The controller's number of workers.
        """
        return ControllerCounts(ReconcileCounts(self._reconciles, name, workers), QueueCounts(self._queues, name))

    def queue_observer(self, name: str) -> QueueObserver[Hashable]:
        """Make the ``observer=`` of a queue: counters and durations.

        The other metrics of ``workqueue_*`` need :meth:`register_controller` or :meth:`register_queue`.

        Args:
            name: The queue's name: the labels ``name`` and ``controller``.
        """
        return QueueCounts(self._queues, name)

    def request_observer(self) -> RequestObserver:
        """Make the ``observer=`` of :func:`~trioformer.client.open_client`: ``rest_client_*``."""
        return self._requests

    def register_controller(self, controller: Controller[K]) -> None:
        """Measure a controller by its name: its reconciles, its queue and its handlers.

        Values that are read at each scrape include the current run; reconciles and keys are counted from the next run
        on.  An observer of this object is not added twice.

        Raises:
            ValueError: A controller or queue of that name is already registered.
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
        """Measure the keys that wait in a queue, and those in progress.

        Raises:
            ValueError: The queue has no name, or a controller or queue of that name is already registered.
        """
        if not queue.name:
            raise ValueError("a queue without a name cannot be registered; create it with name=")
        self._collector.queues.add(queue.name, queue)

    def register_factory(self, factory: SharedInformerFactory, *, name: str = "") -> None:
        """Measure every informer of a factory: the number and age of its objects, and its state.

        Args:
            factory: The factory.
            name: The label ``name``, which distinguishes several factories.

        Raises:
            ValueError: A factory of that name is already registered.
        """
        self._collector.factories.add(name, factory)

    def register_handler(self, registration: HandlerRegistration[T]) -> None:
        """Measure a handler's backlog; :meth:`register_controller` measures a controller's handlers."""
        self._collector.handlers.append(registration)

    def register_elector(self, elector: LeaderElector, *, name: str) -> None:
        """Measure whether this process leads.

        Args:
            elector: The candidate.
            name: The label ``name``; by convention that of the Lease.

        Raises:
            ValueError: An election of that name is already registered.
        """
        self._collector.electors.add(name, elector)

    def unregister(
        self,
        registered: Controller[K] | WorkQueue[K] | SharedInformerFactory | HandlerRegistration[T] | LeaderElector,
    ) -> None:
        """Stop measuring an object, and release its name; does nothing if it is not registered."""
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

        While objects are registered, call it in trio's thread.

        Args:
            accept: The request's ``Accept`` header, which selects Prometheus' text format or OpenMetrics.

        Returns:
            The body of the response, and its ``Content-Type``.
        """
        encode, content_type = _encoder(accept)
        return encode(self.registry), content_type


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Choose the format; a header that prometheus-client cannot parse, such as ``version=abc``, is ignored.

    A server may ignore the header (RFC 9110, 12.5.1), and every scraper reads the default format.
    """
    if len(accept) <= _LONGEST_ACCEPT:
        try:
            return choose_encoder(accept)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            pass
    return choose_encoder("")


_LONGEST_ACCEPT = 4_096
