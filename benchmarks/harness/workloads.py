"""What is measured, of whom, and what it must show: the table of targets, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Entrant:
    """One line of a result: a client with its options."""

    label: str
    rival: str
    """An environment of ``environments.PINNED``, or ``client_go``."""
    flags: tuple[str, ...] = ()
    """Options for the driver."""
    pods: int | None = None
    """How many pods instead of the workload's number."""
    events: int | None = None
    """How many events instead of the workload's number: what is very slow is sent fewer."""


@dataclass(frozen=True)
class Target:
    """What must be reached: a measurement of one entrant, absolute or over another's."""

    what: str
    """The measurement's name, such as ``cpu``; of what a driver says, or made by ``report.derived``."""
    of: str
    """The entrant's label."""
    over: str | None = None
    """Another entrant's label: the ratio to it is what counts."""
    at_most: float | None = None
    at_least: float | None = None
    per_pod: bool = False
    """Whether a ratio is taken of values per pod, of entrants with different numbers of pods."""


@dataclass(frozen=True)
class Workload:
    """A server with what it sends, and everybody who reads it."""

    title: str
    kind: str
    """The driver's word for it."""
    server: Literal["replay", "real", "none"]
    entrants: tuple[Entrant, ...]
    targets: tuple[Target, ...]
    pods: int = 10_000
    events: int = 0
    size: Literal["large", "small"] = "large"
    tls: bool = False
    rate: int = 0
    """How many events the replay server sends each second; 0: as many as are read."""
    turns: int = 1
    """How many rounds for each that is asked for: more of what takes a second than of what takes minutes."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Headings of the measurements that the table shows."""


OURS = Entrant("trioformer", "trioformer")
LIMIT = Entrant("limit", "limit")
GO = Entrant("client-go", "client_go")
JSON = Entrant("trioformer, JSON", "trioformer", ("--json",))
GO_LIST = Entrant("client-go, plain list", "client_go", ("-plain-list",))
GO_JSON = Entrant("client-go, JSON", "client_go", ("-json",))
LIGHTKUBE = Entrant("lightkube", "lightkube")
OTHERS = (
    Entrant("kubernetes", "kubernetes"),
    Entrant("kubernetes-asyncio", "kubernetes_asyncio"),
    LIGHTKUBE,
    Entrant("kr8s", "kr8s"),
    Entrant("kubex", "kubex"),
    Entrant("kubesdk", "kubesdk"),
)
DROPPED = Entrant("trioformer, no managedFields", "trioformer", ("--drop-managed-fields",))
GO_DROPPED = Entrant("client-go, no managedFields", "client_go", ("--drop-managed-fields",))
AT_10K = Entrant("trioformer, 10,000 pods", "trioformer", pods=10_000)
TRIO = Entrant("trioformer, trio", "trioformer_aio", ("--tick", "--door", "trio"))
DOORS = tuple(
    Entrant(f"trioformer.aio, {loop}", "trioformer_aio", ("--tick", "--door", loop)) for loop in ("asyncio", "uvloop")
)

SYNC = {"wall": "s", "cpu": "CPU s", "rss": "MB", "rss_per_pod": "KB/pod"}
STORM = {"events_per_s": "events/s", "cpu_per_event": "CPU µs/event", "coalesced": "merged", "high_water": "high water"}
LATENCY = {"p50": "p50 ms", "p99": "p99 ms", "max": "max ms", "cpu_per_event": "CPU µs/event"}

MS = 1.0
NO_LOSS = (Target("coalesced", "trioformer", at_most=0), Target("high_water", "trioformer", at_most=1024))
STORM_EVENTS = 50_000
SYNC_TARGETS = (
    Target("wall", "trioformer", "client-go", at_most=0.45),
    Target("cpu", "trioformer", "client-go", at_most=0.25),
    Target("rss", "trioformer", "client-go", at_most=0.3),
    Target("wall", "trioformer", "client-go, plain list", at_most=1.0),
    Target("cpu", "trioformer", "client-go, plain list", at_most=0.6),
)

WORKLOADS: dict[str, Workload] = {
    "sync10k": Workload(
        "10,000 pods from kube-apiserver into the cache",
        "sync",
        "real",
        (OURS, DROPPED, JSON, GO, GO_DROPPED, GO_LIST, GO_JSON, LIMIT, *OTHERS),
        (
            *SYNC_TARGETS,
            Target("wall", "kubernetes", "trioformer", at_least=10),
            Target("wall", "lightkube", "trioformer", at_least=2.5),
        ),
        columns=SYNC,
    ),
    "replay10k": Workload(
        "10,000 pods from the replay server into the cache",
        "sync",
        "replay",
        (OURS, DROPPED, JSON, GO, GO_DROPPED, GO_JSON, LIMIT, *OTHERS),
        (
            Target("cpu", "client-go, JSON", JSON.label, at_least=5),
            Target("rss", JSON.label, "client-go, JSON", at_most=0.5),
            Target("rss_per_pod", "trioformer", at_most=12),
            Target("rss_per_pod", DROPPED.label, at_most=6.5),
        ),
        columns=SYNC,
    ),
    "replay100k": Workload(
        "100,000 pods from the replay server into the cache",
        "sync",
        "replay",
        (OURS, DROPPED, JSON, AT_10K, GO, GO_DROPPED, GO_LIST, LIMIT),
        (
            *SYNC_TARGETS,
            *(Target(what, "trioformer", AT_10K.label, at_most=1.15, per_pod=True) for what in ("wall", "cpu", "rss")),
        ),
        pods=100_000,
        columns=SYNC,
    ),
    "storm50k": Workload(
        "50,000 MODIFIED events of 10 KB",
        "storm",
        "replay",
        (
            OURS,
            JSON,
            Entrant("trioformer, node index", "trioformer", ("--node-index",)),
            Entrant("trioformer, 10 handlers", "trioformer", ("--handlers", "10")),
            Entrant("trioformer, controller", "trioformer", ("--controller", "plain")),
            Entrant("trioformer, controller with a journal", "trioformer", ("--controller", "journal")),
            Entrant("trioformer, JSON, handler reads", "trioformer", ("--json", "--read")),
            LIMIT,
            GO,
            GO_JSON,
            Entrant("client-go, JSON, 10 handlers", "client_go", ("-json", "--handlers", "10")),
            *(each for each in OTHERS if each.label != "kr8s"),
            Entrant("kr8s", "kr8s", pods=1_000, events=2_000),
        ),
        (
            Target("cpu_per_event", "client-go, JSON", JSON.label, at_least=8),
            Target("cpu_per_event", "trioformer", "limit", at_most=1.2),
            Target("cpu_per_event", "trioformer, node index", "limit", at_most=1.4),
            Target("cpu_per_event", "trioformer, node index", "lightkube", at_most=0.8),
            Target("cpu_per_event", "trioformer, 10 handlers", "trioformer", at_most=1.5),
            Target("cpu_per_event", "client-go, JSON", "trioformer, JSON, handler reads", at_least=4),
            *NO_LOSS,
            Target("coalesced", "trioformer, node index", at_most=0),
            Target("coalesced", "trioformer, 10 handlers", at_most=0),
            Target("coalesced", "trioformer, JSON, handler reads", at_most=0),
        ),
        events=STORM_EVENTS,
        columns=STORM,
    ),
    "doors": Workload(
        "10,000 pods into the cache, then 50,000 MODIFIED events, beside a ticker of 5 ms",
        "storm",
        "replay",
        (
            TRIO,
            *DOORS,
            *(
                Entrant(label, rival, ("--tick",), pods, events)
                for label, rival, pods, events in (
                    ("kubernetes-asyncio", "kubernetes_asyncio", None, 2_000),
                    ("kubernetes.aio", "kubernetes_aio", None, 2_000),
                    ("lightkube, AsyncClient", "lightkube_async", None, 10_000),
                    ("kr8s", "kr8s", 1_000, 500),
                )
            ),
        ),
        tuple(
            target
            for each in DOORS
            for target in (
                Target("list_cpu", each.label, TRIO.label, at_most=1.2),
                Target("cpu_per_event", each.label, TRIO.label, at_most=1.2),
                Target("list_p99", each.label, at_most=20 * MS),
                Target("p99", each.label, at_most=20 * MS),
                Target("coalesced", each.label, at_most=0),
            )
        ),
        events=STORM_EVENTS,
        columns={
            "list_cpu_per_pod": "CPU µs/pod",
            "cpu_per_event": "CPU µs/event",
            **{
                f"{phase}{what}": f"{heading}, {what} ms"
                for phase, heading in (("list_", "list"), ("", "events"))
                for what in ("p50", "p99", "max")
            },
            "coalesced": "merged",
        },
    ),
    "threads": Workload(
        "Reads of four threads beside 1,000 events each second",
        "storm",
        "replay",
        tuple(
            Entrant(
                f"{label}, {interval * 1e6:,.0f} µs", "trioformer_sync", (*flags, "--switch-interval", str(interval))
            )
            for interval in (0.005, 0.000001)
            for label, flags in (("trioformer.sync", ()), ("a dictionary", ("--door", "dict")))
        ),
        tuple(
            Target(what, f"trioformer.sync, {interval} µs", at_most=0)
            for interval in ("5,000", "1")
            for what in ("wrong", "coalesced")
        ),
        events=14_000,
        rate=1_000,
        columns={
            "gets_per_s": "get/s",
            "lists_per_s": "by_index of 100 pods/s",
            "checked_per_s": "checks/s",
            "wrong": "wrong reads",
            "p50": "events late, p50 ms",
            "p99": "p99 ms",
            "coalesced": "merged",
        },
    ),
    "storm-tls": Workload(
        "50,000 MODIFIED events of 10 KB over TLS",
        "storm",
        "replay",
        (OURS, DROPPED, JSON, GO, GO_DROPPED, GO_JSON, LIMIT, LIGHTKUBE),
        (
            Target("cpu_per_event", DROPPED.label, "client-go", at_most=0.35),
            Target("cpu_per_event", "trioformer", "client-go", at_most=0.42),
            Target("cpu_per_event", JSON.label, "client-go", at_most=0.5),
            *NO_LOSS,
        ),
        events=STORM_EVENTS,
        tls=True,
        columns=STORM,
    ),
    "storm-small": Workload(
        "50,000 MODIFIED events of 0.5 KB over TLS",
        "storm",
        "replay",
        (OURS, JSON, GO, GO_JSON, LIMIT, LIGHTKUBE),
        (
            Target("cpu_per_event", "trioformer", "client-go", at_most=0.6),
            Target("cpu_per_event", JSON.label, "client-go", at_most=0.6),
            *NO_LOSS,
        ),
        events=STORM_EVENTS,
        size="small",
        tls=True,
        columns=STORM,
    ),
    "latency": Workload(
        "From a write to the handler, idle kube-apiserver, 1,000 writes",
        "latency",
        "real",
        (OURS, GO, LIMIT, Entrant("kubernetes", "kubernetes"), LIGHTKUBE),
        (
            Target("p50", "trioformer", "client-go", at_most=1.05),
            Target("p99", "trioformer", "client-go", at_most=1.1),
        ),
        events=1_000,
        columns=LATENCY,
    ),
    "start": Workload(
        "A program with one informer of 10 pods, from its start until it has synced",
        "start",
        "real",
        (OURS, JSON, GO, Entrant("import trio", "trio")),
        (Target("cpu", "trioformer", "import trio", at_most=2.3),),  # 4.7 with attrs classes for all models
        pods=10,
        turns=5,
        columns={"cpu": "CPU s", "elapsed": "s", "rss": "MB"},
    ),
    "crud": Workload(
        "2,000 config maps created, read, patched and deleted by 16 workers",
        "crud",
        "real",
        (OURS, *DOORS, GO, GO_JSON, *OTHERS),
        (
            Target("requests_per_cpu_s", "trioformer", "client-go, JSON", at_least=0.5),
            *(Target("requests_per_cpu_s", "trioformer", each.label, at_least=1.0) for each in OTHERS),
        ),
        pods=1,
        events=2_000,
        columns={"requests_per_cpu_s": "requests/CPU s", "requests_per_s": "requests/s", "cpu": "CPU s", "wall": "s"},
    ),
    "ticker": Workload(
        "Lateness of a task that ticks every 5 ms, beside 100,000 pods",
        "ticker",
        "replay",
        (OURS, JSON),
        tuple(
            Target(f"{phase}_{what}", each.label, at_most=most)
            for each in (OURS, JSON)
            for phase in ("sync", "resync")
            for what, most in (("p99", 5 * MS), ("max", 60 * MS), ("step", 15 * MS))
        ),
        pods=100_000,
        columns={
            f"{phase}_{what}": f"{phase}, {heading}"
            for phase in ("sync", "resync")
            for what, heading in (
                ("p99", "p99 ms"),
                ("max", "max ms"),
                ("step", "longest step ms"),
                ("step_without_gc", "without GC ms"),
            )
        },
    ),
    "lookups": Workload(
        "Reading a filled cache",
        "lookups",
        "replay",
        (
            Entrant("1,000 pods", "trioformer", pods=1_000),
            Entrant("10,000 pods", "trioformer", pods=10_000),
            Entrant("100,000 pods", "trioformer", pods=100_000),
        ),
        (
            Target("gets_per_s", "100,000 pods", at_least=500_000),
            # Not 1: a hundred times as many objects do not fit into the processor's caches.
            Target("hot_gets_per_s", "100,000 pods", "1,000 pods", at_least=1 / 1.5),
            Target("by_index_us", "100,000 pods", "1,000 pods", at_most=1.5),
        ),
        pods=100_000,
        columns={
            "gets_per_s": "get/s",
            "hot_gets_per_s": "get/s, 1,000 keys",
            "by_index_us": "by_index of 20 objects, µs",
        },
    ),
    "resync100k": Workload(
        "A resync of 100,000 objects to one handler",
        "resync",
        "replay",
        (OURS,),
        (
            Target("pods_per_s", "trioformer", at_least=200_000),
            Target("high_water", "trioformer", at_most=2),
            Target("rss_per_pod", "trioformer", at_most=0.1),
        ),
        pods=100_000,
        columns={"pods_per_s": "notifications/s", "high_water": "high water", "rss_per_pod": "KB/pod"},
    ),
}
