"""A server in memory for the probe connection, in virtual time."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import attrs
import trio

from tests.support.scripted_http import complete
from trioformer._secret import Secret
from trioformer.transport.auth._credentials import Credential
from trioformer.transport.http._messages import Headers
from trioformer.transport.http._network import Network
from trioformer.transport.http._pool import Origin
from trioformer.transport.http._sockets import NetworkStream
from trioformer.transport.policy._liveness import ProbeConnection, ServerHealth


@attrs.define(eq=False)
class ProbedServer:
    """Answers each request after a delay; what a test sets applies to the requests that follow."""

    delay: float = 0.01
    """Seconds until a response; infinite for a server that does not respond."""
    connect_delay: float = 0.0
    write_delay: float = 0.0
    connect_error: Exception | None = None
    reply: bytes = attrs.field(factory=lambda: complete(b"ok"))
    streams: list[ProbedStream] = attrs.field(factory=list)
    requests: list[tuple[float, str]] = attrs.field(factory=list)
    heads: list[bytes] = attrs.field(factory=list)
    rejected: list[Credential] = attrs.field(factory=list)
    latest: Credential = attrs.field(factory=lambda: Credential(Secret("Bearer t")))

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.requests]

    async def connect(self, host: str, port: int, patience: float | None) -> NetworkStream:
        """Do as :meth:`Network.connect`."""
        assert (host, port) == ("api.test", 1)
        await trio.sleep(self.connect_delay)
        if self.connect_error is not None:
            raise self.connect_error
        stream = ProbedStream(self, trio.current_time())
        self.streams.append(stream)
        return NetworkStream(stream)

    async def get(self) -> Credential:
        return self.latest

    def reject(self, credential: Credential) -> None:
        self.rejected.append(credential)

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()

    def health(self, *, silence: float = 30.0, patience: float = 15.0) -> ServerHealth:
        """Make the health of a client of this server."""
        probes = ProbeConnection(Origin.of("http://api.test:1/prefix"), None, cast("Network", self), Headers([]), self)
        return ServerHealth._create("http://api.test:1/prefix", probes, silence=silence, patience=patience)


@attrs.define(eq=False)
class ProbedStream:
    """One connection."""

    server: ProbedServer
    opened_at: float
    is_closed: bool = False
    """Whether the client has closed it."""
    is_readable: bool = False
    error: Exception | None = None
    """What reads of the client raise."""
    _replies: list[tuple[float, bytes]] = attrs.field(factory=list)

    async def receive_some(self, max_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        if not self._replies:
            await trio.sleep_forever()
        at, reply = self._replies[0]
        if at == math.inf:
            await trio.sleep_forever()
        await trio.sleep_until(at)
        del self._replies[0]
        return reply

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        buffer = bytes(data)
        await trio.sleep(self.server.write_delay)
        self.server.heads.append(buffer)
        self.server.requests.append((trio.current_time(), buffer.split(b" ")[1].decode()))
        self._replies.append((trio.current_time() + self.server.delay, self.server.reply))

    def send_now(self, data: bytes) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True

    def problem(self) -> Exception | None:
        return None

    def set_option(self, level: int, option: int, value: int) -> None:
        """Do nothing."""
