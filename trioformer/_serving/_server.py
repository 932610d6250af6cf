"""Accept connections, and serve an ASGI application on them."""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import Final, final

import attrs
import trio

from .._listeners import TLSContexts, url_of
from ._connection import ASGIApplication, Connection, Places, ServerLimits, logger

DEFAULT_LIMITS: Final = ServerLimits()


@final
@attrs.frozen
class GracefulEnd:
    """How a server ends without failing requests."""

    begins: trio.Event
    """When this event is set, each response says that its connection is closed after it.  The server still accepts
    connections."""
    delay: float
    """Seconds until it accepts no more connections.  By then, clients must know that they have to use another
    server."""
    grace: float
    """Seconds in which the remaining requests must finish.  Then they are cancelled."""


async def serve_app(
    app: ASGIApplication,
    listener: socket.socket,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: TLSContexts | None = None,
    access_log: logging.Logger | None = None,
    end: GracefulEnd | None = None,
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
        end: A graceful end, which returns from this function.
        task_status: Used by ``nursery.start()`` to receive the URL of the server.

    Cancellation:
        Requests end immediately.
    """
    url = url_of(listener, "https" if tls else "http")
    end = end or GracefulEnd(trio.Event(), delay=0, grace=0)  # which never begins
    places = Places(limits.connections)
    serve = partial(serve_stream, app, places=places, limits=limits, tls=tls, access_log=access_log)
    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(trio.serve_listeners, handler_nursery=connections), serve, [accepting])
            task_status.started(url)
            await end.begins.wait()
            places.phase = "draining"
            await trio.sleep(end.delay)
            nursery.cancel_scope.cancel()
        places.close_idle()
        connections.cancel_scope.deadline = trio.current_time() + end.grace


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
    try:
        with places.take() as scope:
            if scope is not None:  # otherwise trio closes the stream
                try:
                    await Connection(app, stream, limits, places, scope, "https" if tls else "http", access_log).serve()
                finally:
                    await stream.aclose()
    except* Exception:  # noqa: BLE001  # the boundary between the connections
        logger.exception("error in a connection, which is closed")
