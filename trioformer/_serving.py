"""ASGI applications on a real socket, by hypercorn's trio worker.

Importing this room needs hypercorn, so whoever does says which extra has it.
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
    """Listen on ``host:port``: here, where an address that is taken is an error and not a group of groups.

    Args:
        bind: ``host:port``; port 0 is any free one.
        stalled_after: Seconds after which the system breaks a connection whose other end does not read; None for never.
            Hypercorn shields the sending of bytes, so nothing else ends that.
    """
    host, colon, port = bind.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise ValueError(f"cannot listen on {bind!r}: it must be host:port, such as 127.0.0.1:8001")
    try:
        found = await trio.socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # a label that is too long or empty
        raise ValueError(f"cannot listen on {bind!r}: {host!r} is no host name") from exc
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if stalled_after is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(stalled_after * 1_000))
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL that a listening socket is reached at."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _error_log() -> logging.Logger:
    """Return hypercorn's own logger, which goes where the program's logs go.

    Left to itself, hypercorn adds a handler of its own, and all is printed twice.
    """
    logger = logging.getLogger("hypercorn.error")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)  # below that it says where it listens, as we do
    return logger


async def serve_app(
    app: Any,  # hypercorn's types name every message; ours are plain mappings
    listener: socket.socket,
    *,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application on a listening socket, which is closed in the end, until cancelled.

    Cancellation ends requests at once; all but the sending of bytes, see :func:`open_listener`.
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
