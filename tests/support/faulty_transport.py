"""A faulty connection to an embedded API server: an httpx transport that wraps the in-memory one."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

import attrs
import httpx
import trio

Ending: TypeAlias = Literal["clean", "reset", "stall"]
"""The body ends as if it were complete; the connection breaks; the connection stays open and silent."""

GATHER_PERIOD: Final = 2.0
"""Seconds for which frames are gathered."""
_PORTAL: Final = b"<!doctype html><title>Please log in</title>"
DEEP: Final = b"[" * 3_000 + b"]" * 3_000
"""A JSON value of too many levels."""
_UID: Final = b"\x2a\x24"
"""In a message, the beginning of a uid: the tag and the length of a UUID."""
_UNREADABLE_UID: Final = b"\x2e\x24"
_METADATA: Final = re.compile(rb'"metadata":\{')


@attrs.frozen
class Cut:
    """Where the next chunk of a body is cut, and how the body ends there."""

    at: float
    """The fraction of the chunk that is delivered."""
    how: Ending


@attrs.define(eq=False)
class FaultyTransport(httpx.AsyncBaseTransport):
    """Sends requests to an embedded server, with the faults that a test sets."""

    inner: httpx.AsyncBaseTransport
    ignores_watch_lists: bool = False
    """Whether ``sendInitialEvents`` is removed from requests, as a server or proxy that does not support it does."""
    cuts: deque[Cut] = attrs.field(factory=deque)
    """The cuts of the next chunks, of any body."""
    portals: int = 0
    """How many of the next requests get the response of a captive portal."""
    corrupted: int = 0
    """How many of the next events contain an undecodable object."""
    has_corrupted: bool = False
    """Whether an event was made undecodable since this was last set to False."""
    spoils: Mapping[bytes, bytes] = attrs.field(factory=dict)
    """What is replaced in every list and watch, so that objects cannot be decoded."""
    loses_bookmarks: bool = False
    """Whether bookmarks are dropped, including the end bookmarks of watch-lists."""
    halves: bool = False
    """Whether every chunk is delivered in two halves."""
    gathers: bool = False
    """Whether a watch's frames are delivered together with those of the next :data:`GATHER_PERIOD` seconds."""
    checks_retry_after: bool = True
    """Whether no request may be sent before the end of a ``Retry-After`` that was received."""
    closed_until: float = -math.inf
    """When the next request is allowed."""
    checks_closed_until: float = -math.inf
    """The same for checks of a version, which run beside a watch: one that is refused does not bind the watch."""
    has_stalled: bool = False
    """Whether a body has stalled since this was last set to False."""
    open_bodies: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        is_check = request.url.params.get("limit") == "1"
        closed_until = max(self.closed_until, self.checks_closed_until) if is_check else self.closed_until
        assert trio.current_time() >= closed_until, "a Retry-After was ignored"
        is_watch = request.url.params.get("watch") in ("1", "true")
        if self.portals:
            self.portals -= 1
            await trio.lowlevel.checkpoint()
            return httpx.Response(200, headers={"content-type": "text/html"}, content=_PORTAL, request=request)
        if self.ignores_watch_lists and is_watch:
            for name in ("sendInitialEvents", "resourceVersionMatch"):
                request.url = request.url.copy_remove_param(name)
        response = await self.inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        patience = request.extensions["timeout"]["read"]
        is_error = response.status_code != 200
        if self.checks_retry_after and (retry_after := response.headers.get("retry-after")):
            response.stream = _Noticed(response.stream, partial(self._close, float(retry_after), is_check=is_check))
        response.stream = _Body(self, response.stream, is_watch and not is_error, is_error, patience)
        return response

    def _close(self, seconds: float, *, is_check: bool) -> None:
        if is_check:
            self.checks_closed_until = trio.current_time() + seconds
        else:
            self.closed_until = trio.current_time() + seconds

    def heal(self) -> None:
        """Cancel every pending fault."""
        self.cuts.clear()
        self.portals = self.corrupted = 0
        self.loses_bookmarks = self.gathers = False

    def process_frame(self, frame: bytes) -> bytes:
        """Return a watch's frame as it is delivered."""
        if b"BOOKMARK" in frame[:20]:
            return b"" if self.loses_bookmarks else frame
        if self.corrupted and b"ERROR" not in frame[:20]:
            self.corrupted -= 1
            self.has_corrupted = True
            # The first member of that name is the object's own; the key can still be found in the rest of it.
            frame = _METADATA.sub(b'"metadata":{"uid":[],', frame, count=1)
            return frame.replace(_UID, _UNREADABLE_UID, 1)
        return frame

    def spoil(self, piece: bytes) -> bytes:
        """Return a piece of a body as it is delivered."""
        for good, spoiled in self.spoils.items():
            piece = piece.replace(good, spoiled)
        return piece


class _Noticed(httpx.AsyncByteStream):
    """The body of a response that is known when all of it was read.

    Requests that were sent beside this one could not obey it, and half an error response is a broken connection.
    """

    def __init__(self, inner: httpx.AsyncByteStream, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._pieces = inner.__aiter__()
        self._on_end = on_end

    def __aiter__(self) -> _Noticed:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._pieces.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(
        self,
        transport: FaultyTransport,
        inner: httpx.AsyncByteStream,
        is_watch: bool,
        is_error: bool,
        patience: float | None,
    ) -> None:
        self._transport = transport
        self._inner = inner
        self._pieces = inner.__aiter__()
        self._is_watch = is_watch
        self._is_error = is_error
        self._patience = patience
        self._rest = b""
        self._ending: Ending | None = None
        self._is_open = True
        transport.open_bodies += 1

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if self._ending is not None:
            await self._end(self._ending)
        piece, self._rest = self._rest, b""
        while not piece:
            piece = await self._pieces.__anext__()
            if not self._is_error:
                piece = self._transport.spoil(piece)
            if self._is_watch:
                piece = self._transport.process_frame(piece)
                if self._transport.gathers:
                    piece += await self._gather()
            if piece and self._transport.cuts:
                cut = self._transport.cuts.popleft()
                piece, self._ending = piece[: int(len(piece) * cut.at)], cut.how
                if not piece:
                    await self._end(cut.how)
        if self._transport.halves and self._ending is None and len(piece) > 1:
            middle = len(piece) // 2
            piece, self._rest = piece[:middle], piece[middle:]
        return piece

    async def _gather(self) -> bytes:
        gathered = b""
        try:
            with trio.move_on_after(GATHER_PERIOD):
                while True:
                    piece = await self._pieces.__anext__()
                    gathered += self._transport.process_frame(self._transport.spoil(piece))
        except StopAsyncIteration:
            self._ending = "clean"
        except httpx.TransportError:
            self._ending = "reset"
        return gathered

    async def _end(self, how: Ending) -> None:
        if how == "clean":
            await trio.lowlevel.checkpoint()
            raise StopAsyncIteration
        if how == "stall":
            self._transport.has_stalled = True
            if self._patience is None:
                await trio.sleep_forever()
            else:
                await trio.sleep(self._patience)
        await trio.lowlevel.checkpoint()
        raise httpx.ReadError("connection reset by peer")

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._transport.open_bodies -= 1
        await self._inner.aclose()
