"""Runs of leader code never overlap: several candidates, clocks that disagree, and all faults of requests."""

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

from tests.support.lease_candidates import Fault, FaultInjector, LeaderRuns, candidate
from trioformer.errors import TrioformerError
from trioformer.leaderelection._elector import LeaderElector
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import RequestRecord

FAULTS: tuple[Fault, ...] = ("refuse", "hang", "lose response", "deliver late", "slow")
IS_LONG = hypothesis.settings.get_current_profile_name() == "long"
SCENARIO = 600.0
"""Virtual seconds with faults."""


@attrs.define(eq=False)
class RandomFaults:
    """Faults of one candidate's requests, which change after random periods."""

    rng: random.Random
    until: float = 0.0
    faults: tuple[Fault, ...] = ("none",)
    killed_at: float = math.inf
    """When its process is killed; it sends nothing after that."""

    def __call__(self, request: httpx.Request) -> Fault:
        now = trio.current_time()
        if now >= self.killed_at:
            return "refuse"
        if now >= SCENARIO:
            return "none"
        if now >= self.until:
            self.until = now + self.rng.expovariate(1 / 15)
            kind = self.rng.random()
            if kind < 0.4:
                self.faults = ("none",)
            elif kind < 0.7:
                self.faults = (self.rng.choice(FAULTS),)  # the same for all requests
            else:
                self.faults = ("none", "none", *FAULTS)
        return self.rng.choice(self.faults)


def skewed(rng: random.Random) -> Callable[[], float]:
    """A wall clock that is wrong by up to a day, and that drifts or stands still."""
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + rng.uniform(-86_400, 86_400)
    rate = rng.choice([0.0, 0.9, 0.999, 1.0, 1.001])
    return lambda: start + rate * trio.current_time()


@attrs.define(eq=False)
class Replica:
    """A process that ends at random, by cancellation, a kill or an error, and is restarted each time."""

    rng: random.Random
    runs: LeaderRuns
    elector: LeaderElector
    transport: FaultInjector

    async def run(self) -> None:
        while True:
            ends_at = trio.current_time() + self.rng.expovariate(1 / 60)
            self.transport.fault = RandomFaults(self.rng)
            is_killed = self.rng.random() < 0.3
            if is_killed:
                self.transport.fault.killed_at = ends_at
            # 5 s are between the cancellation and the time when another candidate may take over.
            clean_up = 0.0 if is_killed else self.rng.uniform(0, 4.99)
            work = self.runs.leader_code(for_seconds=self.rng.expovariate(1 / 60), clean_up=clean_up)
            with trio.move_on_at(ends_at):
                with contextlib.suppress(TrioformerError):  # the process fails
                    await self.elector.run(work, again_after_loss=self.rng.random() < 0.5)
            await trio.sleep(self.rng.uniform(0, 5))


async def run_scenario(seed: int) -> LeaderRuns:
    """Run three candidates with faults for ten minutes; one of them leads after that."""
    rng = random.Random(seed)
    server, runs = APIServer(seed=seed), LeaderRuns()

    def random_status(record: RequestRecord) -> int | None:
        if trio.current_time() >= SCENARIO or rng.random() > 0.1:
            return None
        return rng.choice([409, 429, 500, 503, 504])

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        server.fail_next(1_000_000, resource="leases", status=random_status)
        async with (
            candidate(server, nursery, "a", wall_clock=skewed(rng), rng=rng) as (a, transport_a),
            candidate(server, nursery, "b", wall_clock=skewed(rng), rng=rng) as (b, transport_b),
            candidate(server, nursery, "c", wall_clock=skewed(rng), rng=rng) as (c, transport_c),
            trio.open_nursery() as replicas,
        ):
            for elector, transport in ((a, transport_a), (b, transport_b), (c, transport_c)):
                transport.delivery_delay = lambda: rng.uniform(1, 30)
                transport.latency = lambda: rng.uniform(0, 3)
                replicas.start_soon(Replica(rng, runs, elector, transport).run)
            await trio.sleep(SCENARIO)
            before = len(runs.ended)
            await trio.sleep(120)
            assert len(runs.ended) > before or runs.running, "nobody leads although there are no faults"
            assert [elector.statistics().overruns for elector in (a, b, c)] == [0, 0, 0]
            replicas.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
    return runs


def check_scenario(seed: int) -> LeaderRuns:
    return trio.run(run_scenario, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@hypothesis.given(seed=st.integers(0, 2**32))
@hypothesis.settings(max_examples=10 if IS_LONG else 4)
def test_leader_runs_never_overlap_under_faults_of_requests_clocks_and_processes(seed: int) -> None:
    check_scenario(seed)


@pytest.mark.long
def test_leader_runs_never_overlap_in_hundreds_of_scenarios() -> None:
    for seed in range(200):
        check_scenario(seed)


def test_the_scenarios_have_many_leaders_and_losses() -> None:
    runs = check_scenario(0)
    assert len(runs.ended) >= 5
    assert {identity for identity, _, _ in runs.ended} == {"a", "b", "c"}
