"""Replicas that share the objects of a controller: each object has one, and moves between them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from tests.support.share_replicas import KEYS, NAMESPACES, create_objects, replica
from trioformer import SharedInformerFactory
from trioformer._util import first_leaf
from trioformer.cache import Deleted, Released
from trioformer.client import Client
from trioformer.controller import Controller, Request, set_controller_reference
from trioformer.errors import NotOwnedError
from trioformer.manager import ManagerContext, run_controllers
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, Pod, ServiceAccount
from trioformer.sharding import Shares, open_shares
from trioformer.sharding._open_shares import prepare_shares
from trioformer.testing import APIServer

FOUR = Shares("tests", 4)


@pytest.fixture
async def server(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> APIServer:
    server = APIServer()
    await nursery.start(server.run)
    create_objects(server)
    return server


@pytest.mark.parametrize("by", ["namespace", "uid"])
async def test_two_replicas_divide_the_objects(
    server: APIServer, autojump_clock: trio.testing.MockClock, by: str
) -> None:
    shares = Shares("tests", by=by)  # type: ignore[arg-type]
    async with replica(server, shares) as first:
        await trio.sleep(1)
        assert first.keys == KEYS
        assert {str(each) for each in first.calls} == KEYS
        assert set(first.shares.state.own.values()) == {"ready"}
        async with replica(server, shares) as second:
            await trio.sleep(60)
            assert first.keys | second.keys == KEYS
            assert not first.keys & second.keys
            assert len(second.keys) >= 5
            assert {str(each) for each in second.calls} == second.keys
            assert not [each for each in first.notifications if isinstance(each, Deleted)]
            assert len([each for each in first.notifications if isinstance(each, Released)]) == len(second.keys)
            key = min(second.keys)
            with pytest.raises(NotOwnedError):
                first.factory.informer(ConfigMap).lister.get(key)
            before = len(first.calls)
            second.calls.clear()
            for name in NAMESPACES:
                server.patch(ConfigMap, "web", {"data": {"a": "b"}}, namespace=name)
            await trio.sleep(1)
            assert len(first.calls) - before + len(second.calls) == len(KEYS)
            assert {str(each) for each in second.calls} == second.keys
        await trio.sleep(1)
        assert first.keys == KEYS


async def test_a_call_that_finishes_while_its_range_is_given_up_reads_its_object(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    finished: list[str] = []
    async with replica(server, FOUR) as only:

        async def work(request: Request) -> None:
            await trio.sleep(10)
            assert only.factory.informer(ConfigMap).lister.get(request) is not None
            finished.append(str(request))

        only.work = work
        await trio.sleep(1)
        (running,) = only.calls
    assert finished == [str(running)]  # and no other call began


async def test_calls_are_cancelled_at_the_end_of_the_grace_and_their_requests_forgotten(
    server: APIServer, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(request: Request, error: Exception, step: str) -> None:
        await trio.sleep_forever()

    async def fail(request: Request) -> None:
        raise ZeroDivisionError

    async with replica(server, FOUR, grace=5.0, on_error=handle, workers=2) as only:
        only.work = fail
        await trio.sleep(1)
        began = trio.current_time()
    assert trio.current_time() == pytest.approx(began + 5, abs=0.5)


async def test_a_kind_that_is_added_later_syncs_with_the_ranges_that_are_held(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    server.fail_next(12, verb="list", resource="serviceaccounts", status=500)
    server.fail_next(12, verb="watch", resource="serviceaccounts", status=500)
    async with replica(server, FOUR) as only:
        await trio.sleep(1)
        only.calls.clear()
        accounts = only.factory.informer(ServiceAccount)
        await trio.sleep(0.1)
        assert not accounts.has_synced
        server.patch(ConfigMap, "web", {"data": {"a": "b"}}, namespace=NAMESPACES[0])
        await trio.sleep(0.1)
        assert [str(each) for each in only.calls] == [f"{NAMESPACES[0]}/web"]
        await accounts.wait_until_synced()
        created = server.create(ServiceAccount(metadata=ObjectMeta(name="new", namespace=NAMESPACES[0])))
        await accounts.wait_until_at_least(created)
        assert accounts.lister.get(f"{NAMESPACES[0]}/new") == created


async def test_reading_what_another_replica_owns_raises(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async with replica(server, FOUR) as first, replica(server, FOUR) as second:
        await trio.sleep(60)
        lister, foreign = first.factory.informer(ConfigMap).lister, min(second.keys)
        namespace = foreign.partition("/")[0]
        with pytest.raises(NotOwnedError, match="does not own"):
            lister.get(foreign)
        with pytest.raises(NotOwnedError):
            lister[foreign]
        with pytest.raises(NotOwnedError):
            _ = foreign in lister
        with pytest.raises(NotOwnedError, match=namespace):
            lister.list(namespace=namespace)
        own = min(first.keys)
        assert own in lister
        assert lister.list(namespace=own.partition("/")[0]) == (lister[own],)
        assert lister.get(own.replace("web", "missing")) is None
        assert len(lister.list()) == len(first.keys)


async def test_a_range_cannot_be_read_before_its_first_list(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async with replica(server, FOUR) as first:
        await trio.sleep(1)
        async with replica(server, FOUR) as second:
            await trio.sleep(60)
            moving = min(second.keys)
            first.calls.clear()
            is_broken = True
            for verb in ("list", "watch"):
                server.fail_next(1000, verb=verb, resource="configmaps", status=lambda _: 500 if is_broken else None)
        await trio.sleep(5)
        lister = first.factory.informer(ConfigMap).lister
        with pytest.raises(NotOwnedError, match="first list is not complete"):
            lister.get(moving)
        assert "listing" in first.shares.state.own.values()
        assert first.calls == []
        is_broken = False
        await trio.sleep(60)
        assert moving in {str(each) for each in first.calls}
        assert moving in lister
        assert set(first.shares.state.own.values()) == {"ready"}


async def test_an_object_is_not_missing_if_its_cache_has_failed(
    server: APIServer, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    async def run() -> None:
        with pytest.raises(ExceptionGroup):
            await factory.run()

    server.fail_next(10_000, resource="configmaps", status=403)
    async with server.open_client() as client:
        factory = SharedInformerFactory(client)
        async with open_shares(client, FOUR, factory) as shares:
            informer = factory.informer(ConfigMap)
            nursery.start_soon(run)
            await informer.wait_until_stopped()
            await trio.sleep(1)
            assert len(shares.state.own) == 4
            with pytest.raises(NotOwnedError, match="first list is not complete"):
                informer.lister.get("web", namespace=NAMESPACES[0])


async def test_with_uids_a_missing_key_is_known_only_to_the_owner_of_the_deleted_object(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    shares = Shares("tests", 4, by="uid")
    async with replica(server, shares) as first, replica(server, shares) as second:
        await trio.sleep(60)
        deleted = min(first.keys)
        server.delete(ConfigMap, "web", namespace=deleted.partition("/")[0])
        await trio.sleep(1)
        assert first.factory.informer(ConfigMap).lister.get(deleted) is None
        for replica_, key in ((second, deleted), (first, "team-0-prod/never"), (first, min(second.keys))):
            with pytest.raises(NotOwnedError, match="another replica caches it"):
                replica_.factory.informer(ConfigMap).lister.get(key)
        assert str(first.calls[-1]) == deleted
        assert deleted not in {str(each) for each in second.calls[-1:]}


@pytest.mark.parametrize("is_own", [False, True])
async def test_own_writes_are_waited_for_only_in_own_ranges(
    server: APIServer, autojump_clock: trio.testing.MockClock, is_own: bool
) -> None:
    async with replica(server, FOUR) as first, replica(server, FOUR) as second:
        await trio.sleep(60)
        key = min(first.keys)
        request = Request(key.partition("/")[0], "web")
        written = key if is_own else min(second.keys)

        async def write_once(_: Request) -> None:
            first.work = None
            await first.client.api(ConfigMap, written.partition("/")[0]).patch("web", {"data": {"a": "b"}})

        server.fail_next(10, verb="watch", resource="configmaps")
        server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        first.work = write_once
        first.calls.clear()
        first.times.clear()
        first.controller.add(request)
        await trio.sleep(0.05)
        first.controller.add(request)
        await trio.sleep(200)
        assert set(first.calls) == {request}
        assert (first.times[1] - first.times[0] > 0.5) is is_own


async def test_own_writes_do_not_wait_for_a_cache_that_has_ended(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async with replica(server, FOUR) as only:
        await trio.sleep(1)
        async with only.factory.open_informer(ConfigMap, label_selector="!app") as other:
            await other.wait_until_synced()
        request = Request(NAMESPACES[0], "web")

        async def write(_: Request) -> None:
            only.work = None
            await only.client.api(ConfigMap, NAMESPACES[0]).patch("web", {"data": {"a": "b"}})

        only.work = write
        only.times.clear()
        only.controller.add(request)
        await trio.sleep(400)
        assert only.times[-1] - only.times[0] < 1


async def test_ranges_that_are_held_stay_up_to_date_while_the_server_refuses_lists(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async with replica(server, FOUR) as first:
        async with replica(server, FOUR):
            await trio.sleep(60)
            kept, is_refused = min(first.keys), True
            status = lambda _: 429 if is_refused else None  # noqa: E731
            server.fail_next(10_000, verb="list", resource="configmaps", status=status)
        await trio.sleep(30)
        first.calls.clear()
        for _ in range(3):
            server.patch(ConfigMap, "web", {"data": {"a": str(trio.current_time())}}, namespace=kept.partition("/")[0])
            await trio.sleep(60)
        assert [str(each) for each in first.calls] == [kept] * 3
        assert "listing" in first.shares.state.own.values()
        is_refused = False
        await trio.sleep(30)
        assert first.keys == KEYS
        assert set(first.shares.state.own.values()) == {"ready"}


async def test_a_replica_is_ready_when_it_is_a_member(
    server: APIServer, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    async with server.open_client() as client:
        factories = [SharedInformerFactory(client) for _ in range(2)]
        async with (
            prepare_shares(client, FOUR, factories[0], 0.0) as one,
            prepare_shares(client, Shares("tests", 5), factories[1], 0.0) as other,
        ):
            assert "does not take part yet" in one.ownership.not_ready_reason()
            await nursery.start(one.ownership.run)
            await trio.sleep(1)
            assert one.ownership.not_ready_reason() == ""
            assert "owns 4 ranges" in str(one.state)
            await nursery.start(other.ownership.run)
            await trio.sleep(1)
            assert other.state.waits_for == one.state.identity
            assert other.ownership.not_ready_reason() == ""
            nursery.cancel_scope.cancel()


# --- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "kind", "arguments", "match"),
    [
        (Shares("tests"), Node, {}, "nodes are cluster-scoped"),
        (Shares("tests"), Pod, {"namespace": "default"}, "given namespaces"),
        (Shares("tests", by="uid"), Pod, {"namespace": ["default", "kube-system"]}, "given namespaces"),
    ],
)
async def test_a_kind_that_cannot_be_divided_is_refused(
    shares: Shares, kind: type[KubernetesObject], arguments: dict[str, Any], match: str, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    async with prepare_shares(client, shares, factory, 0.0):
        with pytest.raises(ValueError, match=match):
            factory.informer(kind, **arguments)


async def test_whole_kinds_are_cached_by_all_replicas(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    shares = Shares("tests", 4, whole=[Namespace])
    async with replica(server, shares) as first, replica(server, shares):
        await trio.sleep(60)
        informer = first.factory.informer(Namespace)
        await first.factory.wait_for_cache_sync()
        assert {*NAMESPACES} <= {each.name for each in informer.lister}
        assert informer.lister.get("another") is None
        assert first.shares.state.whole == ("Namespace",)


async def test_labels_let_owned_objects_follow_the_uids_of_their_owners(
    server: APIServer, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    shares = Shares("tests", 4, by="uid", labels={ServiceAccount: "range"})
    owners = [server.get(ConfigMap, "web", namespace=name) for name in NAMESPACES]
    for owner in owners:
        labels = shares.label_for(ServiceAccount, owner)
        metadata = ObjectMeta(name="web", namespace=owner.namespace, labels=labels)
        server.create(set_controller_reference(ServiceAccount(metadata=metadata), owner))
    with pytest.raises(ValueError, match="Pod"):
        shares.label_for(Pod, owners[0])
    async with replica(server, shares) as first, replica(server, shares) as second:
        informers = [each.factory.informer(ServiceAccount) for each in (first, second)]
        await trio.sleep(60)
        for each, informer in zip((first, second), informers, strict=True):
            assert {f"{found.namespace}/{found.name}" for found in informer.lister} == each.keys
        assert first.shares.state.mislabelled + second.shares.state.mislabelled == 0
        label = shares.label_for(ServiceAccount, owners[0])["range"]
        wrong = next(owner for owner in owners if shares.label_for(ServiceAccount, owner)["range"] != label)
        server.patch(ServiceAccount, "web", {"metadata": {"labels": {"range": label}}}, namespace=wrong.namespace)
        await trio.sleep(1)
        assert first.shares.state.mislabelled + second.shares.state.mislabelled == 1
        assert f"ServiceAccount {wrong.namespace}/web has the label range={label}, but its owner is in" in caplog.text


async def do_nothing(request: Request) -> None:
    pass


async def test_controllers_must_reconcile_a_divided_kind_and_no_owned_kind_by_uid(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async with server.open_client() as client:
        factory = SharedInformerFactory(client)
        async with prepare_shares(client, Shares("tests", by="uid", labels={Pod: "range"}), factory, 0.0):
            owner = Controller("owner", do_nothing)
            owner.watch(factory.informer(ConfigMap))
            owner.owns(factory, ServiceAccount, owner=ConfigMap)
            labelled = Controller("labelled", do_nothing)
            labelled.watch(factory.informer(Pod))
            for controller, match in ((owner, "ServiceAccount.* labels="), (labelled, "cannot be reconciled")):
                with pytest.raises(ExceptionGroup) as caught:
                    await controller.run()
                with pytest.raises(ValueError, match=match):
                    raise first_leaf(caught.value)  # type: ignore[misc]


@pytest.mark.parametrize("arguments", [{"ranges": 0}, {"ranges": 1025}, {"ranges": True}, {"by": "name"}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        Shares("tests", **arguments)


async def test_shares_need_a_factory_without_informers(client: Client) -> None:
    factory = SharedInformerFactory(client)
    factory.informer(Pod)
    with pytest.raises(RuntimeError, match="without informers"):
        async with prepare_shares(client, Shares("tests"), factory, 0.0):
            pass


async def test_an_enqueue_function_may_read_a_range_that_is_not_complete(
    server: APIServer, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    for name in NAMESPACES:
        server.create(ServiceAccount(metadata=ObjectMeta(name="web", namespace=name)))
    async with replica(server, FOUR) as first, replica(server, FOUR) as second:
        configs, accounts = second.factory.informer(ConfigMap), second.factory.informer(ServiceAccount)
        first.factory.informer(ServiceAccount)
        calls = set[str]()

        async def reconcile(request: Request) -> None:
            calls.add(str(request))

        controller = Controller("reader", reconcile)
        controller.watch(configs)
        controller.watch(
            accounts, enqueue=lambda obj: [Request.of(each) for each in configs.lister.list(namespace=obj.namespace)]
        )
        await nursery.start(controller.run)
        await trio.sleep(60)
        assert calls >= second.keys


async def test_a_range_may_be_lost_while_on_error_runs(
    server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    async def fail(request: Request) -> None:
        raise ValueError

    async def on_error(request: Request, error: Exception, then: object) -> None:
        await trio.sleep(60)

    async with replica(server, FOUR, on_error=on_error) as only:
        only.work = fail
        await trio.sleep(5)
        for verb in ("update", "get"):
            server.fail_next(10_000, verb=verb, resource="leases", status=500)
        await trio.sleep(30)
        assert only.shares.state.own == {}


async def test_a_replica_stops_while_its_leases_cannot_be_listed(
    server: APIServer, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    server.fail_next(10_000, verb="list", resource="leases", status=500)
    stop = trio.Event()

    async def start(context: ManagerContext) -> Controller:
        controller = Controller(context.name, nothing)
        controller.watch(context.factory.informer(ConfigMap))
        return controller

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(run_controllers, client, {"web": start}, shares=FOUR, stop=stop))
            await trio.sleep(20)
            stop.set()


async def nothing(request: Request) -> None:
    pass
