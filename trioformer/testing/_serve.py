"""The embedded API server on a real socket, by hypercorn's trio worker, for kubectl and other processes.

Importing this room needs hypercorn, the extra ``trioformer[server]``.
"""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import Any, cast

import hypercorn.config
import hypercorn.trio
import trio

from ._server import APIServer

KEEP_ALIVE = 90.0
"""Seconds that an idle connection stays open."""


async def serve_http(
    server: APIServer,
    bind: str = "127.0.0.1:0",
    *,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an embedded API server over plain HTTP/1.1 until cancelled.

    It needs no :meth:`APIServer.run`, and goes well with one: both serve the same objects.

    Args:
        server: What is served.
        bind: ``host:port`` to listen on; port 0 is any free one.
        access_log: Where each finished request is logged; watches are when they end.
        task_status: Is given the URL once connections are accepted.

    Raises:
        ValueError: ``bind`` is not ``host:port``.
        OSError: The address cannot be listened on.

    Cancellation:
        Ends requests and watches at once and closes the socket.
        Only a client that has stopped reading while more was sent than the kernel buffers can hold this up, until its
        connection breaks.

    Ownership:
        Every connection's tasks belong to a nursery in here, so other errors leave it in an ``ExceptionGroup``.
    """
    listener = await open_listener(bind)
    await serve_listener(server, listener, access_log=access_log, task_status=task_status)


async def open_listener(bind: str) -> socket.socket:
    """Listen on ``host:port``: here, where an address that is taken is an error and not a group of groups."""
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


async def serve_listener(
    server: APIServer,
    listener: socket.socket,
    *,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve on a listening socket, which is closed in the end; otherwise as :func:`serve_http`."""
    url = url_of(listener)
    config = hypercorn.config.Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = access_log
    config.errorlog = "-"
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 0.0
    app = cast("Any", server.asgi_app)  # hypercorn's types name every message; the application's are plain mappings
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(hypercorn.trio.serve, app, config, mode="asgi"))
        task_status.started(url)
