"""The queue between the reflector and the process loop.

Against client-go's ``delta_fifo_test.go`` and ``the_real_fifo_test.go``.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import pod
from trioformer.cache import BadObject, QuarantineReason
from trioformer.cache.store._delta_fifo import Delta, DeltaFIFO, Deltas, DeltaType, NamespacedSink, Replaced, Sync
from trioformer.errors import DecodeError
from trioformer.models.core_v1 import Pod


def fifo(**options: int) -> DeltaFIFO[Pod]:
    return DeltaFIFO(**options)


async def popped(queue: DeltaFIFO[Pod]) -> dict[str, list[tuple[DeltaType, str]]]:
    batch = await queue.pop()
    assert isinstance(batch, Deltas)
    return {
        key: [(delta.type, delta.object.resource_version) for delta in deltas] for key, deltas in batch.by_key.items()
    }


async def test_changes_of_a_key_keep_their_order_and_are_popped_together() -> None:
    """client-go: TestRealFIFO_addUpdate, TestDeltaFIFO_addUpdate"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.add(pod("b", 2))
    queue.update(pod("a", 3))
    queue.delete(pod("a", 4))
    assert len(queue) == 4
    assert await popped(queue) == {
        "default/a": [(DeltaType.ADDED, "1"), (DeltaType.UPDATED, "3"), (DeltaType.DELETED, "4")],
        "default/b": [(DeltaType.ADDED, "2")],
    }
    assert len(queue) == 0


async def test_two_deletions_in_a_row_are_one() -> None:
    queue = fifo()
    queue.delete(pod("a", 2))
    queue.delete(pod("a", 3))
    assert await popped(queue) == {"default/a": [(DeltaType.DELETED, "2")]}


async def test_a_deletion_of_an_object_known_only_to_the_queue_is_kept() -> None:
    """client-go: TestRealFIFO_DeleteExistingNonPropagated, TestDeltaFIFO_DeleteExistingNonPropagated"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.delete(pod("a", 2))
    assert await popped(queue) == {"default/a": [(DeltaType.ADDED, "1"), (DeltaType.DELETED, "2")]}


async def test_a_deletion_after_a_pending_list_is_kept() -> None:
    queue = fifo()
    queue.replace([pod("a", 1)], "1")
    queue.delete(pod("a", 2))
    assert isinstance(await queue.pop(), Replaced)
    assert await popped(queue) == {"default/a": [(DeltaType.DELETED, "2")]}


async def test_a_list_is_popped_after_earlier_and_before_later_changes() -> None:
    """client-go: TestRealFIFO_ReplaceAtomic"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.replace([pod("b", 2)], "2")
    queue.update(pod("b", 3))
    assert await popped(queue) == {"default/a": [(DeltaType.ADDED, "1")]}
    replaced = await queue.pop()
    assert isinstance(replaced, Replaced)
    assert ([obj.name for obj in replaced.objects], replaced.resource_version) == (["b"], "2")
    assert await popped(queue) == {"default/b": [(DeltaType.UPDATED, "3")]}


async def test_consecutive_resyncs_are_one_unless_a_change_is_between_them() -> None:
    """client-go: TestRealFIFO_ResyncAtomic"""
    queue = fifo()
    queue.resync()
    queue.resync()
    queue.add(pod("a"))
    queue.resync()
    assert [type(await queue.pop()) for _ in range(3)] == [Sync, Deltas, Sync]
    assert len(queue) == 0


async def test_each_kind_of_write_wakes_a_waiting_consumer(nursery: trio.Nursery) -> None:
    queue = fifo()
    got: list[object] = []

    async def read() -> None:
        got.extend([type(await queue.pop()) for _ in range(3)])

    nursery.start_soon(read)
    for write in (lambda: queue.add(pod("a")), queue.resync, lambda: queue.replace([], "1")):
        await trio.testing.wait_all_tasks_blocked()
        write()
    await trio.testing.wait_all_tasks_blocked()
    assert got == [Deltas, Sync, Replaced]


async def test_close_ends_a_waiting_consumer_and_rejects_writes(nursery: trio.Nursery) -> None:
    """client-go: TestRealFIFO_PopShouldUnblockWhenClosed, TestDeltaFIFO_PopShouldUnblockWhenClosed"""
    queue = fifo()

    async def read() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await queue.pop()
        closed.set()

    closed = trio.Event()
    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    queue.close()
    await closed.wait()
    with pytest.raises(trio.ClosedResourceError):
        queue.add(pod("a"))
    with pytest.raises(trio.ClosedResourceError):
        queue.resync()


async def test_changes_that_are_pending_at_close_are_still_popped() -> None:
    queue = fifo()
    queue.add(pod("a"))
    queue.close()
    assert await popped(queue) == {"default/a": [(DeltaType.ADDED, "1")]}
    with pytest.raises(trio.ClosedResourceError):
        await queue.pop()


async def test_a_writer_waits_until_fewer_than_max_pending_changes_are_pending(nursery: trio.Nursery) -> None:
    queue = fifo(max_pending=2)
    await queue.wait_for_room()
    queue.add(pod("a"))
    queue.add(pod("b"))
    resumed = trio.Event()

    async def write() -> None:
        await queue.wait_for_room()
        resumed.set()

    nursery.start_soon(write)
    await trio.testing.wait_all_tasks_blocked()
    assert not resumed.is_set()
    await queue.pop()
    await resumed.wait()


async def test_one_pop_wakes_every_writer_that_waits_for_room(nursery: trio.Nursery) -> None:
    queue = fifo(max_pending=1)
    queue.add(pod("a"))
    resumed: list[str] = []

    async def write(name: str) -> None:
        await queue.wait_for_room()
        resumed.append(name)

    nursery.start_soon(write, "first")
    nursery.start_soon(write, "second")
    await trio.testing.wait_all_tasks_blocked()
    assert resumed == []
    await queue.pop()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(resumed) == ["first", "second"]


async def test_close_wakes_a_writer_that_waits_for_room(nursery: trio.Nursery) -> None:
    queue = fifo(max_pending=1)
    queue.add(pod("a"))
    nursery.start_soon(queue.wait_for_room)
    await trio.testing.wait_all_tasks_blocked()
    queue.close()


async def test_cancelling_a_waiting_consumer_loses_nothing(nursery: trio.Nursery) -> None:
    queue = fifo()
    with trio.CancelScope() as scope:
        scope.cancel()
        await queue.pop()
    queue.add(pod("a"))
    assert list(await popped(queue)) == ["default/a"]


def test_a_delta_shows_its_type_and_object() -> None:
    obj = pod("a")
    assert Delta(DeltaType.ADDED, obj) == (DeltaType.ADDED, obj)


async def test_a_list_supersedes_a_pending_list_and_the_changes_after_it() -> None:
    """So at most one list is pending, however long the consumer is delayed."""
    queue = fifo()
    queue.add(pod("a", 1))
    for version in ("2", "3", "4"):
        queue.replace([pod("b", version)], version)
        queue.update(pod("b", 9))
        queue.resync()
    assert [type(await queue.pop()) for _ in range(2)] == [Deltas, Replaced]
    assert len(queue) == 3
    queue.replace([], "5")
    batches = [await queue.pop() for _ in range(len(queue))]
    assert [type(batch) for batch in batches] == [Sync, Deltas, Sync, Replaced]
    assert len(queue) == 0


async def test_the_newest_of_several_pending_lists_is_kept() -> None:
    queue = fifo()
    queue.replace([pod("a", 1)], "1")
    queue.replace([pod("a", 2)], "2")
    batch = await queue.pop()
    assert isinstance(batch, Replaced)
    assert batch.resource_version == "2"
    assert len(queue) == 0


async def test_a_bookmark_is_popped_with_the_changes_before_it(nursery: trio.Nursery) -> None:
    queue = fifo()
    queue.add(pod("a", 1))
    queue.bookmark("5")
    queue.replace([], "6")
    first = await queue.pop()
    assert isinstance(first, Deltas)
    assert (list(first.by_key), first.resource_versions) == (["default/a"], {"": "5"})
    await queue.pop()
    queue.bookmark("7")
    alone = await queue.pop()
    assert isinstance(alone, Deltas)
    assert (alone.by_key, alone.resource_versions) == ({}, {"": "7"})


def bad(name: str, version: str = "") -> BadObject:
    return BadObject(f"default/{name}", QuarantineReason.UNDECODABLE, DecodeError("no"), version)


async def test_a_bad_state_keeps_its_place_among_the_changes_of_its_key() -> None:
    queue = fifo()
    queue.update(pod("a", 1))
    queue.quarantine(bad("a", "2"))
    queue.update(pod("a", 3))
    queue.delete(pod("a", 4))
    queue.delete(pod("a", 5))
    queue.quarantine(bad("b", "6"))
    queue.delete_key("default/b", "7")
    queue.delete(pod("b", 8))
    assert len(queue) == 6
    batch = await queue.pop()
    assert isinstance(batch, Deltas)
    changes = [type(each).__name__ for each in batch.by_key["default/a"]]
    assert changes == ["Delta", "BadObject", "Delta", "Delta"]
    assert [type(each).__name__ for each in batch.by_key["default/b"]] == ["BadObject", "DeletedKey"]
    assert batch.resource_versions == {"": "7"}


async def test_the_bad_states_of_a_namespace_advance_only_its_version() -> None:
    queue = fifo()
    sink = NamespacedSink(queue, "shop")
    sink.quarantine(BadObject("", QuarantineReason.UNDECODABLE, DecodeError("no"), "6"))
    sink.delete_key("shop/a", "7")
    batch = await queue.pop()
    assert isinstance(batch, Deltas)
    assert (list(batch.by_key), batch.resource_versions) == (["shop/", "shop/a"], {"shop": "7"})
    nameless = BadObject("", QuarantineReason.UNDECODABLE, DecodeError("no"))
    sink.replace([], "9", bad={"": nameless})
    listed = await queue.pop()
    assert isinstance(listed, Replaced)
    assert list(listed.bad) == ["shop/"]


async def test_objects_undecodable_in_a_list_are_kept_from_the_one_it_supersedes() -> None:
    queue = fifo()
    queue.replace([pod("a", 1), pod("x", 7), pod("y", 7), pod("z", 7)], "8")
    queue.update(pod("y", 9))
    queue.delete(pod("z", 9))
    queue.quarantine(bad("x", "8"))
    keys = {f"default/{name}" for name in "xyzw"}
    queue.replace([pod("a", 10)], "10", bad={f"default/{name}": bad(name) for name in "xyzw"})
    batch = await queue.pop()
    assert isinstance(batch, Replaced)
    assert [f"{obj.name}@{obj.resource_version}" for obj in batch.objects] == ["a@10", "x@7", "y@9"]
    assert batch.bad.keys() == keys, "also those of which there is an earlier state"
    assert len(queue) == 0


async def test_all_states_of_a_list_are_kept_if_its_successor_has_a_nameless_object() -> None:
    queue = fifo()
    queue.replace([pod("a", 1), pod("b", 2), pod("gone", 3)], "5")
    queue.add(pod("new", 7))
    queue.delete(pod("gone", 8))
    nameless = BadObject("", QuarantineReason.UNDECODABLE, DecodeError("no"))
    queue.replace([pod("a", 9)], "9", bad={"": nameless, "default/b": bad("b", "6")})
    batch = await queue.pop()
    assert isinstance(batch, Replaced)
    assert [f"{obj.name}@{obj.resource_version}" for obj in batch.objects] == ["a@9", "b@2", "new@7"]
    versions = {key: each.resource_version for key, each in batch.bad.items()}
    assert versions == {"": "", "default/b": "6", "default/new": ""}, "each may be the object without a key"
    assert "which it may be" in str(batch.bad["default/new"].error)
    assert str(batch.bad[""].error) == "no"
    assert all(key == each.key for key, each in batch.bad.items())


async def test_a_nameless_object_keeps_only_the_states_of_its_namespace() -> None:
    queue = fifo()
    one, two = NamespacedSink(queue, "one"), NamespacedSink(queue, "two")
    one.replace([pod("a", 1, namespace="one")], "1")
    two.add(pod("b", 2, namespace="two"))
    one.replace([], "3", bad={"": BadObject("", QuarantineReason.UNDECODABLE, DecodeError("no"))})
    assert list(await popped(queue)) == ["two/b"]
    batch = await queue.pop()
    assert isinstance(batch, Replaced)
    assert ([obj.namespace for obj in batch.objects], sorted(batch.bad)) == (["one"], ["one/", "one/a"])


async def test_a_state_from_a_dropped_list_does_not_replace_one_of_its_successor() -> None:
    queue = fifo()
    queue.replace([pod("a", 1)], "1")
    queue.replace([pod("a", 2)], "3", bad={"default/a": bad("a", "3")})
    batch = await queue.pop()
    assert isinstance(batch, Replaced)
    assert [obj.resource_version for obj in batch.objects] == ["2"]
