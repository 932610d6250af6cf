"""Token checks: a function in the program decides which bearer tokens may read the metrics.

The function usually sends requests to a server, and any client that can reach the port can trigger a call with any
token. So each call has a deadline, the number of concurrent calls is limited, and results are kept for a few seconds.
This keeps connections available for probes, and not every scrape causes a request to the server.

In controller-runtime, results are kept longer: for a minute after a TokenReview, for five minutes after a
SubjectAccessReview that allows the request, and for 30 seconds after one that denies it.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from functools import partial
from typing import Final, final

import attrs
import trio

from .._asgi import Receive, until_disconnect
from .._secret import Secret
from ._http_options import TokenCheck

MAX_CHECKS: Final = 8
"""The largest number of concurrent checks, which is a small part of the connections that the server accepts."""
CHECK_PERIOD: Final = 5.0
"""The deadline of a check in seconds, which is shorter than the 10 seconds that Prometheus waits for the response."""
KEEP_PERIOD: Final = 10.0
"""How long a result is kept, in seconds."""
MAX_KEPT: Final = 256
"""The largest number of kept results that allow access, and of kept results that deny it."""


@final
@attrs.define(eq=False)
class TokenChecks:
    """A wrapper that limits the calls to the function."""

    _check: TokenCheck
    _running: int = attrs.field(default=0, init=False)
    _kept: dict[bool, dict[bytes, float]] = attrs.field(factory=lambda: {True: {}, False: {}}, init=False)
    """The expiry times of kept results, beginning with the oldest one.  Results that deny access never displace
    results that allow it."""
    _key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), init=False, repr=False)

    async def is_allowed(self, token: Secret[str], receive: Receive) -> bool | None:
        """Return whether a token may read the metrics, or None if the result is unknown.

        The result is unknown if too many checks are running, or if the client has disconnected.

        Args:
            token: The bearer token of the request.
            receive: The ASGI function that receives the messages of the request.  The check ends when the client
                disconnects.

        Raises:
            TooSlowError: The function did not return before the deadline.
            Exception: The function raised an exception.
        """
        digest = hashlib.blake2b(token.reveal().encode(), key=self._key, digest_size=32).digest()
        for is_allowed, kept in self._kept.items():
            if kept.get(digest, -math.inf) > trio.current_time():
                await trio.lowlevel.checkpoint()
                return is_allowed
        if self._running >= MAX_CHECKS:
            await trio.lowlevel.checkpoint()
            return None
        self._running += 1
        try:
            answer = await until_disconnect(receive, partial(_ask, self._check, token))
        finally:
            self._running -= 1
        if answer is not None:
            self._keep(digest, is_allowed=answer)
        return answer

    def _keep(self, digest: bytes, *, is_allowed: bool) -> None:
        self._kept[not is_allowed].pop(digest, None)
        kept = self._kept[is_allowed]
        kept.pop(digest, None)
        if len(kept) >= MAX_KEPT:
            del kept[next(iter(kept))]
        kept[digest] = trio.current_time() + KEEP_PERIOD


async def _ask(check: TokenCheck, token: Secret[str]) -> bool:
    checking = check(token.reveal())
    if not hasattr(checking, "__await__"):  # the error of await does not name the function
        raise TypeError("check_metrics_token must be an async function")
    with trio.fail_after(CHECK_PERIOD):
        return bool(await checking)
