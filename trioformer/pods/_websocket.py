"""Open WebSockets for exec, attach and port-forward (RFC 6455, section 4.1)."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from .._channels import V4, V5, ChannelSocket, accept_token
from ..client._internal import streamed_status_error
from ..errors import BadRequestError, UnexpectedResponseError
from ..transport._internal import ByteStream, Transport, request_id_in

PROTOCOLS: Final = (V5, V4)
OUTPUT_PROTOCOLS: Final = (V4,)
"""The protocols for a process without input.  kube-apiserver or the kubelet converts v5 to SPDY, but forwards v4
unchanged."""
_NO_WEBSOCKETS: Final = "WebSockets are refused; check the proxies and load balancers in front of the API server"

_UPGRADE_REQUIRED: Final = 426
"""The HTTP status of a server that requires a different protocol (RFC 9110, section 15.5.22)."""


@asynccontextmanager
async def open_channels(
    transport: Transport, path: str, *, where: str, protocols: Sequence[str] = PROTOCOLS
) -> AsyncGenerator[tuple[ChannelSocket, str], None]:
    """Open a WebSocket, and yield it with the server's name for error messages.

    Args:
        transport: The connections to the server.
        path: The percent-encoded path, including the query.
        where: The name of the operation for error messages.
        protocols: The protocols that the server can choose from, in order of preference.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The server does not support WebSockets or any of the protocols.
        ConnectionFailedError: No response arrived.

    Cancellation:
        Closes the connection, as does the end of the block.
    """
    key = base64.b64encode(os.urandom(16))
    headers = [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"websocket"),
        (b"Sec-WebSocket-Version", b"13"),
        (b"Sec-WebSocket-Key", key),
        (b"Sec-WebSocket-Protocol", ", ".join(protocols).encode()),
    ]
    async with transport.upgrade(path, headers, where=where) as response:
        if response.code != 101:
            raise await _refusal(response, where)
        found = response.headers
        protocol = found.get("sec-websocket-protocol", "")
        if found.get("upgrade", "").lower() != "websocket" or found.get("sec-websocket-accept", "") != accept_token(
            key
        ).decode("ascii"):
            raise _unexpected(response, where, "the response does not open a WebSocket")
        if protocol not in protocols:
            chosen = protocol or "no protocol"
            raise _unexpected(response, where, f"the server chose {chosen} instead of {' or '.join(protocols)}")
        socket = ChannelSocket(response.upgraded, protocol, is_client=True)
        try:
            yield socket, response.server
        finally:
            await socket.aclose()


async def _refusal(response: ByteStream, where: str) -> Exception:
    if response.code < 400 or response.code == _UPGRADE_REQUIRED:
        return _unexpected(response, where, _NO_WEBSOCKETS)
    error = await streamed_status_error(response, method="GET", where=where)
    if isinstance(error, BadRequestError) and "pgrade request required" in error.status_message:
        # A proxy has removed the headers of the upgrade.
        return _unexpected(response, where, _NO_WEBSOCKETS)
    return error


def _unexpected(response: ByteStream, where: str, problem: str) -> UnexpectedResponseError:
    return UnexpectedResponseError(
        f"{where}: {response.server}: {problem} (HTTP {response.code})",
        code=response.code,
        request_id=request_id_in(response.headers),
    )
