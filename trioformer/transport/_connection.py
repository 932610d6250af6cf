"""Send requests to one cluster, and receive complete or streamed responses."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, Final, Protocol, TypeVar, final, runtime_checkable
from urllib.parse import unquote, urlsplit

import attrs
import trio

from .._text import error_names
from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError, LimitExceededError
from ..kubeconfig import Impersonation
from ._errors import CONNECTION_ERRORS, connection_failed, shows_failing_server
from ._limits import Limits
from ._warnings import WarningHandler, report_warnings
from .auth._credentials import Credential, CredentialSource
from .http._body import ByteStream
from .http._messages import Header, Headers, Request, RequestHeaders, Response, impersonation_headers
from .http._pool import Generations
from .policy._liveness import ServerHealth
from .policy._retries import Retries
from .policy._throttle import RequestRateLimiter, WaitLog

R = TypeVar("R")

_log: Final = logging.getLogger("trioformer.transport")
MAX_REQUESTS: Final = 100
"""The maximum number of requests in flight, including lists but not watches. Further requests wait."""
_VERBS: Final = {"POST": "create", "PUT": "update"}
_WATCH: Final = re.compile(rb"[?&]watch=(true|1)(&|$)")


@runtime_checkable
class RequestObserver(Protocol):
    """An observer of requests, for metrics, traces and logs.

    The observer is called for each attempt to send a request, by the task that sends it, so it must return quickly.
    If the observer raises an exception, the exception is logged, and the request continues.

    An observer may also have a method ``request_responded(request)``. This method is called when the head of a response
    has arrived, which is when a watch begins.
    """

    def request_started(self, request: ObservedRequest) -> None:
        """Record an attempt that is about to be sent."""
        ...

    def request_ended(self, request: ObservedRequest) -> None:
        """Record an attempt that has failed, or whose response has been closed. A watch ends when it is closed."""
        ...


@final
@attrs.define(eq=False, repr=False)
class ObservedRequest(metaclass=NoPublicConstructor):
    """One attempt to send a request. All methods of an observer receive the same object.

    The verb and the resource are those of RBAC and of the server's audit log. For a path without a resource, such as
    ``/version``, the verb is the method in lower case, and the fields of the object are empty.
    """

    _observer: RequestObserver
    _request: Request
    host: str
    """The host of the server, with the port if the URL contains one."""
    attempt: int
    """The number of the attempt, starting at 1."""
    throttled: float | None
    """How long the rate limiter delayed the attempt, in seconds, or None if there is no rate limiter."""
    method: str = attrs.field(init=False)
    """The HTTP method, such as ``GET``."""
    path: str = attrs.field(init=False)
    """The template of the path, such as ``/api/v1/namespaces/{namespace}/pods/{name}``."""
    verb: str = attrs.field(init=False)
    """The verb, such as ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch`` or ``deletecollection``."""
    for_watch: bool = attrs.field(init=False)
    """Whether the response has no end of its own, as for a watch or a followed log."""
    group: str = attrs.field(default="", init=False)
    """The API group, such as ``apps``. It is empty for the core group."""
    resource: str = attrs.field(default="", init=False)
    """The plural name of the resource, such as ``pods``."""
    subresource: str = attrs.field(default="", init=False)
    """The subresource, such as ``status``."""
    namespace: str = attrs.field(default="", init=False)
    """The namespace. It is empty for all namespaces and for cluster-scoped objects."""
    name: str = attrs.field(default="", init=False)
    """The name of the object. It is empty for a collection."""
    code: int | None = attrs.field(default=None, init=False)
    """The HTTP status code, or None before a response."""
    _failure: str = attrs.field(default="", init=False)
    _body: ByteStream | None = attrs.field(default=None, init=False)
    _started_at: float = attrs.field(factory=trio.current_time, init=False)
    _ended_at: float | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.method, self.for_watch = self._request.method, self._request.for_watch
        self.path, self.verb = self._request.path.partition("?")[0] or "/", self.method.lower()
        words = self.path.split("/")
        begin = {"api": 3, "apis": 4}.get(words[1], len(words))
        if rest := list(map(unquote, words[begin:])):
            words, self.group = words[:begin], words[2] if begin == 4 else ""
            if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
                self.namespace, rest = rest[1], rest[2:]
                words += ("namespaces", "{namespace}")
            self.resource, self.name, self.subresource, *more = *rest, *("",) * (3 - len(rest))
            words += (self.resource, self.name and "{name}", self.subresource, "{path}" if more else "")
            self.path = "/" + "/".join(filter(None, words))
            self.verb = _VERBS.get(self.method, self.verb)
            if not self.name and self.verb in ("get", "delete"):
                is_watch = _WATCH.search(self._request.target())
                self.verb = "deletecollection" if self.verb == "delete" else "watch" if is_watch else "list"
        self._call("request_started")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.attempt}: {self.verb} {self.path}: {self.code}>"

    @property
    def reason(self) -> str:
        """Why the attempt failed.

        This is the reason of the server's Status, such as ``NotFound``. If no complete response arrived, it is the name
        of the exception, such as ``ConnectionFailedError`` or ``Cancelled``. Otherwise, it is empty.
        """
        if self._failure or self._body is None or self._body.code < 400:
            return self._failure
        from ..models._internal import MAGIC, decode, open_envelope, status_of  # noqa: PLC0415  # only for failures

        content = self._body.content
        try:
            status: Any = status_of(open_envelope(content)[2]) if content.startswith(MAGIC) else decode(content)
        except (ValueError, RecursionError):
            status = None  # not from an API server
        reason = status.get("reason") if isinstance(status, dict) else None
        return reason if isinstance(reason, str) else ""

    @property
    def duration(self) -> float:
        """The seconds since the attempt was sent, or until its end, by trio's clock."""
        return (trio.current_time() if self._ended_at is None else self._ended_at) - self._started_at

    @property
    def bytes(self) -> int:
        """The number of bytes of the response's body that were received so far, after decompression."""
        return 0 if self._body is None else self._body.received

    def _respond(self, body: ByteStream) -> None:
        """Report the head of the response, and later the end of the response."""
        self._body, self.code, body.on_end = body, body.code, self._end
        self._call("request_responded")

    def _end(self, failure: str) -> None:
        """Report the end of the attempt, with the name of the exception that ended it."""
        self._ended_at, self._failure = trio.current_time(), failure
        self._call("request_ended")

    def _call(self, name: str) -> None:
        try:
            if (call := getattr(self._observer, name, None)) is not None:
                call(self)
        except Exception:  # noqa: BLE001  # the documented boundary to the observer
            _log.exception("the observer of requests raised an exception in %s()", name)


def messages_of(request: ObservedRequest) -> tuple[Request, ByteStream | None]:
    """Return the request as it is sent, without the credential, and its response."""
    return request._request, request._body


@final
@attrs.define(eq=False, kw_only=True)
class Transport(metaclass=NoPublicConstructor):
    """A transport that sends requests to one API server. :func:`~._open.open_transport` opens it.

    Any number of tasks may use a transport at the same time.
    Each watch has its own connection. Other requests wait for the rate limiter, if there is one.
    Redirects are not followed, because the credentials are meant only for this server.
    """

    server: str
    """The URL of the server."""
    plugin: str
    """The command of the credential plugin, or an empty string."""
    health: ServerHealth
    """The known health of the server."""
    limits: Limits
    """The limits on responses."""
    _generations: Generations
    _credentials: CredentialSource
    _headers: RequestHeaders
    _rate_limiter: RequestRateLimiter | None
    _warning_handler: WarningHandler
    _observer: RequestObserver | None
    _max_retries: int
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(MAX_REQUESTS), init=False)
    _wait_log: WaitLog = attrs.field(factory=WaitLog, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.server}{', closed' if self.health.is_closed else ''}>"

    def impersonating(self, impersonation: Impersonation) -> Transport:
        """Return a transport that acts as another user.

        It shares everything else with the original transport, and is closed together with the original.
        """
        other = copy(self)
        other._headers = attrs.evolve(self._headers, impersonation=impersonation_headers(impersonation))
        return other

    async def obtain_credential(self) -> Credential:
        """Return the credential for the next request. This method executes a checkpoint only if a plugin must run."""
        self._check_open()
        credential = await self._credentials.get()
        self._check_open()  # a plugin takes time
        return credential

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
        accept: str = "application/json",
        limit: str = "object_bytes",
        retries: bool = True,
        where: str = "",
    ) -> Response:
        """Send a request, and return the complete response, regardless of its status code.

        The request is retried if that is safe (``policy/_retries.py``), unless the caller has its own retries.
        ``path`` is quoted, has a leading slash, and is relative to the server's URL. ``limit`` is the field of
        :class:`Limits` for the body. ``where`` is the operation, for errors and logs.

        Raises:
            ConnectionFailedError: No complete response was received.
            LimitExceededError: The response exceeds a limit.
            trio.ClosedResourceError: The client is closed.

        Cancellation:
            The connection is closed.  The server may have executed the request.
        """
        request = self._make(method, path, params, content, content_type, accept, where, limit=limit)
        body = await self.open(request, self._retries_of(request, may_retry=retries))
        return Response(body.code, body.headers, body.content, body.server, body.credential, body.history)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        method: str = "GET",
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
        accept: str = "application/json",
        for_watch: bool,
        resumable: bool = False,
        retries: bool = True,
        where: str = "",
    ) -> AsyncGenerator[ByteStream, None]:
        """Send a request, and yield the response, regardless of its status code. Its body can be read inside the block.

        The arguments, the errors and the retries before the response are the same as in :meth:`request`.
        The body of a watch (``for_watch``) has no limit on its size or on the time between events.
        The caller of a ``resumable`` watch opens another watch after a ConnectionFailedError.  So such a watch is not
        retried here, and its connection is closed if it is silent and cannot be verified.

        Cancellation:
            The connection is closed. The connection is also closed if the block ends before the body.

        Ownership:
            No task is started, so exceptions of the block are not wrapped in a group.
        """
        if for_watch:
            credential = await self.obtain_credential()
            self._generations.current(credential)  # before a probe connection is made for the watch
            await self.health.prepare()
        request = self._make(
            method, path, params, content, content_type, accept, where, for_watch=for_watch, resumable=resumable
        )
        body = await self.open(request, self._retries_of(request, may_retry=retries and not resumable))
        try:
            yield body
        finally:
            await body.aclose()

    @asynccontextmanager
    async def upgrade(self, path: str, headers: list[Header], *, where: str) -> AsyncGenerator[ByteStream, None]:
        """Ask the server to switch to another protocol, and yield its response.

        After status 101, the response has a stream for the other protocol (``ByteStream.upgraded``) instead of a body.
        The request is retried only after a 401 response. After other failures, a retry might, for example, start a
        command twice.

        ``path`` includes the query. ``headers`` must include ``Connection`` and ``Upgrade``.

        Cancellation: the connection is closed, as at the end of the block.
        """
        own = self._headers.of(accept="*/*", content_type=None, accepts_gzip=False)
        request = Request(method="GET", path=path, headers=Headers([*own.items, *headers]), where=where)
        body = await self.open(request, self._retries_of(request, may_retry=False))
        body.end_turn()  # a command or a forwarded port may run for as long as the caller wants
        try:
            yield body
        finally:
            await body.aclose()

    async def read(
        self,
        path: str,
        read_body: Callable[[ByteStream], Awaitable[R]],
        *,
        params: Mapping[str, str] | None = None,
        accept: str = "application/json",
        retries: bool = True,
        where: str = "",
    ) -> R:
        """Send a GET request, read its response with ``read_body``, and return the result.

        Unlike :meth:`stream`, this method also retries if the connection fails while the body is being read.
        ``read_body`` is then called again with the body of the new response.
        """
        request = self._make("GET", path, params, None, None, accept, where)
        attempts = self._retries_of(request, may_retry=retries)
        while True:
            body = await self.open(request, attempts)
            try:
                return await read_body(body)
            except ConnectionFailedError as exc:
                traceback.clear_frames(exc.__traceback__)  # the next attempts keep the error, which would keep the data
                if (delay := attempts.after_error(exc, has_responded=True)) is None:
                    raise
            finally:
                await body.aclose()
            await trio.sleep(delay)

    def _make(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str | None,
        accept: str,
        where: str,
        *,
        limit: str | None = None,
        for_watch: bool = False,
        resumable: bool = False,
    ) -> Request:
        # kube-apiserver does not compress watches
        accepts_gzip = self._headers.uses_gzip and method == "GET" and not for_watch
        return Request(
            method=method,
            path=path,
            params=params,
            headers=self._headers.of(accept=accept, content_type=content_type, accepts_gzip=accepts_gzip),
            accepts_gzip=accepts_gzip,
            content=content,
            limit=limit,
            where=where,
            for_watch=for_watch,
            resumable=resumable,
        )

    async def open(self, request: Request, attempts: Retries) -> ByteStream:
        """Send a request, with retries, and return the last response, regardless of its status code.

        If the request has a limit for the body, the returned response is complete.  Otherwise, the caller must close
        the response, and the request counts as in flight until the response is closed.
        The errors are the same as in :meth:`request`.
        """
        while True:
            throttled = await self._wait_for_turn(request, attempts.number)
            try:
                body = await self._send(request, attempts.number, throttled)
            except (ConnectionFailedError, LimitExceededError) as exc:
                self._end_turn(request)
                if (delay := attempts.after_error(exc, has_responded=self.health.has_responded)) is None:
                    raise
            except BaseException:
                self._end_turn(request)
                raise
            else:
                body.on_close = partial(self._end_turn, request)
                if request.limit is not None:
                    body.end_turn()
                if body.code < 400:
                    return body
                try:
                    if (delay := await self._delay_after(request, body, attempts)) is None:
                        body.history = attempts.history(body.code)
                        return body
                except BaseException:
                    await body.aclose()
                    raise
                await body.drop()
            await trio.sleep(delay)

    def _retries_of(self, request: Request, *, may_retry: bool) -> Retries:
        return Retries(
            request.method,
            request.what,
            self.health.server_text,
            limit=self._max_retries if may_retry else 0,
            may_authenticate=self._max_retries > 0,
        )

    async def _delay_after(self, request: Request, body: ByteStream, attempts: Retries) -> float | None:
        """Return the seconds to wait before a retry after a response, or None if the request must not be retried."""
        if body.code == 401 and not request.has_authorization:
            # The server does not execute unauthenticated requests.
            self._credentials.reject(body.sent_with)
            is_renewed = self._generations.reject(body.generation)
            if attempts.may_authenticate and (is_renewed or not body.sent_with.is_equal(await self._credentials.get())):
                return attempts.after_401()
        return attempts.after_response(body.code, body.headers)

    async def _wait_for_turn(self, request: Request, attempt: int) -> float | None:
        """Wait until a request may be sent.

        Return the delay caused by the rate limiter in seconds, or None if there is no rate limiter.

        The first attempt of a watch does not wait, and its retries wait only for the rate limiter.
        """
        throttled: float | None = None
        if self._rate_limiter is not None and not (request.for_watch and attempt == 1):
            began_at = trio.current_time()
            await self._rate_limiter.wait()
            if not request.for_watch:
                throttled = trio.current_time() - began_at
                self._wait_log.record(throttled, request.what)
        await trio.lowlevel.checkpoint_if_cancelled()  # before anything is sent
        if not request.for_watch:
            # The borrower is the request, because the task may send another request while it reads a list.
            try:  # acquire_on_behalf_of() would execute a checkpoint, which costs as much CPU as parsing a response
                self._limiter.acquire_on_behalf_of_nowait(request)
            except trio.WouldBlock:
                await self._limiter.acquire_on_behalf_of(request)
        return throttled

    def _end_turn(self, request: Request) -> None:
        if not request.for_watch:
            self._limiter.release_on_behalf_of(request)

    async def _send(self, request: Request, attempt: int, throttled: float | None) -> ByteStream:
        """Send a request once. If the request has a limit for the body, receive the complete body."""
        credential = await self.obtain_credential()
        observed: ObservedRequest | None = None
        if self._observer is not None:
            host = urlsplit(self.server).netloc
            observed = ObservedRequest._create(self._observer, request, host, attempt, throttled)
        body: ByteStream | None = None
        try:
            try:
                response, generation = await self._generations.send(request, credential)
                body = ByteStream(response, request, credential, generation, self.health, self.limits)
                if observed is not None:
                    observed._respond(body)
                if request.limit is not None:
                    await body.read_whole()
            except CONNECTION_ERRORS as exc:
                self._check_open()
                if shows_failing_server(exc):
                    self.health.record_failure()
                raise connection_failed(exc, self.health.server_text, request.where) from exc
            self.health.responded_at = trio.current_time()
            if self.health.must_record:
                self.health.record_response()
            if "warning" in body.headers:
                report_warnings(self._warning_handler, body.head.warnings, where=request.what, server=self.server)
        except BaseException as exc:
            if body is not None:  # of a handler
                await body.aclose()
            elif observed is not None:
                observed._end(error_names(exc))  # trio cancels a connection attempt with a group
            raise
        return body

    def _check_open(self) -> None:
        if self.health.is_closed:
            raise trio.ClosedResourceError("this client is closed: its `async with` block has ended")

    def _close(self) -> None:
        self.health.close()
        self._generations.close()
