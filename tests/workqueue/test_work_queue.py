"""WorkQueue: one worker for each key, no add forgotten, no key lost by cancellation, shutdown and drain."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.lowlevel
import trio.testing

from trioformer.workqueue import RateLimitingQueue, WorkQueue, _work_queue


async def taken(queue: WorkQueue[str]) -> list[str]:
    """Take every key that is ready, in order; each is done immediately."""
    found = []
    while len(queue):
        async with queue.take() as key:
            found.append(key)
    return found


class Workers:
    """Workers that hold a key until :meth:`finish` is called."""

    def __init__(self, queue: WorkQueue[str], nursery: trio.Nursery) -> None:
        self.queue = queue
        self.nursery = nursery
        self.held: dict[str, trio.Event] = {}
        self.log: list[str] = []
        self.ended = 0

    async def run(self, name: str = "") -> None:
        """Take keys until the queue is shut down."""
        while True:
            try:
                async with self.queue.take() as key:
                    assert key not in self.held
                    self.log.append(f"{name}{key}")
                    self.held[key] = trio.Event()
                    try:
                        await self.held[key].wait()
                    finally:
                        del self.held[key]
            except trio.EndOfChannel:
                self.ended += 1
                return

    async def start(self, name: str = "") -> None:
        """Start a worker, and wait until it holds a key or waits for one."""
        self.nursery.start_soon(self.run, name)
        await trio.testing.wait_all_tasks_blocked()

    async def finish(self, key: str) -> None:
        """End the work on a key."""
        self.held[key].set()
        await trio.testing.wait_all_tasks_blocked()


async def test_keys_are_taken_in_the_order_in_which_they_were_added() -> None:
    queue = WorkQueue[str]()
    for key in "cab":
        assert queue.add(key)
    assert await taken(queue) == ["c", "a", "b"]


async def test_a_key_that_is_added_again_while_it_waits_is_handed_out_once() -> None:
    """client-go: TestCollapse"""
    queue = WorkQueue[str]()
    queue.add("bar")
    assert queue.add("bar")
    assert await taken(queue) == ["bar"]


async def test_a_key_that_is_added_while_it_is_processed_is_handed_out_once_more() -> None:
    """client-go: TestReinsert"""
    queue = WorkQueue[str]()
    queue.add("foo")
    async with queue.take() as key:
        queue.add(key)
        assert len(queue) == 0
    assert await taken(queue) == ["foo"]


async def test_a_second_worker_gets_a_key_only_when_the_first_is_done_and_only_once(nursery: trio.Nursery) -> None:
    """client-go: TestCollapseWhileProcessing"""
    queue = WorkQueue[str]()
    workers = Workers(queue, nursery)
    queue.add("foo")
    await workers.start("1")
    queue.add("foo")
    queue.add("foo")
    await workers.start("2")
    assert workers.log == ["1foo"]
    await workers.finish("foo")
    assert workers.log == ["1foo", "2foo"]
    await workers.finish("foo")
    assert workers.log == ["1foo", "2foo"]
    assert len(queue) == 0
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("drains", [False, True])
async def test_with_many_producers_and_workers_a_key_never_has_two_workers(
    drains: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestBasic"""
    queue = WorkQueue[int]()
    busy: set[int] = set()
    handled = Counter[int]()

    async def produce(key: int) -> None:
        for _ in range(50):
            assert queue.add(key)
            await trio.sleep(0.001)

    async def handle(key: int) -> None:
        assert key not in busy
        busy.add(key)
        await trio.sleep(0.003)
        busy.discard(key)
        handled[key] += 1

    async with trio.open_nursery() as workers:
        workers.start_soon(lambda: queue.process(handle, workers=10))
        async with trio.open_nursery() as producers:
            for key in range(50):
                producers.start_soon(produce, key)
        if drains:
            assert not await queue.drain()
        else:
            queue.shut_down()
        assert not queue.add(99)
    assert len(queue) == 0
    assert set(handled) == set(range(50))


async def test_workers_receive_keys_in_the_order_in_which_they_began_to_wait(nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    workers = Workers(queue, nursery)
    for name in "123":
        await workers.start(name)
    queue.add("a")
    await trio.testing.wait_all_tasks_blocked()
    await workers.finish("a")
    for key in "bcd":
        queue.add(key)
        await trio.testing.wait_all_tasks_blocked()
    assert workers.log == ["1a", "2b", "3c", "1d"]
    nursery.cancel_scope.cancel()


async def test_the_queue_keeps_no_reference_to_a_key_that_is_done() -> None:
    """client-go: TestGarbageCollection"""

    class Key:
        pass

    queue = RateLimitingQueue[Key]()
    key = Key()
    reference = weakref.ref(key)
    queue.add(key)
    queue.add_after(key, 5)
    async with queue.take() as got:
        queue.add_rate_limited(got)
        queue.cancel_delayed(got)
        queue.forget(got)
    del key, got
    gc.collect()
    assert reference() is None


CALLS = 13
"""Limit of Python function calls per key, from add to done (12 today); benchmarks/work_queue.py measures the time."""


async def test_adding_and_taking_a_key_needs_few_calls(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[int]()
    calls = Counter[str]()

    def count(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and "workqueue" in frame.f_code.co_filename and frame.f_code.co_filename != __file__:
            calls[frame.f_code.co_qualname] += 1

    queue.add(-1)
    async with queue.take():  # begins a slice
        pass
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for key in range(100):
            queue.add(key)
            async with queue.take():
                pass
    finally:
        sys.setprofile(before)
    assert sum(calls.values()) / 100 <= CALLS, calls


async def test_an_empty_queue_is_true() -> None:
    assert WorkQueue[str]()


async def test_the_repr_has_the_name_and_the_counts() -> None:
    queue = WorkQueue[str](name="pods")
    queue.add("a")
    queue.add_after("b", 5)
    async with queue.take():
        assert repr(queue) == "<WorkQueue 'pods': 0 ready, 1 delayed, 1 processing>"
    queue.shut_down()
    assert repr(queue) == "<WorkQueue 'pods': 0 ready, 1 delayed, 0 processing, shut down>"
    assert repr(RateLimitingQueue[str]()) == "<RateLimitingQueue: 0 ready, 0 delayed, 0 processing>"


# --- checkpoints ---


async def do_nothing(key: str) -> None:
    """Process a key without a checkpoint."""


class Steps(trio.abc.Instrument):
    """Counts how often a task continues after others could run."""

    def __init__(self) -> None:
        self.task = trio.lowlevel.current_task()
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task is self.task


async def was_a_checkpoint(queue: WorkQueue[str]) -> bool:
    """Take a ready key, and return whether other tasks could run meanwhile."""
    assert len(queue)
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        async with queue.take():
            pass
    finally:
        trio.lowlevel.remove_instrument(steps)
    return steps.count > 0


async def test_the_first_take_of_every_slice_is_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(_work_queue, "SLICE_ITEMS", 3)
    queue = WorkQueue[str]()
    for key in "abcdefgh":
        queue.add(key)
    assert [await was_a_checkpoint(queue) for _ in range(8)] == [True, False, False] * 2 + [True, False]


async def test_takes_that_never_wait_are_a_checkpoint_once_a_millisecond(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    seen = []
    for key in "abcdefgh":
        queue.add(key)
        seen.append(await was_a_checkpoint(queue))
        mock_clock.jump(0.0004)
    assert seen == [True, False, False] * 2 + [True, False]


async def test_a_take_that_waited_begins_a_slice(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    async with queue.take():
        queue.add("b")
    assert not await was_a_checkpoint(queue)


async def test_a_take_finds_keys_that_became_due_during_its_checkpoint(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    async def pass_time(passed: list[bool]) -> None:
        mock_clock.jump(1)
        passed.append(True)

    seen = set()
    for _ in range(40):  # which of two tasks runs first is random
        queue = WorkQueue[str]()
        queue.add("a")
        queue.add_after("due", 1, priority=1)
        passed: list[bool] = []
        nursery.start_soon(pass_time, passed)
        async with queue.take() as key:
            seen.add((bool(passed), key))
        await trio.testing.wait_all_tasks_blocked()
    assert seen == {(False, "a"), (True, "due")}


# --- cancellation ---


async def test_a_worker_that_is_cancelled_as_it_receives_a_key_puts_it_back() -> None:
    queue = WorkQueue[str]()
    async with trio.open_nursery() as nursery:
        workers = Workers(queue, nursery)
        await workers.start()
        queue.add("a")
        nursery.cancel_scope.cancel()
    assert workers.log == ["a"]  # it received the key, and was cancelled at its first checkpoint
    assert queue.remaining().ready == ("a",)


async def test_when_a_waiting_worker_is_cancelled_the_next_one_receives_the_key() -> None:
    queue = WorkQueue[str]()
    async with trio.open_nursery() as nursery:
        workers = Workers(queue, nursery)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as first:
                first.start_soon(workers.run, "1")
                await trio.testing.wait_all_tasks_blocked()
                await workers.start("2")
                scope.cancel()
                queue.add("a")
        await trio.testing.wait_all_tasks_blocked()
        assert workers.log == ["2a"]
        nursery.cancel_scope.cancel()


async def test_a_cancelled_task_takes_no_key() -> None:
    queue, log = WorkQueue[str](), list[str]()
    for key in "abc":
        queue.add(key)
    with trio.CancelScope() as scope:
        while True:
            async with queue.take() as key:
                log.append(key)
                scope.cancel()
    assert log == ["a"]
    assert queue.remaining().ready == ("b", "c")


async def test_a_key_whose_work_is_cancelled_goes_back_with_its_priority() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=7)
    queue.add("b", priority=7)
    with trio.CancelScope() as scope:
        async with queue.take() as key:
            scope.cancel()
            await trio.sleep_forever()
    assert key == "a"
    assert queue.remaining().processing == ()
    assert queue.statistics().depth_by_priority == {7: 2}
    assert await taken(queue) == ["b", "a"]


async def test_an_exception_in_the_block_is_raised_and_the_key_is_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    with pytest.raises(KeyError):
        async with queue.take() as key:
            raise KeyError(key)
    assert not queue.remaining()


async def test_a_take_can_be_entered_only_once() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    take = queue.take()
    async with take:
        with pytest.raises(RuntimeError, match="already entered"):
            async with take:
                pytest.fail("it was entered twice")
    assert queue.remaining().ready == ("b",)


# --- process ---


async def test_an_error_of_the_work_cancels_the_other_workers_and_is_in_a_group() -> None:
    queue = WorkQueue[str]()
    for key in ("fine", "bad", "next"):
        queue.add(key)

    async def handle(key: str) -> None:
        if key == "bad":
            raise KeyError(key)
        await trio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught:
        await queue.process(handle, workers=2)
    assert [type(error) for error in caught.value.exceptions] == [KeyError]
    assert set(queue.remaining().ready) == {"fine", "next"}


async def test_an_error_of_the_work_is_in_no_reference_cycle() -> None:
    queue = WorkQueue[str]()
    queue.add("a")

    class BadError(Exception):
        pass

    async def handle(key: str) -> None:
        raise BadError

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BadError) as caught:
            await queue._work(handle)
        reference = weakref.ref(caught.value)
        del caught
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("workers", [0, -1])
async def test_process_needs_at_least_one_worker(workers: int) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1"):
        await WorkQueue[str]().process(do_nothing, workers=workers)


# --- shutdown and drain ---


async def test_a_drain_names_each_parked_key_once(autojump_clock: trio.testing.MockClock) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    async with queue.take() as key:
        queue.park(key)
    queue.add_after("a", 60)
    assert (await queue.drain()).delayed == ("a",)
    queue.unpark("a")
    assert queue.remaining().delayed == ("a",)
    queue.cancel_delayed("a")
    assert queue.remaining().delayed == ("a",)


async def test_after_the_shutdown_keys_are_rejected_and_pending_ones_handed_out() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert not queue.is_shut_down
    queue.shut_down()
    queue.shut_down()
    assert queue.is_shut_down
    assert not queue.add("b")
    assert not queue.add("a")
    assert not queue.add_after("b", 0)
    assert not queue.add_after("b", 5)
    assert await taken(queue) == ["a"]
    with pytest.raises(trio.EndOfChannel):
        async with queue.take():
            pytest.fail("there was no key")


async def test_shutting_down_ends_every_worker_that_waits(nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    workers = Workers(queue, nursery)
    for _ in range(3):
        await workers.start()
    queue.shut_down()
    await trio.testing.wait_all_tasks_blocked()
    assert workers.ended == 3


async def test_an_immediate_shutdown_hands_out_no_further_key(nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    workers = Workers(queue, nursery)
    await workers.start()
    queue.add("held")
    await trio.testing.wait_all_tasks_blocked()
    for key in ("a", "low", "held"):
        queue.add(key, priority=-1 if key == "low" else 0)
    queue.add_after("later", 5)
    queue.shut_down(immediate=True)
    assert queue.statistics().depth == len(queue) == 0
    await workers.finish("held")
    assert (workers.log, workers.ended) == (["held"], 1)
    assert not await queue.drain() or queue.remaining().ready == ()
    assert queue.remaining().unfinished == ("a", "low", "held")
    assert queue.remaining().delayed == ("later",)


async def test_a_key_on_its_way_to_a_worker_is_not_handed_out_after_an_immediate_shutdown(
    nursery: trio.Nursery,
) -> None:
    queue = WorkQueue[str]()
    workers = Workers(queue, nursery)
    await workers.start()
    queue.add("a")
    queue.shut_down(immediate=True)
    assert (await queue.drain()).unfinished == ("a",)
    assert (workers.log, workers.ended) == ([], 1)


async def test_a_shutdown_may_become_immediate_later(nursery: trio.Nursery) -> None:
    queue = WorkQueue[str](name="pods")
    workers = Workers(queue, nursery)
    await workers.start()
    for key in "abc":
        queue.add(key)
    await trio.testing.wait_all_tasks_blocked()
    queue.shut_down()
    await workers.finish("a")
    left: list[object] = []

    async def drain() -> None:
        left.append((await queue.drain()).unfinished)

    nursery.start_soon(drain)
    await trio.testing.wait_all_tasks_blocked()
    queue.shut_down(immediate=True)
    await workers.finish("b")
    assert (workers.log, left) == (["a", "b"], [("c",)])


async def test_shutting_down_does_not_wait_for_work() -> None:
    """client-go: TestNoQueueDrainageUsingShutDown"""
    queue = WorkQueue[str]()
    queue.add("foo")
    queue.add("bar")
    async with queue.take(), queue.take():
        with trio.testing.assert_no_checkpoints():
            queue.shut_down()
        assert queue.remaining().processing == ("foo", "bar")


async def test_drain_waits_until_the_taken_keys_are_done(nursery: trio.Nursery) -> None:
    """client-go: TestQueueDrainageUsingShutDownWithDrain"""
    queue = WorkQueue[str]()
    drained = Draining(queue)
    queue.add("foo")
    queue.add("bar")
    async with queue.take():
        async with queue.take():
            nursery.start_soon(drained.run)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.EndOfChannel):
                async with queue.take():
                    pytest.fail("no key was left")
        await trio.testing.wait_all_tasks_blocked()
        assert not drained.is_over
    await trio.testing.wait_all_tasks_blocked()
    assert drained.is_over


class Draining:
    """A task that drains a queue, and whether it is over."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self.queue = queue
        self.is_over = False

    async def run(self) -> None:
        """Drain the queue."""
        await self.queue.drain()
        self.is_over = True


async def test_drain_waits_for_keys_that_were_added_while_they_were_processed(nursery: trio.Nursery) -> None:
    """client-go: TestQueueDrainageUsingShutDownWithDrainWithDirtyItem"""
    queue = WorkQueue[str]()
    drained = Draining(queue)
    queue.add("foo")
    async with queue.take() as key:
        queue.add(key)
        nursery.start_soon(drained.run)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.EndOfChannel):
            async with queue.take():
                pytest.fail("the key is being processed")
    await trio.testing.wait_all_tasks_blocked()
    assert not drained.is_over
    async with queue.take() as key:
        assert key == "foo"
        with pytest.raises(trio.EndOfChannel):
            async with queue.take():
                pytest.fail("no key was left")
    await trio.testing.wait_all_tasks_blocked()
    assert drained.is_over


async def test_remaining_lists_the_keys_when_drain_exceeds_its_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestForceQueueShutdownUsingShutDown"""
    queue = WorkQueue[str]()
    for key in ("foo", "bar", "waits"):
        queue.add(key)
    queue.add_after("later", 100)
    async with queue.take(), queue.take():
        with pytest.raises(trio.TooSlowError), trio.fail_after(10):
            await queue.drain()
        assert trio.current_time() == 10
        left = queue.remaining()
        assert left
        assert (left.processing, left.ready, left.delayed) == (("foo", "bar"), ("waits",), ("later",))


async def test_several_tasks_may_drain_the_same_queue(nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    drains = [Draining(queue), Draining(queue)]
    queue.add("a")
    async with queue.take():
        for each in drains:
            nursery.start_soon(each.run)
        await trio.testing.wait_all_tasks_blocked()
    await trio.testing.wait_all_tasks_blocked()
    assert [each.is_over for each in drains] == [True, True]


async def test_a_pending_key_whose_work_is_cancelled_is_not_unfinished() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    with trio.CancelScope() as scope:
        async with queue.take() as key:
            queue.add(key)
            queue.shut_down()
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert await taken(queue) == ["a"]
    assert not await queue.drain()


async def test_a_queue_that_is_drained_under_load_processes_all_accepted_keys(
    autojump_clock: trio.testing.MockClock,
) -> None:
    queue = WorkQueue[int]()
    accepted: set[int] = set()
    rejected: set[int] = set()
    handled: list[int] = []

    async def produce(first: int) -> None:
        for key in range(first, 1_000, 10):
            (accepted if queue.add(key) else rejected).add(key)
            await trio.sleep(0.01)

    async def handle(key: int) -> None:
        await trio.sleep(0.02)
        handled.append(key)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: queue.process(handle, workers=5))
        for first in range(10):
            nursery.start_soon(produce, first)
        await trio.sleep(0.405)
        with trio.fail_after(10):
            assert not await queue.drain()
    assert sorted(handled) == sorted(accepted)
    assert len(accepted) == 410
    assert accepted | rejected == set(range(1_000))


# --- a scenario is cancelled at each of its checkpoints ---


async def cancelled_at(checkpoint: int, scenario: Callable[[], Awaitable[None]]) -> bool:
    """Run a scenario and cancel it at its n-th checkpoint; return whether it had that many."""
    passed = 0
    with trio.CancelScope() as scope:

        class Count(trio.abc.Instrument):
            def before_task_step(self, task: trio.lowlevel.Task) -> None:
                nonlocal passed
                passed += 1
                if passed == checkpoint:
                    scope.cancel()

        count = Count()
        trio.lowlevel.add_instrument(count)
        try:
            await scenario()
        finally:
            trio.lowlevel.remove_instrument(count)
    return scope.cancelled_caught


async def test_no_key_is_lost_when_everything_is_cancelled_at_any_checkpoint(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cancelled = 0
    for checkpoint in range(1, 400):
        queue = RateLimitingQueue[str]()
        added: set[str] = set()
        handled: set[str] = set()

        async def handle(
            key: str,
            added: set[str] = added,
            handled: set[str] = handled,
            queue: RateLimitingQueue[str] = queue,
        ) -> None:
            await trio.sleep(0.01)
            if key == "fails" and queue.num_requeues(key) < 2:
                try:
                    await trio.sleep(0.01)
                finally:
                    queue.add_rate_limited(key)
                return
            await trio.lowlevel.checkpoint()
            handled.add(key)

        async def scenario(
            added: set[str] = added,
            queue: RateLimitingQueue[str] = queue,
            handle: Callable[[str], Awaitable[None]] = handle,
        ) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: queue.process(handle, workers=3))
                for key in ("a", "b", "fails", "c", "d"):
                    added.add(key)
                    queue.add(key)
                    await trio.lowlevel.checkpoint()
                added.add("later")
                queue.add_after("later", 0.05)
                await trio.sleep(1)
                await queue.drain()

        was_cancelled = await cancelled_at(checkpoint, scenario)
        left = queue.remaining()
        assert left.processing == ()
        assert handled | {*left.ready, *left.delayed, *left.unfinished} == added
        assert queue.statistics().tasks_waiting == 0
        cancelled += was_cancelled
        if not was_cancelled:
            break
    assert cancelled > 30
