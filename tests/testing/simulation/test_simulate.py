"""What a simulation finds, and what its report says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from tests.testing.simulation.operators import (
    Maps,
    in_a_loop,
    operate,
    with_lost_update,
    with_random_name,
    without_owner,
)
from trioformer import Client, open_client
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import simulation
from trioformer.testing._simulation_options import options
from trioformer.testing.simulation import Report, Story, StoryFailed, World, simulate, step


@pytest.fixture(autouse=True)
def nothing_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the stories of the tests out of the project."""
    monkeypatch.setattr(options, "directory", None)


def problem_of(report: Report) -> str:
    assert report.failure is not None
    return report.failure.problem.check


def test_an_operator_without_mistakes_passes() -> None:
    report = simulate(operate, Maps, stories=30)
    report.check()
    assert report.stories == 30
    assert {"kill", "answer", "rewind"} <= set(report.faults)
    assert "create secrets" in report.anchors


def test_a_create_that_is_not_idempotent_is_found_and_shrunk() -> None:
    report = simulate(with_random_name, Maps, stories=60)
    with pytest.raises(StoryFailed, match="2 objects of kind Secret"):
        report.check()
    assert report.failure is not None
    assert [one.name for one in report.failure.story.steps] == ["create"]
    assert len(report.failure.story.faults) == 1


def test_a_lost_update_names_the_field_and_its_writer() -> None:
    report = simulate(with_lost_update, Maps, stories=200)
    assert problem_of(report) == "lost update"
    assert report.failure is not None
    assert "ConfigMap default/one, and undid a change of the user" in report.failure.problem.text


def test_a_missing_owner_is_found_without_faults() -> None:
    report = simulate(without_owner, Maps, stories=60)
    assert problem_of(report) == "something is left"
    assert report.failure is not None
    assert not report.failure.story.faults


def test_a_program_that_never_waits_is_found() -> None:
    assert problem_of(simulate(in_a_loop, Maps, stories=1)) == "hot loop"


def test_the_report_has_a_test_that_repeats_the_story() -> None:
    report = simulate(with_random_name, Maps, stories=60)
    with pytest.raises(StoryFailed) as caught:
        report.check()
    code = re.search(r"story = (Story\(.*?\n    \))\n", str(caught.value), re.DOTALL)
    assert code is not None
    story: Story = eval(code.group(1), vars(simulation))
    assert problem_of(simulate(with_random_name, Maps, story=story)) == "too many children"
    simulate(operate, Maps, story=story).check()


def test_the_same_seed_finds_the_same_story() -> None:
    one, other = (simulate(with_random_name, Maps, stories=60, seed=7).failure for _ in range(2))
    assert one is not None
    assert other is not None
    assert (one.number, one.story) == (other.number, other.story)


def test_a_story_that_failed_is_tried_first_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "directory", tmp_path)
    first = simulate(with_random_name, Maps, stories=60)
    assert len(list(tmp_path.iterdir())) == 1
    again = simulate(with_random_name, Maps, stories=60)
    assert again.stories == 0
    assert problem_of(again) == problem_of(first)


def test_the_options_of_pytest_override_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "stories", 2)
    assert simulate(operate, Maps, stories=60).stories == 2


async def program() -> None:
    async with open_client() as client:
        await operate(client)


async def program_of(_: Client) -> None:
    await program()


def test_the_main_function_of_a_program_opens_the_client_of_the_story() -> None:
    report = simulate(program_of, Maps, stories=10)
    report.check()
    assert "create secrets" in report.anchors


class WithChecks(Maps):
    """Checks of its own, one of which does not hold."""

    def always(self, world: World) -> None:
        """Check after each write."""
        assert all(one.data.get("count") != "3" for one in world.list(ConfigMap)), "3 is too much"


def test_a_check_of_the_scenario_is_called_after_each_write() -> None:
    report = simulate(operate, WithChecks, stories=60)
    assert problem_of(report) == "always"
    assert report.failure is not None
    assert "3 is too much" in report.failure.problem.text


class WithoutSteps:
    """Nothing but the kind."""

    kinds = (ConfigMap,)


def test_a_scenario_without_steps_creates_changes_and_deletes() -> None:
    report = simulate(operate, WithoutSteps, stories=10)
    report.check()


def test_simulate_refuses_to_run_inside_trio() -> None:
    async def main() -> None:
        simulate(operate, Maps)

    with pytest.raises(RuntimeError, match="not async"):
        trio.run(main)


def test_a_scenario_needs_kinds_and_drawn_arguments() -> None:
    class NoKinds:
        pass

    class NoDrawn:
        kinds = (ConfigMap,)

        @step
        def create(self, world: World, count: int) -> None: ...

    for scenario, what in ((NoKinds, "kinds"), (NoDrawn, "count")):
        with pytest.raises(TypeError, match=what):
            simulate(operate, scenario)
