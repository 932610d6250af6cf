"""Many producers, and workers that fail, are cancelled and restarted: no add is lost, no key has two workers."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest
import trio
import trio.testing

from trioformer.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue

PRODUCERS = 5


class CrashError(Exception):
    """The exception of a worker that crashes."""


@attrs.define(eq=False)
class Counters:
    """An observer that counts."""

    counts: Counter[str] = attrs.field(factory=Counter)

    def added(self, key: int, *, priority: int) -> None:
        self.counts["added"] += 1

    def delayed(self, key: int, *, delay: float) -> None:
        assert delay > 0
        self.counts["delayed"] += 1

    def taken(self, key: int, *, waited: float) -> None:
        assert waited >= 0
        self.counts["taken"] += 1

    def finished(self, key: int, *, duration: float) -> None:
        assert duration >= 0
        self.counts["finished"] += 1


@attrs.define(eq=False)
class Stress:
    """A queue with producers and failing workers.

    Every add of a key is counted.  The work on a key begins with reading the key's count, so at the end the last count
    that was read must be that of the last add: a lost key, or one that was processed before its last add, is detected.
    """

    rng: random.Random
    keys: int
    queue: RateLimitingQueue[int] = attrs.field(init=False)
    counters: Counters = attrs.field(factory=Counters)
    adds: Counter[int] = attrs.field(factory=Counter)
    seen: dict[int, int] = attrs.field(factory=dict)
    busy: set[int] = attrs.field(factory=set)
    is_ending: bool = False
    crashes: int = 0
    cancelled: int = 0

    def __attrs_post_init__(self) -> None:
        limiter = ItemExponentialFailureRateLimiter(0.05, 5)
        self.queue = RateLimitingQueue(limiter, oldest_every=self.rng.choice([None, 3]), observer=self.counters)

    async def produce(self, adds: int) -> None:
        rng, queue = self.rng, self.queue
        for _ in range(adds):
            key, priority = rng.randrange(self.keys), rng.choice([-100, 0, 0, 5])
            self.adds[key] += 1
            choice = rng.random()
            if choice < 0.6:
                assert queue.add(key, priority=priority)
            elif choice < 0.8:
                assert queue.add_after(key, rng.uniform(0, 2), priority=priority)
            elif choice < 0.9:
                assert queue.add_rate_limited(key)
            else:  # postpone
                queue.cancel_delayed(key)
                assert queue.add_after(key, rng.uniform(0, 5))
            if rng.random() < 0.3:
                await trio.sleep(rng.choice([0, 0.001, 0.05]))

    async def handle(self, key: int) -> None:
        assert key not in self.busy
        self.busy.add(key)
        try:
            number = self.adds[key]
            await self.work(key)
            self.seen[key] = number
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.busy.discard(key)

    async def work(self, key: int) -> None:
        choice = self.rng.random()
        if choice < 0.2:
            return
        await trio.sleep(self.rng.choice([0, 0.002, 0.01]))
        if choice > 0.97 and not self.is_ending:
            self.crashes += 1
            raise CrashError
        if choice > 0.95 and not self.is_ending:
            await trio.sleep_forever()

    async def keep_workers(self) -> None:
        """Run workers again and again; crashes and deadlines end them."""
        while not self.queue.is_shut_down:
            with trio.move_on_after(100 if self.is_ending else self.rng.uniform(0.05, 1)):
                try:
                    await self.queue.process(self.handle, workers=self.rng.randrange(1, 12))
                except* CrashError:
                    pass

    async def run(self, adds: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keep_workers)
            nursery.start_soon(self.keep_workers)
            async with trio.open_nursery() as producers:
                for _ in range(PRODUCERS):
                    producers.start_soon(self.produce, adds // PRODUCERS)
            self.is_ending = True
            await trio.sleep(1_000)
            assert not await self.queue.drain()
        assert self.seen == self.adds
        counts = self.counters.counts
        assert counts["added"] == counts["taken"] == counts["finished"] == self.queue.statistics().adds
        assert counts["delayed"] == self.queue.statistics().retries
        assert self.crashes > 10
        assert self.cancelled > 10


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_add_is_lost_and_no_key_has_two_workers(seed: int, autojump_clock: trio.testing.MockClock) -> None:
    await Stress(random.Random(seed), keys=40).run(5_000)


@pytest.mark.long
@pytest.mark.parametrize("keys", [3, 1_000])
async def test_no_add_is_lost_and_no_key_has_two_workers_in_a_long_run(
    keys: int, autojump_clock: trio.testing.MockClock
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    print("seed", seed)
    await Stress(random.Random(seed), keys=keys).run(500_000)
