"""Several concurrent writers and the embedded server: handlers always receive a possible history.

Against client-go's ``controller_test.go``; all random values come from a seed.
"""

from __future__ import annotations

import random
from contextlib import suppress

import attrs
import pytest
import trio
import trio.testing

from trioformer import (
    Api,
    Client,
    ObjectMeta,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformerFactory,
    StatusError,
)
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import APIServer

SEEDS = range(5)


def pod(name: str, **labels: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels=labels),
        spec=PodSpec(containers=(Container(name="main", image="busybox"),)),
    )


@attrs.define(eq=False)
class HistoryChecker(ResourceEventHandler[Pod]):
    """Keeps its own copy of the objects, and fails on a notification that is not consistent with it."""

    pause: float = 0.0
    known: dict[str, Pod] = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        self.calls.append("add")
        assert obj.name not in self.known, "added twice"
        self.known[obj.name] = obj
        await trio.sleep(self.pause)

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.calls.append("resync" if old is new else "update")
        assert self.known.get(old.name) is old, "updated from a state that it did not receive"
        assert int(new.resource_version) >= int(old.resource_version), "back in time"
        assert new.uid == old.uid, "another object"
        self.known[new.name] = new
        await trio.sleep(self.pause)

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        self.calls.append("delete")
        assert obj.name in self.known, "deleted twice, or before it was added"
        del self.known[obj.name]
        await trio.sleep(self.pause)


async def write_at_random(pods: Api[Pod], rng: random.Random) -> None:
    """Create, change and delete; ignore conflicts with other writers."""
    for _ in range(100):
        name = f"pod-{rng.randrange(12)}"
        with suppress(StatusError):
            what = rng.random()
            if what < 0.35:
                await pods.create(pod(name))
            elif what < 0.75:
                await pods.patch(name, {"metadata": {"labels": {"at": f"{rng.random():.6}"}}})
            else:
                await pods.delete(name)
        if rng.random() < 0.3:
            await trio.sleep(rng.choice([0, 0.01, 0.5, 3]))


async def disturb(server: APIServer, rng: random.Random) -> None:
    """Disconnect the watches repeatedly, sometimes with a compaction."""
    while True:
        await trio.sleep(rng.uniform(1, 10))
        server.disconnect_watches()
        if rng.random() < 0.5:
            server.compact()


@pytest.mark.parametrize("is_disturbed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
async def test_handlers_receive_a_possible_history_that_ends_with_the_servers_state(
    seed: int,
    is_disturbed: bool,
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    client: Client,
    nursery: trio.Nursery,
) -> None:
    """client-go: TestHammerController"""
    rng = random.Random(seed)
    factory = SharedInformerFactory(
        client, resync_period=1, options=ReflectorOptions(watch_error_handler=lambda error: None)
    )
    informer = factory.informer(Pod)
    quick, slow, patient = HistoryChecker(), HistoryChecker(pause=0.2), HistoryChecker(pause=0.05)
    informer.add_event_handler(quick)
    informer.add_event_handler(slow, buffer_size=2)
    informer.add_event_handler(patient, buffer_size=2, overflow="block", resync_period=0)
    assert not informer.has_synced
    await nursery.start(factory.run)
    assert informer.has_synced
    async with trio.open_nursery() as beside:
        if is_disturbed:
            beside.start_soon(disturb, api_server, rng)
        async with trio.open_nursery() as writers:
            for _ in range(3):
                writers.start_soon(write_at_random, client.api(Pod, namespace="default"), random.Random(rng.random()))
        beside.cancel_scope.cancel()
    await trio.sleep(300)
    there = {obj.name: obj.resource_version for obj in api_server.list(Pod)}
    for checker in (quick, slow, patient):
        assert {name: obj.resource_version for name, obj in checker.known.items()} == there
        assert checker.calls.count("add") - checker.calls.count("delete") == len(there)
        assert checker.calls.count("update") > 0
    assert {obj.name: obj.resource_version for obj in informer.lister} == there
    assert "resync" in quick.calls
    assert "resync" not in patient.calls
    nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class Remover(HistoryChecker):
    """Deletes each object when it has received its last state."""

    pods: Api[Pod] | None = None
    transitions: set[tuple[str, str]] = attrs.field(factory=set)
    awaited: int = 0
    all_gone: trio.Event = attrs.field(factory=trio.Event)

    async def on_update(self, old: Pod, new: Pod) -> None:
        await HistoryChecker.on_update(self, old, new)
        self.transitions.add((old.metadata.labels["check"], new.metadata.labels["check"]))
        if new.metadata.labels["check"] == "to" and self.pods is not None:
            with suppress(StatusError):  # already deleted by an earlier call
                await self.pods.delete(new.name)

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        await HistoryChecker.on_delete(self, obj, is_stale=is_stale)
        self.awaited -= 1
        if self.awaited == 0:
            self.all_gone.set()


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_update_never_goes_back_and_every_deletion_is_delivered(
    seed: int, autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """client-go: TestUpdate"""
    rng = random.Random(seed)
    factory = SharedInformerFactory(client, resync_period=1)
    pods = client.api(Pod, namespace="default")
    remover = Remover(pods=pods, awaited=30)
    factory.informer(Pod).add_event_handler(remover)
    await nursery.start(factory.run)

    async def write(writer: int) -> None:
        for number in range(10):
            name = f"pod-{writer}-{number}"
            await pods.create(pod(name, check="from"))
            # Sometimes long enough that the first state is delivered, and repeated by a resync.
            await trio.sleep(rng.choice([0, 0.1, 2]))
            await pods.patch(name, {"metadata": {"labels": {"check": "to"}}})

    async with trio.open_nursery() as writers:
        for writer in range(3):
            writers.start_soon(write, writer)
    # If the first state was never delivered, the second is an addition, and only a resync causes an update.
    with trio.fail_after(10):
        await remover.all_gone.wait()
    assert remover.known == {}
    assert remover.transitions <= {("from", "to"), ("to", "to"), ("from", "from")}
    assert ("from", "to") in remover.transitions
    assert ("from", "from") in remover.transitions
    assert list(api_server.list(Pod)) == []
    nursery.cancel_scope.cancel()
