"""Producers and workers that fail, are cancelled and come again: no wish is lost, no key is handled twice at once."""

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
    """What a worker dies of."""


@attrs.define(eq=False)
class Counters:
    """An observer whose counts must agree in the end."""

    counts: Counter[str] = attrs.field(factory=Counter)

    def added(self, key: int, *, priority: int) -> None:
        self.counts["added"] += 1

    def delayed(self, key: int, *, delay: float) -> None:
        assert delay > 0
        self.counts["delayed"] += 1

    def taken(self, key: int, *, waited: float) -> None:
        assert waited >= 0
        self.counts["taken"] += 1

    def finished(self, key: int, *, lasted: float) -> None:
        assert lasted >= 0
        self.counts["finished"] += 1


@attrs.define(eq=False)
class Storm:
    """A queue in bad weather.

    Each wish has a number.  Work begins with reading the number of the last wish, so when all is over, the last number
    that was seen must be that of the last wish: whoever loses a key, or hands out an older one last, is found out.
    """

    rng: random.Random
    keys: int
    queue: RateLimitingQueue[int] = attrs.field(init=False)
    counters: Counters = attrs.field(factory=Counters)
    wanted: Counter[int] = attrs.field(factory=Counter)
    seen: dict[int, int] = attrs.field(factory=dict)
    busy: set[int] = attrs.field(factory=set)
    is_calm: bool = False
    crashes: int = 0
    cancelled: int = 0

    def __attrs_post_init__(self) -> None:
        limiter = ItemExponentialFailureRateLimiter(0.05, 5)
        self.queue = RateLimitingQueue(limiter, oldest_every=self.rng.choice([None, 3]), observer=self.counters)

    async def produce(self, wishes: int) -> None:
        rng, queue = self.rng, self.queue
        for _ in range(wishes):
            key, priority = rng.randrange(self.keys), rng.choice([-100, 0, 0, 5])
            self.wanted[key] += 1
            way = rng.random()
            if way < 0.6:
                assert queue.add(key, priority=priority)
            elif way < 0.8:
                assert queue.add_after(key, rng.uniform(0, 2), priority=priority)
            elif way < 0.9:
                assert queue.add_rate_limited(key)
            else:  # put off
                queue.cancel_delayed(key)
                assert queue.add_after(key, rng.uniform(0, 5))
            if rng.random() < 0.3:
                await trio.sleep(rng.choice([0, 0.001, 0.05]))

    async def handle(self, key: int) -> None:
        assert key not in self.busy
        self.busy.add(key)
        try:
            number = self.wanted[key]
            await self.work(key)
            self.seen[key] = number
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.busy.discard(key)

    async def work(self, key: int) -> None:
        fate = self.rng.random()
        if fate < 0.2:
            return
        await trio.sleep(self.rng.choice([0, 0.002, 0.01]))
        if fate > 0.97 and not self.is_calm:
            self.crashes += 1
            raise CrashError
        if fate > 0.95 and not self.is_calm:
            await trio.sleep_forever()

    async def keep_workers(self) -> None:
        """Run workers, whose pool dies of a crash and is cancelled now and then."""
        while not self.queue.is_shut_down:
            with trio.move_on_after(100 if self.is_calm else self.rng.uniform(0.05, 1)):
                try:
                    await self.queue.process(self.handle, workers=self.rng.randrange(1, 12))
                except* CrashError:
                    pass

    async def run(self, wishes: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keep_workers)
            nursery.start_soon(self.keep_workers)
            async with trio.open_nursery() as producers:
                for _ in range(PRODUCERS):
                    producers.start_soon(self.produce, wishes // PRODUCERS)
            self.is_calm = True
            await trio.sleep(1_000)
            assert not await self.queue.drain()
        assert self.seen == self.wanted
        counts = self.counters.counts
        assert counts["added"] == counts["taken"] == counts["finished"] == self.queue.statistics().adds
        assert counts["delayed"] == self.queue.statistics().retries
        assert self.crashes > 10
        assert self.cancelled > 10


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_wish_is_lost_and_no_key_is_handled_twice_at_once(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    await Storm(random.Random(seed), keys=40).run(5_000)


@pytest.mark.long
@pytest.mark.parametrize("keys", [3, 1_000])
async def test_so_it_is_for_a_million_wishes(keys: int, autojump_clock: trio.testing.MockClock) -> None:
    seed = random.SystemRandom().randrange(10**9)
    print("seed", seed)
    await Storm(random.Random(seed), keys=keys).run(500_000)
