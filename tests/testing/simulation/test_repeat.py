"""Stories in another interpreter."""

from __future__ import annotations

import trio

from tests.testing.simulation.operators import Maps, operate
from trioformer import Client
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation._repeat import first_difference
from trioformer.testing.simulation._run import run_story
from trioformer.testing.simulation._scenario import Scenario
from trioformer.testing.simulation._story import Fault, Step, Story

STORY = Story(
    steps=(Step(name="create", arguments={"count": 2}),), faults=(Fault(kind="kill", at="create secrets", lasts=1.0),)
)


async def hashing(client: Client) -> None:
    """Read in an order that depends on the hashes of texts."""
    for name in {str(number) for number in range(50)}:
        await client.api(ConfigMap, namespace="default").get_or_none(name)
    await trio.sleep_forever()


def test_a_story_is_the_same_in_another_interpreter() -> None:
    entries = run_story(operate, Scenario(Maps), STORY).entries
    assert first_difference(operate, Scenario(Maps), STORY, entries) == ""


async def printing(client: Client) -> None:
    """Print something, and run the operator."""
    print("it starts")
    await operate(client)


def test_what_a_program_prints_is_no_difference() -> None:
    entries = run_story(printing, Scenario(Maps), STORY).entries
    assert first_difference(printing, Scenario(Maps), STORY, entries) == ""


def test_a_program_that_depends_on_hashes_is_noticed() -> None:
    entries = run_story(hashing, Scenario(Maps), STORY).entries
    difference = first_difference(hashing, Scenario(Maps), STORY, entries)
    assert difference
    assert "get configmaps" in difference


def test_a_function_that_cannot_be_imported_is_not_repeated() -> None:
    async def inner(client: Client) -> None:
        await operate(client)

    entries = run_story(inner, Scenario(Maps), STORY).entries
    assert first_difference(inner, Scenario(Maps), STORY, entries) is None
