"""What is read when somebody scrapes: what waits, what runs, how old the data are, who leads.

The problem: a gauge that others keep up to date is wrong as soon as one of them ends without putting it back, and an
age grows without any event.  So nobody keeps these; they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import attrs
import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ..cache import (
    HandlerRegistration,
    HandlerStatistics,
    InformerPhase,
    InformerState,
    InformerStatistics,
    ReflectorStatistics,
    SharedInformer,
    SharedInformerFactory,
)
from ..controller import Controller
from ..leaderelection import LeaderElector
from ..workqueue import QueueStatistics, WorkQueue

T = TypeVar("T")

Labels: TypeAlias = tuple[str, ...]
WithQueue: TypeAlias = Controller | WorkQueue[Any]
"""A queue, or a controller, which has one while it runs."""

MOST_PRIORITIES: Final = 25
"""Different priorities of one queue that are told apart (controller-runtime's limit)."""
TOO_MANY_PRIORITIES: Final = "exceeded_cardinality_limit"
"""The label ``priority`` of all keys of a queue that has more."""


@final
@attrs.frozen
class Measure(Generic[T]):
    """One number of a thing; a name in ``_total`` makes it a counter, any other a gauge."""

    name: str
    help: str
    read: Callable[[T], float]

    def family(self, labels: Labels, things: Iterable[tuple[Labels, T]]) -> Metric:
        """Measure all things."""
        kind = CounterMetricFamily if self.name.endswith("_total") else GaugeMetricFamily
        family = kind(self.name, self.help, labels=labels)
        for values, thing in things:
            family.add_metric(values, self.read(thing))
        return family


@final
@attrs.frozen
class InformerReading:
    """An informer at one moment."""

    state: InformerState
    statistics: InformerStatistics
    is_healthy: bool

    @classmethod
    def of(cls, informer: SharedInformer[Any]) -> InformerReading:
        """Read it."""
        return cls(informer.state, informer.statistics(), informer.is_healthy)

    @property
    def reflectors(self) -> Iterable[ReflectorStatistics]:
        """Its connections."""
        return self.statistics.reflectors.values()


def _sum_of(read: Callable[[ReflectorStatistics], int]) -> Callable[[InformerReading], float]:
    return lambda it: sum(map(read, it.reflectors))


QUEUE_LABELS: Final = ("name", "controller")
# Names and labels: controller-runtime pkg/internal/metrics/workqueue.go.
QUEUE_DEPTH: Final = Measure[int]("workqueue_depth", "Keys that wait for a worker, by priority.", lambda depth: depth)
QUEUE_MEASURES: Final = (
    Measure[QueueStatistics](
        "workqueue_unfinished_work_seconds",
        "How long all keys that workers have were in work so far, added up; grows without end when workers hang.",
        lambda it: it.unfinished_work,
    ),
    Measure[QueueStatistics](
        "workqueue_longest_running_processor_seconds",
        "How long a worker has had the key that was taken first.",
        lambda it: it.longest_running,
    ),
)

# Name and label: controller-runtime pkg/metrics/leaderelection.go.
LEADER_LABELS: Final = ("name",)
LEADER: Final = Measure[LeaderElector](
    "leader_election_master_status",
    "Whether this process leads: 1 for the leader, 0 for the others; name is the lease's.",
    lambda it: it.is_leader,
)

# The first four are the labels of client-go's own measures of informers (tools/cache/identity.go).
INFORMER_LABELS: Final = ("name", "group", "version", "resource", "informer")
INFORMER_STATE: Final = Measure[bool](
    "trioformer_informer_state", "What the informer is doing: 1 for that, 0 for all else.", float
)
INFORMER_MEASURES: Final = (
    Measure[InformerReading]("trioformer_informer_objects", "Objects in the cache.", lambda it: it.statistics.objects),
    Measure[InformerReading](
        "trioformer_informer_pending_changes",
        "Changes that have arrived and are not in the cache yet.",
        lambda it: it.statistics.pending,
    ),
    Measure[InformerReading](
        "trioformer_informer_data_age_seconds",
        "Seconds since the cache was last known to be the server's state; 0 while it is watched.",
        lambda it: it.state.age,
    ),
    Measure[InformerReading](
        "trioformer_informer_synced",
        "Whether the cache is filled and kept in step.",
        lambda it: it.statistics.has_synced,
    ),
    Measure[InformerReading](
        "trioformer_informer_healthy",
        "Whether the cache is kept in step, or on its way to its first list without a failure.",
        lambda it: it.is_healthy,
    ),
    Measure[InformerReading](
        "trioformer_informer_failures_in_a_row",
        "Failures since the last success, of the connection that has most.",
        lambda it: max(each.failures_in_a_row for each in it.reflectors),
    ),
    Measure[InformerReading](
        "trioformer_informer_readers",
        "Handlers and subscriptions.",
        lambda it: it.statistics.handlers_and_subscriptions,
    ),
    Measure[InformerReading](
        "trioformer_informer_lists_total", "Lists that succeeded.", _sum_of(lambda each: each.lists)
    ),
    Measure[InformerReading](
        "trioformer_informer_watches_total", "Watches that the server accepted.", _sum_of(lambda each: each.watches)
    ),
    Measure[InformerReading](
        "trioformer_informer_events_total", "Events, bookmarks included.", _sum_of(lambda each: each.events)
    ),
    Measure[InformerReading](
        "trioformer_informer_undecodable_total",
        "Objects that were left out because they do not decode.",
        _sum_of(lambda each: each.undecodable),
    ),
)

HANDLER_LABELS: Final = ("handler",)
HANDLER_MEASURES: Final = (
    Measure[HandlerStatistics](
        "trioformer_handler_waiting",
        "Notifications that wait for the handler.",
        lambda it: it.buffer.buffered + it.buffer.pending_objects,
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_most_waiting", "The most that ever waited at once.", lambda it: it.buffer.high_water
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_delivered_total",
        "Notifications that the handler has taken.",
        lambda it: it.buffer.delivered,
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_coalesced_total",
        "Notifications that were merged into another.",
        lambda it: it.buffer.coalesced,
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_failed_total", "Calls that raised what on_error took.", lambda it: it.failed
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_running_call_seconds",
        "How long the call that is running has taken so far.",
        lambda it: it.running_call,
    ),
    Measure[HandlerStatistics](
        "trioformer_handler_slowest_call_seconds", "The longest that one call took.", lambda it: it.slowest_call
    ),
)

IDLE: Final = QueueStatistics(
    depth=0,
    depth_by_priority={},
    delayed=0,
    processing=0,
    adds=0,
    retries=0,
    longest_running=0.0,
    unfinished_work=0.0,
    tasks_waiting=0,
    is_shut_down=True,
)
"""What a controller that does not run has instead of a queue."""


@final
@attrs.define(eq=False)
class Named(Generic[T]):
    """Things by name, each name once."""

    what: str
    things: dict[str, T] = attrs.field(factory=dict)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(self.things.items())

    def add(self, name: str, thing: T) -> None:
        """Take a name.

        Raises:
            ValueError: It is taken.
        """
        if name in self.things:
            raise ValueError(
                f"{self.what} named {name!r} is measured already; give another name, or unregister that first"
            )
        self.things[name] = thing

    def discard(self, thing: object) -> None:
        """Give a thing's name back."""
        self.things = {name: each for name, each in self.things.items() if each is not thing}


@final
@attrs.define(eq=False)
class Collector:
    """Everything that is asked, as a collector of prometheus-client."""

    queues: Named[WithQueue] = attrs.field(factory=lambda: Named("a controller or queue"))
    electors: Named[LeaderElector] = attrs.field(factory=lambda: Named("an election"))
    factories: Named[SharedInformerFactory] = attrs.field(factory=lambda: Named("a factory"))
    handlers: list[HandlerRegistration[Any]] = attrs.field(factory=list)
    _priorities: dict[str, set[int]] = attrs.field(factory=dict, init=False)  # of each queue, those seen so far

    def discard(self, thing: object) -> None:
        """Ask no more."""
        for named in (self.queues, self.electors, self.factories):
            named.discard(thing)
        self.handlers = [each for each in self.handlers if each is not thing]

    def describe(self) -> Iterator[Metric]:
        """Name everything, and ask nothing: for a registry that takes this in before trio runs."""
        return Collector().collect()

    def collect(self) -> Iterator[Metric]:
        """Ask everything.

        Raises:
            RuntimeError: There is something to ask, and no trio here.
        """
        if self.queues.things or self.electors.things or self.factories.things or self.handlers:
            _check_trio()
        yield from self._collect_queues()
        yield LEADER.family(LEADER_LABELS, [((name,), each) for name, each in self.electors])
        yield from self._collect_informers()
        yield from self._collect_handlers()

    def _collect_queues(self) -> Iterator[Metric]:
        # Both labels hold the queue's name, as in controller-runtime.
        read = {name: _queue_of(each) for name, each in self.queues}
        yield QUEUE_DEPTH.family(
            (*QUEUE_LABELS, "priority"),
            [
                ((name, name, priority), depth)
                for name, queue in read.items()
                for priority, depth in self._depths(name, queue)
            ],
        )
        for measure in QUEUE_MEASURES:
            yield measure.family(QUEUE_LABELS, [((name, name), queue) for name, queue in read.items()])

    def _depths(self, name: str, queue: QueueStatistics) -> Iterable[tuple[str, int]]:
        seen = self._priorities.setdefault(name, {0})
        if len(seen) <= MOST_PRIORITIES:
            seen.update(queue.depth_by_priority)
        if len(seen) > MOST_PRIORITIES:
            return [(TOO_MANY_PRIORITIES, queue.depth)]
        return [(str(priority), queue.depth_by_priority.get(priority, 0)) for priority in sorted(seen)]

    def _collect_informers(self) -> Iterator[Metric]:
        read = _distinct(
            [
                ((name, resource.group, resource.version, resource.plural, str(key)), InformerReading.of(informer))
                for name, factory in self.factories
                for key, informer in factory.informers.items()
                for resource in [key.kind.__resource__]
            ]
        )
        yield INFORMER_STATE.family(
            (*INFORMER_LABELS, "state"),
            [((*labels, phase), phase == informer.state.phase) for labels, informer in read for phase in InformerPhase],
        )
        for measure in INFORMER_MEASURES:
            yield measure.family(INFORMER_LABELS, read)

    def _collect_handlers(self) -> Iterator[Metric]:
        found = [each.statistics() for each in self.handlers]
        for _, each in self.queues:
            if isinstance(each, Controller):
                found += each.statistics().handlers
        read = _distinct([((each.name,), each) for each in found])
        for measure in HANDLER_MEASURES:
            yield measure.family(HANDLER_LABELS, read)


def _check_trio() -> None:
    try:
        trio.current_time()
    except RuntimeError as exc:
        raise RuntimeError(
            "what is watched can only be read in trio's thread, while it runs; serve Metrics.render() from a task "
            "instead of prometheus_client.start_http_server"
        ) from exc


def _queue_of(each: WithQueue) -> QueueStatistics:
    if isinstance(each, Controller):
        return each.statistics().queue or IDLE
    return each.statistics()


def _distinct(things: Sequence[tuple[Labels, T]]) -> list[tuple[Labels, T]]:
    """Number those that have the same labels: a scrape that has labels twice is refused as a whole."""
    found: dict[Labels, T] = {}
    for labels, thing in things:
        own, number = labels, 1
        while own in found:
            number += 1
            own = (*labels[:-1], f"{labels[-1]} ({number})")
        found[own] = thing
    return list(found.items())
