"""A storm of moves against a real kube-apiserver: pods change their owners faster than a slow function can say whose.

The moves that an informer misses while its connection is broken arrive in one burst when it is back.
The pods of a burst come from a few homes, where many moves fill every buffer, pass through owners that only this burst
has, and go home again: these owners are requested only if somebody looks at the states in between.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import attrs
import pytest
import trio

from tests.e2e.parallel import in_parallel
from tests.e2e.recovery.figures import report
from tests.e2e.tcp_proxy import proxy_before
from tests.e2e.workloads import make_namespace
from trioformer import SharedInformerFactory, load_config, open_client
from trioformer.cache import Lister
from trioformer.client import Api
from trioformer.controller import Controller, Request
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane

PODS = [f"pod-{number}" for number in range(100)]
HOMES = [f"home-{number}" for number in range(10)]
MOVES_AT_HOME = 12
"""How often each pod moves between homes in a burst; together that is more than a buffer has room for."""
STOPS = 7
"""How many owners of the burst each pod then passes through."""
MOVES = MOVES_AT_HOME + STOPS + 1
HOSTS = 19
"""The owners of a burst."""
SECONDS_PER_CALL = 0.001
"""How long the function takes that says whose a pod is."""
PATIENCE = 30.0
"""Seconds after the last burst in which the owners have seen it."""


def pod(name: str) -> Pod:
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    return from_dict(Pod, {"metadata": {"name": name, "labels": {"owner": HOMES[0]}}, "spec": spec})


def owner_name(moved: Pod) -> str:
    return moved.metadata.labels["owner"]


def by_owner(moved: Pod) -> Iterable[str]:
    return (owner_name(moved),)


async def move_all(pods: Api[Pod], hosts: Sequence[str], rng: random.Random) -> dict[str, Pod]:
    """Move every pod between homes, through some of the hosts, and home; returns the pods as they are then."""
    last = {moved.name: moved for moved in await pods.list()}

    async def move(name: str, owners: Sequence[str]) -> None:
        owner = rng.choice([owner for owner in owners if owner != owner_name(last[name])])
        last[name] = await pods.patch(name, {"metadata": {"labels": {"owner": owner}}})

    for number in range(MOVES):
        is_stop = MOVES_AT_HOME <= number < MOVES_AT_HOME + STOPS
        await in_parallel([partial(move, name, hosts if is_stop else HOMES) for name in PODS])
    return last


@attrs.define(eq=False)
class Owners:
    """The reconcile function of the owners: what each of them has seen last."""

    lister: Lister[Pod]
    seen: dict[str, set[str]] = attrs.field(factory=dict)
    calls: int = 0
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def reconcile(self, request: Request) -> None:
        self.seen[request.name] = {pod.name for pod in self.lister.by_index("owner", request.name)}
        self.calls += 1
        self._news.set()
        await trio.lowlevel.checkpoint()

    def wrong(self, truth: Mapping[str, set[str]]) -> list[str]:
        """Return the owners that have not seen what they have now, or nothing at all."""
        return [owner for owner, names in truth.items() if self.seen.get(owner) != names]

    async def wait_until_right(self, truth: Mapping[str, set[str]]) -> None:
        while self.wrong(truth):
            self._news = trio.Event()
            await self._news.wait()


@pytest.mark.parametrize("bursts", [1, pytest.param(10, marks=pytest.mark.long)])
async def test_every_owner_has_seen_its_final_set_after_a_storm_of_moves(
    control_plane: ControlPlane, bursts: int
) -> None:
    calls = 0

    def owner_of(moved: Pod) -> Iterable[Request]:
        nonlocal calls
        calls += 1
        time.sleep(SECONDS_PER_CALL)
        return (Request(moved.namespace, owner_name(moved)),)

    config = load_config(kubeconfig=control_plane.kubeconfig)
    async with (
        proxy_before(control_plane.url) as proxy,
        open_client(config) as writer,
        open_client(attrs.evolve(config, server=proxy.url)) as client,
        trio.open_nursery() as nursery,
    ):
        namespace = await make_namespace(writer, "owners")
        pods = writer.api(Pod, namespace=namespace)
        await in_parallel([partial(pods.create, pod(name)) for name in PODS])
        factory = SharedInformerFactory(client, namespace=namespace)
        informer = factory.informer(Pod, indexers={"owner": by_owner})
        owners = Owners(informer.lister)
        controller = Controller("owners", owners.reconcile)
        controller.watch(informer, enqueue=owner_of)
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        rng = random.Random(f"{bursts} bursts")
        truth: dict[str, set[str]] = {home: set() for home in HOMES}
        moving = 0.0
        for number in range(bursts):
            hosts = [f"host-{number}-{each}" for each in range(HOSTS)]
            began = trio.current_time()
            proxy.is_reachable = False
            proxy.cut()
            last = await move_all(pods, hosts, rng)
            proxy.is_reachable = True
            moving += trio.current_time() - began
            truth |= {host: set() for host in hosts}
            truth |= {home: {name for name, moved in last.items() if owner_name(moved) == home} for home in HOMES}
            with trio.fail_after(60):
                for moved in last.values():
                    await informer.wait_until_at_least(moved)
        began = trio.current_time()
        with trio.move_on_after(PATIENCE):
            await owners.wait_until_right(truth)
        took = trio.current_time() - began
        wrong = owners.wrong(truth)
        statistics = informer.statistics().reflector
        nursery.cancel_scope.cancel()
    report(
        f"{bursts * MOVES * len(PODS)} moves of {len(PODS)} pods between {len(truth)} owners",
        ("moves, s", "until all was seen, s", "events", "lists", "calls", "reconciles", "wrong owners"),
        [(moving, took, statistics.events, statistics.lists, calls, owners.calls, len(wrong))],
    )
    assert wrong == []
