"""Helpers for servers: listening sockets, their addresses and URLs, TLS contexts and bearer tokens."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterable
from os import PathLike
from typing import TypeAlias

import trio

from ._certificates import CertificateRefusedError, RotatedCertificates, load_certificate
from ._files import is_stream, read_file
from ._secret import Secret
from .errors import ConfigError, ListenError

logger = logging.getLogger("trioformer.serving")

TLSContexts: TypeAlias = Callable[[], ssl.SSLContext]
"""A function that returns the TLS context of a server for a new connection."""


def split_address(bind: str) -> tuple[str, int]:
    """Split ``host:port``. An IPv6 address keeps its brackets, and an empty host stands for all interfaces.

    Raises:
        ValueError: ``bind`` is not ``host:port``.
    """
    host, colon, port = bind.rpartition(":")
    problem = ""
    if not (colon and port.isascii() and port.isdecimal()):
        problem = "it must be host:port, such as 127.0.0.1:8001, or :8001 for all interfaces"
    elif len(port) > 5 or int(port) > 65_535:
        problem = "the port must be at most 65535"
    elif ":" in host and not (host.startswith("[") and host.endswith("]")):
        problem = f"an IPv6 address is written in brackets, such as [::1]:{port}"
    if problem:
        raise ValueError(f"cannot listen on {bind!r}: {problem}")
    return host, int(port)


async def open_listener(bind: str) -> socket.socket:
    """Listen on ``host:port``. Port 0 selects a free port, and ``:port`` listens on all IPv4 and IPv6 interfaces.

    Raises:
        ValueError: ``bind`` is not ``host:port``.
        OSError: The server cannot listen on the address.
    """
    host, port = split_address(bind)
    has_both = host in ("", "[::]") and socket.has_dualstack_ipv6()
    try:
        name = host.strip("[]") or ("::" if has_both else "0.0.0.0")
        found = await trio.socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # a label that is too long or empty
        raise ValueError(f"cannot listen on {bind!r}: {host!r} is not a host name") from exc
    family, _, _, _, address = found[0]
    try:
        return socket.create_server(address, family=family, dualstack_ipv6=has_both)
    except OSError as exc:  # its text names the address in another way
        raise OSError(exc.errno, os.strerror(exc.errno or 0)) from exc


async def listen(bind: str) -> socket.socket:
    """Listen on ``host:port``, as :func:`open_listener` does.

    Raises:
        ValueError: The address is not of the form ``host:port``.
        ListenError: The server cannot listen on the address.  This error is also an OSError.
    """
    try:
        return await open_listener(bind)
    except OSError as exc:
        raise ListenError(f"cannot listen on {bind}: {exc.strerror}", errno=exc.errno) from exc


def url_of(listener: socket.socket, scheme: str = "http", host: str | None = None) -> str:
    """Return the URL of a listening socket, with the socket's address or another host name."""
    address, port = listener.getsockname()[:2]
    host = host or str(address)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether the host of a URL or ``Host`` header is ``localhost`` or a loopback address."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def server_contexts(
    certificate: str | PathLike[str], key: str | PathLike[str], *, names: tuple[str, str] = ("certificate", "key")
) -> TLSContexts:
    """Return the TLS contexts for a server with this certificate chain and key, both PEM files, which may be rotated.

    The files are checked when a client connects; see ``_file_changes.py``.  TLS 1.2 is the minimum version.

    Raises:
        ConfigError: A file cannot be read or is not valid, the key is encrypted, or the key does not belong to the
            certificate.
    """

    def read() -> tuple[Secret[bytes], Secret[bytes]]:
        return _read(certificate, names[0]), _read(key, names[1])

    def make(content: tuple[Secret[bytes], Secret[bytes]]) -> ssl.SSLContext:
        try:
            return pem_context(*content)
        except CertificateRefusedError as exc:
            file, name = (key, names[1]) if exc.is_key else (certificate, names[0])
            raise ConfigError(str(exc), file=os.fspath(file), key=name) from exc

    files = os.fspath(certificate), os.fspath(key)
    followed = () if any(map(is_stream, files)) else files  # a FIFO can be read only once
    return RotatedCertificates(followed, read, make, logger, "connections from clients").refresh


def pem_context(certificate: Secret[bytes], key: Secret[bytes]) -> ssl.SSLContext:
    """Return a TLS context for a server with this certificate chain and key in PEM.

    Raises:
        CertificateRefusedError: The certificate or the key is not valid.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _read(file: str | PathLike[str], name: str) -> Secret[bytes]:
    try:
        return read_file(file)
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", file=os.fspath(file), key=name) from exc


def is_token(token: Secret[str]) -> bool:
    """Return whether a token consists only of characters that an HTTP header can contain."""
    return bool(token) and all("!" <= letter <= "~" for letter in token.reveal())


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> Secret[str] | None:
    """Return the bearer token of the ``Authorization`` header, or None unless there is exactly one such header."""
    found = [
        Secret(value[7:].strip().decode("latin-1"))
        for name, value in headers
        if name == b"authorization" and value[:7].lower() == b"bearer "
    ]
    return found[0] if len(found) == 1 and found[0] else None
