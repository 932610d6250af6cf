"""Metrics that are read at each scrape: queue depths, work in progress, ages of caches, and leadership.

These values are not stored, for two reasons.  A stored gauge would stay wrong if its object ended without resetting it.
An age increases even if no event occurs that could update a gauge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

import attrs
import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ..cache import HandlerRegistration, InformerPhase, InformerState, SharedInformer, SharedInformerFactory
from ..cache._internal import HandlerStatistics, InformerStatistics, ReflectorStatistics
from ..controller import Controller
from ..leaderelection import LeaderElector
from ..workqueue import WorkQueue
from ..workqueue._internal import QueueStatistics

T = TypeVar("T")

Labels: TypeAlias = tuple[str, ...]
QueueOwner: TypeAlias = Controller[Any] | WorkQueue[Any]
"""A queue, or a controller.  A controller has a queue while it runs."""

MAX_PRIORITIES: Final = 25
"""The maximum number of priorities of a queue that get their own label value (controller-runtime's limit)."""
TOO_MANY_PRIORITIES: Final = "exceeded_cardinality_limit"
"""The value of the label ``priority`` for a queue with more than ``MAX_PRIORITIES`` priorities."""


@final
@attrs.frozen
class MetricSpec(Generic[T]):
    """A metric for objects of one type.  It is a counter if its name ends in ``_total``, and otherwise a gauge."""

    name: str
    help: str
    read: Callable[[T], float]

    def family(self, labels: Labels, objects: Iterable[tuple[Labels, T]]) -> Metric:
        """Read the value of the metric for each object."""
        kind = CounterMetricFamily if self.name.endswith("_total") else GaugeMetricFamily
        family = kind(self.name, self.help, labels=labels)
        for values, obj in objects:
            family.add_metric(values, self.read(obj))
        return family


class SharesState(Protocol):
    """What is measured of shares."""

    @property
    def own(self) -> Mapping[int, str]:
        """The states of the own ranges."""
        ...

    @property
    def moves(self) -> int:
        """How often this replica has become the owner of a range."""
        ...

    @property
    def filtered_by_server(self) -> Mapping[str, bool | None]:
        """Whether the server sends only the requested ranges, by kind."""
        ...


class SharesOwner(Protocol):
    """Open shares, from :func:`trioformer.sharding.open_shares`."""

    @property
    def state(self) -> SharesState:
        """A snapshot of the state."""
        ...


@final
@attrs.frozen
class InformerSnapshot:
    """The state and the statistics of an informer at one point in time."""

    state: InformerState
    statistics: InformerStatistics
    is_healthy: bool

    @classmethod
    def of(cls, informer: SharedInformer[Any]) -> InformerSnapshot:
        """Take a snapshot of an informer."""
        return cls(informer.state, informer.statistics(), informer.is_healthy)

    @property
    def reflectors(self) -> Iterable[ReflectorStatistics]:
        """The statistics of the informer's reflectors."""
        return self.statistics.reflectors.values()


def _sum_of(read: Callable[[ReflectorStatistics], int]) -> Callable[[InformerSnapshot], float]:
    return lambda it: sum(map(read, it.reflectors))


QUEUE_LABELS: Final = ("name", "controller")
# Names and labels: controller-runtime pkg/internal/metrics/workqueue.go.
QUEUE_DEPTH: Final = MetricSpec[int](
    "workqueue_depth", "Keys that wait for a worker, by priority.", lambda depth: depth
)
QUEUE_METRICS: Final = (
    MetricSpec[QueueStatistics](
        "workqueue_unfinished_work_seconds",
        "Seconds of work in progress, summed over all keys. The sum grows without limit while workers hang.",
        lambda it: it.unfinished_work,
    ),
    MetricSpec[QueueStatistics](
        "workqueue_longest_running_processor_seconds",
        "Seconds since a worker took the oldest key in progress.",
        lambda it: it.longest_running,
    ),
)

# KEP-5647 has such a counter in kube-controller-manager.
STALE_SYNC_SKIPS: Final = MetricSpec[int](
    "trioformer_controller_stale_sync_skips_total",
    "Requests that were put aside because a cache did not show the controller's own writes, by resource.",
    float,
)
STALE_SYNCS: Final = MetricSpec[int](
    "trioformer_controller_stale_syncs_total",
    "Requests reconciled after five minutes although a cache did not show the controller's own writes, by resource.",
    float,
)

PAUSED: Final = MetricSpec[int](
    "trioformer_controller_paused", "Requests that wait because their objects are paused.", float
)

# Name and label: controller-runtime pkg/metrics/leaderelection.go.
LEADER_LABELS: Final = ("name",)
LEADER: Final = MetricSpec[LeaderElector](
    "leader_election_master_status",
    "Whether this process is the leader: 1 if it is, otherwise 0. The label name is the name of the lease.",
    lambda it: it.is_leader,
)

SHARES_RANGES: Final = MetricSpec[int](
    "trioformer_shares_ranges", "Ranges that this replica owns, by the state of their caches.", float
)
SHARES_MOVES: Final = MetricSpec[SharesState](
    "trioformer_shares_moves_total", "How often this replica has become the owner of a range.", lambda it: it.moves
)
SHARES_FILTERED: Final = MetricSpec[bool](
    "trioformer_shares_filtered_by_server",
    "Whether the server sends only the ranges that this replica asks for: 1 if it does, otherwise 0. By resource.",
    float,
)

# The first four labels are client-go's for informers (tools/cache/identity.go).
INFORMER_LABELS: Final = ("name", "group", "version", "resource", "informer")
INFORMER_STATE: Final = MetricSpec[bool](
    "trioformer_informer_state", "1 for the state that the informer is in, 0 for the others.", float
)
INFORMER_QUARANTINED: Final = MetricSpec[int](
    "trioformer_informer_quarantined_objects",
    "Objects whose newest state the cache cannot store, by reason.",
    float,
)
INFORMER_METRICS: Final = (
    MetricSpec[InformerSnapshot](
        "trioformer_informer_objects", "Objects in the cache.", lambda it: it.statistics.objects
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_bytes",
        "Bytes of the encoded objects in the cache.",
        lambda it: it.statistics.encoded_bytes,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_pending_changes",
        "Received changes that are not in the cache yet.",
        lambda it: it.statistics.pending,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_missing_objects",
        "Objects in quarantine that are not in the cache.",
        lambda it: it.statistics.missing,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_data_age_seconds",
        "Seconds since the cache was last known to be up to date. The age is 0 while the informer watches.",
        lambda it: it.state.age,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_synced",
        "Whether the cache contains the first list and is kept up to date.",
        lambda it: it.statistics.has_synced,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_healthy",
        "Whether the cache is kept up to date, or waits for its first list without a failure.",
        lambda it: it.is_healthy,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_failures_in_a_row",
        "Failures since the last success. If there are several reflectors, the highest number counts.",
        lambda it: max(each.failures_in_a_row for each in it.reflectors),
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_readers",
        "Handlers and subscriptions of the informer.",
        lambda it: it.statistics.handlers_and_subscriptions,
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_lists_total", "Lists that succeeded.", _sum_of(lambda each: each.lists)
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_watches_total", "Watches that the server accepted.", _sum_of(lambda each: each.watches)
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_events_total",
        "Received watch events, including bookmarks.",
        _sum_of(lambda each: each.events),
    ),
    MetricSpec[InformerSnapshot](
        "trioformer_informer_undecodable_total",
        "States of objects that could not be decoded.",
        _sum_of(lambda each: each.undecodable),
    ),
)

HANDLER_LABELS: Final = ("handler",)
HANDLER_METRICS: Final = (
    MetricSpec[HandlerStatistics](
        "trioformer_handler_waiting",
        "Notifications that wait for the handler.",
        lambda it: it.buffer.buffered + it.buffer.pending_objects,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_most_waiting",
        "The highest number of notifications that have waited for the handler.",
        lambda it: it.buffer.high_water,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_delivered_total",
        "Notifications that were delivered to the handler.",
        lambda it: it.buffer.delivered,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_coalesced_total",
        "Notifications that were merged into another.",
        lambda it: it.buffer.coalesced,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_failed_total",
        "Calls that raised an exception that on_error handled.",
        lambda it: it.failed,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_running_call_seconds",
        "Seconds since the current call started.",
        lambda it: it.running_call,
    ),
    MetricSpec[HandlerStatistics](
        "trioformer_handler_slowest_call_seconds",
        "Duration of the slowest call, in seconds.",
        lambda it: it.slowest_call,
    ),
)

EMPTY_QUEUE: Final = QueueStatistics(
    depth=0,
    depth_by_priority={},
    delayed=0,
    parked=0,
    processing=0,
    adds=0,
    retries=0,
    longest_running=0.0,
    unfinished_work=0.0,
    tasks_waiting=0,
    is_shut_down=True,
)
"""The statistics of a controller that is not running and therefore has no queue."""


@final
@attrs.define(eq=False)
class NamedObjects(Generic[T]):
    """The registered objects of one type, by name."""

    what: str
    objects: dict[str, T] = attrs.field(factory=dict)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(self.objects.items())

    def add(self, name: str, obj: T) -> None:
        """Register an object.

        Raises:
            ValueError: If another object is registered under this name.
        """
        if name in self.objects:
            raise ValueError(
                f"{self.what} named {name!r} is already registered; use another name, or unregister it first"
            )
        self.objects[name] = obj

    def discard(self, obj: object) -> None:
        """Unregister an object."""
        self.objects = {name: each for name, each in self.objects.items() if each is not obj}


@final
@attrs.define(eq=False)
class Collector:
    """A collector for prometheus-client that reads all registered objects."""

    queues: NamedObjects[QueueOwner] = attrs.field(factory=lambda: NamedObjects("a controller or queue"))
    electors: NamedObjects[LeaderElector] = attrs.field(factory=lambda: NamedObjects("an elector"))
    factories: NamedObjects[SharedInformerFactory] = attrs.field(factory=lambda: NamedObjects("a factory"))
    shares: NamedObjects[SharesOwner] = attrs.field(factory=lambda: NamedObjects("shares"))
    handlers: list[HandlerRegistration[Any]] = attrs.field(factory=list)
    _priorities: dict[str, set[int]] = attrs.field(factory=dict, init=False)  # the priorities seen so far, by queue

    def discard(self, obj: object) -> None:
        """Unregister an object."""
        for named in (self.queues, self.electors, self.factories, self.shares):
            named.discard(obj)
        self.handlers = [each for each in self.handlers if each is not obj]

    def has(self, obj: object) -> bool:
        """Return whether an object is registered."""
        named = [each for objects in (self.queues, self.electors, self.factories, self.shares) for _, each in objects]
        return any(each is obj for each in (*named, *self.handlers))

    def describe(self) -> Iterator[Metric]:
        """Return all metrics without values, so that a registry can be used before trio runs."""
        return Collector().collect()

    def collect(self) -> Iterator[Metric]:
        """Read all registered objects.

        Raises:
            RuntimeError: If an object is registered and trio does not run in this thread.
        """
        if any(each.objects for each in (self.queues, self.electors, self.factories, self.shares)) or self.handlers:
            _check_trio()
        yield from self._collect_queues()
        yield LEADER.family(LEADER_LABELS, [((name,), each) for name, each in self.electors])
        yield from self._collect_shares()
        yield from self._collect_informers()
        yield from self._collect_handlers()

    def _collect_queues(self) -> Iterator[Metric]:
        # Both labels contain the name of the queue, as in controller-runtime.
        read = {name: _queue_statistics(each) for name, each in self.queues}
        yield QUEUE_DEPTH.family(
            (*QUEUE_LABELS, "priority"),
            [
                ((name, name, priority), depth)
                for name, queue in read.items()
                for priority, depth in self._depths(name, queue)
            ],
        )
        for spec in QUEUE_METRICS:
            yield spec.family(QUEUE_LABELS, [((name, name), queue) for name, queue in read.items()])

        controllers = [(name, each.statistics()) for name, each in self.queues if isinstance(each, Controller)]
        skips = [(name, each.stale_sync_skips) for name, each in controllers]
        syncs = [(name, each.stale_syncs) for name, each in controllers]
        for metric, counted in ((STALE_SYNC_SKIPS, skips), (STALE_SYNCS, syncs)):
            yield metric.family(
                ("controller", "group", "resource"),
                [((name, *resource), count) for name, each in counted for resource, count in sorted(each.items())],
            )
        yield PAUSED.family(("controller",), [((name,), it.paused) for name, it in controllers])

    def _depths(self, name: str, queue: QueueStatistics) -> Iterable[tuple[str, int]]:
        seen = self._priorities.setdefault(name, {0})
        if len(seen) <= MAX_PRIORITIES:
            seen.update(queue.depth_by_priority)
        if len(seen) > MAX_PRIORITIES:
            return [(TOO_MANY_PRIORITIES, queue.depth)]
        return [(str(priority), queue.depth_by_priority.get(priority, 0)) for priority in sorted(seen)]

    def _collect_shares(self) -> Iterator[Metric]:
        read = [(name, each.state) for name, each in self.shares]
        states = [(name, Counter(state.own.values())) for name, state in read]
        yield SHARES_RANGES.family(
            ("name", "state"),
            [((name, each), counts[each]) for name, counts in states for each in ("listing", "ready", "releasing")],
        )
        yield SHARES_MOVES.family(("name",), [((name,), state) for name, state in read])
        yield SHARES_FILTERED.family(
            ("name", "resource"),
            [
                ((name, resource), is_filtered)
                for name, state in read
                for resource, is_filtered in state.filtered_by_server.items()
                if is_filtered is not None
            ],
        )

    def _collect_informers(self) -> Iterator[Metric]:
        read = _number_duplicates(
            [
                ((name, resource.group, resource.version, resource.plural, str(key)), InformerSnapshot.of(informer))
                for name, factory in self.factories
                for key, informer in factory.informers.items()
                for resource in [key.kind.__resource__]
            ]
        )
        yield INFORMER_STATE.family(
            (*INFORMER_LABELS, "state"),
            [((*labels, phase), phase == informer.state.phase) for labels, informer in read for phase in InformerPhase],
        )
        yield INFORMER_QUARANTINED.family(
            (*INFORMER_LABELS, "reason"),
            [
                ((*labels, str(reason)), count)
                for labels, informer in read
                for reason, count in informer.statistics.quarantined.items()
            ],
        )
        for spec in INFORMER_METRICS:
            yield spec.family(INFORMER_LABELS, read)

    def _collect_handlers(self) -> Iterator[Metric]:
        found = [each.statistics() for each in self.handlers]
        for _, each in self.queues:
            if isinstance(each, Controller):
                found += each.statistics().handlers
        read = _number_duplicates([((each.name,), each) for each in found])
        for spec in HANDLER_METRICS:
            yield spec.family(HANDLER_LABELS, read)


def _check_trio() -> None:
    try:
        trio.current_time()
    except RuntimeError as exc:
        raise RuntimeError(
            "registered objects can only be read in trio's thread while trio runs; "
            "serve Metrics.render() from a trio task instead of calling prometheus_client.start_http_server()"
        ) from exc


def _queue_statistics(each: QueueOwner) -> QueueStatistics:
    if isinstance(each, Controller):
        return each.statistics().queue or EMPTY_QUEUE
    return each.statistics()


def _number_duplicates(objects: Sequence[tuple[Labels, T]]) -> list[tuple[Labels, T]]:
    """Make all labels unique by adding numbers, because otherwise Prometheus would reject the whole scrape."""
    found: dict[Labels, T] = {}
    for labels, obj in objects:
        own, number = labels, 1
        while own in found:
            number += 1
            own = (*labels[:-1], f"{labels[-1]} ({number})")
        found[own] = obj
    return list(found.items())
