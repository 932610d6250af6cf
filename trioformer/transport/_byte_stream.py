"""The body of a streamed response, which can be closed at any point.

The problem: httpx returns a body as an async generator around five others, down to the socket.
To leave ``async for`` early, or to call ``aclose()`` on the outermost generator, leaves the inner ones suspended until
the garbage collector finds them: each is a ``ResourceWarning``, and the connection is closed later, or never.
Only an exception that is raised in the innermost generator ends all of them.
Cancellation is such an exception.
So a body that is closed early is read once more inside a cancel scope that is already cancelled: the first wait for the
socket raises ``Cancelled``, each generator runs its ``finally``, httpcore closes the connection, and the scope catches
the exception.
After a read that raised, an error or the caller's own cancellation, the generators have ended already.

There is no task and no nursery, so an exception of the caller's block is not wrapped in a group.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Final, cast, final

import httpx
import trio

from .._util import NoPublicConstructor
from ._errors import CONNECTION_ERRORS, connection_failed, shows_failing_server
from ._health import ServerHealth

CLOSE_PATIENCE: Final = 5.0
"""Seconds that closing may take, even when the caller is cancelled; it never waits for the peer."""

# httpcore reads 64 KiB at a time and a chunk has at least six bytes, so a longer row of chunks waits for the socket.
_MAX_BUFFERED_CHUNKS: Final = 16 * 1024


@final
class ByteStream(metaclass=NoPublicConstructor):
    """The body of one response, for one task at a time; :meth:`Transport.stream` makes it and closes it.

    Attributes:
        code: The HTTP status code.
        headers: The headers of the response, with names in lower case.
    """

    __slots__ = (
        "_chunks",
        "_error",
        "_health",
        "_is_closed",
        "_is_over",
        "_is_receiving",
        "_is_started",
        "_response",
        "_server",
        "code",
        "headers",
    )

    def __init__(self, response: httpx.Response, server: str, health: ServerHealth) -> None:
        self.code: int = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers)
        self._response = response
        self._server = server
        self._health = health
        # A server or proxy may compress although the request asks for "identity".
        encoded = response.headers.get("content-encoding", "identity") != "identity"
        chunks = response.aiter_bytes() if encoded else response.aiter_raw()
        self._chunks = cast("AsyncGenerator[bytes, None]", chunks)
        self._error: Exception | None = None
        self._is_started = self._is_receiving = self._is_over = self._is_closed = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "over" if self._is_over else "open"
        return f"<{type(self).__name__} of {self._server}: HTTP {self.code}, {state}>"

    async def receive_some(self) -> bytes:
        """Receive the next bytes of the body; ``b""`` at the end of the body.

        What the connection has already read is returned immediately.

        Raises:
            ConnectionFailedError: The body ended early; every later call raises it again.
            trio.ClosedResourceError: The stream is closed, or an earlier call was cancelled.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection; nothing more can be received.
        """
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this stream")
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_closed:
            raise trio.ClosedResourceError("this stream is closed")
        if self._error is not None:
            raise self._error
        if self._is_over:
            return b""
        self._is_started = self._is_receiving = True
        try:
            return await self._chunks.__anext__()
        except StopAsyncIteration:
            self._is_over = True
            return b""
        except CONNECTION_ERRORS as exc:
            self._is_over = True
            if self._is_closed:
                raise trio.ClosedResourceError("this stream was closed while it was being read") from exc
            if shows_failing_server(exc):
                self._health.record_failure()
            self._error = connection_failed(exc, self._server)
            raise self._error from exc
        except BaseException:
            self._is_over = self._is_closed = True
            raise
        finally:
            self._is_receiving = False

    async def _aclose(self) -> None:
        self._is_closed = True
        deadline = trio.current_time() + CLOSE_PATIENCE
        with trio.CancelScope(deadline=deadline, shield=True), suppress(*CONNECTION_ERRORS):
            # While another task reads the body, only the connection can be closed, which ends that read.
            try:
                if self._is_started and not self._is_over and not self._is_receiving:
                    await self._unwind()
            finally:
                await self._response.aclose()

    async def _unwind(self) -> None:
        self._is_over = True
        with trio.CancelScope() as scope, suppress(StopAsyncIteration, *CONNECTION_ERRORS):
            scope.cancel()
            for _ in range(_MAX_BUFFERED_CHUNKS):
                await self._chunks.__anext__()
            # Only a transport that is not a connection gets here: one that always has more bytes and never waits.
            await self._chunks.aclose()
