"""The clients, APIs and streams of threads; ``_proxies.pyi`` has their types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, final

from .._doors import Proxy, Stream, proxy_of
from ._portal import Portal


@final
class Client(Proxy):
    """A client for threads, with the methods of :class:`trioformer.client.Client`."""

    __slots__ = ()


@final
class Api(Proxy):
    """The objects of one kind for threads, with the methods of :class:`trioformer.client.Api`."""

    __slots__ = ()


@final
class WatchStream(Stream):
    """An open watch, an open log or the pages of a list: an iterator for threads."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._ready:
            if not self._door.call(self._receive):
                raise StopIteration
        return self._ready.popleft()


class Door:
    """Runs the methods of proxies in the portal."""

    proxies = (Client, Api, WatchStream)

    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def call(self, function: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        """Call a trio function."""
        return proxy_of(self, self.portal.call(function, *args, **kwargs))

    @contextmanager
    def open(self, manager: AbstractAsyncContextManager[Any, bool | None]) -> Generator[Any, None, None]:
        """Return a context manager for one of trio."""
        with self.portal.open(manager) as value:
            yield proxy_of(self, value)
