"""How soon informers are up to date after an outage, beside informers of client-go with the same outage.

Each round ends with three things being equal: the cache, a map that is made only from notifications, and a fresh list.
A recovery is the time until then from the end of the outage; that of client-go is the measure of the machine.
With the environment variable ``TRIOFORMER_RECOVERY_FIGURES`` the tables that are printed go to that file as well.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest
import trio

from tests.e2e.parallel import in_parallel
from tests.e2e.recovery.faults import KINDS, FaultKind, random_outage, strike, suspended
from tests.e2e.recovery.figures import Round, medians_and_maxima, peak, report
from tests.e2e.recovery.subjects import OURS, THEIRS, Comparison, comparison, programs_of
from tests.e2e.recovery.writer import Writer
from tests.e2e.tcp_proxy import proxy_before
from trioformer import SharedInformerFactory, load_config, open_client
from trioformer.cache import SharedInformer
from trioformer.client import Client
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.core_v1 import ConfigMap, LimitRange, Namespace, Secret, ServiceAccount
from trioformer.testing import ControlPlane
from trioformer.transport import ObservedRequest

PATIENCE = 90.0
"""Seconds after which a recovery counts as infinite."""
SHORT_PATIENCE = 4.0
"""The same in an ordinary run."""
MIXED_ROUNDS = 200
SUBJECTS = 10
"""Informers of each library whose connection becomes silent."""
NOTICED = 50.0
"""Seconds in which a silent connection is noticed; client-go's HTTP/2 pings take 45."""
SUSPENSION = 75.0
"""Seconds for which kube-apiserver is suspended: more than that."""
MANY = 200
LONG_OUTAGE = 10.0
MANY_RECOVERED = 5.0
"""Seconds in which many informers of a process have recovered."""
MOST_REQUESTS = 50
"""Requests that many informers of a process may send in a second."""

Place: TypeAlias = tuple[type[KubernetesObject], str]
"""A kind and a namespace."""
Outage: TypeAlias = tuple[FaultKind, float]
"""A fault, and the seconds for which it lasts."""
numbers = itertools.count()


@asynccontextmanager
async def compared(
    control_plane: ControlPlane, assets: Path, logs: Path, *libraries: str, count: int = 1, seed: int = 0
) -> AsyncIterator[Comparison]:
    """Run informers of each library, and the writer, in a new namespace."""
    namespace = f"recovery-{os.getpid()}-{next(numbers)}"
    async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
        writer = Writer(client.api(ConfigMap, namespace=namespace), random.Random(seed))
        async with comparison(control_plane, writer, programs_of(assets, *libraries), logs, count=count) as found:
            yield found


async def run_rounds(
    found: Comparison,
    control_plane: ControlPlane,
    outages: Sequence[Outage],
    patience: float = PATIENCE,
) -> list[Round]:
    """Cause one outage after the other, each as soon as everything has recovered from the one before.

    The round from which something does not recover is the last.
    """
    rounds: list[Round] = []
    for kind, duration in outages:
        began = trio.current_time()
        ended = await strike(kind, found.network, control_plane, duration)
        took = await found.converge(ended, patience)
        rounds.append(Round(kind, ended - began, {library: max(each) for library, each in took.items()}))
        if math.inf in rounds[-1].recoveries.values():
            break
    return rounds


def print_rounds(title: str, rounds: Sequence[Round]) -> None:
    libraries = list(rounds[0].recoveries)
    header = ("round", "fault", "outage", *libraries, "bound", "")
    rows = [
        (
            number,
            each.kind,
            each.duration,
            *(each.recoveries[library] for library in libraries),
            each.bound,
            "" if each.is_in_time else "late",
        )
        for number, each in enumerate(rounds, start=1)
    ]
    report(title, header, rows)


# --- outages ---


async def test_it_recovers_from_each_of_three_outages_within_two_seconds(
    control_plane: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    """Real time; without client-go the bound is that of a machine that is not busy."""
    outages: list[Outage] = [("unreachable", seconds) for seconds in (1.5, 2.0, 2.0)]
    with trio.fail_after(60):
        async with compared(control_plane, assets, tmp_path, OURS) as found:
            rounds = await run_rounds(found, control_plane, outages, SHORT_PATIENCE)
            illegal = await found.illegal()
    print_rounds("unreachable, three rounds", rounds)
    assert [each for each in rounds if not each.is_in_time] == []
    assert len(rounds) == len(outages)
    assert illegal == {OURS: []}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
async def test_each_of_six_recoveries_in_a_row_is_at_most_twice_as_long_as_client_gos(
    breakable_control_plane: ControlPlane, assets: Path, tmp_path: Path, kind: FaultKind
) -> None:
    rng = random.Random(f"six {kind}")
    outages: list[Outage] = [(kind, random_outage(rng)) for _ in range(6)]
    async with compared(breakable_control_plane, assets, tmp_path, OURS, THEIRS) as found:
        rounds = await run_rounds(found, breakable_control_plane, outages)
        illegal = await found.illegal()
    print_rounds(f"{kind}, six rounds", rounds)
    assert [each for each in rounds if not each.is_in_time] == []
    assert len(rounds) == len(outages)
    assert illegal == {OURS: [], THEIRS: []}


@pytest.mark.long
async def test_two_hundred_mixed_outages_leave_caches_and_replays_equal_to_lists(
    breakable_control_plane: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    rng = random.Random("mixed")
    outages: list[Outage] = [(rng.choice(KINDS), random_outage(rng)) for _ in range(MIXED_ROUNDS)]
    async with compared(breakable_control_plane, assets, tmp_path, OURS, THEIRS) as found:
        rounds = await run_rounds(found, breakable_control_plane, outages)
        illegal = await found.illegal()
        written = found.writer.written
    rows = medians_and_maxima([*rounds, *(attrs.evolve(each, kind="all") for each in rounds)])
    report(
        f"mixed faults, {len(rounds)} rounds, {written} changes", ("fault", "rounds", "library", "median", "max"), rows
    )
    assert math.inf not in rounds[-1].recoveries.values()
    assert len(rounds) == len(outages)
    assert illegal == {OURS: [], THEIRS: []}


# --- silence ---


def print_noticed(title: str, noticed: dict[str, list[float]], recovered: dict[str, list[float]]) -> None:
    rows = [
        (library, number, *seconds)
        for library in noticed
        for number, seconds in enumerate(zip(noticed[library], recovered[library], strict=True), start=1)
    ]
    report(title, ("library", "informer", "noticed", "recovered"), rows)


@pytest.mark.long
async def test_ten_of_ten_silent_connections_are_noticed_within_fifty_seconds(
    control_plane: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    """They become silent after the sync, before a bookmark; new connections work."""
    async with compared(control_plane, assets, tmp_path, OURS, THEIRS, count=SUBJECTS) as found:
        for proxy in found.network:
            proxy.freeze()
        began = trio.current_time()
        recovered = await found.converge(began, PATIENCE)
        noticed, illegal = found.noticed(began), await found.illegal()
    print_noticed("silent connections, seconds since the fault", noticed, recovered)
    assert [each for each in noticed[OURS] if each > NOTICED] == []
    assert [each for each in recovered[OURS] if each > PATIENCE] == []
    assert illegal == {OURS: [], THEIRS: []}


@pytest.mark.long
async def test_ten_of_ten_informers_notice_a_suspended_server_within_fifty_seconds(
    breakable_control_plane: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    """The kernel acknowledges what they send; they close their connections, or make others."""
    async with compared(breakable_control_plane, assets, tmp_path, OURS, THEIRS, count=SUBJECTS) as found:
        with suspended(breakable_control_plane):
            began = trio.current_time()
            await trio.sleep(SUSPENSION)
            noticed = found.noticed(began)
        recovered = await found.converge(trio.current_time(), PATIENCE)
        illegal = await found.illegal()
    print_noticed(f"suspended for {SUSPENSION:g} s, seconds since each signal", noticed, recovered)
    assert [each for each in noticed[OURS] if each > NOTICED] == []
    assert [each for each in recovered[OURS] if each > PATIENCE] == []
    assert illegal == {OURS: [], THEIRS: []}


# --- many ---


@attrs.define(eq=False)
class RequestTimes:
    """When the response of each request began, or when it failed."""

    times: list[float] = attrs.field(factory=list)

    def request_started(self, request: ObservedRequest) -> None:
        pass

    def request_responded(self, request: ObservedRequest) -> None:
        self.times.append(trio.current_time())

    def request_ended(self, request: ObservedRequest) -> None:
        if request.code is None:
            self.times.append(trio.current_time())


async def create_places(client: Client) -> list[Place]:
    """Create namespaces, and an object of each of four kinds in each of them; returns these kinds and namespaces."""
    kinds: tuple[type[KubernetesObject], ...] = (ConfigMap, Secret, ServiceAccount, LimitRange)
    namespaces = [f"recovery-{os.getpid()}-{next(numbers)}" for _ in range(MANY // len(kinds))]
    made = [Namespace(metadata=ObjectMeta(name=name)) for name in namespaces]
    await in_parallel([partial(client.api(Namespace).create, each) for each in made])
    places: list[Place] = [(kind, namespace) for kind in kinds for namespace in namespaces]
    await in_parallel(
        [
            partial(client.api(kind, namespace=where).create, kind(metadata=ObjectMeta(name="x")))
            for kind, where in places
        ]
    )
    return places


@pytest.mark.long
async def test_two_hundred_informers_of_a_process_recover_without_many_requests_at_once(
    control_plane: ControlPlane,
) -> None:
    config, observer = load_config(kubeconfig=control_plane.kubeconfig), RequestTimes()
    recoveries: list[float] = []
    async with (
        proxy_before(control_plane.url) as proxy,
        open_client(config) as writer,
        open_client(attrs.evolve(config, server=proxy.url), observer=observer) as client,
    ):
        places = await create_places(writer)
        factory = SharedInformerFactory(client)
        informers = [factory.informer(kind, namespace=where) for kind, where in places]

        async def recover(
            place: tuple[type[KubernetesObject], str], informer: SharedInformer[KubernetesObject]
        ) -> None:
            """Change the object of a place, and wait until the informer knows."""
            kind, where = place
            change = {"metadata": {"annotations": {"example.com/changed": str(ended)}}}
            changed = await writer.api(kind, namespace=where).patch("x", change)
            await informer.wait_until_at_least(changed)
            recoveries.append(trio.current_time() - ended)

        async with trio.open_nursery() as nursery:
            await nursery.start(factory.run)
            ended = trio.current_time()
            pairs = list(zip(places, informers, strict=True))
            await in_parallel([partial(recover, *pair) for pair in pairs], at_once=MANY)  # all watches are open now
            recoveries.clear()
            began = trio.current_time()
            ended = await strike("unreachable", [proxy], control_plane, LONG_OUTAGE)
            with trio.move_on_after(PATIENCE):
                # All wait at once: one that is late does not delay the changes of the others.
                await in_parallel([partial(recover, *pair) for pair in pairs], at_once=MANY)
            nursery.cancel_scope.cancel()
    attempts = [each for each in proxy.attempts if each > began]
    requests = [each for each in observer.times if each > began]
    rows = [
        (name, len(times), peak(each for each in times if each <= ended), peak(each for each in times if each > ended))
        for name, times in (("connections", attempts), ("requests", requests))
    ]
    report(
        f"{len(recoveries)} of {MANY} informers recovered, the last after {max(recoveries, default=0.0):.2f} s",
        ("of the client", "in total", "per second during", "per second after"),
        rows,
    )
    assert len(recoveries) == MANY
    assert [each for each in recoveries if each > MANY_RECOVERED] == []
    assert peak(attempts) <= MOST_REQUESTS
    assert peak(requests) <= MOST_REQUESTS
