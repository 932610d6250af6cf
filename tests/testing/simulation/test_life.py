"""Calls of ``reconcile`` that fail, and programs that end: what the report says about them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.testing.simulation.operators import Maps
from trioformer import Client, SharedInformerFactory
from trioformer.controller import Controller, Request
from trioformer.models.core_v1 import ConfigMap, Secret
from trioformer.testing.simulation import Step, Story, StoryFailed, simulate
from trioformer.testing.simulation import _simulate as module
from trioformer.testing.simulation._run import Outcome, run_story
from trioformer.testing.simulation._scenario import Scenario
from trioformer.workqueue import ItemExponentialFailureRateLimiter

STORY = Story(steps=(Step(name="create", arguments={"count": 1}),))
HERE = Path(__file__)


async def fail(request: Request) -> None:
    if request.name == "one":
        raise LookupError("no\nluck")  # this line


async def fail_in_library(client: Client, _: Request) -> None:
    await client.api(Secret, namespace="default").get("missing")  # that line


def line_of(text: str) -> str:
    lines = HERE.read_text("utf-8").splitlines()
    number = 1 + next(index for index, line in enumerate(lines) if line.endswith(f"  # {text} line"))
    return f"{HERE.name}:{number}"


async def failing(
    client: Client, *, longest: float = 25.0, max_retries: int | None = None, in_library: bool = False
) -> None:
    factory = SharedInformerFactory(client)
    limiter = ItemExponentialFailureRateLimiter(max_delay=longest)
    reconcile = partial(fail_in_library, client) if in_library else fail
    controller = Controller("maps", reconcile, limiter=limiter, max_retries=max_retries)
    controller.watch(factory.informer(ConfigMap))
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await controller.run()


def outcome_of(**options: object) -> Outcome:
    return run_story(partial(failing, **options), Scenario(Maps), STORY)  # type: ignore[arg-type]


@pytest.mark.parametrize(("longest", "times"), [(25.0, 39), (1_000.0, 18)])
def test_a_call_that_fails_each_time_is_no_call_that_was_not_repeated(longest: float, times: int) -> None:
    problem = outcome_of(longest=longest).problem
    assert problem is not None
    assert problem.check == "fails each time"
    assert f"the call for default/one has failed {times} times in a row, the last time " in problem.text
    assert "LookupError: no luck, at " in problem.text
    assert problem.text.endswith(line_of("this"))


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_call_that_is_not_repeated_is_told(retries: int) -> None:
    problem = outcome_of(max_retries=retries).problem
    assert problem is not None
    assert problem.check == "not tried again"
    assert f"{line_of('this')}), and was not repeated within 600 s" in problem.text


def test_the_place_is_the_innermost_frame_outside_of_libraries() -> None:
    problem = outcome_of(in_library=True).problem
    assert problem is not None
    assert problem.text.endswith(line_of("that"))


def test_each_failed_call_is_a_line_of_the_trace() -> None:
    entries = [str(one) for one in outcome_of().entries if one.what == "reconcile default/one"]
    assert len(entries) > 10
    assert all("replica 0   reconcile default/one → failed: LookupError: no luck, at " in one for one in entries)


def test_an_operator_that_ends_is_told_with_the_place() -> None:
    async def broken(client: Client) -> None:
        await client.api(Secret, namespace="default").get("missing")  # the line

    problem = run_story(broken, Scenario(Maps), STORY).problem
    assert problem is not None
    assert problem.check == "operator failed"
    assert problem.text.endswith(line_of("the"))


def test_a_failure_that_is_not_repeatable_is_told_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "first_difference", lambda *_: "line 1 is another one")
    with pytest.raises(StoryFailed, match=r"line 1 is another one; here, it failed with fails each time: the call"):
        simulate(failing, Maps, story=STORY).check()
