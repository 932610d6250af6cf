"""Replicas that end with an error."""

from __future__ import annotations

import trio

from tests.testing.simulation.operators import Maps
from trioformer import Client
from trioformer.models.core_v1 import Secret
from trioformer.testing.simulation import Fault, Story
from trioformer.testing.simulation._run import run_story
from trioformer.testing.simulation._scenario import Scenario


async def fragile(client: Client) -> None:
    """End with the first error."""
    for _ in range(3):
        await client.api(Secret).list()
    await trio.sleep_forever()


async def broken(client: Client) -> None:
    raise LookupError("nothing here")


async def returning(client: Client) -> None:
    await trio.lowlevel.checkpoint()


def test_an_error_that_a_fault_has_caused_is_no_problem_and_the_replica_starts_again() -> None:
    faults = tuple(Fault(kind="answer", at="list secrets", number=number, code=403) for number in (1, 2))
    outcome = run_story(fragile, Scenario(Maps), Story(faults=faults))
    assert outcome.problem is None
    assert [int(one.time) for one in outcome.entries if one.what == "list secrets"][:3] == [0, 10, 30]


def test_an_error_without_a_fault_is_a_problem() -> None:
    for operator, what in ((broken, "nothing here"), (returning, "returned")):
        problem = run_story(operator, Scenario(Maps), Story()).problem
        assert problem is not None
        assert problem.check == "operator failed"
        assert what in problem.text
