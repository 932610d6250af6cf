"""Time and chance can be replaced for one task and the tasks that it starts."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime

import pytest
import trio

from trioformer._retry import Backoff
from trioformer._surroundings import Surroundings, host_name, new_uuid, surroundings, wall_time
from trioformer.events import EventRecorderOptions
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.models.conditions import Condition, set_condition
from trioformer.workqueue import ItemExponentialFailureRateLimiter


def of_story(seed: int) -> Surroundings:
    generator = random.Random(seed)
    return Surroundings(
        wall_time=lambda: 86_400.0,
        host_name=lambda: f"replica-{seed}",
        new_uuid=lambda: uuid.UUID(int=generator.getrandbits(128), version=4),
        new_generator=lambda: random.Random(generator.getrandbits(64)),
    )


def drawn() -> list[object]:
    limiter = ItemExponentialFailureRateLimiter(jitter=0.5)
    delays = [Backoff().next_delay(), limiter.when("a"), LeaderElectionOptions().rng.random()]
    return [host_name(), new_uuid(), EventRecorderOptions().rng.random(), *delays]


async def test_a_replica_has_its_own_surroundings(nursery: trio.Nursery) -> None:
    found: dict[str, list[object]] = {}

    async def run(name: str, seed: int) -> None:
        surroundings.set(of_story(seed))
        async with trio.open_nursery() as inner:

            async def draw() -> None:
                found[name] = drawn()

            inner.start_soon(draw)

    async with trio.open_nursery() as replicas:
        for name, seed in {"one": 1, "again": 1, "two": 2}.items():
            replicas.start_soon(run, name, seed)
    assert found["one"] == found["again"]
    assert not set(found["one"]) & set(found["two"])
    assert drawn()[0] not in ("replica-1", "replica-2")


def test_conditions_and_options_use_the_wall_time() -> None:
    assert wall_time() == pytest.approx(time.time(), abs=60)
    token = surroundings.set(of_story(1))
    try:
        (made,) = set_condition((), type="Ready", status=True, reason="Done")
        clocks = (LeaderElectionOptions().wall_clock, EventRecorderOptions().wall_clock)
        assert [clock() for clock in clocks] == [86_400.0, 86_400.0]
    finally:
        surroundings.reset(token)
    assert isinstance(made, Condition)
    assert made.last_transition_time == datetime(1970, 1, 2, tzinfo=UTC)
