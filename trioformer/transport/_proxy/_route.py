"""How the connections to one server go through a proxy: all that the rest of this package needs of it."""

from __future__ import annotations

from typing import final

import attrs

from .._errors import ProxyFailedError
from ._failure import failed, failure_of
from ._forward import ForwardedRequests
from ._proxy import Proxy
from ._tunnel import Stream, open_tunnel


@final
@attrs.frozen
class Route:
    """How the connections to one server reach it, if not directly."""

    proxy: Proxy
    """The proxy."""
    is_forwarded: bool
    """Whether requests have the URL of the server as their target, instead of a tunnel to it."""

    @classmethod
    def to(cls, server: str, proxy: Proxy) -> Route:
        """Make the route to a server: HTTP proxies forward requests to ``http://`` servers, as Go has it."""
        return cls(proxy, is_forwarded=server.startswith("http:") and not proxy.is_socks)

    @property
    def forwarded(self) -> ForwardedRequests | None:
        """What such requests have that others do not."""
        return ForwardedRequests(self.proxy) if self.is_forwarded else None

    async def open_tunnel(self, stream: Stream, host: str, port: int) -> None:
        """Ask the proxy at the other end of ``stream`` for a connection, as :func:`._tunnel.open_tunnel`."""
        await open_tunnel(stream, self.proxy, host, port)

    def failure_of(self, error: BaseException) -> ProxyFailedError:
        """Make the error for an exception that was raised while a connection was opened."""
        return failure_of(self.proxy, error)

    def timed_out(self) -> ProxyFailedError:
        """Make the error for a proxy that does not accept a connection, or does not end its TLS handshake."""
        return failed(self.proxy, "did not connect in time; check its address, and firewalls on the route")
