"""Bring one series of events to the server.

Source: client-go ``tools/events/event_broadcaster.go``, ``recordEvent``; when to try again ``tools/record/event.go``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar, final

import attrs
import trio

from ..errors import (
    AlreadyExistsError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnexpectedAnswerError,
)
from ..models import to_dict
from ..watchtools import RETRIED, retry_after
from ._event_options import EventRecorderOptions
from ._event_series import Series

R = TypeVar("R")

FAILURES: Final = (*RETRIED, ValueError)
"""What can become of a request; a ``ValueError`` says that an event cannot be encoded."""


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed later: it says nothing against the event.

    client-go's recorder tries again only when there was no answer, but its requests have repeated 429 and 5xx already.
    """
    if isinstance(error, ConnectionFailedError):
        return not error.permanent
    if isinstance(error, ConflictError):
        return not isinstance(error, AlreadyExistsError)
    return isinstance(error, UnexpectedAnswerError | TooManyRequestsError | ServerError)


@final
@attrs.define(eq=False)
class EventWriter:
    """Creates and changes Events."""

    _options: EventRecorderOptions
    _on_retry: Callable[[Series, Exception], None]
    _new_stamp: Callable[[], int]

    async def write(self, series: Series, *, tries: int) -> Exception | None:
        """Let the server know how often a series has happened until now.

        Returns:
            Why that was given up, or None.
        """
        delay = self._options.retry_period * self._options.rng.random()
        while True:
            count = series.count
            try:
                await self._store(series, count)
            except FAILURES as error:
                tries -= 1
                if not tries or not is_passing(error):
                    return error
                self._on_retry(series, error)
                put_off = retry_after(error, self._options.rng)
            else:
                series.written, series.written_at = count, trio.current_time()
                return None
            await trio.sleep(max(delay, put_off))
            delay = self._options.retry_period

    async def _store(self, series: Series, count: int) -> None:
        if series.is_stored:
            with suppress(NotFoundError):  # deleted, or expired, as Events do in an hour or so
                await self._patch(series, count)
                return
        was_sent, series.was_sent = series.was_sent, True
        try:
            await self._create(series, count)
        except AlreadyExistsError:
            if not was_sent:
                series.rename(self._new_stamp())  # it is somebody else's
                await self._create(series, count)
            elif count > 1:
                # The request that created it was carried out, although its answer did not come, and with fewer perhaps.
                await self._patch(series, count)
        series.is_stored = True

    async def _create(self, series: Series, count: int) -> None:
        await self._ask(series, series.api.create(series.event(count)))

    async def _patch(self, series: Series, count: int) -> None:
        repetitions = series.repetitions(count)
        assert repetitions is not None
        await self._ask(series, series.api.patch(series.name, {"series": to_dict(repetitions)}))

    async def _ask(self, series: Series, request: Awaitable[R]) -> R:
        patience = self._options.request_deadline
        with trio.move_on_after(patience):
            return await request
        raise ConnectionFailedError(f"event {series}: no answer came within {patience:g} s")
