"""The errors of responses that are not a success."""

from __future__ import annotations

from collections.abc import Mapping

from trioformer import errors
from trioformer.client.bodies._responses import status_error
from trioformer.errors import StatusError, UnexpectedResponseError
from trioformer.transport._internal import Response


def error_of(code: int, body: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Exception:
    return status_error(Response(code, headers or {}, body.encode()), method=method, where="get pods/web-0")


def test_without_a_status_the_code_determines_the_error_as_in_client_go() -> None:
    """Reason and class are those of the code, whatever the body is.

    client-go: TestTransformUnstructuredError
    """
    for code, method, kind, reason in [
        (400, "GET", errors.BadRequestError, "BadRequest"),
        (401, "GET", errors.UnauthorizedError, "Unauthorized"),
        (403, "GET", errors.ForbiddenError, "Forbidden"),
        (404, "GET", errors.NotFoundError, "NotFound"),
        (405, "GET", errors.MethodNotAllowedError, "MethodNotAllowed"),
        (406, "GET", errors.StatusError, "NotAcceptable"),
        (409, "PUT", errors.ConflictError, "Conflict"),
        (409, "POST", errors.AlreadyExistsError, "AlreadyExists"),
        (410, "GET", errors.ExpiredError, ""),
        (413, "PUT", errors.StatusError, ""),
        (415, "PATCH", errors.StatusError, "UnsupportedMediaType"),
        (418, "GET", StatusError, ""),
        (422, "POST", errors.InvalidError, "Invalid"),
        (429, "GET", errors.TooManyRequestsError, "TooManyRequests"),
        (500, "GET", errors.InternalServerError, "InternalError"),
        (502, "GET", errors.InternalServerError, "InternalError"),
        (503, "GET", errors.ServiceUnavailableError, "ServiceUnavailable"),
        (504, "GET", errors.ServerTimeoutError, "Timeout"),
    ]:
        for body in ["", "404 page not found\n", '{"error":"plain"}', '"text"', "\x00"]:
            error = error_of(code, body, method=method)
            assert type(error) is kind
            assert isinstance(error, StatusError)
            assert (error.code, error.reason) == (code, reason)
            assert str(error).startswith("get pods/web-0: ")
            shown = {
                "": "the server gave no reason",
                "\x00": "1 bytes that are not text",
                '{"error":"plain"}': "the body is 17 bytes of JSON, but not a Status",
                '"text"': "the body is 6 bytes of JSON, but not a Status",
            }
            assert shown.get(body, body.strip()) in str(error)


def test_a_retry_after_that_go_cannot_parse_is_ignored_as_in_client_go() -> None:
    for after in ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1.5", "", "1" * 5_000]:
        error = error_of(429, "slow down", headers={"retry-after": after})
        assert isinstance(error, errors.TooManyRequestsError)
        assert error.details.retry_after_seconds == 0


NGINX = "<html>\r\n<head><title>{}</title></head>\r\n<body>\r\n<center><h1>{}</h1></center>\r\n</body>\r\n</html>\r\n"
BEGINS_LIKE_JSON = [' {"kind":"Status","cod', '{"kind":"Secret","data":{"token":"czNjcmV0', "[1, 2", "[" * 100_000]


def test_html_and_half_a_json_object_mean_what_the_code_says() -> None:
    for code, kind in [
        (401, errors.UnauthorizedError),
        (429, errors.TooManyRequestsError),
        (503, errors.ServiceUnavailableError),
    ]:
        for body in [NGINX.format("No", "No"), *BEGINS_LIKE_JSON]:
            error = error_of(code, body, headers={"retry-after": "7"})
            assert type(error) is kind
            assert isinstance(error, StatusError)
            assert (error.code, error.details.retry_after_seconds) == (code, 7)
            assert error.is_unexpected_server_error
            assert f"(HTTP {code}" in str(error)
            assert len(str(error)) < 300
            assert "\n" not in str(error)


def test_the_error_of_an_html_page_shows_its_title() -> None:
    for body, text in [
        (NGINX.format("403 Forbidden", "403"), ": 403 Forbidden"),
        ("<!doctype html><TITLE lang=en>\n Sign in &amp;\n wait </TITLE>", ": Sign in & wait"),
        ("<title>a&#27;[2J\x1b]0;b</title>", r": a[2J\x1b]0;b"),
        (f"<title>{'t' * 3_000}</title>", f": {'t' * 81}… (3000 characters)"),
        ("<p>" + " " * 5000 + "<title>too far</title>", ""),
    ]:
        assert str(error_of(403, body)) == (
            f"get pods/web-0: the body is HTML, so a proxy or load balancer may have sent it{text} "
            "(HTTP 403, Forbidden); give the user a role that allows it"
        )


def test_the_error_of_half_a_json_object_does_not_show_it() -> None:
    for body in BEGINS_LIKE_JSON:
        text = "the body begins like JSON, but is not JSON"
        assert str(error_of(503, body)) == f"get pods/web-0: {text} (HTTP 503, ServiceUnavailable)"


def test_a_redirect_is_unexpected_and_its_address_is_not_shown() -> None:
    error = error_of(302, "<p>s3cret", headers={"location": "https://login.test/x?token=s3cret"})
    assert isinstance(error, UnexpectedResponseError)
    assert "a redirect, which is not followed" in str(error)
    assert "s3cret" not in str(error)
    assert "login" not in str(error)
