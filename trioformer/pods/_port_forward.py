"""Listen on local ports, and forward each connection to a port of a pod.

::

    program ── 127.0.0.1:49152 ──▶ listener ── a task for each connection ──▶ PodConnection ──▶ node ──▶ pod

For each connection, a task opens a :class:`PodConnection`, and copies data in both directions until the pod closes the
connection.
An error in one connection is reported, and does not affect other connections.

Source: client-go ``tools/portforward/portforward.go``.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, final

import attrs
import trio

from .._suggestions import describe
from .._util import NoPublicConstructor, open_serving_nursery
from ..errors import ListenError, NotFoundError, PortForwardError, TrioformerError
from ._port_streams import PodConnection
from ._port_targets import PortSource, PortTarget

MAX_CONNECTIONS: Final = 1_000
"""The default maximum number of connections that one port forwards at the same time."""
_RECEIVE_SIZE: Final = 64 * 1024
_LINGER: Final = 2.0
"""The number of seconds in which a program may still send data after the pod has closed the connection."""
_RESET: Final = struct.pack("ii", 1, 0)
"""The value of ``SO_LINGER`` that makes ``close()`` reset the connection."""
_BUSY_PERIOD: Final = 0.1
"""The number of seconds to wait if the process cannot open more files."""

logger = logging.getLogger("trioformer.pods")

ConnectionErrorHandler: TypeAlias = Callable[[TrioformerError], None]
"""A function that is called with the error of each connection that was not forwarded or that broke."""


@final
@attrs.define(eq=False, repr=False)
class PortForward(metaclass=NoPublicConstructor):
    """A local port that is forwarded to a port of a pod, opened and closed by :func:`forward_port`."""

    addresses: tuple[tuple[str, int], ...]
    """The local addresses and ports that accept connections."""
    _source: PortSource
    _target: PortTarget
    _on_error: ConnectionErrorHandler | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url} to port {self.pod_port} of {self.pod}>"

    @property
    def port(self) -> int:
        """The local port."""
        return self.addresses[0][1]

    @property
    def host(self) -> str:
        """The local address."""
        return self.addresses[0][0]

    @property
    def url(self) -> str:
        """The HTTP URL of the local port, such as ``http://127.0.0.1:49152``."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def pod(self) -> str:
        """The name of the current pod."""
        return self._target.pod

    @property
    def pod_port(self) -> int:
        """The port in the pod."""
        return self._target.port

    # --- the tasks ---

    async def _serve(self, listener: trio.SocketListener, nursery: trio.Nursery, limiter: trio.CapacityLimiter) -> None:
        """Accept connections forever."""
        while True:
            async with limiter:
                pass  # there is room for one more, until this task starts the next one
            try:
                local = await listener.accept()
            except OSError as exc:
                logger.warning("%s: cannot accept a connection: %s", self._source.where, exc)
                await trio.sleep(_BUSY_PERIOD)
                continue
            nursery.start_soon(self._forward, local, limiter)

    async def _forward(self, local: trio.SocketStream, limiter: trio.CapacityLimiter) -> None:
        try:
            async with limiter:
                await self._copy(local)
        except TrioformerError as exc:
            _reset(local)
            self._fail(exc)
        finally:
            await local.aclose()

    def _fail(self, error: TrioformerError) -> None:
        if self._on_error is not None:
            self._on_error(error)
        else:
            logger.warning("a connection to port %d was not forwarded: %s", self.port, error)

    async def _open_connection(self) -> PodConnection:
        try:
            return await self._source.connect(self._target)
        except (NotFoundError, PortForwardError):
            if self._source.is_pod:
                raise
        # The Service or Deployment may have another pod.
        self._target = await self._source.find()
        return await self._source.connect(self._target)

    async def _copy(self, local: trio.SocketStream) -> None:
        """Copy data in both directions until the pod or the program closes the connection.

        Raises:
            TrioformerError: The connection to the pod failed.
        """
        remote = await self._open_connection()
        try:
            error: TrioformerError | None = None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_all, local, remote, nursery.cancel_scope)
                error = await _receive_all(remote, local)
                nursery.cancel_scope.cancel()
        finally:
            await remote.aclose()
        if error is not None:
            raise error
        await _linger(local)


async def _send_all(local: trio.SocketStream, remote: PodConnection, scope: trio.CancelScope) -> None:
    """Copy data to the pod until the program has sent all its data."""
    while True:
        try:
            data = await local.receive_some(_RECEIVE_SIZE)
        except trio.BrokenResourceError:
            scope.cancel()  # the program has reset the connection
            return
        try:
            if not data:
                await remote.send_eof()
                return
            await remote.send_all(data)
        except trio.BrokenResourceError:
            return  # the receiver gets the reason


async def _receive_all(remote: PodConnection, local: trio.SocketStream) -> TrioformerError | None:
    """Copy data from the pod until the pod closes the connection; return an error or None."""
    while True:
        try:
            data = await remote.receive_some()
        except trio.BrokenResourceError:
            return remote.failure
        if not data:
            return None
        try:
            await local.send_all(data)
        except trio.BrokenResourceError:
            return None  # the program has closed the connection


async def _linger(local: trio.SocketStream) -> None:
    """Wait until the program closes its side, because closing a socket with unread data would reset the connection."""
    with suppress(trio.BrokenResourceError), trio.move_on_after(_LINGER):
        await local.send_eof()
        while await local.receive_some(_RECEIVE_SIZE):
            pass


def _reset(local: trio.SocketStream) -> None:
    """Reset the connection, so that the program does not mistake an error for the normal end of the data."""
    with suppress(OSError):
        local.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def check_addresses(address: str | Sequence[str]) -> dict[str, bool]:
    """Check the addresses to listen on, and return a mapping whose values are True for optional addresses.

    Raises:
        TypeError: An address is not a string.
        ValueError: No address is given, or an address is neither an IP address nor ``localhost``.
    """
    found: dict[str, bool] = {}
    for each in (address,) if isinstance(address, str) else address:
        if not isinstance(each, str):
            raise TypeError(f"an address must be a string such as '127.0.0.1', not {describe(each)}")
        if each == "localhost":
            found = {"127.0.0.1": True, "::1": True} | found
            continue
        try:
            found[str(ipaddress.ip_address(each))] = False
        except ValueError:
            raise ValueError(f"an address must be an IP address or 'localhost', not {each!r}") from None
    if not found:
        raise ValueError("at least one address is required")
    return found


async def _listen(addresses: Mapping[str, bool], port: int, where: str) -> list[trio.SocketListener]:
    """Listen on the same port on all addresses.

    Raises:
        ListenError: The port is not available on a required address.
    """
    listeners: list[trio.SocketListener] = []
    left = len(addresses)
    try:
        for address, is_optional in addresses.items():
            left -= 1
            try:
                [listener] = await trio.open_tcp_listeners(port, host=address)
            except OSError as exc:
                if is_optional and (left or listeners):
                    continue
                first = next(iter(exc.__cause__.exceptions)) if isinstance(exc.__cause__, ExceptionGroup) else exc
                problem = getattr(first, "strerror", None) or str(first)
                raise ListenError(
                    f"{where}: cannot listen on port {port} of {address}: {problem}", errno=exc.errno
                ) from exc
            listeners.append(listener)
            port = port or int(listener.socket.getsockname()[1])
    except BaseException:
        for each in listeners:
            each.socket.close()
        raise
    return listeners


@asynccontextmanager
async def open_port_forward(
    source: PortSource,
    *,
    local_port: int | None,
    address: str | Sequence[str],
    max_connections: int,
    on_error: ConnectionErrorHandler | None,
) -> AsyncGenerator[PortForward, None]:
    """Open a local port; see :func:`forward_port`."""
    if local_port is not None and (isinstance(local_port, bool) or not isinstance(local_port, int)):
        raise TypeError(f"local_port must be a number or None, not {describe(local_port)}")
    if local_port is not None and not 0 <= local_port <= 65_535:
        raise ValueError(f"local_port must be between 0 and 65535, not {local_port}")
    addresses = check_addresses(address)
    limiter = trio.CapacityLimiter(max_connections)
    target = await source.find()
    listeners = await _listen(addresses, target.asked if local_port is None else local_port, source.where)
    try:
        names = tuple((str(host), int(port)) for host, port, *_ in (each.socket.getsockname() for each in listeners))
        forward = PortForward._create(names, source, target, on_error)
        async with open_serving_nursery() as nursery:
            for listener in listeners:
                nursery.start_soon(forward._serve, listener, nursery, limiter)
            yield forward
    finally:
        for listener in listeners:
            listener.socket.close()
