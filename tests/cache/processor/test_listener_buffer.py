"""The bounded buffer of one listener: overflow, shared batches, and the order of states."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scripted_list_watch import pod, words
from trioformer.cache import Added, Deleted, Notification, Updated
from trioformer.cache.processor._listener_buffer import ListenerBuffer
from trioformer.cache.processor._notifications import BatchKind, SharedBatch, object_of
from trioformer.models.core_v1 import Pod


def new_buffer(
    size: int = 2, overflow: str = "coalesce", patience: float = 60, snapshot: tuple[Pod, ...] = ()
) -> ListenerBuffer[Pod]:
    return ListenerBuffer(lambda: snapshot, buffer_size=size, overflow=overflow, patience=patience)  # type: ignore[arg-type]  # also invalid ones


def initial(*pods: Pod) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.INITIAL, pods)


def resync(*pods: Pod) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.RESYNC, pods)


def relist(*changes: Notification[Pod]) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.RELIST, changes=changes)


async def take_ready(buffer: ListenerBuffer[Pod]) -> Notification[Pod] | None:
    """Take the next notification; None if ``take`` would wait.  Needs ``autojump_clock``."""
    with trio.move_on_after(1):
        return await buffer.take()
    return None


async def drain(buffer: ListenerBuffer[Pod]) -> list[str]:
    """Take every notification that is ready, as short texts."""
    seen: list[str] = []
    while (notification := await take_ready(buffer)) is not None:
        seen.append(words(notification))
    return seen


async def test_notifications_are_taken_in_order(autojump_clock: trio.testing.MockClock) -> None:
    buffer = new_buffer(size=8)
    a1, a2 = pod("a", 1), pod("a", 2)
    for notification in (Added(a1), Updated(a1, a2), Deleted(a2)):
        buffer.put(notification)
    assert await drain(buffer) == ["+a@1", "a@1→2", "-a@2"]
    assert buffer.statistics().delivered == 3


@pytest.mark.parametrize(
    ("notifications", "merged"),
    [
        (["+1", "~1-2"], ["+a@2"]),
        (["~1-2", "~2-3"], ["a@1→3"]),
        (["~1-2", "-2"], ["-a@2"]),
        (["+1", "-1"], []),
        (["+1", "-1", "+2"], ["+a@2"]),
        (["-1", "+2"], ["-a@1", "+a@2"]),
        (["-1", "+2", "~2-3"], ["-a@1", "+a@3"]),
        (["-1", "+2", "-2"], ["-a@1"]),
        (["-1", "+2", "-2", "+3"], ["-a@1", "+a@3"]),
    ],
)
async def test_pending_notifications_of_an_object_merge(
    notifications: list[str], merged: list[str], autojump_clock: trio.testing.MockClock
) -> None:
    buffer = new_buffer(size=1)
    buffer.put(Added(pod("filler")))
    for word in notifications:
        buffer.put(notification(word))
    assert await drain(buffer) == ["+filler@1", *merged]


def distribute(buffer: ListenerBuffer[Pod], batch: SharedBatch[Pod]) -> None:
    """Put a batch as the processor does."""
    if not buffer.put_batch(batch):
        for change in batch.changes:
            buffer.put(change)


def notification(word: str) -> Notification[Pod]:
    """Parse ``+1`` (added at 1), ``~1-2`` (updated from 1 to 2) and ``-2`` (deleted at 2); always of pod a."""
    if word[0] == "~":
        old, new = word[1:].split("-")
        return Updated(pod("a", old), pod("a", new))
    return Added(pod("a", word[1:])) if word[0] == "+" else Deleted(pod("a", word[1:]))


async def test_has_synced_is_set_when_the_last_initial_object_was_processed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestSingleFileCounting, TestSingleFile"""
    buffer = new_buffer()
    buffer.put_batch(initial(pod("a"), pod("b")))
    assert words(await buffer.take()) == "+a@1*"
    assert words(await buffer.take()) == "+b@1*"
    assert not buffer.has_synced
    buffer.put(Added(pod("c")))
    await buffer.take()
    assert buffer.has_synced


async def test_a_batch_takes_one_place_and_is_not_copied(autojump_clock: trio.testing.MockClock) -> None:
    buffer = new_buffer(size=1)
    buffer.put_batch(initial(*(pod(str(n)) for n in range(50))))
    assert buffer.statistics().buffered == 1
    assert len(await drain(buffer)) == 50


async def test_a_relist_behind_an_unread_batch_is_merged_object_by_object(
    autojump_clock: trio.testing.MockClock,
) -> None:
    buffer = new_buffer()
    distribute(buffer, relist(Added(pod("a", 1))))
    distribute(buffer, relist(Updated(pod("a", 1), pod("a", 2)), Added(pod("b", 2))))
    distribute(buffer, relist(Updated(pod("a", 2), pod("a", 3))))
    assert buffer.statistics().pending_objects == 2
    assert await drain(buffer) == ["+a@1", "a@1→2", "+b@2", "a@2→3"]


async def test_a_held_resync_wakes_the_waiting_listener_when_it_is_released(
    autojump_clock: trio.testing.MockClock,
) -> None:
    buffer = new_buffer(snapshot=(pod("a", 5),))
    buffer.begin_merging()
    assert buffer.put_batch(resync(pod("a", 1)))
    taken: list[str] = []

    async def read() -> None:
        taken.append(words(await buffer.take()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        assert taken == []
        buffer.end_merging()
    assert taken == ["a@5→5"]


async def test_a_resync_behind_an_unread_batch_is_deferred_and_read_from_the_cache(
    autojump_clock: trio.testing.MockClock,
) -> None:
    now = pod("a", 5)
    buffer = new_buffer(snapshot=(now,))
    buffer.put_batch(resync(pod("a", 1)))
    buffer.put_batch(resync(pod("a", 2)))
    buffer.put_batch(resync(pod("a", 3)))
    assert words(await buffer.take()) == "a@1→1"
    assert words(await buffer.take()) == "a@5→5"
    assert buffer.statistics().buffered == buffer.statistics().pending_objects == 0


@pytest.mark.parametrize("is_merging", [False, True], ids=["full buffer", "merging"])
async def test_a_resync_that_was_put_off_is_delivered_although_changes_keep_coming(
    is_merging: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """Another object changes whenever the listener takes a notification, so the listener never catches up."""
    newest = {name: pod(name, 1) for name in "abc"}
    buffer = ListenerBuffer(lambda: tuple(newest.values()), buffer_size=1)
    buffer.put_batch(initial(*newest.values()))

    def change(name: str, version: int) -> None:
        old, newest[name] = newest[name], pod(name, version)
        buffer.put(Updated(old, newest[name]))

    for _ in newest:
        await buffer.take()
    if is_merging:
        change("b", 2)
        change("c", 2)
    else:
        change("b", 2)
    buffer.put_batch(resync(*newest.values()))
    seen: list[str] = []
    for version in range(3, 13):
        change("bc"[version % 2], version)
        seen.append(words(await buffer.take()))
    assert "a@1→1" in seen


async def test_a_resync_that_was_put_off_leaves_out_objects_with_pending_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The cache has their changes already, so a resync would deliver them before the changes."""
    a1, b1, b2, c2 = pod("a", 1), pod("b", 1), pod("b", 2), pod("c", 2)
    buffer = new_buffer(size=1, snapshot=(a1, b2, c2))
    buffer.put(Added(a1))
    buffer.put_batch(resync(a1, b1))
    buffer.put(Updated(b1, b2))
    buffer.put(Added(c2))
    buffer.put(Deleted(c2))
    buffer.put(Added(c2))
    assert await drain(buffer) == ["+a@1", "a@1→1", "b@1→2", "+c@2"]


async def test_a_place_of_a_resync_that_is_reached_while_a_relist_merges_waits_for_its_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    a1, a2 = pod("a", 1), pod("a", 2)
    buffer = new_buffer(size=1, snapshot=(a2,))
    buffer.put(Added(a1))
    buffer.put_batch(resync(a1))
    buffer.begin_merging()
    assert await drain(buffer) == ["+a@1"]
    buffer.put_batch(resync(a2))
    buffer.put(Updated(a1, a2))
    buffer.end_merging()
    assert await drain(buffer) == ["a@1→2", "a@2→2"]


async def test_block_keeps_everything_and_the_writer_waits_for_the_listener(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    buffer = new_buffer(size=1, overflow="block")
    states = [pod("a", n) for n in range(1, 5)]
    buffer.put(Added(states[0]))
    for old, new in pairwise(states):
        buffer.put(Updated(old, new))
    distribute(buffer, relist(Deleted(states[-1])))
    caught_up = trio.Event()

    async def write() -> None:
        await buffer.wait_for_room()
        caught_up.set()

    nursery.start_soon(write)
    seen = []
    for _ in range(4):
        await trio.testing.wait_all_tasks_blocked()
        assert not caught_up.is_set()
        seen.append(words(await buffer.take()))
    await caught_up.wait()
    seen.append(words(await buffer.take()))
    assert seen == ["+a@1", "a@1→2", "a@2→3", "a@3→4", "-a@4"]


async def test_block_breaks_a_buffer_whose_listener_takes_nothing_for_its_patience(
    autojump_clock: trio.testing.MockClock,
) -> None:
    buffer = new_buffer(size=1, overflow="block", patience=60)
    for n in range(3):
        buffer.put(Added(pod(str(n))))
    began = trio.current_time()
    await buffer.wait_for_room()
    assert trio.current_time() - began == 60
    assert buffer.broken_because == "it took no notification for 60 s"
    with pytest.raises(trio.BrokenResourceError, match="fell behind: it took no notification for 60 s"):
        await buffer.take()


@pytest.mark.parametrize("waiting", [True, False])
async def test_close_ends_the_listener_and_drops_unread_notifications(
    waiting: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    buffer = new_buffer()
    ended = trio.Event()

    async def read() -> None:
        with pytest.raises(trio.EndOfChannel):
            await buffer.take()
        ended.set()

    if waiting:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        buffer.close()
    else:
        buffer.put(Added(pod("a")))
        buffer.close()
        nursery.start_soon(read)
    await ended.wait()
    buffer.put(Added(pod("b")))
    assert buffer.statistics().buffered == 0 or not waiting


async def test_the_backlog_moves_when_a_waiting_listener_gets_its_item_directly(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The buffer is still full then, although the listener took an item."""
    buffer = new_buffer(size=2, overflow="block")
    seen: list[str] = []

    async def read() -> None:
        while True:
            seen.append(words(await buffer.take()))

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    for n in range(8):
        buffer.put(Added(pod(str(n))))
    await buffer.wait_for_room()
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [f"+{n}@1" for n in range(8)]
    nursery.cancel_scope.cancel()


async def test_patience_does_not_run_out_in_the_middle_of_a_long_batch(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    buffer = new_buffer(size=1, overflow="block", patience=60)
    buffer.put_batch(initial(*[pod("a")] * 500))

    async def read_slowly() -> None:
        for _ in range(503):
            await buffer.take()
            await trio.sleep(1)

    nursery.start_soon(read_slowly)
    await trio.sleep(1.5)
    for n in range(3):
        buffer.put(Added(pod(str(n))))
    await buffer.wait_for_room()
    assert buffer.broken_because is None


async def test_a_buffer_closed_before_the_last_initial_object_has_not_synced(
    autojump_clock: trio.testing.MockClock,
) -> None:
    buffer = new_buffer()
    buffer.put_batch(initial(pod("a"), pod("b")))
    await buffer.take()
    buffer.close()
    with pytest.raises(trio.EndOfChannel):
        await buffer.take()
    assert not buffer.has_synced
    with pytest.raises(trio.ClosedResourceError, match="before it synced"):
        await buffer.wait_until_synced()


async def test_a_cancelled_take_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    buffer = new_buffer()
    with trio.CancelScope() as scope:
        scope.cancel()
        await buffer.take()
    buffer.put(Added(pod("a")))
    assert await drain(buffer) == ["+a@1"]


async def test_a_second_task_that_takes_is_refused_and_the_first_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    buffer, taken = new_buffer(), list[str]()

    async def read() -> None:
        taken.append(words(await buffer.take()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="another task is reading this subscription"):
            await buffer.take()
        buffer.put(Added(pod("a")))
    assert taken == ["+a@1"]
    buffer.put(Added(pod("b")))
    assert await drain(buffer) == ["+b@1"], "one task after another is allowed"


async def test_a_paused_buffer_keeps_nothing_and_begins_with_its_initial_objects(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    buffer = ListenerBuffer[Pod](tuple, overflow="block", is_paused=True)
    for _ in range(2_000):
        buffer.put(Added(pod("a")))
        buffer.put_batch(initial(pod("a")))
        buffer.put_batch(resync(pod("a")))
    await buffer.wait_for_room()
    assert buffer.statistics().buffered == 0
    assert await drain(buffer) == []
    buffer.start()
    buffer.put_batch(initial(pod("b")))
    assert await drain(buffer) == ["+b@1*"]
    assert buffer.has_synced


async def test_take_checkpoints_even_when_something_is_always_ready(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    buffer = new_buffer(size=4_000)
    buffer.put_batch(initial(*[pod("a")] * 5_000))
    others_ran = 0

    async def other() -> None:
        nonlocal others_ran
        while True:
            await trio.lowlevel.checkpoint()
            others_ran += 1

    nursery.start_soon(other)
    for _ in range(5_000):
        await buffer.take()
    assert others_ran >= 3
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "message"), [((0, "coalesce"), "buffer_size must be at least 1"), ((1, "drop"), "overflow must be")]
)
def test_invalid_options_are_rejected(options: tuple[int, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        new_buffer(*options)


# --- a listener always receives a subsequence of each object's states that ends with the newest ---

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("abcd")),
        st.tuples(st.just("delete"), st.sampled_from("abcd")),
        st.tuples(st.just("recreate"), st.sampled_from("abcd")),
        st.tuples(st.just("relist"), st.sampled_from("abcd")),
        st.tuples(st.just("resync"), st.just("")),
        st.tuples(st.just("read"), st.just("")),
    ),
    max_size=80,
)


@settings(max_examples=150)
@given(STEPS, st.integers(1, 4))
def test_a_coalescing_listener_never_receives_states_out_of_order(steps: list[tuple[str, str]], size: int) -> None:
    trio.run(drive, steps, size, clock=trio.testing.MockClock(autojump_threshold=0))


async def drive(steps: list[tuple[str, str]], size: int) -> None:
    store: dict[str, Pod] = {}
    known: dict[str, Pod] = {}
    buffer = ListenerBuffer(lambda: tuple(store.values()), buffer_size=size)
    buffer.put_batch(initial())
    since_resync: set[str] = set()

    def check(taken: Notification[Pod]) -> None:
        since_resync.add(object_of(taken).name)
        if isinstance(taken, Added):
            assert taken.object.name not in known
            known[taken.object.name] = taken.object
        elif isinstance(taken, Updated):
            assert known[taken.old.name] is taken.old
            assert int(taken.new.resource_version) >= int(taken.old.resource_version)
            known[taken.new.name] = taken.new
        else:
            del known[taken.object.name]

    has_resync = False
    for version, (what, name) in enumerate(steps):
        old = store.get(name)
        if what == "read":
            if (taken := await take_ready(buffer)) is not None:
                check(taken)
        elif what == "resync":
            buffer.put_batch(resync(*store.values()))
            since_resync.clear()
            has_resync = True
        elif what == "delete":
            if old is not None:
                del store[name]
                buffer.put(Deleted(old))
        else:
            new = store[name] = pod(name, version, uid=f"{name}-{version}" if what == "recreate" else "u")
            changes: list[Notification[Pod]] = [Added(new)] if old is None else [Updated(old, new)]
            if old is not None and what == "recreate":
                changes = [Deleted(old), Added(new)]
            if what == "relist":
                # The cache has all changes of a relist, and a listener that is behind is called between them.
                if not buffer.put_batch(relist(*changes)):
                    buffer.begin_merging()
                    for change in changes:
                        if (taken := await take_ready(buffer)) is not None:
                            check(taken)
                        buffer.put(change)
                    buffer.end_merging()
            else:
                for change in changes:
                    buffer.put(change)
        statistics = buffer.statistics()
        assert statistics.buffered <= size
        assert statistics.pending_objects <= 4
    while (taken := await take_ready(buffer)) is not None:
        check(taken)
    assert known == store
    assert buffer.has_synced
    assert not has_resync or store.keys() <= since_resync, "a resync was lost"


async def test_starting_a_closed_buffer_does_not_open_it(autojump_clock: trio.testing.MockClock) -> None:
    buffer = ListenerBuffer[Pod](tuple, is_paused=True)
    buffer.close()
    buffer.start()
    buffer.put(Added(pod("a")))
    with pytest.raises(trio.EndOfChannel):
        await buffer.take()
