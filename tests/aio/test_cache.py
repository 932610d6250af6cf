"""Caches in an asyncio program: reads, subscriptions, and an informer that cannot end unseen."""

from __future__ import annotations

import asyncio
import gc

import pytest
import trio

from tests.support.asyncio_programs import client_of, config_map, run, server_with, until
from trioformer import Added, Deleted, Updated, aio, label_index
from trioformer.cache import InformerPhase
from trioformer.errors import CacheNotSyncedError
from trioformer.models.core_v1 import ConfigMap


def test_reads_are_plain_calls() -> None:
    async def main() -> None:
        server = server_with("a", "b")
        async with client_of(server) as client:
            indexers = {"by-app": label_index("app")}
            async with aio.open_cache(ConfigMap, client=client, namespace="default", indexers=indexers) as cache:
                with pytest.raises(CacheNotSyncedError):
                    cache.list()
                assert not cache.has_synced
                await cache.wait_until_synced()
                assert cache.has_synced
                assert sorted(one.name for one in cache.list()) == ["a", "b"]
                assert [one.name for one in cache.list(field_selector="metadata.name=a")] == ["a"]
                server.patch(ConfigMap, "a", {"metadata": {"labels": {"app": "web"}}})
                await until(lambda: bool(cache.by_index("by-app", "web")))
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
                assert "2 objects" in repr(cache)
            with pytest.raises(CacheNotSyncedError, match="closed"):
                cache.get("a", namespace="default")
            assert not cache.has_synced
            assert cache.state.phase is InformerPhase.STOPPED

    run(main)


def test_a_read_in_another_thread_is_refused() -> None:
    async def main() -> None:
        async with client_of(server_with("a")) as client, aio.open_cache(ConfigMap, client=client) as cache:
            await cache.wait_until_synced()
            with pytest.raises(RuntimeError, match=r"trioformer\.sync"):
                await asyncio.to_thread(cache.list)

    run(main)


def test_a_subscription_has_the_objects_and_then_each_change_until_the_cache_closes() -> None:
    seen: list[object] = []

    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            async with aio.open_cache(ConfigMap, client=client, namespace="default") as cache:
                subscription = cache.subscribe()

                async def read() -> None:
                    async for notification in subscription:
                        seen.append(notification)  # noqa: PERF401  # read by the test meanwhile

                reading = asyncio.create_task(read())
                await cache.wait_until_synced()
                await until(lambda: bool(seen))
                server.patch(ConfigMap, "a", {"data": {"x": "1"}})
                await until(lambda: len(seen) == 2)
                server.delete(ConfigMap, "a", namespace="default")
                await until(lambda: len(seen) == 3)
                with pytest.raises(trio.BusyResourceError):
                    await anext(subscription)
            await reading

    run(main)
    assert [type(each) for each in seen] == [Added, Updated, Deleted]


def test_no_notification_is_lost_when_a_reader_is_cancelled() -> None:
    async def main() -> None:
        server = server_with()
        async with client_of(server) as client:  # noqa: SIM117
            async with aio.open_cache(ConfigMap, client=client, namespace="default") as cache:
                await cache.wait_until_synced()
                subscription = cache.subscribe()
                seen: list[str] = []

                async def read() -> None:
                    async for notification in subscription:
                        assert isinstance(notification, Added)
                        seen.append(notification.object.name)

                for number in range(200):
                    reading = asyncio.create_task(read())
                    await asyncio.sleep(0)
                    server.create(config_map(f"m{number}"))
                    for _ in range(number % 9):
                        await asyncio.sleep(0)
                    reading.cancel()
                    await asyncio.wait([reading])
                reading = asyncio.create_task(read())
                await until(lambda: len(seen) == 200)
                reading.cancel()
                assert seen == [f"m{number}" for number in range(200)]

    run(main)


def test_a_subscription_that_is_dropped_leaves_no_listener() -> None:
    async def main() -> None:
        async with client_of(server_with("a")) as client, aio.open_cache(ConfigMap, client=client) as cache:
            await cache.wait_until_synced()
            async for _ in cache.subscribe():
                break
            gc.collect()
            assert cache._informer.statistics().handlers_and_subscriptions == 0

    run(main)


def test_a_reader_of_many_objects_gives_other_tasks_a_turn() -> None:
    async def main() -> None:
        async with client_of(server_with(*(f"m{number}" for number in range(500)))) as client:  # noqa: SIM117
            async with aio.open_cache(ConfigMap, client=client) as cache:
                await cache.wait_until_synced()
                turns = 0

                async def count() -> None:
                    nonlocal turns
                    while True:
                        turns += 1
                        await asyncio.sleep(0)

                counting = asyncio.create_task(count())
                await asyncio.sleep(0)
                number = 0
                async for _ in cache.subscribe():
                    number += 1
                    until = trio.current_time() + 0.000_1
                    while trio.current_time() < until:
                        pass
                    if number == 500:
                        break
                counting.cancel()
                assert turns > 10

    run(main)


def test_an_informer_that_fails_is_raised_by_each_read_and_at_the_end_of_the_block() -> None:
    async def main() -> None:
        async with client_of(server_with("a", "b", "c")) as client:
            with pytest.raises(CacheNotSyncedError) as raised:  # noqa: PT012
                async with aio.open_cache(ConfigMap, client=client, transform=mistake) as cache:
                    subscription = cache.subscribe()
                    with pytest.raises(CacheNotSyncedError):
                        await cache.wait_until_synced()
                    with pytest.raises(CacheNotSyncedError):
                        cache.list()
                    with pytest.raises(CacheNotSyncedError):
                        await anext(subscription)
                    with pytest.raises(CacheNotSyncedError):
                        cache.subscribe()
                    assert cache.state.phase is InformerPhase.FAILED
            assert raised.value.__cause__ is cache.failure
            assert cache.failure is not None

    run(main)


def mistake(obj: ConfigMap) -> ConfigMap:
    raise ValueError("a mistake in the transform")


def test_an_error_of_the_block_is_not_hidden_by_the_informers() -> None:
    async def main() -> None:
        async with client_of(server_with("a", "b", "c")) as client:
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with aio.open_cache(ConfigMap, client=client, transform=mistake) as cache:
                    await asyncio.wait([cache._ended])
                    raise ZeroDivisionError

    run(main)


def test_a_server_that_is_away_is_seen_in_the_state() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            with server.unreachable():
                async with aio.open_cache(ConfigMap, client=client) as cache:
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.05):
                            await cache.wait_until_synced()
                    assert cache.state.error is not None
                    assert cache.state.phase is not InformerPhase.WATCHING
                    assert not cache.has_synced

    run(main)


def test_a_cache_can_be_started_and_closed_without_a_block() -> None:
    async def main() -> None:
        async with client_of(server_with("a")) as client:
            cache = await aio.start_cache(ConfigMap, client=client)
            await cache.wait_until_synced()
            assert len(cache) == 1
            await cache.aclose()
            await cache.aclose()
            with pytest.raises(CacheNotSyncedError):
                len(cache)

    run(main)


def test_a_cache_opens_a_client_of_its_own_from_a_kubeconfig() -> None:
    async def main() -> None:
        with pytest.raises(Exception, match="nowhere"):
            async with aio.open_cache(ConfigMap, kubeconfig="/nowhere/kubeconfig"):
                pass
        with pytest.raises(ValueError, match="not both"):
            async with client_of(server_with()) as client, aio.open_cache(ConfigMap, client=client, context="x"):
                pass

    run(main)
