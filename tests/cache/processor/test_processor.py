"""Handlers: filters, removal, statistics, and waiting; with a scripted list and watch, in virtual time.

Against client-go's ``shared_informer_test.go``, ``typed_test.go`` and ``synctrack``.
"""

from __future__ import annotations

import gc
import random
import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import assert_type

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, deleted, listing, modified, pod
from trioformer.cache import (
    Added,
    Deleted,
    FilteringHandler,
    HandlerRegistration,
    Notification,
    ResourceEventHandler,
    SharedInformer,
    Updated,
)
from trioformer.cache.processor._listener_buffer import ListenerBuffer
from trioformer.cache.processor._notifications import call_handler, handler_name
from trioformer.cache.processor._overflow import Overflow
from trioformer.errors import ExpiredError
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


def is_on_n1(obj: Pod) -> bool:
    return obj.spec.node_name == "n1"


def on(node: str, name: str, version: int, uid: str | None = None) -> Pod:
    return pod(name, version, node=node, uid=uid)


# --- filters ---


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ([modified(on("n1", "a", 2))], ["+a@1*", "a@1→2"]),
        ([modified(on("n2", "a", 2))], ["+a@1*", "-a@1"]),
        ([modified(on("n2", "a", 2)), modified(on("n1", "a", 3))], ["+a@1*", "-a@1", "+a@3"]),
        ([modified(on("n2", "a", 2)), deleted(on("n2", "a", 3))], ["+a@1*", "-a@1"]),
        ([deleted(on("n1", "a", 2))], ["+a@1*", "-a@2"]),
        ([modified(on("n1", "b", 2))], ["+a@1*", "+b@2"]),
        ([modified(on("n2", "b", 2)), deleted(on("n2", "b", 3))], ["+a@1*"]),
        ([added(on("n1", "c", 2))], ["+a@1*", "+c@2"]),
        ([added(on("n2", "c", 2)), modified(on("n2", "c", 3))], ["+a@1*"]),
        ([modified(on("n1", "a", 2, uid="another"))], ["+a@1*", "-a@1?", "+a@2"]),
        ([modified(on("n2", "a", 2, uid="another"))], ["+a@1*", "-a@1?"]),
        ([modified(on("n1", "b", 2, uid="another"))], ["+a@1*", "+b@2"]),
        # The last state does not match, and was never delivered; client-go does not deliver the deletion.
        ([deleted(on("n2", "a", 2))], ["+a@1*", "-a@1"]),
        # The last state matches, but the handler does not know the object; client-go delivers the deletion.
        ([deleted(on("n1", "b", 2))], ["+a@1*"]),
    ],
)
async def test_a_filter_turns_changes_across_it_into_additions_and_deletions(
    steps: list[list[object]], seen: list[str], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestTypedFilteringResourceEventHandler"""
    source = ScriptedListWatch([listing(on("n1", "a", 1), on("n2", "b", 1))], [[1.0, *steps, None]])  # type: ignore[list-item]  # lists of events
    informer = SharedInformer(source)
    recorder = Recorder()
    registration = informer.add_event_handler(FilteringHandler(is_on_n1, recorder))
    await nursery.start(informer.run)
    await registration.wait_until_synced()
    await trio.sleep(10)
    assert recorder.seen == seen


async def test_a_filter_passes_on_deletions_that_merging_hides(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Merging hides the state that no longer matches, and the last state alone would hide the deletion."""
    steps = [
        modified(on("n2", "a", 2)),
        deleted(on("n2", "a", 3)),
        modified(on("n1", "b", 4)),
        deleted(on("n1", "b", 5)),
    ]
    informer = SharedInformer(ScriptedListWatch([listing(on("n1", "a", 1), on("n2", "b", 1))], [[1.0, *steps, None]]))
    recorder = Recorder()

    class Slow(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            await recorder.on_add(obj, is_initial=is_initial)
            await trio.sleep(5)

        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            await recorder.on_delete(obj, is_stale=is_stale)

    registration = informer.add_event_handler(FilteringHandler(is_on_n1, Slow()), buffer_size=1)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert registration.statistics().buffer.coalesced > 0
    assert recorder.seen == ["+a@1*", "-a@1"]


async def test_each_registration_of_a_filter_has_its_own_record(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(on("n1", "a", 1))], [[10.0, modified(on("n2", "a", 2)), None]])
    informer = SharedInformer(source)
    recorder = Recorder()
    handler = FilteringHandler(lambda obj: obj.name == "a", FilteringHandler(is_on_n1, recorder))
    informer.add_event_handler(handler)
    await nursery.start(informer.run)
    await trio.sleep(5)
    informer.add_event_handler(handler)
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*", "+a@1*", "-a@1", "-a@1"]


async def test_an_object_keeps_its_filter_result_when_the_predicate_raises(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def fails_at_2(obj: Pod) -> bool:
        if obj.resource_version == "2":
            raise ValueError
        return True

    errors: list[Notification[Pod]] = []

    async def note(error: Exception, notification: Notification[Pod]) -> None:
        errors.append(notification)

    steps = [
        modified(pod("a", 2)),
        added(pod("b", 2)),
        modified(pod("a", 3)),
        deleted(pod("b", 4)),
        deleted(pod("a", 5)),
    ]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a", 1))], [[1.0, *steps, None]]))
    recorder = Recorder()
    registration = informer.add_event_handler(FilteringHandler(fails_at_2, recorder), on_error=note)
    await nursery.start(informer.run)
    await trio.sleep(10)
    assert [type(notification) for notification in errors] == [Updated, Added]
    assert recorder.seen == ["+a@1*", "a@1→3", "-a@5"]
    assert (registration.statistics().failed, registration.statistics().failed_initial) == (2, 0)


async def test_a_filtered_handler_knows_an_object_that_it_failed_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    class Picky(Recorder):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            raise ValueError

    async def ignore(error: Exception, notification: Notification[Pod]) -> None:
        pass

    informer = SharedInformer(ScriptedListWatch([listing(pod("a", 1))], [[1.0, deleted(pod("a", 2)), None]]))
    picky = Picky()
    informer.add_event_handler(FilteringHandler(lambda obj: True, picky), on_error=ignore)
    await nursery.start(informer.run)
    await trio.sleep(10)
    assert picky.seen == ["-a@2"]


def test_a_filter_is_named_after_the_wrapped_handler() -> None:
    """client-go: TestNameForHandler"""
    assert handler_name(Recorder()) == "Recorder"
    handler = FilteringHandler(is_on_n1, FilteringHandler(is_on_n1, Recorder()))
    assert handler_name(handler) == "FilteringHandler(FilteringHandler(Recorder))"
    assert repr(handler).startswith("<FilteringHandler for <FilteringHandler for Recorder(")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["n1", "n2", "delete", "reborn n1", "reborn n2"]), st.sampled_from("abc")),
        st.tuples(st.just("take"), st.integers(1, 4)),
    ),
    max_size=40,
)


@attrs.define(eq=False)
class Replayer(ResourceEventHandler[Pod]):
    """Keeps its own copy of the objects, and fails on a notification that is not consistent with it."""

    known: dict[str, Pod] = attrs.field(factory=dict)

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        assert key_of(obj) not in self.known
        self.known[key_of(obj)] = obj

    async def on_update(self, old: Pod, new: Pod) -> None:
        assert self.known[key_of(new)] is old
        self.known[key_of(new)] = new

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        del self.known[key_of(obj)]


@given(STEPS, st.integers(1, 3))
def test_a_filtered_handler_always_knows_exactly_the_matching_objects(
    steps: list[tuple[str, str | int]], size: int
) -> None:
    async def play() -> None:
        store: dict[str, Pod] = {}
        buffer = ListenerBuffer(lambda: tuple(store.values()), buffer_size=size)
        replayer = Replayer()
        handler = FilteringHandler(is_on_n1, replayer)
        for version, (what, which) in enumerate([*steps, ("take", 1_000)], start=1):
            if isinstance(which, int):
                with trio.move_on_after(1):
                    for _ in range(which):
                        await call_handler(handler, await buffer.take())
                continue
            old = store.pop(which, None)
            if what == "delete":
                if old is not None:
                    buffer.put(Deleted(on("n1" if version % 2 else "n2", which, version, uid=old.uid)))
                continue
            reborn, _, node = what.rpartition(" ")
            new = on(node, which, version, uid=f"{which}{version}" if reborn or old is None else old.uid)
            store[which] = new
            for notification in changes(old, new):
                buffer.put(notification)
        assert replayer.known == {key_of(obj): obj for obj in store.values() if is_on_n1(obj)}

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))


def changes(old: Pod | None, new: Pod) -> list[Notification[Pod]]:
    if old is None:
        return [Added(new)]
    return [Updated(old, new)] if old.uid == new.uid else [Deleted(old, is_stale=True), Added(new)]


async def test_handlers_and_filters_are_typed_by_their_kind(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestTypedSharedIndexInformerAddTypedEventHandler

    A missed deletion is delivered as an object of the kind, not as a tombstone.
    """
    informer = SharedInformer(ScriptedListWatch([listing(pod("a", 1)), listing(version=2)], [[1.0, EXPIRED]]))
    deletions: list[tuple[Pod, bool]] = []

    class Typed(ResourceEventHandler[Pod]):
        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            deletions.append((assert_type(obj, Pod), is_stale))

    registration = informer.add_event_handler(FilteringHandler(lambda obj: bool(assert_type(obj, Pod).name), Typed()))
    assert_type(registration, HandlerRegistration[Pod])
    await nursery.start(informer.run)
    await trio.sleep(60)
    assert [(type(obj), obj.name, is_stale) for obj, is_stale in deletions] == [(Pod, "a", True)]


@pytest.mark.parametrize("by_relist", [False, True])
async def test_a_deleted_object_has_the_key_of_the_cached_object(
    by_relist: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestDeletedObjectGetKey, TestDeletionHandlingObjectToName"""
    steps = [1.0, EXPIRED] if by_relist else [1.0, deleted(pod("a", 2)), None]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a", 1)), listing()], [steps]))  # type: ignore[list-item]  # steps are a union
    gone: list[Deleted[Pod]] = []

    class Keeper(ResourceEventHandler[Pod]):
        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            gone.append(Deleted(obj, is_stale))

    informer.add_event_handler(Keeper())
    await nursery.start(informer.run)
    await trio.sleep(60)
    (notification,) = gone
    assert (key_of(notification.object), notification.is_stale) == ("default/a", by_relist)


# --- removing ---


@attrs.define(eq=False)
class Slow(ResourceEventHandler[Pod]):
    """A handler whose ``on_add`` takes some seconds."""

    seconds: float = 5.0
    began: list[str] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)
    inside: Callable[[], Awaitable[None]] | None = None

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        self.began.append(obj.name)
        if self.inside is not None:
            await self.inside()
        await trio.sleep(self.seconds)
        self.ended.append(obj.name)


async def running(nursery: trio.Nursery, handler: ResourceEventHandler[Pod]) -> HandlerRegistration[Pod]:
    """Run an informer of two pods until the handler's first call has started."""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    registration = informer.add_event_handler(handler)
    await nursery.start(informer.run)
    await trio.sleep(1)
    return registration


async def test_removing_one_of_two_handlers_leaves_the_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerRemoveHandler"""
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a"))], [[5.0, modified(pod("a", 2)), 5.0, modified(pod("a", 3)), None]])
    )
    recorders = [Recorder(), Recorder()]
    registrations = [informer.add_event_handler(recorder) for recorder in recorders]
    await nursery.start(informer.run)
    await trio.sleep(1)
    registrations[1].remove()
    assert informer.statistics().handlers_and_subscriptions == 1
    await trio.sleep(5)
    await registrations[0].aclose()
    assert informer.statistics().handlers_and_subscriptions == 0
    await trio.sleep(10)
    assert [recorder.seen for recorder in recorders] == [["+a@1*", "a@1→2"], ["+a@1*"]]


async def test_remove_returns_while_a_call_runs(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestRemoveEventHandler_AsynchronousPanic"""
    slow = Slow()
    registration = await running(nursery, slow)
    registration.remove()
    assert (slow.began, slow.ended) == (["a"], [])
    await trio.sleep(10)
    assert (slow.began, slow.ended) == (["a"], ["a"])


async def test_aclose_waits_for_the_running_call_and_no_other_call_follows(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestRemoveEventHandler_SynchronousShutdown"""
    slow = Slow()
    registration = await running(nursery, slow)
    await registration.aclose()
    assert trio.current_time() == 5
    assert (slow.began, slow.ended) == (["a"], ["a"])
    await trio.sleep(10)
    assert slow.began == ["a"]


async def test_a_cancelled_aclose_still_removes_the_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Slow()
    registration = await running(nursery, slow)
    with trio.move_on_after(1) as scope:
        await registration.aclose()
    assert scope.cancelled_caught
    await trio.sleep(10)
    assert (slow.began, slow.ended) == (["a"], ["a"]), "the call continued to its end, and there was no other call"


@pytest.mark.parametrize("when", ["never started", "before the start", "idle", "removed", "stopped", "closed"])
async def test_closing_never_hangs(when: str, autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestShutDownEventHandler_Lifecycles, TestShutdown"""
    tasks = trio.lowlevel.current_statistics().tasks_living
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    with trio.fail_after(1):
        if when in ("never started", "before the start"):
            await registration.aclose()
        if when == "never started":
            return
        async with trio.open_nursery() as nursery:
            await nursery.start(informer.run)
            await trio.testing.wait_all_tasks_blocked()
            if when == "removed":
                registration.remove()
            if when != "stopped":
                with trio.testing.assert_checkpoints():
                    await registration.aclose()
            if when == "closed":
                await registration.aclose()
            nursery.cancel_scope.cancel()
        await registration.aclose()
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert recorder.seen == ([] if when == "before the start" else ["+a@1*"])


async def test_a_late_handler_can_be_closed_before_its_task_starts(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestShutDownEventHandler_Lifecycles"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    await nursery.start(informer.run)
    await trio.testing.wait_all_tasks_blocked()
    tasks = trio.lowlevel.current_statistics().tasks_living
    recorder = Recorder()
    await informer.add_event_handler(recorder).aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert recorder.seen == []
    assert trio.lowlevel.current_statistics().tasks_living == tasks


async def test_a_handler_that_closes_itself_is_only_removed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Slow()
    registration = await running(nursery, ResourceEventHandler[Pod]())
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))

    async def close() -> None:
        with trio.testing.assert_checkpoints():
            await registration.aclose()

    slow.inside = close
    registration = informer.add_event_handler(slow)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert (slow.began, slow.ended) == (["a"], ["a"])


async def test_a_child_task_of_a_call_may_close_the_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Slow()
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))

    async def close() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(registration.aclose)

    slow.inside = close
    registration = informer.add_event_handler(slow)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert (slow.began, slow.ended) == (["a"], ["a"])


async def test_a_task_started_in_another_nursery_waits_for_the_call_when_it_closes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It inherits the handler's context, but the handler's call does not wait for it."""
    slow = Slow()
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    closed_at: list[float] = []

    async def close() -> None:
        await registration.aclose()
        closed_at.append(trio.current_time())

    async def start() -> None:
        nursery.start_soon(close)

    slow.inside = start
    registration = informer.add_event_handler(slow)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert closed_at == [5]
    assert slow.ended == ["a"]


async def test_handlers_that_close_each_other_all_end(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    handlers = [Slow(), Slow(), Slow()]
    registrations: list[HandlerRegistration[Pod]] = []

    def closes(which: int, after: float) -> Callable[[], Awaitable[None]]:
        async def close() -> None:
            await trio.sleep(after)
            await registrations[which].aclose()

        return close

    for number, handler in enumerate(handlers):
        handler.inside = closes((number + 1) % 3, number)
        registrations.append(informer.add_event_handler(handler))
    await nursery.start(informer.run)
    await trio.sleep(60)
    assert [handler.ended for handler in handlers] == [["a"]] * 3
    assert informer.statistics().handlers_and_subscriptions == 0


async def test_a_handler_closes_another_and_waits_for_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    other = Slow(seconds=9)
    registration = informer.add_event_handler(other)
    ended: list[list[str]] = []

    async def close() -> None:
        await trio.sleep(1)
        await registration.aclose()
        ended.append(list(other.ended))

    informer.add_event_handler(Slow(inside=close))
    await nursery.start(informer.run)
    await trio.sleep(60)
    assert ended == [["a"]]


async def test_a_handler_may_wait_for_one_that_has_stopped_waiting_for_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    closed_at: list[float] = []

    async def give_up() -> None:
        await trio.sleep(1)
        with trio.move_on_after(1):
            await second.aclose()

    async def close() -> None:
        await trio.sleep(3)
        await first.aclose()
        closed_at.append(trio.current_time())

    first = informer.add_event_handler(Slow(inside=give_up, seconds=8))
    second = informer.add_event_handler(Slow(inside=close))
    await nursery.start(informer.run)
    await trio.sleep(60)
    assert closed_at == [10]


async def test_removing_a_registration_does_not_affect_another_informer(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerRemoveForeignHandler

    A registration belongs to its informer, so it cannot be passed to another; this holds for the same handler in both.
    """
    steps = [5.0, modified(pod("a", 2)), None]
    one, other = (SharedInformer(ScriptedListWatch([listing(pod("a"))], [list(steps)])) for _ in range(2))
    recorder = Recorder()
    registration = one.add_event_handler(recorder)
    other.add_event_handler(recorder)
    await nursery.start(one.run)
    await nursery.start(other.run)
    await trio.sleep(1)
    registration.remove()
    assert [each.statistics().handlers_and_subscriptions for each in (one, other)] == [0, 1]
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*", "+a@1*", "a@1→2"]


async def test_a_removed_registration_holds_neither_objects_nor_the_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    held = modified(pod("a", 2))
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[2.0, held, modified(pod("a", 3)), None]]))
    slow = Slow()
    registration = informer.add_event_handler(slow)
    await nursery.start(informer.run)
    await trio.sleep(3)
    before = sys.getrefcount(held[0].object)
    assert registration.statistics().buffer.buffered == 2
    registration.remove()
    assert registration.statistics().buffer.buffered == 0
    after = sys.getrefcount(held[0].object)
    assert after == before - 2, "the new state of one notification, and the old state of another"
    await trio.sleep(10)
    handler = weakref.ref(slow)
    del slow
    gc.collect()
    assert handler() is None
    assert registration.statistics().calls == 1


@pytest.mark.parametrize("seed", range(5))
async def test_handlers_added_and_removed_at_random_leave_no_task(
    seed: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerHandlerAbuse"""
    rng = random.Random(seed)
    steps: list[object] = []
    for version in range(2, 400):
        steps += [rng.choice((0.0, 0.01, 0.1)), modified(pod(rng.choice("abcd"), version))]
    source = ScriptedListWatch([listing(pod("a"), pod("b"))], [[*steps, None]])  # type: ignore[list-item]  # steps are a union
    informer = SharedInformer(source, resync_period=1)
    steady = Recorder()
    informer.add_event_handler(steady, resync_period=0)
    tasks_before = trio.lowlevel.current_statistics().tasks_living
    registrations: list[tuple[Replayer, HandlerRegistration[Pod]]] = []

    async def add_and_remove(rng: random.Random) -> None:
        mine: list[HandlerRegistration[Pod]] = []
        for _ in range(40):
            await trio.sleep(rng.choice((0.0, 0.0, 0.05, 0.3)))
            if rng.random() < 0.6:
                replayer = Replayer()
                size, overflow = rng.choice(((1, "coalesce"), (1_024, "coalesce"), (4, "block")))
                registration = informer.add_event_handler(
                    rng.choice((replayer, FilteringHandler(lambda obj: True, replayer))),
                    buffer_size=size,
                    overflow=overflow,  # type: ignore[arg-type]  # one of the three words
                )
                mine.append(registration)
                registrations.append((replayer, registration))
            elif mine:
                registration = mine.pop(rng.randrange(len(mine)))
                if rng.random() < 0.5:
                    registration.remove()
                else:
                    await registration.aclose()
        for registration in mine:
            await registration.aclose()

    async with trio.open_nursery() as informers:
        await informers.start(informer.run)
        await trio.testing.wait_all_tasks_blocked()
        tasks = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as abusers:
            for number in range(4):
                abusers.start_soon(add_and_remove, random.Random(f"{seed}.{number}"))
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert informer.statistics().handlers_and_subscriptions == 1
        survivor = Replayer()
        await informer.add_event_handler(survivor).wait_until_synced()
        await trio.sleep(60)
        assert survivor.known == {key_of(obj): obj for obj in informer.lister}
        informers.cancel_scope.cancel()
    assert len(steady.seen) >= 390, "the other handlers did not delay the one that stayed"
    assert len(registrations) > 50
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == tasks_before


# --- statistics and sync ---


async def test_the_statistics_of_a_handler_count_its_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestEventPanics

    Every failure is reported, the next notification is still delivered, and the handler syncs.
    """
    informer = SharedInformer(
        ScriptedListWatch([listing(*(pod(name) for name in "abcde"))], [[9.0, added(pod("f", 2)), None]])
    )
    reported: dict[str, list[str]] = {"one": [], "two": []}

    class Failing(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            await trio.sleep(1)
            if obj.name in "bdf":
                raise ValueError

    def report_to(name: str) -> Callable[[Exception, Notification[Pod]], Awaitable[None]]:
        async def report(error: Exception, notification: Notification[Pod]) -> None:
            assert isinstance(notification, Added)
            reported[name].append(notification.object.name)

        return report

    registrations = [informer.add_event_handler(Failing(), on_error=report_to(name), name=name) for name in reported]
    before = registrations[0].statistics()
    assert (before.calls, before.failed, before.running_call) == (0, 0, 0)
    await nursery.start(informer.run)
    await trio.sleep(0.25)
    during = registrations[0].statistics()
    assert (during.calls, during.running_call, during.slowest_call) == (1, 0.25, 0)
    for registration in registrations:
        await registration.wait_until_synced()
    assert trio.current_time() == 5
    await trio.sleep(20)
    assert reported == {"one": ["b", "d", "f"], "two": ["b", "d", "f"]}
    for name, registration in zip(reported, registrations, strict=True):
        after = registration.statistics()
        assert after.name == f"handler {name} of informer Pod"
        assert (after.calls, after.failed, after.failed_initial) == (6, 3, 2)
        assert (after.slowest_call, after.running_call, after.buffer.delivered) == (1, 0, 6)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_handler_has_synced_when_it_has_processed_the_whole_list(
    count: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestBasicLogic, TestAsyncLocking, TestSingleFileCounting, TestSingleFile"""
    pods = [pod(f"p{number}") for number in range(count)]
    synced_inside: list[bool] = []

    class Source(ScriptedListWatch):
        async def list(self, **options: object) -> object:  # type: ignore[override]  # passes on whatever it is given
            await trio.sleep(3)
            return await super().list(**options)  # type: ignore[arg-type]  # as above

    class Asking(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            synced_inside.append(registration.has_synced)
            await trio.sleep(1)
            synced_inside.append(registration.has_synced)

    informer = SharedInformer(Source([listing(*pods)], [[1.5, modified(pod("p0", 2)), None]]))
    registration = informer.add_event_handler(Asking())
    nursery.start_soon(informer.run)
    await trio.sleep(2)
    assert not registration.has_synced, "the handler has nothing to do, but the list is not complete"
    await registration.wait_until_synced()
    assert trio.current_time() == 3 + count
    assert registration.has_synced
    assert synced_inside == [False, False] * count


async def test_a_child_task_of_a_call_cannot_wait_for_the_handlers_sync(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    errors: list[str] = []

    async def wait() -> None:
        try:
            await registration.wait_until_synced()
        except RuntimeError as error:
            errors.append(str(error))

    async def begin() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(wait)

    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    registration = informer.add_event_handler(Slow(inside=begin))
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert len(errors) == 1
    assert registration.has_synced


async def test_a_handler_may_wait_for_its_past_sync_and_for_that_of_another(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[20.0, added(pod("b", 2)), None]]))
    waited: list[tuple[str, float]] = []

    class Waiting(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            await (other if is_initial else registration).wait_until_synced()
            waited.append((obj.name, trio.current_time()))

    other = informer.add_event_handler(Slow(seconds=7))
    registration = informer.add_event_handler(Waiting())
    await nursery.start(informer.run)
    await trio.sleep(30)
    assert waited == [("a", 7), ("b", 20)]


@pytest.mark.parametrize("overflow", ["coalesce", "block"])
async def test_a_wait_inside_a_handler_of_the_informer_is_rejected(
    overflow: Overflow, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, other = (SharedInformer(ScriptedListWatch([listing(pod("a"))])) for _ in range(2))
    informer._processor.raise_if_inside_handler("the cache")
    errors: list[str] = []

    async def ask() -> None:
        other._processor.raise_if_inside_handler("the cache")
        for only_blocking in (False, True):
            try:
                informer._processor.raise_if_inside_handler("the cache", only_blocking=only_blocking)
            except RuntimeError as error:
                errors.append(str(error))

    informer.add_event_handler(Slow(inside=ask), overflow=overflow)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert len(errors) == {"coalesce": 1, "block": 2}[overflow]
    assert {text.startswith("handler Slow of informer Pod must not wait for the cache") for text in errors} == {True}
