"""The decisions whether and when a request is sent again."""

from __future__ import annotations

import random
import socket
import ssl

import pytest
import trio

from trioformer.errors import ConnectionFailedError, ExecPluginError, LimitExceededError
from trioformer.transport import _failures as failures
from trioformer.transport._errors import (
    InvalidResponseError,
    SilentConnectionError,
    TooLongHeadError,
    connection_failed,
)
from trioformer.transport.policy._retries import (
    MAX_RETRIES,
    MAX_RETRY_AFTER,
    Failure,
    delay_after,
    failure_of,
)

READ, WRITES = "GET", ("POST", "PUT", "PATCH", "DELETE")


class Highest(random.Random):
    """Returns the upper bound of what may be drawn."""

    def random(self) -> float:
        return 1.0


class Lowest(random.Random):
    """Returns the lower bound."""

    def random(self) -> float:
        return 0.0


def delay(
    method: str = READ,
    *,
    number: int = 1,
    elapsed: float = 0.0,
    code: int = 0,
    retry_after: str = "",
    failure: Failure | None = None,
    limit: int = MAX_RETRIES,
    has_responded: bool = True,
    rng: random.Random | None = None,
) -> float | None:
    return delay_after(
        method,
        number,
        elapsed=elapsed,
        code=code,
        retry_after=retry_after,
        failure=failure,
        limit=limit,
        has_responded=has_responded,
        rng=rng or Lowest(),
    )


# --- responses --------------------------------------------------------------------------------------------------------


def test_every_request_that_was_not_begun_is_sent_again() -> None:
    """client-go: TestRetryableConditions, TestIsNextRetry."""
    for method in [READ, *WRITES]:
        for code in [429, 503]:
            assert delay(method, code=code, retry_after="1") == 1.0
            assert delay(method, code=code, retry_after="0") == 0.0
            assert delay(method, code=code) is None


def test_other_errors_of_the_server_are_retried_for_reads_alone() -> None:
    for code in [500, 501, 502, 504, 505, 599]:
        assert delay(READ, code=code, retry_after="7") == 7.0
        assert [delay(method, code=code, retry_after="7") for method in WRITES] == [None] * 4


def test_a_retry_after_that_is_not_a_number_of_seconds_is_ignored() -> None:
    for text in [
        "",
        "-1",
        "1.5",
        "0x1",
        "٣",
        "1234567890",
        "Wed, 21 Oct 2026 07:28:00 GMT",
    ]:
        assert delay(code=429, retry_after=text) is None


def test_a_wait_of_more_than_five_minutes_is_left_to_the_caller() -> None:
    assert delay(code=429, retry_after=str(MAX_RETRY_AFTER)) == MAX_RETRY_AFTER
    assert delay(code=429, retry_after=str(MAX_RETRY_AFTER + 1)) is None


def test_a_retry_after_is_lengthened_by_at_most_a_tenth_and_never_shortened() -> None:
    assert delay(code=429, retry_after="10", rng=Lowest()) == 10.0
    assert delay(code=429, retry_after="10", rng=Highest()) == pytest.approx(11.0)


# --- connection failures ----------------------------------------------------------------------------------------------


def test_final_failures_and_timeouts_are_not_retried() -> None:
    for method in [READ, *WRITES]:
        assert delay(method, failure=Failure.SLOW) is None
        assert delay(method, failure=Failure.FINAL) is None


def test_the_delays_after_connection_failures_grow_to_two_seconds() -> None:
    delays = [delay(number=number, failure=Failure.LOST) for number in range(1, 11)]
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2, 2, 2])
    assert delay(number=10, failure=Failure.LOST, rng=Highest()) == pytest.approx(3.0)


# --- how a request failed ---------------------------------------------------------------------------------------------


def chain(outer: Exception, *causes: BaseException) -> Exception:
    """Link errors as the transport does: each is the cause of the one before it."""
    last: BaseException = outer
    for cause in causes:
        last.__cause__ = last = cause
    return outer


def reset() -> BaseException:
    return chain(trio.BrokenResourceError("broken"), ConnectionResetError(104, "Connection reset by peer"))


def test_failures_are_classified_before_and_after_their_error_is_made() -> None:
    for error, failure in [
        # No connection was made.
        (
            chain(failures.ConnectError("x"), OSError("all"), ConnectionRefusedError(111, "refused")),
            Failure.UNREACHABLE,
        ),
        (chain(failures.ConnectError("x"), socket.gaierror(-2, "Name or service not known")), Failure.UNREACHABLE),
        (chain(failures.ConnectError("x"), OSError(113, "No route to host")), Failure.UNREACHABLE),
        (failures.ConnectTimeout("x"), Failure.UNREACHABLE),
        (failures.ConnectError("a name is too long"), Failure.UNREACHABLE),
        (failures.ProxyError("x"), Failure.UNREACHABLE),
        # It ended before the first byte of the request.
        (chain(failures.ConnectError("x"), failures.ConnectError(reset())), Failure.NOT_SENT),
        (chain(failures.ConnectError("x"), ssl.SSLEOFError(8, "EOF in violation of protocol")), Failure.NOT_SENT),
        (chain(failures.ConnectError("x"), ssl.SSLZeroReturnError(6, "closed")), Failure.NOT_SENT),
        (chain(failures.ProxyError("x"), BrokenPipeError(32, "Broken pipe")), Failure.NOT_SENT),
        # It ended later.
        (chain(failures.ReadError("x"), failures.ReadError(reset())), Failure.LOST),
        (failures.ReadError("x"), Failure.LOST),
        (failures.WriteError("x"), Failure.LOST),
        (failures.RemoteProtocolError("Server disconnected without sending a response."), Failure.LOST),
        (
            failures.RemoteProtocolError("peer closed connection without sending complete message body (received 2)"),
            Failure.LOST,
        ),
        (chain(failures.ReadError("x"), SilentConnectionError("silent", server_failed=True)), Failure.LOST),
        (trio.BrokenResourceError("x"), Failure.LOST),
        (ConnectionResetError(104, "x"), Failure.LOST),
        # To send it again would not help.
        (failures.ReadTimeout("x"), Failure.SLOW),
        (failures.WriteTimeout("x"), Failure.SLOW),
        (InvalidResponseError("the status line is not valid"), Failure.FINAL),
        (failures.ProtocolError("x"), Failure.FINAL),
        (failures.DecodingError("x"), Failure.FINAL),
        (failures.InvalidURL("x"), Failure.FINAL),
        (chain(failures.ConnectError("x"), ssl.SSLCertVerificationError(1, "self-signed")), Failure.FINAL),
        (chain(failures.ConnectError("x"), ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]")), Failure.FINAL),
        (chain(failures.ReadError("x"), ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]")), Failure.FINAL),
        (TooLongHeadError("the head", 1), Failure.FINAL),
        (trio.ClosedResourceError("x"), Failure.FINAL),
    ]:
        assert failure_of(error) is failure
        made = connection_failed(error, "https://api.test")
        made.__cause__ = error
        assert failure_of(made) is failure


def test_an_error_that_says_it_is_permanent_is_final() -> None:
    made = ConnectionFailedError("no", permanent=True)
    made.__cause__ = failures.ConnectError("x")
    assert failure_of(made) is Failure.FINAL
    assert failure_of(LimitExceededError("too long", limit="object_bytes")) is Failure.FINAL


def test_a_plugin_that_fails_is_not_run_again_by_the_same_request() -> None:
    for permanent in [True, False]:
        error = ExecPluginError("no credential", permanent=permanent)
        error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
        assert failure_of(error) is Failure.FINAL
