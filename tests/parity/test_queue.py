"""What client-go asserts of its queue and its controller, as a handler receives it.

The tests write to the informer's queue as its reflector does, without a checkpoint in between, so all writes are
pending together.  Against client-go's ``the_real_fifo_test.go``, ``delta_fifo_test.go``,
``controller_test.go``.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_list_watch import (
    Recorder,
    ScriptedListWatch,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod,
    reached,
)
from trioformer.cache import SharedInformer
from trioformer.cache.store._delta_fifo import Change, Deletion, DeltaFIFO, Replaced, Sync
from trioformer.errors import ExpiredError
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


@attrs.define(eq=False)
class QueueAndHandler:
    """The queue of an informer whose reflector writes only the first list, and a handler of the informer."""

    informer: SharedInformer[Pod]
    recorder: Recorder

    @property
    def queue(self) -> DeltaFIFO[Pod]:
        """The queue to which the reflector writes."""
        return self.informer._fifo

    async def notifications(self) -> list[str]:
        """Wait until nothing is pending, and return what the handler received since the last call."""
        await trio.testing.wait_all_tasks_blocked()
        seen, self.recorder.seen = self.recorder.seen, []
        return seen

    def stored(self) -> list[str]:
        """Return the objects in the store."""
        return [f"{obj.name}@{obj.resource_version}" for obj in self.informer.lister]


@asynccontextmanager
async def open_queue(*known: Pod, resync_period: float = 0.0) -> AsyncIterator[QueueAndHandler]:
    """Run an informer whose first list has been processed by its handler."""
    informer = SharedInformer(ScriptedListWatch([listing(*known)]), resync_period=resync_period)
    opened = QueueAndHandler(informer, Recorder())
    informer.add_event_handler(opened.recorder)
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        await opened.notifications()
        yield opened
        nursery.cancel_scope.cancel()


# --- deletions by a list ---


async def test_a_list_adds_an_object_whose_deletion_is_pending() -> None:
    """client-go: TestRealFIFO_replaceWithDeleteDeltaIn, TestDeltaFIFO_replaceWithDeleteDeltaIn"""
    async with open_queue(pod("foo", 1)) as opened:
        opened.queue.delete(pod("foo", 1))
        opened.queue.replace([pod("foo", 2)], "2")
        assert await opened.notifications() == ["-foo@1", "+foo@2"]
        assert opened.stored() == ["foo@2"]


ONLY_IN_THE_QUEUE: dict[str, tuple[Callable[[DeltaFIFO[Pod]], object], list[str]]] = {
    "added": (lambda queue: queue.add(pod("foo", 2)), ["+foo@2", "-foo@2?"]),
    "added and deleted": (
        lambda queue: (queue.add(pod("foo", 2)), queue.delete(pod("foo", 2))),
        ["+foo@2", "-foo@2"],
    ),
    "added and listed": (
        lambda queue: (
            queue.add(pod("foo", 2)),
            queue.replace([pod("foo", 2)], "2"),
            queue.replace([pod("foo", 2)], "3"),
        ),
        ["+foo@2", "-foo@2?"],
    ),
    "added, and missing in two lists": (
        lambda queue: (queue.add(pod("foo", 2)), queue.replace([], "2")),
        ["+foo@2", "-foo@2?"],
    ),
    "added, deleted, added": (
        lambda queue: (queue.add(pod("foo", 2)), queue.delete(pod("foo", 2)), queue.add(pod("foo", 3))),
        ["+foo@2", "-foo@2", "+foo@3", "-foo@3?"],
    ),
    "a bookmark only": (lambda queue: queue.bookmark("5"), []),
}


@pytest.mark.parametrize(("write", "expected"), ONLY_IN_THE_QUEUE.values(), ids=ONLY_IN_THE_QUEUE)
async def test_a_list_deletes_an_object_that_is_only_in_the_queue_exactly_once(
    write: Callable[[DeltaFIFO[Pod]], object], expected: list[str]
) -> None:
    """With any pending changes of it.

    client-go: TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue
    client-go: TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue
    """
    async with open_queue() as opened:
        write(opened.queue)
        opened.queue.replace([], "9")
        assert await opened.notifications() == expected
        assert opened.stored() == []


KNOWN = pod("foo", 5), pod("bar", 6), pod("baz", 7)
MISSING: dict[str, tuple[Callable[[DeltaFIFO[Pod]], object], list[Pod], list[str]]] = {
    "a deletion is pending": (
        lambda queue: queue.delete(pod("baz", 10)),
        [pod("foo", 5)],
        ["-baz@10", "-bar@6?"],
    ),
    "a newer state is pending": (
        lambda queue: queue.add(pod("baz", 10)),
        [pod("foo", 5)],
        ["baz@7→10", "-bar@6?", "-baz@10?"],
    ),
    "a deletion and an addition are pending": (
        lambda queue: (queue.delete(pod("bar", 6)), queue.add(pod("bar", 100))),
        [pod("foo", 5)],
        ["-bar@6", "+bar@100", "-baz@7?", "-bar@100?"],
    ),
    "the list has a newer state of another": (
        lambda queue: queue.delete(pod("baz", 10)),
        [pod("foo", 6)],
        ["-baz@10", "-bar@6?", "foo@5→6"],
    ),
}


@pytest.mark.parametrize(("write", "listed", "expected"), MISSING.values(), ids=MISSING)
async def test_a_list_deletes_missing_objects_of_store_and_queue_in_their_last_state(
    write: Callable[[DeltaFIFO[Pod]], object], listed: list[Pod], expected: list[str]
) -> None:
    """Stored objects keep their places, and new ones are last; client-go does not define the order of deletions.

    client-go: TestRealFIFO_ReplaceMakesDeletions, TestRealFIFO_ReplaceMakesDeletionsReplaced
    client-go: TestDeltaFIFO_ReplaceMakesDeletions, TestDeltaFIFO_ReplaceMakesDeletionsReplaced
    """
    async with open_queue(*KNOWN) as opened:
        write(opened.queue)
        opened.queue.replace(listed, "200")
        assert await opened.notifications() == expected
        assert opened.stored() == [f"{obj.name}@{obj.resource_version}" for obj in listed]


@pytest.mark.parametrize("is_applied_in_between", [True, False])
async def test_a_second_list_deletes_objects_of_the_first_one(is_applied_in_between: bool) -> None:
    """In the state that handlers received.

    client-go: TestRealFIFO_ReplaceMakesDeletions
    """
    seen: list[str] = []
    async with open_queue(*KNOWN) as opened:
        opened.queue.replace([pod("bar", 100), pod("foo", 5)], "100")
        if is_applied_in_between:
            seen += await opened.notifications()
        opened.queue.replace([pod("foo", 5)], "101")
        seen += await opened.notifications()
    assert seen == ["-baz@7?", "bar@6→100", "-bar@100?"]


# --- the order of changes ---


async def test_changes_of_every_type_reach_the_handler_in_order() -> None:
    """Deletions, too.

    client-go: TestRealFIFO_enqueueingNoLister, TestRealFIFO_enqueueingWithLister
    client-go: TestDeltaFIFO_enqueueingWithLister
    """
    async with open_queue(pod("foo", 5), pod("bar", 6), pod("baz", 7)) as opened:
        opened.queue.add(pod("foo", 10))
        opened.queue.update(pod("bar", 15))
        opened.queue.add(pod("qux", 17))
        opened.queue.delete(pod("qux", 18))
        opened.queue.delete(pod("baz", 20))
        assert await opened.notifications() == ["foo@5→10", "bar@6→15", "+qux@17", "-qux@18", "-baz@20"]
        assert len(opened.queue) == 0


async def test_an_object_that_was_added_before_a_list_is_updated_by_it() -> None:
    """client-go: TestRealFIFO_addReplace, TestDeltaFIFO_addReplace"""
    async with open_queue() as opened:
        opened.queue.add(pod("foo", 10))
        opened.queue.replace([pod("foo", 15)], "15")
        assert await opened.notifications() == ["+foo@10", "foo@10→15"]


async def test_an_object_that_changes_again_does_not_jump_the_queue() -> None:
    """client-go: TestRealFIFO_detectLineJumpers, TestDeltaFIFO_detectLineJumpers"""
    queue: DeltaFIFO[Pod] = DeltaFIFO()
    for name, version in (("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)):
        queue.add(pod(name, version))
    first = await queue.pop()
    queue.add(pod("foo", 14))
    queue.add(pod("bar", 15))
    second = await queue.pop()
    assert [versions_of(batch) for batch in (first, second)] == [
        [("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)],
        [("foo", 14), ("bar", 15)],
    ]


def versions_of(batch: object) -> list[tuple[str, int]]:
    assert isinstance(batch, list)
    return [(key_of(each).partition("/")[2], int(each.resource_version)) for each in map(object_in, batch)]


def object_in(change: Change[Pod]) -> Pod:
    found = change.object if isinstance(change, Deletion) else change
    assert isinstance(found, Pod)
    return found


async def test_changes_of_two_writers_are_popped_in_the_order_of_each_writer() -> None:
    """client-go: TestRealFIFO_basic, TestDeltaFIFO_basic"""
    queue: DeltaFIFO[Pod] = DeltaFIFO(max_pending=50)
    out: dict[str, list[int]] = {"a": [], "b": []}

    async def write(name: str) -> None:
        for version in range(1, 501):
            await queue.wait_for_room()
            queue.add(pod(name, version))
            if version % 7 == 0:
                await trio.lowlevel.checkpoint()

    async def write_all() -> None:
        async with trio.open_nursery() as writers:
            writers.start_soon(write, "a")
            writers.start_soon(write, "b")
        queue.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_all)
        with pytest.raises(trio.ClosedResourceError):  # noqa: PT012  # any pop may raise it
            while True:
                for name, version in versions_of(await queue.pop()):
                    out[name].append(version)
    assert out == {"a": list(range(1, 501)), "b": list(range(1, 501))}


CHANGES = st.lists(st.sampled_from(["add", "update", "delete", "pop", "list", "resync"]), max_size=60)


@given(CHANGES, st.randoms(use_true_random=False))
def test_with_pops_at_any_point_each_change_is_popped_once_and_in_order(steps: list[str], rng: random.Random) -> None:
    """A list is a batch of its own.

    client-go: TestRealFIFO_PopMultipleDeltaInBatch
    """
    trio.run(write_and_pop, steps, rng, clock=trio.testing.MockClock(autojump_threshold=0))


async def write_and_pop(steps: list[str], rng: random.Random) -> None:
    queue: DeltaFIFO[Pod] = DeltaFIFO()
    written: list[tuple[str, int]] = []
    out: list[tuple[str, int]] = []

    async def take() -> None:
        batch = await queue.pop()
        if isinstance(batch, Replaced):
            out.append(("a list", int(batch.resource_version)))
        elif not isinstance(batch, Sync):
            out.extend(versions_of(batch))

    for number, step in enumerate(steps, 1):
        obj = pod(rng.choice("abc"), number)
        if step == "pop":
            if len(queue):
                await take()
        elif step == "resync":
            queue.resync()
        elif step == "list":
            queue.replace([obj], str(number))
            written.append(("a list", number))
        else:
            {"add": queue.add, "update": queue.update, "delete": queue.delete}[step](obj)
            written.append((obj.name, number))
    with trio.fail_after(10):
        while len(queue):
            await take()
    assert out == written


# --- resyncs ---


async def test_a_resync_repeats_each_object_once() -> None:
    """client-go: TestRealFIFO_Resync, TestDeltaFIFO_Resync"""
    async with open_queue(pod("foo", 5), pod("bar", 6), resync_period=10) as opened:
        opened.informer._processor.mark_due(trio.current_time() + 11)
        opened.queue.resync()
        assert await opened.notifications() == ["foo@5→5", "bar@6→6"]


async def test_a_resync_does_not_repeat_an_object_whose_deletion_is_pending() -> None:
    """client-go: TestRealFIFO_ResyncNonExisting, TestDeltaFIFO_ResyncNonExisting"""
    async with open_queue(pod("foo", 5), pod("bar", 6), resync_period=10) as opened:
        opened.informer._processor.mark_due(trio.current_time() + 11)
        opened.queue.delete(pod("foo", 10))
        opened.queue.resync()
        assert await opened.notifications() == ["-foo@10", "bar@6→6"]


async def test_a_resync_never_repeats_a_state_older_than_a_pending_one() -> None:
    """client-go: TestRealFIFO_UpdateResyncRace, TestDeltaFIFO_UpdateResyncRace"""
    async with open_queue(pod("foo", 5), resync_period=10) as opened:
        opened.informer._processor.mark_due(trio.current_time() + 11)
        opened.queue.update(pod("foo", 6))
        opened.queue.resync()
        opened.queue.update(pod("foo", 7))
        assert await opened.notifications() == ["foo@5→6", "foo@6→6", "foo@6→7"]


async def test_lists_and_resyncs_are_different_items() -> None:
    """client-go: TestDeltaFIFO_ReplaceDeltaType"""
    queue: DeltaFIFO[Pod] = DeltaFIFO()
    queue.replace([pod("foo", 5)], "5")
    queue.resync()
    queue.add(pod("foo", 6))
    assert [type(await queue.pop()) for _ in range(3)] == [Replaced, Sync, list]


# --- the first sync ---


async def test_an_informer_has_synced_when_its_whole_first_list_is_applied(nursery: trio.Nursery) -> None:
    """Not while the list is pending, and never after a part of it.

    client-go: TestRealFIFO_HasSynced, TestDeltaFIFO_HasSynced, TestRealFIFO_ReplaceAtomicPop
    """
    many = [pod(f"p{number}", number + 1) for number in range(3_000)]
    informer = SharedInformer(ScriptedListWatch([listing(*many, version=3_000)]))
    states: dict[tuple[bool, int], int] = {}

    async def observe() -> None:
        while True:
            state = informer.has_synced, informer.statistics().objects
            states[state] = states.get(state, 0) + 1
            await trio.lowlevel.checkpoint()

    nursery.start_soon(observe)
    nursery.start_soon(informer.run)
    await informer.wait_until_synced()
    await trio.lowlevel.checkpoint()
    assert list(states) == [(False, 0), (True, 3_000)]
    assert states[False, 0] > 3, "the list was being applied"
    assert reached(informer) == "3000"
    nursery.cancel_scope.cancel()


async def test_an_informer_has_synced_after_an_empty_list(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestRealFIFO_HasSynced, TestDeltaFIFO_HasSynced"""
    informer = SharedInformer(ScriptedListWatch([listing()]))
    registration = informer.add_event_handler(Recorder())
    await nursery.start(informer.run)
    assert informer.has_synced
    await registration.wait_until_synced()


# --- notifications of a list ---

HISTORIES: dict[str, tuple[list[Pod], list[Pod], str, list[str]]] = {
    "an addition": ([], [pod("a", 1)], "1", ["+a@1 of 1"]),
    "nothing but deletions": ([pod("a", 1), pod("c", 2)], [], "3", ["-a@1? of 3", "-c@2? of 3"]),
    "one of each": (
        [pod("a", 1), pod("b", 2), pod("c", 3)],
        [pod("d", 5), pod("b", 4), pod("a", 1)],
        "6",
        ["-c@3? of 6", "+d@5 of 6", "b@2→4 of 6"],
    ),
    "nothing new": ([pod("a", 1)], [pod("a", 1)], "7", []),
}


@attrs.define(eq=False)
class StoreReader(Recorder):
    """Records the store's content with every notification."""

    informer: SharedInformer[Pod] | None = None
    stores: list[dict[str, str]] = attrs.field(factory=list)

    async def _note(self, what: str) -> None:
        assert self.informer is not None
        self.seen.append(f"{what} of {reached(self.informer)}")
        self.stores.append({obj.name: obj.resource_version for obj in self.informer.lister})


@pytest.mark.parametrize(("known", "listed", "version", "expected"), HISTORIES.values(), ids=HISTORIES)
async def test_a_list_notifies_of_deletions_first_and_the_store_is_complete_then(
    known: list[Pod], listed: list[Pod], version: str, expected: list[str]
) -> None:
    """client-go: TestReplaceEvents"""
    async with open_queue(*known) as opened:
        reader = StoreReader(informer=opened.informer)
        opened.informer.add_event_handler(reader)
        await opened.notifications()
        reader.seen, reader.stores = [], []
        opened.queue.replace(listed, version)
        await opened.notifications()
        assert reader.seen == expected
        assert all(each == {obj.name: obj.resource_version for obj in listed} for each in reader.stores)
        assert reached(opened.informer) == version


async def test_only_objects_of_the_first_list_are_initial(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestResetWatch"""
    first, second = listing(pod("a", 1), version=1), listing(pod("a", 2), pod("b", 3), version=3)
    informer = SharedInformer(ScriptedListWatch([first, second], [[1.0, EXPIRED]]))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(30)
    assert recorder.seen == ["+a@1*", "a@1→2", "+b@3"]


async def test_the_stores_version_follows_events_bookmarks_and_lists(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The store has each version when the handler receives the change.

    client-go: TestStoreResourceVersion, TestThreadSafeStoreRV
    """
    events = [
        1.0,
        modified(pod("a", 5)),
        1.0,
        deleted(pod("a", 6)),
        1.0,
        bookmark(9),
        1.0,
        added(pod("b", 11)),
        EXPIRED,
    ]
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a", 2), version=3), listing(pod("b", 11), version=20)], [[*events]])
    )
    reader = StoreReader(informer=informer)
    informer.add_event_handler(reader)
    await nursery.start(informer.run)
    versions = [reached(informer)]
    for _ in range(4):
        await trio.sleep(1.0)
        await trio.testing.wait_all_tasks_blocked()
        versions.append(reached(informer))
    await trio.sleep(30)
    assert versions == ["3", "5", "6", "9", "11"]
    assert reached(informer) == "20"
    assert reader.seen == ["+a@2* of 3", "a@2→5 of 5", "-a@6 of 6", "+b@11 of 11"]
