"""The connection for probes: HTTP/1.1 on one connection, with requests that outlive the task that sent them.

httpcore closes a connection when a request on it is cancelled.
A watch that receives data while its task waits for a probe leaves that probe, and the connection must stay: a new one
would be younger than the watches, and could not vouch for them.
Here a request and its response are two calls, and the second may be repeated by another task.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import attrs
import h11
import httpx
import trio

from .._secret import Secret
from ._credentials import Credential, CredentialSource
from ._httpcore_errors import clear_locals, to_httpx
from ._network import _Network, _SocketStream
from ._request_headers import Header
from ._response import Response
from ._tls import TLS

if TYPE_CHECKING:
    from ._proxy._forward import ForwardedRequests
    from ._proxy._route import Route

_MAX_BODY: Final = 64 * 1024
_WRITE_PATIENCE: Final = 1.0
"""Seconds to write a request; nothing else is in the socket's buffer, so it does not wait."""


class Stream(Protocol):
    """What is needed of a connection."""

    opened_at: float

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes: ...  # noqa: ASYNC109
    async def write(self, buffer: bytes, timeout: float | None = None) -> None: ...  # noqa: ASYNC109
    def close(self) -> None: ...
    def get_extra_info(self, info: str) -> Any: ...


@contextmanager
def _as_httpx_errors() -> Generator[None, None, None]:
    """Raise httpx's errors, as a request over httpx does."""
    try:
        yield
    except BaseException as exc:
        clear_locals(exc)
        if (error := to_httpx(exc)) is not None:
            raise error from exc
        raise


@final
@attrs.define(eq=False)
class HTTPProbeConnection:
    """Implements :class:`~._health.ProbeConnection`."""

    _server: str
    _connect: Callable[[], Awaitable[Stream]]
    _headers: Sequence[Header]
    _credentials: CredentialSource
    _forwarded: ForwardedRequests | None = attrs.field(default=None, alias="forwarded", kw_only=True)
    pending: str | None = attrs.field(default=None, init=False)
    sent_at: float = attrs.field(default=-math.inf, init=False)
    opened_at: float = attrs.field(default=math.inf, init=False)
    was_reused: bool = attrs.field(default=False, init=False)
    _stream: Stream | None = attrs.field(default=None, init=False)
    _http: h11.Connection = attrs.field(init=False)
    _sent_with: Credential = attrs.field(init=False)
    _head: h11.Response | None = attrs.field(default=None, init=False)
    _body: bytearray = attrs.field(factory=bytearray, init=False)
    _is_shut_down: bool = attrs.field(default=False, init=False)

    @property
    def is_live(self) -> bool:
        # An idle connection becomes readable when the server closes it.
        return self._stream is not None and (self.pending is not None or not self._stream.get_extra_info("is_readable"))

    async def send(self, path: str) -> None:
        self.was_reused = self.is_live
        if not self.was_reused:
            self.close()
            await self._open()
        stream = self._stream
        assert stream is not None
        self._head, self._body = None, bytearray()
        self.sent_at = trio.current_time()
        with _as_httpx_errors():
            request = self._request(path)
            self.pending = path
            # Half a request would make the connection useless for those that come after.
            with trio.CancelScope(shield=True):
                await stream.write(request.reveal(), _WRITE_PATIENCE)

    def _request(self, path: str) -> Secret[bytes]:
        """Make a request, which contains the credentials; if it fails, its variables are cleared."""
        url = httpx.URL(self._server)
        headers = [(b"Host", url.netloc), *self._headers]
        self._sent_with = self._credentials.latest
        if self._sent_with.authorization is not None:
            headers.append((b"Authorization", self._sent_with.authorization.reveal().encode("ascii")))
        target = url.raw_path.rstrip(b"/") + path.encode("ascii")
        if (forwarded := self._forwarded) is not None:
            target, headers = forwarded.target(url, target), forwarded.headers(headers)
        head = h11.Request(method="GET", target=target, headers=headers)
        return Secret((self._http.send(head) or b"") + (self._http.send(h11.EndOfMessage()) or b""))

    async def _open(self) -> None:
        if not self._is_shut_down:
            with _as_httpx_errors():
                self._stream = await self._connect()
            self._http = h11.Connection(h11.CLIENT)
            self.opened_at = self._stream.opened_at
        self._check_open()  # also after the connection was opened, which takes time

    def _check_open(self) -> None:
        if self._is_shut_down:
            self.close()
            raise trio.ClosedResourceError("this client is closed")

    async def receive(self) -> Response:
        with _as_httpx_errors():
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > _MAX_BODY:
                        return self._complete()  # a long error page is a response, too; its rest is not read
                elif isinstance(event, h11.EndOfMessage):
                    return self._complete()
                elif event is h11.NEED_DATA:
                    await self._receive_some()
                elif not isinstance(event, h11.InformationalResponse):
                    raise httpx.RemoteProtocolError("the server closed the connection without a response")

    async def _receive_some(self) -> None:
        self._check_open()
        assert self._stream is not None
        # Nothing is lost if this is cancelled.
        data = await self._stream.read(_MAX_BODY)
        if not data and self._head is None:
            raise httpx.RemoteProtocolError("the server closed the connection without a response")
        self._http.receive_data(data)

    def _complete(self) -> Response:
        head = self._head
        assert head is not None
        self.pending = None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()
        if self._forwarded is not None:
            self._forwarded.check(head.status_code)
        if head.status_code == 401:
            self._credentials.reject(self._sent_with)
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        return Response(head.status_code, headers, bytes(self._body))

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self.pending = None

    def shut_down(self) -> None:
        """Close the connection, and open no other one."""
        self._is_shut_down = True
        self.close()


async def connect(
    server: str,
    tls: TLS | None,
    *,
    server_name: str | None,
    socket_options: list[tuple[int, int, int]],
    patience: float,
    route: Route | None = None,
) -> _SocketStream:
    """Open a connection as httpcore's pool does, but outside of it."""
    url = httpx.URL(server)
    host = url.raw_host.decode("ascii")
    stream = await _Network(route=route, context=None if tls is None else tls.context).connect_tcp(
        host, url.port or (80 if tls is None else 443), patience, socket_options=socket_options
    )
    if tls is None:
        return stream
    tls.refresh()
    tls.context.set_alpn_protocols(["http/1.1"])
    return await stream.start_tls(tls.context, server_name or host, patience)
