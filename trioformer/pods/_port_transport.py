"""A transport of httpx whose connections go to a port of a pod."""

from __future__ import annotations

import ssl
from collections import deque
from functools import partial
from typing import Final, final

import attrs
import httpx
import trio

from ..errors import TrioformerError
from ..transport._internal import (
    Connection,
    NetworkStream,
    NotAvailableError,
    State,
    client_context,
    request_of,
    response_of,
)
from ._port_streams import PodConnection
from ._port_targets import PortSource

_KEEP_PERIOD: Final = 5.0
"""Seconds for which an unused connection is kept, as by httpx."""
_MAX_READ: Final = 64 * 1024


@final
class _PodStream:
    """A connection to a pod, with the errors of a socket."""

    def __init__(self, pod: PodConnection) -> None:
        self._pod = pod
        self.is_closed = False

    async def receive_some(self, max_bytes: int) -> bytes:
        try:
            return await self._pod.receive_some(min(max_bytes, _MAX_READ))
        except TrioformerError as exc:
            raise trio.BrokenResourceError(str(exc)) from exc

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._pod.send_all(data)
        except TrioformerError as exc:
            raise trio.BrokenResourceError(str(exc)) from exc

    def send_now(self, data: bytes) -> int:
        return 0

    @property
    def is_readable(self) -> bool:
        return self.is_closed or self._pod.is_readable

    def problem(self) -> Exception | None:
        return trio.ClosedResourceError("closed on this side") if self.is_closed else None

    def close(self) -> None:
        self.is_closed = True  # the user of the pod's connection closes that

    def set_option(self, level: int, option: int, value: int) -> None:
        """Do nothing: there is no socket."""


@final
@attrs.define(eq=False)
class _Kept:
    """A connection to a pod."""

    pod: PodConnection
    connection: Connection
    origin: tuple[str, str]
    """The scheme and the host, with which TLS was done."""
    expires_at: float = attrs.field(default=0.0, init=False)


@final
class PortTransport(httpx.AsyncBaseTransport):
    """Sends requests to a port of a pod; made by :func:`port_transport`."""

    def __init__(self, source: PortSource, tls: ssl.SSLContext | None) -> None:
        self._source = source
        self._tls = tls
        self._idle: deque[_Kept] = deque()
        """The one that was used last at the end."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and receive the head of the response."""
        sent = await request_of(request)
        encoded = sent.encode(request.headers.get("host", "").encode(), sent.target())
        timeout = request.extensions.get("timeout", {})
        origin = (request.url.scheme, request.url.host)
        while True:
            kept = await self._take_idle(origin) or await self._connect(origin, timeout.get("connect"))
            try:
                await kept.connection.send(encoded, timeout.get("write"))
                await kept.connection.receive_head(timeout.get("read"), is_alone=request.method == "HEAD")
            except NotAvailableError:
                await kept.pod.aclose()
            except BaseException:
                await kept.pod.aclose()
                raise
            else:
                return response_of(kept.connection.head, kept.connection.receive, partial(self._release, kept))

    async def _take_idle(self, origin: tuple[str, str]) -> _Kept | None:
        now = trio.current_time()
        while self._idle and self._idle[0].expires_at < now:
            await self._idle.popleft().pod.aclose()
        for kept in reversed(self._idle):
            if kept.origin == origin:
                self._idle.remove(kept)
                return kept
        return None

    async def _connect(self, origin: tuple[str, str], patience: float | None) -> _Kept:
        pod: PodConnection | None = None
        try:
            with trio.CancelScope() as scope:
                if patience is not None:
                    scope.deadline = trio.current_time() + patience
                pod = await self._source.connect()
                stream = NetworkStream(_PodStream(pod))
                if origin[0] == "https":
                    stream = await stream.start_tls(self._tls or client_context(None), origin[1])
                return _Kept(pod, Connection(stream), origin)
        except BaseException as exc:
            if pod is not None:
                await pod.aclose()
            if isinstance(exc, TrioformerError):
                raise httpx.ConnectError(str(exc)) from exc
            raise
        if pod is not None:
            await pod.aclose()
        raise httpx.ConnectTimeout(f"not within {patience:g} s")

    async def _release(self, kept: _Kept) -> None:
        kept.connection.release()
        if kept.connection.state is State.IDLE:
            kept.expires_at = trio.current_time() + _KEEP_PERIOD
            self._idle.append(kept)
        else:
            await kept.pod.aclose()

    async def aclose(self) -> None:
        """Close all connections that are not used; the others are closed with their responses."""
        while self._idle:
            await self._idle.pop().pod.aclose()
