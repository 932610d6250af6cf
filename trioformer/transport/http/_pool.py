"""Pools of HTTP/1.1 connections to one server.

A request uses the most recently used idle connection, or opens a new one. Connections that stay idle expire.

A pool is replaced when certificates change.
Otherwise, connections might use a server certificate from an authority that is no longer trusted, or a client
certificate that has expired.
A TLS handshake for each request would be too expensive, and an authority cannot be removed from an OpenSSL context.

So connections are divided into generations, each with one TLS context.
When the certificates change, a new generation replaces the current one, which is retired. The idle connections of the
retired generation are closed immediately, and its busy connections when their requests in flight have ended. Its
watches end without an error, so that the callers open new watches.
Endless streams other than watches end with an error (``client/_raw.py``), because nothing resumes them. A write with a
streamed response counts as a request in flight. Two cases are handled separately, because they would cause unnecessary
errors. A watch that ends within a second would look like a rejected watch, so its end is delayed. A watch that has not
yet received a response is requested again.

No task checks the files. They are checked when a request is sent, before a probe for a silent watch, and when a watch
receives data half a minute after the last check.
If one side rejects the other's certificate during a handshake, the server has not begun to process the request. If the
files have changed, the request is sent once more in the new generation.
"""

from __future__ import annotations

import re
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final
from urllib.parse import quote, urlsplit

import attrs
import trio

from .. import _failures as failures
from .._errors import clear_locals, is_about_certificates
from ..auth._credentials import Credential
from ..auth._tls import TLS, client_context
from ._connection import MAX_HEAD, Connection, NotAvailableError, ResponseStream, State
from ._messages import CONNECT_PATIENCE, WRITE_PATIENCE, Header, Request
from ._sockets import Liveness

if TYPE_CHECKING:
    from ..._secret import Secret
    from .._proxy._route import ForwardedRequests
    from ._httpx_transport import HTTPXTransport
    from ._network import Network
    from ._sockets import NetworkStream

IDLE_PERIOD: Final = 60.0
"""Seconds until an unused connection is closed. The API server closes an unused connection after 90 s."""

_NOT_SENT: Final = (failures.ConnectError, failures.ConnectTimeout, failures.ProxyError)
"""Errors of a connection that was never opened."""


@final
@attrs.frozen
class Origin:
    """The destination of requests."""

    is_tls: bool
    host: str
    """The name in ASCII, or the address without brackets."""
    port: int
    netloc: bytes
    """The header ``Host``."""
    prefix: str
    """The prefix of all paths. It is empty, or it has a leading slash but no trailing slash."""
    server_name: str
    """The name that is sent in the TLS handshake, and for which the certificate must be valid."""

    @classmethod
    def of(cls, server: str, server_name: str | None = None) -> Origin:
        """Return the origin for the URL of the server.

        Raises:
            ValueError: The port or an IPv4 address in the URL is not valid, or the host is not ASCII.
        """
        url = urlsplit(server)
        host, is_tls = url.hostname or "", url.scheme == "https"
        if re.fullmatch(r"\d+(\.\d+){3}", host) and any(int(part) > 255 for part in host.split(".")):
            raise ValueError(f"{host!r} is not an address")
        if not host.isascii():
            raise ValueError(f"{host!r} is not ASCII; pass the form of the name that begins with xn--")
        usual = 443 if is_tls else 80
        port = usual if url.port is None else url.port
        netloc = (f"[{host}]" if ":" in host else host) + ("" if port == usual else f":{port}")
        prefix = quote(url.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        return cls(is_tls, host, port, netloc.encode("ascii"), prefix, server_name or host)

    def encode(self, request: Request, authorization: Secret[str] | None, forwarded: ForwardedRequests | None) -> bytes:
        """Encode a request, with its credential, for the server or for a proxy that forwards the request."""
        target, more = request.target(self.prefix), list[Header]()
        if authorization is not None and not request.has_authorization:
            more.append((b"Authorization", authorization.reveal().encode("ascii")))
        if forwarded is not None:
            target = forwarded.target(self.netloc, target)
            more += forwarded.headers()
        return request.encode(self.netloc, target, more)


@final
@attrs.define(eq=False)
class Pool:
    """A pool that sends requests on connections and keeps the connections for later requests."""

    origin: Origin
    _context: ssl.SSLContext | None
    """The TLS settings; None for the defaults."""
    _network: Network
    _forwarded: ForwardedRequests | None = attrs.field(default=None, kw_only=True, alias="forwarded")
    """The form of requests for a proxy that forwards them, or None if there is no such proxy."""
    _header_bytes: int = attrs.field(default=MAX_HEAD, kw_only=True, alias="header_bytes")
    """The limit of the head of a response."""
    is_closed: bool = attrs.field(default=False, init=False)
    """Whether the client is closed."""
    is_retired: bool = attrs.field(default=False, init=False)
    """Whether a newer pool has replaced this one; its connections do not take new requests."""
    _idle: deque[tuple[float, Connection]] = attrs.field(factory=deque, init=False)
    """The idle connections with their expiry times. The most recently used connection is the last."""
    _open: set[Connection] = attrs.field(factory=set, init=False)
    _connecting: set[NetworkStream] = attrs.field(factory=set, init=False)
    """The connections with an incomplete handshake."""

    @property
    def connections(self) -> list[Connection]:
        """All open connections."""
        return list(self._open)

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return not (self._open or self._connecting)

    async def send(self, request: Request, authorization: Secret[str] | None) -> Connection:
        """Send a request on an idle or a new connection, and receive the head of the response.

        Cancellation: closes the connection.
        """
        try:
            return await self._exchange(request, authorization)
        except BaseException as exc:
            clear_locals(exc)
            raise

    async def _exchange(self, request: Request, authorization: Secret[str] | None) -> Connection:
        forwarded = self._forwarded
        encoded = self.origin.encode(request, authorization, forwarded)
        while True:
            connection = self._take_idle() or await self.connect(CONNECT_PATIENCE)
            try:
                await connection.send(encoded, WRITE_PATIENCE)
                head = await connection.receive_head(request.patience, is_alone=request.method == "HEAD")
                if forwarded is not None:
                    forwarded.check(head.code)
            except NotAvailableError:
                self.close_connection(connection)
            except BaseException:
                self.close_connection(connection)
                raise
            else:
                return connection

    def _take_idle(self) -> Connection | None:
        """Take the most recently used idle connection, and close expired connections."""
        idle, now = self._idle, trio.current_time()
        while idle and idle[0][0] < now:
            self.close_connection(idle.popleft()[1])
        while idle:
            connection = idle.pop()[1]
            if not connection.is_closed:
                return connection
            self.close_connection(connection)
        return None

    async def connect(self, patience: float) -> Connection:
        """Open a connection."""
        origin = self.origin
        stream = await self._network.connect(origin.host, origin.port, patience)
        if self.is_closed or self.is_retired:
            stream.close()
            raise failures.ConnectError("the client is closed" if self.is_closed else "the certificates have changed")
        if origin.is_tls:
            self._connecting.add(stream)
            try:
                tls = await stream.start_tls(self._context or client_context(None), origin.server_name, patience)
            finally:
                self._connecting.discard(stream)
            stream = tls
        connection = Connection(stream, self._header_bytes, self.release)
        self._open.add(connection)
        return connection

    def close_connection(self, connection: Connection) -> None:
        """Close a connection."""
        connection.close()
        self._open.discard(connection)

    def release(self, connection: Connection) -> None:
        """Return a connection to the pool after a response."""
        connection.release()
        if connection.state is State.IDLE and not (self.is_retired or self.is_closed):
            self._idle.append((trio.current_time() + IDLE_PERIOD, connection))
        else:
            self.close_connection(connection)

    def close(self) -> None:
        """Close all connections, and refuse to open new ones."""
        self.is_closed = True
        for stream in self._connecting:
            stream.close()
        for connection in self.connections:
            self.close_connection(connection)

    def retire(self) -> None:
        """Reject new requests, open no more connections, and close idle connections."""
        self.is_retired = True
        while self._idle:
            self.close_connection(self._idle.pop()[1])

    def end_watches(self) -> None:
        """End the watches without an error by closing their connections."""
        self.retire()
        for stream in self._connecting:
            stream.close()
        for connection in self.connections:
            connection.stream.close()  # its reader ends the use


@final
@attrs.define(eq=False)
class Generation:
    """The connections that use the same certificates."""

    requests: Pool | HTTPXTransport
    """The connections for requests and lists."""
    watches: Pool | HTTPXTransport
    """The connections for watches, one for each watch."""
    is_retired: bool = attrs.field(default=False, init=False)
    """Whether a newer generation has replaced this one. If so, this side has ended its watches."""

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return self.requests.is_empty and self.watches.is_empty

    def retire(self) -> None:
        """Retire the generation: let its requests finish, and end its watches."""
        assert isinstance(self.requests, Pool)
        assert isinstance(self.watches, Pool)
        self.is_retired = True
        self.requests.retire()
        self.watches.end_watches()

    def close(self) -> None:
        """Close all connections."""
        self.requests.close()
        self.watches.close()


@final
@attrs.define(eq=False)
class Generations:
    """The connections of a client."""

    present: Generation
    """The connections for the next request."""
    _tls: TLS | None = None
    """The certificates; None for connections without certificates."""
    _open: Callable[[ssl.SSLContext], Generation] | None = None
    _health: Liveness | None = None
    """The health of the server, whose probe connection must be reopened when the certificates have changed."""
    _context: ssl.SSLContext | None = attrs.field(init=False)
    _retired: list[Generation] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._context = self._tls.context if self._tls is not None else None
        if self._health is not None and self._tls is not None:
            self._health.look = self._refresh

    def current(self, credential: Credential) -> Generation:
        """Return the connections for a new request with ``credential``."""
        if self._tls is not None:
            self._tls.use(credential.certificate)
            self._refresh()
        return self.present

    def _refresh(self) -> None:
        """Replace the connections if the files have changed."""
        tls, health = self._tls, self._health
        assert tls is not None
        if health is not None and health.is_closed:
            return  # a new generation would not be closed
        tls.refresh()
        if tls.context is not self._context:
            self._replace(tls.context)
        if health is not None:
            health.look_at = trio.current_time() + health.silence

    async def send(self, request: Request, credential: Credential) -> tuple[ResponseStream, Generation]:
        """Send a request, and receive the head of the response. Return the response with its generation."""
        self.current(credential)
        may_renew = True
        while True:
            generation = self.present
            # no checkpoint between choosing the generation and giving it the request
            try:
                pool = generation.watches if request.is_watch else generation.requests
                return await pool.send(request, credential.authorization), generation
            except failures.TransportError as exc:
                if may_renew and is_about_certificates(exc):
                    may_renew = False
                    if self.reject(generation):
                        continue
                elif generation.is_retired and (request.is_watch or isinstance(exc, _NOT_SENT)):
                    continue
                raise

    def reject(self, used: Generation) -> bool:
        """Record that the server has rejected a credential, or that one side has rejected the other's certificate.

        Returns:
            Return whether there is now a newer generation. If several requests are rejected, the first one detects the
            change.
        """
        if self._tls is None:
            return False
        self._tls.record_rejection()
        self._refresh()
        return self.present is not used

    def _replace(self, context: ssl.SSLContext) -> None:
        assert self._open is not None
        old = self.present
        self._context, self.present = context, self._open(context)
        old.retire()
        self._retired = [each for each in (*self._retired, old) if not each.is_empty]
        if self._health is not None:
            self._health.record_rotation()

    def close(self) -> None:
        """Close all connections, including those of retired generations."""
        for each in (*self._retired, self.present):
            each.close()
