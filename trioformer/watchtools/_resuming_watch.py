"""A watch that outlives its connections, without a cache (client-go ``tools/watch/retrywatcher.go``).

One watch is an answer that ends after some minutes, or breaks.
What follows decides whether the reader hears of it:

====================================================  =============================================================
what happened                                         what the resuming watch does
====================================================  =============================================================
410 or a version too large, as an answer or an event  raise ExpiredError: only a list can mend it
400, 401, 403, 404, 405; a certificate                raise it: waiting does not mend it
the same frame does not decode three times            raise DecodeError: the server would send it for ever
any other answer or ERROR event, a frame that is none report, back off (at least ``Retry-After``), watch again
watch cannot connect                                  report, back off, watch again
watch ends or breaks after 30 s or more               watch again at once
watch ends or breaks after 1 s or more                pause for a tenth of its life, watch again
watch ends or breaks within a second                  report if it told nothing, back off, watch again
watch is silent for longer than it may be             break it, report, watch again
====================================================  =============================================================

These are the reflector's rules but for one: where a reflector lists again because it cannot know whether the version
is still good, this watches again, and the server says so if it is not.

All of it happens in the reader's own task, inside of its read.
"""

from __future__ import annotations

import logging
import math
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

import attrs
import trio

from .._retry import (
    END_GRACE,
    MAX_SILENCE,
    REQUEST_ERRORS,
    BackoffPolicy,
    ErrorClass,
    Pacing,
    WatchErrorHandler,
    classify_error,
    retry_after,
    watch_timeout,
)
from .._util import NoPublicConstructor, Slices
from ..client import Api, FieldSelectorLike, LabelSelectorLike, UndecodableHandler, WatchEvent, WatchStream
from ..errors import ConnectionFailedError, DecodeError, ExpiredError, StatusError, TrioformerError
from ..models import FieldSelector, KubernetesObject, LabelSelector

T = TypeVar("T", bound=KubernetesObject)

MOST_UNDECODED: Final = 3
"""Watches in a row that may end at the same frame that does not decode; a proxy's error page is not sent so often."""

WatchPhase: TypeAlias = Literal[
    "not started", "connecting", "watching", "backing off", "disconnected", "failed", "closed"
]
"""What a resuming watch is doing; ``disconnected`` after a read that was cancelled, until the next one."""

logger = logging.getLogger("trioformer.watchtools")


@final
@attrs.frozen(kw_only=True)
class ResumingWatchStatistics:
    """What a resuming watch is doing, and how well."""

    phase: WatchPhase
    """What it is doing."""
    last_error: Exception | None
    """The newest failure; None after a success."""
    failures_in_a_row: int
    """Failures since the last success."""
    retry_at: float
    """Before when nothing is sent, on trio's clock; infinity unless it is backing off."""
    last_contact: float
    """When the server last sent anything, on trio's clock; minus infinity before it first did."""
    watches: int
    """Watches that the server accepted."""
    events: int
    """Events that the server sent, bookmarks and repeated ones included."""
    buffered: int
    """Events that have arrived and were not handed out yet."""
    resource_version: str
    """Where a watch would resume."""


@final
class ResumingWatch(Generic[T], metaclass=NoPublicConstructor):
    """The events of a watch that resumes by itself, for one task at a time; made by :func:`resuming_watch`.

    ``async for event in events`` ends by an error only, since a server always ends a watch at some time.
    Events come in the order of the server and each of them once; bookmarks are not handed out.
    Two changes of one object are two events, unless the server has forgotten the first: then an
    :class:`~trioformer.errors.ExpiredError` comes instead.
    """

    __slots__ = (
        "_arrived",
        "_connection",
        "_events",
        "_failure",
        "_failures",
        "_handed_out",
        "_is_closed",
        "_is_reading",
        "_last_contact",
        "_last_error",
        "_on_retry",
        "_pacing",
        "_patience",
        "_phase",
        "_random",
        "_repeated",
        "_slices",
        "_source",
        "_told",
        "_undecoded",
        "_version",
        "_watch",
        "_watches",
        "_what",
    )

    def __init__(
        self,
        watch: Callable[..., AbstractAsyncContextManager[WatchStream[T]]],
        what: str,
        resource_version: str,
        backoff: BackoffPolicy | None,
        on_retry: WatchErrorHandler | None,
    ) -> None:
        self._watch = watch
        self._what = what
        self._on_retry = on_retry
        self._random = random.Random()
        self._pacing = Pacing(backoff, self._random)
        self._version = self._handed_out = self._repeated = resource_version
        self._events: deque[WatchEvent[T]] = deque()
        self._slices = Slices()
        self._source: WatchStream[T] | None = None
        self._connection: AsyncExitStack | None = None
        self._phase: WatchPhase = "not started"
        self._is_reading = self._is_closed = False
        self._last_contact = -math.inf
        self._patience = math.inf
        self._failure: Exception | None = None
        self._last_error: Exception | None = None
        self._failures = self._undecoded = self._watches = self._arrived = self._told = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._what}: {self._phase}, at {self.resource_version}>"

    @property
    def resource_version(self) -> str:
        """Where to watch again, later or elsewhere, without missing what has not been handed out yet."""
        return self._handed_out if self._events else self._version

    def statistics(self) -> ResumingWatchStatistics:
        """What it is doing, and how well."""
        # A watch that has lived for a second is a success, though nothing may have happened yet.
        is_well = self._phase == "watching" and not self._pacing.is_very_short
        return ResumingWatchStatistics(
            phase=self._phase,
            last_error=None if is_well else self._last_error,
            failures_in_a_row=0 if is_well else self._failures,
            retry_at=self._pacing.resume_at if self._phase == "backing off" else math.inf,
            last_contact=self._last_contact,
            watches=self._watches,
            events=self._told,
            buffered=len(self._events),
            resource_version=self.resource_version,
        )

    # --- reading ---

    def __aiter__(self) -> ResumingWatch[T]:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        if not self._events:
            self._events.extend(await self._receive())
        elif self._slices.is_over():
            await self._slices.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        event = self._events.popleft()
        self._handed_out = event.object.resource_version
        return event

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and take all that have arrived: at least one.

        Raises:
            ExpiredError: The server has forgotten what came after the last event; list again.
                A note says which resourceVersion that was, and so does :attr:`resource_version`.
            StatusError: An answer that waiting does not mend: 400, 401, 403, 404 or 405.
            ConnectionFailedError: The server's certificate does not verify.
            DecodeError: The server keeps sending a frame that is no event, or an object without a resourceVersion.
            trio.ClosedResourceError: The watch is closed.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection; no event is lost: the next read watches again from where the last one ended, though
            not within a second of the last request.
        """
        if self._events:
            await trio.lowlevel.checkpoint_if_cancelled()
            events = list(self._events)
            self._events.clear()
            return events
        return await self._receive()

    async def _receive(self) -> list[WatchEvent[T]]:
        if self._is_reading:
            raise trio.BusyResourceError("another task is already receiving from this watch")
        self._is_reading = True
        try:
            while True:
                await trio.lowlevel.checkpoint_if_cancelled()
                if self._is_closed:
                    raise trio.ClosedResourceError("this watch is closed: its `async with` block has been left")
                if self._failure is not None:
                    await self._disconnect()
                    raise self._failure
                events = await self._try_to_receive()
                if events:
                    return events
        finally:
            self._is_reading = False

    async def _try_to_receive(self) -> list[WatchEvent[T]]:
        """Connect if need be, and wait for one piece of the stream; whatever ends the stream closes it."""
        try:
            source = self._source if self._source is not None else await self._connect()
            return await self._read(source)
        except trio.EndOfChannel:
            await self._disconnect()
            self._ended()
        except REQUEST_ERRORS as error:
            await self._disconnect()
            self._failed(error)
        except BaseException:
            # Cancelled, most often, and then the stream cannot be read on.
            await self._disconnect()
            self._pacing.limit_rate()
            if self._phase in ("connecting", "watching"):
                self._phase = "disconnected"
            raise
        return []

    async def _read(self, source: WatchStream[T]) -> list[WatchEvent[T]]:
        # Counted from here: while nobody was reading, the silence was ours.
        with trio.CancelScope(deadline=trio.current_time() + self._patience):
            batch = await source.receive_batch()
            # no checkpoint between taking the events and noting their version
            return self._take(batch)
        raise ConnectionFailedError(f"watch {self._what}: the server was silent for {self._patience:g} s")

    async def _connect(self) -> WatchStream[T]:
        if self._pacing.is_waiting:
            self._phase = "backing off"
        await trio.sleep_until(self._pacing.resume_at)
        self._phase = "connecting"
        self._pacing.record_request()
        timeout = watch_timeout(self._random)
        connection = AsyncExitStack()
        self._source = await connection.enter_async_context(
            self._watch(resource_version=self._version, timeout_seconds=timeout)
        )
        # no checkpoint between opening the connection and keeping it
        self._connection = connection
        if self._is_closed:
            raise trio.ClosedResourceError("this watch was closed while it was connecting")
        self._phase = "watching"
        self._pacing.record_accepted()
        self._watches += 1
        self._arrived = 0
        self._patience = timeout + END_GRACE
        self._repeated = self._version
        return self._source

    async def _disconnect(self) -> None:
        connection, self._connection, self._source = self._connection, None, None
        if connection is not None:
            await connection.aclose()

    def _take(self, batch: list[WatchEvent[T]]) -> list[WatchEvent[T]]:
        """Note what has arrived; returns what is to be handed out."""
        events: list[WatchEvent[T]] = []
        self._last_contact = trio.current_time()
        for event in batch:
            version = event.object.resource_version
            if not version:
                # Whatever comes after it could not be resumed from: the events before it are the last ones.
                self._failure = DecodeError(f"watch {self._what}: the object of an event has no resourceVersion")
                self._phase, self._last_error = "failed", self._failure
                break
            self._arrived += 1
            self._told += 1
            if event.type == "BOOKMARK":
                self._patience = MAX_SILENCE
            elif version != self._repeated:
                self._repeated = ""  # only what a new watch begins with can have been seen
                events.append(event)
            self._version = version
            self._failures = self._undecoded = 0
            self._last_error = None
        return events

    # --- when a watch is over ---

    def _ended(self) -> None:
        self._pacing.pause()
        self._phase = "backing off"
        if not self._arrived and self._pacing.is_very_short:
            self._report(ConnectionFailedError(f"watch {self._what}: the server ended it at once, without an event"))

    def _failed(self, error: TrioformerError) -> None:
        """Set the time of the next try, or raise what a next try does not mend."""
        verdict = classify_error(error)
        if isinstance(error, DecodeError):
            self._undecoded += 1
        if verdict is ErrorClass.EXPIRED:
            self._failure = self._expired(error)
        elif verdict is ErrorClass.PERMANENT or self._undecoded >= MOST_UNDECODED:
            self._failure = error
        if self._failure is not None:
            self._phase, self._last_error = "failed", self._failure
            if self._failure is error:
                raise error
            raise self._failure from error
        if self._pacing.is_accepted and isinstance(error, ConnectionFailedError):
            self._pacing.pause()
        else:
            self._pacing.back_off(retry_after(error, self._random))
        self._phase = "backing off"
        self._report(error)

    def _expired(self, error: TrioformerError) -> ExpiredError:
        """One kind of error for all that a list mends."""
        if isinstance(error, ExpiredError):
            expired = error
        else:
            assert isinstance(error, StatusError)
            expired = ExpiredError(
                error.status_message,
                code=error.code,
                reason=error.reason,
                details=error.details,
                where=f"watch {self._what}",
            )
        expired.add_note(f"the watch had come to resourceVersion {self._version}; list again")
        return expired

    def _report(self, error: TrioformerError) -> None:
        self._failures += 1
        self._last_error = error
        if self._on_retry is not None:
            self._on_retry(error)
        else:
            logger.warning("%s", error)

    async def _aclose(self) -> None:
        self._is_closed = True
        self._phase = "closed"
        await self._disconnect()


@asynccontextmanager
async def resuming_watch(
    api: Api[T],
    *,
    resource_version: str,
    label_selector: LabelSelectorLike | None = None,
    field_selector: FieldSelectorLike | None = None,
    backoff: BackoffPolicy | None = None,
    on_retry: WatchErrorHandler | None = None,
    on_undecodable: UndecodableHandler | None = None,
) -> AsyncGenerator[ResumingWatch[T], None]:
    """Watch what happens to objects, across the ends and failures of single watches.

    The block is given the events, for ``async for event in events``.
    The first request is sent by the first read.

    For whoever must see each event and needs no cache.
    A :class:`~trioformer.cache.SharedInformer` has one, and lists again when the server has forgotten what comes next.

    Args:
        api: Kind and namespace.
        resource_version: See everything after it: a list's, or :attr:`ResumingWatch.resource_version`.
        label_selector: Only objects whose labels match.
        field_selector: Only objects whose fields match.
        backoff: The delays between tries.
        on_retry: Told of every failure that is gone on from; by default they are logged.
        on_undecodable: Told of each frame that does not decode, and the rest goes on; None makes it a failure.

    Raises:
        ValueError: ``resource_version`` is empty or ``"0"``, which name no state to go on from.
        SelectorError: A selector does not parse.

    Ownership:
        No task is started: what happens happens in the reader's task, and what the block raises leaves it as it is.
        Leaving it closes the connection.

    Source:
        client-go ``tools/watch/retrywatcher.go``, which retries a 410 that is an HTTP answer for ever; here both forms
        of it are an :class:`~trioformer.errors.ExpiredError`.
    """
    what = str(api.resource) if api.namespace is None else f"{api.resource} in namespace {api.namespace}"
    if resource_version in ("", "0"):
        raise ValueError(
            f"a watch of {what} cannot be resumed from resourceVersion {resource_version!r}, which is no particular"
            " state; list first and begin with the list's"
        )
    watch = partial(
        api.watch,
        label_selector=LabelSelector.of(label_selector),
        field_selector=FieldSelector.of(field_selector),
        allow_bookmarks=True,
        on_undecodable=on_undecodable,
    )
    events = ResumingWatch[T]._create(watch, what, resource_version, backoff, on_retry)
    try:
        yield events
    finally:
        await events._aclose()
