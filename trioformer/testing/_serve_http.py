"""The embedded API server on a socket, for kubectl and other processes."""

from __future__ import annotations

import logging

import trio

from .._serving import open_listener, serve_app
from ._server import APIServer


async def serve_http(
    server: APIServer,
    bind: str = "127.0.0.1:0",
    *,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an embedded API server over plain HTTP/1.1 until cancelled.

    It does not need :meth:`APIServer.run`, and can run beside it: both serve the same objects.

    Args:
        server: The server.
        bind: The ``host:port`` to listen on; port 0 is any free port.
        access_log: The logger for finished requests; a watch is logged when it ends.
        task_status: Reports the URL once connections are accepted.

    Raises:
        ValueError: ``bind`` is not ``host:port``.
        OSError: Cannot listen on the address.

    Cancellation:
        Ends requests and watches immediately and closes the socket.

    Ownership:
        The tasks of all connections belong to a nursery of this function.
    """
    listener = await open_listener(bind)
    await serve_app(server.asgi_app, listener, access_log=access_log, task_status=task_status)
