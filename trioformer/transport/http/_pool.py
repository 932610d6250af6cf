"""The HTTP/1.1 connections to one server with one set of certificates, in any number.

A request takes the connection that was used last, or opens a new one; older connections expire meanwhile.

Pools are replaced when certificates change.
Otherwise a connected server may have a certificate from an authority that is no longer trusted, and the server refuses
requests on a connection with an expired client certificate.
A TLS handshake for each request would cost too much, and an OpenSSL context cannot forget an authority.

So the connections form generations, each with one context.
When the certificates change, a new generation replaces the current one, which is retired: its idle connections are
closed immediately, its requests in flight finish and then close their connections, and its watches end as if the server
had ended them, so that the callers watch again.
Other endless streams end with an error (``client/_raw.py``), because nothing resumes them; a write with a streamed
response counts as a request in flight.
Two cases would cause useless errors.
A watch that is a second old would look like a refused one, so its end is reported later.
A watch that is still being opened is sent again.

Files are checked when a request is sent, before a probe of silent watches, and when a watch receives data half a minute
after the last check; there is no task.
If one side refuses the other's certificate during a handshake, the server has not begun the request; if the files have
changed, it is sent once more on the new generation.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

import attrs
import httpx
import trio

from .._errors import clear_locals, is_about_certificates
from ..auth._credentials import Credential
from ..auth._tls import TLS, client_context
from ._connection import MAX_HEAD, Connection, NotAvailableError, ResponseStream, State
from ._httpx_transport import HTTPXTransport
from ._messages import CONNECT_PATIENCE, WRITE_PATIENCE, Header, Request
from ._sockets import Liveness

if TYPE_CHECKING:
    from ..._secret import Secret
    from .._proxy._route import ForwardedRequests
    from ._network import Network
    from ._sockets import NetworkStream

IDLE_PERIOD: Final = 60.0
"""Seconds until an unused connection is closed; the API server closes one after 90."""

_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
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
    """The prefix of all paths; empty, or with a leading but without a trailing slash."""
    server_name: str
    """The name for TLS: it is sent, and the certificate must be valid for it."""

    @classmethod
    def of(cls, server: str, server_name: str | None = None) -> Origin:
        """Make an origin from the server's URL."""
        url = httpx.URL(server)
        host, is_tls = url.raw_host.decode("ascii"), url.scheme == "https"
        port = url.port if url.port is not None else 443 if is_tls else 80
        prefix = url.raw_path.decode("ascii").rstrip("/")
        return cls(is_tls, host, port, url.netloc, prefix, server_name or host)

    def encode(self, request: Request, authorization: Secret[str] | None, forwarded: ForwardedRequests | None) -> bytes:
        """Return a request as sent to the server, or to a proxy that forwards it, with its credential."""
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
    """Sends requests on connections, and keeps these for the next requests."""

    origin: Origin
    _context: ssl.SSLContext | None
    """The TLS settings; None for the defaults."""
    _network: Network
    _forwarded: ForwardedRequests | None = attrs.field(default=None, kw_only=True, alias="forwarded")
    """The form of requests for a proxy that forwards them; None without such a proxy."""
    _header_bytes: int = attrs.field(default=MAX_HEAD, kw_only=True, alias="header_bytes")
    """The limit of the head of a response."""
    is_closed: bool = attrs.field(default=False, init=False)
    """Whether the client is closed."""
    is_retired: bool = attrs.field(default=False, init=False)
    """Whether a newer pool has replaced this one; its connections do not take new requests."""
    _idle: deque[tuple[float, Connection]] = attrs.field(factory=deque, init=False)
    """The idle connections with their expiry times; the last used one is at the end."""
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
        """Send a request on an idle connection, or else on a new one, and receive the head of its response.

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
        """Take the connection that was used last, and close expired ones."""
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
            raise httpx.ConnectError("the client is closed" if self.is_closed else "the certificates have changed")
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
        """Take a connection back after a response."""
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
        """Refuse new requests and new connections, and close idle connections."""
        self.is_retired = True
        while self._idle:
            self.close_connection(self._idle.pop()[1])

    def end_watches(self) -> None:
        """Close the connections of watches, so that the watches end without an error."""
        self.retire()
        for stream in self._connecting:
            stream.close()
        for connection in self.connections:
            connection.stream.close()  # its reader ends the use


@final
@attrs.define(eq=False)
class Generation:
    """Connections that use the same certificates."""

    requests: Pool | HTTPXTransport
    """The connections for requests and lists."""
    watches: Pool | HTTPXTransport
    """The connections for watches, one each."""
    is_retired: bool = attrs.field(default=False, init=False)
    """Whether a newer generation has replaced this one, and its watches were ended on this side."""

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return self.requests.is_empty and self.watches.is_empty

    def retire(self) -> None:
        """Let its requests finish, and end its watches."""
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
    """The health of the server; must reopen its connection when the certificates have changed."""
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
        """Send a request, and receive the head of its response; return it with its generation of connections."""
        self.current(credential)
        may_renew = True
        while True:
            generation = self.present
            # no checkpoint between choosing the generation and giving it the request
            try:
                pool = generation.watches if request.is_watch else generation.requests
                return await pool.send(request, credential.authorization), generation
            except httpx.TransportError as exc:
                if may_renew and is_about_certificates(exc):
                    may_renew = False
                    if self.reject(generation):
                        continue
                elif generation.is_retired and (request.is_watch or isinstance(exc, _NOT_SENT)):
                    continue
                raise

    def reject(self, used: Generation) -> bool:
        """Record that the server has refused a credential, or one side the other's certificate.

        Returns:
            Whether there are newer connections: if several requests are refused, the first one finds the changes.
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
