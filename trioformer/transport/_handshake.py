"""Closing what a torn TLS handshake leaves behind.

httpcore closes the socket when a handshake fails with an ``Exception``, and trio's ``Cancelled`` is none: a request
that is cancelled while its connection greets the server would leave the socket to the garbage collector.
httpcore tells of both steps through its ``trace`` extension, so the socket can be closed from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final


@final
class HandshakeGuard:
    """The ``trace`` extension of one request: closes the socket when the handshake over it does not complete."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream: Any = None

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of an event of httpcore; never waits, so that it works while the request is being cancelled."""
        if event == "connection.connect_tcp.complete":
            self._stream = info["return_value"]
        elif event == "connection.start_tls.failed" and self._stream is not None:
            self._stream.get_extra_info("socket").close()
