"""Write a series of events to the server.

Source: client-go ``tools/events/event_broadcaster.go``, ``recordEvent``; ``tools/record/event.go`` for retries.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import QUICK_TRIES, REQUEST_ERRORS, Outcome, QuickTries, outcome_of, retry_after
from ..client._internal import obtain_credential
from ..errors import (
    AlreadyExistsError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnexpectedResponseError,
)
from ..models import to_dict
from ._series import Series

R = TypeVar("R")

FAILURES: Final = (*REQUEST_ERRORS, ValueError)
"""The errors of a request.  A ``ValueError`` means that an Event cannot be encoded."""

MAX_TRIES: Final = 12
"""The maximum number of tries for an Event whose requests fail with transient errors (client-go
``tools/record/event.go``).  The Event is dropped after the last try."""

RETRY_PERIOD: Final = 10.0
"""The time between two tries, in seconds.  A random factor shortens the first delay.  A longer ``Retry-After`` from
the server takes precedence."""

REQUEST_DEADLINE: Final = 30.0
"""The maximum duration of a single request, in seconds."""


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed later.

    client-go's recorder retries only requests without a response, because its REST client already retries after 429
    and 5xx.
    """
    if isinstance(error, ConnectionFailedError):
        return not error.permanent
    if isinstance(error, ConflictError):
        return not isinstance(error, AlreadyExistsError)
    return isinstance(error, UnexpectedResponseError | TooManyRequestsError | ServerError)


@final
@attrs.define(eq=False)
class EventWriter:
    """Creates and patches Events, and determines the delay of a retry."""

    _rng: random.Random
    _new_stamp: Callable[[], int]
    _quick_tries: QuickTries = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._quick_tries = QuickTries(QUICK_TRIES, self._rng)

    async def write(self, series: Series) -> None:
        """Write the current count of a series without retries.

        Raises:
            StatusError, ConnectionFailedError, UnexpectedResponseError, DecodeError: If the request fails.
            ValueError: If the Event cannot be encoded.
        """
        count = series.count
        await self._store(series, count)
        series.written, series.written_at = count, trio.current_time()
        series.tries, series.quick_tries, series.was_delayed = 0, 0, False
        self._quick_tries.reset()

    def delay_after(self, series: Series, error: Exception, *, counts: bool) -> float | None:
        """Return the delay until the next try of a series in seconds, or None if the series must be dropped.

        After a failed connection, the request is first retried within a second.  There are at most ten such quick
        retries for a series, and at most ten for all series since the last success.  They do not count as tries.

        Args:
            series: The series whose write failed.
            error: The error of the write.
            counts: Whether a transient failure counts as a try.
        """
        is_quick = outcome_of(error) is Outcome.LOST and series.quick_tries < QUICK_TRIES
        if is_quick and (quick := self._quick_tries.next_delay()) is not None:
            series.quick_tries += 1
            return quick
        series.tries += counts
        if series.tries >= MAX_TRIES or not is_transient(error):
            return None
        is_first, series.was_delayed = not series.was_delayed, True
        delay = RETRY_PERIOD * (self._rng.random() if is_first else 1)
        return max(delay, retry_after(error, self._rng))

    async def _store(self, series: Series, count: int) -> None:
        if series.is_stored:
            with suppress(NotFoundError):  # deleted, or expired: servers keep Events for an hour by default
                await self._patch(series, count)
                return
        was_sent, series.was_sent = series.was_sent, True
        try:
            await self._create(series, count)
        except AlreadyExistsError:
            if not was_sent:
                series.rename(self._new_stamp())  # an Event of another client has this name
                await self._create(series, count)
            elif count > 1:
                # An earlier request without a response has created it, perhaps with a lower count.
                await self._patch(series, count)
        series.is_stored = True

    async def _create(self, series: Series, count: int) -> None:
        await self._send(series, partial(series.api.create, series.event(count)))

    async def _patch(self, series: Series, count: int) -> None:
        repetitions = series.repetitions(count)
        assert repetitions is not None
        await self._send(series, partial(series.api.patch, series.name, {"series": to_dict(repetitions)}))

    async def _send(self, series: Series, request: Callable[[], Awaitable[R]]) -> R:
        await obtain_credential(series.api)  # a plugin may take longer than the deadline of a request
        with trio.move_on_after(REQUEST_DEADLINE):
            return await request()
        raise ConnectionFailedError(f"event {series}: no response within {REQUEST_DEADLINE:g} s")
