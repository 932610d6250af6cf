"""Write one series of events to the server.

Source: client-go ``tools/events/event_broadcaster.go``, ``recordEvent``; ``tools/record/event.go`` for retries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import QUICK_TRIES, REQUEST_ERRORS, Outcome, QuickTries, outcome_of, retry_after
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
from ._options import EventRecorderOptions
from ._series import Series

R = TypeVar("R")

FAILURES: Final = (*REQUEST_ERRORS, ValueError)
"""Errors of a request; a ``ValueError`` means that an event cannot be encoded."""


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed later.

    client-go's recorder retries only without a response, but its REST client has already retried 429 and 5xx.
    """
    if isinstance(error, ConnectionFailedError):
        return not error.permanent
    if isinstance(error, ConflictError):
        return not isinstance(error, AlreadyExistsError)
    return isinstance(error, UnexpectedResponseError | TooManyRequestsError | ServerError)


@final
@attrs.define(eq=False)
class EventWriter:
    """Creates and patches Events."""

    _options: EventRecorderOptions
    _on_retry: Callable[[Series, Exception], None]
    _new_stamp: Callable[[], int]
    _quick_tries: QuickTries = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._quick_tries = QuickTries(QUICK_TRIES, self._options.rng)

    async def write(self, series: Series, *, tries: int) -> Exception | None:
        """Write the current count of a series, and retry transient errors.

        A failed connection is tried again after 0.5 to 1 s, ten times since the last success, before its failures count
        as tries; not if there is only one.
        This takes at most ``max_tries * retry_period``, because the other series wait.  If the server asks for a longer
        delay than is left, nothing is sent for the rest of that time.

        Returns:
            The error after which it gave up, or None.
        """
        delay = self._options.retry_period * self._options.rng.random()
        end = trio.current_time() + self._options.max_tries * self._options.retry_period
        while True:
            count = series.count
            try:
                await self._store(series, count, end)
            except FAILURES as error:
                is_lost = tries > 1 and outcome_of(error) is Outcome.LOST
                if is_lost and (quick := self._quick_tries.next_delay()) is not None:
                    next_try = trio.current_time() + quick
                else:
                    tries -= 1
                    if not tries or not is_transient(error):
                        return error
                    next_try = trio.current_time() + max(delay, retry_after(error, self._options.rng))
                    delay = self._options.retry_period
                if next_try >= end:
                    await trio.sleep_until(end)  # the server asked for this delay, so the next series waits as well
                    return error
                self._on_retry(series, error)
            else:
                series.written, series.written_at = count, trio.current_time()
                self._quick_tries.reset()
                return None
            await trio.sleep_until(next_try)

    async def _store(self, series: Series, count: int, end: float) -> None:
        if series.is_stored:
            with suppress(NotFoundError):  # deleted, or expired: servers keep Events for an hour by default
                await self._patch(series, count, end)
                return
        was_sent, series.was_sent = series.was_sent, True
        try:
            await self._create(series, count, end)
        except AlreadyExistsError:
            if not was_sent:
                series.rename(self._new_stamp())  # another client's Event has this name
                await self._create(series, count, end)
            elif count > 1:
                # An earlier request without a response has created it, perhaps with a lower count.
                await self._patch(series, count, end)
        series.is_stored = True

    async def _create(self, series: Series, count: int, end: float) -> None:
        await self._send(series, series.api.create(series.event(count)), end)

    async def _patch(self, series: Series, count: int, end: float) -> None:
        repetitions = series.repetitions(count)
        assert repetitions is not None
        await self._send(series, series.api.patch(series.name, {"series": to_dict(repetitions)}), end)

    async def _send(self, series: Series, request: Awaitable[R], end: float) -> R:
        now = trio.current_time()
        deadline = min(now + self._options.request_deadline, end)
        with trio.move_on_at(deadline):
            return await request
        raise ConnectionFailedError(f"event {series}: no response within {max(0.0, deadline - now):g} s")
