"""Ask a proxy to connect to a server, with HTTP/1.1 CONNECT or SOCKS5.

The proxy's response has a limited size and must arrive within a limited time.
The response is never quoted, because it may repeat the credentials.
"""

from __future__ import annotations

import ipaddress
from typing import Final

import trio

from ..._secret import Secret
from ..._version import __version__
from .. import _failures as failures
from .._errors import InvalidResponseError, TooLongHeadError
from .._proxy._proxy import Proxy
from ._connection import Connection
from ._messages import Headers, Request
from ._sockets import NetworkStream, RawStream

TUNNEL_PATIENCE: Final = 60.0
"""The maximum number of seconds for a proxy to connect to the server (client-go: one minute)."""
MAX_HEAD: Final = 16 * 1024
"""The maximum size of the proxy's response in bytes, including responses with code 100."""
_CLOSED: Final = "closed the connection without a response; check its port and the scheme of its URL"
_NO_SOCKS: Final = "does not speak SOCKS5; check its port and the scheme of its URL"
_SUCCESS: Final = range(200, 300)

# SOCKS5: RFC 1928 and RFC 1929.
_VERSION: Final = 5
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_NO_AUTHENTICATION, _PASSWORD, _NO_METHOD = 0, 2, 0xFF
_PASSWORD_VERSION: Final = 1
_NOT_ALLOWED: Final = 2
_REPLIES: Final = {
    3: "the network is unreachable",
    4: "the host is unreachable, or its name cannot be resolved",
    5: "the connection was refused",
}


async def open_tunnel(stream: RawStream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy at the other end of the stream to connect to a server.

    Afterwards, the stream is connected to the server.

    ``host`` is an ASCII name or an address without brackets.  An error does not close the stream.

    Raises:
        ProxyFailedError: The proxy did not connect to the server, or the peer is not a proxy.
        trio.BrokenResourceError: The connection to a SOCKS5 proxy was lost. For an HTTP proxy, a
            failures.NetworkError is raised instead.
    """
    with trio.move_on_after(TUNNEL_PATIENCE):
        if proxy.is_socks:
            await _open_socks(stream, proxy, host, port)
        else:
            await _open_http(stream, proxy, _place(host, port))
        return
    text = f"did not respond within {TUNNEL_PATIENCE:g} s; check that it is a proxy, and that it can reach the server"
    raise proxy.failed(text)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _open_http(stream: RawStream, proxy: Proxy, target: str) -> None:
    connection = Connection(NetworkStream(stream), MAX_HEAD)
    try:
        await connection.send(_connect_request(proxy, target).reveal(), None)
        head = await connection.receive_head(None, is_alone=True)
    except TooLongHeadError as exc:
        raise proxy.failed(f"responded with more than {exc.limit} bytes of headers; check that it is a proxy") from None
    except InvalidResponseError:
        text = "did not respond with HTTP/1.1; check its port and the scheme of its URL"
        raise proxy.failed(text, permanent=True) from None
    except failures.EarlyEndError:
        raise proxy.failed(_CLOSED) from None
    if head.code not in _SUCCESS:
        raise proxy.rejected(head.code, target)
    if connection.has_excess:
        # The client speaks first, in TLS and in HTTP, so this cannot be from the server.
        raise proxy.failed("sent something after its response to CONNECT; check that it is a proxy", permanent=True)


def _connect_request(proxy: Proxy, target: str) -> Secret[bytes]:
    headers = [(b"User-Agent", f"trioformer/{__version__}".encode())]
    if (authorization := proxy.authorization) is not None:
        headers.append((b"Proxy-Authorization", authorization.reveal().encode()))
    request = Request(method="CONNECT", path="", headers=Headers(headers), where="")
    return Secret(request.encode(target.encode(), target.encode()))


async def _open_socks(stream: RawStream, proxy: Proxy, host: str, port: int) -> None:
    async def receive(number: int) -> bytes:
        received = b""
        while len(received) < number:
            data = await stream.receive_some(number - len(received))
            if not data:
                raise proxy.failed(_CLOSED)
            received += data
        return received

    methods = [_NO_AUTHENTICATION] if proxy.user is None else [_NO_AUTHENTICATION, _PASSWORD]
    await stream.send_all(bytes([_VERSION, len(methods), *methods]))
    version, method = await receive(2)
    if version != _VERSION or method not in (*methods, _NO_METHOD):
        raise proxy.failed(_NO_SOCKS, permanent=True)
    if method == _NO_METHOD:
        raise proxy.credentials_rejected("SOCKS5: no acceptable authentication")
    if method == _PASSWORD:
        await stream.send_all(_password_request(proxy).reveal())
        if (await receive(2))[1] != 0:
            raise proxy.credentials_rejected("SOCKS5 authentication")
    await stream.send_all(bytes([_VERSION, _CONNECT, 0, *_socks_address(host), *port.to_bytes(2, "big")]))
    version, reply, _, kind = await receive(4)
    if version != _VERSION:
        raise proxy.failed(_NO_SOCKS, permanent=True)
    target = _place(host, port)
    if reply == _NOT_ALLOWED:
        raise proxy.not_permitted(target, f"SOCKS5 reply {reply}")
    if reply != 0:
        text = _REPLIES.get(reply, "the proxy failed")
        raise proxy.failed(f"cannot connect to {target} (SOCKS5 reply {reply}: {text}); check that it can reach it")
    # Skip the address that the proxy connects from.
    length = {_IPV4: 4, _IPV6: 16}.get(kind)
    if kind == _NAME:
        length = (await receive(1))[0]
    if length is None:
        raise proxy.failed(_NO_SOCKS, permanent=True)
    await receive(length + 2)


def _password_request(proxy: Proxy) -> Secret[bytes]:
    assert proxy.user is not None
    assert proxy.password is not None
    parts = [Secret(part.reveal().encode()) for part in (proxy.user, proxy.password)]
    return Secret(bytes([_PASSWORD_VERSION]) + b"".join(bytes([len(part.reveal())]) + part.reveal() for part in parts))


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        name = host.encode("ascii")  # 255 bytes at most, as TLS requires
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed
