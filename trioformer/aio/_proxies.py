"""The clients, APIs and streams of asyncio programs; ``_proxies.pyi`` has their types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, final

from .._doors import Proxy, Stream, proxy_of
from .._util import UnopenedContext
from ._guest import Guest, Opening


@final
class Client(Proxy):
    """A client for asyncio programs, with the methods of :class:`trioformer.client.Client`."""

    __slots__ = ()


@final
class Api(Proxy):
    """The objects of one kind for asyncio programs, with the methods of :class:`trioformer.client.Api`."""

    __slots__ = ()


@final
class WatchStream(Stream):
    """An open watch, an open log or the pages of a list: an asynchronous iterator for asyncio programs."""

    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self._ready:
            if not await self._door.call(self._receive):
                raise StopAsyncIteration
        return self._ready.popleft()


class Door:
    """Runs the methods of proxies in the guest of their loop."""

    proxies = (Client, Api, WatchStream)

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    async def call(self, function: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        """Call a trio function."""
        return proxy_of(self, await self.guest.call(function, *args, **kwargs))

    def open(self, manager: AbstractAsyncContextManager[Any, bool | None]) -> Any:
        """Return an asyncio context manager for one of trio."""

        async def enter(stack: AsyncExitStack) -> Any:
            return proxy_of(self, await self.guest.open(manager, stack))

        return UnopenedContext(Opening(enter), "stream", "async with ... as events:")
