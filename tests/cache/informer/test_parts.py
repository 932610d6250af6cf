"""The parts of a divided cache, which begin and end while it runs."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import ScriptedListWatch, added, deleted, listing, pod, words
from trioformer import SharedInformer
from trioformer.cache import Added, ApiListWatch, Released
from trioformer.cache.informer._parts import Part, share_of
from trioformer.cache.informer._reflectors import DividedSource
from trioformer.client import Client
from trioformer.models.core_v1 import Pod
from trioformer.sharding._caches import ShareCaches
from trioformer.sharding._kinds import KindShare

RANGES = 3
ONE, TWO = "team-0-prod", "team-1-prod"
"""Namespaces in different ranges."""


@pytest.fixture
def share(client: Client) -> KindShare[Pod]:
    return KindShare(ApiListWatch(client.api(Pod)), "namespace", RANGES, ShareCaches(0.0))


@pytest.fixture
async def informer(share: KindShare[Pod], nursery: trio.Nursery) -> SharedInformer[Pod]:
    informer = SharedInformer(DividedSource(name="pods", kind=Pod, division=share))
    await nursery.start(informer.run)
    return informer


def source(share: KindShare[Pod], namespace: str, *names: str, version: int = 1) -> ScriptedListWatch:
    return ScriptedListWatch([listing(*(pod(name, version, namespace=namespace) for name in names), version=version)])


def keys(informer: SharedInformer[Pod]) -> list[str]:
    return sorted(f"{each.namespace}/{each.name}" for each in informer.lister)


def open_part(informer: SharedInformer[Pod], share: KindShare[Pod], namespace: str, *names: str) -> Part[Pod]:
    return Part(informer, share.part_of(pod("a", namespace=namespace)), source(share, namespace, *names))


async def run_until(part: Part[Pod], ends: trio.Event, nursery: trio.Nursery) -> None:
    """Run a part until an event is set."""

    async def run() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(part.run)
            await ends.wait()
            inner.cancel_scope.cancel()

    nursery.start_soon(run)
    await part.wait_until_listed()


async def test_a_cache_without_parts_has_synced(informer: SharedInformer[Pod], share: KindShare[Pod]) -> None:
    assert informer.has_synced
    assert keys(informer) == []
    assert share_of(informer) is share


async def test_a_part_that_ends_is_released_and_not_deleted(
    informer: SharedInformer[Pod], share: KindShare[Pod], nursery: trio.Nursery
) -> None:
    assert share.part_of_key(f"{ONE}/a") != share.part_of_key(f"{TWO}/a")
    ends = trio.Event()
    with informer.subscribe() as notifications:
        await run_until(open_part(informer, share, ONE, "a", "b"), ends, nursery)
        await run_until(open_part(informer, share, TWO, "a"), trio.Event(), nursery)
        assert keys(informer) == [f"{ONE}/a", f"{ONE}/b", f"{TWO}/a"]
        ends.set()
        seen = [type(await anext(notifications)) for _ in range(5)]
    assert keys(informer) == [f"{TWO}/a"]
    assert seen == [Added, Added, Added, Released, Released]
    nursery.cancel_scope.cancel()


async def test_a_part_that_begins_again_is_listed_when_its_own_list_is_cached(
    autojump_clock: trio.testing.MockClock,
    informer: SharedInformer[Pod],
    share: KindShare[Pod],
    nursery: trio.Nursery,
) -> None:
    part = share.part_of(pod("a", namespace=ONE))
    listed = listing(*(pod(f"p{number}", namespace=ONE) for number in range(5)))
    first = ScriptedListWatch([listed], [[1.0, added(pod("late", 3, namespace=ONE)), None]])
    ends = trio.Event()
    with informer.subscribe(buffer_size=1, overflow="block") as slow:  # the cache waits for it
        await run_until(Part(informer, part, first), ends, nursery)
        await trio.sleep(2)
        ends.set()
        await trio.sleep(1)
        again = ScriptedListWatch([listing(pod("late", 3, namespace=ONE), version=3)], delays=[10.0])
        reopened = Part(informer, part, again)
        nursery.start_soon(reopened.run)
        for _ in range(12):  # 6 objects are added and released
            await anext(slow)
        assert keys(informer) == []
        assert informer._versions.newest(part) == ""
        await reopened.wait_until_listed()
        assert trio.current_time() == 13
        assert words(await anext(slow)) == "+late@3*"
        assert keys(informer) == [f"{ONE}/late"]
    nursery.cancel_scope.cancel()


async def test_waiting_for_a_write_ends_with_the_part(
    autojump_clock: trio.testing.MockClock,
    informer: SharedInformer[Pod],
    share: KindShare[Pod],
    nursery: trio.Nursery,
) -> None:
    ends = trio.Event()
    await run_until(open_part(informer, share, ONE, "a"), ends, nursery)
    await informer.wait_until_at_least(pod("a", 1, namespace=ONE))
    with pytest.raises(ValueError, match="is in a range that the cache of pods does not cover"):
        await informer.wait_until_at_least(pod("a", 1, namespace=TWO))
    with trio.move_on_after(5) as scope:
        await informer.wait_until_at_least(pod("a", 2, namespace=ONE))
    assert scope.cancelled_caught
    ended = trio.Event()

    async def wait() -> None:
        await informer.wait_until_at_least(pod("a", 2, namespace=ONE))
        ended.set()

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    ends.set()
    await ended.wait()
    nursery.cancel_scope.cancel()


async def test_a_part_ends_with_its_informer(share: KindShare[Pod], nursery: trio.Nursery) -> None:
    informer = SharedInformer(DividedSource(name="pods", kind=Pod, division=share))
    part = open_part(informer, share, ONE, "a")
    async with trio.open_nursery() as inner:
        nursery.start_soon(part.run)
        await inner.start(informer.run)
        await part.wait_until_listed()
        assert keys(informer) == [f"{ONE}/a"]
        inner.cancel_scope.cancel()
    await part.wait_until_listed()  # it returns


async def test_a_late_deletion_in_another_part_does_not_remove_the_new_object(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    share = KindShare(ApiListWatch(client.api(Pod)), "uid", RANGES, ShareCaches(0.0))
    informer = SharedInformer(DividedSource(name="pods", kind=Pod, division=share))
    old, new = pod("a", 1, uid="one"), pod("a", 3, uid="two")
    assert share.part_of(old) != share.part_of(new)
    ends = [deleted(pod("a", 2, uid="one")), None]
    slow = ScriptedListWatch([listing(old)], [[2.0, *ends]])
    fast = ScriptedListWatch([listing()], [[1.0, added(new), None]])
    await nursery.start(informer.run)
    with informer.subscribe() as notifications:
        for part, source in ((share.part_of(old), slow), (share.part_of(new), fast)):
            nursery.start_soon(Part(informer, part, source).run)
        seen = [words(await anext(notifications)) for _ in range(3)]
        await trio.sleep(5)
    assert [each[0] for each in seen] == ["+", "-", "+"]
    assert [*informer.lister] == [new]
    nursery.cancel_scope.cancel()
