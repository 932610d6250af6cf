"""An informer's cache against a real kube-apiserver that restarts, forgets, vanishes or is silent.

Every test ends with the cache being what a fresh list is, names and resourceVersions, and every reader having been
notified of exactly that.
Connections that are to break go through a proxy; the API server's audit log says what was asked for.
"""

from __future__ import annotations

import itertools
import json
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import attrs
import httpx
import pytest
import trio

from tests.e2e.parallel import in_parallel
from tests.e2e.tcp_proxy import TcpProxy, proxy_before
from tests.e2e.workloads import make_namespace, versions
from trioformer import ConnectionFailedError, ExpiredError, SharedInformerFactory, StatusError, load_config, open_client
from trioformer.cache import ApiListWatch, ReflectorOptions, ResourceEventHandler, SharedInformer
from trioformer.client import Api, Client, ClientOptions
from trioformer.models import KubernetesObject, ObjectMeta, key_of
from trioformer.models.core_v1 import ConfigMap, LimitRange, Secret, ServiceAccount
from trioformer.testing import ControlPlane

FUTURE = "999999999"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted", "ResponseComplete"],
    "rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}]}, {"level": "None"}],
}
Versions: TypeAlias = dict[str, str]
numbers = itertools.count()


# --- the server ---


@attrs.frozen
class Cluster:
    """A control plane that may be ill-treated, with an audit log; whoever stops a program starts it again."""

    control_plane: ControlPlane
    audit_log: Path

    def requests_of(self, user_agent: str) -> list[tuple[str, dict[str, str]]]:
        """Verb and query of each request for ConfigMaps that somebody has sent."""
        events = [json.loads(line) for line in self.audit_log.read_text().splitlines()]
        mine = [event for event in events if event["userAgent"] == user_agent]
        return [(event["verb"], dict(parse_qsl(urlsplit(event["requestURI"]).query))) for event in mine]

    async def compact(self, resource_version: str) -> None:
        """Have etcd forget everything before a resourceVersion."""
        directory = self.control_plane.directory
        tls = ssl.create_default_context(cafile=directory / "ca.crt")
        tls.load_cert_chain(directory / "client.crt", directory / "client.key")
        async with httpx.AsyncClient(verify=tls, trust_env=False) as etcd:
            body = {"revision": resource_version, "physical": True}
            response = await etcd.post(f"{self.control_plane.etcd_url}/v3/kv/compaction", json=body)
            response.raise_for_status()


def started(assets: Path, directory: Path, *flags: str) -> Iterator[Cluster]:
    policy, log = directory / "audit-policy.json", directory / "audit.log"
    policy.write_text(json.dumps(POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", *flags)
    # Entered and left outside the tests' own trio.run, as the control plane that all files share.
    control_plane = ControlPlane(assets=assets, api_server_flags=flags)
    trio.run(control_plane.__aenter__)
    yield Cluster(control_plane, log)
    trio.run(control_plane.__aexit__, None, None, None)


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """As kube-apiserver is by default."""
    yield from started(assets, tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def simple_cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with neither watch-list nor watch cache: every response comes from etcd."""
    flags = ("--feature-gates=WatchList=false", "--watch-cache=false")
    yield from started(assets, tmp_path_factory.mktemp("simple-cluster"), *flags)


@asynccontextmanager
async def connected(
    control_plane: ControlPlane,
    *,
    through: TcpProxy | None = None,
    user_agent: str | None = None,
    retries: int = ClientOptions().retries,
) -> AsyncIterator[Client]:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    if through is not None:
        config = attrs.evolve(config, server=through.url)
    async with open_client(config, options=ClientOptions(user_agent=user_agent, retries=retries)) as client:
        yield client


# --- objects ---


async def config_maps(client: Client) -> Api[ConfigMap]:
    """The ConfigMaps of a new namespace."""
    return client.api(ConfigMap, namespace=await make_namespace(client, "cache"))


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"created": "yes"})


async def change(api: Api[ConfigMap], name: str) -> ConfigMap:
    return await api.patch(name, {"data": {"changed": str(next(numbers))}})


# --- readers ---


@attrs.define(eq=False)
class Reader(ResourceEventHandler[ConfigMap]):
    """The objects as one handler knows them; no call may contradict the others."""

    objects: dict[str, ConfigMap] = attrs.field(factory=dict)
    notifications: list[str] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def on_add(self, obj: ConfigMap, *, is_initial: bool) -> None:
        assert obj.name not in self.objects
        self._notify(f"{'initial' if is_initial else 'added'} {obj.name}", obj)

    async def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        assert self.objects[new.name] is old
        assert int(old.resource_version) < int(new.resource_version)  # no state comes twice
        self._notify(f"updated {new.name}", new)

    async def on_delete(self, obj: ConfigMap, *, is_stale: bool) -> None:
        del self.objects[obj.name]
        self._notify(f"{'found gone' if is_stale else 'deleted'} {obj.name}")

    def _notify(self, words: str, obj: ConfigMap | None = None) -> None:
        self.notifications.append(words)
        if obj is not None:
            self.objects[obj.name] = obj
        self._news.set()

    async def wait_for(self, expected: Versions) -> None:
        """Wait until this handler has been notified of exactly that."""
        while versions(self.objects.values()) != expected:
            self._news = trio.Event()
            await self._news.wait()

    async def wait_until_notified(self, words: str) -> None:
        while words not in self.notifications:
            self._news = trio.Event()
            await self._news.wait()


@attrs.define(eq=False)
class Lazy(Reader):
    """A reader that takes nothing more until it is let."""

    may_go_on: trio.Event = attrs.field(factory=trio.Event)

    async def on_add(self, obj: ConfigMap, *, is_initial: bool) -> None:
        await super().on_add(obj, is_initial=is_initial)
        await self.may_go_on.wait()


async def until_the_watch_cache_is_fresh(api: Api[ConfigMap]) -> None:
    """An informer's first list accepts any version: without this it may miss an object that was just created."""
    newest = (await api.list()).resource_version
    await api.list(resource_version=newest, resource_version_match="NotOlderThan")


async def assert_up_to_date(informer: SharedInformer[ConfigMap], api: Api[ConfigMap], *readers: Reader) -> None:
    """Make sure that cache and readers agree with a fresh list, one more write included."""
    last = await api.create(config_map(f"last-{next(numbers)}"))
    with trio.fail_after(30):
        await informer.wait_until_at_least(last)
        listed = versions(await api.list())
        assert versions(informer.lister) == listed
        for reader in readers:
            await reader.wait_for(listed)


def informer_of(
    client: Client, api: Api[ConfigMap], options: ReflectorOptions | None = None
) -> tuple[SharedInformer[ConfigMap], list[Exception]]:
    """An informer of the same objects by another client, and the failures that it retries."""
    failures: list[Exception] = []
    options = attrs.evolve(options or ReflectorOptions(), watch_error_handler=failures.append)
    source = ApiListWatch(client.api(ConfigMap, namespace=api.namespace))
    return SharedInformer(source, options=options), failures


# --- first lists ---


async def test_the_first_list_and_everything_after_it_come_in_one_request(cluster: Cluster) -> None:
    agent = f"streaming-{next(numbers)}"
    async with connected(cluster.control_plane) as writer, connected(cluster.control_plane, user_agent=agent) as client:
        api = await config_maps(writer)
        await in_parallel(partial(api.create, config_map(f"c{n}")) for n in range(20))
        informer, failures = informer_of(client, api, ReflectorOptions(watch_list=True))
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                await nursery.start(informer.run)
                assert len(informer.lister) == 20
                await change(api, "c1")
                await api.delete("c2")
                await assert_up_to_date(informer, api)
                nursery.cancel_scope.cancel()
    ((verb, query),) = cluster.requests_of(agent)
    assert verb == "watch"
    assert query["sendInitialEvents"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert query["allowWatchBookmarks"] == "true"
    assert failures == []


@pytest.mark.parametrize("watch_list", [None, False])
async def test_the_first_list_is_a_list_from_a_server_that_streams_lists(
    cluster: Cluster, watch_list: bool | None
) -> None:
    agent = f"listing-{next(numbers)}"
    async with connected(cluster.control_plane) as writer, connected(cluster.control_plane, user_agent=agent) as client:
        api = await config_maps(writer)
        await api.create(config_map("first"))
        await until_the_watch_cache_is_fresh(api)
        informer, failures = informer_of(client, api, ReflectorOptions(watch_list=watch_list))
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                await nursery.start(informer.run)
                assert [each.name for each in informer.lister] == ["first"]
                await assert_up_to_date(informer, api)
                nursery.cancel_scope.cancel()
    (_, listing), (_, watch) = requests = cluster.requests_of(agent)
    assert [verb for verb, _ in requests] == ["list", "watch"]
    assert listing["resourceVersion"] == "0"
    assert "sendInitialEvents" not in watch
    assert failures == []


async def test_a_server_without_watch_lists_and_watch_cache_is_listed_page_by_page_at_once(
    simple_cluster: Cluster,
) -> None:
    """And when etcd has forgotten where the watch was to resume, it is listed again."""
    control_plane, agent = simple_cluster.control_plane, f"paging-{next(numbers)}"
    async with (
        proxy_before(control_plane.url) as proxy,
        connected(control_plane) as writer,
        connected(control_plane, through=proxy, user_agent=agent) as client,
    ):
        api = await config_maps(writer)
        await in_parallel(partial(api.create, config_map(f"c{n}")) for n in range(501))
        informer, failures = informer_of(client, api, ReflectorOptions(watch_list=True))
        reader = Reader()
        informer.add_event_handler(reader)
        async with trio.open_nursery() as nursery:
            with trio.fail_after(10):
                await nursery.start(informer.run)
            assert len(informer.lister) == 501
            await assert_up_to_date(informer, api, reader)
            assert failures == []
            requests = simple_cluster.requests_of(agent)
            assert [verb for verb, _ in requests] == ["watch", "list", "list", "watch"]
            assert "sendInitialEvents" in requests[0][1]
            assert "continue" in requests[2][1]

            await while_away(proxy, api)
            await simple_cluster.compact((await api.list()).resource_version)
            proxy.is_reachable = True
            with trio.fail_after(30):
                await reader.wait_until_notified("found gone c1")
            await assert_up_to_date(informer, api, reader)
            assert isinstance(failures[-1], ExpiredError)
            assert {"updated c2", "added while-away", "found gone c1"} <= set(reader.notifications)
            # A watch-list is requested again, as by client-go; and a page of a list must be at exactly that version,
            # which is gone, so the newest state is listed.
            requests = simple_cluster.requests_of(agent)[4:]
            assert [verb for verb, _ in requests] == ["watch", "watch", "list", "list", "list", "watch"]
            assert not any(asks_for_the_version(query) for _, query in requests), "410 says enough"
            assert ["sendInitialEvents" in query for _, query in requests] == [False, True] + [False] * 4
            nursery.cancel_scope.cancel()


def asks_for_the_version(query: dict[str, str]) -> bool:
    """Whether a request is what an informer asks after a lost connection."""
    return query.get("limit") == "1" and query.get("resourceVersionMatch") == "NotOlderThan"


async def while_away(proxy: TcpProxy, api: Api[ConfigMap]) -> None:
    """Cut an informer off, and change of each kind one while it cannot know."""
    proxy.is_reachable = False
    proxy.cut()
    await api.delete("c1")
    await change(api, "c2")
    await api.create(config_map("while-away"))


# --- expired, and from the future ---


async def test_after_compaction_and_restart_each_handler_is_notified_of_what_it_missed(cluster: Cluster) -> None:
    async with (
        proxy_before(cluster.control_plane.url) as proxy,
        connected(cluster.control_plane) as writer,
        connected(cluster.control_plane, through=proxy) as client,
    ):
        api = await config_maps(writer)
        for n in range(4):
            await api.create(config_map(f"c{n}"))
        await until_the_watch_cache_is_fresh(api)
        informer, failures = informer_of(client, api)
        early, late, lazy = Reader(), Reader(), Lazy()
        informer.add_event_handler(early)
        informer.add_event_handler(lazy, buffer_size=1)
        async with trio.open_nursery() as nursery:
            await nursery.start(informer.run)
            informer.add_event_handler(late)
            await late.wait_until_notified("initial c3")
            await while_away(proxy, api)
            await cluster.compact((await api.list()).resource_version)
            await cluster.control_plane.kill_api_server()
            await cluster.control_plane.start_api_server()
            proxy.is_reachable = True
            await early.wait_until_notified("found gone c1")
            lazy.may_go_on.set()
            await assert_up_to_date(informer, api, early, late, lazy)
            assert any(isinstance(each, ExpiredError) for each in failures)
            assert informer.statistics().reflector.lists == 2
            nursery.cancel_scope.cancel()
    for reader in (early, late):
        assert sorted(reader.notifications[:4]) == [f"initial c{n}" for n in range(4)]
        assert set(reader.notifications[4:7]) == {"found gone c1", "updated c2", "added while-away"}
        assert len(reader.notifications) == 8  # the last is the marker
    assert "c1" not in lazy.objects


async def test_a_version_from_the_future_is_refused_in_a_way_that_is_recognised(cluster: Cluster) -> None:
    async with connected(
        cluster.control_plane, retries=0
    ) as client:  # the server asks to try again, as it may catch up
        api = await config_maps(client)

        async def plainly() -> None:
            with pytest.raises(StatusError) as caught:
                await api.list(resource_version=FUTURE)
            assert caught.value.is_too_large_resource_version

        async def streamed() -> None:
            with pytest.raises(StatusError) as caught:
                async with api.watch(resource_version=FUTURE, send_initial_events=True, allow_bookmarks=True) as events:
                    await events.receive_batch()
            assert caught.value.is_too_large_resource_version

        with trio.fail_after(20):  # the server waits three seconds for it to come
            await in_parallel([plainly, streamed])


async def test_a_server_that_is_restored_from_a_backup_is_listed_again(assets: Path) -> None:
    """What the informer knows is newer than what the server has: it says so to a list, but a watch just waits."""
    async with ControlPlane(assets=assets) as control_plane, connected(control_plane) as client:
        api = await config_maps(client)
        await api.create(config_map("first"))
        data, backup = control_plane.directory / "etcd", control_plane.directory / "backup"
        await control_plane.kill_etcd()
        await trio.to_thread.run_sync(shutil.copytree, data, backup)
        await control_plane.start_etcd()

        await in_parallel(partial(api.create, config_map(f"c{n}")) for n in range(100))
        await api.delete("first")
        await until_the_watch_cache_is_fresh(api)
        informer, _ = informer_of(client, api, ReflectorOptions(max_silence=20))
        reader = Reader()
        informer.add_event_handler(reader)
        async with trio.open_nursery() as nursery:
            await nursery.start(informer.run)
            await control_plane.kill_api_server()
            await control_plane.kill_etcd()
            await trio.to_thread.run_sync(shutil.rmtree, data)
            backup.rename(data)
            await control_plane.start_etcd()
            await control_plane.start_api_server()
            await api.create(config_map("new"))
            listed = versions(await api.list())
            with trio.move_on_after(120):
                await reader.wait_for(listed)
            cached = versions(informer.lister)
            nursery.cancel_scope.cancel()
        assert cached == versions(reader.objects.values()) == listed


# --- restarts ---


@attrs.define(eq=False)
class Writer:
    """Creates, changes and deletes objects, whether the server is there or not."""

    api: Api[ConfigMap]
    stop: bool = False
    written: int = 0
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def run(self) -> None:
        for number in itertools.count():
            if self.stop:
                return
            with suppress(ConnectionFailedError, StatusError):
                await self.api.create(config_map(f"w{number}"))
                await change(self.api, f"w{number - 1}")
                if number % 3 == 0:
                    await self.api.delete(f"w{number - 2}")
                self.written += 1
                self._news.set()
            await trio.sleep(0.01)  # a server that is not there would be asked a thousand times a second

    async def wait_for_more(self, count: int) -> None:
        wanted = self.written + count
        while self.written < wanted:
            self._news = trio.Event()
            await self._news.wait()


@pytest.mark.parametrize("way", ["killed", "stopped", "without etcd"])
async def test_it_stays_up_to_date_through_restarts_of_the_server(cluster: Cluster, way: str) -> None:
    control_plane = cluster.control_plane
    async with connected(control_plane) as client, trio.open_nursery() as nursery:
        api = await config_maps(client)
        informer, failures = informer_of(client, api)
        reader = Reader()
        informer.add_event_handler(reader)
        await nursery.start(informer.run)
        writer = Writer(api)
        nursery.start_soon(writer.run)
        with trio.fail_after(60):
            await writer.wait_for_more(20)
            if way == "without etcd":
                await control_plane.kill_etcd()
                await control_plane.start_etcd()
            else:
                await (control_plane.kill_api_server() if way == "killed" else control_plane.stop_api_server())
                await control_plane.start_api_server()
            await writer.wait_for_more(20)
            writer.stop = True
            await assert_up_to_date(informer, api, reader)
        assert failures or way == "without etcd"  # without it the watches stay open
        assert all(isinstance(each, ConnectionFailedError | ExpiredError) for each in failures), failures
        nursery.cancel_scope.cancel()


async def test_a_watch_that_is_cut_goes_on_where_it_was(cluster: Cluster) -> None:
    """No change is missed, none comes twice, nothing is listed again, and events show that the version is known."""
    agent = f"cut-{next(numbers)}"
    async with (
        proxy_before(cluster.control_plane.url) as proxy,
        connected(cluster.control_plane) as client,
        connected(cluster.control_plane, through=proxy, user_agent=agent) as informed,
        trio.open_nursery() as nursery,
    ):
        api = await config_maps(client)
        informer, failures = informer_of(informed, api)
        reader = Reader()
        informer.add_event_handler(reader)
        await nursery.start(informer.run)
        writer = Writer(api)
        nursery.start_soon(writer.run)
        with trio.fail_after(30):
            for _ in range(2):
                await writer.wait_for_more(20)
                # Before: one for version and probes, one for the list, one for the watch.
                accepted = proxy.accepted
                assert accepted >= 3
                proxy.cut()
                await proxy.wait_until_accepted(accepted + 1)
            await writer.wait_for_more(20)
            writer.stop = True
            await assert_up_to_date(informer, api, reader)
        requests = cluster.requests_of(agent)
        assert [verb for verb, _ in requests] == ["list", "watch", "watch", "watch"]
        assert [type(each) for each in failures] == [ConnectionFailedError] * 2
        assert "found gone" not in " ".join(reader.notifications)
        nursery.cancel_scope.cancel()


# --- many ---


async def test_two_hundred_informers_share_a_process(cluster: Cluster) -> None:
    """Each has a connection, and none is left when they are cancelled."""
    control_plane = cluster.control_plane
    kinds: tuple[type[KubernetesObject], ...] = (ConfigMap, Secret, ServiceAccount, LimitRange)
    async with (
        proxy_before(control_plane.url) as proxy,
        connected(control_plane) as writer,
        connected(control_plane, through=proxy) as client,
    ):
        with trio.fail_after(60):
            namespaces = [await make_namespace(writer, "many") for _ in range(50)]
            places = [(kind, namespace) for kind in kinds for namespace in namespaces]
            create = [partial(writer.api(kind, namespace=where).create, _named(kind, "x")) for kind, where in places]
            await in_parallel(create[::2])
            factory = SharedInformerFactory(client)
            informers = [factory.informer(kind, namespace=where) for kind, where in places]
            assert len(informers) == 200
            async with trio.open_nursery() as nursery:
                await nursery.start(factory.run)
                assert [len(each.lister) for each in informers] == [1, 0] * 100
                await in_parallel(create[1::2])

                async def check(kind: type[KubernetesObject], where: str, informer: SharedInformer[Any]) -> None:
                    api = writer.api(kind, namespace=where)
                    listed = await api.list()
                    assert len(listed) == 1
                    await informer.wait_until_at_least(listed.items[0])
                    assert versions(informer.lister) == versions(listed)

                checks = [partial(check, *place, each) for place, each in zip(places, informers, strict=True)]
                await in_parallel(checks)
                # One for each watch, one for probes, and those of the lists, which are kept for a minute.
                assert 201 <= proxy.accepted <= 301
                nursery.cancel_scope.cancel()
            await proxy.wait_for(lambda count: count <= 101)


def _named(kind: type[KubernetesObject], name: str) -> KubernetesObject:
    return kind(metadata=ObjectMeta(name=name))


# --- one's own writes ---


async def test_a_cache_that_was_waited_for_holds_ones_own_writes(cluster: Cluster) -> None:
    async with connected(cluster.control_plane) as client, trio.open_nursery() as nursery:
        api = await config_maps(client)
        informer, _ = informer_of(client, api)
        await nursery.start(informer.run)
        with trio.fail_after(30):
            for n in range(100):
                for write in (partial(api.create, config_map(f"c{n}")), partial(change, api, f"c{n}")):
                    written = await write()
                    await informer.wait_until_at_least(written)
                    assert informer.lister[key_of(written)].resource_version == written.resource_version
            await assert_up_to_date(informer, api)
        nursery.cancel_scope.cancel()


# --- several objects ---


async def test_a_burst_arrives_in_the_order_of_its_versions_and_a_list_changes_nothing(cluster: Cluster) -> None:
    async with connected(cluster.control_plane) as client, trio.open_nursery() as nursery:
        api = await config_maps(client)
        await api.create(config_map("a"))
        await api.create(config_map("b"))
        await until_the_watch_cache_is_fresh(api)
        informer, _ = informer_of(client, api)
        reader = Reader()
        informer.add_event_handler(reader, overflow="block")
        await nursery.start(informer.run)
        with trio.fail_after(30):
            await change(api, "a")
            await change(api, "b")
            await api.delete("a")
            await api.create(config_map("c"))
            await change(api, "b")
            await api.create(config_map("a"))
            await reader.wait_for(versions(await api.list()))
        assert reader.notifications[2:] == ["updated a", "updated b", "deleted a", "added c", "updated b", "added a"]
        listed = {key_of(obj): obj for obj in await api.list()}
        assert {key_of(obj): obj for obj in informer.lister} == listed
        for obj in informer.lister:  # the same bytes, so they need not be decoded to be compared
            assert obj._origin == listed[key_of(obj)]._origin
        nursery.cancel_scope.cancel()


# --- silence ---


async def test_a_connection_that_is_open_and_silent_is_noticed(cluster: Cluster) -> None:
    """Real time: as long as the shortest ``max_silence``."""
    control_plane = cluster.control_plane
    async with (
        proxy_before(control_plane.url) as proxy,
        connected(control_plane) as writer,
        connected(control_plane, through=proxy) as client,
        trio.open_nursery() as nursery,
    ):
        api = await config_maps(writer)
        await api.create(config_map("first"))
        await until_the_watch_cache_is_fresh(api)
        informer, failures = informer_of(client, api, ReflectorOptions(max_silence=20))
        reader = Reader()
        informer.add_event_handler(reader)
        await nursery.start(informer.run)
        await api.create(config_map("seen"))
        await reader.wait_until_notified("added seen")
        proxy.freeze()
        began = trio.current_time()
        await api.delete("first")
        await api.create(config_map("missed"))
        with trio.fail_after(25):
            await reader.wait_until_notified("added missed")
        assert trio.current_time() - began >= 15
        assert reader.notifications == ["initial first", "added seen", "deleted first", "added missed"]
        assert failures == []
        await assert_up_to_date(informer, api, reader)
        assert informer.statistics().reflector.lists == 1
        # The new watch, the one of the list, which is kept, and the one for probes; the silent one is closed.
        assert proxy.open_connections == 3
        nursery.cancel_scope.cancel()
