"""Which outcome each error is, and what a Retry-After asks for."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from trioformer._retry import REQUEST_ERRORS, Outcome, is_permanent, outcome_of, retry_after
from trioformer.client.bodies._responses import status_error
from trioformer.errors import (
    AlreadyExistsError,
    ApplyConflictError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    DecodeError,
    ExecPluginError,
    ExpiredError,
    ForbiddenError,
    InternalServerError,
    InvalidError,
    LimitExceededError,
    MethodNotAllowedError,
    NotFoundError,
    NotInCacheError,
    ProxyError,
    ServerError,
    ServerTimeoutError,
    ServiceUnavailableError,
    StatusError,
    TooManyRequestsError,
    TrioformerError,
    UnauthorizedError,
    UnexpectedResponseError,
)
from trioformer.errors._status import StatusCause, StatusDetails
from trioformer.transport._internal import Response

TOO_LARGE = "Too large resource version: 9, current: 5"
OUTCOMES: list[tuple[Exception, Outcome]] = [
    (ConnectionFailedError("reset"), Outcome.LOST),
    (ConnectionFailedError("refused", refused=True), Outcome.LOST),
    (ConnectionFailedError("certificate", permanent=True), Outcome.DENIED),
    (ProxyError("the proxy responds with 503"), Outcome.LOST),
    (ProxyError("the proxy responds with 407", permanent=True), Outcome.DENIED),
    (ExecPluginError("the plugin has exited with 1"), Outcome.LOST),
    (UnexpectedResponseError("a page of HTML", code=502), Outcome.FAILED),
    (DecodeError("no JSON"), Outcome.FAILED),
    (LimitExceededError("the body is too long", limit="object_bytes"), Outcome.FAILED),
    (TooManyRequestsError("slow down", code=429), Outcome.OVERLOADED),
    (ExpiredError("too old", code=410), Outcome.UNAVAILABLE),
    (ServerTimeoutError(TOO_LARGE, code=504, reason="Timeout"), Outcome.UNAVAILABLE),
    (
        ServerTimeoutError(
            "timeout",
            code=504,
            reason="Timeout",
            details=StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),)),
        ),
        Outcome.UNAVAILABLE,
    ),
    (BadRequestError("unknown parameter", code=400), Outcome.REJECTED),
    (InvalidError("forbidden parameter", code=422), Outcome.REJECTED),
    (UnauthorizedError("who", code=401), Outcome.DENIED),
    (ForbiddenError("no", code=403), Outcome.DENIED),
    (NotFoundError("no such kind", code=404), Outcome.REJECTED),
    (NotInCacheError("no such object"), Outcome.REJECTED),
    (MethodNotAllowedError("no watch", code=405), Outcome.REJECTED),
    (StatusError("no JSON", code=406), Outcome.FAILED),
    (ConflictError("conflict", code=409), Outcome.FAILED),
    (AlreadyExistsError("exists", code=409), Outcome.FAILED),
    (ApplyConflictError("applied", code=409), Outcome.FAILED),
    (StatusError("too large", code=413), Outcome.FAILED),
    (StatusError("type", code=415), Outcome.FAILED),
    (InternalServerError("etcd", code=500), Outcome.FAILED),
    (ServiceUnavailableError("starting", code=503), Outcome.FAILED),
    (ServerTimeoutError("slow", code=504), Outcome.FAILED),
    (ServerError("other", code=599), Outcome.FAILED),
    (StatusError("other", code=418), Outcome.FAILED),
]


@pytest.mark.parametrize(("error", "outcome"), OUTCOMES, ids=lambda value: type(value).__name__)
def test_each_error_has_its_outcome(error: Exception, outcome: Outcome) -> None:
    assert outcome_of(error) is outcome


def classes_below(base: type[TrioformerError]) -> Iterator[type[TrioformerError]]:
    yield base
    for each in base.__subclasses__():
        yield from classes_below(each)


def test_the_cases_have_every_class_of_errors_of_a_request() -> None:
    wanted = {each for base in REQUEST_ERRORS for each in classes_below(base) if each.__module__ == "trioformer.errors"}
    assert wanted - {type(error) for error, _ in OUTCOMES} == set()


@pytest.mark.parametrize("error", [error for error, _ in OUTCOMES], ids=lambda error: type(error).__name__)
def test_permanent_errors_are_those_that_are_denied_and_bad_requests(error: Exception) -> None:
    assert is_permanent(error) == (outcome_of(error) in (Outcome.DENIED, Outcome.REJECTED))


def test_a_retry_after_is_lengthened_by_a_tenth_at_most() -> None:
    error = TooManyRequestsError("slow down", code=429, details=StatusDetails(retry_after_seconds=10))
    waits = [retry_after(error, random.Random(seed)) for seed in range(200)]
    assert 10 <= min(waits) < 10.1
    assert 10.9 < max(waits) < 11


@pytest.mark.parametrize("seconds", [86_400, 10**400], ids=["a day", "too large for a float"])
def test_a_long_retry_after_is_shortened_to_five_minutes(seconds: int) -> None:
    error = TooManyRequestsError("slow down", code=429, details=StatusDetails(retry_after_seconds=seconds))
    assert 300 <= retry_after(error, random.Random(1)) < 330


@pytest.mark.parametrize("error", [None, ConnectionFailedError("reset"), InternalServerError("etcd", code=500)])
def test_without_a_retry_after_there_is_no_least_wait(error: Exception | None) -> None:
    assert retry_after(error, random.Random(1)) == 0


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (400, Outcome.FAILED),
        (401, Outcome.DENIED),
        (403, Outcome.DENIED),
        (404, Outcome.FAILED),
        (405, Outcome.FAILED),
        (410, Outcome.UNAVAILABLE),
        (422, Outcome.FAILED),
        (429, Outcome.OVERLOADED),
        (502, Outcome.FAILED),
    ],
)
def test_an_error_page_of_a_proxy_is_retried_unless_it_is_of_an_authenticator(code: int, outcome: Outcome) -> None:
    """A proxy that has lost its server responds with 404, which says nothing about the object."""
    page = Response(code, {}, b"<html><title>error</title></html>")
    error = status_error(page, method="GET", where="list pods")
    assert outcome_of(error) is outcome
    assert is_permanent(error) == (outcome is Outcome.DENIED)
