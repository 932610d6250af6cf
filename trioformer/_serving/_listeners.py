"""Listening sockets, their addresses and URLs."""

from __future__ import annotations

import ipaddress
import socket

import trio


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
