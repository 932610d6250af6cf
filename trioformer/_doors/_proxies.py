"""Objects that run the methods of a client, an API or a stream in trio, for a program outside of trio.

Each door has its own classes, because an asynchronous and a synchronous program iterate and wait differently.
"""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, ParamSpec, Protocol, Self, TypeVar

import trio

from ..client import Api, Client, WatchStream

P = ParamSpec("P")
R = TypeVar("R")

KINDS: Final[tuple[type[Any], ...]] = (Client, Api, AsyncIterator)
"""The kinds of objects in trio that have a proxy."""


def with_parameters_of(source: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Return a decorator that gives a function the parameters of another one, for type checkers and help()."""

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        own, given = inspect.signature(function), inspect.signature(source)
        # what inspect.unwrap() and inspect.signature() find
        function.__wrapped__ = source  # type: ignore[attr-defined]
        function.__signature__ = given.replace(return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        return function

    return decorate


class Door(Protocol):
    """What the proxies of a door need.  The results are awaited or entered in the way of the door's program."""

    @property
    def proxies(self) -> tuple[type[Proxy], type[Proxy], type[Proxy]]:
        """The door's classes for each of ``KINDS``."""
        ...

    def call(self, function: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        """Call a trio function."""
        ...

    def open(self, manager: AbstractAsyncContextManager[Any, bool | None]) -> Any:
        """Enter a context manager of trio."""
        ...


class Proxy:
    """The base class of a door's clients, APIs and streams.

    A coroutine method runs in trio.  A context manager is held open by a task in trio.  Everything else is read or
    called directly.
    """

    __slots__ = ("_door", "_target")

    def __init__(self, door: Door, target: Any) -> None:
        self._door = door
        self._target = target

    def __class_getitem__(cls, kind: object) -> type[Self]:
        return cls

    def __repr__(self) -> str:
        return repr(self._target)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for name in dir(self._target) if not name.startswith("_"))})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(
                f"{type(self).__name__!r} object of a door has no attribute {name!r}; pass it to a function of "
                "trioformer with its method run() or open()"
            )
        value = getattr(self._target, name)
        if not inspect.ismethod(value):
            return converted(self._door, value)
        if inspect.iscoroutinefunction(value):
            return functools.wraps(value)(functools.partial(self._door.call, value))

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            return converted(self._door, value(*args, **kwargs))

        return call

    def run(self, function: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any:
        """Call a trio function with the trio object behind this one, followed by the arguments."""
        return self._door.call(function, self._target, *args, **kwargs)

    def open(
        self, function: Callable[..., AbstractAsyncContextManager[Any, bool | None]], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Enter the context manager that a function returns for the trio object behind this one."""
        return self._door.open(function(self._target, *args, **kwargs))


class Stream(Proxy):
    """The base class of a door's iterators, which take several events of a watch at a time."""

    __slots__ = ("_ready",)

    def __init__(self, door: Door, target: Any) -> None:
        super().__init__(door, target)
        self._ready: deque[Any] = deque()
        """What has been received and not been read.  It stays here if the reader is cancelled."""

    async def _receive(self) -> bool:
        """Wait for the next items in trio, and return False at the end of the stream."""
        try:
            if isinstance(self._target, WatchStream):
                self._ready.extend(await self._target.receive_batch())
            else:
                self._ready.append(await anext(self._target))
        except (trio.EndOfChannel, StopAsyncIteration):
            return False
        return True


def converted(door: Door, value: Any) -> Any:
    """Return what a method has returned for the door's program: its own object for a trio object.

    A context manager, such as a watch, is not open yet.
    """
    return door.open(value) if isinstance(value, AbstractAsyncContextManager) else proxy_of(door, value)


def proxy_of(door: Door, value: Any) -> Any:
    """Return the door's object for a client, an API or an open stream, and every other value unchanged."""
    for kind, proxy in zip(KINDS, door.proxies, strict=True):
        if isinstance(value, kind):
            return proxy(door, value)
    return value
