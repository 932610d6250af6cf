"""The stream of events of an open watch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar, final

import attrs
import trio

from .._util import NoPublicConstructor, Slices
from ..errors import ConnectionFailedError, DecodeError, StatusError
from ..models import KubernetesObject
from ..models._internal import make_object
from ..transport import Limits
from ..transport._internal import ByteStream, limit_error, request_id_in
from .bodies._contents import EventType, failure_in, read_status
from .bodies._protobuf import MessageDecoder, MessageFrameSplitter, Span, bytes_in
from .bodies._responses import add_origin
from .bodies._undecodable import Undecodable, UndecodableHandler, undecodable_frame
from .bodies._wire_format import FrameSplitter, WireFormat, decode_watch_frame

T = TypeVar("T", bound=KubernetesObject)

RESPONSE_GRACE: Final = 30.0
"""The response to a watch request must begin within ``timeoutSeconds`` plus this number of seconds."""


@final
class WatchEvent(NamedTuple, Generic[T]):
    """One event of a watch, as a tuple of its type and its object."""

    type: EventType
    """The type of the event: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``."""
    object: T
    """The object after the change, or before its deletion. The object of a bookmark has only a resourceVersion."""


@final
@attrs.define(eq=False, repr=False)
class WatchStream(Generic[T], metaclass=NoPublicConstructor):
    """The events of one watch, for one task at a time. :meth:`Api.watch` opens the watch.

    ``async for event in events`` ends when the server ends the watch, usually after some minutes. The loop executes a
    checkpoint whenever it waits for an event, and about once per millisecond while events are available.
    """

    _wire_format: WireFormat[T]
    _body: ByteStream
    _where: str
    _limits: Limits
    _on_undecodable: UndecodableHandler | None
    _messages: MessageDecoder[T] | None = attrs.field(init=False)
    """Decodes the frames of a watch in protobuf; None for JSON."""
    _splitter: FrameSplitter | MessageFrameSplitter = attrs.field(init=False)
    _slices: Slices = attrs.field(factory=Slices, init=False)
    _events: deque[WatchEvent[T]] = attrs.field(factory=deque, init=False)
    _undecoded: tuple[bytes, DecodeError] | None = attrs.field(default=None, init=False)
    """An undecodable frame that has not been reported yet."""
    _lines: Iterator[bytes | Span] = attrs.field(factory=lambda: iter(()), init=False)
    """The frames after the undecodable frame."""
    _failure: Exception | None = attrs.field(default=None, init=False)
    _is_reading: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._messages = self._wire_format.decoder_of(self._body.headers)
        splitter = FrameSplitter if self._messages is None else MessageFrameSplitter
        self._splitter = splitter(max_frame=self._limits.object_bytes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    def __aiter__(self) -> WatchStream[T]:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        if not self._events:
            try:
                while not self._events:
                    self._events.extend(await self.receive_batch())
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
        elif self._slices.is_over():
            await self._slices.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        return self._events.popleft()

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and return all received events up to the next undecodable event.

        The next call reports the undecodable event to ``on_undecodable``, so the order of events is kept. That call
        returns an empty list if no decodable event has arrived.

        Raises:
            trio.EndOfChannel: The server has ended the watch. A new watch can resume from the resourceVersion of the
                last event.
            StatusError: The server sent an ERROR event, such as an :class:`~trioformer.errors.ExpiredError`.
            ConnectionFailedError: The connection was lost, possibly in the middle of an event.
            DecodeError: The server sent data that is not a valid event.
            LimitExceededError: An event is too large. To get the object of the event, list the objects. Lists have no
                size limit.
            trio.ClosedResourceError: The watch is closed, or an earlier call was cancelled.
            trio.BusyResourceError: Another task is receiving from the watch.

        Cancellation:
            The connection is closed, so no more events can be received. To avoid losing events, start a new watch from
            the resourceVersion of the last received event.
        """
        if self._events:
            await trio.lowlevel.checkpoint_if_cancelled()
            events = list(self._events)
            self._events.clear()
            return events
        # The body has its own check, but the scan of an undecodable frame also has checkpoints.
        if self._is_reading:
            raise trio.BusyResourceError("another task is already receiving from this watch")
        self._is_reading = True
        try:
            return await self._receive()
        finally:
            self._is_reading = False

    async def _receive(self) -> list[WatchEvent[T]]:
        while True:
            if self._undecoded is not None:
                line, error = self._undecoded
                # After a cancellation, the next call begins with the same frame.
                is_message = self._messages is not None
                found = await undecodable_frame(self._wire_format.name, line, error, is_message=is_message)
                self._undecoded = None
                try:
                    self._skip(found, line, error)
                except Exception as exc:  # noqa: BLE001  # from the callback too; each further call raises it again
                    self._failure = exc
                    continue
                return self._decode(self._lines)
            if self._failure is not None:
                await trio.lowlevel.checkpoint()
                raise self._failure
            chunk = await self._body.receive_some()
            if not chunk:
                if self._splitter.pending and not self._body.is_cut_off:
                    text = f"{self._where}: the watch ended in the middle of an event; watch again"
                    raise ConnectionFailedError(text, partial=True)
                raise trio.EndOfChannel
            # no checkpoint between receiving the bytes and returning their events
            events = self._decode(iter(self._splitter.feed(chunk)))
            if self._splitter.is_too_large and self._failure is None:
                longest = self._limits.object_bytes
                self._failure = limit_error(self._where, "object_bytes", longest, "an event is too large")
            if events:
                return events

    def _decode(self, lines: Iterator[bytes | Span]) -> list[WatchEvent[T]]:
        """Decode events until the next undecodable one.

        The events before an ERROR event are returned first.
        """
        kind, scan, messages = self._wire_format.kind, self._wire_format.scan, self._messages
        events: list[WatchEvent[T]] = []
        try:
            for line in lines:
                try:
                    if isinstance(line, bytes):
                        frame = decode_watch_frame(line, scan)
                    else:
                        assert messages is not None
                        frame = messages.decode_frame(line)
                    if frame[0] == "ERROR":
                        raise self._error_of(read_status(frame[1]))
                    if not frame[2].metadata.name and frame[0] != "BOOKMARK":
                        raise self._wire_format.unnamed()
                    events.append(WatchEvent(frame[0], make_object(kind, frame[1], frame[2])))
                except DecodeError as exc:
                    error = DecodeError(f"{self._where}: {exc}")
                    error.__cause__ = exc
                    data = line if isinstance(line, bytes) else bytes_in(line)
                    self._undecoded, self._lines = (data, error), lines
                    break
        except StatusError as exc:
            self._failure = exc
        return events

    def _error_of(self, status: Mapping[str, object]) -> StatusError:
        error = StatusError.from_status(status, where=self._where, request_id=request_id_in(self._body.headers))
        return add_origin(error, self._body)

    def _skip(self, found: Undecodable, frame: bytes, error: DecodeError) -> None:
        """Report an undecodable frame to ``on_undecodable``.

        If no such function was passed, or if the frame is an ERROR event, raise an error.
        """
        if (status := failure_in(frame)) is not None:
            raise self._error_of(status) from error
        if self._on_undecodable is None or found.event_type == "ERROR":
            raise error
        self._on_undecodable(found)
