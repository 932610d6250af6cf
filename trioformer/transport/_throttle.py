"""Limits the rate of requests: a token bucket on trio's clock.

Source: client-go ``util/flowcontrol`` and ``rest``: the wait is not part of the request, and watches do not wait.
"""

from __future__ import annotations

import math
from collections import deque
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

    A request takes a token from the bucket and sleeps until that token comes.
    A request that is cancelled gives its token back, as ``golang.org/x/time/rate`` cancels a reservation; here the
    requests behind it move up.
    """

    qps: float = attrs.field(default=5.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """Requests per second."""
    burst: int = attrs.field(default=BURST, validator=validators.ge(1))
    """Requests that may be sent without waiting after a pause."""
    _bucket: TokenBucket = attrs.field(init=False)
    # Both have an entry for each request that waits, in the order in which the requests asked; which request gets which
    # token is decided when the token comes.
    _turns: deque[trio.CancelScope] = attrs.field(factory=deque[trio.CancelScope], init=False)
    _token_times: deque[float] = attrs.field(factory=deque[float], init=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    async def wait(self) -> None:
        """Take a token, and wait until it comes.

        Cancellation: the token is given back.
        """
        turn = trio.CancelScope()
        self._turns.append(turn)
        self._token_times.append(trio.current_time() + self._bucket.take())
        self._wake_first()
        try:
            with turn:
                await trio.sleep_forever()
        except BaseException:
            self._turns.remove(turn)
            self._token_times.pop()
            self._bucket.give_back()
            raise
        else:
            self._turns.popleft()
            self._token_times.popleft()
        finally:
            self._wake_first()

    def _wake_first(self) -> None:
        # The first request alone has a deadline: trio runs the tasks that wake together in any order.
        if self._turns:
            self._turns[0].deadline = self._token_times[0]
