"""Controllers whose objects are divided between replicas: health, metrics, the leader, and how they end."""

from __future__ import annotations

from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE
from tests.support.metric_samples import by_label, samples, value
from tests.support.share_replicas import KEYS, create_objects
from trioformer import SharedInformerFactory
from trioformer._util import first_leaf
from trioformer.client import Client
from trioformer.controller import Controller, Request
from trioformer.errors import ForbiddenError
from trioformer.manager import LeaderElection, ManagerContext, run_controllers
from trioformer.metrics import Metrics
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap
from trioformer.sharding import Shares
from trioformer.testing import APIServer

SHARES = Shares("tests", 4)
ELECTION = LeaderElection(NAME, NAMESPACE, "a")


async def start_one(context: ManagerContext, calls: list[str], seconds: float = 0.0) -> Controller[Request]:
    async def reconcile(request: Request) -> None:
        calls.append(str(request))
        await trio.sleep(seconds)
        calls.append(f"{request} ended")

    controller = Controller(context.name, reconcile)
    controller.watch(context.factory.informer(ConfigMap))
    return controller


async def test_the_metrics_show_the_ranges_of_a_replica(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_objects(api_server)
    calls: list[str] = []
    metrics, stop = Metrics(), trio.Event()
    async with trio.open_nursery() as inner:
        start = {"one": partial(start_one, calls=calls)}
        inner.start_soon(partial(run_controllers, client, start, shares=SHARES, metrics=metrics, stop=stop))
        await trio.sleep(5)
        assert set(calls) >= KEYS
        ranges = by_label(metrics, "trioformer_shares_ranges", "state", name="tests")
        assert {state: number for state, number in ranges.items() if number} == {"ready": 4}
        assert value(metrics, "trioformer_shares_moves_total", name="tests") == 4
        assert value(metrics, "trioformer_shares_filtered_by_server", name="tests") == 0
        stop.set()
    assert samples(metrics, "trioformer_shares_ranges") == []


async def test_stopping_finishes_the_running_call_and_releases_the_leases(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_objects(api_server)
    calls: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        start = {"one": partial(start_one, calls=calls, seconds=10.0)}
        inner.start_soon(partial(run_controllers, client, start, shares=SHARES, stop=stop))
        await trio.sleep(5)
        stop.set()
    assert calls == [calls[0], f"{calls[0]} ended"]
    leases = {each.name: each.spec.holder_identity for each in api_server.list(Lease)}
    assert leases == {f"tests-range-{number}": "" for number in range(4)}


async def test_readyz_says_whether_the_replica_is_a_member(
    api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.fail_next(10_000, resource="leases", verb="create", status=500)
    start = {"one": partial(start_one, calls=[])}
    url = await nursery.start(partial(run_controllers, client, start, shares=SHARES, http="127.0.0.1:0"))
    async with httpx.AsyncClient(base_url=url) as http:
        response = await http.get("/readyz/shares")
    assert response.status_code == 500
    assert "does not take part yet" in response.text
    nursery.cancel_scope.cancel()


async def test_only_controllers_that_always_run_may_reconcile_a_divided_kind(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_objects(api_server)
    calls: list[str] = []
    start = {"one": partial(start_one, calls=calls)}
    run = partial(run_controllers, client, start, shares=SHARES, leader_election=ELECTION)
    with pytest.raises(ExceptionGroup) as caught, trio.fail_after(60):
        await run()
    assert "add it to always=" in str(first_leaf(caught.value))
    nursery.start_soon(partial(run, always={"one"}))
    await trio.sleep(20)
    assert set(calls) >= KEYS
    nursery.cancel_scope.cancel()


async def test_a_kind_that_may_not_be_listed_ends_the_manager(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    for verb in ("list", "watch"):
        api_server.fail_next(10_000, resource="configmaps", verb=verb, status=403)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"one": partial(start_one, calls=[])}, shares=SHARES)
    assert isinstance(first_leaf(caught.value), ForbiddenError)
    assert trio.current_time() == pytest.approx(30, abs=10)


async def test_shares_need_a_factory_of_their_own(client: Client) -> None:
    factory = SharedInformerFactory(client)
    factory.informer(ConfigMap)
    with pytest.raises(RuntimeError, match="without informers"):
        await run_controllers(client, {}, shares=SHARES, factory=factory)


async def test_a_stop_before_the_controllers_have_started_ends_the_manager(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        start = {"one": partial(start_one, calls=[])}
        inner.start_soon(partial(run_controllers, client, start, shares=SHARES, stop=stop, start_interval=100.0))
        await trio.sleep(1)
        stop.set()
    assert trio.current_time() < 10
