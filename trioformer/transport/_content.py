"""The body of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import final

import httpx


@final
class Content(httpx.AsyncByteStream):
    """The body of a request, in one piece.

    httpx's own class is an async generator.
    A request that is cancelled while it is sent leaves the generator suspended, for the garbage collector to find.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._rest = [data] if data else []

    def __aiter__(self) -> _Once:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()
