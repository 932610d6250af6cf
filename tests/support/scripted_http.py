"""Scripted HTTP servers, in memory and on a loopback socket, for tests of the transport and the client."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
import types
import warnings
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import httpx
import trio
import trio.testing

from tests.support.alerting_tls import AlertingStream

Step: TypeAlias = bytes | float | Exception | None
"""Bytes to send, seconds to sleep, an error to raise, or None to sleep forever."""


@attrs.define(eq=False)
class Body(httpx.AsyncByteStream):
    """A body in memory that is sent step by step; like httpcore's, a generator around another one."""

    steps: Iterable[Step]
    state: str = "new"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._play():
                yield piece
            self.state = "read"
        finally:
            if self.state != "read":
                self.state = "unwound"

    async def _play(self) -> AsyncIterator[bytes]:
        for step in self.steps:
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, Exception):
                raise step
            elif step is None:
                await trio.sleep_forever()
            else:
                await trio.sleep(step)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.state == "new":
            self.state = "closed unread"


Reply: TypeAlias = httpx.Response | Exception | float


@attrs.define(eq=False)
class InMemory(httpx.AsyncBaseTransport):
    """A transport with a script of responses, errors to raise, and seconds to sleep; records the requests."""

    replies: list[Reply]
    requests: list[httpx.Request] = attrs.field(factory=list)
    is_closed: bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        await request.aread()
        self.requests.append(request)
        while True:
            reply = self.replies.pop(0)
            if isinstance(reply, float):
                await trio.sleep(reply)
            elif isinstance(reply, Exception):
                raise reply
            else:
                return reply

    async def aclose(self) -> None:
        self.is_closed = True

    @property
    def targets(self) -> list[str]:
        """The methods and targets of the requests."""
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.requests]


def response(code: int, *steps: Step | str, **headers: str) -> httpx.Response:
    """Make a response with the steps of its body; ``retry_after`` is the header ``Retry-After``."""
    body = Body([step.encode() if isinstance(step, str) else step for step in steps])
    return httpx.Response(code, stream=body, headers={name.replace("_", "-"): text for name, text in headers.items()})


@attrs.define(eq=False)
class Loopback:
    """An HTTP/1.1 server on a loopback port with one script for each request.

    A step of bytes is sent unchanged: the script contains the status line and the chunk headers.
    After the script the connection is closed, unless ``keep_alive``.
    The probes that a client sends before and during watches are answered without the script, unless ``scripts_probes``,
    and they and their connection are counted apart.
    """

    script: Callable[[bytes], Iterable[Step]]
    keep_alive: bool = False
    tls: ssl.SSLContext | None = None
    scripts_probes: bool = False
    sends_alerts: bool = False
    """Whether a client learns why its handshake failed."""
    heads: list[bytes] = attrs.field(factory=list)
    connections: int = 0
    probes: int = 0
    probe_connections: int = 0
    closed_by_peer: int = 0
    open_connections: int = 0
    port: int = 0
    _changed: trio.Event = attrs.field(factory=trio.Event)
    _accepted: set[trio.SocketStream] = attrs.field(factory=set)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def run(self, *, task_status: trio.TaskStatus[Loopback] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, self._serve, 0)
            self.port = listeners[0].socket.getsockname()[1]
            task_status.started(self)

    async def wait_until_open(self, number: int) -> None:
        """Wait until so many connections are open at this end."""
        while self.open_connections != number:
            await self._changed.wait()

    def reset_connections(self) -> None:
        """Close all connections in a way that the peer notices as "connection reset"."""
        for connection in self._accepted:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.socket.close()

    def _count_open(self, by: int) -> None:
        self.open_connections += by
        self._changed.set()
        self._changed = trio.Event()

    async def _serve(self, connection: trio.SocketStream) -> None:
        self._accepted.add(connection)
        self._count_open(+1)
        try:
            await self._serve_counted(connection)
        finally:
            self._accepted.remove(connection)
            self._count_open(-1)

    async def _serve_counted(self, connection: trio.SocketStream) -> None:
        self.connections += 1
        stream: trio.abc.Stream = connection
        if self.tls is not None:
            alerting = AlertingStream(connection, self.tls)
            plain = trio.SSLStream(connection, self.tls, server_side=True, https_compatible=True)
            stream = alerting if self.sends_alerts else plain
        try:
            async with stream:
                head = await self._receive_head(stream)
                if b"GET /livez" in head and not self.scripts_probes:
                    self.connections -= 1
                    self.probe_connections += 1
                    await self._answer_probes(stream, head)
                    return
                while head and await self._respond(stream, head) and self.keep_alive:
                    head = await self._receive_head(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.closed_by_peer += 1

    async def _answer_probes(self, stream: trio.abc.Stream, head: bytes) -> None:
        while head:
            self.probes += 1
            await stream.send_all(complete(b"ok"))
            head = await self._receive_head(stream)

    @staticmethod
    async def _receive_head(stream: trio.abc.Stream) -> bytes:
        head = b""
        while b"\r\n\r\n" not in head:
            more = await stream.receive_some()
            if not more:
                return b""
            head += more
        return head

    async def _respond(self, stream: trio.abc.Stream, head: bytes) -> bool:
        self.heads.append(head)
        for step in self.script(head):
            if isinstance(step, bytes):
                await stream.send_all(step)
            elif isinstance(step, Exception):
                raise step
            elif step is not None:
                await trio.sleep(step)
            elif not await stream.receive_some():
                self.closed_by_peer += 1
                return False
        return True


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def complete(data: bytes, code: str = "200 OK") -> bytes:
    """A complete HTTP/1.1 response."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (code.encode(), len(data), data)


ONE_CHUNK = CHUNKED + chunk(b"one")


@asynccontextmanager
async def serving(*steps: Step, tls: ssl.SSLContext | None = None, keep_alive: bool = False) -> AsyncIterator[Loopback]:
    """Run such a server; without steps it responds with "hello"."""
    server = Loopback(lambda _: steps or [complete(b"hello")], tls=tls, keep_alive=keep_alive)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield server
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class AtStep(trio.abc.Instrument):
    """Call a function after so many steps of tasks of the block."""

    left: int
    then: Callable[[], object]

    def __enter__(self) -> None:
        trio.lowlevel.add_instrument(self)

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.then()


@asynccontextmanager
async def cancelled_at_step(number: int) -> AsyncIterator[trio.Nursery]:
    """Cancel a nursery after so many steps of tasks, or earlier, when there is nothing to be done but to wait."""

    async def cancel_when_idle() -> None:
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        with AtStep(number, nursery.cancel_scope.cancel):
            nursery.start_soon(cancel_when_idle)
            yield nursery
            await trio.sleep_forever()


def suspended_generators() -> list[str]:
    """Return the names of suspended generators of httpx, httpcore and this module."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    found = [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]
    for obj in gc.get_objects():
        if isinstance(obj, types.AsyncGeneratorType) and obj.ag_frame is not None:
            file = obj.ag_code.co_filename
            if any(part in file for part in ("httpx", "httpcore", "scripted_http")):
                found.append(obj.ag_code.co_qualname)
    return found
