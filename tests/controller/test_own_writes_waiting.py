"""How requests wait for the caches: beside the queue, in their order, and not forever."""

from __future__ import annotations

import logging
import re
from collections import Counter
from contextlib import suppress
from typing import Any

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.support.own_writes import OTHER, WEB, Setup, broken_informers, config_map, controlled, create
from trioformer import Client, SharedInformerFactory
from trioformer.client import open_client
from trioformer.controller import Controller, Request
from trioformer.errors import StatusError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, ServiceAccount
from trioformer.testing import APIServer

SLOW = Request("default", "slow")


def account(name: str) -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name, namespace="default"))


async def test_a_thousand_requests_wait_while_others_go_on(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """All of them wait for one broken informer, and each is processed once when it has recovered."""
    calls: Counter[str] = Counter()
    latest: dict[str, float] = {}
    factory = SharedInformerFactory(k8s_client)
    factory.informer(ServiceAccount)

    async def reconcile(request: Request) -> None:
        calls[request.name] += 1
        latest[request.name] = trio.current_time()
        if request.name.startswith("early") and calls[request.name] == 1:
            await k8s_client.create(account(request.name))

    controller = Controller("own", reconcile, workers=2)
    early = [Request("default", f"early-{number}") for number in range(1_000)]
    others = [Request("default", f"other-{number}") for number in range(100)]
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        with broken_informers(api_server, ServiceAccount):
            await trio.sleep(0.01)
            for request in early:
                controller.add(request)
            await trio.sleep(10)
            for _ in range(20):
                for request in (*early, *others):
                    controller.add(request)
                added = trio.current_time()
                await trio.sleep(5)
                assert all(added <= latest[each.name] <= added + 1 for each in others)
            queue = controller.statistics().queue
            assert queue is not None
            assert (queue.parked, queue.depth) == (1_000, 0)
            assert [calls[each.name] for each in (*early, *others)] == [1] * 1_000 + [20] * 100
            assert controller.statistics().stale_sync_skips == {("", "serviceaccounts"): 1_000}
        recovered = trio.current_time()
        await trio.sleep(60)
        assert [calls[each.name] for each in early] == [2] * 1_000
        times = [latest[each.name] for each in early]
        assert recovered < min(times)
        assert max(times) - min(times) < 1
        nursery.cancel_scope.cancel()


async def test_all_requests_go_on_after_five_minutes_and_are_counted(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    began: dict[str, list[float]] = {}
    factory = SharedInformerFactory(k8s_client)
    factory.informer(ServiceAccount)

    async def reconcile(request: Request) -> None:
        times = began.setdefault(request.name, [])
        times.append(trio.current_time())
        if len(times) == 1:
            await k8s_client.create(account(request.name))

    controller = Controller("own", reconcile)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        with broken_informers(api_server, ServiceAccount), caplog.at_level(logging.WARNING, "trioformer.controller"):
            await trio.sleep(0.01)
            for number in range(20):
                request = Request("default", f"a-{number}")
                controller.add(request)
                await trio.sleep(5)
                controller.add(request)
            await trio.sleep(400)
        waits = [round(second - first - 5) for first, second in began.values()]
        assert waits == [300] * 20
        assert controller.statistics().stale_syncs == {("", "serviceaccounts"): 20}
        lines = [record.message for record in caplog.records if "do not show the writes" in record.message]
        assert len(lines) <= 10
        assert any("suppressed since the last such line" in line for line in lines)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("raised", [None, 5])
async def test_a_request_keeps_its_priority_while_it_waits(
    raised: int | None, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    began: list[str] = []
    factory = SharedInformerFactory(k8s_client)
    factory.informer(ServiceAccount)

    async def reconcile(request: Request) -> None:
        began.append(request.name)
        if request == WEB and began.count("web") == 1:
            await k8s_client.create(account("new"))
        elif request == SLOW:
            await trio.sleep(100)

    controller = Controller("own", reconcile)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        with broken_informers(api_server, ServiceAccount):
            await trio.sleep(0.01)
            for _ in range(2):
                controller.add(WEB, priority=-100)
                await trio.sleep(1)
            if raised is not None:
                controller.add(WEB, priority=raised)
            controller.add(SLOW)
            await trio.sleep(1)
        await trio.sleep(80)  # the cache shows the write while the only worker is busy
        queue = controller.statistics().queue
        assert queue is not None
        assert queue.depth_by_priority == {-100 if raised is None else raised: 1}
        controller.add(OTHER)
        await trio.sleep(100)
        assert began == ["web", "slow", *(["other", "web"] if raised is None else ["web", "other"])]
        nursery.cancel_scope.cancel()


async def test_a_delayed_addition_merges_with_a_request_that_waits(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """The delay neither ends the wait nor adds the request a second time."""

    async def create_and_fail(setup: Setup) -> None:
        await create(setup)
        raise ValueError("once")

    async with controlled(api_server, k8s_client) as setup:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = create_and_fail
        setup.controller.add(WEB)
        await trio.sleep(0.001)
        setup.controller.add(WEB)  # is parked while the retry is due in some milliseconds
        await trio.sleep(100)
        assert setup.seen == [set(), {"new"}]


async def test_writes_are_forgotten_if_the_cache_does_not_show_them_in_ten_minutes(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """Otherwise a broken cache would fill the memory with the writes of requests that are never added again."""

    async def write(request: Request) -> None:
        await k8s_client.create(config_map(request.name))
        await k8s_client.api(ConfigMap, "default").delete(f"old-{request.name}")

    def unseen() -> int:
        run: Any = controller._run
        return sum(map(len, run.own_writes._unseen.values()))

    for number in range(3):
        api_server.create(config_map(f"old-{number}"))
    factory = SharedInformerFactory(k8s_client)
    factory.informer(ConfigMap)
    controller = Controller("own", write)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        with broken_informers(api_server, ConfigMap):
            counts = []
            for number in range(3):
                await trio.sleep(400)
                controller.add(Request("default", str(number)))
                await trio.sleep(0.01)
                counts.append(unseen())
            assert counts == [2, 4, 4]
        await trio.sleep(100)
        assert unseen() == 0
        nursery.cancel_scope.cancel()


async def test_writes_without_a_response_are_forgotten_after_ten_minutes_too(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def write(request: Request) -> None:
        with suppress(StatusError):
            await k8s_client.create(config_map(request.name))

    def unclear() -> dict[Request, dict[Any, Any]]:
        run: Any = controller._run
        found: dict[Request, dict[Any, Any]] = run.own_writes._unclear
        return found

    factory = SharedInformerFactory(k8s_client)
    factory.informer(ConfigMap)
    controller = Controller("own", write)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        counts = []
        for number in range(4):
            api_server.fail_next(1, verb="create", resource="configmaps", status=504, body={"message": "x" * 10_000})
            controller.add(Request("default", str(number)))
            await trio.sleep(400)
            counts.append(len(unclear()))
        assert counts == [1, 2, 2, 2]
        assert all(not each.body for found in unclear().values() for each in found.values())
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class OldTransport(httpx.AsyncBaseTransport):
    """A way to a server that has lost its data, if a test wants it, and counts its versions from 1."""

    inner: httpx.AsyncBaseTransport
    is_old: bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self.is_old or request.url.path != "/api/v1/configmaps":
            return await self.inner.handle_async_request(request)
        await trio.sleep(0.001)
        if "watch" in request.url.params:
            return httpx.Response(500)
        content = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        return httpx.Response(200, json=content)


async def test_a_list_of_an_older_version_ends_the_wait(autojump_clock: MockClock, api_server: APIServer) -> None:
    """The version of the write may never be reached."""

    async def create_and_lose(setup: Setup) -> None:
        await create(setup)
        transport.is_old = True

    transport = OldTransport(api_server.http_transport())
    for number in range(3):
        api_server.create(config_map(str(number)))
    async with (
        open_client(api_server.config, http_transport=transport) as client,
        controlled(api_server, client) as setup,
    ):
        assert 0.5 < await setup.run_twice(create_and_lose) < 100
        assert setup.seen == [{"0", "1", "2"}, set()]


async def test_the_delays_after_failures_grow_although_the_request_waits_in_between(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async def change_and_fail(setup: Setup) -> None:
        setup.work = change_and_fail
        setup.break_watches(1)
        await setup.client.api(ConfigMap, "default").patch("web", {"data": {"call": str(len(setup.seen))}})
        raise ValueError("again")

    api_server.create(config_map("web"))
    with caplog.at_level(logging.DEBUG, "trioformer.controller"):
        async with controlled(api_server, k8s_client) as setup:
            setup.work = change_and_fail
            setup.controller.add(WEB)
            await trio.sleep(80)
            assert setup.controller.statistics().stale_sync_skips[("", "configmaps")] >= 5
    found = [re.search(r"failed, retrying in (\S+) s", record.message) for record in caplog.records]
    delays = [float(each[1]) for each in found if each is not None]
    assert len(delays) > 5
    assert delays == sorted(delays)
    assert delays[5] > 16 * delays[0]
