"""A Status that nobody has checked: numbers, texts and causes of any type and size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trioformer import errors
from trioformer.errors import StatusError
from trioformer.errors._status import MAX_CAUSES, MAX_RETRY_AFTER

HOSTILE = "\x1b]0;owned\x07\u202egnp.exe\u2028\ud800"


NO_CODES: list[object] = [0, -1, 1, 99, 200, 302, 399, 600, 99_999, 10**20, 10**400, True, 404.0, "404", [], {}]


@pytest.mark.parametrize("code", NO_CODES)
def test_a_code_that_is_not_of_an_error_is_replaced_by_that_of_the_response(code: object) -> None:
    error = StatusError.from_status({"code": code}, code=403)
    assert (type(error), error.code) == (errors.ForbiddenError, 403)
    assert str(error).startswith("the server gave no reason (HTTP 403)")


@pytest.mark.parametrize("response", [0, 200, 206, 302])
def test_without_the_code_of_an_error_it_is_500(response: int) -> None:
    error = StatusError.from_status({"code": 200}, code=response)
    assert (type(error), error.code) == (errors.InternalServerError, 500)


@pytest.mark.parametrize(
    ("reason", "kind", "code"),
    [
        ("Expired", errors.ExpiredError, 410),
        ("AlreadyExists", errors.AlreadyExistsError, 409),
        ("NotFound", errors.NotFoundError, 404),
        ("ServerTimeout", errors.ServerTimeoutError, 504),
        ("Unheard", errors.InternalServerError, 500),
    ],
)
def test_the_reason_decides_about_a_status_without_the_code_of_an_error(
    reason: str, kind: type[StatusError], code: int
) -> None:
    error = StatusError.from_status({"code": -7, "reason": reason}, code=200)
    assert (type(error), error.code) == (kind, code)


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        (3, 3),
        (0, 0),
        (-1, 0),
        (-(10**30), 0),
        (10**30, MAX_RETRY_AFTER),
        (10**400, MAX_RETRY_AFTER),
        (1.5, 0),
        (float("nan"), 0),
        (float("inf"), 0),
        (True, 0),
        ("7", 0),
        (None, 0),
        ([7], 0),
    ],
)
def test_retry_after_seconds_is_a_number_of_nine_digits(after: object, seconds: int) -> None:
    details = StatusError.from_status({"details": {"retryAfterSeconds": after}}, code=429).details
    assert details.retry_after_seconds == seconds
    assert type(details.retry_after_seconds) is int


def test_every_text_of_a_status_is_printable() -> None:
    cause = {"reason": HOSTILE, "message": HOSTILE, "field": HOSTILE}
    names = dict.fromkeys(("name", "group", "kind", "uid"), HOSTILE)
    status = {"code": 422, "reason": HOSTILE, "message": HOSTILE, "details": {**names, "causes": [cause]}}
    error = StatusError.from_status(status, where="create pods/a")
    for text in (str(error), error.message, error.reason, error.status_message, repr(error), repr(error.details)):
        assert text.isprintable(), text
    details = error.details
    for text in (details.name, details.group, details.kind, details.uid, *json.loads(json.dumps(vars_of(details)))):
        assert text.isprintable(), text
    assert str(error).startswith(r"create pods/a: \x1b]0;owned\x07\u202egnp.exe \ud800 (HTTP 422, ")


def vars_of(details: errors.StatusDetails) -> list[str]:
    return [text for cause in details.causes for text in (cause.reason, cause.message, cause.field)]


def test_a_huge_status_is_bounded_and_keeps_its_reason_and_hint() -> None:
    causes: list[Any] = [{"reason": "x" * 10_000, "message": "m" * 100_000, "field": "f" * 100_000}] * 3 * MAX_CAUSES
    status = {"code": 403, "reason": "Forbidden", "message": "\x1b" * 300_000, "details": {"causes": causes}}
    error = StatusError.from_status(status, where="list pods")
    assert len(error.status_message) <= 4_000
    assert len(str(error)) <= 4_000
    assert str(error).endswith("… (300000 characters) (HTTP 403, Forbidden); give the user a role that allows it")
    assert len(error.details.causes) == MAX_CAUSES
    assert max(map(len, vars_of(error.details))) <= 1_000
    long = StatusError.from_status({"reason": "r" * 100_000}, code=404)
    assert type(long) is errors.NotFoundError
    assert len(long.reason) <= 500


def test_a_message_has_no_quoted_patch_but_what_is_wrong_with_it() -> None:
    quoted = 'Invalid value: "{\\"data\\":{\\"a\\":\\"c2VjcmV0\\"}}": json: cannot unmarshal'
    error = StatusError.from_status(
        {
            "message": f'Secret "a" is invalid: patch: {quoted}',
            "details": {"causes": [{"field": "patch", "message": quoted}, {"field": "data", "message": "stays"}]},
        },
        code=422,
        where="patch secrets/a",
    )
    assert error.status_message == 'Secret "a" is invalid: patch: Invalid value: "…": json: cannot unmarshal'
    assert [cause.message for cause in error.details.causes] == ['Invalid value: "…": json: cannot unmarshal', "stays"]
