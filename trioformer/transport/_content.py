"""A request's body, for httpx."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import final

import httpx


@final
class Content(httpx.AsyncByteStream):
    """The bytes of a request's body, handed over in one piece.

    httpx's own is an async generator.
    A request that is cancelled while it is being sent leaves that suspended, and the garbage collector finds it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._left = [data] if data else []

    def __aiter__(self) -> _Once:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()
