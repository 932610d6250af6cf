"""Mistakes in scenarios, and what their authors are told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.testing.simulation.operators import Maps, operate
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing._simulation_options import options
from trioformer.testing.simulation import Fault, Step, Story, StoryFailed, World, drawn, simulate, step


@pytest.fixture(autouse=True)
def nothing_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the stories of the tests out of the project."""
    monkeypatch.setattr(options, "directory", None)


async def coroutine(*_: object) -> None:
    """What no part of a scenario may be."""


def plain(*_: object) -> None:
    """A method without a decorator."""


MISTAKES: tuple[tuple[str, object, str], ...] = (
    ("start", coroutine, "Wrong.start is async; write def"),
    ("always", coroutine, "Wrong.always is async; write def"),
    ("eventually", coroutine, "Wrong.eventually is async; write def"),
    ("create", step(coroutine), "Wrong.create is async; write def"),
    ("kinds", ConfigMap, "Wrong.kinds is not a tuple; write kinds = (ConfigMap,)"),
    ("ignored_paths", "spec", "Wrong.ignored_paths is not a tuple; write ignored_paths = ('spec',)"),
    ("kept_kinds", "Secret", "Wrong.kept_kinds is not a tuple; write kept_kinds = ('Secret',)"),
    ("create", plain, "Wrong.create is not decorated with @step"),
    ("delete", plain, "Wrong.delete is not decorated with @step"),
)


@pytest.mark.parametrize(("name", "value", "message"), MISTAKES)
def test_a_mistake_in_the_class_is_told_before_the_first_story(name: str, value: object, message: str) -> None:
    wrong = type("Wrong", (), {"kinds": (ConfigMap,), name: value})
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        simulate(operate, wrong, stories=1)


def test_drawn_takes_only_values_that_a_story_can_have() -> None:
    with pytest.raises(TypeError, match=r"drawn\(\) takes numbers, booleans and strings, not \[1, 2\]"):
        drawn([1, 2])


class Broken(Maps):
    """A step that cannot work."""

    @step
    def create(self, world: World, count: int = drawn(0, 3)) -> None:
        raise LookupError("nothing here")


class BrokenStart(Maps):
    """A start that cannot work."""

    def start(self, world: World) -> None:
        raise LookupError("nothing here")


@pytest.mark.parametrize("scenario", [Broken, BrokenStart])
def test_an_exception_of_the_scenario_comes_without_groups(scenario: type[Any]) -> None:
    with pytest.raises(LookupError, match="nothing here"):
        simulate(operate, scenario, stories=1)


@pytest.mark.parametrize("name", ["always", "eventually"])
def test_a_check_that_returns_something_fails(name: str) -> None:
    scenario = type("Returning", (Maps,), {name: lambda self, world: world.now < 0})
    failure = simulate(operate, scenario, stories=1).failure
    assert failure is not None
    assert failure.problem.text.startswith(f"{name}() returned False")
    assert "write assert" in failure.problem.text


def test_the_name_of_a_check_is_told_once() -> None:
    class Failing(Maps):
        def eventually(self, world: World) -> None:
            assert not world.now, "too late"

    with pytest.raises(StoryFailed, match=r"^eventually\(\) fails: too late"):
        simulate(operate, Failing, stories=1).check()


class Elsewhere(Maps):
    """A user whose namespace does not exist."""

    @step
    def create_elsewhere(self, world: World) -> None:
        world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "prod"}})


class ElsewhereWithStart(Elsewhere):
    """The same, and the namespace exists."""

    def start(self, world: World) -> None:
        world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})


def test_a_step_that_the_server_always_rejects_is_told() -> None:
    report = simulate(operate, Elsewhere, stories=3)
    text = 'the step create_elsewhere never succeeded: create: namespaces "prod" not found'
    assert any(line.startswith(text) for line in str(report).splitlines())
    with pytest.raises(StoryFailed, match=text):
        report.check()
    simulate(operate, ElsewhereWithStart, stories=3).check()


class TwoNames:
    """A user who changes an object that may have another name."""

    kinds = (ConfigMap,)

    @step
    def create(self, world: World, name: str = drawn("one", "two")) -> None:
        """Create a ConfigMap."""
        world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})

    @step
    def change(self, world: World, name: str = drawn("one", "two", "three")) -> None:
        """Change it."""
        world.patch(ConfigMap, name, {"data": {"changed": "yes"}})


def test_a_step_that_only_met_other_names_is_tried_with_more_stories() -> None:
    for seed in range(4):
        simulate(operate, TwoNames, stories=1, seed=seed).check()


def test_a_fault_of_a_given_story_that_does_not_occur_is_told() -> None:
    story = Story(
        steps=(Step(name="create", arguments={"count": 1}),),
        faults=(Fault(kind="kill", at="create secrets"), Fault(kind="cut", at="patch secrets")),
    )
    report = simulate(operate, Maps, story=story)
    with pytest.raises(StoryFailed) as caught:
        report.check()
    assert str(caught.value).startswith("this fault did not occur: before the first patch secrets: the connection")
    assert "create secrets, " in str(caught.value)


OLD = Story(steps=(Step(name="make", arguments={"count": 1}),))
OTHER_ARGUMENTS = Story(steps=(Step(name="create", arguments={"number": 1}),))


@pytest.mark.parametrize("story", [OLD, OTHER_ARGUMENTS])
def test_a_story_that_no_longer_fits_is_refused(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"make; its steps are create, |create of Maps takes count, not number"):
        simulate(operate, Maps, story=story)
    monkeypatch.setattr(options, "directory", tmp_path)
    path = tmp_path / f"{Maps.__module__}.Maps-operate-1.json"
    path.write_text(story.to_json(), "utf-8")
    with pytest.warns(UserWarning, match=f"{path} was removed"):
        simulate(operate, Maps, stories=1).check()
    assert not path.exists()


def test_the_report_names_the_kinds_of_faults_that_did_not_occur() -> None:
    report = simulate(operate, Maps, stories=1)
    (line,) = [one for one in str(report).splitlines() if one.startswith("kinds of faults that did not occur: ")]
    assert ", clock, " in line
    assert not any(f" {kind}," in line for kind in report.faults)
    assert "clock" in simulate(operate, Maps, stories=12, replicas=2).faults
