"""Messages of a server that quote objects: no error shows them, and each still says what is wrong."""

from __future__ import annotations

import json
import pickle

import pytest

from trioformer.errors import InvalidError, StatusError

OBJECT = json.dumps({"data": {"password": 'hunter2 "\\" \n'}, "kind": "Secret"})
QUOTED = json.dumps(OBJECT)
UNKNOWN = 'strict decoding error: unknown field "stringDta"'
TYPED = "failed to create typed patch object (/s; /v1, Kind=Secret): "


def error_of(message: str, /, **cause: str) -> StatusError:
    return StatusError.from_status({"code": 422, "message": message, "details": {"causes": [cause]}})


def test_a_patch_is_left_out_of_the_message_and_the_causes() -> None:
    value = f"Invalid value: {QUOTED}: {UNKNOWN}"
    error = error_of(f' "" is invalid: patch: {value}', reason="FieldValueInvalid", field="patch", message=value)
    assert isinstance(error, InvalidError)
    assert error.status_message == f'"" is invalid: patch: Invalid value: "…": {UNKNOWN}'
    assert error.details.causes[0].message == f'Invalid value: "…": {UNKNOWN}'
    assert "hunter2" not in f"{error!r} {error}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"[patch: Invalid value: {QUOTED}: a, x: b]", '[patch: Invalid value: "…": a, x: b]'),
        (f"patch: Invalid value: {QUOTED[:30]}", 'patch: Invalid value: "…"'),
        ('patch: Invalid value: "map[a:hunter2]": no', 'patch: Invalid value: "…": no'),
        (
            "map: map[image:hunter2] does not contain declared merge key: name",
            "map: … does not contain declared merge key: name",
        ),
        ("unknown patch type: x in map: map[$patch:x a:hunter2]", "unknown patch type: x in map: …"),
        ("list element types are not identical: [[a] [hunter2]]", "list element types are not identical: …"),
        (
            "The order in patch list:\n[map[a:hunter2]]\n doesn't match $setElementOrder list:\n[map[a:hunter2]]\n",
            "The order in patch list: … doesn't match $setElementOrder list: …",
        ),
        (f"{TYPED}.stringData: expected map, got &{{hunter2}}", f"{TYPED}.stringData: expected map, got …"),
        (
            f"{TYPED}errors:\n  .data.x: expected string, got &value.valueUnstructured{{Value:1}}\n  .y: hunter2",
            f"{TYPED}errors: .data.x: expected string, got …",
        ),
    ],
)
def test_other_messages_that_quote_objects(message: str, shown: str) -> None:
    error = error_of(message)
    assert error.status_message == shown
    assert "hunter2" not in f"{error!r} {error}"


@pytest.mark.parametrize(
    "message",
    [
        'spec.patch: Invalid value: "5": must be a number',
        'Secret "s" is invalid: type: Invalid value: "foo": field is immutable',
        f"{TYPED}.spec.size: expected numeric (int or float), got string",
        'the order is: map: map[a] does not contain declared merge key "name"',
    ],
)
def test_the_value_of_one_field_stays(message: str) -> None:
    error = error_of(message, field="spec.patch", message=message)
    assert error.status_message == message
    assert error.details.causes[0].message == message


@pytest.mark.parametrize("start", ["patch: Invalid value: ", "map: map[", "a: expected b, got ", 'patch: "\\'])
def test_a_message_without_end_takes_no_time(start: str) -> None:
    message = start * 100_000
    assert error_of(message, field="patch", message=message).code == 422
