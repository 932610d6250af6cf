"""What a controller's functions receive: every state, in order, however slow they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from tests.support.controllers import Reconcile, informer_of, leaves, pods, start, watch_and_start
from tests.support.scripted_list_watch import (
    Recorder,
    ScriptedListWatch,
    Step,
    added,
    deleted,
    listing,
    modified,
    pod,
    words,
)
from trioformer import ConnectionFailedError, ExpiredError, Notification, SharedInformer, Updated
from trioformer.client import WatchEvent
from trioformer.controller import Controller, Expectations, Request
from trioformer.models.core_v1 import Pod

MOVES = 2_400
"""More changes than all buffers between the watch and a controller hold."""


def moves(first: int = 2) -> list[WatchEvent[Pod]]:
    """Move 20 pods to one node after another; no two pods are ever on one node."""
    return [
        event
        for version in range(first, first + MOVES)
        for event in modified(pod(f"p{version % 20}", version, node=f"n{version}"))
    ]


def informer_of_moves() -> SharedInformer[Pod]:
    first = listing(*(pod(f"p{number}", 1) for number in range(20)))
    return informer_of(ScriptedListWatch([first], [[1.0, moves(), None]]))


def node_of(obj: Pod) -> list[Request]:
    return [Request(None, obj.spec.node_name)] if obj.spec.node_name else []


def slowly(clock: MockClock, seen: list[str] | None = None) -> Callable[[Notification[Pod]], bool]:
    """Return a predicate that passes everything, and takes a millisecond without a checkpoint."""

    def predicate(event: Notification[Pod]) -> bool:
        clock.jump(0.001)
        if seen is not None:
            seen.append(words(event))
        return True

    return predicate


async def test_an_owner_between_two_others_is_reconciled_however_slow_functions_are(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = informer_of_moves(), Reconcile()
    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock)])
    await start(nursery, controller, informer)
    await trio.sleep(100)
    lost = {f"n{version}" for version in range(2, MOVES + 2)} - set(reconcile.calls)
    assert lost == set()


async def test_predicates_receive_every_state_in_order(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer, seen, other = informer_of_moves(), list[str](), list[str]()
    for name, events in (("one", seen), ("other", other)):
        controller = Controller(name, Reconcile())
        controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock, events)])
        nursery.start_soon(controller.run)
    await nursery.start(informer.run)
    await trio.sleep(100)
    before = dict.fromkeys(range(20), 1)
    expected = [f"+p{number}@1*" for number in range(20)]
    for version in range(2, MOVES + 2):
        expected.append(f"p{version % 20}@{before[version % 20]}→{version}")
        before[version % 20] = version
    assert sorted(seen) == sorted(other) == sorted(expected)
    for number in range(20):
        mine = [word for word in expected if word.lstrip("+").startswith(f"p{number}@")]
        assert [word for word in seen if word in set(mine)] == mine


async def test_a_creation_followed_by_a_deletion_is_observed_as_both(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps: list[WatchEvent[Pod]] = []
    for number in range(MOVES // 2):
        new = pod(f"new-{number}", 2 * number + 2)
        steps += added(new) + deleted(pod(f"new-{number}", 2 * number + 3))
    informer = informer_of(ScriptedListWatch([listing()], [[1.0, steps, None]]))
    expectations, owner = Expectations(), Request("default", "owner")
    controller = Controller("owners", Reconcile())
    owners = [owner]
    controller.watch(
        informer,
        enqueue=lambda _: owners,
        predicates=[expectations.observing(lambda _: owners), slowly(autojump_clock)],
    )
    await start(nursery, controller, informer)
    for number in range(MOVES // 2):
        with expectations.creating(owner), expectations.deleting(owner, pod(f"new-{number}")):
            pass
    await trio.sleep(100)
    assert expectations.get(owner) is None


async def test_slow_functions_do_not_stall_other_tasks(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer, seen = informer_of_moves(), list[str]()
    controller = Controller("nodes", Reconcile())
    controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock, seen)])
    await start(nursery, controller, informer)
    await trio.sleep(1)
    longest = 0.0
    for _ in range(3 * MOVES):
        before = trio.current_time()
        await trio.lowlevel.checkpoint()
        longest = max(longest, trio.current_time() - before)
    assert 0 < longest <= 0.003
    assert len(seen) == 20 + MOVES


async def test_the_cache_is_behind_by_no_more_than_the_buffers_of_a_slow_controller(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, most = informer_of_moves(), 0
    controller = Controller("nodes", Reconcile())

    def note(event: Notification[Pod]) -> bool:
        nonlocal most
        most = max(most, controller.statistics().handlers[0].buffer.buffered)
        return True

    controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock), note])
    await start(nursery, controller, informer)
    with trio.fail_after(100):
        await informer.wait_until_at_least(str(MOVES + 1))
    assert 1_024 < most <= 1_024 + 202
    assert controller.statistics().handlers[0].buffer.coalesced == 0


@pytest.mark.parametrize("how", ["stopped", "cancelled", "failing"])
async def test_a_controller_that_ends_while_the_cache_waits_for_it_releases_the_cache(
    how: str, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, is_waiting, other = informer_of_moves(), trio.Event(), Recorder()
    controller = Controller("nodes", Reconcile())
    informer.add_event_handler(other, overflow="block")
    slow = slowly(autojump_clock)

    def until_full(event: Notification[Pod]) -> bool:
        if controller.statistics().handlers[0].buffer.buffered > 1_024:
            is_waiting.set()
            if how == "failing":
                raise ZeroDivisionError
        return slow(event)

    controller.watch(informer, enqueue=node_of, predicates=[until_full])
    nursery.start_soon(informer.run)

    async def run() -> None:
        if how == "failing":
            with pytest.raises(ExceptionGroup) as caught:
                await controller.run()
            assert [type(leaf) for leaf in leaves(caught.value)] == [ZeroDivisionError]
        else:
            await controller.run()

    async with trio.open_nursery() as runs:
        runs.start_soon(run)
        await is_waiting.wait()
        if how == "stopped":
            await controller.stop()
        elif how == "cancelled":
            runs.cancel_scope.cancel()
    with trio.fail_after(1):
        await informer.wait_until_at_least(str(MOVES + 1))
    await trio.sleep(1)
    assert len(other.seen) == 20 + MOVES
    assert informer.statistics().handlers_and_subscriptions == 1


async def test_a_controller_that_waits_for_another_cache_keeps_nothing_and_delays_nobody(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, seen, other = informer_of_moves(), list[str](), Recorder()
    late = informer_of(ScriptedListWatch([ConnectionFailedError("not yet"), listing()]))
    informer.add_event_handler(other, overflow="block")
    controller = Controller("nodes", reconcile := Reconcile())
    controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock, seen)])
    controller.watch(late)
    nursery.start_soon(controller.run)
    await nursery.start(informer.run)
    await trio.sleep(10)
    assert len(other.seen) == 20 + MOVES
    assert seen == []
    statistics = controller.statistics().handlers[0]
    assert (statistics.calls, statistics.buffer.buffered, statistics.buffer.high_water) == (0, 0, 0)
    nursery.start_soon(late.run)
    await trio.sleep(100)
    assert sorted(seen) == sorted(f"+p{version % 20}@{version}*" for version in range(MOVES - 18, MOVES + 2))
    assert set(reconcile.calls) == {f"n{version}" for version in range(MOVES - 18, MOVES + 2)}


async def test_an_informer_watched_during_a_run_loses_nothing_either(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    first, second, reconcile = pods("a"), informer_of_moves(), Reconcile()
    controller = Controller("nodes", reconcile)
    controller.watch(first)
    await start(nursery, controller, first)
    controller.watch(second, enqueue=node_of, predicates=[slowly(autojump_clock)])
    nursery.start_soon(second.run)
    await trio.sleep(100)
    assert {f"n{version}" for version in range(2, MOVES + 2)} <= set(reconcile.calls)


async def test_an_informer_that_stops_during_the_start_ends_the_wait_of_its_paused_handler(
    autojump_clock: MockClock,
) -> None:
    informer, never = pods("a"), pods("b")
    controller = Controller("pods", Reconcile())
    controller.watch(informer)
    controller.watch(never)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(controller.run)
        async with trio.open_nursery() as informers:
            await informers.start(informer.run)
            informers.cancel_scope.cancel()
        assert controller.statistics().phase == "waiting for handlers"
        await controller.stop()
    assert controller.statistics().phase == "not running"


async def test_the_differences_of_relists_reach_a_slow_controller_without_merging(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trioformer.controller._sources.BUFFER_SIZE", 2)
    expired = ExpiredError("too old", code=410, reason="Expired")
    lists = [
        listing(*(pod(f"p{number}", version, node=f"n{version}", uid=uid) for number in range(5)), version=version)
        for version, uid in ((1, "u"), (10, "u"), (20, "another"), (30, "another"))
    ]
    watches: list[list[Step] | Exception] = [
        [1.0, modified(pod("p0", version + 5, node=f"n{version + 5}", uid=uid)), expired]
        for version, uid in ((1, "u"), (10, "u"), (20, "another"))
    ]
    informer, seen = SharedInformer(ScriptedListWatch([*lists], watches), resync_period=1), list[str]()
    controller = Controller("nodes", reconcile := Reconcile())
    controller.watch(informer, enqueue=node_of, predicates=[slowly(autojump_clock, seen)])
    await start(nursery, controller, informer)
    await trio.sleep(300)
    changes = [word for word in seen if word.startswith(("p0@", "+p0@", "-p0@")) and not is_resync(word)]
    assert changes == [
        "+p0@1*",
        "p0@1→6",
        "p0@6→10",
        "p0@10→15",
        "-p0@15?",
        "+p0@20",
        "p0@20→25",
        "p0@25→30",
    ]
    assert {"n1", "n6", "n10", "n15", "n20", "n25", "n30"} <= set(reconcile.calls)
    assert len([word for word in seen if is_resync(word) and word.startswith("p4@")]) >= 290


def is_resync(word: str) -> bool:
    old, _, new = word.partition("@")[2].partition("→")
    return old == new


@pytest.mark.parametrize("version", ["", "1"])
async def test_a_move_between_states_of_one_version_is_no_resync(
    version: str, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps: list[Step] = [1.0, modified(pod("a", version, node="n2")), None]
    informer = informer_of(ScriptedListWatch([listing(pod("a", version, node="n1"))], [steps]))
    reconcile = Reconcile()
    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=node_of)
    await start(nursery, controller, informer)
    await trio.sleep(5)
    assert reconcile.calls == ["n1", "n1", "n2"]


# --- priorities and resyncs ---


async def test_requests_of_a_watch_with_a_priority_come_first_but_not_its_initial_objects(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    first = [pod(f"low-{number}", 1) for number in range(3)]
    usual = informer_of(ScriptedListWatch([listing(*first)], [[1.0, added(pod("usual", 2)), None]]))
    urgent = informer_of(
        ScriptedListWatch([listing(pod("initial", 1))], [[1.0, added(pod("late", 2)) + modified(pod("late", 3)), None]])
    )
    controller = Controller("pods", reconcile := Reconcile([5.0] * 6))
    controller.watch(usual)
    controller.watch(urgent, enqueue=lambda obj: [Request.of(obj)], priority=7)
    await start(nursery, controller, usual, urgent)
    await trio.sleep(2)
    statistics = controller.statistics().queue
    assert statistics is not None
    assert statistics.depth_by_priority == {7: 1, 0: 1, -100: 3}
    await trio.sleep(100)
    assert reconcile.calls[1:3] == ["late", "usual"]


async def test_a_priority_below_that_of_initial_objects_applies_to_them_too(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", "b")
    controller = Controller("pods", Reconcile([5.0] * 2))
    controller.watch(informer, priority=-200)
    await start(nursery, controller, informer)
    await trio.sleep(1)
    statistics = controller.statistics().queue
    assert statistics is not None
    assert statistics.depth_by_priority == {-200: 1}


async def test_all_objects_are_reconciled_again_after_about_the_resync_period(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, other = pods("a", "b"), pods("c")
    controller = Controller("pods", reconcile := Reconcile(), resync_every=100, journal=True)
    controller.watch(informer, predicates=[lambda event: not (isinstance(event, Updated) and event.is_resync)])
    controller.watch(other, enqueue=lambda obj: [Request.of(obj)])
    await start(nursery, controller, informer, other)
    await trio.sleep(1)
    assert sorted(reconcile.calls) == ["a", "b", "c"]
    await trio.sleep(2_000)
    assert reconcile.calls[3:] == ["a", "b"] * (len(reconcile.calls[3:]) // 2)
    gaps = [gap for gap in reconcile.gaps()[2:] if gap]
    assert 18 <= len(gaps) <= 22
    assert all(90 <= gap <= 110 for gap in gaps)
    assert max(gaps) - min(gaps) > 5
    assert [cause.why for cause in controller.journal()[-1].causes] == ["resync"]


async def test_resyncs_have_a_low_priority(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer = pods("a", "b")
    controller = Controller("pods", Reconcile([None, None, 50.0]), resync_every=10)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(15)
    statistics = controller.statistics().queue
    assert statistics is not None
    assert statistics.depth_by_priority == {-100: 1}
