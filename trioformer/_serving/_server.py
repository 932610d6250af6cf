"""Accept connections, and serve an ASGI application on them."""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import Final

import trio

from .._listeners import TLSContexts, url_of
from ._connection import LINGER, ASGIApplication, Connection, Places, ServerLimits, logger

DEFAULT_LIMITS: Final = ServerLimits()


async def serve_app(
    app: ASGIApplication,
    listener: socket.socket,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: TLSContexts | None = None,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application over HTTP/1.1 on a listening socket until cancelled, then close the socket.

    If the application raises an error, the error is logged, and the client receives a response with status 500.  The
    failure of one connection does not stop the server.

    Args:
        app: The application, which receives only ``http`` scopes.
        listener: The listening socket, which this function closes.
        limits: Limits on the resources that a client can use on the server.
        tls: The TLS contexts, or None to serve plain HTTP.
        access_log: The logger for finished requests.
        task_status: Used by ``nursery.start()`` to receive the URL of the server.

    Cancellation:
        Requests end immediately.
    """
    url = url_of(listener, "https" if tls else "http")
    places = Places(limits.connections)
    serve = partial(serve_stream, app, places=places, limits=limits, tls=tls, access_log=access_log)
    async with trio.open_nursery() as nursery:
        accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        await nursery.start(trio.serve_listeners, serve, [accepting])
        task_status.started(url)


async def serve_stream(
    app: ASGIApplication,
    stream: trio.abc.Stream,
    places: Places,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: TLSContexts | None = None,
    access_log: logging.Logger | None = None,
) -> None:
    """Serve an ASGI application on one connection, and close it.

    An error is logged and ends only this connection.
    """
    if tls is not None:
        stream = trio.SSLStream(stream, tls(), server_side=True, https_compatible=True)
    with places.take() as has_place:
        try:
            if not has_place:
                return  # and trio closes the stream
            try:
                await Connection(app, stream, limits, places, "https" if tls else "http", access_log).serve()
            finally:
                with places.waiting(LINGER):
                    await stream.aclose()
        except* trio.TooSlowError:
            pass  # TLS sends a last record, and the client does not read it
        except* Exception:  # noqa: BLE001  # the boundary between the connections
            logger.exception("error in a connection, which is closed")
