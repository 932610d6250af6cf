"""Reading a response's body piece by piece, and leaving it at any point.

The problem: httpx gives a body as an async generator around five others, down to the socket.
Leaving ``async for`` early, or calling ``aclose()`` on the outermost, leaves the inner ones suspended, for the garbage
collector to find: each is a ``ResourceWarning``, and a connection that is closed some time later, if at all.
Only an exception that rises from the innermost unwinds all of them.  Cancellation is such an exception, so a body that
is left early is read on inside of a scope that is already cancelled: the first attempt to wait for the socket raises
``Cancelled``, every generator runs its ``finally`` on the way up, httpcore closes the connection, and the scope takes
the exception back.
Whatever rises from a read, an error or the caller's own cancellation, has unwound them already.

No task and no nursery is involved, so an exception of the caller's body passes through as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Final, cast, final

import httpx
import trio

from .._util import NoPublicConstructor
from ._errors import CONNECTION_ERRORS, connection_failed

CLOSE_PATIENCE: Final = 5.0
"""Seconds that closing may take even when the caller is cancelled; it never waits for the other side."""

# httpcore reads 64 KiB at a time, and six bytes make a chunk: so many can be had without waiting for the socket.
_MOST_BUFFERED: Final = 16 * 1024


@final
class ByteStream(metaclass=NoPublicConstructor):
    """The body of one answer; made by :meth:`Transport.stream`, which also closes it.

    For one task at a time.

    Attributes:
        code: The HTTP status code.
        headers: The answer's headers, their names in lower case.
    """

    __slots__ = (
        "_chunks",
        "_error",
        "_is_closed",
        "_is_over",
        "_is_receiving",
        "_is_started",
        "_response",
        "_server",
        "code",
        "headers",
    )

    def __init__(self, response: httpx.Response, server: str) -> None:
        self.code: int = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers)
        self._response = response
        self._server = server
        # Asked not to, a server or proxy may compress all the same.
        encoded = response.headers.get("content-encoding", "identity") != "identity"
        chunks = response.aiter_bytes() if encoded else response.aiter_raw()
        self._chunks = cast("AsyncGenerator[bytes, None]", chunks)
        self._error: Exception | None = None
        self._is_started = self._is_receiving = self._is_over = self._is_closed = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "over" if self._is_over else "open"
        return f"<{type(self).__name__} of {self._server}: HTTP {self.code}, {state}>"

    async def receive_some(self) -> bytes:
        """Wait for the next piece of the body; ``b""`` is its end.

        Returns at once what the connection has already read.

        Raises:
            ConnectionFailedError: The body broke off; every later call says so again.
            trio.ClosedResourceError: The stream is closed, or a call was cancelled before.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection: nothing more can be received.
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
            # Of a body that another task is reading only the connection can be closed; that ends the other task's read.
            try:
                if self._is_started and not self._is_over and not self._is_receiving:
                    await self._unwind()
            finally:
                await self._response.aclose()

    async def _unwind(self) -> None:
        self._is_over = True
        with trio.CancelScope() as scope, suppress(StopAsyncIteration, *CONNECTION_ERRORS):
            scope.cancel()
            for _ in range(_MOST_BUFFERED):
                await self._chunks.__anext__()
            # No connection does this: a transport that always has more and never waits.
            await self._chunks.aclose()
