"""The queue is compared with a simple model after each of many random steps.

Workers are tasks that take one key and hold it until the test ends them, so any number of them may wait or work during
other steps.
The ordinary run lets hypothesis choose the steps, in 100 examples of 40.
``--long`` has 10,000 examples, and a million random steps as well.
"""

from __future__ import annotations

import math
import queue as host
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import pytest
import trio
import trio.lowlevel
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trioformer.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue
from trioformer.workqueue._statistics import Remaining

if TYPE_CHECKING:
    import outcome  # trio's own dependency, not ours

IS_LONG = settings.get_current_profile_name() == "long"
KEYS = "abcdef"
PRIORITIES = (-100, 0, 0, 0, 5)
DELAYS = (0.0, 1.0, 2.0, 5.0)


@attrs.define(eq=False)
class Model:
    """The queue as documented, in simple data structures."""

    oldest_every: int | None = None
    now: float = 0.0
    clock: int = 0  # a number for every change of the order
    pending: dict[str, int] = attrs.field(factory=dict)  # priority
    arrived: dict[str, int] = attrs.field(factory=dict)  # of ready keys: when they were added,
    placed: dict[str, int] = attrs.field(factory=dict)  # and when with this priority
    delayed: dict[str, tuple[float, int, int]] = attrs.field(factory=dict)  # due, place, priority
    processing: dict[str, tuple[float, int]] = attrs.field(factory=dict)  # since, priority
    waiting: list[int] = attrs.field(factory=list)
    held: dict[int, str] = attrs.field(factory=dict)
    given: set[str] = attrs.field(factory=set)  # to workers that have not run yet
    rate_limited: set[str] = attrs.field(factory=set)
    failures: Counter[str] = attrs.field(factory=Counter)
    unfinished: list[str] = attrs.field(factory=list)
    is_shut_down: bool = False
    choices: int = 0
    adds: int = 0
    retries: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def ready(self) -> list[str]:
        return sorted(self.placed, key=lambda key: (-self.pending[key], self.placed[key]))

    def make_pending(self, key: str, priority: int) -> None:
        if key in self.given:
            since, taken = self.processing[key]
            self.processing[key] = (since, max(priority, taken))
        elif key not in self.pending:
            self.adds += 1
            self.pending[key] = priority
            if key not in self.processing:
                self.arrived[key] = self.placed[key] = self.tick()
        elif priority > self.pending[key]:
            self.pending[key] = priority
            if key in self.placed:
                self.placed[key] = self.tick()

    def hand_out(self) -> None:
        if not self.is_shut_down:
            for key in sorted(self.delayed, key=self.delayed.__getitem__):
                if self.delayed[key][0] <= self.now:
                    self.make_pending(key, self.delayed.pop(key)[2])
        while self.waiting and self.placed:
            self.hand_off(self.waiting.pop(0))

    def hand_off(self, worker: int) -> None:
        key = self.ready()[0]
        if self.oldest_every is not None and len({self.pending[each] for each in self.placed}) > 1:
            self.choices += 1
            if self.choices == self.oldest_every:
                self.choices = 0
                key = min(self.ready(), key=self.arrived.__getitem__)
        del self.arrived[key], self.placed[key]
        self.processing[key] = (self.now, self.pending.pop(key))
        self.held[worker] = key
        self.given.add(key)

    def add(self, key: str, priority: int) -> bool:
        if self.rejects(key):
            return False
        if key in self.delayed:
            priority = max(priority, self.delayed.pop(key)[2])
        self.make_pending(key, priority)
        self.hand_out()
        return True

    def rejects(self, key: str) -> bool:
        if self.is_shut_down and key in self.processing:
            self.leave_unfinished(key)
        return self.is_shut_down

    def leave_unfinished(self, key: str) -> None:
        if key not in self.pending and key not in self.unfinished:
            self.unfinished.append(key)

    def add_after(self, key: str, delay: float, priority: int | None) -> bool:
        if self.rejects(key):
            return False
        if priority is None:
            priority = self.processing[key][1] if key in self.processing else 0
        if delay <= 0:
            return self.add(key, priority)
        self.retries += 1
        if key in self.pending:
            self.make_pending(key, priority)
        elif key not in self.delayed:
            self.delayed[key] = (self.now + delay, self.tick(), priority)
        else:
            due, place, highest = self.delayed[key]
            if self.now + delay < due:
                due, place = self.now + delay, self.tick()
            self.delayed[key] = (due, place, max(highest, priority))
        return True

    def shut_down(self, *, immediate: bool) -> None:
        self.is_shut_down = True
        if immediate:
            for key in (*self.ready(), *self.pending):
                if key not in self.unfinished:
                    self.unfinished.append(key)
            for left in (self.pending, self.arrived, self.placed):
                left.clear()

    def add_rate_limited(self, key: str, priority: int | None) -> bool:
        if self.rejects(key):
            return False
        if key in self.processing:
            self.rate_limited.add(key)
        return self.add_after(key, self.when(key), priority)

    def when(self, key: str) -> float:
        self.failures[key] += 1
        return min(8.0, 2.0 ** (self.failures[key] - 1))

    def end(self, worker: int, how: str) -> None:
        key = self.held.pop(worker)
        _, priority = self.processing.pop(key)
        if key in self.pending:
            self.arrived[key] = self.placed[key] = self.tick()
            self.hand_out()
        if how == "cancelled":
            if self.is_shut_down:
                self.leave_unfinished(key)
            else:
                self.add(key, priority)
        elif key not in self.rate_limited:
            if how == "done":
                del self.failures[key]
            elif self.is_shut_down:
                self.leave_unfinished(key)
            else:
                self.add_after(key, self.when(key), priority)
        self.rate_limited.discard(key)


class WorkError(Exception):
    """The exception of a worker that fails."""


@attrs.define(eq=False)
class Worker:
    """A task that takes one key."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    ending: trio.Event = attrs.field(factory=trio.Event)
    how: str = ""
    key: str | None = None

    async def run(self, queue: RateLimitingQueue[str], held: set[str]) -> None:
        with self.scope, suppress(WorkError, trio.EndOfChannel):
            async with queue.take() as self.key:
                await self.hold(self.key, held)

    async def hold(self, key: str, held: set[str]) -> None:
        assert key not in held
        held.add(key)
        try:
            await self.ending.wait()
        finally:
            held.discard(key)
        if self.how == "failed":
            raise WorkError


@attrs.define(eq=False)
class QueueAndModel:
    """The queue and its model, on which the same operations are called."""

    nursery: trio.Nursery
    clock: trio.testing.MockClock
    oldest_every: int | None = None
    queue: RateLimitingQueue[str] = attrs.field(init=False)
    model: Model = attrs.field(init=False)
    workers: dict[int, Worker] = attrs.field(factory=dict)
    held: set[str] = attrs.field(factory=set)
    numbers: int = 0

    def __attrs_post_init__(self) -> None:
        self.queue = RateLimitingQueue(ItemExponentialFailureRateLimiter(1, 8), oldest_every=self.oldest_every)
        self.model = Model(self.oldest_every)

    def add(self, key: str, priority: int) -> None:
        assert self.queue.add(key, priority=priority) == self.model.add(key, priority)

    def add_after(self, key: str, delay: float, priority: int | None) -> None:
        assert self.queue.add_after(key, delay, priority=priority) == self.model.add_after(key, delay, priority)

    def add_rate_limited(self, key: str, priority: int | None) -> None:
        assert self.queue.add_rate_limited(key, priority=priority) == self.model.add_rate_limited(key, priority)

    def cancel_delayed(self, key: str) -> None:
        assert self.queue.cancel_delayed(key) == (self.model.delayed.pop(key, None) is not None)

    def forget(self, key: str) -> None:
        self.queue.forget(key)
        del self.model.failures[key]

    def take(self) -> None:
        worker = Worker()
        self.numbers += 1
        if self.model.is_shut_down and not self.model.placed:
            self.nursery.start_soon(worker.run, self.queue, self.held)
            return
        self.workers[self.numbers] = worker
        self.model.waiting.append(self.numbers)
        self.model.hand_out()
        self.nursery.start_soon(worker.run, self.queue, self.held)

    def end(self, number: int, how: str) -> None:
        worker = self.workers.pop(number)
        worker.how = how
        if how == "cancelled":
            worker.scope.cancel()
        else:
            worker.ending.set()
        if number in self.model.waiting:
            self.model.waiting.remove(number)
        else:
            self.model.end(number, how)

    def advance(self, seconds: float) -> None:
        # The queue is compared only after a jump, so the length of the jump does not matter.
        self.clock.jump(seconds)
        self.model.now += seconds
        self.model.hand_out()

    def shut_down(self, *, immediate: bool = False) -> None:
        self.queue.shut_down(immediate=immediate)
        self.model.shut_down(immediate=immediate)
        for number in self.model.waiting:
            del self.workers[number]
        self.model.waiting.clear()

    def compare(self) -> None:
        queue, model = self.queue, self.model
        model.given.clear()
        assert {number: worker.key for number, worker in self.workers.items() if worker.key} == model.held
        assert self.held == set(model.held.values())
        left = queue.remaining()
        assert left == Remaining(
            processing=left.processing,
            ready=tuple(model.ready()),
            delayed=tuple(sorted(model.delayed, key=model.delayed.__getitem__)),
            unfinished=tuple(model.unfinished),
        )
        assert sorted(left.processing) == sorted(model.processing)
        assert len(queue) == len(model.placed)
        for key in KEYS:
            due = queue.due_time(key)
            assert due == (model.delayed[key][0] if key in model.delayed else None)
            assert queue.num_requeues(key) == model.failures[key]
        seen = queue.statistics()
        ages = [model.now - since for since, _ in model.processing.values()]
        assert (seen.depth, seen.delayed, seen.processing) == (len(model.pending), len(model.delayed), len(ages))
        assert seen.depth_by_priority == Counter(model.pending.values())
        assert (seen.adds, seen.retries) == (model.adds, model.retries)
        assert (seen.longest_running, seen.unfinished_work) == (max(ages, default=0), sum(ages))
        assert (seen.tasks_waiting, seen.is_shut_down) == (len(model.waiting), model.is_shut_down)


class Guest:
    """A trio run in guest mode that runs only during :meth:`do`, since hypothesis' steps are plain functions."""

    def __init__(self, make: Callable[[trio.Nursery, trio.testing.MockClock], QueueAndModel]) -> None:
        self.clock = trio.testing.MockClock()
        self.make = make
        self.both: QueueAndModel | None = None
        self.outcome: outcome.Outcome[None] | None = None
        self._calls = host.SimpleQueue[Callable[[], object]]()
        self._todo: Callable[[QueueAndModel], None] | None = None
        self._woken = trio.Event()
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._calls.put,
            done_callback=self._finished,
            clock=self.clock,
            host_uses_signal_set_wakeup_fd=True,
        )
        self._pump()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self.both = self.make(nursery, self.clock)
            while True:
                self._is_idle = True
                await self._woken.wait()
                self._woken = trio.Event()
                assert self._todo is not None
                self._todo(self.both)
                await trio.testing.wait_all_tasks_blocked()

    def _finished(self, result: outcome.Outcome[None]) -> None:
        self.outcome = result

    def _pump(self) -> None:
        self._is_idle = False
        while not self._is_idle and self.outcome is None:
            self._calls.get()()
        if self.outcome is not None:
            self.outcome.unwrap()

    def do(self, todo: Callable[[QueueAndModel], None]) -> None:
        """Call a function in trio, and run until every task waits."""
        self._todo = todo
        self._token.run_sync_soon(lambda: self._woken.set())
        self._pump()

    def close(self) -> None:
        """Cancel all tasks, and run until they have ended."""
        if self.outcome is None:
            both = self.both
            assert both is not None
            self._token.run_sync_soon(both.nursery.cancel_scope.cancel)
            while self.outcome is None:
                self._calls.get()()
            self.outcome.unwrap()


class QueueBesideModel(RuleBasedStateMachine):
    """Calls the operations in any order."""

    guest: Guest | None = None

    @initialize(oldest_every=st.sampled_from([None, None, 2, 3]))
    def begin(self, oldest_every: int | None) -> None:
        self.guest = Guest(lambda nursery, clock: QueueAndModel(nursery, clock, oldest_every))

    @property
    def both(self) -> QueueAndModel:
        assert self.guest is not None
        assert self.guest.both is not None
        return self.guest.both

    def do(self, todo: Callable[[QueueAndModel], None]) -> None:
        assert self.guest is not None
        self.guest.do(todo)

    @rule(key=st.sampled_from(KEYS), priority=st.sampled_from(PRIORITIES))
    def add(self, key: str, priority: int) -> None:
        self.do(lambda both: both.add(key, priority))

    @rule(key=st.sampled_from(KEYS), delay=st.sampled_from(DELAYS), priority=st.none() | st.sampled_from(PRIORITIES))
    def add_after(self, key: str, delay: float, priority: int | None) -> None:
        self.do(lambda both: both.add_after(key, delay, priority))

    @rule(key=st.sampled_from(KEYS), priority=st.none() | st.sampled_from(PRIORITIES))
    def add_rate_limited(self, key: str, priority: int | None) -> None:
        self.do(lambda both: both.add_rate_limited(key, priority))

    @rule(key=st.sampled_from(KEYS))
    def cancel_delayed(self, key: str) -> None:
        self.do(lambda both: both.cancel_delayed(key))

    @rule(key=st.sampled_from(KEYS))
    def forget(self, key: str) -> None:
        self.do(lambda both: both.forget(key))

    @rule()
    def take(self) -> None:
        self.do(lambda both: both.take())

    @precondition(lambda self: self.guest is not None and self.both.workers)
    @rule(data=st.data(), how=st.sampled_from(["done", "failed", "cancelled"]))
    def end(self, data: st.DataObject, how: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.both.workers)))
        if number in self.both.model.waiting:
            how = "cancelled"
        self.do(lambda both: both.end(number, how))

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 10.0]))
    def advance(self, seconds: float) -> None:
        self.do(lambda both: both.advance(seconds))

    @precondition(lambda self: self.guest is not None and self.both.numbers > 5)
    @rule(immediate=st.booleans())
    def shut_down(self, immediate: bool) -> None:
        self.do(lambda both: both.shut_down(immediate=immediate))

    @invariant()
    def agrees_with_the_model(self) -> None:
        if self.guest is not None:
            self.do(lambda both: both.compare())

    def teardown(self) -> None:
        if self.guest is not None:
            self.guest.close()


TestQueueBesideModel = QueueBesideModel.TestCase
TestQueueBesideModel.settings = settings(stateful_step_count=40, max_examples=10_000 if IS_LONG else 100)


def step(both: QueueAndModel, rng: random.Random) -> None:
    """Call a random operation."""
    key = rng.choice(KEYS)
    priority = rng.choice(PRIORITIES)
    waiting = len(both.model.waiting)
    what = rng.random()
    if what < 0.25:
        both.add(key, priority)
    elif what < 0.4:
        both.add_after(key, rng.choice(DELAYS), rng.choice([None, priority]))
    elif what < 0.45:
        both.add_rate_limited(key, None)
    elif what < 0.5:
        both.cancel_delayed(key)
    elif what < 0.52:
        both.forget(key)
    elif what < 0.72 and len(both.workers) < 8:
        both.take()
    elif what < 0.9 and both.workers:
        number = rng.choice(list(both.workers))
        how = "cancelled" if number in both.model.waiting else rng.choice(["done", "done", "failed", "cancelled"])
        if how != "cancelled" or waiting < 3 or rng.random() < 0.3:
            both.end(number, how)
    else:
        both.advance(rng.choice([0.5, 1.0, 3.0]))


async def walk(steps: int, seed: int, clock: trio.testing.MockClock) -> None:
    rng = random.Random(seed)
    async with trio.open_nursery() as nursery:
        for begin in range(0, steps, 5_000):
            both = QueueAndModel(nursery, clock, rng.choice([None, 2, 5]))
            both.model.now = trio.current_time()
            for _ in range(min(5_000, steps - begin)):
                step(both, rng)
                await trio.testing.wait_all_tasks_blocked()
                both.compare()
            both.shut_down()
            while both.workers or both.model.placed:
                if not both.workers:
                    both.take()
                await trio.testing.wait_all_tasks_blocked()
                both.compare()
                # One by one: trio runs tasks that wake together in random order, unlike the model.
                for number in list(both.workers):
                    both.end(number, "done")
                    await trio.testing.wait_all_tasks_blocked()
                    both.compare()
            left = await both.queue.drain()
            assert (left.processing, left.ready) == ((), ())


async def test_the_queue_agrees_with_the_model_in_thousands_of_random_steps(
    mock_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestAddTwoFireEarly, TestAddWhileProcessing, TestDeduping, TestLen"""
    await walk(3_000, 1, mock_clock)


@pytest.mark.long
async def test_the_queue_agrees_with_the_model_in_a_million_random_steps(mock_clock: trio.testing.MockClock) -> None:
    seed = random.SystemRandom().randrange(10**9)
    print("seed", seed)
    await walk(1_000_000, seed, mock_clock)


def test_a_difference_between_queue_and_model_is_detected() -> None:
    """The comparison itself can fail."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock)
            both = QueueAndModel(nursery, clock)
            both.add("a", 0)
            both.queue.add("a", priority=5)
            with pytest.raises(AssertionError):
                both.compare()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=math.inf))
