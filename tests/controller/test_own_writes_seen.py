"""What a cache must show before the next call: each kind of write, and each reason not to wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.own_writes import WEB, Setup, config_map, controlled, create
from trioformer import Client, ConflictError, SharedInformerFactory, TrioformerError
from trioformer.client import open_client
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import Deployment, DeploymentSpec
from trioformer.models.autoscaling_v1 import HorizontalPodAutoscaler as HorizontalPodAutoscalerV1
from trioformer.models.autoscaling_v2 import (
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
)
from trioformer.models.core_v1 import ConfigMap, Container, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from trioformer.models.meta_v1 import LabelSelector
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import RequestRecord


def pod(name: str) -> Pod:
    spec = PodSpec(containers=[Container(name="main", image="main:1")], node_name="node-1")
    return Pod(metadata=ObjectMeta(name=name, namespace="default", labels={"app": "web"}), spec=spec)


def deployment() -> Deployment:
    labels = {"app": "web"}
    containers = [Container(name="main", image="main:1")]
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=containers))
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=labels), template=template)
    return Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=spec)


# --- the subject of a write ---


async def test_an_eviction_counts(autojump_clock: MockClock, api_server: APIServer, k8s_client: Client) -> None:
    async def evict(setup: Setup) -> None:
        await setup.client.api(Pod, "default").evict("old")

    def look(setup: Setup) -> bool:
        found = setup.factory.informer(Pod).lister.get("default/old")
        return found is not None and found.metadata.deletion_timestamp is None

    api_server.create(pod("old"))
    configure = partial(SharedInformerFactory.informer, kind=Pod)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        setup.look = look
        assert await setup.run_twice(evict, Pod) > 0.5
        assert setup.looks == [True, False]


@pytest.mark.parametrize("subresource", ["scale", "status"])
async def test_a_write_of_a_subresource_counts_for_its_parent(
    subresource: str, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def write(setup: Setup) -> None:
        api = setup.client.api(Deployment, "default")
        if subresource == "scale":
            await api.scale("web", 3)
        else:
            await api.patch("web", {"status": {"observedGeneration": 7}}, subresource="status")

    def look(setup: Setup) -> tuple[object, object]:
        found = setup.factory.informer(Deployment).lister.get("default/web")
        assert found is not None
        return found.spec.replicas, found.status.observed_generation

    api_server.create(deployment())
    configure = partial(SharedInformerFactory.informer, kind=Deployment)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        setup.look = look
        assert await setup.run_twice(write, Deployment) > 0.5
        assert setup.looks[1] == ((3, None) if subresource == "scale" else (1, 7))


async def test_a_cache_of_another_version_counts(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def create_autoscaler(setup: Setup) -> None:
        target = CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web")
        spec = HorizontalPodAutoscalerSpec(max_replicas=3, scale_target_ref=target)
        metadata = ObjectMeta(name="web", namespace="default")
        await setup.client.create(HorizontalPodAutoscaler(metadata=metadata, spec=spec))

    def look(setup: Setup) -> int:
        return len(setup.factory.informer(HorizontalPodAutoscalerV1).lister.list())

    configure = partial(SharedInformerFactory.informer, kind=HorizontalPodAutoscalerV1)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        setup.look = look
        assert await setup.run_twice(create_autoscaler, HorizontalPodAutoscalerV1) > 0.5
        assert setup.looks == [0, 1]


@pytest.mark.parametrize("way", ["discovered kind", "impersonated user"])
async def test_other_ways_to_the_same_server_count(
    way: str, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def write(setup: Setup) -> None:
        if way == "impersonated user":
            await setup.client.impersonating("anna").create(config_map("new"))
        else:
            kind = await setup.client.discover("v1", "ConfigMap")
            await setup.client.api(kind, "default").create(from_dict(kind, {"metadata": {"name": "new"}}))

    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(write) > 0.5
        assert setup.seen == [set(), {"new"}]


async def test_a_deletion_counts_although_the_cache_does_not_contain_the_object_yet(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """Another client has created it a moment ago, and a finalizer keeps it."""

    async def remove_new(setup: Setup) -> None:
        metadata = ObjectMeta(name="new", namespace="default", finalizers=["example.com/stay"])
        setup.server.create(ConfigMap(metadata=metadata))
        await setup.client.api(ConfigMap, "default").delete("new")

    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(remove_new) > 0.5
        assert setup.seen == [set(), {"new"}]


@pytest.mark.parametrize(("late", "other"), [("default", "kube-system"), ("kube-system", "default")])
async def test_each_namespace_of_a_cache_has_its_own_versions(
    late: str, other: str, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """Changes in another namespace of the cache do not end the wait, and writes in no namespace of it do not delay."""

    async def create_in_all(setup: Setup) -> None:
        await setup.client.create(ConfigMap(metadata=ObjectMeta(name="new", namespace=late)))
        for number in range(10):
            await trio.sleep(0.001)
            await setup.client.create(ConfigMap(metadata=ObjectMeta(name=f"new-{number}", namespace=other)))
        await setup.client.create(ConfigMap(metadata=ObjectMeta(name="new", namespace="kube-public")))

    def fail_if_late(record: RequestRecord) -> int | None:
        return 500 if record.namespace == late and trio.current_time() < 5 else None

    factory_of = partial(SharedInformerFactory, namespace=("default", "kube-system"))
    async with controlled(api_server, k8s_client, factory_of=factory_of) as setup:
        setup.look = lambda setup: Counter(each.namespace for each in setup.factory.informer(ConfigMap).lister.list())
        for verb in ("list", "watch"):
            api_server.fail_next(10**9, verb=verb, resource="configmaps", status=fail_if_late)
        api_server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        setup.work = create_in_all
        for _ in range(2):
            setup.controller.add(WEB)
            await trio.sleep(0.05)
        await trio.sleep(60)
        assert setup.looks == [{}, {other: 10, late: 1}]
        assert setup.controller.statistics().stale_sync_skips == {("", "configmaps"): 1}


async def test_the_deletion_of_a_collection_counts(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def remove_all(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").delete_collection(label_selector={"app": "web"})

    for name in ("a", "b", "c"):
        api_server.create(config_map(name, **{} if name == "c" else {"app": "web"}))
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(remove_all) > 0.5
        assert setup.seen == [{"a", "b", "c"}, {"c"}]


async def test_the_deletion_of_a_collection_without_a_response_is_looked_for(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def remove_all(setup: Setup) -> None:
        setup.server.fail_next(1, verb="deletecollection", resource="configmaps", status=504)
        with suppress(TrioformerError):
            await setup.client.api(ConfigMap, "default").delete_collection(everything=True)
        setup.server.delete(ConfigMap, "old")  # as if the server had continued

    api_server.create(config_map("old"))
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(remove_all) > 0.5
        assert setup.seen == [{"old"}, set()]


async def test_a_dry_run_of_a_deletion_counts_for_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def try_to_remove(setup: Setup) -> None:
        api = setup.client.api(ConfigMap, "default")
        await api.delete("old", dry_run=True)
        await api.delete_collection(label_selector={"app": "web"}, dry_run=True)

    api_server.create(config_map("old", app="web"))
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(try_to_remove) < 0.5


async def test_a_dry_run_of_an_eviction_counts_for_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def try_to_evict(setup: Setup) -> None:
        await setup.client.api(Pod, "default").evict("old", dry_run=True)

    api_server.create(pod("old"))
    configure = partial(SharedInformerFactory.informer, kind=Pod)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        assert await setup.run_twice(try_to_evict, Pod) < 0.5


async def test_a_response_without_an_object_counts_for_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """A token has no resourceVersion, which controller-runtime 0.25.0 took for an error."""

    async def create_token(setup: Setup) -> None:
        await setup.client.api(ServiceAccount, "default").create_token("default")

    api_server.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    configure = partial(SharedInformerFactory.informer, kind=ServiceAccount)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        assert await setup.run_twice(create_token, ServiceAccount) < 0.5
        assert setup.controller.statistics().failed == 0


async def test_versions_of_other_resources_do_not_end_the_wait(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def create_and_change_others(setup: Setup) -> None:
        await create(setup)
        for number in range(20):
            setup.server.create(ServiceAccount(metadata=ObjectMeta(name=f"a{number}", namespace="default")))

    configure = partial(SharedInformerFactory.informer, kind=ServiceAccount)
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        assert await setup.run_twice(create_and_change_others) > 0.5
        assert setup.seen == [set(), {"new"}]


# --- what a cache shows ---


def by_fault(obj: ConfigMap) -> list[str]:
    return [str(1 // (obj.data.get("fault") != "yes"))]


async def test_a_write_that_is_put_into_quarantine_is_seen(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def create_bad(setup: Setup) -> None:
        await setup.client.create(config_map("new").evolve(data={"fault": "yes"}))

    async def change_bad(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").patch("new", {"data": {"more": "yes"}})

    def configure(factory: SharedInformerFactory) -> None:
        factory.informer(ConfigMap, indexers={"fault": by_fault})

    async with controlled(api_server, k8s_client, configure=configure) as setup:
        assert 0.5 < await setup.run_twice(create_bad) < 100
        assert setup.factory.informer(ConfigMap).statistics().missing == 1
        setup.break_watches(1)
        setup.work = change_bad
        setup.controller.add(WEB)
        await trio.sleep(100)
        assert len(setup.seen) == 3  # the object is not lost, so the request is not added again


async def test_the_deletion_of_an_object_in_quarantine_is_seen(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """The cache keeps the previous state, which has no deletionTimestamp, while a finalizer keeps the object."""

    async def remove(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").delete("old")

    def configure(factory: SharedInformerFactory) -> None:
        factory.informer(ConfigMap, indexers={"fault": by_fault})

    metadata = ObjectMeta(name="old", namespace="default", finalizers=["example.com/stay"])
    api_server.create(ConfigMap(metadata=metadata))
    async with controlled(api_server, k8s_client, configure=configure) as setup:
        api_server.patch(ConfigMap, "old", {"data": {"fault": "yes"}})
        await trio.sleep(1)
        assert await setup.run_twice(remove) < 100


async def test_an_object_with_the_name_of_a_deleted_one_ends_the_wait(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """The deletion is never shown: the list after it contains the new object."""

    async def replace(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").delete("old")
        setup.server.create(config_map("old", app="other"))
        setup.server.compact()

    api_server.create(config_map("old"))
    async with controlled(api_server, k8s_client) as setup:
        setup.look = lambda setup: [each.metadata.labels for each in setup.factory.informer(ConfigMap).lister.list()]
        assert 0.5 < await setup.run_twice(replace) < 100
        assert setup.looks == [[{}], [{"app": "other"}]]


async def test_changes_by_others_during_the_wait_are_not_lost(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    """The Java Operator SDK 5.3 filtered the events of own writes, and with them changes that others made meanwhile."""

    async def change(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").patch("web", {"data": {"own": "1"}})
        setup.server.patch(ConfigMap, "web", {"data": {"foreign": "1"}})
        await setup.client.api(ConfigMap, "default").patch("web", {"data": {"own": "1"}})  # changes nothing

    api_server.create(config_map("web"))
    async with controlled(api_server, k8s_client) as setup:
        setup.look = lambda setup: [dict(each.data) for each in setup.factory.informer(ConfigMap).lister.list()]
        assert await setup.run_twice(change) > 0.5
        assert setup.looks == [[{}], [{"own": "1", "foreign": "1"}]]


async def test_a_cache_that_has_not_been_listed_counts(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> None:
    """A first list that began before the write may end after it, without the object."""

    async def create_account(setup: Setup) -> None:
        await setup.client.create(ServiceAccount(metadata=ObjectMeta(name="new", namespace="default")))

    other = SharedInformerFactory(k8s_client)
    informer = other.informer(ServiceAccount)
    api_server.fail_next(3, verb="list", resource="serviceaccounts")
    async with controlled(api_server, k8s_client) as setup:
        nursery.start_soon(other.run)
        await trio.sleep(0.01)
        setup.look = lambda _: [each.name for each in informer.lister.list()] if informer.has_synced else None
        assert await setup.run_twice(create_account) > 0.5
        assert setup.looks == [None, ["new"]]


# --- the outcome of a write ---


@attrs.define(eq=False)
class LateTransport(httpx.AsyncBaseTransport):
    """A connection that delivers the responses to creates late."""

    inner: httpx.AsyncBaseTransport
    delay: float
    body: bytes | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.inner.handle_async_request(request)
        if request.method == "POST":
            content = await response.aread()
            await trio.sleep(self.delay)
            return httpx.Response(response.status_code, content=self.body or content, headers=response.headers)
        return response


@asynccontextmanager
async def controlled_late(server: APIServer, delay: float, body: bytes | None = None) -> AsyncIterator[Setup]:
    transport = LateTransport(server.http_transport(), delay, body)
    async with open_client(server.config, http_transport=transport) as client, controlled(server, client) as setup:
        yield setup


@pytest.mark.parametrize("is_generated", [False, True])
async def test_a_cancelled_write_is_looked_for(
    is_generated: bool, autojump_clock: MockClock, api_server: APIServer
) -> None:
    async def create_and_give_up(setup: Setup) -> None:
        metadata = ObjectMeta(generate_name="new-") if is_generated else ObjectMeta(name="new")
        with trio.move_on_after(0.01):
            await setup.client.api(ConfigMap, "default").create(ConfigMap(metadata=metadata))

    async with controlled_late(api_server, 1) as setup:
        assert await setup.run_twice(create_and_give_up) > 0.5
        assert [len(names) for names in setup.seen] == [0, 1]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_later_run_sees_the_writes_of_an_earlier_one(
    is_cancelled: bool, autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def create_slowly(setup: Setup) -> None:
        await create(setup)
        await trio.sleep(1_000 if is_cancelled else 0.05)

    async with controlled(api_server, k8s_client) as setup, trio.open_nursery() as nursery:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = create_slowly
        setup.controller.add(WEB)
        await trio.sleep(0.01)
        with trio.move_on_after(0.1):
            await setup.controller.stop()
        await wait_all_tasks_blocked()
        await nursery.start(setup.controller.run)
        setup.controller.add(WEB)
        await trio.sleep(60)
        assert setup.seen == [set(), {"new"}]
        await setup.controller.stop()


async def test_a_write_that_was_cancelled_before_the_server_saw_it_delays_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def create_and_give_up(setup: Setup) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await create(setup)

    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(create_and_give_up) < 0.5
        assert setup.seen == [set(), set()]


async def test_an_object_that_came_and_went_before_the_response_delays_nothing(
    autojump_clock: MockClock, api_server: APIServer
) -> None:
    """controller-runtime registers deletions before the request for this; the Java Operator SDK kept such objects."""

    async def come_and_go(setup: Setup) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, setup)
            await trio.sleep(0.3)
            setup.server.delete(ConfigMap, "new")
        setup.controller.add(WEB)

    async with controlled_late(api_server, 1) as setup:
        setup.controller.add(WEB)
        setup.work = come_and_go
        await trio.sleep(1.1)
        assert setup.seen == [set(), set()]
        assert setup.controller.statistics().stale_sync_skips == {}


@pytest.mark.parametrize("version", ["opaque", "9" * 5_000, ""])
async def test_a_version_that_is_no_number_delays_nothing(
    version: str, autojump_clock: MockClock, api_server: APIServer
) -> None:
    metadata = f'{{"name": "new", "namespace": "default", "uid": "u", "resourceVersion": "{version}"}}'
    body = f'{{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {metadata}}}'
    async with controlled_late(api_server, 0, body.encode()) as setup:
        assert await setup.run_twice(create) < 0.5
        assert setup.controller.statistics().failed == 0


async def test_a_refused_write_delays_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def conflict(setup: Setup) -> None:
        stale = config_map("old").evolve(metadata=ObjectMeta(name="old", namespace="default", resource_version="1"))
        with suppress(ConflictError):
            await setup.client.api(ConfigMap, "default").replace(stale)

    api_server.create(config_map("old"))
    async with controlled(api_server, k8s_client) as setup:
        assert await setup.run_twice(conflict) < 0.5


async def test_the_writes_of_tasks_that_are_left_behind_belong_to_no_request(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> None:
    """Neither to the request whose call started them, nor to the next call for it, which is running by then."""

    async def leave_behind(setup: Setup) -> None:
        async def late() -> None:
            await trio.sleep(0.02)
            await create(setup)

        trio.lowlevel.spawn_system_task(late, context=copy_context())  # of this call
        setup.controller.add(WEB)
        setup.work = wait

    async def wait(setup: Setup) -> None:
        await trio.sleep(0.2)
        setup.controller.add(WEB)

    async with controlled(api_server, k8s_client) as setup:
        setup.break_watches()
        await trio.sleep(0.01)
        setup.work = leave_behind
        setup.controller.add(WEB)
        await trio.sleep(0.4)
        assert setup.seen == [set(), set(), set()]
        assert api_server.get(ConfigMap, "new") is not None
