"""Controllers with an embedded API server and informers of a factory: owners, faults, restarts, many changes."""

from __future__ import annotations

import queue
import random
import time
from collections import Counter

import attrs
import trio
from trio.testing import MockClock

from tests.support.controllers import Reconcile
from trioformer import Client, ClusterConfig, ConflictError, SharedInformerFactory, StatusError, open_client
from trioformer.controller import (
    Controller,
    Request,
    RequeueAfter,
    TerminalError,
    generation_changed,
    request_for_owner,
)
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer, serve_http


def replica_set(name: str, replicas: int = 1) -> dict[str, object]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def pod_of(name: str, owner: str | None) -> dict[str, object]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "uid", "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [reference] if owner else []}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


async def test_a_pods_owners_are_reconciled_when_it_is_added_moved_and_deleted(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for name in ("web", "api"):
        api_server.create(replica_set(name))
    factory = SharedInformerFactory(client)
    controller = Controller("replicas", reconcile := Reconcile(), workers=2)
    controller.watch(factory.informer(ReplicaSet), predicates=[generation_changed])
    controller.watch(factory.informer(Pod), enqueue=request_for_owner(ReplicaSet))
    nursery.start_soon(controller.run)
    await nursery.start(factory.run)
    await trio.sleep(1)
    reconciled = [set(reconcile.calls)]

    async def settle() -> None:
        reconcile.calls.clear()
        await trio.sleep(1)
        reconciled.append(set(reconcile.calls))

    api_server.create(pod_of("p", "web"))
    await settle()
    api_server.create(pod_of("orphan", None))
    await settle()
    owner = pod_of("p", "api")["metadata"]["ownerReferences"]  # type: ignore[index]
    api_server.patch(Pod, "p", {"metadata": {"ownerReferences": owner}})
    await settle()
    api_server.patch(ReplicaSet, "web", {"status": {"replicas": 1}})
    await settle()
    api_server.patch(ReplicaSet, "web", {"spec": {"replicas": 2}})
    await settle()
    api_server.delete(Pod, "p")
    await settle()
    assert reconciled == [{"web", "api"}, {"web"}, set(), {"web", "api"}, set(), {"web"}, {"api"}]


async def test_an_object_that_was_deleted_while_the_watch_was_broken_is_reconciled(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for name in ("kept", "deleted"):
        api_server.create(pod_of(name, None))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    missing: list[str] = []

    async def reconcile(request: Request) -> None:
        if informer.lister.get(request) is None:
            missing.append(request.name)

    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(factory.run)
    await nursery.start(controller.run)
    with api_server.unreachable():
        await trio.sleep(1)
        api_server.disconnect_watches()
        api_server.delete(Pod, "deleted")
        api_server.compact()
        await trio.sleep(1)
    await trio.sleep(60)
    assert missing == ["deleted"]


def owner_reference(name: str) -> dict[str, object]:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "uid", "controller": True}]
    return {"metadata": {"ownerReferences": owners}}


@attrs.define(eq=False)
class ServedPods:
    """An embedded server on a socket, in a thread of its own, so that it does not wait for slow functions."""

    moves: int
    urls: queue.Queue[str] = attrs.field(factory=queue.Queue)
    token: trio.lowlevel.TrioToken | None = None
    begin: trio.Event | None = None
    end: trio.Event | None = None

    async def serve(self) -> None:
        """Serve 60 pods, and when told to, move one after another to an owner that no other pod has."""
        self.token, self.begin, self.end = trio.lowlevel.current_trio_token(), trio.Event(), trio.Event()
        server = APIServer()
        for number in range(60):
            server.create(pod_of(f"p{number}", "first"))
        async with trio.open_nursery() as nursery:
            self.urls.put(await nursery.start(serve_http, server))
            await self.begin.wait()
            for number in range(self.moves):
                server.patch(Pod, f"p{number % 60}", owner_reference(f"owner-{number}"))
            await self.end.wait()
            nursery.cancel_scope.cancel()

    def tell(self, event: trio.Event | None) -> None:
        assert self.token is not None
        assert event is not None
        self.token.run_sync_soon(event.set)


async def test_no_owner_is_lost_in_1_200_moves_over_a_socket_with_slow_functions(nursery: trio.Nursery) -> None:
    served, rng, missing = ServedPods(1_200), random.Random(1), trio.Event()
    nursery.start_soon(trio.to_thread.run_sync, trio.run, served.serve)
    config = ClusterConfig(server=await trio.to_thread.run_sync(served.urls.get))
    reconciled: set[str] = set()

    async def reconcile(request: Request) -> None:
        reconciled.add(request.name)
        if len(reconciled) > served.moves:
            missing.set()

    of_replica_set = request_for_owner(ReplicaSet)

    def slow_owner(pod: Pod) -> tuple[Request, ...]:
        until = time.perf_counter() + rng.uniform(0.0002, 0.001)
        while time.perf_counter() < until:
            pass
        return tuple(of_replica_set(pod))

    try:
        async with open_client(config) as client, trio.open_nursery() as inner:
            factory = SharedInformerFactory(client)
            informer = factory.informer(Pod)
            controller = Controller("owners", reconcile)
            controller.watch(informer, enqueue=slow_owner)
            await inner.start(factory.run)
            await inner.start(controller.run)
            served.tell(served.begin)
            with trio.move_on_after(60):
                await missing.wait()
            buffer = controller.statistics().handlers[0].buffer
            inner.cancel_scope.cancel()
    finally:
        served.tell(served.end)
    assert {f"owner-{number}" for number in range(served.moves)} - reconciled == set()
    assert buffer.coalesced == 0


@attrs.define(eq=False)
class Copier:
    """Brings ``data.copied`` of every ConfigMap to ``data.wanted``; some writes fail."""

    client: Client
    factory: SharedInformerFactory
    rng: random.Random
    busy: set[Request] = attrs.field(factory=set)
    outcomes: Counter[str] = attrs.field(factory=Counter)

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        assert request not in self.busy
        self.busy.add(request)
        try:
            return await self.copy(request)
        except trio.Cancelled:
            self.outcomes["cancelled"] += 1
            raise
        finally:
            self.busy.remove(request)

    async def copy(self, request: Request) -> RequeueAfter | None:
        config_map = self.factory.informer(ConfigMap).lister.get(request)
        if config_map is None:
            self.outcomes["deleted"] += 1
            return None
        wanted = config_map.data.get("wanted", "")
        choice = self.rng.random()
        if choice < 0.1:
            self.outcomes["failed"] += 1
            raise OSError("a random failure")
        if choice < 0.15:
            self.outcomes["hung"] += 1
            await trio.sleep_forever()
        if config_map.data.get("copied") == wanted:
            self.outcomes["nothing to do"] += 1
            return None
        if choice < 0.3:
            self.outcomes["later"] += 1
            return RequeueAfter(self.rng.uniform(0, 3))
        await trio.sleep(self.rng.choice([0, 0.001, 0.2]))
        patch = {
            "metadata": {"resourceVersion": config_map.resource_version},
            "data": {"copied": wanted},
        }
        try:
            await self.client.api(ConfigMap, namespace=request.namespace).patch(request.name, patch)
        except ConflictError:
            self.outcomes["conflict"] += 1
            raise
        except StatusError as error:
            self.outcomes["not found"] += 1
            raise TerminalError("the object was deleted") from error
        self.outcomes["copied"] += 1
        return None


async def make_changes(server: APIServer, rng: random.Random, changes: int, keys: int) -> None:
    """Create, change and delete ConfigMaps, and disconnect watches, in bursts."""
    present: set[int] = set()
    for number in range(changes):
        key = rng.randrange(keys)
        name, what = f"cm-{key}", rng.random()
        if key not in present:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            server.create({**made, "data": {"wanted": str(number)}})
            present.add(key)
        elif what < 0.1:
            server.delete(ConfigMap, name)
            present.remove(key)
        else:
            server.patch(ConfigMap, name, {"data": {"wanted": str(number)}})
        if rng.random() < 0.01:
            server.disconnect_watches(how=rng.choice(["clean", "abrupt"]))
        if rng.random() < 0.005:
            server.compact()
        if rng.random() < 0.3:
            await trio.sleep(rng.choice([0, 0.001, 0.05, 0.5]))


async def test_after_many_changes_and_faults_all_objects_are_in_the_desired_state(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """Events, failures, deadlines, conflicts, broken watches, and a controller that is stopped and run again."""
    rng = random.Random(1)
    factory = SharedInformerFactory(client)
    copier = Copier(client, factory, rng)
    controller = Controller("copier", copier.reconcile, workers=4, reconcile_deadline=2)
    controller.watch(factory.informer(ConfigMap))
    await nursery.start(factory.run)
    changed = trio.Event()

    async def change_all() -> None:
        await make_changes(api_server, rng, 1_000, 30)
        changed.set()

    nursery.start_soon(change_all)
    terms = 0
    while not changed.is_set():
        async with trio.open_nursery() as inner:
            await inner.start(controller.run)
            await trio.sleep(rng.uniform(1, 15))
            terms += 1
            if terms % 2:
                with trio.move_on_after(rng.choice([0, 1, 10])):
                    await controller.stop()
            inner.cancel_scope.cancel()
        assert not copier.busy
    await nursery.start(controller.run)
    await trio.sleep(2_000)
    left = api_server.list(ConfigMap)
    assert left
    assert [each.name for each in left if each.data["copied"] != each.data["wanted"]] == []
    assert controller.statistics().failing == controller.statistics().active == 0
    assert terms > 1
    for outcome in ("deleted", "failed", "hung", "later", "conflict", "cancelled", "copied"):
        assert copier.outcomes[outcome], outcome


async def test_a_thousand_failing_objects_neither_delay_others_nor_are_retried_too_often(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for number in range(1_000):
        api_server.create(pod_of(f"bad-{number}", None))
    factory = SharedInformerFactory(client)
    calls: Counter[str] = Counter()
    at: list[float] = []

    async def reconcile(request: Request) -> None:
        calls[request.name] += 1
        if request.name.startswith("bad"):
            raise OSError("always")
        at.append(trio.current_time())

    controller = Controller("pods", reconcile, workers=4, max_retries=3)
    controller.watch(factory.informer(Pod))
    await nursery.start(factory.run)
    await nursery.start(controller.run)
    await trio.sleep(10)
    created = trio.current_time()
    api_server.create(pod_of("good", None))
    await trio.sleep(1_000)
    assert at
    assert at[0] - created < 0.1
    assert {calls[f"bad-{number}"] for number in range(1_000)} == {4}
    assert controller.statistics().dropped == 1_000
