"""So many requests a second: a token bucket on trio's clock.

Source: client-go ``util/flowcontrol`` and ``rest``: the wait is no part of the request, and watches do not wait.
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import trio
from attrs import validators

BURST: Final = 10
"""Requests that need not wait when there was none for long (client-go's default)."""


@final
@attrs.define(eq=False)
class Throttle:
    """Lets tasks pass in the order in which they came."""

    qps: float = attrs.field(default=5.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """How many a second."""
    burst: int = attrs.field(default=BURST, validator=validators.ge(1))
    """How many at once after a pause."""
    _tokens: float = attrs.field(init=False)
    _counted_at: float = attrs.field(default=-math.inf, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.burst

    async def wait(self) -> None:
        """Wait for a token, and take it.

        Cancellation: takes none.
        """
        # The lock is the line: who has it waits for the next token, and takes it only then.
        async with self._turn:
            self._count()
            if self._tokens < 1:
                await trio.sleep((1 - self._tokens) / self.qps)
                self._count()
            self._tokens -= 1

    def _count(self) -> None:
        now = trio.current_time()
        self._tokens = min(float(self.burst), self._tokens + (now - self._counted_at) * self.qps)
        self._counted_at = now
