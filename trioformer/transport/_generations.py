"""The connections of a client: those for requests, and those for watches."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import final

import attrs
import httpx

from ._credentials import Credential
from ._tls import TLS


@final
@attrs.frozen(eq=False)
class Generation:
    """Connections that use the same certificates."""

    requests: httpx.AsyncBaseTransport
    """Those for requests and lists."""
    watches: httpx.AsyncBaseTransport
    """Those for watches, one each."""


@final
@attrs.define(eq=False)
class Generations:
    """The connections of a client; an async context manager that closes them."""

    present: Generation
    """The connections that the next request gets."""
    _tls: TLS | None
    _opened: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False)

    def current(self, credential: Credential) -> Generation:
        """Return the connections for a request that is sent now with ``credential``."""
        if self._tls is not None:
            self._tls.refresh()
        return self.present

    async def __aenter__(self) -> Generations:
        await self._opened.enter_async_context(self.present.requests)
        await self._opened.enter_async_context(self.present.watches)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.__aexit__(kind, exc, traceback)
