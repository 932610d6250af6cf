"""The block in which a worker processes a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from types import TracebackType
from typing import Generic, TypeVar, final

import attrs

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False, repr=False)
class Take(Generic[K]):
    """The context manager of ``take()``, implemented as a class because a generator would be much slower."""

    _next_key: Callable[[], Awaitable[K]]
    _finish: Callable[[K, BaseException | None], None]
    _key: K = attrs.field(init=False)
    _is_used: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> K:
        if self._is_used:
            raise RuntimeError("this take() was already entered; each `async with` requires a new call to take()")
        self._is_used = True
        self._key = await self._next_key()
        return self._key

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finish(self._key, error)
