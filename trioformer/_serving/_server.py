"""Accepts connections, and serves an ASGI application on them."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import attrs
import trio

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # a module elsewhere

from ._connection import LINGER, ASGIApplication, Connection, Places, ServerLimits, logger
from ._listeners import url_of

ACCEPT_PAUSE: Final = 0.1
"""Seconds until the next try when no file descriptor, or no memory, is left for a connection."""
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
    """Serve an ASGI application over HTTP/1.1 on a listening socket until cancelled, then close the socket.

    An error of the application is logged, and its response is a 500; nothing that a peer does ends the server.

    Args:
        app: The application; it gets the scope ``http`` only.
        listener: The socket, which this owns.
        limits: What a peer can make the server keep.  There are at most as many connections as a quarter of the
            process's file descriptors.
        tls: The context for TLS; None for plain HTTP.
        access_log: The logger for finished requests.
        task_status: Reports the URL.

    Cancellation:
        Ends requests immediately.
    """
    if resource is not None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptors != resource.RLIM_INFINITY:
            limits = attrs.evolve(limits, connections=max(1, min(limits.connections, descriptors // 4)))
    places = Places(limits.connections)
    url = url_of(listener, "https" if tls else "http")

    async def serve_and_release(stream: trio.SocketStream) -> None:
        try:
            await serve_stream(app, stream, places, limits=limits, tls=tls, access_log=access_log)
        finally:
            places.release()

    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    async with accepting, trio.open_nursery() as nursery:
        task_status.started(url)
        while True:
            stream = await _accept(accepting, places)
            await _take(places, stream)
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


async def _take(places: Places, stream: trio.SocketStream) -> None:
    """Take a place for a connection, or close it when cancelled."""
    try:
        await places.take()
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise


async def serve_stream(
    app: ASGIApplication,
    stream: trio.abc.Stream,
    places: Places,
    *,
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: ssl.SSLContext | None = None,
    access_log: logging.Logger | None = None,
) -> None:
    """Serve an ASGI application on one connection, and close it.

    An error in it is logged, and ends only this connection.
    """
    with _errors_logged():
        addresses = _address(stream, "getpeername"), _address(stream, "getsockname")
        transport = stream
        try:
            if tls is not None:
                stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
            connection = Connection(app, stream, limits, places, "https" if tls else "http", addresses, access_log)
            if isinstance(stream, trio.SSLStream):
                with places.waiting(limits.head_period) as scope:
                    await stream.do_handshake()
                if scope.cancelled_caught:
                    return
            await connection.serve()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # in the handshake: the peer speaks no TLS, does not trust the certificate, or has disconnected
        finally:
            await _close(stream, transport)


@contextmanager
def _errors_logged() -> Iterator[None]:
    """Log the exceptions of one connection, so that whatever raised them does not end the server.

    A cancellation, and whatever else is no :class:`Exception`, is raised.
    """
    try:
        yield
    except* Exception:  # noqa: BLE001  # the boundary between the connections
        with suppress(Exception):  # a filter or a handler of the program may fail too; then it cannot be logged
            logger.exception("error in a connection, which is closed")


async def _close(stream: trio.abc.Stream, transport: trio.abc.Stream) -> None:
    try:
        with trio.move_on_after(LINGER):  # TLS says that it closes, which a peer that does not read could delay
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
    except OSError:  # it has disconnected already
        return None
    return host, port
