"""Tests of client-go's shared informer: its start, resyncs, broken watches, errors.

Against client-go's ``shared_informer_test.go``, in virtual time.
"""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, listing, modified, pod, words
from trioformer.cache import ReflectorOptions, SharedInformer
from trioformer.errors import ExpiredError, ForbiddenError
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


@pytest.mark.parametrize("overflow", ["coalesce", "block"])
async def test_resync_periods_are_kept_beside_a_listener_that_starts_late(
    overflow: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It starts a second after the first objects were queued, and has a buffer for one item only.

    client-go: TestListenerResyncPeriodsDelayed
    """
    source = ScriptedListWatch([listing(pod("a"), pod("b"))], [[0.5, added(pod("c", 2)), added(pod("d", 3)), None]])
    informer = SharedInformer(source, resync_period=1)
    recorders = {period: Recorder() for period in (0.0, 2.0, 3.0)}
    for period, recorder in recorders.items():
        informer.add_event_handler(recorder, resync_period=period)
    late: list[str] = []
    with informer.subscribe(buffer_size=1, overflow=overflow) as notifications:  # type: ignore[arg-type]  # parametrised
        await nursery.start(informer.run)

        async def read() -> None:
            await trio.sleep(1)
            async for notification in notifications:
                late.append(words(notification))  # noqa: PERF401  # each when it arrives

        nursery.start_soon(read)
        await trio.sleep(6.5)
    resyncs = {
        period: [round(at, 6) for at, what in zip(recorder.at, recorder.seen, strict=True) if what == "a@1→1"]
        for period, recorder in recorders.items()
    }
    assert resyncs == {0.0: [], 2.0: [2, 4, 6], 3.0: [3, 6]}
    for recorder in recorders.values():
        assert recorder.seen[:4] == ["+a@1*", "+b@1*", "+c@2", "+d@3"]
    assert late == ["+a@1*", "+b@1*", "+c@2", "+d@3"]


@pytest.mark.parametrize("seed", range(10))
async def test_a_handler_added_while_the_informer_starts_misses_nothing(
    seed: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whether it is added before, during or after the list, it receives each object once.

    client-go: TestSharedInformerInitializationRace
    """
    rng = random.Random(seed)
    many = [pod(f"p{number}", number + 1) for number in range(2_500)]  # more than one time slice
    events = [added(pod(f"q{number}", 3_000 + number)) for number in range(20)]
    informer = SharedInformer(ScriptedListWatch([listing(*many, version=2_999)], [[*events, None]]), resync_period=1)
    recorders: list[Recorder] = []

    async def join() -> None:
        for _ in range(rng.randrange(30)):
            await trio.lowlevel.checkpoint()
        recorders.append(Recorder())
        registration = informer.add_event_handler(recorders[-1], resync_period=0, buffer_size=5_000)
        await registration.wait_until_synced()

    with trio.fail_after(100):
        async with trio.open_nursery() as joining:
            for _ in range(4):
                joining.start_soon(join)
            nursery.start_soon(informer.run)
            joining.start_soon(join)
    await trio.sleep(1)
    names = {obj.name for obj in informer.lister}
    assert len(names) == 2_520
    for recorder in recorders:
        assert sorted(word[1:].partition("@")[0] for word in recorder.seen) == sorted(names)
        assert all(word.startswith("+") for word in recorder.seen)


async def test_missed_changes_reach_all_handlers_and_resyncs_only_those_due(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerWatchDisruption"""
    before = listing(pod("pod1", 1), pod("pod2", 2), version=2)
    after = listing(pod("pod1", 1), pod("pod2", 4), pod("pod3", 3), version=4)
    informer = SharedInformer(ScriptedListWatch([before, after], [[0.9, EXPIRED]]), resync_period=60)
    without_resync, with_resync = Recorder(), Recorder()
    informer.add_event_handler(without_resync, resync_period=0)
    informer.add_event_handler(with_resync)
    await nursery.start(informer.run)
    await trio.sleep(0.8)
    for recorder in (without_resync, with_resync):
        assert recorder.seen == ["+pod1@1*", "+pod2@2*"]
    await trio.sleep(30)
    for recorder in (without_resync, with_resync):
        assert recorder.seen[2:] == ["pod2@2→4", "+pod3@3"], "in the list's order, without pod1"
    await trio.sleep(30)
    assert without_resync.seen[4:] == []
    assert with_resync.seen[4:] == ["pod1@1→1", "pod2@4→4", "pod3@3→3"]


async def test_an_error_of_a_list_reaches_the_watch_error_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerErrorHandling"""
    denied = ForbiddenError("Access Denied", code=403, reason="Forbidden")
    errors: list[tuple[float, Exception]] = []

    def take(error: Exception) -> None:
        errors.append((trio.current_time(), error))

    source = ScriptedListWatch([denied, denied, listing(pod("a"))])
    informer = SharedInformer(source, resync_period=1, options=ReflectorOptions(watch_error_handler=take))
    nursery.start_soon(informer.run)
    await informer.wait_until_synced()
    assert [error for _, error in errors] == [denied, denied]
    assert errors[0][0] == 0, "immediately"


# --- transforms ---


async def test_only_transformed_objects_are_read_and_each_is_transformed_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not again by a resync, nor when a list finds the object unchanged or deleted.

    client-go: TestTransformingInformerRace, TestRealFIFO_transformer
    """
    transformed: list[str] = []

    def transform(obj: Pod) -> Pod:
        assert not obj.metadata.labels, "transformed already"
        transformed.append(f"{obj.name}@{obj.resource_version}")
        return obj.evolve(metadata=obj.metadata.evolve(labels={"transformed": "yes"}))

    five = [pod(f"p{number}", number + 1) for number in range(5)]
    source = ScriptedListWatch(
        [listing(*five, version=5), listing(*five[1:], version=6)], [[3.5, modified(pod("p1", 2)), EXPIRED]]
    )
    informer = SharedInformer(source, transform=transform, resync_period=1)
    reads = 0

    class Reader(Recorder):
        async def on_update(self, old: Pod, new: Pod) -> None:
            assert old.metadata.labels == {"transformed": "yes"}
            await Recorder.on_update(self, old, new)

        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            assert obj.metadata.labels == {"transformed": "yes"}
            await Recorder.on_delete(self, obj, is_stale=is_stale)

    async def read() -> None:
        nonlocal reads
        while True:
            assert all(obj.metadata.labels == {"transformed": "yes"} for obj in informer.lister)
            reads += 1
            await trio.sleep(0.1)

    reader = Reader()
    informer.add_event_handler(reader)
    await nursery.start(informer.run)
    nursery.start_soon(read)
    await trio.sleep(10.5)
    assert reads > 100
    first, event, second = transformed[:5], transformed[5:6], transformed[6:]
    assert (first, event) == (["p0@1", "p1@2", "p2@3", "p3@4", "p4@5"], ["p1@2"])
    assert second == ["p1@2", "p2@3", "p3@4", "p4@5"], "once for each time that the server sent it"
    assert "-p0@1?" in reader.seen
    assert reader.seen.count("p4@5→5") == 10


# --- removal ---


async def test_removing_a_handler_does_not_affect_the_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerRemoveHandler"""
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a"))], [[1.0, modified(pod("a", 2)), 1.0, modified(pod("a", 3)), None]])
    )
    first, second = Recorder(), Recorder()
    one, other = informer.add_event_handler(first), informer.add_event_handler(second)
    assert informer.statistics().handlers_and_subscriptions == 2
    await nursery.start(informer.run)
    await trio.sleep(0.5)
    one.remove()
    assert informer.statistics().handlers_and_subscriptions == 1
    await trio.sleep(1)
    other.remove()
    assert informer.statistics().handlers_and_subscriptions == 0
    await trio.sleep(5)
    assert (first.seen, second.seen) == (["+a@1*"], ["+a@1*", "a@1→2"])
