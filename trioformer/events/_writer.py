"""Bring one series of events to the server.

Source: client-go ``tools/events/event_broadcaster.go``, ``recordEvent``; when to try again ``tools/record/event.go``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, retry_after
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
"""What can become of a request; a ``ValueError`` says that an event cannot be encoded."""


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed later: it says nothing against the event.

    client-go's recorder tries again only when there was no answer, but its requests have repeated 429 and 5xx already.
    """
    if isinstance(error, ConnectionFailedError):
        return not error.permanent
    if isinstance(error, ConflictError):
        return not isinstance(error, AlreadyExistsError)
    return isinstance(error, UnexpectedResponseError | TooManyRequestsError | ServerError)


@final
@attrs.define(eq=False)
class EventWriter:
    """Creates and changes Events."""

    _options: EventRecorderOptions
    _on_retry: Callable[[Series, Exception], None]
    _new_stamp: Callable[[], int]

    async def write(self, series: Series, *, tries: int) -> Exception | None:
        """Let the server know how often a series has happened until now.

        That takes ``max_tries * retry_period`` at most, whatever the server does, since the other series wait.  If it
        asks for more patience than is left of that, it is left alone for the rest, too.

        Returns:
            Why that was given up, or None.
        """
        delay = self._options.retry_period * self._options.rng.random()
        end = trio.current_time() + self._options.max_tries * self._options.retry_period
        while True:
            count = series.count
            try:
                await self._store(series, count, end)
            except FAILURES as error:
                tries -= 1
                if not tries or not is_passing(error):
                    return error
                next_try = trio.current_time() + max(delay, retry_after(error, self._options.rng))
                if next_try >= end:
                    await trio.sleep_until(end)  # or the next series would ask a server that wants to be left alone
                    return error
                self._on_retry(series, error)
            else:
                series.written, series.written_at = count, trio.current_time()
                return None
            await trio.sleep_until(next_try)
            delay = self._options.retry_period

    async def _store(self, series: Series, count: int, end: float) -> None:
        if series.is_stored:
            with suppress(NotFoundError):  # deleted, or expired, as Events do in an hour or so
                await self._patch(series, count, end)
                return
        was_sent, series.was_sent = series.was_sent, True
        try:
            await self._create(series, count, end)
        except AlreadyExistsError:
            if not was_sent:
                series.rename(self._new_stamp())  # it is somebody else's
                await self._create(series, count, end)
            elif count > 1:
                # The request that created it was carried out, although its answer did not come, and with fewer perhaps.
                await self._patch(series, count, end)
        series.is_stored = True

    async def _create(self, series: Series, count: int, end: float) -> None:
        await self._ask(series, series.api.create(series.event(count)), end)

    async def _patch(self, series: Series, count: int, end: float) -> None:
        repetitions = series.repetitions(count)
        assert repetitions is not None
        await self._ask(series, series.api.patch(series.name, {"series": to_dict(repetitions)}), end)

    async def _ask(self, series: Series, request: Awaitable[R], end: float) -> R:
        now = trio.current_time()
        deadline = min(now + self._options.request_deadline, end)
        with trio.move_on_at(deadline):
            return await request
        raise ConnectionFailedError(f"event {series}: no answer came within {max(0.0, deadline - now):g} s")
