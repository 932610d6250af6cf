"""The connections to one cluster: requests with complete responses, and streamed responses."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Final, final
from urllib.parse import urlsplit

import httpx
import trio

from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError
from ..kubeconfig import ClusterConfig
from ._byte_stream import ByteStream
from ._credentials import CredentialSource
from ._errors import CONNECTION_ERRORS, connection_failed, shows_failing_server
from ._generations import Generations
from ._health import VERSION_PATH, ServerHealth
from ._limits import Limits
from ._observer import RequestObserver
from ._response import Response
from ._throttle import Throttle

CONNECT_PATIENCE: Final = 30.0
"""Seconds for a TCP connection (client-go dials for 30 s); a TLS handshake has 10."""
WRITE_PATIENCE: Final = 60.0
"""Seconds that the server may take to accept a part of a request."""
READ_PATIENCE: Final = 90.0
"""Seconds without a byte of the response; the API server itself ends a request after 60."""
MAX_REQUESTS: Final = 100
"""Requests in flight, lists included and watches not; further ones wait."""

# The extension ``timeout`` of a request.  A watch has no read timeout: it is silent for as long as nothing changes.
_REQUEST_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": READ_PATIENCE, "write": WRITE_PATIENCE, "pool": None}
_WATCH_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": None, "write": WRITE_PATIENCE, "pool": None}
# Infinite is no limit either; ``_network.RESUMABLE`` says what the difference is.
_RESUMABLE_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": math.inf, "write": WRITE_PATIENCE, "pool": None}


@final
class Transport(metaclass=NoPublicConstructor):
    """Sends requests to one API server; made by :func:`~._open.open_transport`.

    Any number of tasks may use it at the same time.
    Each watch has its own connection, and no request waits for a connection: httpcore's pool leaks a slot when a task
    is cancelled while it waits for one (encode/httpcore#1093), so a limiter in front of the pool makes requests wait.
    Requests are given to the transports of httpx without a client of httpx, which would store cookies, and parse the
    ``Location`` of a response even if it does not follow redirects: the credentials are not for another server.

    Attributes:
        server: The URL of the server.
        health: What the requests have shown about the server.
        limits: The limits of what the server may send.
    """

    __slots__ = (
        "_credentials",
        "_extensions",
        "_generations",
        "_headers",
        "_host",
        "_is_closed",
        "_limiter",
        "_observer",
        "_throttle",
        "health",
        "limits",
        "server",
    )

    def __init__(
        self,
        config: ClusterConfig,
        *,
        generations: Generations,
        health: ServerHealth,
        credentials: CredentialSource,
        user_agent: str,
        throttle: Throttle | None = None,
        observer: RequestObserver | None = None,
        limits: Limits,
    ) -> None:
        self.health: ServerHealth = health
        self.limits: Limits = limits
        self.server: str = config.server
        self._host = urlsplit(config.server).netloc
        self._observer = observer
        self._generations = generations
        self._credentials = credentials
        self._limiter = trio.CapacityLimiter(MAX_REQUESTS)
        self._throttle = throttle
        # Compression costs more than the network of a cluster: 24 µs per pod instead of 9.
        self._headers = {"Accept-Encoding": "identity", "User-Agent": user_agent}
        # TLS sends this name, and the certificate must be valid for it.
        name = config.tls_server_name
        self._extensions: dict[str, str] = {"sni_hostname": name} if name else {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.server}{', closed' if self._is_closed else ''}>"

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
        accept: str = "application/json",
        limit: str = "response_bytes",
        where: str = "",
    ) -> Response:
        """Send a request once, and wait for the complete response, whatever its status code.

        Args:
            method: Such as ``GET``.
            path: The path below the server's URL, with its leading slash, quoted.
            params: The query.
            content: The body of the request.
            content_type: The media type of the body.
            accept: The media types that the response may have.
            limit: The field of :class:`Limits` that limits the body.
            where: The operation, with which the error of an exceeded limit begins instead of the server.

        Raises:
            ConnectionFailedError: No complete response arrived.
            LimitExceededError: The response exceeds a limit.
            UnexpectedResponseError: The body of a success is compressed, which was not requested.
            trio.ClosedResourceError: The client is closed.

        Cancellation:
            Closes the connection.  The server may have executed the request.
        """
        headers = {"Accept": accept}
        if content_type is not None:
            headers["Content-Type"] = content_type
        async with self._limited() as throttled:
            body, received = await self._send(
                method,
                path,
                params,
                headers,
                content=content,
                limit=limit,
                where=where,
                for_watch=False,
                throttled=throttled,
            )
            return Response(body.code, body.headers, received)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        accept: str = "application/json",
        for_watch: bool,
        resumable: bool = False,
        where: str = "",
    ) -> AsyncGenerator[ByteStream, None]:
        """Send a GET request; inside the block the body of the response can be read, whatever its status code.

        Args:
            path: The path below the server's URL, with its leading slash, quoted.
            params: The query.
            accept: The media types that the response may have.
            for_watch: Whether it is a watch, which may be silent for any time and has no limits.
            resumable: Whether the caller watches again after a ConnectionFailedError; then a silent connection that
                cannot be verified is given up.
            where: As for :meth:`request`.

        Raises:
            ConnectionFailedError: No response arrived.
            LimitExceededError: Its headers exceed a limit.
            trio.ClosedResourceError: The client is closed.

        Cancellation:
            Closes the connection, as does leaving the block before the end of the body.

        Ownership:
            No task is started, so an exception of the block is not wrapped in a group.
        """
        if for_watch:
            self._check_open()
            await self.health.prepare()
        async with nullcontext() if for_watch else self._limited() as throttled:
            send = partial(self._send, limit=None, for_watch=for_watch, resumable=resumable, throttled=throttled)
            body, _ = await send("GET", path, params, {"Accept": accept}, where=where)
            try:
                yield body
            finally:
                await body._aclose()

    async def server_version(self, parse: Callable[[Response], tuple[int, int] | None]) -> tuple[int, int] | None:
        """Return the version of the server; requests it until a response has been parsed.

        Args:
            parse: Makes the version of a response, or raises the error of one that is not a success.

        Raises:
            ConnectionFailedError: No complete response arrived.
            trio.ClosedResourceError: The client is closed.
        """
        self._check_open()
        return await self.health.version(self._request_version, parse)

    async def _request_version(self) -> Response:
        if not self.health.has_probes:
            return await self.request("GET", VERSION_PATH, where=f"GET {VERSION_PATH}")
        sent_at = trio.current_time()
        code: int | None = None
        try:
            response = await self.health.request(VERSION_PATH)
            code = response.code
        except ConnectionFailedError:
            self._check_open()
            raise
        finally:
            self._record_end("GET", code, sent_at, throttled=None, for_watch=False)
        return response

    @asynccontextmanager
    async def _limited(self) -> AsyncGenerator[float | None, None]:
        """Wait until a request may be sent; yields for how many seconds the throttle delayed it, None without one."""
        throttled: float | None = None
        if self._throttle is not None:
            began_at = trio.current_time()
            await self._throttle.wait()
            throttled = trio.current_time() - began_at
        borrower = object()  # not the task, which may send a request while it reads a list
        await self._limiter.acquire_on_behalf_of(borrower)
        try:
            yield throttled
        finally:
            self._limiter.release_on_behalf_of(borrower)

    async def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        *,
        content: bytes | None = None,
        limit: str | None,
        where: str,
        for_watch: bool,
        resumable: bool = False,
        throttled: float | None,
    ) -> tuple[ByteStream, bytes]:
        """Send a request; with a limit, receive the whole body."""
        patience = _RESUMABLE_PATIENCE if resumable else _WATCH_PATIENCE if for_watch else _REQUEST_PATIENCE
        self._check_open()
        credential = await self._credentials.get()
        generation = self._generations.current(credential)
        connections = generation.watches if for_watch else generation.requests
        sent_at = trio.current_time()
        code: int | None = None
        try:
            request = httpx.Request(
                method,
                self.server + path,
                params=params or None,
                content=content,
                headers={**self._headers, **headers},
                extensions={**self._extensions, "timeout": patience},
            )
            request.stream = Content(content or b"")
            if credential.authorization is not None:  # httpx has what it builds a request from in local variables
                request.headers["Authorization"] = credential.authorization.reveal()
            response = await connections.handle_async_request(request)
            bound = limit or (None if for_watch else "list_bytes")
            body = ByteStream._create(response, self.server, self.health, self.limits, limit=bound, where=where)
            received = b"" if limit is None else await body._read_whole()
            code = body.code
        except CONNECTION_ERRORS as exc:
            self._check_open()
            if shows_failing_server(exc):
                self.health.record_failure()
            raise connection_failed(exc, self.server, where) from exc
        finally:
            self._record_end(method, code, sent_at, throttled=throttled, for_watch=for_watch)
        self.health.record_response()
        if body.code == 401:
            self._credentials.reject(credential)
        return body, received

    def _record_end(
        self, method: str, code: int | None, sent_at: float, *, throttled: float | None, for_watch: bool
    ) -> None:
        if self._observer is not None:
            self._observer.ended(
                method=method,
                host=self._host,
                code=code,
                duration=trio.current_time() - sent_at,
                throttled=throttled,
                for_watch=for_watch,
            )

    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this client is closed: its `async with` block has ended")

    def _close(self) -> None:
        self._is_closed = True
        self.health.close()


@final
class Content(httpx.AsyncByteStream):
    """The body of a request, in one piece.

    httpx's own class is an async generator.
    A request that is cancelled while it is sent leaves the generator suspended, for the garbage collector to find.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._rest = [data] if data else []

    def __aiter__(self) -> _Once:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()
