"""Proxies on loopback that work: HTTP (CONNECT, and absolute-form requests), the same over TLS, and SOCKS5.

For proxies that do not work, a script of :mod:`tests.support.scripted_http` is enough.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Literal, TypeAlias
from urllib.parse import quote, urlsplit

import attrs
import trio

Scheme: TypeAlias = Literal["http", "https", "socks5"]
SCHEMES: tuple[Scheme, ...] = ("http", "https", "socks5")

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)
_MAX_HEAD = 64 * 1024


class _RefusedError(Exception):
    """The proxy has told the client why it does not go on."""


@attrs.define(eq=False)
class Proxy:
    """A proxy on a loopback port.

    Attributes:
        scheme: ``http``, ``https`` (needs ``tls``) or ``socks5``.
        tls: The context of an ``https`` proxy.
        user: The name and password that clients must send; None for a proxy for everyone.
        hosts: Addresses of host names that only the proxy knows, such as ``{"api.test": "127.0.0.1"}``.
        targets: ``host:port`` of each tunnel that was requested, and the URL of each absolute-form request, in order.
        heads: The head of each request to an HTTP proxy, whole; for SOCKS5, the request.
        connections: How many clients have connected.
        refused: How many sent other credentials than ``user``, or none.
        tunnels: How many are open.
        is_stalled: Whether tunnels lose what goes through them; set by a test.
    """

    scheme: Scheme = "http"
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False)
    user: tuple[str, str] | None = attrs.field(default=None, repr=False)
    hosts: Mapping[str, str] = attrs.field(factory=dict)
    targets: list[str] = attrs.field(factory=list)
    heads: list[bytes] = attrs.field(factory=list, repr=False)
    connections: int = 0
    refused: int = 0
    tunnels: int = 0
    is_stalled: bool = False
    port: int = 0
    _scopes: set[trio.CancelScope] = attrs.field(factory=set, repr=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, repr=False)

    @property
    def url(self) -> str:
        """The URL of the proxy, with the credentials that it requires."""
        user = "" if self.user is None else "{}:{}@".format(*(quote(part, safe="") for part in self.user))
        return f"{self.scheme}://{user}127.0.0.1:{self.port}"

    @property
    def bare_url(self) -> str:
        """The URL without credentials."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def break_tunnels(self) -> None:
        """Close every connection at once; clients may connect again."""
        for scope in list(self._scopes):
            scope.cancel()

    async def wait_until_tunnels(self, number: int) -> None:
        """Wait until so many tunnels are open."""
        while self.tunnels != number:
            await self._changed.wait()

    async def run(self, *, task_status: trio.TaskStatus[Proxy] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, self._serve, self.port, host="127.0.0.1")
            listeners: list[trio.SocketListener] = await nursery.start(serve)
            self.port = listeners[0].socket.getsockname()[1]
            task_status.started(self)

    async def _serve(self, connection: trio.SocketStream) -> None:
        self.connections += 1
        client: trio.abc.Stream = connection
        if self.scheme == "https":
            assert self.tls is not None, "an https proxy needs a TLS context"
            client = trio.SSLStream(connection, self.tls, server_side=True, https_compatible=True)
        serve = self._serve_socks if self.scheme == "socks5" else self._serve_http
        with trio.CancelScope() as scope, suppress(*_BROKEN, _RefusedError):
            self._scopes.add(scope)
            try:
                await serve(client)
            finally:
                self._scopes.discard(scope)
                await trio.aclose_forcefully(client)

    async def _serve_http(self, client: trio.abc.Stream) -> None:
        received = _Received(client)
        head = await received.read_head()
        self.heads.append(head)
        method, target, _ = head.decode("latin-1").split("\r\n", 1)[0].split(" ")
        self.targets.append(target)
        if not self._knows(head):
            self.refused += 1
            await self._refuse(client, b"407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=test")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            async with await self._connect(client, host.strip("[]"), int(port)) as server:
                await client.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._tunnel(client, server, received.rest)
            return
        url = urlsplit(target)
        async with await self._connect(client, url.hostname or "", url.port or 80) as server:
            # One connection to the server for each connection of the client, so that responses need no parser.
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            line = f"{method} {path} HTTP/1.1".encode("latin-1")
            lines = [
                each for each in head.split(b"\r\n")[1:] if not each.lower().startswith((b"proxy-", b"connection:"))
            ]
            await server.send_all(b"\r\n".join([line, b"Connection: close", *lines]))
            await self._tunnel(client, server, received.rest)

    def _knows(self, head: bytes) -> bool:
        if self.user is None:
            return True
        token = base64.b64encode(":".join(self.user).encode())
        fields = (line.partition(b":") for line in head.split(b"\r\n"))
        return any(
            name.lower() == b"proxy-authorization" and value.strip() == b"Basic " + token for name, _, value in fields
        )

    @staticmethod
    async def _refuse(client: trio.abc.Stream, status: bytes) -> None:
        await client.send_all(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        raise _RefusedError

    async def _connect(self, client: trio.abc.Stream, host: str, port: int) -> trio.SocketStream:
        try:
            return await trio.open_tcp_stream(self.hosts.get(host, host), port)
        except OSError:
            if self.scheme == "socks5":
                await client.send_all(b"\x05\x05\x00\x01" + bytes(6))  # connection refused
            else:
                await self._refuse(client, b"502 Bad Gateway")
            raise _RefusedError from None

    async def _serve_socks(self, client: trio.abc.Stream) -> None:
        received = _Received(client)
        _, number = await received.read(2)
        methods = await received.read(number)
        method = 0 if self.user is None else 2
        if method not in methods:
            self.refused += 1
            await client.send_all(b"\x05\xff")
            return
        await client.send_all(bytes([5, method]))
        if self.user is not None:
            _, number = await received.read(2)
            name = await received.read(number)
            password = await received.read((await received.read(1))[0])
            is_known = (name.decode(), password.decode()) == self.user
            self.refused += not is_known
            await client.send_all(b"\x01\x00" if is_known else b"\x01\x01")
            if not is_known:
                return
        request = await received.read(4)
        if request[3] == 3:
            length = await received.read(1)
            address = await received.read(length[0])
            request, host = request + length + address, address.decode("ascii")
        else:
            address = await received.read(4 if request[3] == 1 else 16)
            request, host = request + address, str(ipaddress.ip_address(address))
        port = await received.read(2)
        self.heads.append(request + port)
        self.targets.append(f"{host}:{int.from_bytes(port, 'big')}")
        async with await self._connect(client, host, int.from_bytes(port, "big")) as server:
            await client.send_all(b"\x05\x00\x00\x01" + bytes(6))
            await self._tunnel(client, server, received.rest)

    async def _tunnel(self, client: trio.abc.Stream, server: trio.SocketStream, first: bytes) -> None:
        """Pass everything on in both directions until one end closes."""
        self._count_tunnels(+1)
        try:
            await server.send_all(first)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, client, server, nursery.cancel_scope)
                nursery.start_soon(self._pass_on, server, client, nursery.cancel_scope)
        finally:
            self._count_tunnels(-1)

    async def _pass_on(self, source: trio.abc.Stream, sink: trio.abc.Stream, scope: trio.CancelScope) -> None:
        with suppress(*_BROKEN):
            while data := await source.receive_some(_MAX_HEAD):
                if not self.is_stalled:
                    await sink.send_all(data)
        scope.cancel()

    def _count_tunnels(self, by: int) -> None:
        self.tunnels += by
        self._changed.set()
        self._changed = trio.Event()


@attrs.define
class _Received:
    """Reads of a connection by length or up to the end of a head."""

    stream: trio.abc.Stream
    rest: bytes = b""

    async def read(self, number: int) -> bytes:
        while len(self.rest) < number:
            await self._more()
        data, self.rest = self.rest[:number], self.rest[number:]
        return data

    async def read_head(self) -> bytes:
        while b"\r\n\r\n" not in self.rest:
            assert len(self.rest) < _MAX_HEAD
            await self._more()
        return await self.read(self.rest.index(b"\r\n\r\n") + 4)

    async def _more(self) -> None:
        data = await self.stream.receive_some(_MAX_HEAD)
        if not data:
            raise _RefusedError
        self.rest += data


@asynccontextmanager
async def proxy(
    scheme: Scheme = "http",
    *,
    tls: ssl.SSLContext | None = None,
    user: tuple[str, str] | None = None,
    hosts: Mapping[str, str] | None = None,
) -> AsyncIterator[Proxy]:
    """Run a proxy in the block; ``tls`` is the server context of an ``https`` proxy, for the address 127.0.0.1."""
    async with trio.open_nursery() as nursery:
        yield await nursery.start(Proxy(scheme, tls, user, hosts or {}).run)
        nursery.cancel_scope.cancel()
