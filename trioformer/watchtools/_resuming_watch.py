"""A watch without a cache that resumes after it ends or fails (client-go ``tools/watch/retrywatcher.go``).

A single watch is one HTTP response. The server ends it after some minutes, or the connection breaks earlier. After an
outcome in :data:`RETRIES`, the next watch starts after a delay. For every other failure, an error is raised:

- ExpiredError after a 410 response or event, or for a resourceVersion that is too large: the caller must list again
- StatusError after 400, 401, 403, 404, 405 or 422, and ConnectionFailedError for an invalid certificate: waiting does
  not help
- LimitExceededError for an event that is too large: the caller must list the objects to get the object of the event
- DecodeError after three watches in a row that end at an undecodable frame: the server keeps sending the frame

The reflector follows the same rules with one exception: if the resourceVersion may have expired, the reflector lists
again. This watch instead tries to resume, and lets the server reject the resourceVersion. After a lost connection, this
watch first checks that the server has reached the resourceVersion.

All of this happens in the task that reads from the watch.
"""

from __future__ import annotations

import logging
import math
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

import attrs
import trio

from .._retry import (
    END_GRACE,
    MAX_SILENCE,
    REQUEST_ERRORS,
    BackoffPolicy,
    Outcome,
    Pacing,
    Wait,
    WatchErrorHandler,
    log_failure,
    outcome_of,
    retry_after,
    watch_timeout,
)
from .._surroundings import new_generator
from .._text import one_line
from .._util import NoPublicConstructor, Slices, opened_by
from ..client import Api, WatchEvent, WatchStream
from ..client._internal import FieldSelectorLike, LabelSelectorLike, UndecodableHandler, without_retries
from ..errors import (
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    LimitExceededError,
    StatusError,
    TrioformerError,
)
from ..models import FieldSelector, KubernetesObject, LabelSelector

T = TypeVar("T", bound=KubernetesObject)

MAX_UNDECODABLE: Final = 3
"""The watch fails when this many watches in a row end at an undecodable frame.

The error page of a proxy rarely arrives this often in a row.
"""

WatchPhase: TypeAlias = Literal[
    "not started", "connecting", "watching", "backing off", "disconnected", "failed", "closed"
]
"""The state of a resuming watch. A watch is ``disconnected`` from a cancelled read until the next read."""

RETRIES: Final[Mapping[Outcome, Wait]] = {
    Outcome.ENDED: Wait.PAUSE,
    Outcome.ENDED_EARLY: Wait.BACK_OFF,
    Outcome.LOST: Wait.RECONNECT,
    Outcome.OVERLOADED: Wait.BACK_OFF,
    Outcome.FAILED: Wait.BACK_OFF,
}
"""The wait before the next watch for each outcome that is retried. All outcomes except the first two are reported."""

logger = logging.getLogger("trioformer.watchtools")


@final
@attrs.define(eq=False, repr=False)
class ResumingWatch(Generic[T], metaclass=NoPublicConstructor):
    """The events of a watch that resumes automatically. One task at a time may read from the watch.

    ``async for event in events`` ends only when an error is raised. Each event is returned once, in the server's order.
    Two changes to an object are returned as two events. Bookmarks are not returned. If the server no longer has the
    next event, :class:`~trioformer.errors.ExpiredError` is raised.
    """

    _watch: Callable[..., AbstractAsyncContextManager[WatchStream[T]]]
    _name: str
    """The resource and the namespace, for messages."""
    _version: str
    """The resourceVersion of the last event that was received."""
    _backoff: BackoffPolicy | None
    _on_retry: WatchErrorHandler | None
    _api: Api[T]
    _check: Callable[[str], Awaitable[None]]
    _random: random.Random = attrs.field(factory=new_generator, init=False)
    _pacing: Pacing = attrs.field(init=False)
    _slices: Slices = attrs.field(factory=Slices, init=False)
    _source: WatchStream[T] | None = attrs.field(default=None, init=False)
    _connection: AsyncExitStack | None = attrs.field(default=None, init=False)
    _events: deque[WatchEvent[T]] = attrs.field(factory=deque, init=False)
    """The events that have been received but not yet returned to the reader."""
    _returned_version: str = attrs.field(init=False)
    """The resourceVersion of the last event that was returned to the reader."""
    _resumed_version: str = attrs.field(init=False)
    """The resourceVersion that the current watch resumed from; empty after the first event with another version."""
    _phase: WatchPhase = attrs.field(default="not started", init=False)
    _is_reading: bool = attrs.field(default=False, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _max_silence: float = attrs.field(default=math.inf, init=False)
    """The maximum time in seconds without data from the server."""
    _final_error: Exception | None = attrs.field(default=None, init=False)
    """The error that ended the watch; each read raises it again."""
    _undecodable_in_a_row: int = attrs.field(default=0, init=False)
    _events_of_watch: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._pacing = Pacing(self._backoff, self._random)
        self._returned_version = self._resumed_version = self._version

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}: {self._phase}, at {self.resource_version}>"

    @property
    def resource_version(self) -> str:
        """The resourceVersion to resume from.

        A new watch from this version returns all events that this watch has not returned yet.
        """
        return self._returned_version if self._events else self._version

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
        self._returned_version = event.object.resource_version
        return event

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for at least one event, and return all received events.

        Raises:
            ExpiredError: The server no longer has the events after the last received event. List the objects again. The
                resourceVersion of the last event is in a note on the error and in :attr:`resource_version`.
            StatusError: The server responded with a permanent error: 400, 401, 403, 404, 405 or 422.
            ConnectionFailedError: The server's certificate is not valid.
            DecodeError: The server keeps sending an undecodable frame, or sent an object without a resourceVersion.
            LimitExceededError: An event is too large. To get the object of the event, list the objects. Lists have no
                size limit.
            trio.ClosedResourceError: The watch is closed.
            trio.BusyResourceError: Another task is receiving from the watch.

        Cancellation:
            The connection is closed. No event is lost: the next read resumes after the last received event, at the
            earliest one second after the last request.
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
                    raise trio.ClosedResourceError("this watch is closed: its `async with` block has ended")
                if self._final_error is not None:
                    await self._disconnect()
                    raise self._final_error
                events = await self._try_to_receive()
                if events:
                    return events
        finally:
            self._is_reading = False

    async def _try_to_receive(self) -> list[WatchEvent[T]]:
        """Connect if necessary, and wait for one batch of events.

        Every failure closes the connection.
        """
        try:
            source = self._source if self._source is not None else await self._connect()
            return await self._read(source)
        except trio.EndOfChannel:
            await self._disconnect()
            self._handle_end()
        except REQUEST_ERRORS as error:
            await self._disconnect()
            self._handle_failure(error)
        except BaseException:
            # Usually Cancelled.  The stream cannot be read after that.
            await self._disconnect()
            self._pacing.limit_rate()
            if self._phase in ("connecting", "watching"):
                self._phase = "disconnected"
            raise
        return []

    async def _read(self, source: WatchStream[T]) -> list[WatchEvent[T]]:
        # The time limit starts here, because nothing is received between reads.
        with trio.CancelScope(deadline=trio.current_time() + self._max_silence):
            batch = await source.receive_batch()
            # no checkpoint between receiving the events and recording their version
            return self._accept(batch)
        raise ConnectionFailedError(f"watch {self._name}: the server sent nothing for {self._max_silence:g} s")

    async def _connect(self) -> WatchStream[T]:
        if self._pacing.is_waiting:
            self._phase = "backing off"
        await self._pacing.sleep(self._api.wait_to_retry)
        self._phase = "connecting"
        self._pacing.record_request()
        if self._pacing.wait is Wait.RECONNECT:
            await self._check_version()
        timeout = watch_timeout(self._random)
        connection = AsyncExitStack()
        self._source = await connection.enter_async_context(
            self._watch(resource_version=self._version, timeout_seconds=timeout)
        )
        # no checkpoint between opening the connection and storing it
        self._connection = connection
        if self._is_closed:
            raise trio.ClosedResourceError("this watch was closed while it was connecting")
        self._phase = "watching"
        self._pacing.record_accepted()
        self._events_of_watch = 0
        self._max_silence = timeout + END_GRACE
        self._resumed_version = self._version
        return self._source

    async def _check_version(self) -> None:
        """Check that the server has reached the resourceVersion.

        A server that was restored from a backup may not have reached the resourceVersion. In this case, a watch would
        receive no events.
        """
        try:
            await self._check(self._version)
        except REQUEST_ERRORS as error:
            if outcome_of(error) in (Outcome.UNAVAILABLE, Outcome.LOST):
                raise

    async def _disconnect(self) -> None:
        connection, self._connection, self._source = self._connection, None, None
        if connection is not None:
            await connection.aclose()

    def _accept(self, batch: list[WatchEvent[T]]) -> list[WatchEvent[T]]:
        """Record the versions in a batch, and return the events for the reader."""
        events: list[WatchEvent[T]] = []
        for event in batch:
            version = event.object.resource_version
            if not version:
                # The watch cannot be resumed after this event, so return only the events before it.
                self._final_error = DecodeError(f"watch {self._name}: the object of an event has no resourceVersion")
                self._phase = "failed"
                break
            self._events_of_watch += 1
            self._pacing.record_delivery()
            if event.type == "BOOKMARK":
                self._max_silence = MAX_SILENCE
            elif version != self._resumed_version:
                self._resumed_version = ""  # only the first events of a watch can be repeated
                events.append(event)
            self._version = version
            self._undecodable_in_a_row = 0
        return events

    # --- after a watch ---

    def _handle_end(self) -> None:
        outcome = Outcome.ENDED
        if self._pacing.is_very_short:
            outcome = Outcome.ENDED_EARLY if self._events_of_watch else Outcome.FAILED
        self._pacing.set_wait(RETRIES[outcome])
        self._phase = "backing off"
        if outcome is Outcome.FAILED:
            self._report(ConnectionFailedError(f"watch {self._name}: it ended immediately without an event"))

    def _handle_failure(self, error: TrioformerError) -> None:
        """Schedule the next request after a temporary failure, or raise the error if it is permanent."""
        outcome = outcome_of(error)
        is_too_large = isinstance(error, LimitExceededError) and error.limit == "object_bytes"
        if isinstance(error, DecodeError):
            self._undecodable_in_a_row += 1
        if outcome is Outcome.UNAVAILABLE:
            self._final_error = self._to_expired(error)
        elif outcome not in RETRIES or is_too_large or self._undecodable_in_a_row >= MAX_UNDECODABLE:
            self._final_error = error
        if self._final_error is not None:
            self._phase = "failed"
            if self._final_error is error:
                raise error
            raise self._final_error from error
        self._pacing.set_wait(RETRIES[outcome], retry_after(error, self._random))
        self._phase = "backing off"
        self._report(error)

    def _to_expired(self, error: TrioformerError) -> ExpiredError:
        """Convert an error that requires a new list to an ExpiredError."""
        if isinstance(error, ExpiredError):
            expired = error
        else:
            assert isinstance(error, StatusError)
            expired = ExpiredError(
                error.status_message,
                code=error.code,
                reason=error.reason,
                details=error.details,
                where=f"watch {self._name}",
            )
        expired.add_note(f"the watch had reached resourceVersion {one_line(self._version, longest=100)}; list again")
        return expired

    def _report(self, error: TrioformerError) -> None:
        if self._on_retry is not None:
            self._on_retry(error)
        else:
            log_failure(logger, error)

    async def _aclose(self) -> None:
        self._is_closed = True
        self._phase = "closed"
        await self._disconnect()


@opened_by("watch", "async with resuming_watch(api, resource_version=...) as events:")
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
    """Watch objects, and resume the watch when it ends or fails.

    The context manager yields the events for ``async for event in events``. The first read sends the first request.

    Use this function in programs that need every event but no cache. A :class:`~trioformer.cache.SharedInformer` has a
    cache, and lists the objects again when the server no longer has the next event.

    Args:
        api: The API for the kind and namespace of the objects.
        resource_version: The resourceVersion after which events are returned, such as the ``resource_version`` of a
            list.
        label_selector: A label selector. The default, None, selects all objects.
        field_selector: A field selector. The default, None, selects all objects.
        backoff: The delays between requests after failures. The default, None, uses the defaults of
            :class:`BackoffPolicy`.
        on_retry: A function that is called with each error that leads to a retry. By default, each cause is logged
            immediately, and then once a minute.
        on_undecodable: A function that is called with each undecodable event, after which the watch continues. If None,
            an undecodable event is treated as a failure.

    Raises:
        ValueError: ``resource_version`` is empty or ``"0"``.
        SelectorError: A selector is not valid.

    Ownership:
        No task is started. The task that reads the events does all the work. Exceptions from the block are not wrapped
        in an exception group. Leaving the block closes the connection.

    Source:
        client-go ``tools/watch/retrywatcher.go``, which retries a 410 response forever. This function raises
        :class:`~trioformer.errors.ExpiredError` for 410, both as a response and as an event.
    """
    name = str(api.resource) if api.namespace is None else f"{api.resource} in namespace {api.namespace}"
    if resource_version in ("", "0"):
        raise ValueError(
            f"cannot watch {name} from resourceVersion {resource_version!r}; list first and pass the list's "
            "resource_version"
        )
    labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
    watch = partial(
        api.watch,
        label_selector=labels,
        field_selector=fields,
        allow_bookmarks=True,
        resumable=True,
        on_undecodable=on_undecodable,
    )
    check = partial(without_retries(api).check_resource_version, label_selector=labels, field_selector=fields)
    events = ResumingWatch[T]._create(watch, name, resource_version, backoff, on_retry, api, check)
    try:
        yield events
    finally:
        await events._aclose()
