"""A server without sockets, whose response is the input of a fuzzer."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import attrs
import httpx
import trio

from trioformer import open_client
from trioformer.client import Client

from .engine import Fuzzer, I
from .objects import CONFIGS
from .oracle import Oracle

Headers = tuple[tuple[bytes, bytes], ...]


@attrs.frozen
class Reply:
    """A response: its code, its headers, and its body in the pieces that arrive."""

    code: int = 200
    headers: Headers = ((b"content-type", b"application/json"),)
    pieces: tuple[bytes, ...] = ()

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def header(self, name: bytes) -> bytes | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return found[0] if found else None


def cut(rng: random.Random, body: bytes) -> tuple[bytes, ...]:
    """Cut a body into pieces: mostly one, sometimes at a few places, rarely after every byte."""
    if rng.random() < 0.5 or len(body) < 2:
        return (body,) if body else ()
    if rng.random() < 0.05 and len(body) < 2_000:
        return tuple(body[at : at + 1] for at in range(len(body)))
    ends = sorted({rng.randrange(1, len(body)) for _ in range(rng.choice((1, 2, 5)))})
    return tuple(body[begin:end] for begin, end in zip([0, *ends], [*ends, len(body)], strict=True))


class _Body(httpx.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes], *, ends: bool) -> None:
        self._pieces = iter(pieces)
        self._ends = ends

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        try:
            return next(self._pieces)
        except StopIteration:
            if not self._ends:
                await trio.sleep_forever()
            raise StopAsyncIteration from None


@attrs.define(eq=False)
class MemoryServer(httpx.AsyncBaseTransport):
    """Answers each request with what ``respond`` returns for it."""

    respond: Callable[[httpx.Request], Reply | None] = lambda request: None
    is_silent_at_end: Callable[[httpx.Request], bool] = lambda request: False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        await request.aread()
        reply = self.respond(request) or Reply(404)
        body = _Body(reply.pieces, ends=not self.is_silent_at_end(request))
        return httpx.Response(reply.code, headers=list(reply.headers), stream=body)


class ClientFuzzer(Fuzzer[I]):
    """A fuzzer with one client of one server."""

    def __init__(self) -> None:
        self._server = MemoryServer()

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        async with open_client(CONFIGS[0], http_transport=self._server) as client:
            self._client: Client = client
            yield
