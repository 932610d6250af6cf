"""A transport of httpx whose connections go to a port of a pod.

httpcore's pool sends the requests, and opens its connections here.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast, final

import httpcore
import httpx
import trio

from ..errors import TrioformerError
from ..transport._internal import to_httpx
from ._port_streams import PodConnection
from ._port_targets import PortSource

if TYPE_CHECKING:
    from collections.abc import Generator

_KEEP_PERIOD: Final = 5.0
"""Seconds for which an unused connection is kept, as by httpx."""
_RECEIVE_SIZE: Final = 64 * 1024


@contextmanager
def _translated(kind: type[Exception]) -> Generator[None, None, None]:
    """Raise errors of httpcore, as httpx does of its own connections."""
    try:
        yield
    except httpcore.TimeoutException:
        raise
    except (TrioformerError, trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as exc:
        raise kind(str(exc) or str(exc.__cause__)) from exc


@contextmanager
def _within(seconds: float | None, kind: type[Exception]) -> Generator[None, None, None]:
    with trio.CancelScope() as scope:
        if seconds is not None:
            scope.deadline = trio.current_time() + seconds
        yield
    if scope.cancelled_caught:
        raise kind(f"not within {seconds:g} s")


@final
class _Connection(httpcore.AsyncNetworkStream):
    """A connection as httpcore wants it."""

    def __init__(self, connection: PodConnection, stream: trio.abc.Stream) -> None:
        self._connection = connection
        self._stream = stream
        """The same, or TLS over it."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's interface
        with _translated(httpcore.ReadError), _within(timeout, httpcore.ReadTimeout):
            return bytes(await self._stream.receive_some(min(max_bytes, _RECEIVE_SIZE)))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        with _translated(httpcore.WriteError), _within(timeout, httpcore.WriteTimeout):
            await self._stream.send_all(buffer)

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> _Connection:
        stream = trio.SSLStream(self._stream, ssl_context, server_hostname=server_hostname, https_compatible=True)
        try:
            with _translated(httpcore.ConnectError), _within(timeout, httpcore.ConnectTimeout):
                await stream.do_handshake()
        except BaseException:
            await self._connection.aclose()
            raise
        return _Connection(self._connection, stream)

    def get_extra_info(self, info: str) -> Any:
        return self._connection.is_readable if info == "is_readable" else None


@final
class _Network(httpcore.AsyncNetworkBackend):
    """Opens connections to one port of a pod, whatever the URL says."""

    def __init__(self, source: PortSource) -> None:
        self._source = source

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> _Connection:
        with _translated(httpcore.ConnectError), _within(timeout, httpcore.ConnectTimeout):
            connection = await self._source.connect()
            return _Connection(connection, connection)

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


@final
class PortTransport(httpx.AsyncBaseTransport):
    """Sends requests to a port of a pod; made by :meth:`Api.port_transport`."""

    def __init__(self, source: PortSource, tls: ssl.SSLContext | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            network_backend=_Network(source),
            keepalive_expiry=_KEEP_PERIOD,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and receive the head of the response."""
        url = request.url
        with _as_httpx():
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=_Content.of(request),
                    extensions=request.extensions,
                )
            )
        body = _Body(response.stream)
        return httpx.Response(response.status, headers=response.headers, stream=body, extensions=response.extensions)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


@final
class _Content(AsyncIterator[bytes]):
    """A body that is known; no async generator, which trio would have to end after a timeout."""

    def __init__(self, content: bytes) -> None:
        self._left = [content] if content else []

    @classmethod
    def of(cls, request: httpx.Request) -> AsyncIterable[bytes]:
        try:
            return cls(request.content)
        except httpx.RequestNotRead:
            return cast("httpx.AsyncByteStream", request.stream)

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


@final
class _Body(httpx.AsyncByteStream):
    """The body of a response."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextmanager
def _as_httpx() -> Generator[None, None, None]:
    try:
        yield
    except Exception as exc:
        if (error := to_httpx(exc)) is None:
            raise
        raise error from (exc.__context__ or exc)  # httpcore raises its errors from None
