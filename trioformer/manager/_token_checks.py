"""Ask a function of the program which bearer tokens may read the metrics.

The function asks a server, and anyone who reaches the port can call it with any tokens.
So it has a deadline, few calls run at once, and results are kept for some seconds.  The port then has places left for
the probes, and the server is not asked at each scrape.

controller-runtime's filter keeps results longer: TokenReviews for a minute, and SubjectAccessReviews for five minutes,
or for 30 seconds if they refuse.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, final

import attrs
import trio

from .._secret import Secret
from .._serving import Message
from ._http_options import TokenCheck

MAX_CHECKS: Final = 8
"""The number of concurrent checks, a small part of the connections of the port."""
CHECK_PERIOD: Final = 5.0
"""Seconds for a check, less than the 10 seconds that Prometheus waits, so that it receives the response."""
KEEP_PERIOD: Final = 10.0
"""Seconds to keep a result."""
MAX_KEPT: Final = 256
"""The number of results to keep, of each sort."""


@final
@attrs.define(eq=False)
class TokenChecks:
    """Calls the function within these limits."""

    _check: TokenCheck
    _running: int = attrs.field(default=0, init=False)
    _kept: dict[bool, dict[bytes, float]] = attrs.field(factory=lambda: {True: {}, False: {}}, init=False)
    """The expiry times of results, the oldest one first.  Refusals do not displace other results."""
    _key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), init=False, repr=False)

    async def is_allowed(self, token: Secret[str], receive: Callable[[], Awaitable[Message]]) -> bool | None:
        """Return whether a token may read the metrics, or None if that is not known.

        The result is unknown if too many checks run, or if the client has disconnected.

        Args:
            token: The token.
            receive: Receives the ASGI messages of the request; its client's disconnect ends the check.

        Raises:
            TooSlowError: The check took too long.
            Exception: The exception of the check.
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
            answer = await self._ask(token, receive)
        finally:
            self._running -= 1
        if answer is not None:
            self._keep(digest, is_allowed=answer)
        return answer

    async def _ask(self, token: Secret[str], receive: Callable[[], Awaitable[Message]]) -> bool | None:
        answer: bool | None = None
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_disconnect, receive, nursery.cancel_scope)
            try:
                with trio.fail_after(CHECK_PERIOD):
                    answer = bool(await _ask(self._check, token))
            except Exception as exc:  # noqa: BLE001  # raised below, outside of the nursery, which would put it in a group
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer

    def _keep(self, digest: bytes, *, is_allowed: bool) -> None:
        self._kept[not is_allowed].pop(digest, None)
        kept = self._kept[is_allowed]
        kept.pop(digest, None)
        if len(kept) >= MAX_KEPT:
            del kept[next(iter(kept))]
        kept[digest] = trio.current_time() + KEEP_PERIOD


async def _cancel_on_disconnect(receive: Callable[[], Awaitable[Message]], scope: trio.CancelScope) -> None:
    await receive()  # the body
    await receive()
    scope.cancel()


async def _ask(check: TokenCheck, token: Secret[str]) -> bool:
    checking = check(token.reveal())
    if not hasattr(checking, "__await__"):  # the error of await does not name the function
        raise TypeError("check_metrics_token must be an async function")
    return await checking
