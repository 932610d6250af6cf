"""One cluster's connections: requests with their answers, and bodies that are read as they come."""

from __future__ import annotations

import http.cookiejar
import platform
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import httpx
import trio

from .._util import NoPublicConstructor
from .._version import __version__
from ..errors import ConfigError
from ..kubeconfig import ClusterConfig
from ._auth import Authorization
from ._byte_stream import ByteStream
from ._errors import CONNECTION_ERRORS, connection_failed
from ._observer import RequestObserver
from ._throttle import BURST, Throttle
from ._tls import TLS

CONNECT_PATIENCE: Final = 30.0
"""Seconds that a TCP connection, and then a TLS handshake, may take (client-go dials for 30 s)."""
WRITE_PATIENCE: Final = 60.0
"""Seconds that the server may take to read a piece of a request."""
READ_PATIENCE: Final = 90.0
"""Seconds of silence before an answer, or inside of one; the API server itself gives up on a request after 60."""
IDLE_PERIOD: Final = 60.0
"""Seconds that an unused connection is kept; the API server closes one after 90."""
KEEPALIVE_IDLE: Final = 15
"""Seconds without traffic before the kernel asks whether the other end is still there."""
KEEPALIVE_INTERVAL: Final = 9
"""Seconds between two such questions."""
KEEPALIVE_COUNT: Final = 3
"""Questions without an answer that end a connection: a dead peer is noticed 42 s after its last byte.

The kernel's timers may each be late by half a second, so that it is within 45 s in any case.
"""
MOST_REQUESTS: Final = 100
"""Requests, lists included, that may be under way at once; further ones wait.  Watches do not count."""

# Neither limits a watch: it is silent for as long as nothing happens.
_REQUEST_PATIENCE: Final = httpx.Timeout(connect=CONNECT_PATIENCE, read=READ_PATIENCE, write=WRITE_PATIENCE, pool=None)
_WATCH_PATIENCE: Final = httpx.Timeout(connect=CONNECT_PATIENCE, read=None, write=WRITE_PATIENCE, pool=None)


@final
@attrs.frozen
class Response:
    """A whole answer."""

    code: int
    """The HTTP status code."""
    headers: Mapping[str, str]
    """The headers, their names in lower case."""
    body: bytes = attrs.field(repr=False)
    """The body, decompressed."""


@final
class Transport(metaclass=NoPublicConstructor):
    """Sends requests to one API server; made by :func:`open_transport`.

    Any number of tasks may use it at once.
    Each watch has a connection of its own, and a connection is never waited for: httpcore's pool loses places when a
    task is cancelled while it waits for one (encode/httpcore#1093), so a limiter outside of it holds requests back.
    """

    __slots__ = (
        "_authorization",
        "_extensions",
        "_headers",
        "_host",
        "_is_closed",
        "_limiter",
        "_observer",
        "_requests",
        "_throttle",
        "_tls",
        "_watches",
        "server",
    )

    def __init__(
        self,
        config: ClusterConfig,
        *,
        requests: httpx.AsyncClient,
        watches: httpx.AsyncClient,
        tls: TLS | None,
        user_agent: str,
        throttle: Throttle | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.server: str = config.server
        self._host = urlsplit(config.server).netloc
        self._observer = observer
        self._requests = requests
        self._watches = watches
        self._tls = tls
        self._authorization = Authorization(config)
        self._limiter = trio.CapacityLimiter(MOST_REQUESTS)
        self._throttle = throttle
        # Compression costs more than the network of a cluster: 24 µs a pod against 9.
        self._headers = {"Accept-Encoding": "identity", "User-Agent": user_agent}
        # httpcore hands the name to TLS, which sends it and checks the certificate against it.
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
    ) -> Response:
        """Send a request and wait for the whole answer, whatever its status code.

        Nothing is sent twice.

        Args:
            method: Such as ``GET``.
            path: The path below the server's URL, with its leading slash, quoted.
            params: The query.
            content: The request's body.
            content_type: What the body is.
            accept: What the answer should be.

        Raises:
            ConnectionFailedError: No complete answer came.
            trio.ClosedResourceError: The client is closed.

        Cancellation:
            Closes the connection.  Whether the server has carried out the request is then not known.
        """
        headers = {"Accept": accept}
        if content_type is not None:
            headers["Content-Type"] = content_type
        async with self._place(is_limited=True) as throttled:
            response = await self._send(
                method, path, params, headers, content=content, stream=False, for_watch=False, throttled=throttled
            )
            return Response(response.status_code, dict(response.headers), response.content)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        accept: str = "application/json",
        for_watch: bool,
    ) -> AsyncGenerator[ByteStream, None]:
        """Send a GET request; inside of the block its answer can be read as it comes, whatever its status code.

        Args:
            path: The path below the server's URL, with its leading slash, quoted.
            params: The query.
            accept: What the answer should be.
            for_watch: Whether the answer may be silent for any time; if not, it counts as a request.

        Raises:
            ConnectionFailedError: No answer came.
            trio.ClosedResourceError: The client is closed.

        Cancellation:
            Closes the connection, as does leaving the block before the body's end.

        Ownership:
            No task is started, so what the block raises leaves it as it is.
        """
        async with self._place(is_limited=not for_watch) as throttled:
            response = await self._send(
                "GET", path, params, {"Accept": accept}, stream=True, for_watch=for_watch, throttled=throttled
            )
            body = ByteStream._create(response, self.server)
            try:
                yield body
            finally:
                await body._aclose()

    @asynccontextmanager
    async def _place(self, *, is_limited: bool) -> AsyncGenerator[float | None, None]:
        """Wait until a request may go; the block is given the seconds that the throttle has held it back."""
        if not is_limited:
            yield None
            return
        throttled: float | None = None
        if self._throttle is not None:
            asked_at = trio.current_time()
            await self._throttle.wait()
            throttled = trio.current_time() - asked_at
        borrower = object()  # a task may read a list and send a request meanwhile, so the task is not the borrower
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
        stream: bool,
        for_watch: bool,
        throttled: float | None,
    ) -> httpx.Response:
        client, patience = (self._watches, _WATCH_PATIENCE) if for_watch else (self._requests, _REQUEST_PATIENCE)
        self._check_open()
        if self._tls is not None:
            self._tls.refresh()
        authorization = self._authorization.header()
        sent_at = trio.current_time()
        credentials = {} if authorization is None else {"Authorization": authorization}
        code: int | None = None
        try:
            request = client.build_request(
                method,
                self.server + path,
                params=params or None,
                content=content,
                headers={**self._headers, **headers, **credentials},
                timeout=patience,
                extensions=self._extensions,
            )
            request.stream = Content(content or b"")
            response = await client.send(request, stream=stream)
            code = response.status_code
        except CONNECTION_ERRORS as exc:
            self._check_open()
            raise connection_failed(exc, self.server) from exc
        finally:
            if self._observer is not None:
                self._observer.ended(
                    method=method,
                    host=self._host,
                    code=code,
                    lasted=trio.current_time() - sent_at,
                    throttled=throttled,
                    for_watch=for_watch,
                )
        if response.status_code == 401:
            self._authorization.refused(sent_at)
        return response

    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this client is closed: its `async with` block has been left")

    def _close(self) -> None:
        self._is_closed = True


@asynccontextmanager
async def open_transport(
    config: ClusterConfig,
    *,
    http_transport: httpx.AsyncBaseTransport | None = None,
    user_agent: str | None = None,
    qps: float | None = None,
    burst: int = BURST,
    observer: RequestObserver | None = None,
) -> AsyncGenerator[Transport, None]:
    """Connect to a cluster; connections are made when they are needed, and closed when the block is left.

    Args:
        config: Where the server is, and who asks.
        http_transport: Carries the requests instead of connections of the transport's own, such as an API server in the
            same process; TLS is then its own affair.
        user_agent: What to call oneself.
        qps: How many requests and lists to send a second, on average; further ones wait, watches never.  None for any
            number.
        burst: How many may go at once after a pause.
        observer: Is told of each request.

    Raises:
        ConfigError: A certificate, key or token cannot be used, or would be sent without TLS.
        ValueError: The user agent cannot be sent, or ``qps`` or ``burst`` is too small.

    Ownership:
        No task is started, so what the block raises leaves it as it is.
        ``http_transport`` stays the caller's and is not closed.
    """
    user_agent = default_user_agent() if user_agent is None else user_agent
    if not (user_agent.isascii() and user_agent.isprintable()):
        raise ValueError(f"a user agent must be printable ASCII, not {user_agent!r}")
    throttle = None if qps is None else Throttle(qps, burst)
    tls: TLS | None = None
    carriers: tuple[httpx.AsyncBaseTransport, httpx.AsyncBaseTransport]
    if http_transport is not None:
        carriers = (_Borrowed(http_transport), _Borrowed(http_transport))
    else:
        if config.server.startswith("https:"):
            tls = TLS(config)
        elif config.token is not None or config.token_file is not None or config.username is not None:
            raise ConfigError("credentials are sent over https:// only", file=config.source, key="server")
        carriers = (_connections(tls), _connections(tls))
    async with _http_client(carriers[0]) as requests, _http_client(carriers[1]) as watches:
        transport = Transport._create(
            config,
            requests=requests,
            watches=watches,
            tls=tls,
            user_agent=user_agent,
            throttle=throttle,
            observer=observer,
        )
        try:
            yield transport
        finally:
            transport._close()


def default_user_agent() -> str:
    """Name the library, its version and the platform."""
    return f"trioformer/{__version__} ({platform.system().lower()}/{platform.machine().lower()})"


class _Borrowed(httpx.AsyncBaseTransport):
    """Somebody else's transport: not closed with the client that uses it."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._transport.handle_async_request(request)


def _connections(tls: TLS | None) -> httpx.AsyncBaseTransport:
    # httpx too imports httpcore with the first transport: it is a fifth of what importing this library would cost.
    from ._network import Connections  # noqa: PLC0415

    context = tls.context if tls is not None else None
    return Connections(context, socket_options=_socket_options(), idle_period=IDLE_PERIOD)


def _socket_options() -> list[tuple[int, int, int]]:
    """Let the kernel notice a peer that is gone without a word; a watch that waits for events never would."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    after = KEEPALIVE_IDLE + KEEPALIVE_COUNT * KEEPALIVE_INTERVAL
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_COUNT),
        ("TCP_USER_TIMEOUT", after * 1000),  # the same for what was sent and never acknowledged; milliseconds
    ):
        number: int | None = getattr(socket, name, None)  # not every platform has them all
        if number is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options


def _http_client(carrier: httpx.AsyncBaseTransport) -> httpx.AsyncClient:
    refuse_all = http.cookiejar.DefaultCookiePolicy(allowed_domains=())
    return httpx.AsyncClient(
        transport=carrier,
        cookies=http.cookiejar.CookieJar(refuse_all),
        follow_redirects=False,  # to a place that the credentials are not meant for
        trust_env=False,
    )


@final
class Content(httpx.AsyncByteStream):
    """The bytes of a request's body, handed over in one piece.

    httpx's own is an async generator.
    A request that is cancelled while it is being sent leaves that suspended, and the garbage collector finds it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._left = [data] if data else []

    def __aiter__(self) -> _Once:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()
