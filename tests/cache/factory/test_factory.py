"""The factory: shared informers, when they start and stop, waiting for their sync, failures and statistics."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import Recorder
from trioformer import Client, ForbiddenError, ObjectMeta, SharedInformerFactory, field_index
from trioformer.cache import ReflectorOptions, ResourceEventHandler, SharedInformer
from trioformer.cache.factory._requests import InformerKey
from trioformer.errors import CacheSyncError, IndexerError, SelectorError
from trioformer.models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    PartialObjectMetadata,
    metadata_kind,
)
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, Pod, Secret
from trioformer.testing import APIServer

K = TypeVar("K", bound=KubernetesObject)


def pod(name: str, *, namespace: str = "default", **labels: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels))


def namespaces(server: APIServer, *names: str) -> None:
    for name in names:
        server.create(Namespace(metadata=ObjectMeta(name=name)))


def quiet(
    client: Client, *, grace_period: float = 30, retry_forever: bool = False, **options: object
) -> SharedInformerFactory:
    """Return a factory that does not log errors that it retries, and does not use watch-lists."""
    reflector = ReflectorOptions(
        watch_list=False,
        watch_error_handler=lambda error: None,
        grace_period=grace_period,
        retry_forever=retry_forever,
    )
    return SharedInformerFactory(client, options=reflector, **options)  # type: ignore[arg-type]  # options by name


def count_requests(server: APIServer, verb: str, resource: str) -> int:
    """Return how often a resource was listed or watched."""
    return sum(record.verb == verb and record.resource == resource for record in server.requests)


def tasks() -> int:
    """Return the number of all tasks, including those of the server."""
    return trio.lowlevel.current_statistics().tasks_living


def task_names(nursery: trio.Nursery) -> list[str]:
    """Return the sorted names of all tasks in a nursery, and their descendants."""
    names: list[str] = []
    for task in nursery.child_tasks:
        names.append(task.name)
        for inner in task.child_nurseries:
            names += task_names(inner)
    return sorted(names)


@asynccontextmanager
async def run(factory: SharedInformerFactory) -> AsyncIterator[trio.Nursery]:
    """Run a factory for the duration of a block, in the nursery that is yielded."""
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        yield nursery
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class Busy(ResourceEventHandler[Pod]):
    """A handler whose calls return after ``returned`` is set."""

    returned: trio.Event = attrs.field(factory=trio.Event)
    called: trio.Event = attrs.field(factory=trio.Event)

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        self.called.set()
        await self.returned.wait()


# --- what is shared ---


async def test_requests_with_the_same_meaning_share_an_informer(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    first = factory.informer(Pod, label_selector="b in (y, x),a=1", field_selector="spec.nodeName=n,metadata.name!=x")
    assert first is factory.informer(
        Pod,
        label_selector=LabelSelector.parse("a==1, b in (x,y), a=1"),
        field_selector=FieldSelector.parse("metadata.name!=x,spec.nodeName==n,metadata.name!=x"),
    )
    assert factory.informer(Pod, label_selector={"a": "1"}) is factory.informer(Pod, label_selector="a = 1")
    assert factory.informer(Pod, label_selector="a!=1,a!=2") is factory.informer(Pod, label_selector="a!=2,a!=1")
    assert factory.informer(Pod, namespace="b") is factory.informer(Pod, namespace=["b"])
    assert factory.informer(Pod, namespace=["b", "a", "b"]) is factory.informer(Pod, namespace=("a", "b"))
    assert factory.informer(Pod) is factory.informer(Pod, namespace=None, label_selector=None, field_selector="")
    assert len(factory.informers) == 6


async def test_each_selection_is_listed_and_watched_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("web", app="web"))
    api_server.create(pod("db", app="db"))
    namespaces(api_server, "far")
    api_server.create(pod("far", namespace="far", app="web"))
    factory = SharedInformerFactory(client)
    everything = factory.informer(Pod)
    web = factory.informer(Pod, label_selector="app=web")
    far = factory.informer(Pod, namespace="far")
    named = factory.informer(Pod, field_selector={"metadata.name": "db"})
    async with run(factory):
        await trio.testing.wait_all_tasks_blocked()
        assert api_server.statistics().open_watches == 4
        assert [sorted(each.name for each in one.lister) for one in (everything, web, far, named)] == [
            ["db", "far", "web"],
            ["far", "web"],
            ["far"],
            ["db"],
        ]


async def test_several_namespaces_are_one_informer(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    namespaces(api_server, *"abc")
    for namespace in "abc":
        api_server.create(pod("first", namespace=namespace))
    factory = SharedInformerFactory(client, namespace=["b", "a"])
    informer = factory.informer(Pod)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with run(factory):
        await trio.testing.wait_all_tasks_blocked()
        assert api_server.statistics().open_watches == 2
        api_server.create(pod("second", namespace="a"))
        api_server.create(pod("third", namespace="c"))
        await trio.sleep(1)
        assert sorted(f"{each.namespace}/{each.name}" for each in informer.lister) == ["a/first", "a/second", "b/first"]
    assert [key.namespaces for key in factory.informers] == [("a", "b")]
    assert len(recorder.seen) == 3


async def test_a_request_can_override_the_restrictions_of_the_factory(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    factory = SharedInformerFactory(
        client, namespace="here", label_selector="app=web", field_selector="metadata.name=x"
    )
    factory.informer(Pod)
    factory.informer(Pod, namespace=None, label_selector=None, field_selector=None)
    factory.informer(Pod, namespace="there", label_selector="app=db")
    assert list(factory.informers) == [
        InformerKey(Pod, ("here",), "app=web", "metadata.name=x"),
        InformerKey(Pod),
        InformerKey(Pod, ("there",), "app=db", "metadata.name=x"),
    ]


async def test_requests_with_the_same_query_share_an_informer(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client, query={"b": "2", "a": "1"})
    async with run(factory):
        first = factory.informer(Pod)
        assert factory.informer(Pod, query={"a": "1", "b": "2"}) is first
        other = factory.informer(Pod, query={"a": "1", "b": "3"})
        plain = factory.informer(Pod, query=None)
        async with factory.open_informer(Pod, query={}) as opened:
            assert opened is plain
        for each in (first, other, plain):
            await each.wait_until_synced()
    keys = [InformerKey.of(Pod, query=query) for query in ({"b": "2", "a": "1"}, {"a": "1", "b": "3"}, None)]
    assert list(factory.informers) == keys
    assert [str(key) for key in keys] == ["Pod where a=1 and b=2", "Pod where a=1 and b=3", "Pod"]
    listed = [record.query for record in api_server.requests if record.verb == "list"]
    assert sorted((query.get("a", ""), query.get("b", "")) for query in listed) == [("", ""), ("1", "2"), ("1", "3")]


async def test_a_cluster_scoped_kind_ignores_the_factorys_namespace_and_rejects_its_own(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    factory = SharedInformerFactory(client, namespace="default")
    assert factory.informer(Node) is factory.informer(Node, namespace=None)
    with pytest.raises(ValueError, match="nodes are cluster-scoped and cannot be restricted to a, default"):
        factory.informer(Node, namespace=["default", "a"])
    assert list(factory.informers) == [InformerKey(Node)]


@pytest.mark.parametrize("namespace", ["", [], ["a", ""]])
async def test_an_empty_namespace_is_rejected(
    autojump_clock: trio.testing.MockClock, client: Client, namespace: str | list[str]
) -> None:
    with pytest.raises(ValueError, match="a namespace or a sequence of namespaces must not be empty; use None for all"):
        SharedInformerFactory(client, namespace=namespace)
    with pytest.raises(ValueError, match="a namespace or a sequence of namespaces must not be empty"):
        SharedInformerFactory(client).informer(Pod, namespace=namespace)


async def test_an_invalid_request_is_rejected_immediately(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    with pytest.raises(SelectorError):
        SharedInformerFactory(client, label_selector="a in b")
    factory = SharedInformerFactory(client)
    with pytest.raises(SelectorError):
        factory.informer(Pod, field_selector="metadata.name")
    with pytest.raises(TypeError, match="ObjectMeta is not a kind"):
        factory.informer(ObjectMeta)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]  # invalid on purpose
    assert factory.informers == {}


async def test_a_conflicting_request_raises_an_error_with_the_current_option(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    def smaller(obj: Pod) -> Pod:
        return obj

    factory = SharedInformerFactory(client, resync_period=60)
    first = factory.informer(Pod, label_selector="app=web", transform=smaller)
    assert factory.informer(Pod, label_selector="app=web", resync_period=60, transform=smaller) is first
    assert factory.informer(Pod, label_selector="app=web") is first
    with pytest.raises(ValueError, match="the informer of Pod where app=web is shared and has a resync period of 60 s"):
        factory.informer(Pod, label_selector="app=web", resync_period=30)
    with pytest.raises(ValueError, match=r"is shared and has the transform \S+smaller, not none; omit this option"):
        factory.informer(Pod, label_selector="app=web", transform=None)
    factory.informer(Pod)
    with pytest.raises(ValueError, match=r"the informer of Pod is shared and has no transform, not \S+smaller"):
        factory.informer(Pod, transform=smaller)


async def test_indexers_of_further_requests_are_added_and_shared_ones_are_no_conflict(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    by_node = field_index("spec.node_name")
    factory = SharedInformerFactory(client)
    factory.informer(Pod, indexers={"node": by_node})
    both = {"node": by_node, "phase": field_index("status.phase")}
    informer = factory.informer(Pod, indexers=both)
    assert factory.informer(Pod, indexers=both) is informer
    with pytest.raises(IndexerError, match="index 'node' already exists"):
        factory.informer(Pod, indexers={"node": field_index("spec.hostname"), "name": lambda each: [each.name]})
    by_name = {"name": field_index("metadata.name")}
    informer.add_indexers(both)
    informer.add_indexers(by_name)
    assert factory.informer(Pod, indexers={"name": field_index("metadata.name")}) is informer
    async with run(factory):
        assert informer.lister.by_index("node", "a") == informer.lister.by_index("phase", "b") == ()
        factory.informer(Pod, indexers={"late": lambda each: [each.name]})
        assert informer.lister.by_index("late", "a") == ()


async def test_the_factorys_transform_applies_unless_a_request_overrides_it(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    def without_labels(obj: K) -> K:
        return obj.evolve(metadata=obj.metadata.evolve(labels={}))

    def named(obj: Pod) -> Pod:
        return obj.evolve(metadata=obj.metadata.evolve(labels={"own": "yes"}))

    api_server.create(pod("a", app="web"))
    api_server.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default", labels={"app": "web"})))
    factory = SharedInformerFactory(client, transform=without_labels)
    pods, maps = factory.informer(Pod), factory.informer(ConfigMap)
    own = factory.informer(Pod, label_selector="app", transform=named)
    whole = factory.informer(Pod, label_selector="app=web", transform=None)
    async with run(factory):
        labels = [dict(next(iter(one.lister)).metadata.labels) for one in (pods, maps, own, whole)]
    assert labels == [{}, {}, {"own": "yes"}, {"app": "web"}]


async def test_the_resync_period_is_the_requests_then_the_kinds_then_the_factorys(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    factory = SharedInformerFactory(client, resync_period={Pod: 30, Node: 0, None: 60})
    periods = [
        factory.informer(kind, label_selector=selector, resync_period=period)
        .add_event_handler(ResourceEventHandler())
        .resync_period
        for kind, selector, period in (
            (ConfigMap, "", None),
            (Pod, "", None),
            (Node, "", None),
            (Pod, "a=1", 10.0),
            (Node, "a=1", 20.0),
        )
    ]
    assert periods == [60, 30, 0, 10, 20]
    others = SharedInformerFactory(client, resync_period={Pod: 30}).informer(ConfigMap)
    assert others.add_event_handler(ResourceEventHandler()).resync_period == 0
    small = metadata_kind(Pod)
    for given in ({Pod: 30, small: 60}, {small: 60, Pod: 30}, {small: 60, None: 30}):
        factory = SharedInformerFactory(client, resync_period=given)
        informers = factory.informer(Pod), factory.informer(small)
        assert [each.add_event_handler(ResourceEventHandler()).resync_period for each in informers] == [30, 60]
    wrong: Any = {"pods": 30}
    with pytest.raises(TypeError, match="kind"):
        SharedInformerFactory(client, resync_period=wrong)


async def test_the_reflector_options_of_a_factory_apply_to_its_informers(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1_000, resource="pods", status=403)
    errors: list[Exception] = []
    options = ReflectorOptions(grace_period=5, watch_list=False, watch_error_handler=errors.append)
    factory = SharedInformerFactory(client, options=options)
    factory.informer(Pod)
    with pytest.RaisesGroup(pytest.RaisesGroup(ForbiddenError)):
        await factory.run()
    assert trio.current_time() == pytest.approx(5, abs=0.01)
    assert errors
    assert count_requests(api_server, "watch", "pods") == 0, "a watch-list would have been a watch"


async def test_a_metadata_informer_is_separate_and_holds_only_metadata(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a", app="web"))
    factory = SharedInformerFactory(client, namespace="default", resync_period={Pod: 30})
    whole, small = factory.informer(Pod), factory.informer(metadata_kind(Pod))
    assert factory.informer(metadata_kind(Pod)) is small
    assert small.add_event_handler(ResourceEventHandler()).resync_period == 30
    assert [(str(key), key.metadata_only) for key in factory.informers] == [
        ("Pod in namespace default", False),
        ("metadata of Pod in namespace default", True),
    ]
    async with run(factory):
        found = small.lister["default/a"]
        assert isinstance(found, PartialObjectMetadata)
        assert found.metadata.labels == {"app": "web"}
        await trio.testing.wait_all_tasks_blocked()
        assert api_server.statistics().open_watches == 2
        async with factory.open_informer(metadata_kind(Node)) as nodes:
            await nodes.wait_until_synced()
            assert list(nodes.lister) == []
        assert whole.has_synced


# --- one informer for the duration of a block ---


async def test_the_end_of_the_last_block_stops_this_informer_only(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    other = factory.informer(Node)
    async with run(factory) as nursery:
        await trio.testing.wait_all_tasks_blocked()
        before = task_names(nursery)
        async with factory.open_informer(Pod) as first:
            async with factory.open_informer(Pod) as second:
                assert second is first
                await first.wait_until_synced()
                await trio.testing.wait_all_tasks_blocked()
                assert api_server.statistics().open_watches == 2
            assert first.has_synced
            assert len(task_names(nursery)) > len(before)
            assert count_requests(api_server, "watch", "pods") == 1
        assert task_names(nursery) == before, "no checkpoint has passed"
        assert str(first.state) == "stopped"
        assert not first.has_synced
        assert list(factory.informers) == [InformerKey(Node)]
        await trio.testing.wait_all_tasks_blocked()
        assert api_server.statistics().open_watches == 1
        assert other.has_synced
        assert count_requests(api_server, "list", "nodes") + count_requests(api_server, "watch", "nodes") <= 2
        assert factory.is_healthy


async def test_an_informer_that_was_requested_without_a_block_is_kept(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    async with run(factory):
        async with factory.open_informer(Pod) as informer:
            assert factory.informer(Pod) is informer
        await informer.wait_until_synced()
        assert informer.has_synced
        async with factory.open_informer(Pod):
            pass
        assert informer.has_synced
        await trio.testing.wait_all_tasks_blocked()
        assert count_requests(api_server, "watch", "pods") == 1


async def test_a_cancelled_block_ends_like_any_other(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    async with run(factory) as nursery:
        await trio.testing.wait_all_tasks_blocked()
        before = task_names(nursery)
        async with factory.open_informer(Pod) as informer:
            with trio.CancelScope() as scope:
                async with factory.open_informer(Pod):
                    scope.cancel()
                    await trio.sleep_forever()
            await informer.wait_until_synced()
            assert informer.has_synced
        with trio.CancelScope() as scope:
            async with factory.open_informer(Pod) as informer:
                await informer.wait_until_synced()
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert task_names(nursery) == before, "no checkpoint has passed"
        assert factory.informers == {}


async def test_leaving_waits_for_a_handlers_cleanup_and_new_requests_do_not(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    class Slow(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(100)

    api_server.create(pod("a"))
    factory = SharedInformerFactory(client)
    synced_at: list[float] = []

    async def request_again() -> None:
        await trio.sleep(2)
        async with factory.open_informer(Pod) as new:
            await new.wait_until_synced()
            synced_at.append(trio.current_time())

    async with run(factory), trio.open_nursery() as nursery:
        nursery.start_soon(request_again)
        with trio.move_on_after(1):
            async with factory.open_informer(Pod) as informer:
                informer.add_event_handler(Slow())
                await trio.sleep_forever()
        assert trio.current_time() == pytest.approx(101, abs=0.1)
        assert synced_at == [pytest.approx(2, abs=0.1)]


async def test_handlers_that_use_informers_never_wait_for_themselves_or_each_other(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """Both are cancelled at the same time, and each is the last user of the other's informer."""
    factory = SharedInformerFactory(client)

    @attrs.define(eq=False)
    class Using(ResourceEventHandler[KubernetesObject]):
        other: type[KubernetesObject]
        entered: trio.Event = attrs.field(factory=trio.Event)

        async def on_add(self, obj: KubernetesObject, *, is_initial: bool) -> None:
            async with factory.open_informer(self.other):
                self.entered.set()
                await trio.sleep_forever()

    api_server.create(pod("a"))
    api_server.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
    of_pods, of_maps, of_itself = Using(ConfigMap), Using(Pod), Using(Pod)
    with trio.fail_after(60):
        async with run(factory):
            async with factory.open_informer(Pod) as pods, factory.open_informer(ConfigMap) as maps:
                pods.add_event_handler(of_pods)
                maps.add_event_handler(of_maps)
                await of_pods.entered.wait()
                await of_maps.entered.wait()
            await trio.sleep(1)
            assert pods.has_synced, "a handler of the other uses it"
        async with run(factory := SharedInformerFactory(client)):
            async with factory.open_informer(Pod) as pods:
                pods.add_event_handler(of_itself)
                await of_itself.entered.wait()
            await trio.sleep(1)
            assert pods.has_synced, "its own handler uses it"
    assert str(pods.state) == "stopped"


async def test_a_stopped_factory_returns_existing_informers_and_starts_none(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    async with run(factory):
        pass
    async with factory.open_informer(Pod) as again:
        assert again is informer
    with pytest.raises(
        RuntimeError, match="cannot start an informer of ConfigMap: this factory has stopped; create a new"
    ):
        async with factory.open_informer(ConfigMap):
            pytest.fail("the block must not begin")
    assert not factory.has_synced
    assert not factory.is_healthy
    assert factory.problems() == {InformerKey(Pod): "stopped"}


async def test_an_informer_requested_while_the_factory_ends_is_stopped_too(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    class Requesting(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            try:
                await trio.sleep_forever()
            finally:
                requested.append(factory.informer(ConfigMap))

    requested: list[SharedInformer[ConfigMap]] = []
    api_server.create(pod("a"))
    factory = SharedInformerFactory(client)
    factory.informer(Pod).add_event_handler(Requesting())
    async with run(factory):
        await trio.sleep(1)
    (informer,) = requested
    with pytest.raises(trio.ClosedResourceError):
        await informer.wait_until_synced()
    assert count_requests(api_server, "list", "configmaps") + count_requests(api_server, "watch", "configmaps") == 0


# --- waiting ---


async def test_waiting_for_caches_ends_when_all_have_synced(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """client-go: TestWaitFor."""
    api_server.fail_next(2, resource="configmaps", status=500)
    factory = quiet(client)
    maps = factory.informer(ConfigMap)
    factory.informer(Pod)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        await factory.wait_for_cache_sync(deadline=60)
        assert factory.has_synced
        assert maps.has_synced
        assert 0 < trio.current_time() < 10
        with trio.testing.assert_checkpoints():
            await factory.wait_for_cache_sync(deadline=-math.inf)
        late = factory.informer(Secret)
        await factory.wait_for_cache_sync()
        assert late.has_synced
        nursery.cancel_scope.cancel()


async def test_the_error_at_the_deadline_names_each_late_cache_and_handler_and_why(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """client-go: TestWaitFor, TestSyncResult."""
    api_server.create(pod("a"))
    api_server.fail_next(1_000, resource="configmaps", status=503)
    factory = quiet(client, retry_forever=True)
    factory.informer(ConfigMap, namespace="x", label_selector="app=web")
    factory.informer(Node)
    pods = factory.informer(Pod)
    busy, idle = pods.add_event_handler(Busy(), name="busy"), pods.add_event_handler(Recorder())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        with pytest.raises(CacheSyncError) as caught:
            await factory.wait_for_cache_sync(busy, idle, deadline=trio.current_time() + 20)
        assert trio.current_time() == pytest.approx(20)
        maps, handler = caught.value.not_synced
        assert (maps.name, maps.phase, maps.since) == ("ConfigMap in namespace x where app=web", "backing off", 0)
        assert "503" in str(maps.error)
        assert (handler.name, handler.phase, handler.error) == ("handler busy of informer Pod", "in a call", None)
        assert handler.since == pytest.approx(0, abs=0.1)
        assert str(caught.value).startswith(
            "not synced: ConfigMap in namespace x where app=web: backing off after list configmaps in namespace x: "
        )
        assert str(caught.value).endswith(", for 20 s; handler busy of informer Pod: in a call, for 20 s")
        assert "Node" not in str(caught.value)
        assert "Recorder" not in str(caught.value)
        nursery.cancel_scope.cancel()


async def test_an_informer_that_fails_ends_the_wait_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1_000, resource="nodes", status=403)
    api_server.fail_next(1_000, resource="pods", status=500)
    factory = quiet(client, supervise=True, grace_period=7)
    factory.informer(Pod)
    factory.informer(Node)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        with pytest.raises(CacheSyncError) as caught:
            await factory.wait_for_cache_sync(deadline=1_000)
        assert trio.current_time() == pytest.approx(7, abs=0.01)
        pods, nodes = caught.value.not_synced
        assert (pods.name, nodes.name, nodes.phase) == ("Pod", "Node", "failed")
        assert isinstance(nodes.error, ForbiddenError)
        nursery.cancel_scope.cancel()


async def test_a_handler_that_is_removed_ends_the_wait(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a"))
    factory = SharedInformerFactory(client)
    registration = factory.informer(Pod).add_event_handler(Busy())
    async with run(factory), trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(CacheSyncError, match=r"^not synced: handler Busy of informer Pod: removed, for \d s$"):
                await factory.wait_for_cache_sync(registration)

        nursery.start_soon(wait)
        await trio.sleep(1)
        registration.remove()
        await trio.testing.wait_all_tasks_blocked()
        assert not nursery.child_tasks


async def test_an_informer_that_is_no_longer_in_use_is_not_waited_for(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1_000, resource="pods", status=500)
    factory = quiet(client)
    factory.informer(Node)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        async with factory.open_informer(Pod):
            nursery.start_soon(factory.wait_for_cache_sync)
            await trio.sleep(1)
            assert len(nursery.child_tasks) == 2
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("in_a_nursery", [False, True])
async def test_a_handler_cannot_wait_for_caches_inside_a_call(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, in_a_nursery: bool
) -> None:
    factory = SharedInformerFactory(client)
    errors: list[BaseException] = []

    async def wait() -> None:
        with pytest.raises(
            RuntimeError, match="a handler for Pod must not wait for caches while it is being called"
        ) as found:
            await factory.wait_for_cache_sync()
        errors.append(found.value)

    class Waiting(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            if in_a_nursery:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(wait)
            else:
                await wait()

    api_server.create(pod("a"))
    registration = factory.informer(Pod).add_event_handler(Waiting())
    async with run(factory):
        await factory.wait_for_cache_sync(registration)
    assert len(errors) == 1


async def test_a_task_that_a_handler_starts_in_another_nursery_may_wait_for_caches(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """It inherits the handler's context, but the call does not wait for it."""
    factory = SharedInformerFactory(client)
    api_server.create(pod("a"))
    async with trio.open_nursery() as nursery:

        class Starting(ResourceEventHandler[Pod]):
            async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
                nursery.start_soon(factory.wait_for_cache_sync)

        registration = factory.informer(Pod).add_event_handler(Starting())
        await nursery.start(factory.run)
        await registration.wait_until_synced()
        await trio.sleep(1)
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()


async def test_handlers_added_while_the_factory_starts_miss_nothing(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """client-go: TestSharedInformerInitializationRace."""
    for name in "abc":
        api_server.create(pod(name))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    recorders: list[Recorder] = []

    async def join(nursery: trio.Nursery) -> None:
        while not informer.has_synced:
            recorders.append(Recorder())
            registration = informer.add_event_handler(recorders[-1])
            nursery.start_soon(registration.wait_until_synced)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        async with trio.open_nursery() as waiting:
            await join(waiting)
        assert len(recorders) > 5
        assert {tuple(recorder.seen) for recorder in recorders} == {tuple(recorders[0].seen)}
        assert len(recorders[0].seen) == 3
        nursery.cancel_scope.cancel()


async def test_a_late_handler_is_waited_for_until_its_calls_have_returned(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    """client-go: TestAddWhileActive."""
    api_server.create(pod("a"))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    early = informer.add_event_handler(Recorder())
    assert not early.has_synced
    async with run(factory):
        await factory.wait_for_cache_sync(early, deadline=1)
        handler = Busy()
        late = informer.add_event_handler(handler)
        await handler.called.wait()
        assert not late.has_synced
        with pytest.raises(CacheSyncError, match="not synced: handler Busy of informer Pod: in a call, for 5 s"):
            await factory.wait_for_cache_sync(early, late, deadline=trio.current_time() + 5)
        handler.returned.set()
        await factory.wait_for_cache_sync(early, late)
        assert late.has_synced


# --- failures ---


async def test_a_supervised_informer_that_fails_ends_no_other(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.fail_next(1_000, resource="secrets", status=403)
    factory = quiet(client, supervise=True)
    pods = factory.informer(Pod)
    secrets = factory.informer(Secret, namespace="x")
    with caplog.at_level(logging.ERROR, "trioformer.cache"):
        async with run(factory):
            assert trio.current_time() == pytest.approx(30, abs=0.01), (
                "it has started when every informer has synced or failed"
            )
            key = InformerKey(Secret, ("x",))
            (record,) = caplog.records
            assert record.getMessage().startswith("the informer of Secret in namespace x failed: ForbiddenError: ")
            assert record.exc_info is not None
            assert list(factory.failures) == [key]
            assert pytest.RaisesGroup(ForbiddenError).matches(factory.failures[key])
            assert secrets.state.phase == "failed"
            assert not secrets.has_synced
            assert not factory.has_synced
            assert not factory.is_healthy
            assert list(factory.problems()) == [key]
            assert factory.problems()[key].startswith("failed after list secrets in namespace x: forbidden")
            assert factory.informer(Secret, namespace="x") is secrets
            await trio.sleep(1_000)
            api_server.create(pod("a"))
            await trio.sleep(1)
            assert "default/a" in pods.lister
            assert pods.statistics().reflector.lists == 1
    assert len(caplog.records) == 1


async def test_an_exception_of_a_cancelled_supervised_handler_does_not_leave_run(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ZeroDivisionError

    api_server.create(pod("a"))
    factory = SharedInformerFactory(client, supervise=True)
    factory.informer(Pod).add_event_handler(Bad())
    with trio.move_on_after(5) as scope:
        await factory.run()
    assert scope.cancelled_caught
    assert list(factory.failures) == [InformerKey(Pod)]
    assert "ZeroDivisionError" in caplog.text
    factory = SharedInformerFactory(client)
    factory.informer(Pod).add_event_handler(Bad())
    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True), trio.move_on_after(5):
        await factory.run()


async def test_a_failure_before_the_first_sync_is_raised_from_nursery_start(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1_000, resource="nodes", status=403)
    factory = quiet(client)
    factory.informer(Pod)
    factory.informer(Node)
    with pytest.RaisesGroup(ForbiddenError, flatten_subgroups=True):
        async with run(factory):
            pytest.fail("the factory has not started")


async def test_a_block_that_begins_after_a_failure_gets_a_new_informer(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1, resource="pods", status=403)
    factory = quiet(client, supervise=True, grace_period=0)
    async with run(factory), factory.open_informer(Pod) as first:
        with pytest.raises(trio.ClosedResourceError):
            await first.wait_until_synced()
        await trio.testing.wait_all_tasks_blocked()
        assert len(factory.failures) == 1
        async with factory.open_informer(Pod) as second:
            await second.wait_until_synced()
            assert factory.failures == {}
        assert factory.informers == {}


async def test_the_users_of_a_failed_informer_do_not_stop_the_new_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(1, resource="pods", status=403)
    factory = quiet(client, supervise=True, grace_period=0)
    async with run(factory):
        async with factory.open_informer(Pod):
            await trio.sleep(1)
            assert len(factory.failures) == 1
            new = factory.informer(Pod)
            await new.wait_until_synced()
        assert factory.informers == {InformerKey(Pod): new}
        assert new.has_synced


# --- state and statistics ---


async def test_a_factory_reports_its_informers_and_their_state(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a"))
    objects = 1 + len(api_server.list(Namespace))
    factory = SharedInformerFactory(client)
    assert repr(factory) == "<SharedInformerFactory of no informers>"
    assert not factory.has_synced, "it is not running"
    assert not factory.is_healthy
    factory.informer(Pod, namespace=["b", "default"], label_selector="!x", field_selector="metadata.name!=y")
    factory.informer(Namespace)
    name = "Pod in namespaces b, default where !x and metadata.name!=y"
    assert repr(factory) == f"<SharedInformerFactory of {name}; Namespace>"
    assert {str(key): text for key, text in factory.problems().items()} == {
        name: "not started",
        "Namespace": "not started",
    }
    assert not factory.has_synced
    assert not factory.is_healthy
    async with run(factory):
        assert factory.has_synced
        assert factory.is_healthy
        assert factory.problems() == {}
        assert sum(informer.statistics().objects for informer in factory.informers.values()) == objects
    assert not factory.has_synced
    assert not factory.is_healthy


async def test_an_informer_unused_when_the_factory_starts_sends_no_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    async with trio.open_nursery() as nursery, factory.open_informer(Pod) as informer:
        registration = informer.add_event_handler(Recorder())

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await registration.wait_until_synced()

        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
    assert str(informer.state) == "stopped"
    async with run(factory):
        await trio.sleep(10)
    assert api_server.statistics().requests_served == 0


@pytest.mark.parametrize("wrong", ["60", -1, math.nan, {Pod: None}, {None: -1}, True])
async def test_a_resync_period_that_is_not_a_number_of_seconds_is_refused(client: Client, wrong: object) -> None:
    with pytest.raises(ValueError, match="resync_period"):
        SharedInformerFactory(client, resync_period=wrong)  # type: ignore[arg-type]  # the test is that this fails
