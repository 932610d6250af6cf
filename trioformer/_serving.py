"""ASGI applications on a real socket, served by hypercorn's trio worker.

Importing this module needs hypercorn; the importing package's error names the extra that installs it.
"""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import Any

import hypercorn.config
import hypercorn.trio
import trio

KEEP_ALIVE = 90.0
"""Seconds that an idle connection stays open."""


async def open_listener(bind: str, *, stalled_after: float | None = None) -> socket.socket:
    """Listen on ``host:port``, outside of hypercorn's nurseries, which would wrap an ``OSError`` in groups.

    Args:
        bind: ``host:port``; port 0 selects a free one.  ``:port`` is that port of all interfaces, of IPv6 and IPv4.
        stalled_after: Seconds after which the system closes a connection whose peer does not read; None for never.
            Hypercorn shields the sending of bytes, so nothing else ends it.
    """
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
    is_everywhere = not host
    if is_everywhere:
        host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    try:
        found = await trio.socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # a label that is too long or empty
        raise ValueError(f"cannot listen on {bind!r}: {host!r} is not a host name") from exc
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_everywhere and family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if stalled_after is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(stalled_after * 1_000))
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _error_log() -> logging.Logger:
    """Return hypercorn's logger without a handler, so that its records go to the program's handlers.

    By default hypercorn adds a handler, and each record is printed twice.
    """
    logger = logging.getLogger("hypercorn.error")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)  # INFO repeats the address, which the callers log
    return logger


async def serve_app(
    app: Any,  # hypercorn's types name every message; ours are plain mappings
    listener: socket.socket,
    *,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application on a listening socket until cancelled, then close the socket.

    Cancellation ends requests immediately, except for the sending of bytes; see :func:`open_listener`.
    """
    url = url_of(listener)
    config = hypercorn.config.Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = access_log
    config.errorlog = _error_log()
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 0.0
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(hypercorn.trio.serve, app, config, mode="asgi"))
        task_status.started(url)
