"""So many requests a second: a token bucket on trio's clock.

Source: client-go ``util/flowcontrol`` and ``rest``: the wait is no part of the request, and watches do not wait.
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import trio
from attrs import validators

from .._retry import TokenBucket

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
    _bucket: TokenBucket = attrs.field(init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    async def wait(self) -> None:
        """Wait for a token, and take it.

        Cancellation: takes none.
        """
        # The lock is the line: who has it waits for the next token, and takes it only then.
        async with self._turn:
            delay = self._bucket.delay()
            if delay > 0:
                await trio.sleep(delay)
            self._bucket.take()
