"""The exceptions: texts, classes, copies."""

from __future__ import annotations

import copy
import pickle

import pytest

from trioformer import errors
from trioformer.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    ConnectionFailedError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ServerError,
    ServerTimeoutError,
    StatusCause,
    StatusDetails,
    StatusError,
    TooManyRequestsError,
    TrioformerError,
    UnauthorizedError,
    UnexpectedResponseError,
)

STATUS = {
    "kind": "Status",
    "code": 422,
    "reason": "Invalid",
    "message": 'Pod "a" is invalid:\n spec.containers: Required value',
    "details": {
        "name": "a",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}, 7],
        "retryAfterSeconds": 3,
    },
}


def test_a_status_becomes_an_error_with_its_message_and_details() -> None:
    error = StatusError.from_status(STATUS, where="create pods/a")
    assert type(error) is InvalidError
    assert str(error) == 'create pods/a: Pod "a" is invalid: spec.containers: Required value (HTTP 422, Invalid)'
    assert (error.code, error.reason) == (422, "Invalid")
    cause = StatusCause("FieldValueRequired", "Required value", "spec.containers")
    assert error.details == StatusDetails(name="a", kind="Pod", causes=(cause,), retry_after_seconds=3)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ({"reason": "AlreadyExists", "code": 409}, 0, AlreadyExistsError),
        ({"reason": "Conflict", "code": 409}, 0, ConflictError),
        ({"reason": "Gone", "code": 410}, 0, ExpiredError),
        ({"reason": "Unheard", "code": 404}, 0, NotFoundError),
        ({}, 429, TooManyRequestsError),
        ({"reason": "Timeout", "code": 500}, 0, ServerTimeoutError),
        ({}, 599, ServerError),
        ({}, 418, StatusError),
        ({"details": 7, "code": "many"}, 0, errors.InternalServerError),
        ({"details": {"causes": "none", "retryAfterSeconds": -1}}, 401, UnauthorizedError),
    ],
)
def test_the_class_is_chosen_by_reason_and_then_by_code(
    status: dict[str, object], code: int, expected: type[StatusError]
) -> None:
    error = StatusError.from_status(status, code=code)
    assert type(error) is expected
    assert error.details == StatusDetails()


def test_an_error_with_a_hint_shows_it() -> None:
    assert str(UnauthorizedError("", code=401)).endswith("; check the token or client certificate in the kubeconfig")


@pytest.mark.parametrize(
    "error",
    [
        StatusError.from_status(STATUS, where="create pods/a"),
        ConfigError("is missing", file="config", key="users[a].user"),
        ConnectionFailedError("no", refused=True),
        UnexpectedResponseError("html", code=200),
        errors.SelectorError("what?"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_copying_and_pickling(error: TrioformerError) -> None:
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_every_error_is_in_the_tree_of_the_module_and_in_its_exports() -> None:
    names = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert names - set((errors.__doc__ or "").split()) == set()
    assert names <= set(errors.__all__)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("\x1b[2J", file="a\nb", key="\u202e"),
        errors.SelectorError("\x1b[2J" * 100_000),
        UnexpectedResponseError("\ud800", code=200),
        errors.QuarantinedError("\x07", key="a/\x1b", reason="\x1b", since=0.0),
        NotFoundError("\x9b31m", code=404, where="get pods/\x1b[31m"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_error_is_one_printable_line(error: TrioformerError) -> None:
    assert str(error).isprintable()
    assert len(str(error)) <= 4_000
    assert str(error) == error.message == pickle.loads(pickle.dumps(error)).message
