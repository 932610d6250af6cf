"""Never two bodies at once: several candidates, clocks that disagree, and everything that can happen to a request."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime

import attrs
import httpx
import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from tests.support.lease_candidates import Fate, Stage, Wire, candidate
from trioformer.errors import TrioformerError
from trioformer.leaderelection._elector import LeaderElector
from trioformer.testing import APIServer, RequestRecord

TROUBLES: tuple[Fate, ...] = ("refuse", "swallow", "lose answer", "late", "slow")
STORY = 600.0
"""Virtual seconds of trouble."""


@attrs.define(eq=False)
class Troubles:
    """What happens to one candidate's requests: for a while nothing, for a while this or that."""

    rng: random.Random
    until: float = 0.0
    fates: tuple[Fate, ...] = ("pass",)
    killed_at: float = math.inf
    """When its process is killed: nothing leaves it any more."""

    def __call__(self, request: httpx.Request) -> Fate:
        now = trio.current_time()
        if now >= self.killed_at:
            return "refuse"
        if now >= STORY:
            return "pass"
        if now >= self.until:
            self.until = now + self.rng.expovariate(1 / 15)
            kind = self.rng.random()
            if kind < 0.4:
                self.fates = ("pass",)
            elif kind < 0.7:
                self.fates = (self.rng.choice(TROUBLES),)  # all requests alike
            else:
                self.fates = ("pass", "pass", *TROUBLES)
        return self.rng.choice(self.fates)


def skewed(rng: random.Random) -> Callable[[], float]:
    """A wall clock that is wrong by up to a day and drifts, or stands still."""
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + rng.uniform(-86_400, 86_400)
    rate = rng.choice([0.0, 0.9, 0.999, 1.0, 1.001])
    return lambda: start + rate * trio.current_time()


@attrs.define(eq=False)
class Replica:
    """A process that ends for one reason or another, and is started again each time."""

    rng: random.Random
    stage: Stage
    elector: LeaderElector
    wire: Wire

    async def live(self) -> None:
        while True:
            ends_at = trio.current_time() + self.rng.expovariate(1 / 60)
            self.wire.fate = Troubles(self.rng)
            is_killed = self.rng.random() < 0.3
            if is_killed:
                self.wire.fate.killed_at = ends_at
            # 5 s lie between being told to end and the time when others may take over.
            clean_up = 0.0 if is_killed else self.rng.uniform(0, 4.99)
            body = self.stage.body(for_seconds=self.rng.expovariate(1 / 60), clean_up=clean_up)
            with trio.move_on_at(ends_at):
                with contextlib.suppress(TrioformerError):  # the process fails
                    await self.elector.run(body, again_after_loss=self.rng.random() < 0.5)
            await trio.sleep(self.rng.uniform(0, 5))


async def tell_a_story(seed: int) -> Stage:
    """Let three candidates fare badly for ten minutes, then see that one of them leads."""
    rng = random.Random(seed)
    server, stage = APIServer(seed=seed), Stage()

    def sometimes(record: RequestRecord) -> int | None:
        if trio.current_time() >= STORY or rng.random() > 0.1:
            return None
        return rng.choice([409, 429, 500, 503, 504])

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        server.fail_next(1_000_000, resource="leases", status=sometimes)
        async with (
            candidate(server, nursery, "a", wall_clock=skewed(rng), rng=rng) as (a, wire_a),
            candidate(server, nursery, "b", wall_clock=skewed(rng), rng=rng) as (b, wire_b),
            candidate(server, nursery, "c", wall_clock=skewed(rng), rng=rng) as (c, wire_c),
            trio.open_nursery() as replicas,
        ):
            for elector, wire in ((a, wire_a), (b, wire_b), (c, wire_c)):
                wire.lateness = lambda: rng.uniform(1, 30)
                wire.slowness = lambda: rng.uniform(0, 3)
                replicas.start_soon(Replica(rng, stage, elector, wire).live)
            await trio.sleep(STORY)
            before = len(stage.performances)
            await trio.sleep(120)
            assert len(stage.performances) > before or stage.on_stage, "nobody leads although all is well"
            assert [elector.statistics().overruns for elector in (a, b, c)] == [0, 0, 0]
            replicas.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
    return stage


def check_a_story(seed: int) -> Stage:
    return trio.run(tell_a_story, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@hypothesis.given(seed=st.integers(0, 2**32))
@hypothesis.settings(max_examples=10)
def test_no_two_bodies_ever_overlap_whatever_becomes_of_requests_clocks_and_processes(seed: int) -> None:
    check_a_story(seed)


@pytest.mark.long
def test_no_two_bodies_ever_overlap_in_hundreds_of_stories() -> None:
    for seed in range(200):
        check_a_story(seed)


def test_the_stories_have_many_leaders_and_losses() -> None:
    stages = [check_a_story(seed) for seed in range(3)]
    for stage in stages:
        assert len(stage.performances) >= 5
        assert {identity for identity, _, _ in stage.performances} == {"a", "b", "c"}
