"""The way to an embedded API server, and what can go wrong on it: an httpx transport around the in-memory one."""

from __future__ import annotations

import math
import re
from collections import deque
from typing import Final, Literal, TypeAlias

import attrs
import httpx
import trio

Ending: TypeAlias = Literal["clean", "reset", "stall"]
"""The body ends as if it were whole; the connection breaks; nothing comes any more."""

MOMENT: Final = 2.0
"""Seconds for which frames are gathered."""
_PORTAL: Final = b"<!doctype html><title>Please log in</title>"
_METADATA: Final = re.compile(rb'"metadata":\{')


@attrs.frozen
class Cut:
    """Where the next piece of a body is cut, and how the body ends there."""

    at: float
    """The share of the piece that still comes."""
    how: Ending


@attrs.define(eq=False)
class Wire(httpx.AsyncBaseTransport):
    """Carries requests to an embedded server, and fails as it is ordered to."""

    inner: httpx.AsyncBaseTransport
    ignores_streaming: bool = False
    """Whether ``sendInitialEvents`` gets lost, as with a server or proxy that does not know it."""
    cuts: deque[Cut] = attrs.field(factory=deque)
    """For the next pieces of bodies, whichever come first."""
    portals: int = 0
    """How many of the next requests are answered by something that is no API server."""
    corrupted: int = 0
    """How many of the next events hold an object that does not decode."""
    has_corrupted: bool = False
    """Whether an event has been spoiled since this was last set to False."""
    loses_bookmarks: bool = False
    """Whether bookmarks get lost, those after a streamed list too."""
    halves: bool = False
    """Whether everything comes in two pieces."""
    gathers: bool = False
    """Whether a watch's frames come together with those of the next moments."""
    closed_until: float = -math.inf
    """When the next request may come, after an answer that said so."""
    has_stalled: bool = False
    """Whether a body has stopped without an end since this was last set to False."""
    open_bodies: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert trio.current_time() >= self.closed_until, "a Retry-After was not heeded"
        is_watch = request.url.params.get("watch") in ("1", "true")
        if self.portals:
            self.portals -= 1
            await trio.lowlevel.checkpoint()
            return httpx.Response(200, headers={"content-type": "text/html"}, content=_PORTAL, request=request)
        if self.ignores_streaming and is_watch:
            for name in ("sendInitialEvents", "resourceVersionMatch"):
                request.url = request.url.copy_remove_param(name)
        response = await self.inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        patience = request.extensions["timeout"]["read"]
        is_refusal = response.status_code != 200
        response.stream = _Body(self, response.stream, is_watch and not is_refusal, is_refusal, patience)
        return response

    def heal(self) -> None:
        """Forget every order that has not been carried out."""
        self.cuts.clear()
        self.portals = self.corrupted = 0
        self.loses_bookmarks = self.gathers = False

    def pass_on(self, frame: bytes) -> bytes:
        """What becomes of a watch's frame."""
        if frame.startswith(b'{"type":"BOOKMARK"'):
            return b"" if self.loses_bookmarks else frame
        if self.corrupted and not frame.startswith(b'{"type":"ERROR"'):
            self.corrupted -= 1
            self.has_corrupted = True
            # the first member of that name is the object's own; one more is what the key can still be found in
            return _METADATA.sub(b'"metadata":{"uid":[],', frame, count=1)
        return frame


class _Body(httpx.AsyncByteStream):
    def __init__(
        self, wire: Wire, inner: httpx.AsyncByteStream, is_watch: bool, is_refusal: bool, patience: float | None
    ) -> None:
        self._wire = wire
        self._inner = inner
        self._pieces = inner.__aiter__()
        self._is_watch = is_watch
        self._is_refusal = is_refusal
        self._patience = patience
        self._rest = b""
        self._ending: Ending | None = None
        self._is_open = True
        wire.open_bodies += 1

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if self._ending is not None:
            await self._end(self._ending)
        piece, self._rest = self._rest, b""
        while not piece:
            piece = await self._pieces.__anext__()
            if self._is_watch:
                piece = self._wire.pass_on(piece)
                if self._wire.gathers:
                    piece += await self._gather()
            if piece and self._wire.cuts:
                cut = self._wire.cuts.popleft()
                if self._is_refusal:
                    self._wire.closed_until = -math.inf  # half a refusal is a broken connection
                piece, self._ending = piece[: int(len(piece) * cut.at)], cut.how
                if not piece:
                    await self._end(cut.how)
        if self._wire.halves and self._ending is None and len(piece) > 1:
            middle = len(piece) // 2
            piece, self._rest = piece[:middle], piece[middle:]
        return piece

    async def _gather(self) -> bytes:
        gathered = b""
        try:
            with trio.move_on_after(MOMENT):
                while True:
                    gathered += self._wire.pass_on(await self._pieces.__anext__())
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
            self._wire.has_stalled = True
            if self._patience is None:
                await trio.sleep_forever()
            else:
                await trio.sleep(self._patience)
        await trio.lowlevel.checkpoint()
        raise httpx.ReadError("connection reset by peer")

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._wire.open_bodies -= 1
        await self._inner.aclose()
