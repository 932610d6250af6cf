"""Time and chance, as the code of an operator meets them in a story."""

from __future__ import annotations

import random
import secrets
import time
import uuid
from datetime import UTC, datetime

import trio

from trioformer import Client
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation import Fault, Step, Story, simulate


class Nothing:
    """A user who does nothing for a minute."""

    kinds = (ConfigMap,)


def noticed(story: Story) -> list[object]:
    """Return what an operator notices."""
    found: list[object] = []

    async def operator(client: Client) -> None:
        found.append((time.time(), datetime.now(UTC), random.random(), uuid.uuid4(), secrets.token_hex()))
        await trio.sleep(10)
        found.append((time.time(), datetime.now(UTC)))
        await trio.sleep_forever()

    simulate(operator, Nothing, story=story)
    return found[:2]


def test_time_and_chance_are_the_same_in_each_run_of_a_story() -> None:
    assert noticed(Story(seed=1)) == noticed(Story(seed=1))
    assert noticed(Story(seed=1)) != noticed(Story(seed=2))


def test_time_is_virtual_and_that_of_the_replica() -> None:
    (at_first, day, *_), (later, _) = noticed(Story())  # type: ignore[misc, has-type]
    assert later - at_first == 10
    assert day == datetime(2026, 1, 1, tzinfo=UTC)
    ahead = noticed(
        Story(faults=(Fault(kind="clock", lasts=600.0),), steps=(Step(name="create", arguments={"kind": 0}),))
    )
    assert ahead[0][0] - at_first == 600  # type: ignore[index]


def test_everything_is_real_after_the_story() -> None:
    noticed(Story(seed=1))
    assert abs(time.time() - datetime.now(UTC).timestamp()) < 5
    assert datetime.now(UTC) > datetime(2026, 2, 1, tzinfo=UTC)
    assert secrets.token_hex() != secrets.token_hex()
    assert random.random() != random.Random(1).random()
