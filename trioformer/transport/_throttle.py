"""Limits the rate of requests: a token bucket on trio's clock.

Source: client-go ``util/flowcontrol`` and ``rest``: the wait is not part of the request, and watches do not wait.
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import trio
from attrs import validators

from .._retry import TokenBucket

BURST: Final = 10
"""Requests that may be sent without waiting after a pause (client-go's default)."""


@final
@attrs.define(eq=False)
class Throttle:
    """Lets requests go at a limited rate, in the order in which they ask.

    Only the first request that waits looks at the bucket, and takes its token when it wakes: a cancelled request has
    nothing to give back, and after a stall of the process at most ``burst`` requests go at once.
    """

    qps: float = attrs.field(
        default=5.0, validator=[validators.gt(0), validators.lt(math.inf)], on_setattr=attrs.setters.frozen
    )
    """Requests per second."""
    burst: int = attrs.field(default=BURST, validator=validators.ge(1), on_setattr=attrs.setters.frozen)
    """Requests that may be sent without waiting after a pause."""
    _bucket: TokenBucket = attrs.field(init=False)
    _turns: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The requests that wait, in the order in which they asked; the deadline of the first is when it may go."""

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    async def wait(self) -> None:
        """Wait until a token is available, and take it.

        Cancellation: no token is taken.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        # no checkpoint between looking at the bucket and taking the token
        if not self._turns and self._bucket.delay() <= 0:
            self._bucket.take()
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        turn = trio.CancelScope()
        self._turns[turn] = None
        self._wake_first()
        try:
            with turn:
                await trio.sleep_forever()
            self._bucket.take()
        finally:
            del self._turns[turn]
            self._wake_first()

    def _wake_first(self) -> None:
        # The first request alone has a deadline: trio runs the tasks that wake together in any order.
        first = next(iter(self._turns), None)
        if first is not None:
            first.deadline = trio.current_time() + self._bucket.delay()
