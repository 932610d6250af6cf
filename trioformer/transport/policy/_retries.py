"""Retry a request if the server asks for a retry, or if the connection failed and a retry is safe.

After a connection failure, it is unknown whether the server has executed the request, and executing a write twice may
do harm.  So two questions are asked in this order:

- Can the server have begun the request?  It cannot if there was no connection, if the connection failed before the
  first byte was written, or if the response is a 429 or 503 with ``Retry-After``.
  In these cases, any request may be retried. Otherwise, only reads may be retried.
- Can a retry succeed?  It cannot if the verification of a certificate failed, or if the received bytes are not HTTP.
  If the server did not respond for a minute, the request is not retried either. If the server was never reached, a
  refused connection or an unknown host name is also not retried, because the URL is probably wrong.

The delay is the time in ``Retry-After``. After connection failures, the delays grow, and the retries end after half a
minute.

Source: client-go ``rest/with_retry.go`` and ``rest/request.go``. The page docs/design/deviations.rst lists the
differences.
"""

from __future__ import annotations

import enum
import logging
import math
import random
import re
import ssl
from collections.abc import Mapping
from typing import Final, final

import attrs
import trio

from ..._surroundings import new_generator
from ..._text import one_line
from ...errors import ConnectionFailedError, ExecPluginError, TrioformerError
from .. import _failures as failures
from .._errors import InvalidResponseError, causes_of

FAILING_INTERVAL: Final = 1 / 5
"""Seconds between two retries while requests fail."""
ANSWERING_INTERVAL: Final = 1 / 46
"""Seconds between two retries while requests receive responses. The limit for one client is 50 retries per second."""
RECENT: Final = 1.0
"""Seconds after a response during which failures do not slow down the queue, because they may affect only one path."""
WAKE_PERIOD: Final = 15.0
"""Seconds between two wake-ups, so that a server that fails repeatedly does not receive the requests of all callers
each time."""
MIN_SLEEP: Final = 0.5
"""The minimum sleep of a caller in seconds, unless the caller's own time comes earlier."""


@final
@attrs.define(eq=False)
class RetryLine:
    """A queue of callers that are waiting to retry.

    A caller retries when its delay has passed or when the server responds. The callers retry one after another.
    """

    _is_failing: bool = attrs.field(default=False, init=False)
    """Whether requests of the client fail, without a recent response."""
    _must_wake: bool = attrs.field(default=False, init=False)
    """Whether a request has failed since the last wake-up."""
    _woken_at: float = attrs.field(default=-math.inf, init=False)
    _passed_at: float = attrs.field(default=-math.inf, init=False)
    _sleepers: dict[trio.CancelScope, float] = attrs.field(factory=dict, init=False)
    """The sleeping callers, with the start of their sleep; the deadline of each scope is its time."""
    _turns: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The queue. The deadline of the first scope is the time of its turn, and the other scopes have no deadline."""

    async def wait(self, until: float) -> None:
        """Sleep until the given time or until the server responds again, and then wait for a turn.

        Cancellation:
            The next caller gets the turn.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        sleeper = trio.CancelScope(deadline=until)
        self._sleepers[sleeper] = trio.current_time()
        try:
            with sleeper:
                await trio.sleep_forever()
        finally:
            del self._sleepers[sleeper]
        turn = trio.CancelScope()
        self._turns[turn] = None
        self._set_first()
        try:
            with turn:
                await trio.sleep_forever()
            self._passed_at = trio.current_time()
        finally:
            del self._turns[turn]
            self._set_first()

    def record_response(self) -> bool:
        """Record a response after a failure, and return whether the next response must be recorded too."""
        if self._is_failing:
            self._is_failing = False
            self._set_first()
        if self._must_wake:
            self._wake()
        return self._must_wake

    def record_failure(self, responded_at: float) -> None:
        """Record that a connection failed. ``responded_at`` is the time of the last response."""
        self._must_wake = True
        if not self._is_failing and trio.current_time() >= responded_at + RECENT:
            self._is_failing = True
            self._set_first()

    def _wake(self) -> None:
        now = trio.current_time()
        if now < self._woken_at + WAKE_PERIOD:
            return  # a later response wakes the callers that still sleep
        self._must_wake = False
        if not self._sleepers:
            return
        self._woken_at = now
        for sleeper, began_at in self._sleepers.items():
            sleeper.deadline = min(sleeper.deadline, max(now, began_at + MIN_SLEEP))

    def _set_first(self) -> None:
        # Only the first has a deadline, because trio runs tasks that wake together in any order.
        first = next(iter(self._turns), None)
        if first is not None:
            first.deadline = self._passed_at + (FAILING_INTERVAL if self._is_failing else ANSWERING_INTERVAL)


MAX_RETRIES: Final = 10
"""The default number of retries of a request (client-go ``maxRetries``)."""
MAX_RETRY_AFTER: Final = 300
"""The maximum ``Retry-After`` in seconds.  A response that asks for a longer wait is returned instead."""
RETRY_AFTER_JITTER: Final = 0.1
"""The maximum random increase of ``Retry-After``, as a fraction. It prevents all clients from returning at once."""
FIRST_DELAY: Final = 0.1
"""Seconds before the first retry after a connection failure, without jitter. Each further delay is twice as long."""
MAX_DELAY: Final = 2.0
"""The maximum of these delays in seconds, without jitter, which adds at most half of it."""
CONNECT_PERIOD: Final = 30.0
"""Seconds during which a request is retried after connection failures. An API server restarts in less time."""

_NOT_BEGUN: Final = frozenset((429, 503))
"""The status codes that show that the server has not begun to process the request.

A 500, 502 or 504 may come from a server that has executed the request, or from a proxy that has forwarded it.
"""
logger = logging.getLogger("trioformer.transport")

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


class Failure(enum.Enum):
    """How a request without a complete response failed."""

    UNREACHABLE = "no connection: nothing listens, the name has no address, or the server did not respond in time"
    NOT_SENT = "the connection, or its way through a proxy, failed before the first byte of the request was written"
    LOST = "the connection ended later, and the server may have executed the request"
    SLOW = "the server, which may have executed the request, has taken too long to be asked again"
    FINAL = "another request would fail in the same way"


def failure_of(error: BaseException) -> Failure:
    """Return how a request failed, given its ``error`` from this library or a socket."""
    causes = list(causes_of(error))

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    # An SSLEOFError and an SSLZeroReturnError are the end of the connection; the others are about received data.
    ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError, BrokenPipeError, trio.BrokenResourceError)
    if any(_is_final(cause) or (isinstance(cause, ssl.SSLError) and not isinstance(cause, ends)) for cause in causes):
        return Failure.FINAL
    if has(failures.ConnectTimeout):
        return Failure.UNREACHABLE
    if has(failures.ConnectError, failures.ProxyError):
        return Failure.NOT_SENT if has(*ends) else Failure.UNREACHABLE
    if has(failures.TimeoutException):
        return Failure.SLOW
    if has(InvalidResponseError):
        return Failure.FINAL
    # Transports of a caller report only this for a response that ended early.
    is_lost = has(failures.NetworkError, failures.RemoteProtocolError, trio.BrokenResourceError, OSError)
    return Failure.LOST if is_lost else Failure.FINAL


def _is_final(error: BaseException) -> bool:
    if isinstance(error, ExecPluginError):
        return True  # each attempt would run the plugin, which may ask the user
    if isinstance(error, ConnectionFailedError):
        return error.permanent
    return isinstance(error, TrioformerError)


def delay_after(
    method: str,
    number: int,
    *,
    elapsed: float,
    code: int = 0,
    retry_after: str = "",
    failure: Failure | None = None,
    limit: int,
    has_responded: bool,
    rng: random.Random,
) -> float | None:
    """Return the seconds to wait before a retry, or None if the request must not be retried.

    ``has_responded`` is true if this client has ever received a response from the server.
    """
    if number > limit:
        return None
    is_read = method == "GET"
    if failure is None:
        if code not in _NOT_BEGUN and not (is_read and code >= 500):
            return None
        if not _SECONDS.fullmatch(retry_after) or int(retry_after) > MAX_RETRY_AFTER:
            return None
        return int(retry_after) * (1 + RETRY_AFTER_JITTER * rng.random())
    may_repeat = (
        failure is Failure.NOT_SENT
        or (failure is Failure.UNREACHABLE and has_responded)
        or (failure is Failure.LOST and is_read)
    )
    delay = min(FIRST_DELAY * 2 ** (number - 1), MAX_DELAY) * (1 + rng.random() / 2)
    return delay if may_repeat and elapsed + delay <= CONNECT_PERIOD else None


@final
@attrs.define(eq=False)
class Retries:
    """The attempts of one request.

    This class decides whether to retry, and adds the earlier attempts to the last error.
    """

    _method: str
    _what: str
    """The request, for the log."""
    _server: str
    _limit: int = attrs.field(kw_only=True, alias="limit")
    may_authenticate: bool = attrs.field(kw_only=True)
    """Whether to retry once after a 401, with another credential."""
    number: int = attrs.field(default=1, init=False)
    """The number of the current attempt."""
    _began_at: float = attrs.field(factory=trio.current_time, init=False)
    _previous: Exception | None = attrs.field(default=None, init=False)
    """The error of the last attempt without a response."""
    _before: str = attrs.field(default="", init=False)
    """The outcome of the previous attempt. It is empty during the first attempt."""

    def history(self, code: int) -> str:
        """Return a note for the error about an unsuccessful response.

        The note is empty if the request was sent only once.
        """
        if self.number == 1:
            return ""
        text = f"after {self.number} attempts in {trio.current_time() - self._began_at:.1f} s"
        return text if self._before == f"HTTP {code}" else f"{text}; the attempt before failed: {self._before}"

    def after_401(self) -> float:
        """Record a retry with another credential, and return the seconds to wait."""
        self.may_authenticate = False
        return self._next("HTTP 401", 0.0, "HTTP 401; a newer credential is available")

    def after_response(self, code: int, headers: Mapping[str, str]) -> float | None:
        """Return the seconds to wait before the next attempt, or None to return this response."""
        delay = self._delay(has_responded=True, code=code, retry_after=headers.get("retry-after", ""))
        return None if delay is None else self._next(f"HTTP {code}", delay)

    def after_error(self, error: Exception, *, has_responded: bool) -> float | None:
        """Return the seconds to wait before the next attempt, or None to raise this error.

        If the error is raised, it also reports the outcome of the previous attempt, and the previous error is added to
        the error's chain of causes.
        """
        failure = failure_of(error)
        delay = self._delay(has_responded=has_responded, failure=failure)
        text, previous = self._text_of(error), self._previous
        if previous is not None:
            _set_context(error, previous)
            self._previous = None
        if delay is not None:
            self._previous = error
            return self._next(text, delay)
        notes: list[str] = []
        if self._method != "GET" and failure in (Failure.LOST, Failure.SLOW):
            notes.append("the server may have executed the request")
        if self.number > 1:
            notes.append(f"after {self.number} attempts")
            if self._before != text:
                notes.append(f"the attempt before failed: {self._before}")
        if notes and isinstance(error, TrioformerError):
            error.args = (one_line("; ".join([error.message, *notes])),)
        return None

    def _delay(
        self, *, has_responded: bool, code: int = 0, retry_after: str = "", failure: Failure | None = None
    ) -> float | None:
        return delay_after(
            self._method,
            self.number,
            elapsed=trio.current_time() - self._began_at,
            code=code,
            retry_after=retry_after,
            failure=failure,
            limit=self._limit,
            has_responded=has_responded,
            rng=new_generator(),
        )

    def _next(self, before: str, delay: float, why: str = "") -> float:
        text = "%s: %s: %s; retrying in %.1f s (retry %d)"
        logger.info(text, self._what, self._server, why or before, delay, self.number)
        self.number += 1
        self._before = before
        return delay

    def _text_of(self, error: Exception) -> str:
        """Return the text of an error, without the operation, the server or the configuration file."""
        text = str(error).removeprefix(f"{self._what}: ")
        return re.sub(rf"^{re.escape(self._server)}( \([^)]*\))?: ", "", text)


def _set_context(error: BaseException, previous: Exception) -> None:
    """Add an earlier error to the end of an error's chain of causes, so that tracebacks show it."""
    while error.__cause__ is not None:
        error = error.__cause__
    if error is not previous and error.__context__ is None:
        error.__context__ = previous
