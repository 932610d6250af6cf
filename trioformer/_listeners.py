"""Listening sockets, their addresses and URLs, the TLS context of a server, and bearer tokens."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Iterable
from os import PathLike

import trio

from ._certificates import CertificateRefusedError, load_certificate
from ._files import read_file
from ._secret import Secret
from .errors import ConfigError


def split_address(bind: str) -> tuple[str, int]:
    """Return the host, with the brackets of an IPv6 address, and the port; the host is empty for all interfaces.

    Raises:
        TypeError: It is no str.
        ValueError: It is not ``host:port``.
    """
    if not isinstance(bind, str):
        raise TypeError(f"cannot listen on {bind!r}: it must be a str, host:port, such as '127.0.0.1:8001'")
    host, colon, port = bind.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal()):
        raise ValueError(
            f"cannot listen on {bind!r}: it must be host:port, such as 127.0.0.1:8001, or :8001 for all interfaces"
        )
    if len(port) > 5 or int(port) > 65_535:
        raise ValueError(f"cannot listen on {bind!r}: the port must be at most 65535")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not is_bracketed:
        raise ValueError(f"cannot listen on {bind!r}: an IPv6 address is written in brackets, such as [::1]:{port}")
    return host, int(port)


async def open_listener(bind: str) -> socket.socket:
    """Listen on ``host:port``.

    Args:
        bind: ``host:port``; port 0 selects a free one.  ``:port`` is that port of all interfaces, of IPv6 and IPv4.

    Raises:
        TypeError: It is no str.
        ValueError: It is not ``host:port``.
        OSError: The address cannot be listened on.
    """
    host, port = split_address(bind)
    is_everywhere = not host
    if is_everywhere:
        host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    try:
        found = await trio.socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # a label that is too long or empty
        raise ValueError(f"cannot listen on {bind!r}: {host!r} is not a host name") from exc
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_everywhere and family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket, scheme: str = "http", host: str | None = None) -> str:
    """Return the URL of a listening socket; with a host, under this one instead of its address."""
    address: str
    address, port = listener.getsockname()[:2]
    host = address if host is None else host
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host in a URL or ``Host`` header is this machine: ``localhost`` or a loopback address."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def server_context(
    certificate: str | PathLike[str], key: str | PathLike[str], *, names: tuple[str, str] = ("certificate", "key")
) -> ssl.SSLContext:
    """Return a TLS context for a server with this certificate chain and key, both PEM files.

    It offers HTTP/1.1 only, and TLS 1.2 at least.

    Args:
        certificate: The file of the certificate chain.
        key: The file of the key.
        names: What the user calls the two, for errors.

    Raises:
        ConfigError: A file cannot be read or is not valid, the key is encrypted, or is not the certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        load_certificate(context, _read(certificate, names[0]), _read(key, names[1]))
    except CertificateRefusedError as exc:
        file, name = (key, names[1]) if exc.is_key else (certificate, names[0])
        raise ConfigError(str(exc), file=os.fspath(file), key=name) from exc
    context.set_alpn_protocols(["http/1.1"])
    return context


def _read(file: str | PathLike[str], name: str) -> Secret[bytes]:
    try:
        return read_file(file)
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", file=os.fspath(file), key=name) from exc


def is_token(token: Secret[str]) -> bool:
    """Return whether a token can be sent in a header."""
    return bool(token) and all("!" <= letter <= "~" for letter in token.reveal())


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> Secret[str] | None:
    """Return the token of the ``Authorization`` header, or None without exactly one such header."""
    found = [
        Secret(value[7:].strip().decode("latin-1"))
        for name, value in headers
        if name == b"authorization" and value[:7].lower() == b"bearer "
    ]
    return found[0] if len(found) == 1 and found[0] else None
