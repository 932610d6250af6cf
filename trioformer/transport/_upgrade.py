"""Requests that ask the server to switch to another protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from ._byte_stream import ByteStream
from ._connection import Transport
from ._outgoing import Outgoing
from ._request_headers import Header


@asynccontextmanager
async def upgrade(
    transport: Transport, path: str, headers: list[Header], *, where: str
) -> AsyncGenerator[ByteStream, None]:
    """Ask the server to switch to another protocol; inside the block there is its response.

    After status 101 it has a stream of the other protocol, ``ByteStream.upgraded``, and no body.
    The request is sent again after a 401 only: what it starts, such as a command, would be started twice.

    Args:
        transport: The connections to the server.
        path: The path below the server's URL, with its leading slash and the query, quoted.
        headers: Those of the upgrade, ``Connection`` and ``Upgrade`` among them.
        where: The operation, for errors.

    Raises:
        ConnectionFailedError: No response arrived.
        trio.ClosedResourceError: The client is closed.

    Cancellation: closes the connection, as does the end of the block.
    """
    own = transport._headers.of(accept="*/*", content_type=None, accepts_gzip=False)
    outgoing = Outgoing(method="GET", path=path, params=None, headers=[*own, *headers], accepts_gzip=False, where=where)
    attempts = transport._retries_of(outgoing, may_retry=False)
    while True:
        async with transport._limited(outgoing) as throttled:
            body, _, credential = await transport._send(outgoing, attempts.number, throttled)
        try:
            if (delay := await transport._delay_after(body, credential, attempts)) is None:
                yield body
                return
            await body._read_beginning()
        finally:
            await body._aclose()
        await trio.sleep(delay)
