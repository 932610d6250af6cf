"""The one object that a program needs: a registry, observers for what happens, and a list of what to ask."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from ..cache import HandlerRegistration, SharedInformerFactory
from ..controller import Controller, ControllerObserver
from ..leaderelection import LeaderElector
from ..models import KubernetesObject
from ..transport import RequestObserver
from ..workqueue import QueueObserver, WorkQueue
from ._collector import Collector
from ._observers import QueueCounts, QueueMetrics, ReconcileCounts, ReconcileMetrics, RequestMetrics

T = TypeVar("T", bound=KubernetesObject)
K = TypeVar("K", bound=Hashable)


@final
class Metrics:
    """The metrics of a program, in a registry of their own.

    Observers are handed to what they observe, and count for as long as that lives::

        metrics = Metrics()
        controller = Controller(
            "web",
            reconcile,
            workers=4,
            observer=metrics.controller_observer("web", workers=4),
            queue_observer=metrics.queue_observer("web"),
        )
        metrics.register_controller(controller)

    What is *watched* is asked whenever somebody scrapes, and costs nothing in between.
    It is kept until :meth:`unregister`; what was counted stays.

    Nothing is global: several of these in one process know nothing of each other.

    Args:
        registry: Where to put the metrics, such as ``prometheus_client.REGISTRY``; None makes a registry, which also
            tells of the process: CPU, memory, open files.

    Attributes:
        registry: Where the metrics are; for measures of your own, too.

    Raises:
        ValueError: The registry has metrics of these names already, such as those of another :class:`Metrics`.
    """

    registry: CollectorRegistry

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
        self.registry = registry
        self._reconciles = ReconcileMetrics(registry)
        self._queues = QueueMetrics(registry)
        self._requests = RequestMetrics(registry)
        self._scrape = Collector()
        registry.register(self._scrape)

    def controller_observer(self, name: str, workers: int) -> ControllerObserver:
        """Make the ``observer=`` of a controller: ``controller_runtime_*``.

        Asked for again under the same name, as by a controller that is made anew with each term as the leader, it goes
        on counting where it was.

        Args:
            name: The controller's name, the label ``controller``.
            workers: How many it has.
        """
        return ReconcileCounts(self._reconciles, name, workers)

    def queue_observer(self, name: str) -> QueueObserver[Hashable]:
        """Make the ``observer=`` of a queue, or a controller's ``queue_observer=``: counts and durations.

        The rest of ``workqueue_*`` comes with :meth:`register_controller` or :meth:`register_queue`.

        Args:
            name: The queue's name, or its controller's: the labels ``name`` and ``controller``.
        """
        return QueueCounts(self._queues, name)

    def request_observer(self) -> RequestObserver:
        """Make the ``observer=`` of :func:`~trioformer.client.open_client`: ``rest_client_*``."""
        return self._requests

    def register_controller(self, controller: Controller) -> None:
        """Measure a controller's queue and its handlers, in this run of it and in those that follow.

        Raises:
            ValueError: A controller or queue of that name is measured already.
        """
        self._scrape.queues.add(controller.name, controller)

    def register_queue(self, queue: WorkQueue[K]) -> None:
        """Measure what waits in a queue, and what is in work.

        Raises:
            ValueError: The queue has no name; or a controller or queue of that name is measured already.
        """
        if not queue.name:
            raise ValueError("a queue needs a name to be measured; make it with name=")
        self._scrape.queues.add(queue.name, queue)

    def register_factory(self, factory: SharedInformerFactory, *, name: str = "") -> None:
        """Measure every informer that a factory has: what its cache holds, how old that is, and what it is doing.

        Args:
            factory: The factory.
            name: The label ``name``, to tell several factories apart.

        Raises:
            ValueError: A factory of that name is measured already.
        """
        self._scrape.factories.add(name, factory)

    def register_handler(self, registration: HandlerRegistration[T]) -> None:
        """Measure how a handler keeps up; a controller's own are measured with :meth:`register_controller`."""
        self._scrape.handlers.append(registration)

    def register_elector(self, elector: LeaderElector, *, name: str) -> None:
        """Measure whether this process leads.

        Args:
            elector: The candidate.
            name: The label ``name``; the Lease's, by custom.

        Raises:
            ValueError: An election of that name is measured already.
        """
        self._scrape.electors.add(name, elector)

    def unregister(
        self,
        watched: Controller | WorkQueue[K] | SharedInformerFactory | HandlerRegistration[T] | LeaderElector,
    ) -> None:
        """Measure something no more, and give its name back; nothing when it is not measured."""
        self._scrape.discard(watched)

    def is_watching(self, watched: object) -> bool:
        """Whether a controller, queue, factory, handler or elector is measured, under whatever name."""
        scrape = self._scrape
        named = [each for things in (scrape.queues, scrape.electors, scrape.factories) for _, each in things]
        return any(each is watched for each in (*named, *scrape.handlers))

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Write everything down for a scrape.

        To be called in trio's thread while anything is watched.

        Args:
            accept: The request's ``Accept`` header; decides between Prometheus' text format and OpenMetrics.

        Returns:
            The answer's body, and its ``Content-Type``.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
