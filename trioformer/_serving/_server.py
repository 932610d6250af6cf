"""Accept connections, and serve an ASGI application on them."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

import attrs
import trio

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # a module elsewhere

from .._listeners import url_of
from ._connection import LINGER, ASGIApplication, Connection, Places, ServerLimits, logger

ACCEPT_PAUSE: Final = 0.1
"""Seconds until the next try if no file descriptor or memory is left for a connection."""
_NOT_ENOUGH: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
DEFAULT_LIMITS: Final = ServerLimits()


async def serve_app(
    app: ASGIApplication,
    listener: socket.socket,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: ssl.SSLContext | None = None,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application over HTTP/1.1 on a listening socket, and close it; cancellation ends requests at once.

    An error of the application is logged, and its response is a 500.  A peer cannot end the server.

    Args:
        app: The application; it gets the scope ``http`` only.
        listener: The socket, which the server owns.
        limits: The limits.  Connections take at most a quarter of the process's file descriptors.
        tls: The context for TLS; None for plain HTTP.
        access_log: The logger for finished requests.
        task_status: Reports the URL.
    """
    if resource is not None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptors != resource.RLIM_INFINITY:
            limits = attrs.evolve(limits, connections=max(1, min(limits.connections, descriptors // 4)))
    places = Places(limits.connections)

    async def serve_and_release(stream: trio.SocketStream) -> None:
        try:
            await serve_stream(app, stream, places, limits=limits, tls=tls, access_log=access_log)
        finally:
            places.release()

    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    async with accepting, trio.open_nursery() as nursery:
        task_status.started(url_of(listener, "https" if tls else "http"))
        while True:
            stream = await _accept(accepting, places)
            try:
                await places.take()
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            nursery.start_soon(serve_and_release, stream)


async def _accept(listener: trio.SocketListener, places: Places) -> trio.SocketStream:
    is_logged = False
    while True:
        try:
            return await listener.accept()
        except OSError as exc:
            if exc.errno not in _NOT_ENOUGH:
                raise
            if not is_logged:
                is_logged = True
                logger.error("cannot accept a connection: %s; trying again", exc.strerror)
            places.close_one()
            await trio.sleep(ACCEPT_PAUSE)


async def serve_stream(
    app: ASGIApplication,
    stream: trio.abc.Stream,
    places: Places,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: ssl.SSLContext | None = None,
    access_log: logging.Logger | None = None,
) -> None:
    """Serve an ASGI application on one connection, and close it; an error is logged, and ends only this connection."""
    addresses = _address(stream, "getpeername"), _address(stream, "getsockname")
    transport = stream
    try:
        try:
            if tls is not None:
                stream = secure = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
                with places.waiting(limits.head_period) as scope:
                    await secure.do_handshake()
                if scope.cancelled_caught:
                    return
            scheme = "https" if tls else "http"
            await Connection(app, stream, limits, places, scheme, addresses, access_log).serve()
        finally:
            await _close(stream, transport)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # in the handshake: the peer does not speak TLS, does not trust the certificate, or has disconnected
    except Exception:  # noqa: BLE001  # the boundary between the connections
        logger.exception("error in a connection, which is closed")


async def _close(stream: trio.abc.Stream, transport: trio.abc.Stream) -> None:
    try:
        with trio.move_on_after(LINGER):  # TLS sends a closing message, which a peer that does not read could delay
            await stream.aclose()
    except BaseException:
        await trio.aclose_forcefully(transport)
        raise


def _address(stream: trio.abc.Stream, which: str) -> tuple[str, int] | None:
    if not isinstance(stream, trio.SocketStream):
        return None
    name: Callable[[], tuple[str, int]] = getattr(stream.socket, which)
    try:
        host, port = name()[:2]
    except OSError:  # it has already disconnected
        return None
    return host, port
