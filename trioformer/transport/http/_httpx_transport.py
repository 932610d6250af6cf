"""Send requests through an httpx transport, from the embedded server or from the caller.

httpx and its transports return a body as nested async generators.
If the outermost generator is closed early, the inner ones stay suspended until garbage collection. Each of them causes
a ``ResourceWarning``, and their resources are released late or never.
Only an exception in the innermost generator ends all generators.
So to close a body early, this module reads it once more inside a cancelled scope. The first checkpoint raises
``Cancelled``, and each generator runs its ``finally`` block.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, Self, TypeVar, cast, final

import httpx
import trio

from ..._secret import Secret
from ...errors import ConnectionFailedError, LimitExceededError
from .. import _failures as failures
from .._errors import CONNECTION_ERRORS
from ._messages import (
    CONNECT_PATIENCE,
    NOT_IN_A_HEADER,
    SWITCHED,
    TOKEN,
    WRITE_PATIENCE,
    Framing,
    Head,
    Headers,
    Request,
    decode,
    join_headers,
)

E = TypeVar("E", bound=Exception)

_ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict)
"""The errors of httpx."""
_ERRORS_AT_END: Final[tuple[type[Exception], ...]] = (*_ERRORS, *CONNECTION_ERRORS)
"""The errors of transports, which do not matter any more when a response is closed."""
CLOSE_PATIENCE: Final = 5.0
"""The maximum number of seconds for closing, even when the caller is cancelled. Closing never waits for the peer."""
_MAX_BUFFERED: Final = 256
"""The maximum number of unread slices that may have arrived when a body is closed."""
_SLICE: Final = 64
"""The number of pieces to receive or drop before other tasks run."""


_url: Final = lru_cache(256)(httpx.URL)
"""Parses a URL.  Parsing takes as long as half of a request in memory, and the same URLs are requested again."""


@final
class HTTPXTransport:
    """Sends requests through an httpx transport without closing the transport."""

    is_empty = True
    """Always true, because this transport has no connections of its own."""

    def __init__(self, transport: httpx.AsyncBaseTransport, server: str, server_name: str | None = None) -> None:
        self._transport = transport
        self._server = server
        self._extensions = {"sni_hostname": server_name} if server_name else {}

    async def send(self, request: Request, authorization: Secret[str] | None) -> HTTPXResponse:
        """Send a request, and receive the head of its response."""
        read = None if request.patience == math.inf else request.patience
        timeout = {"connect": CONNECT_PATIENCE, "read": read, "write": WRITE_PATIENCE, "pool": None}
        try:
            sent = httpx.Request(
                request.method,
                _url(self._server + request.path),
                params=request.params or None,
                content=request.content,
                headers=list(request.headers.items),
                extensions={**self._extensions, "timeout": timeout},
            )
            sent.stream = _Content(request.content or b"")
            if authorization is not None and not request.has_authorization:  # httpx has it in local variables
                sent.headers["Authorization"] = authorization.reveal()
            return HTTPXResponse(await self._transport.handle_async_request(sent))
        except _ERRORS as exc:
            raise from_httpx(exc) from exc

    def close(self) -> None:
        """Do nothing: the transport belongs to the caller."""


@final
class _Content(httpx.AsyncByteStream, AsyncIterator[bytes]):
    """A complete body, which may be sent more than once. httpx's own class is an async generator."""

    def __init__(self, data: bytes) -> None:
        self._data = self._rest = data

    def __aiter__(self) -> _Content:
        return _Content(self._data)

    async def __anext__(self) -> bytes:
        data, self._rest = self._rest, b""
        if data:
            return data
        raise StopAsyncIteration


@final
class HTTPXResponse:
    """Implements :class:`~._connection.ResponseStream`."""

    def __init__(self, response: httpx.Response) -> None:
        headers, warnings = join_headers((decode(name), decode(value)) for name, value in response.headers.raw)
        self.head: Final = Head(
            code=response.status_code, headers=headers, warnings=warnings, framing=Framing.UNTIL_CLOSE
        )
        self._response = response
        # A transport in the same process may have made the response with a complete body.
        # Read the stream directly: ``aiter_raw`` would add a generator with pieces of the body in its variables.
        if response.is_stream_consumed:
            self._pieces: AsyncIterator[bytes] = _Content(response.content)
        else:
            self._pieces = aiter(cast("httpx.AsyncByteStream", response.stream))
        self._next: Callable[[], Awaitable[bytes]] = self._pieces.__anext__
        self._credit = _SLICE
        self._is_suspended = False
        """Whether generators of the body are suspended without a reading task."""

    @property
    def upgraded(self) -> trio.abc.Stream | None:
        stream: Any = self._response.extensions.get("network_stream")
        is_one = self.head.code == SWITCHED and isinstance(stream, trio.abc.Stream)
        return stream if is_one else None

    async def receive(self) -> bytes:
        self._credit -= 1
        if not self._credit:
            self._credit = _SLICE
            await trio.lowlevel.checkpoint()
        self._is_suspended = False
        try:
            while not (data := await self._next()):  # a piece may be empty, which is not the end
                pass
        except StopAsyncIteration:
            return b""
        except _ERRORS as exc:
            raise from_httpx(exc) from exc
        self._is_suspended = True
        return data

    async def aclose(self) -> None:
        deadline = trio.current_time() + CLOSE_PATIENCE
        with trio.CancelScope(deadline=deadline, shield=True), suppress(*_ERRORS_AT_END):
            try:
                if self._is_suspended:
                    await self._unwind()
            finally:
                await self._response.aclose()

    async def _unwind(self) -> None:
        self._is_suspended = False
        with suppress(StopAsyncIteration, *_ERRORS_AT_END):
            for _ in range(_MAX_BUFFERED):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    for _ in range(_SLICE):
                        await self._next()
                if scope.cancelled_caught:
                    return
                await trio.lowlevel.checkpoint()
            if isinstance(self._pieces, AsyncGenerator):  # it always has more, and never waits
                await self._pieces.aclose()


_OWN: Final = (b"host", b"content-length", b"transfer-encoding", b"connection")
"""Headers that are added when a request is sent."""


async def request_of(request: httpx.Request, *, where: str = "") -> Request:
    """Convert an httpx request to a request. If its body is streamed, the body is read first."""
    tokens = [request.method, *(name.decode("latin-1") for name, _ in request.headers.raw)]
    has_control = any(NOT_IN_A_HEADER.search(value) for _, value in request.headers.raw)
    if has_control or not all(map(TOKEN.fullmatch, tokens)):
        raise httpx.LocalProtocolError("the method or a header has characters that cannot be sent")
    content = await request.aread()
    return Request(
        method=request.method,
        path=request.url.raw_path.decode("ascii"),
        headers=Headers((name, value) for name, value in request.headers.raw if name.lower() not in _OWN),
        content=content or None,
        where=where,
    )


def response_of(
    head: Head, receive: Callable[[], Awaitable[bytes]], aclose: Callable[[], Awaitable[None]]
) -> httpx.Response:
    """Convert a response to an httpx response. Closing the result closes the original response."""
    values = [(name, value) for name, value in head.headers.items() if name != "warning"]
    values += [("warning", value) for value in head.warnings]
    headers = [(name.encode(), value.encode()) for name, value in values]  # httpx encodes text as ASCII
    return httpx.Response(head.code, headers=headers, stream=_Body(receive, aclose))


@final
class _Body(httpx.AsyncByteStream, AsyncIterator[bytes]):
    """A body that is its own iterator, so that no generator stays suspended if the body is closed early."""

    def __init__(self, receive: Callable[[], Awaitable[bytes]], aclose: Callable[[], Awaitable[None]]) -> None:
        self._receive = receive
        self._aclose = aclose

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._receive()
        except (ConnectionFailedError, LimitExceededError) as exc:
            raise httpx_error(exc) from exc
        if data:
            return data
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._aclose()


def httpx_error(error: ConnectionFailedError | LimitExceededError) -> httpx.TransportError:
    """Convert an error to the httpx error that users of httpx expect, with the same text."""
    cause = error.__cause__
    original = getattr(cause, "__cause__", None)  # that of a transport that the caller passed
    cause = original if isinstance(original, httpx.TransportError) else cause
    return _namesake(cause, httpx, httpx.TransportError)(str(error))


def from_httpx(error: Exception) -> failures.TransportError:
    """Convert an error of httpx to the failure with the nearest name and the same text."""
    return _namesake(error, failures, failures.TransportError)(str(error))


def _namesake(error: BaseException | None, module: ModuleType, base: type[E]) -> type[E]:
    """Return the class in a module that has the name of an error's class, or of its nearest base class."""
    found: list[Any] = [getattr(module, each.__name__, object) for each in type(error).__mro__]
    return next((kind for kind in found if issubclass(kind, base)), base)
