"""The HTTP endpoints of a manager: ``/healthz``, ``/readyz``, ``/metrics`` and ``/journal``."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, final
from urllib.parse import parse_qs

import attrs
import trio

from .. import _listeners, _serving
from .._asgi import Message, Receive, Send
from .._text import one_line
from ._health import NOT_FOUND, HealthCheck, Response, health_response, logger
from ._http_options import HTTPOptions
from ._token_checks import CHECK_PERIOD, TokenChecks

if TYPE_CHECKING:
    import socket

    from ..metrics import Metrics

LIMITS: Final = _serving.ServerLimits()
"""The default limits suffice, because probes and scrapes are few and small."""
NOT_ALLOWED: Final = Response(405, b"405 method not allowed\n", headers=((b"allow", b"GET, HEAD"),))
UNAUTHORIZED: Final = Response(401, b"401 unauthorized\n", headers=((b"www-authenticate", b"Bearer"),))
FAILED: Final = Response(500, b"500 internal server error\n")
BUSY: Final = Response(
    503, b"503 service unavailable\n", headers=((b"retry-after", str(math.ceil(CHECK_PERIOD)).encode()),)
)


@final
@attrs.define(eq=False)
class ErrorLog:
    """A log for the exceptions of repeated calls, which records only the first of several consecutive exceptions."""

    _failing: set[str] = attrs.field(factory=set, init=False)

    def failed(self, name: str) -> None:
        """Log the exception that is being handled, at DEBUG if the previous call with this name failed too."""
        level = logging.DEBUG if name in self._failing else logging.ERROR
        self._failing.add(name)
        logger.log(level, "%s failed", name, exc_info=True)

    def succeeded(self, name: str) -> None:
        """Record a successful call, so that its next exception is logged again."""
        self._failing.discard(name)


@final
@attrs.frozen(eq=False)
class Endpoints:
    """An ASGI 3 application for the scope ``http``, which handles all exceptions from checks and collectors."""

    health: Mapping[str, Callable[[], Mapping[str, HealthCheck]]]
    """A mapping of paths to functions that return the current checks."""
    metrics: Metrics | None
    options: HTTPOptions
    """The options that decide which requests may read the metrics and the journals."""
    journals: Callable[[], Mapping[str, object]] = dict
    """A function that returns the journal of each controller."""
    _errors: ErrorLog = attrs.field(factory=ErrorLog, init=False)
    _token_checks: TokenChecks | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        check = self.options.check_metrics_token
        object.__setattr__(self, "_token_checks", None if check is None else TokenChecks(check))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Respond to an HTTP request."""
        response = await self._respond(scope, receive)
        headers = [
            (b"content-type", response.content_type.encode()),
            (b"content-length", str(len(response.body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            *response.headers,
        ]
        await send({"type": "http.response.start", "status": response.code, "headers": headers})
        await send({"type": "http.response.body", "body": response.body, "more_body": False})

    async def _respond(self, scope: Message, receive: Receive) -> Response:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return NOT_ALLOWED
        if path == "/metrics" and self.metrics is not None:
            refusal = await self._refusal(scope, receive)
            if refusal is not None:
                return refusal
            accept = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
            return self._scrape(self.metrics, ",".join(accept))
        if path == "/journal" and (self.options.metrics_token or self.options.check_metrics_token):
            refusal = await self._refusal(scope, receive)
            body = b"" if refusal is not None else json.dumps(self.journals(), indent=1).encode()
            return refusal or Response(200, body, "application/json")
        root, slash, rest = path.partition("/")  # a request target such as "*" does not begin with a slash
        checks = self.health.get(slash + rest.partition("/")[0]) if not root else None
        if checks is None:
            return NOT_FOUND
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return self._check(path, checks, is_verbose="verbose" in query, excluded=query.get("exclude", []))

    # --- metrics ------------------------------------------------------------------------------------------------------

    async def _refusal(self, scope: Message, receive: Receive) -> Response | None:
        """Return an error response to a request for the metrics, or None if the request is allowed."""
        required, checks = self.options.metrics_token, self._token_checks
        if required is None and checks is None:
            return None
        token = _listeners.bearer_token(scope["headers"])
        if token is None:
            return UNAUTHORIZED
        if checks is None:
            return None if token == required else UNAUTHORIZED
        try:
            is_allowed = await checks.is_allowed(token, receive)
        except Exception as exc:  # noqa: BLE001  # a boundary: a failing check, such as a TokenReview, refuses the request
            self._errors.failed("check_metrics_token")
            return BUSY if isinstance(exc, trio.TooSlowError) else FAILED
        if is_allowed is None:
            return BUSY
        self._errors.succeeded("check_metrics_token")
        return None if is_allowed else UNAUTHORIZED

    def _scrape(self, metrics: Metrics, accept: str) -> Response:
        try:
            body, content_type = metrics.render(accept)
        except Exception:  # noqa: BLE001  # a boundary: a registry may have collectors of the program
            self._errors.failed("a collector of /metrics")
            return FAILED
        self._errors.succeeded("a collector of /metrics")
        return Response(200, body, content_type)

    # --- health -------------------------------------------------------------------------------------------------------

    def _check(
        self, path: str, checks: Callable[[], Mapping[str, HealthCheck]], *, is_verbose: bool, excluded: list[str]
    ) -> Response:
        try:
            guarded = {name: partial(self._guarded, name, check) for name, check in checks().items()}
        except Exception:  # noqa: BLE001  # a boundary, as below
            self._errors.failed("a health check")
            return FAILED
        self._errors.succeeded("a health check")
        return health_response(path, guarded, is_verbose=is_verbose, excluded=excluded)

    def _guarded(self, name: str, check: HealthCheck) -> str:
        try:
            reason = check()
        except Exception as exc:  # noqa: BLE001  # a boundary: a check must not end what it checks
            self._errors.failed(f"health check {name}")
            return f"the check raised {type(exc).__name__}"
        self._errors.succeeded(f"health check {name}")
        return one_line(reason)


def warn_of_readable_tokens(options: HTTPOptions, listener: socket.socket) -> None:
    """Log a warning if other machines send tokens without TLS."""
    has_tokens = options.metrics_token is not None or options.check_metrics_token is not None
    if has_tokens and options.certificate is None and not _listeners.is_loopback(listener.getsockname()[0]):
        logger.warning(
            "%s has no TLS, so anyone who can read the network can read and use the tokens of requests for /metrics; "
            "pass certificate= and key= to HTTPOptions",
            _listeners.url_of(listener),
        )


def tls_contexts(options: HTTPOptions) -> _listeners.TLSContexts | None:
    """Return the TLS contexts for the options, or None for plain HTTP.

    Raises:
        ConfigError: A file cannot be read or is not valid, the key is encrypted, or the key does not match the
            certificate.
    """
    if options.certificate is None or options.key is None:
        return None
    names = "HTTPOptions.certificate", "HTTPOptions.key"
    return _listeners.server_contexts(options.certificate, options.key, names=names)


async def serve(
    endpoints: Endpoints,
    listener: socket.socket,
    *,
    tls: _listeners.TLSContexts | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve requests until cancelled, and then close the socket."""
    await _serving.serve_app(endpoints, listener, limits=LIMITS, tls=tls, task_status=task_status)
