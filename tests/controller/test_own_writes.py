"""A controller reads its own writes: the next call for a request begins when the caches show them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.support.own_writes import OTHER, WEB, Setup, Work, config_map, controlled, create
from trioformer import Client, ConnectionFailedError, KubernetesObject, SharedInformerFactory
from trioformer.client import open_client
from trioformer.controller import Controller, Request, RequeueAfter
from trioformer.models import ObjectMeta, metadata_kind, resource_of
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import (
    ConfigMap,
    Container,
    Event,
    ObjectReference,
    Pod,
    PodSpec,
    ServiceAccount,
)
from trioformer.testing import APIServer


async def test_the_next_call_sees_a_created_object(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(create) > 0.5
        assert setup.seen == [set(), {"new"}]
        statistics = setup.controller.statistics()
        assert statistics.stale_sync_skips == {("", "configmaps"): 1}
        assert (statistics.succeeded, statistics.failed) == (3, 0)


async def test_without_the_option_the_next_call_does_not_wait(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async with controlled(api_server, k8s_client, reads_own_writes=False) as setup:
        assert await setup.run_twice(create) < 0.5
        assert setup.seen == [set(), set()]


async def test_a_request_that_waits_holds_no_worker_and_merges_what_is_added(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async with controlled(api_server, k8s_client, workers=1) as setup:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = create
        setup.controller.add(WEB)
        await trio.sleep(0.05)
        for _ in range(3):
            setup.controller.add(WEB)
            setup.controller.add(OTHER)
            await trio.sleep(0.05)
        assert [request for request, _ in setup.began] == [WEB, OTHER, OTHER, OTHER]
        statistics = setup.controller.statistics().queue
        assert statistics is not None
        assert (statistics.parked, statistics.depth, statistics.delayed) == (1, 0, 0)
        await trio.sleep(60)
        assert [request for request, _ in setup.began].count(WEB) == 2


async def change(setup: Setup) -> None:
    await setup.client.api(ConfigMap, "default").patch("old", {"data": {"a": "b"}})


async def remove(setup: Setup) -> None:
    await setup.client.api(ConfigMap, "default").delete("old")


async def create_and_remove(setup: Setup) -> None:
    await create(setup)
    await setup.client.api(ConfigMap, "default").delete("new")


@pytest.mark.parametrize("work", [change, remove, create_and_remove])
async def test_the_next_call_sees_changes_and_removals(
    work: Work, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map("old"))
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(work) > 0.5
        cached = setup.factory.informer(ConfigMap).lister
        if work is change:
            assert cached.get("default/old") is not None
        assert setup.seen[1] == {one.name for one in api_server.list(ConfigMap) if one.name in ("old", "new")}


async def apply_the_same(setup: Setup) -> None:
    await setup.client.api(ConfigMap, "default").patch("old", {"metadata": {"labels": {}}})


async def dry_run(setup: Setup) -> None:
    await setup.client.create(config_map("new"), dry_run=True)


async def conflict(setup: Setup) -> None:
    with suppress(Exception):
        await setup.client.create(config_map("old"))


async def of_another_client(setup: Setup) -> None:
    async with setup.server.open_client() as other:
        await other.create(config_map("new"))


async def lease(setup: Setup) -> None:
    await setup.client.create(Lease(metadata=ObjectMeta(name="new", namespace="default")))


async def event(setup: Setup) -> None:
    reference = ObjectReference(kind="ConfigMap", name="old", namespace="default")
    await setup.client.create(Event(metadata=ObjectMeta(name="new", namespace="default"), involved_object=reference))


async def left_behind(setup: Setup) -> None:
    async def late(started: trio.Event) -> None:
        started.set()
        await trio.sleep(0.02)
        await create(setup)

    started = trio.Event()
    nursery = trio.lowlevel.current_task().parent_nursery
    assert nursery is not None
    nursery.start_soon(late, started)
    await started.wait()


@pytest.mark.parametrize("work", [apply_the_same, dry_run, conflict, of_another_client, lease, event, left_behind])
async def test_what_the_caches_do_not_miss_delays_nothing(
    work: Work, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    def configure(factory: SharedInformerFactory) -> None:
        factory.informer(Lease)
        factory.informer(Event)

    api_server.create(config_map("old"))
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        for kind in (Lease, Event):
            api_server.fail_next(3, verb="watch", resource="leases" if kind is Lease else "events")
            api_server.disconnect_watches(kind=kind)
        assert await setup.run_twice(work) < 0.5


@asynccontextmanager
async def with_selected_cache(
    server: APIServer,
    client: Client,
    namespace: str | None = None,
    *,
    breaks_watches: bool = True,
    kind: type[KubernetesObject] = ConfigMap,
    **selectors: Any,
) -> AsyncIterator[Callable[[Callable[[], Awaitable[object]]], Awaitable[float]]]:
    """A controller beside one cache; a function that returns how long the next call waits after a write."""
    factory = SharedInformerFactory(client, namespace=namespace)
    factory.informer(kind, **selectors)
    calls: list[float] = []
    writes: list[Callable[[], Awaitable[object]]] = []

    async def reconcile(request: Request) -> None:
        calls.append(trio.current_time())
        while writes:
            await writes.pop()()

    controller = Controller("own", reconcile)

    async def delay_after(write: Callable[[], Awaitable[object]]) -> float:
        if breaks_watches:
            server.fail_next(3, verb="watch", resource=resource_of(kind).plural)
            server.disconnect_watches(kind=kind)
        await trio.sleep(0.01)
        writes.append(write)
        calls.clear()
        controller.add(WEB)
        await trio.sleep(0.05)
        controller.add(WEB)
        await trio.sleep(200)
        return calls[1] - calls[0]

    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        yield delay_after
        nursery.cancel_scope.cancel()


async def test_a_cache_counts_for_what_it_contains(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api, system = (k8s_client.api(ConfigMap, namespace) for namespace in ("default", "kube-system"))
    async with with_selected_cache(api_server, k8s_client, "default") as delay_after:
        assert await delay_after(lambda: system.create(config_map("a").evolve(metadata=ObjectMeta(name="a")))) < 0.5
        assert await delay_after(lambda: api.create(config_map("a"))) > 0.5
    async with with_selected_cache(api_server, k8s_client, label_selector={"app": "web"}) as delay_after:
        assert await delay_after(lambda: api.create(config_map("b", app="api"))) < 0.5
        assert await delay_after(lambda: api.create(config_map("c", app="web"))) > 0.5
        assert await delay_after(lambda: api.patch("c", {"metadata": {"labels": {"app": "api"}}})) > 0.5
        assert await delay_after(lambda: api.patch("c", {"data": {"a": "b"}})) < 0.5
        metadata = ObjectMeta(name="f", namespace="default", finalizers=("example.com/stay",))
        api_server.create(ConfigMap(metadata=metadata))
        assert await delay_after(lambda: api.delete("f")) < 0.5
    async with with_selected_cache(api_server, k8s_client, field_selector="metadata.name=d") as delay_after:
        assert await delay_after(lambda: api.create(config_map("e"))) < 0.5
        assert await delay_after(lambda: api.create(config_map("d"))) > 0.5
    pods, spec = k8s_client.api(Pod, "default"), PodSpec(containers=(Container(name="web", image="web:1"),))
    made, other = (Pod(metadata=ObjectMeta(name=name), spec=spec) for name in ("made", "other"))
    selector = {"spec.hostNetwork": "false"}  # which the server selects although the pods do not have the field
    async with with_selected_cache(api_server, k8s_client, kind=Pod, field_selector=selector) as delay_after:
        assert await delay_after(lambda: pods.create(made)) > 0.5
        assert await delay_after(lambda: pods.create(other.evolve(spec=spec.evolve(host_network=True)))) < 0.5


class PartServer(httpx.AsyncBaseTransport):
    """A server with a query parameter of its own, ``part``, which selects objects by a label."""

    def __init__(self, server: APIServer) -> None:
        self.inner = server.http_transport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        params = request.url.params
        if "part" in params:
            app = f"app={params['part']}"
            selector = f"{params['labelSelector']},{app}" if "labelSelector" in params else app
            request.url = request.url.copy_with(params=params.remove("part").set("labelSelector", selector))
        return await self.inner.handle_async_request(request)


async def test_a_cache_with_a_query_counts_until_its_next_bookmark(
    autojump_clock: MockClock, api_server: APIServer
) -> None:
    async with open_client(api_server.config, http_transport=PartServer(api_server)) as client:
        api = client.api(ConfigMap, "default")
        options: dict[str, Any] = {"query": {"part": "web"}}
        async with with_selected_cache(api_server, client, **options) as delay_after:
            assert await delay_after(lambda: api.create(config_map("a", app="web"))) > 0.5
            assert await delay_after(lambda: api.delete("a")) > 0.5
        options |= {"label_selector": "tier=back", "breaks_watches": False}
        async with with_selected_cache(api_server, client, **options) as delay_after:
            assert 20 < await delay_after(lambda: api.create(config_map("b", tier="back", app="api"))) < 90
            assert await delay_after(lambda: api.create(config_map("c", tier="back", app="web"))) < 0.5
            assert await delay_after(lambda: api.create(config_map("d", tier="front", app="web"))) < 0.5
            assert await delay_after(lambda: api.delete("b")) < 0.5


async def test_an_object_that_a_query_excludes_is_not_gone(autojump_clock: MockClock, api_server: APIServer) -> None:
    """Only the server knows which objects the query selects, so nothing is known of one that is missing."""

    async def reconcile(request: Request) -> None:
        calls.append(request)
        if len(calls) == 1:
            await client.create(config_map("new", app="api"))

    calls: list[Request] = []
    async with open_client(api_server.config, http_transport=PartServer(api_server)) as client:
        factory = SharedInformerFactory(client, query={"part": "web"})
        factory.informer(ConfigMap)
        controller = Controller("own", reconcile)
        async with trio.open_nursery() as nursery:
            await nursery.start(factory.run)
            await nursery.start(controller.run)
            controller.add(WEB)
            await trio.sleep(200)
            nursery.cancel_scope.cancel()
    assert calls == [WEB]


async def test_a_cache_of_metadata_counts(autojump_clock: MockClock, api_server: APIServer, k8s_client: Client) -> None:
    def configure(factory: SharedInformerFactory) -> None:
        factory.informer(metadata_kind(ConfigMap))

    async with controlled(api_server, k8s_client, configure=configure) as setup:
        assert await setup.run_twice(create) > 0.5


@attrs.define(eq=False)
class LosingTransport(httpx.AsyncBaseTransport):
    """A connection that loses the responses to creates, and refuses some of the reads that follow."""

    inner: httpx.AsyncBaseTransport
    code: int
    refused: int

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        is_read = request.method == "GET" and request.url.params.get("watch") is None
        if is_read and (request.url.path.endswith("/new") or request.url.params.get("limit") == "1") and self.refused:
            self.refused -= 1
            await trio.lowlevel.checkpoint()
            return httpx.Response(self.code, request=request)
        response = await self.inner.handle_async_request(request)
        if request.method == "POST":
            await response.aclose()
            raise httpx.ReadError("lost")
        return response


@pytest.mark.parametrize("is_generated", [False, True])
@pytest.mark.parametrize(("code", "refused"), [(500, 0), (500, 2), (403, 1)])
async def test_a_write_without_a_response_is_looked_for(
    code: int, refused: int, is_generated: bool, autojump_clock: MockClock, api_server: APIServer
) -> None:
    async def create_without_response(setup: Setup) -> None:
        metadata = ObjectMeta(generate_name="new-") if is_generated else ObjectMeta(name="new")
        with suppress(ConnectionFailedError):
            await setup.client.api(ConfigMap, "default").create(ConfigMap(metadata=metadata))

    transport = LosingTransport(api_server.http_transport(), code, refused)
    async with (
        open_client(api_server.config, http_transport=transport) as client,
        controlled(api_server, client) as setup,
    ):
        delay = await setup.run_twice(create_without_response)
        assert transport.refused == 0
        if code == 403:  # the program may not read what it writes
            assert delay < 0.5
        else:
            assert delay > 0.5
            assert len(setup.seen[1]) == 1


async def test_a_request_goes_on_after_five_minutes(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with controlled(api_server, k8s_client) as setup:
        api_server.fail_next(1_000_000, verb="watch", resource="configmaps")
        api_server.fail_next(1_000_000, verb="list", resource="configmaps")
        api_server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        setup.work = create
        setup.controller.add(WEB)
        await trio.sleep(0.05)
        setup.controller.add(WEB)
        with caplog.at_level(logging.WARNING, "trioformer.controller"):
            await trio.sleep(400)
        first, second = (time for request, time in setup.began if request == WEB)
        assert second - first == pytest.approx(300, abs=1)
        assert "default/web" in caplog.text
        assert "configmaps" in caplog.text


async def test_a_cache_that_stops_delays_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> None:
    other = SharedInformerFactory(k8s_client)
    other.informer(ServiceAccount)
    async with controlled(api_server, k8s_client) as setup:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as running:
                await running.start(other.run)

                async def create_account(setup: Setup) -> None:
                    await setup.client.create(ServiceAccount(metadata=ObjectMeta(name="new", namespace="default")))

                for verb in ("list", "watch"):
                    api_server.fail_next(1_000, verb=verb, resource="serviceaccounts")
                api_server.disconnect_watches(kind=ServiceAccount)
                await trio.sleep(0.01)
                setup.work = create_account
                setup.controller.add(WEB)
                await trio.sleep(0.05)
                setup.controller.add(WEB)
                await trio.sleep(10)
                assert len(setup.began) == 1
                scope.cancel()
        await trio.sleep(0.1)
        assert len(setup.began) == 2


async def test_the_failures_of_a_request_are_still_counted(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def fail(setup: Setup) -> None:
        await create(setup)
        setup.work = partial(fail_again)
        raise ValueError("first")

    async def fail_again(setup: Setup) -> None:
        setup.work = None
        raise ValueError("second")

    dropped: list[str] = []

    async def on_error(request: Request, error: Exception, then: str) -> None:
        if then == "dropped":
            dropped.append(str(error))

    async with controlled(api_server, k8s_client, max_retries=1, on_error=on_error) as setup:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = fail
        setup.controller.add(WEB)
        await trio.sleep(100)
        assert dropped == ["second"]
        assert setup.seen == [set(), {"new"}]


async def test_an_older_list_ends_the_wait(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    before = api_server.snapshot()
    async with controlled(api_server, k8s_client) as setup:

        async def create_and_restore(setup: Setup) -> None:
            await create(setup)
            api_server.restore(before)

        setup.work = create_and_restore
        setup.break_watches()
        await trio.sleep(0.01)
        setup.controller.add(WEB)
        await trio.sleep(0.05)
        setup.controller.add(WEB)
        await trio.sleep(200)
        assert len(setup.began) == 2


async def test_an_object_that_is_removed_before_it_is_shown_is_reconciled(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """The list after the broken watch does not contain the object, so no event reports it."""
    async with controlled(api_server, k8s_client, journal=True) as setup:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = create
        setup.controller.add(WEB)
        await trio.sleep(0.05)
        api_server.delete(ConfigMap, "new")
        api_server.compact()
        await trio.sleep(100)
        assert len(setup.seen) == 2
        assert [cause.why for cause in setup.controller.journal(WEB)[-1].causes] == ["gone"]


async def test_nothing_is_remembered_when_the_caches_show_the_writes(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async with controlled(api_server, k8s_client) as setup:
        setup.work = create
        setup.controller.add(WEB)
        await trio.sleep(1)
        run: Any = setup.controller._run
        assert run.own_writes._unseen == run.own_writes._unclear == {}


async def test_a_write_of_a_thread_counts(api_server: APIServer, k8s_client: Client) -> None:
    async def create_in_thread(setup: Setup) -> None:
        await trio.to_thread.run_sync(lambda: trio.from_thread.run(create, setup))
        setup.controller.add(WEB)

    async with controlled(api_server, k8s_client) as setup:
        setup.break_watches(1)
        setup.work = create_in_thread
        setup.controller.add(WEB)
        with trio.fail_after(20):
            await setup.finished.wait()
        assert setup.seen == [set(), {"new"}]
        assert setup.controller.statistics().stale_sync_skips == {("", "configmaps"): 1}


async def test_a_poll_waits_too(autojump_clock: MockClock, api_server: APIServer, k8s_client: Client) -> None:
    seen: list[int] = []
    factory = SharedInformerFactory(k8s_client)
    informer = factory.informer(ConfigMap)

    async def reconcile(request: Request) -> RequeueAfter | None:
        seen.append(len(informer.lister.list()))
        if len(seen) > 3:
            return None
        await k8s_client.create(config_map(f"new-{len(seen)}"))
        return RequeueAfter(0.001)

    controller = Controller("own", reconcile)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        api_server.fail_next(3, verb="watch", resource="configmaps")
        api_server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        controller.add(WEB)
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert seen == [0, 1, 2, 3]
