"""The parts of a divided cache, which begin and end while it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import (
    ScriptedListWatch,
    Step,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod,
    words,
)
from trioformer import SharedInformer
from trioformer.cache import Added, ApiListWatch, Released
from trioformer.cache.informer._divided_source import DividedSource
from trioformer.cache.informer._parts import Part, share_of
from trioformer.client import Client, ObjectList
from trioformer.errors import ConnectionFailedError, ExpiredError
from trioformer.models.core_v1 import Pod, PodSpec
from trioformer.sharding._kinds import KindShare

RANGES = 3
ONE, TWO = "team-0-prod", "team-1-prod"
"""Namespaces in different ranges."""

Opens = Callable[[str], Part]


def one(name: str, version: int) -> Pod:
    return pod(name, version, namespace=ONE)


def two(name: str, version: int) -> Pod:
    return pod(name, version, namespace=TWO)


@attrs.define(eq=False)
class Cache:
    """A divided cache with a scripted source, and the parts for which the source was asked."""

    client: Client
    by: str = "namespace"
    transform: Callable[[Pod], Pod] | None = None
    source: ScriptedListWatch = attrs.field(factory=ScriptedListWatch)
    selected: list[list[str]] = attrs.field(factory=list)
    kept: Callable[[Pod], Pod | None] = attrs.field(default=lambda _: None, init=False)
    """What the last list contains of an object."""
    share: KindShare[Pod] = attrs.field(init=False)
    informer: SharedInformer[Pod] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        plain = ApiListWatch(self.client.api(Pod))
        self.share = KindShare(plain, self.by, RANGES, {}, "range")
        source = DividedSource("pods", plain, self.share, self.select)
        self.informer = SharedInformer(source, transform=self.transform)

    def select(self, parts: Collection[str], keep: Callable[[Pod], Pod | None] | None) -> ScriptedListWatch:
        self.selected.append(sorted(parts))
        self.source.keep = keep
        self.kept = keep or self.kept
        return self.source

    def part(self, namespace: str) -> str:
        return self.share.part_of(pod("a", namespace=namespace))

    def open(self, namespace: str) -> Part:
        return Part(self.informer, self.part(namespace))

    def script(self, lists: list[ObjectList[Pod] | Exception], watches: list[list[Step] | Exception]) -> None:
        self.source.lists, self.source.watches = lists, watches

    @property
    def keys(self) -> list[str]:
        return sorted(f"{each.namespace}/{each.name}" for each in self.informer.lister)

    @property
    def requests(self) -> list[str]:
        return [what for _, what in self.source.requests]


@pytest.fixture
async def cache(client: Client, nursery: trio.Nursery) -> Cache:
    cache = Cache(client)
    await nursery.start(cache.informer.run)
    return cache


async def test_a_cache_without_parts_has_synced(cache: Cache, autojump_clock: trio.testing.MockClock) -> None:
    await trio.sleep(1000)
    assert cache.informer.has_synced
    assert (cache.keys, cache.requests) == ([], [])
    assert cache.informer.statistics().reflector.lists == 0
    assert share_of(cache.informer) is cache.share


async def test_a_part_that_ends_is_released_and_not_deleted(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    # the server sends the objects of both parts each time
    cache.script([listing(one("a", 1), two("a", 1), one("b", 1))], [])
    with cache.informer.subscribe() as notifications:
        first = cache.open(ONE)
        await first.wait_until_listed()
        assert cache.keys == [f"{ONE}/a", f"{ONE}/b"]
        await cache.open(TWO).wait_until_listed()
        assert cache.keys == [f"{ONE}/a", f"{ONE}/b", f"{TWO}/a"]
        first.close()
        seen = [type(await anext(notifications)) for _ in range(5)]
    assert cache.keys == [f"{TWO}/a"]
    assert seen == [Added, Added, Added, Released, Released]
    assert cache.share.is_filtered is False


async def test_all_parts_are_listed_when_one_begins_and_then_one_watch_follows_them(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    cache.script(
        [listing(one("a", 3), version=3), listing(one("a", 5), one("b", 6), two("a", 4), version=6)],
        [[1.0, modified(one("a", 5)), None], [1.0, modified(one("a", 7)), modified(two("a", 9)), None]],
    )
    first, second = cache.part(ONE), cache.part(TWO)
    with cache.informer.subscribe() as notifications:
        await cache.open(ONE).wait_until_listed()
        await trio.sleep(2)
        assert cache.source.open_watches == 1
        (cached,) = cache.informer.lister
        await cache.open(TWO).wait_until_listed()
        assert cache.kept(one("a", 5)) is cached  # an object that has not changed needs no memory
        await trio.sleep(2)
        assert cache.requests == ["list 0", "watch 3", "list 5", "watch 6"]
        assert cache.selected == [[first], [first], *[sorted([first, second])] * 2]
        seen = [words(await anext(notifications)) for _ in range(6)]
        assert seen == ["+a@3*", "a@3→5", "+b@6", "+a@4*", "a@5→7", "a@4→9"]
    assert sorted(each.resource_version for each in cache.informer.lister) == ["6", "7", "9"]


async def test_an_object_is_transformed_again_when_it_is_listed_again(
    client: Client, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def with_node(obj: Pod) -> Pod:
        assert not obj.spec.node_name  # not transformed before
        return obj.evolve(spec=PodSpec(node_name="n", containers=()))

    cache = Cache(client, transform=with_node)
    cache.script([listing(one("a", 3), version=3), listing(one("a", 3), two("a", 4), version=6)], [])
    await nursery.start(cache.informer.run)
    for namespace in (ONE, TWO):
        await cache.open(namespace).wait_until_listed()
    assert [each.spec.node_name for each in cache.informer.lister] == ["n", "n"]


async def test_a_new_part_is_listed_again_until_a_list_succeeds(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    lost = ConnectionFailedError("no connection")
    cache.script([listing(one("a", 3), version=3), lost, lost, listing(one("a", 3), two("a", 2), version=3)], [])
    await cache.open(ONE).wait_until_listed()
    await cache.open(TWO).wait_until_listed()
    assert cache.keys == [f"{ONE}/a", f"{TWO}/a"]
    assert cache.requests[:5] == ["list 0", "watch 3", "list 3", "list 3", "list 3"]


async def test_after_a_restored_backup_all_parts_are_listed(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    """The server does not have the version from which the watch would resume."""
    cache.script(
        [
            listing(one("a", 9), version=9),
            ExpiredError("too large", code=410),
            listing(one("a", 2), two("a", 1), version=2),
        ],
        [[None], [1.0, modified(two("a", 3)), None]],
    )
    await cache.open(ONE).wait_until_listed()
    await cache.open(TWO).wait_until_listed()
    await trio.sleep(2)
    assert cache.requests == ["list 0", "watch 9", "list 9", "list ", "watch 2"]
    assert sorted(each.resource_version for each in cache.informer.lister) == ["2", "3"]


async def test_a_part_that_ends_while_it_is_listed_leaves_nothing(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    cache.script([listing(one("a", 1), two("a", 1))], [])
    cache.source.delays = [1.0, 1.0, 1.0]
    first, second = cache.open(ONE), cache.open(TWO)
    await trio.sleep(0.5)
    second.close()
    await first.wait_until_listed()
    assert cache.keys == [f"{ONE}/a"]
    third = cache.open(TWO)
    await trio.sleep(0.5)
    third.close()
    again = cache.open(TWO)
    await again.wait_until_listed()
    assert trio.current_time() == 3.0  # its own list
    assert cache.keys == [f"{ONE}/a", f"{TWO}/a"]


@pytest.mark.parametrize("is_filtered", [False, True])
async def test_the_watch_asks_for_less_after_the_end_of_a_part_if_that_helps(
    cache: Cache, autojump_clock: trio.testing.MockClock, is_filtered: bool
) -> None:
    listed = listing(one("a", 1), two("a", 1), version=1)
    cache.script([attrs.evolve(listed, shard_selector="applied" if is_filtered else "")], [])
    first, second = cache.open(ONE), cache.open(TWO)
    await first.wait_until_listed()
    await trio.sleep(1)
    second.close()
    await trio.sleep(1)
    assert cache.requests == ["list 0", "watch 1", *(["watch 1"] if is_filtered else [])]
    assert cache.selected[-1] == ([cache.part(ONE)] if is_filtered else sorted(map(cache.part, (ONE, TWO))))
    assert (cache.keys, cache.source.open_watches) == ([f"{ONE}/a"], 1)


async def test_nothing_is_watched_after_the_last_part(cache: Cache, autojump_clock: trio.testing.MockClock) -> None:
    cache.script([listing(one("a", 1), version=1)], [])
    part = cache.open(ONE)
    await part.wait_until_listed()
    await trio.sleep(1)
    assert cache.source.open_watches == 1
    part.close()
    await trio.sleep(1000)
    assert cache.source.open_watches == 0
    assert (cache.informer.has_synced, cache.keys) == (True, [])
    cache.open(TWO)
    assert cache.informer.has_synced  # not stale before its list
    await trio.sleep(1)
    assert cache.requests == ["list 0", "watch 1", "list 1", "watch 1"]


async def test_a_part_that_begins_again_is_listed_when_its_own_list_is_cached(
    cache: Cache, autojump_clock: trio.testing.MockClock
) -> None:
    part = cache.part(ONE)
    first = listing(*(one(f"p{number}", 1) for number in range(5)))
    cache.script([first, listing(one("late", 3), version=3)], [[1.0, added(one("late", 3)), None]])
    with cache.informer.subscribe(buffer_size=1, overflow="block") as slow:  # the cache waits for it
        opened = cache.open(ONE)
        await trio.sleep(2)
        opened.close()
        await trio.sleep(1)
        cache.source.delays = [10.0]
        reopened = cache.open(ONE)
        for _ in range(12):  # 6 objects are added and released
            await anext(slow)
        assert cache.keys == []
        assert cache.informer._versions.newest(part) == ""
        await reopened.wait_until_listed()
        assert trio.current_time() == 13
        assert words(await anext(slow)) == "+late@3*"
        assert cache.keys == [f"{ONE}/late"]


async def test_waiting_for_a_write_ends_with_the_part(cache: Cache, autojump_clock: trio.testing.MockClock) -> None:
    cache.script([listing(one("a", 1))], [])
    part = cache.open(ONE)
    await part.wait_until_listed()
    await cache.informer.wait_until_at_least(one("a", 1))
    with pytest.raises(ValueError, match="is in a range that the cache of pods does not cover"):
        await cache.informer.wait_until_at_least(two("a", 1))
    with trio.move_on_after(5) as scope:
        await cache.informer.wait_until_at_least(one("a", 2))
    assert scope.cancelled_caught
    async with trio.open_nursery() as waiting:
        waiting.start_soon(cache.informer.wait_until_at_least, one("a", 2))
        await trio.testing.wait_all_tasks_blocked()
        part.close()


async def test_a_bookmark_counts_for_all_parts(cache: Cache, autojump_clock: trio.testing.MockClock) -> None:
    cache.script([listing(one("a", 1), two("a", 1))], [[None], [1.0, bookmark(3), None]])
    for namespace in (ONE, TWO):
        await cache.open(namespace).wait_until_listed()
    versions, parts = cache.informer._versions, (cache.part(ONE), cache.part(TWO))
    assert [versions.newest(each) for each in parts] == ["1", "1"]
    await trio.sleep(1.5)
    assert [versions.newest(each) for each in parts] == ["3", "3"]


async def test_a_part_ends_with_its_informer(client: Client, nursery: trio.Nursery) -> None:
    cache = Cache(client)
    cache.script([listing(one("a", 1))], [])
    part = cache.open(ONE)
    async with trio.open_nursery() as inner:
        await inner.start(cache.informer.run)
        await part.wait_until_listed()
        assert cache.keys == [f"{ONE}/a"]
        inner.cancel_scope.cancel()
    await part.wait_until_listed()  # it returns
    part.close()


async def test_an_object_that_is_created_again_in_another_part(
    client: Client, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    cache = Cache(client, "uid")
    await nursery.start(cache.informer.run)
    old, new = pod("a", 1, uid="one"), pod("a", 3, uid="two")
    parts = [cache.share.part_of(each) for each in (old, new)]
    assert parts[0] != parts[1]
    cache.script([listing(old)], [[None], [[*deleted(pod("a", 2, uid="one")), *added(new)], None]])
    with cache.informer.subscribe() as notifications:
        for part in parts:
            await Part(cache.informer, part).wait_until_listed()
        seen = [words(await anext(notifications)) for _ in range(3)]
        await trio.sleep(5)
    assert seen == ["+a@1*", "-a@2", "+a@3"]
    assert [*cache.informer.lister] == [new]


async def test_an_object_whose_label_names_another_part_is_removed(
    client: Client, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    cache = Cache(client, "label")
    await nursery.start(cache.informer.run)

    def labelled(version: int, number: int) -> Pod:
        labels = {"range": f"{number}-of-{RANGES}"}
        return pod("a", version).evolve(metadata=pod("a", version).metadata.evolve(labels=labels))

    cache.script([listing(labelled(1, 0))], [[1.0, modified(labelled(2, 1)), 1.0, modified(labelled(3, 2)), None]])
    with cache.informer.subscribe() as notifications:
        parts = [Part(cache.informer, part) for part in "01"]
        await parts[0].wait_until_listed()
        seen = [words(await anext(notifications)) for _ in range(3)]
    assert [each[0] for each in seen] == ["+", "a", "-"]
