"""A scripted HTTP/1.1 server on loopback, for tests that need real sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import attrs
import trio

LIST_HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
POD = b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"5"},"spec":{}}'
EVENT = (
    b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"8"}}}\n'
)


@attrs.define(eq=False)
class Exchange:
    """One request, to which a script responds chunk by chunk."""

    stream: trio.SocketStream
    target: str

    @property
    def is_watch(self) -> bool:
        return "watch=" in self.target

    async def begin(self, code: int = 200, *, content_type: str = "application/json") -> None:
        """Send the head of a chunked response."""
        head = f"HTTP/1.1 {code} X\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self.stream.send_all(head.encode())

    async def chunk(self, data: bytes) -> None:
        """Send one chunk; an empty one ends the response."""
        await self.stream.send_all(b"%x\r\n%b\r\n" % (len(data), data))

    async def respond(self, data: bytes, code: int = 200, *, content_type: str = "application/json") -> None:
        """Send a complete response."""
        await self.begin(code, content_type=content_type)
        if data:
            await self.chunk(data)
        await self.chunk(b"")


Script: TypeAlias = Callable[[Exchange], Awaitable[None]]


@attrs.define(eq=False)
class LoopbackServer:
    """A server that calls a script for each request, and counts its open connections.

    The probes that a client sends before and during watches are answered without the script, and counted apart; their
    connection, which the client keeps, is not counted.
    """

    script: Script
    url: str = ""
    connections: int = 0
    probes: int = 0
    targets: list[str] = attrs.field(factory=list)
    _idle: trio.Event = attrs.field(factory=trio.Event)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            listeners: list[trio.SocketListener] = await nursery.start(
                partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1")
            )
            self.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            task_status.started()

    async def wait_until_idle(self) -> None:
        """Wait until the client has closed every connection."""
        while self.connections:
            self._idle = trio.Event()
            await self._idle.wait()

    async def _serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        is_counted = True
        try:
            async with trio.open_nursery() as nursery:
                requests_in, requests_out = trio.open_memory_channel[str](1)
                nursery.start_soon(self._read, stream, requests_in, nursery.cancel_scope)
                async for target in requests_out:
                    if target.startswith("/livez"):
                        self.probes += 1
                        if is_counted:
                            is_counted = False
                            self._forget_connection()
                        await Exchange(stream, target).respond(b"ok")
                        continue
                    self.targets.append(target)
                    await self.script(Exchange(stream, target))
        finally:
            if is_counted:
                self._forget_connection()

    def _forget_connection(self) -> None:
        self.connections -= 1
        self._idle.set()

    @staticmethod
    async def _read(stream: trio.SocketStream, requests: trio.MemorySendChannel[str], scope: trio.CancelScope) -> None:
        """Send requests to the channel, and cancel the tasks of the connection when the client closes it."""
        buffer = b""
        try:
            async for data in stream:
                buffer += data
                while b"\r\n\r\n" in buffer:
                    head, buffer = buffer.split(b"\r\n\r\n", 1)
                    await requests.send(head.split(b" ")[1].decode())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()
