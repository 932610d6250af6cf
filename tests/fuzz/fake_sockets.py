"""Connections in memory in place of sockets: what httpcore reads is a script, with TLS or without."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs
import trio

Step: TypeAlias = bytes | float | Exception | None
"""Bytes that arrive at once, seconds without any, an error, or None: nothing any more, and no end."""


@attrs.define(eq=False)
class _Socket:
    stream: FakeStream

    def fileno(self) -> int:
        return -1 if self.stream.is_closed else 1

    def is_readable(self) -> bool:
        return self.stream.is_readable()

    def close(self) -> None:
        self.stream.is_closed = True

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 1)

    getpeername = getsockname

    def getsockopt(self, level: int, option: int) -> int:
        return 0  # no error


@attrs.define(eq=False)
class FakeStream:
    """Looks like a ``trio.SocketStream``; answers each request with a script."""

    script: Callable[[bytes], Iterable[Step]]
    tls: ssl.SSLContext | None = None
    is_closed: bool = False
    is_stale: bool = False
    """Whether the input of the fuzzer that it belongs to is over."""
    _requests: bytearray = attrs.field(factory=bytearray, init=False)
    _steps: Iterator[Step] = attrs.field(factory=lambda: iter(()), init=False)
    _left: bytes = attrs.field(default=b"", init=False)
    _has_ended: bool = attrs.field(default=False, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    _server: ssl.SSLObject | None = attrs.field(default=None, init=False)
    _in: ssl.MemoryBIO = attrs.field(factory=ssl.MemoryBIO, init=False)
    _out: ssl.MemoryBIO = attrs.field(factory=ssl.MemoryBIO, init=False)
    _is_greeted: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        if self.tls is not None:
            self._server = self.tls.wrap_bio(self._in, self._out, server_side=True)

    @property
    def socket(self) -> Any:
        return _Socket(self)

    def setsockopt(self, *_: object) -> None:
        pass

    def is_readable(self) -> bool:
        return self.is_stale or self._has_ended or bool(self._left)

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self.is_closed:
            raise trio.ClosedResourceError
        if self._server is not None:
            self._in.write(bytes(data))
            data = self._decrypt(self._server)
        self._requests += data
        if b"\r\n\r\n" in self._requests:
            head, self._requests = bytes(self._requests), bytearray()
            self._steps = iter(self.script(head))
        self._changed.set()
        self._changed = trio.Event()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while True:
            if self.is_closed:
                raise trio.ClosedResourceError
            if self._out.pending:
                return self._out.read(max_bytes or -1)
            if not self._left:
                await self._next_step()
            if self._left and self._server is None:
                data, self._left = self._left[:max_bytes], self._left[max_bytes or len(self._left) :]
                return data
            if self._left and self._server is not None:
                self._server.write(self._left)
                self._left = b""
            elif self._has_ended and not self._out.pending:
                return b""

    async def _next_step(self) -> None:
        if self._has_ended:
            return
        try:
            step = next(self._steps)
        except StopIteration:
            await self._changed.wait()  # until the next request
            return
        if isinstance(step, bytes):
            self._left = step
            self._has_ended = not step
        elif isinstance(step, Exception):
            raise step
        elif step is None:
            await trio.sleep_forever()
        else:
            await trio.sleep(step)

    def _decrypt(self, server: ssl.SSLObject) -> bytes:
        try:
            if not self._is_greeted:
                server.do_handshake()
                self._is_greeted = True
            return server.read(1 << 20)
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError:
            return b""

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self.is_closed = True
        self._changed.set()
        await trio.lowlevel.checkpoint()


@contextmanager
def fake_sockets(open_stream: Callable[[str, int], FakeStream]) -> Iterator[None]:
    """Let ``trio.open_tcp_stream`` return such connections."""
    real = trio.open_tcp_stream

    async def open_tcp_stream(host: str, port: int, **_: object) -> FakeStream:
        await trio.lowlevel.checkpoint()
        return open_stream(host, port)

    trio.open_tcp_stream = open_tcp_stream  # type: ignore[assignment]
    try:
        yield
    finally:
        trio.open_tcp_stream = real
