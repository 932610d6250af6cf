"""The errors of responses that are not a success."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from trioformer import errors
from trioformer.client._responses import status_error
from trioformer.errors import StatusError, UnexpectedResponseError
from trioformer.transport._internal import Response


def error_of(code: int, body: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Exception:
    return status_error(Response(code, headers or {}, body.encode()), method=method, where="get pods/web-0")


def a_status(**fields: object) -> str:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **fields})


@pytest.mark.parametrize(
    ("code", "method", "kind", "reason"),
    [
        (400, "GET", errors.BadRequestError, "BadRequest"),
        (401, "GET", errors.UnauthorizedError, "Unauthorized"),
        (403, "GET", errors.ForbiddenError, "Forbidden"),
        (404, "GET", errors.NotFoundError, "NotFound"),
        (405, "GET", errors.MethodNotAllowedError, "MethodNotAllowed"),
        (406, "GET", errors.NotAcceptableError, "NotAcceptable"),
        (409, "PUT", errors.ConflictError, "Conflict"),
        (409, "POST", errors.AlreadyExistsError, "AlreadyExists"),
        (410, "GET", errors.ExpiredError, ""),
        (413, "PUT", errors.RequestTooLargeError, ""),
        (415, "PATCH", errors.UnsupportedMediaTypeError, "UnsupportedMediaType"),
        (418, "GET", StatusError, ""),
        (422, "POST", errors.InvalidError, "Invalid"),
        (429, "GET", errors.TooManyRequestsError, "TooManyRequests"),
        (500, "GET", errors.InternalServerError, "InternalError"),
        (502, "GET", errors.InternalServerError, "InternalError"),
        (503, "GET", errors.ServiceUnavailableError, "ServiceUnavailable"),
        (504, "GET", errors.ServerTimeoutError, "Timeout"),
    ],
)
@pytest.mark.parametrize("body", ["", "404 page not found\n", '{"error":"plain"}', '"text"', "\x00"])
def test_without_a_status_the_code_determines_the_error_as_in_client_go(
    code: int, method: str, kind: type[StatusError], reason: str, body: str
) -> None:
    error = error_of(code, body, method=method)
    assert type(error) is kind
    assert isinstance(error, StatusError)
    assert (error.code, error.reason) == (code, reason)
    assert str(error).startswith("get pods/web-0: ")
    shown = {"": "the server gave no reason", "\x00": "1 bytes that are not text"}.get(body, body.strip())
    assert shown in str(error)


def test_a_status_determines_the_error() -> None:
    body = a_status(code=410, reason="Expired", message="too old", details={"name": "web-0", "retryAfterSeconds": 3})
    error = error_of(410, body, headers={"retry-after": "9"})
    assert isinstance(error, errors.ExpiredError)
    assert (error.status_message, error.details.name, error.details.retry_after_seconds) == ("too old", "web-0", 3)


def test_a_status_without_a_code_has_the_code_of_the_response() -> None:
    error = error_of(403, a_status(message="no"))
    assert isinstance(error, errors.ForbiddenError)
    assert error.code == 403


@pytest.mark.parametrize("body", ["Too many requests, please try again later.", a_status(reason="TooManyRequests"), ""])
def test_a_retry_after_header_is_in_the_details(body: str) -> None:
    error = error_of(429, body, headers={"retry-after": "7"})
    assert isinstance(error, errors.TooManyRequestsError)
    assert error.details.retry_after_seconds == 7


@pytest.mark.parametrize("after", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1.5", "", "²"])
def test_a_retry_after_that_is_not_a_number_is_ignored_as_in_client_go(after: str) -> None:
    error = error_of(429, "slow down", headers={"retry-after": after})
    assert isinstance(error, errors.TooManyRequestsError)
    assert error.details.retry_after_seconds == 0


@pytest.mark.parametrize("code", [302, 401, 404, 500, 503])
@pytest.mark.parametrize("body", ["<html>\n<body>Sign in</body>", ' {"kind":"Status","cod', "[1, 2", "[" * 100_000])
def test_html_and_half_a_json_object_are_unexpected_responses(code: int, body: str) -> None:
    error = error_of(code, body)
    assert isinstance(error, UnexpectedResponseError)
    assert error.code == code
    assert f"(HTTP {code})" in str(error)
    assert "check that the configured address" in str(error)
    assert len(str(error)) < 300
    assert "\n" not in str(error)


def test_a_redirect_is_unexpected_and_shown_without_its_query() -> None:
    error = error_of(302, "", headers={"location": "https://login.test/x?token=s3cret"})
    assert isinstance(error, UnexpectedResponseError)
    assert "a redirect to https://login.test/x" in str(error)
    assert "s3cret" not in str(error)


def test_other_responses_below_400_are_unexpected() -> None:
    assert "not a Kubernetes object" in str(error_of(304, ""))
    assert "not a Kubernetes object" in str(error_of(207, "{}"))


def test_a_body_that_is_a_list_or_a_number_is_not_a_status() -> None:
    assert isinstance(error_of(404, "[]"), errors.NotFoundError)
    assert isinstance(error_of(404, "7"), errors.NotFoundError)
