"""HTTP/1.1 on plain sockets, for requests that no HTTP client would send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import trio


@asynccontextmanager
async def connection(url: str) -> AsyncIterator[trio.SocketStream]:
    """Connect to the host and port of a URL."""
    parts = httpx.URL(url)
    async with await trio.open_tcp_stream(parts.host, parts.port or 80) as stream:
        yield stream


async def read_to_end(stream: trio.abc.ReceiveStream) -> bytes:
    """Read until the server closes the connection, in whatever way."""
    received = b""
    try:
        while data := await stream.receive_some(65_536):
            received += data
    except trio.BrokenResourceError:
        pass
    return received


async def exchange(url: str, *parts: bytes) -> bytes:
    """Send the parts of a request and read until the server closes the connection."""
    async with connection(url) as stream:
        try:
            for part in parts:
                await stream.send_all(part)
        except trio.BrokenResourceError:
            pass
        return await read_to_end(stream)


def status_of(response: bytes) -> int:
    """Return the status code in a response's first line."""
    version, code, _ = response.split(b" ", 2)
    assert version == b"HTTP/1.1", response[:100]
    return int(code)
