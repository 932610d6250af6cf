"""Open connections to one server, directly or through a proxy.

Requests, watches and probes get their connections from :class:`Network`, so other modules do not need to deal with
proxies.
With an ``https://`` proxy, the TLS connection to the server runs inside the TLS connection to the proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import attrs
import trio

from .. import _failures as failures
from ..auth._tls import client_context
from ._sockets import Bounded, Liveness, NetworkStream, RawStream, TCPStream, TLSStream

if TYPE_CHECKING:
    from .._proxy._route import Route


@final
@attrs.frozen(eq=False)
class Network:
    """A factory for connections to one server."""

    _health: Liveness | None = None
    """Verifies the server when a connection is silent. None if no connection can be silent for long."""
    _route: Route | None = attrs.field(default=None, kw_only=True, alias="route")
    """The proxy; None for direct connections."""
    _context: ssl.SSLContext | None = attrs.field(default=None, kw_only=True, alias="context")
    """The TLS settings for an ``https://`` proxy, which are the same as for the server, as in client-go. None stands
    for the defaults."""
    _socket_options: Sequence[tuple[int, int, int]] = attrs.field(default=(), kw_only=True, alias="socket_options")
    """Options of every socket."""

    async def connect(self, host: str, port: int, patience: float | None) -> NetworkStream:
        """Open a connection."""
        route = self._route
        if route is None:
            return await self._connect(host, port, patience)
        try:
            stream = await self._connect(route.proxy.host, route.proxy.port, patience)
            return await self._through(route, stream, host, port)
        except failures.ConnectTimeout as exc:
            failure = route.timed_out()
            failure.__cause__ = exc
            raise failures.ProxyError(str(failure)) from failure
        except Exception as exc:  # noqa: BLE001  # every exception of a tunnel is an error of the proxy
            failure = route.failure_of(exc)
            raise failures.ProxyError(str(failure)) from failure

    async def _connect(self, host: str, port: int, patience: float | None) -> NetworkStream:
        with Bounded(patience, failures.ConnectTimeout, failures.ConnectError):
            stream = self._stream(TCPStream(await trio.open_tcp_stream(host, port)))
            try:
                for option in self._socket_options:
                    stream.raw.set_option(*option)
            except BaseException:
                stream.close()
                raise
            return stream

    def _stream(self, raw: RawStream, opened_at: float | None = None) -> NetworkStream:
        return NetworkStream(raw, health=self._health, opened_at=opened_at)

    async def _through(self, route: Route, stream: NetworkStream, host: str, port: int) -> NetworkStream:
        """Turn a connection to a proxy into a connection to a server. Close the connection if this fails."""
        if route.proxy.scheme == "https":
            stream = await stream.start_tls(self._context or client_context(None), route.proxy.host)
        if route.is_forwarded:
            return stream
        from ._tunnel import open_tunnel  # noqa: PLC0415  # most clients do not use a proxy

        try:
            if isinstance(stream, TLSStream):
                stream._health = None  # the connection inside has it
                stream = self._stream(stream, stream.opened_at)
            await open_tunnel(stream.raw, route.proxy, host, port)
        except BaseException:
            stream.close()
            raise
        return stream
