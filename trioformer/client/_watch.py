"""An open watch."""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, NoReturn, TypeVar, cast, final

import trio

from .._util import NoPublicConstructor, Slices
from ..errors import ConnectionFailedError, DecodeError, StatusError
from ..models import KubernetesObject
from ..models._internal import decode, make_object
from ..transport import EventType
from ..transport._internal import ByteStream, FrameSplitter, decode_watch_frame
from ._undecodable import UndecodableHandler, undecodable_frame
from ._wire_format import WireFormat, nameless

T = TypeVar("T", bound=KubernetesObject)


@final
class WatchEvent(NamedTuple, Generic[T]):
    """One event of a watch; a plain pair, to be unpacked."""

    type: EventType
    """``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``."""
    object: T
    """The object after the event, or before its deletion; of a bookmark only the resourceVersion means anything."""


@final
class WatchStream(Generic[T], metaclass=NoPublicConstructor):
    """The events of one watch, for one task at a time; made by :meth:`Api.watch`, which also closes it.

    ``async for event in events`` ends when the server ends the watch, which it does after some minutes.
    What has arrived together is handed out in slices of about a millisecond between two checkpoints.
    """

    __slots__ = ("_body", "_events", "_failure", "_on_undecodable", "_slices", "_splitter", "_where", "_wire_format")

    def __init__(
        self, wire_format: WireFormat[T], body: ByteStream, where: str, on_undecodable: UndecodableHandler | None = None
    ) -> None:
        self._wire_format = wire_format
        self._body = body
        self._where = where
        self._on_undecodable = on_undecodable
        self._splitter = FrameSplitter()
        self._slices = Slices()
        self._events: deque[WatchEvent[T]] = deque()
        self._failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    def __aiter__(self) -> WatchStream[T]:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        if not self._events:
            try:
                self._events.extend(await self.receive_batch())
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
        elif self._slices.is_over():
            await self._slices.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        return self._events.popleft()

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and take all that the bytes received so far complete: at least one.

        Raises:
            trio.EndOfChannel: The server has ended the watch; it may be resumed at the last resourceVersion.
            StatusError: The server sent an ERROR event, such as an :class:`~trioformer.errors.ExpiredError`.
            ConnectionFailedError: The connection was lost, possibly inside of an event.
            DecodeError: The server sent what is no event.
            trio.ClosedResourceError: The watch is closed, or a call was cancelled before.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection: no more events can be received.
            No event that has been handed out is affected; watch again from the last one's resourceVersion.
        """
        if self._events:
            await trio.lowlevel.checkpoint_if_cancelled()
            events = list(self._events)
            self._events.clear()
            return events
        while True:
            if self._failure is not None:
                await trio.lowlevel.checkpoint()
                raise self._failure
            chunk = await self._body.receive_some()
            if not chunk:
                self._ended()
            # no checkpoint between taking the bytes and handing out their events
            events = self._decode(chunk)
            if events:
                return events

    def _ended(self) -> NoReturn:
        if self._splitter.pending:
            raise ConnectionFailedError(f"{self._where}: the watch ended inside of an event; watch again")
        raise trio.EndOfChannel

    def _decode(self, chunk: bytes) -> list[WatchEvent[T]]:
        """Decode what is complete; what is wrong is kept until the events before it have been handed out."""
        kind, scan = self._wire_format.kind, self._wire_format.scan
        events: list[WatchEvent[T]] = []
        try:
            lines = self._splitter.feed(chunk)
        except DecodeError as exc:
            self._failure = self._located(exc)
            return events
        try:
            for line in lines:
                try:
                    frame = decode_watch_frame(line, scan)
                    if frame[0] == "ERROR":
                        status = cast("dict[str, object]", decode(frame[1]))
                        raise StatusError.from_status(status, where=self._where)
                    if not frame[2].metadata.name and frame[0] != "BOOKMARK":
                        raise nameless(self._wire_format.name)
                    events.append(WatchEvent(frame[0], make_object(kind, frame[1], frame[2])))
                except DecodeError as exc:
                    self._skip(line, self._located(exc))
        except Exception as exc:  # noqa: BLE001  # whatever it is, a callback's too, it comes after the events before it
            self._failure = exc
        return events

    def _skip(self, frame: bytes, error: DecodeError) -> None:
        """Report a frame that is no event.

        Raises:
            DecodeError: Nobody wants to know, or it tells of an error, which must not be overheard.
        """
        if self._on_undecodable is None:
            raise error
        found = undecodable_frame(self._wire_format.name, frame, error)
        if found.event_type == "ERROR":
            raise error
        self._on_undecodable(found)

    def _located(self, cause: DecodeError) -> DecodeError:
        error = DecodeError(f"{self._where}: {cause}")
        error.__cause__ = cause
        return error
