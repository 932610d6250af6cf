"""One reader's bounded queue: overflow, shared batches, and that states are never told out of order."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scripted_list_watch import pod, words
from trioformer.cache import Added, Deleted, Notification, Updated
from trioformer.cache.processor._listener_buffer import BatchKind, ListenerBuffer, SharedBatch
from trioformer.models.core_v1 import Pod


def buffer(
    size: int = 2, overflow: str = "coalesce", patience: float = 60, snapshot: tuple[Pod, ...] = ()
) -> ListenerBuffer[Pod]:
    return ListenerBuffer(lambda: snapshot, buffer_size=size, overflow=overflow, patience=patience)  # type: ignore[arg-type]  # also wrong ones


def initial(*pods: Pod) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.INITIAL, pods)


def resync(*pods: Pod) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.RESYNC, pods)


def relist(*changes: Notification[Pod]) -> SharedBatch[Pod]:
    return SharedBatch(BatchKind.RELIST, changes=changes)


async def ready(box: ListenerBuffer[Pod]) -> Notification[Pod] | None:
    """The next notification, or None when the reader would wait; needs a clock that jumps."""
    with trio.move_on_after(1):
        return await box.take()
    return None


async def drain(box: ListenerBuffer[Pod]) -> list[str]:
    """Everything that is ready now, in short words."""
    seen: list[str] = []
    while (notification := await ready(box)) is not None:
        seen.append(words(notification))
    return seen


async def test_notifications_come_out_in_order(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer(size=8)
    a1, a2 = pod("a", 1), pod("a", 2)
    for notification in (Added(a1), Updated(a1, a2), Deleted(a2)):
        box.put(notification)
    assert await drain(box) == ["+a@1", "a@1→2", "-a@2"]
    assert box.statistics().delivered == 3


@pytest.mark.parametrize(
    ("told", "merged"),
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
    told: list[str], merged: list[str], autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=1)
    box.put(Added(pod("filler")))
    for word in told:
        box.put(notification(word))
    assert await drain(box) == ["+filler@1", *merged]


def tell(box: ListenerBuffer[Pod], batch: SharedBatch[Pod]) -> None:
    """Queue a batch as the processor does."""
    if not box.put_batch(batch):
        for change in batch.changes:
            box.put(change)


def notification(word: str) -> Notification[Pod]:
    """``+1`` added at 1, ``~1-2`` updated from 1 to 2, ``-2`` deleted at 2; always of pod a."""
    if word[0] == "~":
        old, new = word[1:].split("-")
        return Updated(pod("a", old), pod("a", new))
    return Added(pod("a", word[1:])) if word[0] == "+" else Deleted(pod("a", word[1:]))


async def test_what_comes_while_something_is_pending_waits_behind_it(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer(size=1)
    box.put(Added(pod("a", 1)))
    box.put(Updated(pod("a", 1), pod("a", 2)))  # pending
    assert words(await box.take()) == "+a@1"
    box.put(Updated(pod("a", 2), pod("a", 3)))  # the buffer has room, but a@2 has not been told yet
    assert await drain(box) == ["a@1→3"]
    assert box.statistics().coalesced == 1


async def test_has_synced_is_set_when_the_reader_comes_back_from_the_last_initial_object(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestSingleFileCounting, TestSingleFile"""
    box = buffer()
    box.put_batch(initial(pod("a"), pod("b")))
    assert words(await box.take()) == "+a@1*"
    assert words(await box.take()) == "+b@1*"
    assert not box.has_synced
    box.put(Added(pod("c")))
    await box.take()
    assert box.has_synced


async def test_an_empty_initial_batch_syncs_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer()
    box.put_batch(initial())
    nursery.start_soon(box.take)
    await box.wait_until_synced()
    nursery.cancel_scope.cancel()


async def test_a_batch_takes_one_place_and_is_not_copied(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer(size=1)
    box.put_batch(initial(*(pod(str(n)) for n in range(50))))
    assert box.statistics().buffered == 1
    assert len(await drain(box)) == 50


async def test_a_relist_behind_an_unread_batch_is_told_object_by_object(
    autojump_clock: trio.testing.MockClock,
) -> None:
    box = buffer()
    tell(box, relist(Added(pod("a", 1))))
    tell(box, relist(Updated(pod("a", 1), pod("a", 2)), Added(pod("b", 2))))
    tell(box, relist(Updated(pod("a", 2), pod("a", 3))))
    assert box.statistics().pending_objects == 2
    assert await drain(box) == ["+a@1", "a@1→2", "+b@2", "a@2→3"]


async def test_a_resync_that_was_held_off_wakes_the_reader_that_waits_for_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    box = buffer(snapshot=(pod("a", 5),))
    box.hold_resync()
    assert box.put_batch(resync(pod("a", 1)))
    taken: list[str] = []

    async def read() -> None:
        taken.append(words(await box.take()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        assert taken == []
        box.release_resync()
    assert taken == ["a@5→5"]


async def test_a_resync_behind_an_unread_batch_is_put_off_and_then_read_from_the_store(
    autojump_clock: trio.testing.MockClock,
) -> None:
    now = pod("a", 5)
    box = buffer(snapshot=(now,))
    box.put_batch(resync(pod("a", 1)))
    box.put_batch(resync(pod("a", 2)))
    box.put_batch(resync(pod("a", 3)))
    assert words(await box.take()) == "a@1→1"
    assert words(await box.take()) == "a@5→5"
    assert box.statistics().buffered == box.statistics().pending_objects == 0


async def test_a_relist_into_a_full_buffer_is_merged(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer(size=1)
    box.put(Added(pod("x")))
    tell(box, relist(Added(pod("a", 1))))
    assert await drain(box) == ["+x@1", "+a@1"]


async def test_raise_breaks_the_reader_when_the_buffer_is_full(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer(size=1, overflow="raise")
    box.put(Added(pod("a")))
    box.put(Added(pod("b")))
    assert box.is_broken
    box.put(Added(pod("c")))  # ignored
    box.put_batch(initial(pod("d")))
    with pytest.raises(trio.BrokenResourceError, match="its buffer of 1 notifications is full"):
        await box.take()


async def test_block_keeps_everything_and_the_writer_waits_until_the_reader_has_caught_up(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=1, overflow="block")
    states = [pod("a", n) for n in range(1, 5)]
    box.put(Added(states[0]))
    for old, new in pairwise(states):
        box.put(Updated(old, new))
    tell(box, relist(Deleted(states[-1])))
    caught_up = trio.Event()

    async def write() -> None:
        await box.wait_for_room()
        caught_up.set()

    nursery.start_soon(write)
    seen = []
    for _ in range(4):
        await trio.testing.wait_all_tasks_blocked()
        assert not caught_up.is_set()
        seen.append(words(await box.take()))
    await caught_up.wait()
    seen.append(words(await box.take()))
    assert seen == ["+a@1", "a@1→2", "a@2→3", "a@3→4", "-a@4"]


async def test_block_cuts_a_reader_off_that_takes_nothing_for_its_patience(
    autojump_clock: trio.testing.MockClock,
) -> None:
    box = buffer(size=1, overflow="block", patience=60)
    for n in range(3):
        box.put(Added(pod(str(n))))
    began = trio.current_time()
    await box.wait_for_room()
    assert trio.current_time() - began == 60
    assert box.is_broken
    assert box.why_broken == "it took no notification for 60 s"
    with pytest.raises(trio.BrokenResourceError, match="fell behind: it took no notification for 60 s"):
        await box.take()


async def test_patience_is_for_one_place_not_for_the_whole_backlog(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=1, overflow="block", patience=60)
    for n in range(5):
        box.put(Added(pod(str(n))))

    async def read_slowly() -> None:
        for _ in range(5):
            await trio.sleep(50)
            await box.take()

    nursery.start_soon(read_slowly)
    await box.wait_for_room()
    assert not box.is_broken


@pytest.mark.parametrize("waiting", [True, False])
async def test_close_ends_the_reader_and_drops_what_was_unread(
    waiting: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer()
    ended = trio.Event()

    async def read() -> None:
        with pytest.raises(trio.EndOfChannel):
            await box.take()
        ended.set()

    if waiting:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        box.close()
    else:
        box.put(Added(pod("a")))
        box.close()
        nursery.start_soon(read)
    await ended.wait()
    box.put(Added(pod("b")))
    assert box.statistics().buffered == 0 or not waiting


async def test_a_reader_that_waits_is_handed_its_item_and_the_backlog_still_moves(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The buffer is full then, though something was just taken."""
    box = buffer(size=2, overflow="block")
    seen: list[str] = []

    async def read() -> None:
        while True:
            seen.append(words(await box.take()))

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    for n in range(8):
        box.put(Added(pod(str(n))))
    await box.wait_for_room()
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [f"+{n}@1" for n in range(8)]
    nursery.cancel_scope.cancel()


async def test_a_reader_in_the_middle_of_a_long_batch_is_not_cut_off(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=1, overflow="block", patience=60)
    box.put_batch(initial(*[pod("a")] * 500))

    async def read_slowly() -> None:
        for _ in range(503):
            await box.take()
            await trio.sleep(1)

    nursery.start_soon(read_slowly)
    await trio.sleep(1.5)
    for n in range(3):
        box.put(Added(pod(str(n))))
    await box.wait_for_room()
    assert not box.is_broken


async def test_a_reader_that_is_closed_half_way_has_not_synced(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer()
    box.put_batch(initial(pod("a"), pod("b")))
    await box.take()
    box.close()
    with pytest.raises(trio.EndOfChannel):
        await box.take()
    assert not box.has_synced
    with pytest.raises(trio.ClosedResourceError, match="before it had synced"):
        await box.wait_until_synced()


@pytest.mark.parametrize("overflow", ["coalesce", "block", "raise"])
async def test_resyncs_do_not_stack_up_before_a_stuck_reader(
    overflow: str, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=3, overflow=overflow, snapshot=(pod("a", 9),))
    box.put_batch(initial(pod("a", 1)))
    for n in range(100):
        box.put_batch(resync(pod("a", n)))
    assert await drain(box) == ["+a@1*", "a@9→9"]


async def test_close_releases_a_writer_that_waits(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=1, overflow="block")
    box.put(Added(pod("a")))
    box.put(Added(pod("b")))
    nursery.start_soon(box.wait_for_room)
    await trio.testing.wait_all_tasks_blocked()
    box.close()


async def test_a_cancelled_reader_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    box = buffer()
    with trio.CancelScope() as scope:
        scope.cancel()
        await box.take()
    box.put(Added(pod("a")))
    assert await drain(box) == ["+a@1"]


async def test_a_reader_checkpoints_even_when_something_is_always_ready(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    box = buffer(size=4_000)
    box.put_batch(initial(*[pod("a")] * 5_000))
    others_ran = 0

    async def other() -> None:
        nonlocal others_ran
        while True:
            await trio.lowlevel.checkpoint()
            others_ran += 1

    nursery.start_soon(other)
    for _ in range(5_000):
        await box.take()
    assert others_ran >= 3
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "message"), [((0, "coalesce"), "buffer_size must be at least 1"), ((1, "drop"), "overflow must be")]
)
def test_wrong_options_are_refused(options: tuple[int, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        buffer(*options)


# --- whatever happens, a reader sees a subsequence of each object's states, and the last one ---

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


@settings(max_examples=300)
@given(STEPS, st.integers(1, 4))
def test_a_coalescing_reader_is_never_told_of_states_out_of_order(steps: list[tuple[str, str]], size: int) -> None:
    trio.run(drive, steps, size, clock=trio.testing.MockClock(autojump_threshold=0))


async def drive(steps: list[tuple[str, str]], size: int) -> None:
    store: dict[str, Pod] = {}
    known: dict[str, Pod] = {}
    box = ListenerBuffer(lambda: tuple(store.values()), buffer_size=size)
    box.put_batch(initial())

    def check(told: Notification[Pod]) -> None:
        if isinstance(told, Added):
            assert told.object.name not in known
            known[told.object.name] = told.object
        elif isinstance(told, Updated):
            assert known[told.old.name] is told.old
            assert int(told.new.resource_version) >= int(told.old.resource_version)
            known[told.new.name] = told.new
        else:
            del known[told.object.name]

    for version, (what, name) in enumerate(steps):
        old = store.get(name)
        if what == "read":
            if (told := await ready(box)) is not None:
                check(told)
        elif what == "resync":
            box.put_batch(resync(*store.values()))
        elif what == "delete":
            if old is not None:
                del store[name]
                box.put(Deleted(old))
        else:
            new = store[name] = pod(name, version, uid=f"{name}-{version}" if what == "recreate" else "u")
            changes: list[Notification[Pod]] = [Added(new)] if old is None else [Updated(old, new)]
            if old is not None and what == "recreate":
                changes = [Deleted(old), Added(new)]
            if what == "relist":
                tell(box, relist(*changes))
            else:
                for change in changes:
                    box.put(change)
        statistics = box.statistics()
        assert statistics.buffered <= size
        assert statistics.pending_objects <= 4
    while (told := await ready(box)) is not None:
        check(told)
    assert known == store
    assert box.has_synced
