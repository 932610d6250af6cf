"""The embedded API server on a real socket, by hypercorn's trio worker, for kubectl and other processes.

Importing this room needs hypercorn, the extra ``trioformer[server]``.
"""

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
    await serve_app(server.asgi_app, listener, access_log=access_log, task_status=task_status)
