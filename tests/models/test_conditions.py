"""Conditions of every kind are found, read, set and removed by the same functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from trioformer.models import Unstructured, encode, from_dict, to_dict, unstructured_kind
from trioformer.models.apps_v1 import DeploymentCondition
from trioformer.models.conditions import (
    Condition,
    find_condition,
    is_condition_true,
    remove_condition,
    set_condition,
)
from trioformer.models.core_v1 import NodeCondition, Pod, PodCondition, PodStatus

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
OTHER = Condition(type="Other", status="True", reason="Other", last_transition_time=NOON)


def ready(status: bool = True, reason: str = "A", **rest: Any) -> Condition:
    (made,) = set_condition((), type="Ready", status=status, reason=reason, now=NOON, **rest)
    return made


def test_a_new_condition_is_appended_with_the_time_and_all_that_a_schema_requires() -> None:
    conditions = set_condition([OTHER], type="Ready", status=True, reason="Complete", now=NOON)
    assert conditions[0] is OTHER
    assert to_dict(conditions[1]) == {
        "type": "Ready",
        "status": "True",
        "reason": "Complete",
        "message": "",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }


def test_the_transition_time_changes_only_with_the_status() -> None:
    same = set_condition([ready()], type="Ready", status="True", reason="B", message="b", now=LATER)
    flipped = set_condition(same, type="Ready", status="False", reason="B", message="b", now=LATER)
    assert [(each.status, each.reason, each.message, each.last_transition_time) for each in (*same, *flipped)] == [
        ("True", "B", "b", NOON),
        ("False", "B", "b", LATER),
    ]


def test_the_observed_generation_is_that_of_the_call_also_if_it_is_omitted() -> None:
    first = set_condition((), type="Ready", status=True, reason="A", observed_generation=1, now=NOON)
    second = set_condition(first, type="Ready", status=True, reason="A", observed_generation=2, now=LATER)
    third = set_condition(second, type="Ready", status=True, reason="A", now=LATER)
    generations = [to_dict(each).get("observedGeneration") for each in (*first, *second, *third)]
    assert generations == [1, 2, None]
    assert {each.last_transition_time for each in (*first, *second, *third)} == {NOON}


def test_conditions_that_do_not_change_are_the_same_objects_in_the_same_order() -> None:
    before = (ready(), OTHER)
    after = set_condition(before, type="Ready", status=True, reason="A", now=LATER)
    assert list(map(id, after)) == list(map(id, before))
    moved = set_condition(before, type="Ready", status=False, reason="A", now=LATER)
    assert [each.type for each in moved] == ["Ready", "Other"]


def test_conditions_of_built_in_kinds_are_of_their_own_class_and_keep_their_fields() -> None:
    probed = PodCondition(type="Ready", status="False", last_probe_time=NOON, last_transition_time=NOON)
    pod = Pod(status=PodStatus(conditions=(probed,)))
    conditions = set_condition(
        pod.status.conditions, type="Ready", status=True, reason="Up", now=LATER, model=PodCondition
    )
    assert conditions == (
        PodCondition(type="Ready", status="True", reason="Up", last_probe_time=NOON, last_transition_time=LATER),
    )
    status = pod.status.evolve(conditions=conditions)
    assert is_condition_true(status.conditions, "Ready")
    (made,) = set_condition((), type="example.com/Up", status=True, reason="", now=NOON, model=DeploymentCondition)
    assert isinstance(made, DeploymentCondition)
    assert b"message" not in encode(made)


def test_conditions_of_kinds_without_a_class_are_read_and_set_too() -> None:
    kind = unstructured_kind("example.com/v1", "Widget", plural="widgets")
    conditions = [{"type": "Ready", "status": "True", "reason": "A", "message": "", "lastTransitionTime": None}]
    widget: Unstructured = from_dict(kind, {"metadata": {"name": "w"}, "status": {"conditions": conditions}})
    found: Any = widget.get("status")
    after = set_condition(found["conditions"], type="Ready", status="Unknown", reason="B", now=NOON)
    assert [(each.type, each.status, each.last_transition_time) for each in after] == [("Ready", "Unknown", NOON)]


def test_conditions_are_found_read_and_removed_by_type() -> None:
    conditions = (OTHER, ready(status=False))
    assert find_condition(conditions, "Ready") is conditions[1]
    assert find_condition(conditions, "ready") is None
    assert [is_condition_true(conditions, name) for name in ("Other", "Ready", "Missing")] == [True, False, False]
    assert remove_condition(conditions, "Other") == conditions[1:]
    assert remove_condition(conditions, "Missing") == conditions


def test_times_are_written_in_whole_seconds_and_any_time_zone_will_do() -> None:
    berlin = timezone(timedelta(hours=1))
    (made,) = set_condition(
        (), type="Ready", status=True, reason="A", now=datetime(2026, 1, 1, 13, 0, 0, 999_999, tzinfo=berlin)
    )
    assert to_dict(made)["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    (now,) = set_condition((), type="Ready", status=True, reason="A")
    assert now.last_transition_time is not None
    assert now.last_transition_time.microsecond == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"status": "true"}, "must be 'True', 'False' or 'Unknown', not 'true'"),
        ({"status": None}, "must be 'True', 'False' or 'Unknown', not None"),
        ({"type": "not ready"}, "'not ready' is not a valid condition type; write a name such as 'Ready'"),
        ({"reason": ""}, "'' is not a valid reason for condition Ready; write one word, such as 'Complete'"),
        ({"reason": "no pods yet"}, "'no pods yet' is not a valid reason"),
        ({"reason": "a" * 1025}, "is not a valid reason"),
        ({"now": datetime(2026, 1, 1)}, "now has no time zone; write datetime.now"),
    ],
)
def test_what_a_server_would_refuse_is_refused_at_once(given: Any, error: str) -> None:
    arguments: Any = {"type": "Ready", "status": True, "reason": "A"} | given
    with pytest.raises(ValueError, match=error):
        set_condition((), **arguments)


def test_conditions_of_another_class_are_refused_with_the_argument_to_pass() -> None:
    conditions: Any = [PodCondition(type="Ready", status="True")]
    with pytest.raises(TypeError, match=r"must be a Condition, not .*; pass model=PodCondition"):
        set_condition(conditions, type="Ready", status=True, reason="A")
    with pytest.raises(TypeError, match="NodeCondition has no observed_generation; omit it"):
        set_condition((), type="Ready", status=True, reason="A", observed_generation=1, model=NodeCondition)
