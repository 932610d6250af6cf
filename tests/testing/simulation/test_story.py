"""Stories as values: JSON, code and prose."""

from __future__ import annotations

import pytest

from trioformer.testing import simulation
from trioformer.testing.simulation import Fault, Schedule, Step, Story

STORY = Story(
    steps=(Step(name="create", arguments={"count": 2}), Step(name="delete", wait=5.0)),
    faults=(Fault(kind="kill", at="patch pods/status", number=2, after=True, lasts=20.0),),
    replicas=2,
    schedule=Schedule(policy="late", number=1),
    seed=7,
)


def test_a_story_survives_json_and_code() -> None:
    assert Story.from_json(STORY.to_json()) == STORY
    assert eval(STORY.as_code(), vars(simulation)) == STORY


@pytest.mark.parametrize("text", ["{}", "[]", '{"steps": [{"x": 1}], "faults": []}', "nothing"])
def test_what_is_not_a_story_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any text
        Story.from_json(text)


def test_the_prose_says_who_does_what_and_which_request_is_hit() -> None:
    text = str(STORY)
    for part in ("2 replicas", "create(count=2)", "5 s later", "After patch number 2 of pods/status: ", "killed"):
        assert part in text
    one = Story(faults=(Fault(kind="cut", at="patch pods"),))
    assert str(one).splitlines() == [
        "1 replica of the operator runs.",
        "Before the first patch pods: the connection breaks.",
    ]


def test_an_unknown_kind_of_fault_is_an_error() -> None:
    with pytest.raises(ValueError, match="'rvial' is no kind of fault; the kinds are answer, cut"):
        Fault(kind="rvial")  # type: ignore[arg-type]
