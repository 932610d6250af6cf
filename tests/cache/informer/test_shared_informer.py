"""The whole informer with a scripted list and watch, in virtual time.

Against client-go's ``shared_informer_test.go``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import (
    Recorder,
    ScriptedListWatch,
    added,
    deleted,
    listing,
    modified,
    pod,
    reached,
    words,
)
from trioformer.cache import (
    Added,
    Deleted,
    Notification,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformer,
    Updated,
    field_index,
)
from trioformer.errors import (
    CacheNotSyncedError,
    ExpiredError,
    ForbiddenError,
    HandlerOverflowError,
    IndexerError,
    InternalServerError,
)
from trioformer.models import encode
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


async def started(nursery: trio.Nursery, source: ScriptedListWatch, **options: float) -> SharedInformer[Pod]:
    informer = SharedInformer(source, **options)  # type: ignore[arg-type]  # options by name
    await nursery.start(informer.run)
    return informer


async def test_handlers_and_lister_follow_the_server(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestNameForHandler"""
    source = ScriptedListWatch(
        [listing(pod("a", 1), version=1)],
        [[1.0, added(pod("b", 2)), modified(pod("a", 3)), deleted(pod("b", 4)), None]],
    )
    informer = SharedInformer(source)
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    assert not informer.has_synced
    assert not registration.has_synced
    with pytest.raises(CacheNotSyncedError):
        informer.lister.list()
    await nursery.start(informer.run)
    assert informer.has_synced
    assert [obj.name for obj in informer.lister.list()] == ["a"]
    await registration.wait_until_synced()
    assert recorder.seen == ["+a@1*"]
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*", "+b@2", "a@1→3", "-b@4"]
    assert informer.lister["default/a"].resource_version == "3"
    assert reached(informer) == "4"
    statistics = informer.statistics()
    assert (statistics.objects, statistics.pending, statistics.handlers_and_subscriptions) == (1, 0, 1)
    assert registration.statistics().buffer.delivered == 4
    assert repr(registration) == "<HandlerRegistration of handler Recorder of informer Pod>"
    assert repr(informer) == "<SharedInformer of Pod: 1 objects, watching>"


async def test_notifications_depend_on_the_cache_not_on_the_event_type(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch(
        [listing(pod("a", 1))], [[1.0, modified(pod("b", 2)), added(pod("a", 3)), added(pod("a", 3)), None]]
    )
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*", "+b@2", "a@1→3"]


async def test_a_relist_delivers_missed_changes_deletions_first(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    first = listing(pod("a", 1), pod("b", 2), pod("c", 3), version=3)
    second = listing(pod("d", 9), pod("c", 3), pod("b", 8), version=9)
    source = ScriptedListWatch([first, second], [[1.0, EXPIRED]])
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    before = informer.lister["default/c"]
    await trio.sleep(30)
    assert recorder.seen[3:] == ["-a@1?", "+d@9", "b@2→8"]
    assert [obj.name for obj in informer.lister.list()] == ["d", "c", "b"]
    assert informer.lister["default/c"] is before, "an unchanged object keeps its decoded fields"


@pytest.mark.parametrize("by", ["a relist", "an event"])
async def test_another_content_at_the_same_version_is_an_update(
    by: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A CRD's new default, another conversion or a restored etcd change an object without a new version."""
    new = pod("a", 1, node="node-1")
    lists = [listing(pod("a", 1)), listing(new)] if by == "a relist" else [listing(pod("a", 1))]
    source = ScriptedListWatch([*lists], [[1.0, EXPIRED if by == "a relist" else modified(new), None]])
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await trio.sleep(60)
    assert recorder.seen == ["+a@1*", "a@1→1"]
    assert informer.lister["default/a"] is new


def as_event(obj: Pod, spec: str = "{}", beginning: str = '{"kind":"Pod","apiVersion":"v1",') -> Pod:
    """Return the object as an event has it; items of lists have neither kind nor apiVersion."""
    metadata = encode(obj.metadata).decode()
    return make_object(Pod, f'{beginning}"metadata":{metadata},"spec":{spec}}}'.encode())


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("{}", "{}", []),
        ('{"nodeName":"n","priority":1}', '{"priority": 1, "nodeName":"n"}', []),
        ('{"priority":1}', '{"priority":2}', ["a@2→2"]),
    ],
)
async def test_kind_and_version_of_an_event_make_no_difference(
    first: str, second: str, expected: list[str], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    event, item = as_event(pod("a", 2), first), as_event(pod("a", 2), second, "{")
    source = ScriptedListWatch([listing(), listing(item)], [[1.0, added(event), 1.0, EXPIRED]])
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await trio.sleep(60)
    assert recorder.seen == ["+a@2", *expected]
    assert informer.lister["default/a"] is (item if expected else event)


async def test_an_unchanged_relist_of_5_000_pods_notifies_no_listener(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Half of them came by the watch, whose objects have a kind and an apiVersion."""
    items = [as_event(pod(f"p{number}", number), beginning="{") for number in range(1, 5_001)]
    events = [event for item in items[2_500:] for event in added(as_event(item))]
    again = [as_event(item, beginning="{") for item in items]
    source = ScriptedListWatch([listing(*items[:2_500]), listing(*again)], [[1.0, events, 1.0, EXPIRED]])
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder, overflow="block", patience=1e9)
    before: list[Pod] = []
    await trio.sleep(1.5)
    before += informer.lister.list()
    assert len(recorder.seen) == len(before) == 5_000
    await trio.sleep(60)
    assert informer.statistics().reflector.lists == 2
    assert len(recorder.seen) == 5_000
    assert all(map(operator.is_, informer.lister.list(), before)), "unchanged objects keep their decoded fields"


async def test_handlers_called_after_a_relist_see_the_whole_new_cache(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(pod("a", 1)), listing(pod("b", 2))], [[1.0, EXPIRED]])
    informer = SharedInformer(source)
    names: list[list[str]] = []

    class ListingHandler(ResourceEventHandler[Pod]):
        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            names.append([other.name for other in informer.lister.list()])

    informer.add_event_handler(ListingHandler())
    await nursery.start(informer.run)
    await trio.sleep(30)
    assert names == [["b"]]


@pytest.mark.parametrize("by_relist", [False, True])
async def test_another_uid_under_the_same_name_is_a_deletion_and_an_addition(
    by_relist: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    successor = pod("a", 5, uid="another")
    source = ScriptedListWatch(
        [listing(pod("a", 1)), listing(successor)], [[1.0, EXPIRED] if by_relist else [1.0, modified(successor), None]]
    )
    informer = await started(nursery, source)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await trio.sleep(30)
    assert recorder.seen == ["+a@1*", "-a@1?", "+a@5"]


async def test_a_late_handler_first_receives_the_cache(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(pod("a", 1))], [[10.0, added(pod("b", 2)), 10.0, added(pod("c", 3)), None]])
    informer = await started(nursery, source)
    await trio.sleep(15)
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    assert not registration.has_synced
    await registration.wait_until_synced()
    assert recorder.seen == ["+a@1*", "+b@2*"]
    await trio.sleep(15)
    assert recorder.seen == ["+a@1*", "+b@2*", "+c@3"]


async def test_has_synced_waits_for_the_handlers_last_initial_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    class Slow(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            await trio.sleep(5)

    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    registration = informer.add_event_handler(Slow())
    await nursery.start(informer.run)
    assert not registration.has_synced
    await registration.wait_until_synced()
    assert trio.current_time() == 10
    assert registration.statistics().slowest_call == 5


async def test_the_same_handler_twice_is_two_registrations(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerMultipleRegistration"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[5.0, modified(pod("a", 2)), None]]))
    recorder = Recorder()
    first, second = informer.add_event_handler(recorder), informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(1)
    first.remove()
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*", "+a@1*", "a@1→2"]
    second.remove()


async def test_a_removed_handler_is_not_called_and_may_be_removed_twice(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestRemoveWhileActive, TestRemovingRemovedSharedInformer"""
    informer = await started(nursery, ScriptedListWatch([listing(pod("a"))], [[10.0, modified(pod("a", 2)), None]]))
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    await trio.sleep(5)
    registration.remove()
    registration.remove()
    await trio.sleep(10)
    assert recorder.seen == ["+a@1*"]
    assert informer.statistics().handlers_and_subscriptions == 0


async def test_a_handler_may_remove_itself_and_its_call_continues(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    ended: list[str] = []

    class Once(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            registration.remove()
            await trio.sleep(1)
            ended.append(obj.name)

    registration = informer.add_event_handler(Once())
    await nursery.start(informer.run)
    await trio.sleep(5)
    assert ended == ["a"]


# --- resync ---


async def test_each_handler_is_resynced_on_its_own_period(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestListenerResyncPeriods"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]), resync_period=10)
    recorders = {period: Recorder() for period in (0.0, 1.0, 2.0, 3.0, None)}
    registrations = {p: informer.add_event_handler(r, resync_period=p) for p, r in recorders.items()}
    await nursery.start(informer.run)
    await trio.sleep(6.5)
    assert {period: [round(at) for at in recorder.at[1:]] for period, recorder in recorders.items()} == {
        0.0: [],
        1.0: [1, 2, 3, 4, 5, 6],
        2.0: [2, 4, 6],
        3.0: [3, 6],
        None: [],
    }
    assert recorders[1.0].seen[1:] == ["a@1→1"] * 6
    assert [registration.resync_period for registration in registrations.values()] == [0, 1, 2, 3, 10]


@pytest.mark.parametrize("period", [math.nan, -1, "5", True])
async def test_a_resync_period_of_a_handler_is_a_number_of_seconds(period: Any) -> None:
    informer = SharedInformer(ScriptedListWatch([listing()]), resync_period=30)
    with pytest.raises(ValueError, match="resync"):
        informer.add_event_handler(Recorder(), resync_period=period)


async def test_resync_periods_obey_the_informers_check_period(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """At least a second; before the start the check period adapts, after it the handler's; none without a period.

    client-go: TestResyncCheckPeriod
    """
    daily = SharedInformer(ScriptedListWatch([listing(pod("a"))]), resync_period=12 * 3_600)
    recorders = {period: Recorder() for period in (0.0, 60.0, 55.0, 5.0)}
    registrations = [daily.add_event_handler(r, resync_period=period) for period, r in recorders.items()]
    assert [registration.resync_period for registration in registrations] == [0, 60, 55, 5]
    await nursery.start(daily.run)
    await trio.sleep(61)
    assert [len(recorder.seen) - 1 for recorder in recorders.values()] == [0, 1, 1, 12]
    informer = SharedInformer(ScriptedListWatch([listing()]), resync_period=30)
    assert informer.add_event_handler(Recorder(), resync_period=0.01).resync_period == 1
    other = SharedInformer(ScriptedListWatch([listing()]), resync_period=30)
    await nursery.start(other.run)
    assert other.add_event_handler(Recorder(), resync_period=5).resync_period == 30
    without = SharedInformer(ScriptedListWatch([listing()]))
    assert without.add_event_handler(Recorder(), resync_period=5).resync_period == 0
    assert [record.getMessage() for record in caplog.records] == [
        "handler Recorder of informer Pod: the resync period of 0.01 s is too short; using 1 s",
        "handler Recorder of informer Pod: the resync period of 5 s is too short; using the running informer's 30 s",
        "handler Recorder of informer Pod: no resync, because its informer has no resync period",
    ]


async def test_resync_periods_are_counted_from_their_start_and_not_summed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The sum of three floats of 0.7 is less than 2.1."""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]), resync_period=0.7)
    recorder, often = Recorder(), Recorder()
    informer.add_event_handler(recorder, resync_period=2.1)
    informer.add_event_handler(often, resync_period=2.8)
    await nursery.start(informer.run)
    await trio.sleep(2_100.01)
    assert recorder.at[1:] == pytest.approx([2.1 * number for number in range(1, 1_001)], rel=1e-12)
    assert often.at[1:] == pytest.approx([2.8 * number for number in range(1, 751)], rel=1e-12)


async def test_resyncs_that_were_missed_while_the_clock_jumped_are_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]), resync_period=1)
    recorder = Recorder()
    informer.add_event_handler(recorder, resync_period=2)
    await nursery.start(informer.run)
    await trio.sleep(0.5)
    autojump_clock.jump(10)
    await trio.sleep(4)
    assert [round(at, 1) for at in recorder.at[1:]] == [10.5, 12, 14]


async def test_a_resync_is_marked_as_a_resync(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a"))], [[90.0, modified(pod("a", 2)), None]]), resync_period=60
    )
    kinds: list[bool] = []

    class Kinds(ResourceEventHandler[Pod]):
        async def on_update(self, old: Pod, new: Pod) -> None:
            kinds.append(Updated(old, new).is_resync)

    informer.add_event_handler(Kinds())
    await nursery.start(informer.run)
    await trio.sleep(100)
    assert kinds == [True, False]


# --- subscriptions ---


async def test_two_tasks_that_read_one_subscription_are_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing()], [[10.0, added(pod("a", 2)), None]])
    informer = SharedInformer(source)
    await nursery.start(informer.run)
    with informer.subscribe() as notifications:
        seen: list[Notification[Pod]] = []

        async def read() -> None:
            seen.append(await anext(notifications))

        async with trio.open_nursery() as readers:
            readers.start_soon(read)
            await trio.sleep(1)
            with pytest.raises(trio.BusyResourceError, match="one subscription for each task"):
                await anext(notifications)
        assert [type(each) for each in seen] == [Added]


async def test_a_subscription_is_the_same_stream_in_the_callers_own_task(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(pod("a", 1))], [[1.0, modified(pod("a", 2)), deleted(pod("a", 3)), None]])
    informer = SharedInformer(source)
    seen: list[str] = []
    with informer.subscribe() as notifications:
        nursery.start_soon(informer.run)
        async for notification in notifications:
            seen.append(words(notification))
            if isinstance(notification, Deleted):
                break
        assert notifications.has_synced
        assert notifications.statistics().delivered == 3
    assert seen == ["+a@1*", "a@1→2", "-a@3"]
    assert informer.statistics().handlers_and_subscriptions == 0


async def test_a_subscription_ends_when_the_informer_stops(autojump_clock: trio.testing.MockClock) -> None:
    informer = SharedInformer(ScriptedListWatch([listing()]))
    with informer.subscribe() as notifications:
        async with trio.open_nursery() as nursery:
            await nursery.start(informer.run)
            nursery.cancel_scope.cancel()
        assert [notification async for notification in notifications] == []
    assert informer.state.phase == "stopped"
    assert not informer.has_synced


async def test_a_subscription_that_must_not_merge_breaks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    changes = [modified(pod("a", n)) for n in range(2, 10)]
    informer = await started(nursery, ScriptedListWatch([listing(pod("a"))], [[1.0, *changes, None]]))
    with informer.subscribe(buffer_size=2, overflow="block", patience=5) as notifications:
        await trio.sleep(10)
        with pytest.raises(trio.BrokenResourceError, match="it took no notification for 5 s"):
            await notifications.__anext__()
    assert informer.has_synced, "the informer continues"


# --- slow, failing and stuck handlers ---


class Stuck(ResourceEventHandler[Pod]):
    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        await trio.sleep_forever()


async def test_a_stuck_handler_delays_neither_the_cache_nor_another_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    changes = [modified(pod("a", n)) for n in range(2, 5_002)]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[1.0, *changes, None]]))
    stuck = informer.add_event_handler(Stuck(), buffer_size=16)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(10)
    assert informer.lister["default/a"].resource_version == "5001"
    assert recorder.seen[-1].endswith("→5001")
    buffer = stuck.statistics().buffer
    assert (buffer.buffered, buffer.pending_objects) == (16, 1)
    assert buffer.high_water == 17


async def test_a_blocking_handler_slows_the_watch_and_loses_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    changes = [modified(pod("a", n)) for n in range(2, 102)]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[1.0, *changes, None]]))
    seen: list[str] = []

    class Slow(ResourceEventHandler[Pod]):
        async def on_update(self, old: Pod, new: Pod) -> None:
            await trio.sleep(1)
            seen.append(new.resource_version)

    informer.add_event_handler(Slow(), buffer_size=1, overflow="block")
    await nursery.start(informer.run)
    await trio.sleep(300)
    assert seen == [str(n) for n in range(2, 102)]


async def test_a_handler_that_must_not_merge_ends_its_informer_with_its_name(
    autojump_clock: trio.testing.MockClock,
) -> None:
    changes = [modified(pod("a", n)) for n in range(2, 12)]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[1.0, *changes, None]]))
    informer.add_event_handler(Stuck(), buffer_size=1, overflow="block", name="auditor")
    with pytest.RaisesGroup(
        pytest.RaisesExc(HandlerOverflowError, match="handler auditor of informer Pod fell behind: .* for 60 s")
    ):
        await informer.run()


class Failing(ResourceEventHandler[Pod]):
    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        raise KeyError(obj.name)


async def test_an_exception_in_a_handler_ends_the_informer_with_a_note(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestPanicPropagated, TestEventPanics"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    informer.add_event_handler(Failing())
    with pytest.RaisesGroup(KeyError) as caught:
        await informer.run()
    assert caught.value.exceptions[0].__notes__ == ["in handler Failing of informer Pod, on Added Pod default/a"]
    assert informer.state.phase == "failed"


async def test_on_error_takes_the_exception_and_the_object_counts_as_handled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestEventPanics"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"), pod("b"))]))
    errors: list[tuple[str, str]] = []

    async def on_error(error: Exception, notification: object) -> None:
        errors.append((repr(error), words(notification)))  # type: ignore[arg-type]  # a notification

    registration = informer.add_event_handler(Failing(), on_error=on_error)
    await nursery.start(informer.run)
    await registration.wait_until_synced()
    assert errors == [("KeyError('a')", "+a@1*"), ("KeyError('b')", "+b@1*")]


async def test_an_index_function_that_fails_on_one_object_holds_up_no_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestProcessDeltasInBatch"""

    def picky(obj: Pod) -> list[str]:
        if obj.resource_version == "2":
            raise ValueError("no")
        return []

    source = ScriptedListWatch(
        [listing(pod("a"))],
        [[1.0, added(pod("b")) + added(pod("bad", 2)) + added(pod("c")), 5.0, modified(pod("bad", 3)), None]],
    )
    informer = SharedInformer(source, indexers={"x": picky})
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(1.1)
    assert recorder.seen == ["+a@1*", "+b@1", "+c@1"], "the other changes of the batch are not lost"
    assert str(informer.state) == "watching; 1 in quarantine: default/bad (index function failed)"
    await trio.sleep(60)
    assert recorder.seen[3:] == ["+bad@3"]
    assert str(informer.state) == "watching"
    assert [what for what, *_ in source.asked] == ["list", "watch"]


# --- before, while and after running ---


async def test_a_permanent_error_before_the_first_sync_leaves_run(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([ForbiddenError("no", code=403, reason="Forbidden")])
    informer = SharedInformer(source, options=ReflectorOptions(grace_period=0))
    with pytest.RaisesGroup(ForbiddenError):
        await informer.run()


async def test_the_state_says_what_the_informer_is_doing(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestStateSharedInformer"""
    source = ScriptedListWatch([InternalServerError("no", code=500), listing()])
    informer = SharedInformer(source)
    assert informer.state.phase == "not started"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(informer.run)
        await trio.testing.wait_all_tasks_blocked()
        assert informer.state.phase == "backing off"
        await informer.wait_until_synced()
        await trio.sleep(1)
        assert informer.state.phase == "watching"
        nursery.cancel_scope.cancel()
    assert informer.state.phase == "stopped"


@pytest.mark.parametrize(
    "use",
    [
        lambda informer: informer.add_event_handler(Recorder()),
        lambda informer: informer.add_indexers({}),
        lambda informer: informer.subscribe().__enter__(),
    ],
)
async def test_a_stopped_informer_rejects_new_listeners(
    use: Callable[[SharedInformer[Pod]], object], autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestAddOnStoppedSharedInformer, TestRemoveOnStoppedSharedInformer"""
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    registration = informer.add_event_handler(Recorder())
    with trio.move_on_after(1):
        await informer.run()
    with pytest.raises(RuntimeError, match="the informer of Pod has stopped; create a new one"):
        use(informer)
    registration.remove()
    assert informer.lister.get("a", namespace="default") is not None, "the cache can still be read"


async def test_an_informer_runs_once(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    informer = await started(nursery, ScriptedListWatch([listing()]))
    with pytest.raises(RuntimeError, match="is running; an informer can run only once"):
        await informer.run()


async def test_an_index_may_be_added_while_the_informer_runs(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestIndexer"""
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a", node="n"))], [[1.0, added(pod("b", 2, node="n")), None]])
    )
    informer.add_indexers({"before": field_index("spec.node_name")})
    await nursery.start(informer.run)
    informer.add_indexers({"while": field_index("spec.node_name")})
    assert informer.lister.index_keys("while", "n") == ("default/a",)
    await trio.sleep(5)
    for index in ("before", "while"):
        assert informer.lister.index_keys(index, "n") == ("default/a", "default/b")
        assert informer.lister.index_values(index) == ("n",)
    with pytest.raises(IndexerError, match="index 'while' already exists"):
        informer.add_indexers({"while": field_index("spec.hostname")})


async def test_a_deletion_that_comes_while_a_list_is_applied_is_not_lost(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The cache does not have the object yet, but the list has it."""
    many = [pod(f"p{n}", n + 1) for n in range(3_000)]
    source = ScriptedListWatch([listing(*many, version=3_000)], [[deleted(pod("p42", 3_001)), None]])
    informer = SharedInformer(source)
    recorder = Recorder()
    informer.add_event_handler(recorder, buffer_size=5_000)
    await nursery.start(informer.run)
    await trio.sleep(1)
    assert "default/p42" not in informer.lister
    assert recorder.seen[-1] == "-p42@3001"


async def test_the_deletion_of_an_unknown_object_is_not_distributed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestDeltaFIFO_enqueueingNoLister"""
    informer = SharedInformer(ScriptedListWatch([listing()], [[deleted(pod("a", 7)), None]]))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(1)
    assert recorder.seen == []
    assert reached(informer) == "7"


@pytest.mark.parametrize("beside_a_slow_one", [False, True])
async def test_a_burst_does_not_outrun_a_listener_that_keeps_up(
    beside_a_slow_one: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    burst = [event for n in range(2, 5_002) for event in modified(pod("a", n))]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[1.0, burst, None]]))
    fast = informer.add_event_handler(ResourceEventHandler[Pod]())
    if beside_a_slow_one:

        class Slow(ResourceEventHandler[Pod]):
            async def on_update(self, old: Pod, new: Pod) -> None:
                await trio.sleep(0.01)

        informer.add_event_handler(Slow(), overflow="block", buffer_size=10)
    await nursery.start(informer.run)
    await trio.sleep(1_000)
    assert fast.statistics().buffer.delivered == 5_001
    assert fast.statistics().buffer.coalesced == 0


async def test_a_subscription_may_break_while_the_loop_waits_for_a_slow_handler(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    burst = [event for n in range(2, 12) for event in modified(pod("a", n))]
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))], [[1.0, burst, None]]))

    class Slow(ResourceEventHandler[Pod]):
        async def on_update(self, old: Pod, new: Pod) -> None:
            await trio.sleep(1)

    informer.add_event_handler(Slow(), overflow="block", buffer_size=1)
    await nursery.start(informer.run)
    with informer.subscribe(overflow="block", patience=0.5, buffer_size=1) as notifications:
        await trio.sleep(20)
        with pytest.raises(trio.BrokenResourceError):
            await notifications.__anext__()
    await trio.sleep(60)
    assert informer.has_synced


async def test_an_error_of_on_error_names_handler_and_object(autojump_clock: trio.testing.MockClock) -> None:
    async def on_error(error: Exception, notification: object) -> None:
        raise OSError("disk full")

    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    informer.add_event_handler(Failing(), on_error=on_error)
    with pytest.RaisesGroup(OSError) as caught:
        await informer.run()
    assert caught.value.exceptions[0].__notes__ == ["in handler Failing of informer Pod, on Added Pod default/a"]


async def test_waiting_for_a_sync_ends_when_the_informer_stops(autojump_clock: trio.testing.MockClock) -> None:
    informer = SharedInformer(ScriptedListWatch([InternalServerError("no", code=500)]))
    registration = informer.add_event_handler(Recorder())
    with trio.move_on_after(10):
        await informer.run()
    with pytest.raises(trio.ClosedResourceError, match="the informer of Pod stopped before it synced"):
        await informer.wait_until_synced()
    with pytest.raises(trio.ClosedResourceError, match="before it synced"):
        await registration.wait_until_synced()


async def test_waiting_for_the_end_of_an_informer_returns_when_it_has_stopped(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))

    async def run_for_a_while() -> None:
        with trio.move_on_after(10):
            await informer.run()

    nursery.start_soon(run_for_a_while)
    await informer.wait_until_stopped()
    assert (trio.current_time(), str(informer.state)) == (10, "stopped")
    await informer.wait_until_stopped()
