"""Caches for threads: reads under load, subscriptions, and an informer that cannot end unseen."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import attrs
import pytest
import trio

from tests.support.asyncio_programs import config_map, server_with
from tests.support.thread_programs import client_of, in_portal, name_in, portal_threads, running_thread
from trioformer import Added, Deleted, Updated, label_index, sync
from trioformer.cache import InformerPhase
from trioformer.cache.informer._sharing import ThreadsLister
from trioformer.cache.store._quarantine import Quarantine
from trioformer.errors import CacheNotSyncedError, QuarantinedError, TransformError
from trioformer.models import LabelSelector, from_json
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


def until(condition: object) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_reads_are_plain_calls() -> None:
    with client_of(server_with("a", "b")) as client:
        api = client.api(ConfigMap, namespace="default")
        indexers = {"by-app": label_index("app")}
        with sync.open_cache(ConfigMap, client=client, namespace="default", indexers=indexers) as cache:
            cache.wait_until_synced()
            assert cache.has_synced
            assert sorted(one.name for one in cache.list()) == ["a", "b"]
            assert [one.name for one in cache.list(field_selector="metadata.name=a")] == ["a"]
            api.patch("a", {"metadata": {"labels": {"app": "web"}}})
            until(lambda: cache.by_index("by-app", "web"))
            assert [one.name for one in cache.list(label_selector="app=web")] == ["a"]
            assert cache.index_keys("by-app", "web") == ("default/a",)
            assert cache.index_values("by-app") == ("web",)
            found = cache.get("a", namespace="default")
            assert found is not None
            assert cache["default/a"] is found
            assert cache.get("z", namespace="default") is None
            with pytest.raises(KeyError):
                cache["default/z"]
            assert ("default/a" in cache, "default/z" in cache, len(cache)) == (True, False, 2)
            assert {one.name for one in cache} == {"a", "b"}
            assert cache.quarantined() == {}
            assert cache.state.phase is InformerPhase.WATCHING
            assert repr(cache).startswith("<Cache of ConfigMap")
        with pytest.raises(CacheNotSyncedError, match="closed"):
            cache.get("a", namespace="default")
        assert not cache.has_synced
        assert cache.state.phase is InformerPhase.STOPPED
    assert cache.state.phase is InformerPhase.STOPPED  # without a portal


def test_a_cache_that_has_not_synced_refuses() -> None:
    server = server_with("a")
    with client_of(server) as client:
        server.fail_next(1_000, verb="list")
        with sync.open_cache(ConfigMap, client=client) as cache:
            with pytest.raises(CacheNotSyncedError):
                cache.list()
            assert not cache.has_synced


def test_a_subscription_has_the_objects_and_each_change_until_the_cache_closes() -> None:
    seen: list[object] = []
    with client_of(server_with("a")) as client:
        api = client.api(ConfigMap, namespace="default")
        with sync.open_cache(ConfigMap, client=client, namespace="default") as cache:
            subscription = cache.subscribe()
            with running_thread(lambda: [seen.append(each) for each in subscription]):
                until(lambda: seen)
                with pytest.raises(trio.BusyResourceError):
                    next(subscription)
                api.patch("a", {"data": {"x": "1"}})
                until(lambda: len(seen) == 2)
                api.delete("a")
                until(lambda: len(seen) == 3)
                cache.close()
    assert [type(each) for each in seen] == [Added, Updated, Deleted]


def test_a_subscription_takes_batches_and_loses_nothing_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        client_of(server_with(*(f"c-{n}" for n in range(250)))) as client,
        sync.open_cache(ConfigMap, client=client) as cache,
    ):
        subscription = cache.subscribe()
        cache.wait_until_synced()
        calls = 0
        call = type(cache._portal).call

        def counted(*args: object) -> object:
            nonlocal calls
            calls += 1
            result = call(*args)  # type: ignore[arg-type]
            if calls == 2:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(type(cache._portal), "call", counted)
        seen: list[str] = []
        while len(seen) < 250:
            try:
                seen.append(name_in(next(subscription)))
            except KeyboardInterrupt:
                continue
        assert len(set(seen)) == 250
        assert calls < 100


def test_a_subscription_that_is_forgotten_is_removed_in_the_portal(monkeypatch: pytest.MonkeyPatch) -> None:
    with client_of(server_with("a")) as client, sync.open_cache(ConfigMap, client=client) as cache:
        subscription = cache.subscribe()
        assert name_in(next(subscription)) == "a"
        processor = cache._informer._processor
        assert in_portal(cache._portal, processor.__len__) == 1
        threads: list[threading.Thread] = []
        remove = type(processor).remove

        def noted(self: object, listener: object) -> None:
            threads.append(threading.current_thread())
            remove(self, listener)  # type: ignore[arg-type]

        monkeypatch.setattr(type(processor), "remove", noted)
        del subscription
        gc.collect()
        assert in_portal(cache._portal, processor.__len__) == 0
        assert threads == portal_threads()


def test_a_subscription_that_could_not_be_opened_breaks_nothing() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="aio"):
            cache.subscribe()
        gc.collect()

    with client_of(server_with("a")) as client, sync.open_cache(ConfigMap, client=client) as cache:
        cache.wait_until_synced()
        asyncio.run(main())
        with pytest.raises(ValueError, match="buffer_size"):
            cache.subscribe(buffer_size=0)
        gc.collect()
        assert cache.has_synced


def test_a_cache_with_a_client_of_its_own() -> None:
    with pytest.raises(ValueError, match="not both"), client_of(server_with()) as client:
        sync.start_cache(ConfigMap, client=client, context="kind")
    assert not portal_threads()


def test_a_cache_that_an_application_starts_is_closed_by_any_thread() -> None:
    with client_of(server_with("a")) as client:
        cache = sync.start_cache(ConfigMap, client=client)
        cache.wait_until_synced()
        with running_thread(cache.close):
            pass
        cache.close()
        with pytest.raises(CacheNotSyncedError):
            list(cache)
        with pytest.raises(CacheNotSyncedError):
            cache.subscribe()


def test_an_informer_that_ends_while_a_subscription_is_opened_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with client_of(server_with("a", "b", "c")) as client:
        opened = sync.open_cache(ConfigMap, client=client, transform=mistake)
        cache = opened.__enter__()
        cache._ended.wait()
        cache._job.has_ended = False  # not known yet
        monkeypatch.setattr(cache._ended, "wait", lambda: setattr(cache._job, "has_ended", True))
        with pytest.raises(CacheNotSyncedError, match="informer ended"):
            cache.subscribe()
        with pytest.raises(CacheNotSyncedError):
            opened.__exit__(None, None, None)


def mistake(obj: ConfigMap) -> ConfigMap:
    raise LookupError("a mistake")


def test_an_informer_that_fails_makes_all_reads_raise() -> None:
    server = server_with("a", "b", "c")
    with client_of(server) as client:
        server.fail_next(verb="list", status=None, after=0.2)  # until the subscription is open
        opened = sync.open_cache(ConfigMap, client=client, transform=mistake)
        cache = opened.__enter__()
        subscription = cache.subscribe()
        for read in (
            cache.wait_until_synced,
            cache.list,
            cache.quarantined,
            lambda: next(subscription),
            lambda: "a" in cache,
            lambda: cache.subscribe(),
        ):
            with pytest.raises(CacheNotSyncedError, match="informer ended"):
                read()
        assert not cache.has_synced
        assert cache.state.phase is InformerPhase.FAILED
        with pytest.raises(CacheNotSyncedError, match="informer ended") as raised:
            opened.__exit__(None, None, None)
        assert isinstance(raised.value.__cause__, TransformError)


def test_a_selector_that_reads_an_undecodable_object_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    """The log limits its lines by a clock, and trio's clock is only readable in trio."""
    with (
        client_of(server_with("a")) as client,
        sync.open_cache(ConfigMap, client=client, transform=undecodable) as cache,
    ):
        cache.wait_until_synced()
        assert cache.list(label_selector="app=web") == ()
    assert "selector of the lister of ConfigMap skipped default/a" in caplog.text


def undecodable(obj: ConfigMap) -> ConfigMap:
    data = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"%s","labels":1'
    head = data % obj.uid.encode() + b',"resourceVersion":"%s"}}' % obj.resource_version.encode()
    return from_json(ConfigMap, head)


READS: dict[str, Callable[[sync.Cache[ConfigMap]], object]] = {
    "get": lambda cache: cache.get("a", namespace="default"),
    "item": lambda cache: cache["default/a"],
    "contains": lambda cache: "default/a" in cache,
    "iterator": list,
    "list": lambda cache: cache.list(),
    "list by label": lambda cache: cache.list(label_selector="app=web"),
    "list by name": lambda cache: cache.list(field_selector="metadata.name=a"),
    "by_index": lambda cache: cache.by_index("by-x", "1"),
    "index_keys": lambda cache: cache.index_keys("by-x", "1"),
    "index_values": lambda cache: cache.index_values("by-x"),
    "quarantined": lambda cache: cache.quarantined(),
}


@attrs.define(eq=False)
class Halt:
    """Stops the informer in the middle of a change, until all reads have had time to end."""

    reached: threading.Event = attrs.field(factory=threading.Event)
    goes_on: threading.Event = attrs.field(factory=threading.Event)

    def here(self, *_: object) -> None:
        self.reached.set()
        assert self.goes_on.wait(20)

    def check_reads_wait(self, cache: sync.Cache[ConfigMap]) -> None:
        ended: list[str] = []

        def noted(name: str) -> None:
            with suppress(QuarantinedError):
                READS[name](cache)
            ended.append(name)

        assert self.reached.wait(10)
        threads = [threading.Thread(target=noted, args=(name,)) for name in READS]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        early = list(ended)
        self.goes_on.set()
        for thread in threads:
            thread.join(10)
        assert early == []
        assert sorted(ended) == sorted(READS)


def test_a_read_waits_for_the_end_of_a_batch_of_changes() -> None:
    halt = Halt()

    def slow(obj: ConfigMap) -> tuple[str, ...]:
        if obj.data["x"] == "slow":
            halt.here()
        return (obj.data["x"],)

    with client_of(server_with()) as client:
        api = client.api(ConfigMap, namespace="default")
        api.create(config_map("a", x="1"))
        with sync.open_cache(ConfigMap, client=client, indexers={"by-x": slow}) as cache:
            cache.wait_until_synced()
            with running_thread(lambda: api.patch("a", {"data": {"x": "slow"}})):
                halt.check_reads_wait(cache)


def test_a_read_waits_for_the_end_of_a_relist(monkeypatch: pytest.MonkeyPatch) -> None:
    halt = Halt()
    server = APIServer()
    server.create(config_map("a", x="1"))

    def strict(obj: ConfigMap) -> tuple[str, ...]:
        if obj.data["x"] == "bad":
            raise ValueError
        return (obj.data["x"],)

    def change_unseen() -> None:
        with server.unreachable():
            server.patch(ConfigMap, "a", {"data": {"x": "bad"}})
            server.compact()

    with client_of(server) as client, sync.open_cache(ConfigMap, client=client, indexers={"by-x": strict}) as cache:
        cache.wait_until_synced()
        monkeypatch.setattr(Quarantine, "_log", halt.here)  # after the swap of the objects
        in_portal(cache._portal, change_unseen)
        halt.check_reads_wait(cache)


def test_a_reader_that_waits_for_trio_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    in_time: list[bool] = []
    read = ThreadsLister.__contains__

    def interrupted(self: ThreadsLister[ConfigMap], key: object) -> bool:
        with self._lock:
            time.sleep(0.3)  # the list or the change waits for the lock
            # what the handler of a signal does in this thread, in another one, so that a test that fails also ends
            thread = threading.Thread(target=lambda: cache.state)
            thread.start()
            thread.join(5)
            in_time.append(not thread.is_alive())
            return read(self, key)

    with client_of(server_with("a")) as client, sync.open_cache(ConfigMap, client=client) as cache:
        monkeypatch.setattr(ThreadsLister, "__contains__", interrupted)
        with suppress(CacheNotSyncedError):
            assert "default/a" in cache._reads  # during the first list
        cache.wait_until_synced()
        api = client.api(ConfigMap, namespace="default")
        with running_thread(lambda: api.patch("a", {"data": {"x": "2"}})):
            assert "default/a" in cache
        until(lambda: cache["default/a"].data == {"x": "2"})
    assert in_time == [True, True]


def test_a_selector_decodes_fields_without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    with client_of(server_with("a")) as client, sync.open_cache(ConfigMap, client=client) as cache:
        cache.wait_until_synced()
        lock = cache._reads._lock  # type: ignore[attr-defined]  # of a lister for threads
        matches = LabelSelector.matches

        def noted(self: LabelSelector, labels: Mapping[str, str]) -> bool:
            held.append(lock._is_owned())
            return matches(self, labels)

        monkeypatch.setattr(LabelSelector, "matches", noted)
        cache.list(label_selector="app=web")
    assert held == [False]


@pytest.fixture
def tiny_switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


SECONDS, RATE, OBJECTS = 2.0, 1_000, 60


def test_four_threads_read_while_a_thousand_events_arrive_each_second(tiny_switch_interval: None) -> None:
    """Each object has a label and a value that are changed together, and is deleted and created again at times."""
    server = APIServer()
    for number in range(OBJECTS):
        server.create(_state(number, 0))
    stop = threading.Event()
    reads = [0] * 4
    seen = 0

    async def write() -> int:
        begins, written = trio.current_time(), 0
        while not stop.is_set():
            due = int((trio.current_time() - begins) * RATE)
            while written < due:
                written += 1
                number = written % OBJECTS
                if written % 7 == 0:
                    server.delete(ConfigMap, f"c-{number}", namespace="default")
                    server.create(_state(number, written))
                    written += 1
                else:
                    state = _state(number, written)
                    server.patch(
                        ConfigMap,
                        f"c-{number}",
                        {"metadata": {"labels": dict(state.metadata.labels)}, "data": dict(state.data)},
                    )
            await trio.sleep(0.002)
        return written

    def read(thread: int) -> None:
        while not stop.is_set():
            reads[thread] += 1
            for value in cache.index_values("by-turn"):
                for found in cache.by_index("by-turn", value):
                    assert found.metadata.labels["turn"] == value == found.data["turn"]
            whole = cache.list()
            assert len({one.name for one in whole}) == len(whole) >= OBJECTS - 1
            assert all(one.data["turn"] == one.metadata.labels["turn"] for one in whole)
            assert len(cache.list(namespace="default", label_selector="turn")) >= OBJECTS - 1
            for key in cache.index_keys("namespace", "default"):
                found = cache.get(key)
                assert found is None or found.key == key
            assert {one.name for one in cache.list(label_selector="turn in (0, 1, 2)")} <= {
                one.name for one in whole
            } | {f"c-{number}" for number in range(OBJECTS)}

    with client_of(server) as client:
        indexers = {"by-turn": label_index("turn")}
        with sync.open_cache(ConfigMap, client=client, indexers=indexers) as cache:
            cache.wait_until_synced()
            subscription = cache.subscribe()
            portal = cache._portal
            written: list[int] = []
            threads = [running_thread(lambda thread=thread: read(thread)) for thread in range(4)]
            with running_thread(lambda: written.append(portal.call(write))):
                for each in threads:
                    each.__enter__()
                ends = time.monotonic() + SECONDS
                while time.monotonic() < ends:
                    next(subscription)
                    seen += 1
                stop.set()
                for each in threads:
                    each.__exit__(None, None, None)
    print(f"{written[0] / SECONDS:.0f} events a second, reads {reads}, {seen} notifications")
    assert all(reads)
    assert written[0] >= 0.5 * RATE * SECONDS


def _state(number: int, turn: int) -> ConfigMap:
    value = str(turn % 5)
    made = config_map(f"c-{number}", turn=value, filling="x" * 200)
    return made.evolve(metadata=made.metadata.evolve(labels={"turn": value}))


def test_a_mark_of_the_quarantine_and_its_object_are_read_together(tiny_switch_interval: None) -> None:
    """The index function fails on every other state: a reader gets an error or the newest good state."""

    def index(obj: ConfigMap) -> tuple[str, ...]:
        if obj.data["x"] == "bad":
            raise ValueError
        return (obj.data["x"],)

    server = APIServer()
    server.create(config_map("a", x="0"))
    stop = threading.Event()

    async def write() -> None:
        for turn in range(1, 200):
            server.patch(ConfigMap, "a", {"data": {"x": "bad"}})
            await trio.sleep(0.0005)
            server.patch(ConfigMap, "a", {"data": {"x": str(turn)}})
            await trio.sleep(0.0005)
        stop.set()

    def read() -> None:
        newest = 0
        while not stop.is_set():
            try:
                found = cache.get("a", namespace="default")
            except QuarantinedError:
                continue
            assert found is not None
            assert int(found.data["x"]) >= newest
            newest = int(found.data["x"])

    with client_of(server) as client, sync.open_cache(ConfigMap, client=client, indexers={"x": index}) as cache:
        cache.wait_until_synced()
        with running_thread(read), running_thread(read):
            cache._portal.call(write)
