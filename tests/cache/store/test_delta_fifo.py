"""The queue between the reflector and the process loop.

Against client-go's ``delta_fifo_test.go`` and ``the_real_fifo_test.go``.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import pod
from trioformer.cache._bad_objects import BadObject, QuarantineReason
from trioformer.cache.store._delta_fifo import Bookmark, Deletion, DeltaFIFO, NamespacedSink, Replaced, Sync
from trioformer.errors import DecodeError
from trioformer.models.core_v1 import Pod


def fifo(**options: int) -> DeltaFIFO[Pod]:
    return DeltaFIFO(**options)


async def popped(queue: DeltaFIFO[Pod]) -> str:
    """Pop a batch of changes."""
    batch = await queue.pop()
    assert isinstance(batch, list)
    words: list[str] = []
    for change in batch:
        if isinstance(change, Bookmark):
            words.append(f"{change.namespace}@{change.resource_version}")
        elif isinstance(change, Deletion):
            words.append(f"-{change.key.rpartition('/')[2]}@{change.resource_version}")
        elif isinstance(change, BadObject):
            words.append(f"!{change.key.rpartition('/')[2]}@{change.resource_version}")
        else:
            words.append(f"{change.name}@{change.resource_version}")
    return " ".join(words)


async def test_changes_keep_their_order_across_objects_and_none_is_merged() -> None:
    """client-go: TestRealFIFO_addUpdate, TestDeltaFIFO_addUpdate"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.add(pod("b", 2))
    queue.update(pod("a", 3))
    queue.delete(pod("a", 4))
    queue.delete(pod("a", 5))
    queue.bookmark("6")
    assert len(queue) == 6
    assert await popped(queue) == "a@1 b@2 a@3 -a@4 -a@5 @6"
    assert len(queue) == 0


async def test_a_deletion_of_an_object_known_only_to_the_queue_is_kept() -> None:
    """client-go: TestRealFIFO_DeleteExistingNonPropagated, TestDeltaFIFO_DeleteExistingNonPropagated"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.delete(pod("a", 2))
    assert await popped(queue) == "a@1 -a@2"


async def test_a_list_is_popped_after_earlier_and_before_later_changes() -> None:
    """client-go: TestRealFIFO_ReplaceAtomic"""
    queue = fifo()
    queue.add(pod("a", 1))
    queue.replace([pod("b", 2)], "2")
    queue.update(pod("b", 3))
    assert await popped(queue) == "a@1"
    replaced = await queue.pop()
    assert isinstance(replaced, Replaced)
    assert ([obj.name for obj in replaced.objects], replaced.resource_version) == (["b"], "2")
    assert await popped(queue) == "b@3"


async def test_consecutive_resyncs_are_one_unless_a_change_is_between_them() -> None:
    """client-go: TestRealFIFO_ResyncAtomic"""
    queue = fifo()
    queue.resync()
    queue.resync()
    queue.add(pod("a"))
    queue.resync()
    assert [type(await queue.pop()) for _ in range(3)] == [Sync, list, Sync]
    assert len(queue) == 0


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
    assert await popped(queue) == "a@1"
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
    assert await popped(queue) == "a@1"


async def test_a_pending_list_leaves_no_room() -> None:
    """So at most one list of each writer is pending, however long the consumer is delayed."""
    queue = fifo()
    queue.replace([pod("a", 1)], "1")
    assert not queue.has_room
    await queue.pop()
    assert queue.has_room


def bad(name: str, version: str = "") -> BadObject:
    return BadObject(f"default/{name}", QuarantineReason.UNDECODABLE, DecodeError("no"), version)


async def test_a_bad_state_keeps_its_place_among_the_changes() -> None:
    queue = fifo()
    queue.update(pod("a", 1))
    queue.quarantine(bad("a", "2"))
    queue.update(pod("a", 3))
    queue.quarantine(bad("b", "6"))
    queue.delete_key("default/b", "7")
    assert await popped(queue) == "a@1 !a@2 a@3 !b@6 -b@7"


async def test_lists_and_bookmarks_of_a_namespace_are_about_it_alone() -> None:
    queue = fifo()
    sink = NamespacedSink(queue, "shop")
    sink.bookmark("6")
    assert await popped(queue) == "shop@6"
    sink.replace([], "9", bad={})
    listed = await queue.pop()
    assert isinstance(listed, Replaced)
    assert listed.parts == ("shop",)
    assert sink.has_room


class Consumer:
    """Applies at most ``most`` changes of a batch immediately, and pops the others."""

    def __init__(self, queue: DeltaFIFO[Pod], most: int) -> None:
        self.queue, self.most = queue, most
        self.now: list[str] = []
        self.popped: list[str] = []
        queue.apply_now = self.apply_now

    def apply_now(self, batch: list[object]) -> int:
        applied = batch[: self.most]
        self.now += [change.name for change in applied if isinstance(change, Pod)]
        return len(applied)

    async def run(self) -> None:
        while not self.popped:
            self.popped += (await popped(self.queue)).split()


def put(queue: DeltaFIFO[Pod], *names: str) -> None:
    queue.hold()
    for name in names:
        queue.add(pod(name, 1))
    queue.release()


async def test_a_batch_for_an_idle_consumer_is_applied_before_the_next_checkpoint(nursery: trio.Nursery) -> None:
    queue = fifo()
    consumer = Consumer(queue, 10)
    nursery.start_soon(consumer.run)
    await trio.testing.wait_all_tasks_blocked()
    put(queue, "a", "b")
    put(queue, "c")
    assert consumer.now == ["a", "b", "c"]
    assert len(queue) == 0
    assert queue.has_room
    await trio.testing.wait_all_tasks_blocked()
    assert consumer.popped == []


async def test_changes_that_the_consumer_leaves_are_popped_in_order(nursery: trio.Nursery) -> None:
    queue = fifo(max_pending=2)
    consumer = Consumer(queue, 1)
    nursery.start_soon(consumer.run)
    await trio.testing.wait_all_tasks_blocked()
    put(queue, "a", "b", "c")
    assert consumer.now == ["a"]
    assert len(queue) == 2
    assert not queue.has_room
    put(queue, "d")  # must not overtake the others
    await trio.testing.wait_all_tasks_blocked()
    assert (consumer.now, consumer.popped) == (["a", "b"], ["c@1", "d@1"])
    assert queue.has_room


async def test_a_batch_is_not_applied_while_the_consumer_is_busy_or_another_batch_waits(nursery: trio.Nursery) -> None:
    queue = fifo()
    consumer = Consumer(queue, 10)
    put(queue, "a")  # the consumer has not started
    assert consumer.now == []
    nursery.start_soon(consumer.run)
    await trio.testing.wait_all_tasks_blocked()
    assert consumer.popped == ["a@1"]  # and the consumer has ended
    nursery.start_soon(queue.pop)
    await trio.testing.wait_all_tasks_blocked()
    queue.resync()
    put(queue, "b")  # after the resync
    assert consumer.now == []
    assert len(queue) == 2


async def test_nothing_is_applied_while_a_list_waits(nursery: trio.Nursery) -> None:
    queue = fifo()
    consumer = Consumer(queue, 10)
    nursery.start_soon(consumer.run)
    await trio.testing.wait_all_tasks_blocked()
    queue.add(pod("a", 1))
    queue.replace([pod("b", 2)], "2")
    put(queue, "c")
    assert consumer.now == []
    assert len(queue) == 3


async def test_an_exception_of_the_consumer_is_raised_by_pop_and_not_by_the_reflector(nursery: trio.Nursery) -> None:
    queue = fifo()

    def fail(batch: list[object]) -> int:
        raise DecodeError("of a program's class")

    queue.apply_now = fail
    raised: list[Exception] = []

    async def consume() -> None:
        try:
            await queue.pop()
        except DecodeError as error:
            raised.append(error)

    nursery.start_soon(consume)
    await trio.testing.wait_all_tasks_blocked()
    put(queue, "a", "b")
    await trio.testing.wait_all_tasks_blocked()
    assert len(raised) == 1
    assert len(queue) == 0
