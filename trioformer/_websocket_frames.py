"""A fast parser for binary WebSocket messages, with wsproto for all other frames.

wsproto copies each byte four times and calls twenty functions for each frame. This accounts for a third of the CPU
time when a command has a long output.
A node sends each binary message in one frame, so on the client side, this module parses these frames itself.
Control frames are passed to wsproto.  After the first fragmented message, text message or invalid frame, all bytes are
passed to wsproto.
So wsproto detects all errors, and tests check that both parsers return the same results.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeAlias, final

from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Event

Piece: TypeAlias = tuple[int, memoryview]
"""A channel, and a part of a message on this channel as a view of the received bytes, possibly empty."""

_BINARY: Final = 0x82
"""The first byte of a binary message of one frame."""
_CONTROLS: Final = (0x88, 0x89, 0x8A)
"""The first bytes of control frames."""
_LARGEST_CONTROL: Final = 125
_MASKED: Final = 0x80
_SIZES: Final = {126: (2, 126), 127: (8, 0x10000)}
"""For the second byte of a frame with an extended size: the number of bytes of the size, and its minimum."""


@final
class ReceivedMessages:
    """A parser for received frames.

    Args:
        frames: The wsproto connection, which also generates the outgoing frames.
        is_client: Whether this side is the client. On a server, all frames are passed to wsproto, because clients mask
            theirs.
        has_channels: Whether messages start with a channel number. If not, all messages belong to channel 0.
    """

    __slots__ = (
        "_channel",
        "_data",
        "_frames",
        "_has_channels",
        "_is_control",
        "_is_plain",
        "_left",
        "_position",
        "has_more",
    )

    def __init__(self, frames: Connection, *, is_client: bool, has_channels: bool = True) -> None:
        self.has_more: bool = False
        """Whether :meth:`take` has more to return."""
        self._frames = frames
        self._has_channels = has_channels
        self._channel: int | None = None
        """The channel of the current message; None at its start."""
        self._data = b""
        """The received bytes, preceded by an incomplete header from earlier data."""
        self._position = 0
        """The position of the first unparsed byte."""
        self._left = 0
        """The number of unparsed bytes of the current frame."""
        self._is_control = False
        """Whether the current frame is passed to wsproto."""
        self._is_plain = is_client
        """Whether all frames so far were control frames or whole binary messages. If not, wsproto parses all bytes."""

    @property
    def is_inside(self) -> bool:
        """Whether only a part of a message has arrived."""
        return self._channel is not None

    def feed(self, data: bytes) -> None:
        """Add received bytes. All earlier bytes must have been parsed."""
        self._data, self._position = self._data + data if self._data else data, 0
        self.has_more = True

    def take(self, most: int) -> list[Piece | Event]:
        """Parse frames, and return the parts of messages and the events from other frames in order.

        A ``BytesMessage`` stands for an empty message without a channel.
        An invalid frame results in a ``CloseConnection``, as a close frame does. Bytes after this event are ignored.

        Args:
            most: The maximum number of results.
        """
        found: list[Piece | Event] = []
        data, position, end = self._data, self._position, len(self._data)
        view = memoryview(data)
        while len(found) < most:
            if not self._is_plain:
                most -= len(found)
                is_full = self._pass_on(data[position:], most, found) == most
                position, self.has_more = end, is_full and not isinstance(found[-1], CloseConnection)
                break
            if position == end:
                self.has_more = False
                break
            if self._left:
                after = min(position + self._left, end)
                self._left -= after - position
                if not self._is_control:
                    self._take(view[position:after], not self._left, found)
                elif self._pass_on(data[position:after], 1, found) and isinstance(found[-1], CloseConnection):
                    after, self.has_more = end, False
                position = after
                if self.has_more:
                    continue
                break
            begin = position + 2
            if begin > end:
                self.has_more = False
                break
            first, size = data[position], data[position + 1]
            if first != _BINARY or size >= _MASKED:
                if first in _CONTROLS and size <= _LARGEST_CONTROL:
                    self._left, self._is_control = 2 + size, True
                else:
                    self._is_plain = False
                continue
            if size in _SIZES:
                width, least = _SIZES[size]
                begin += width
                if begin > end:
                    self.has_more = False
                    break
                size = int.from_bytes(data[position + 2 : begin], "big")
                if size < least or size >> 63:  # wsproto reports the error
                    self._is_plain = False
                    continue
            position = begin + size
            if size and position <= end and self._has_channels:
                found.append((data[begin], view[begin + 1 : position]))
            elif size:
                self._left, self._is_control, position = size, False, begin
            else:
                self._take(view[:0], True, found)
        self._position = position
        if not self.has_more:
            self._data = data[position:]
        return found

    def _take(self, data: memoryview, is_end: bool, found: list[Piece | Event]) -> None:
        """Add bytes of a message to the results."""
        channel = self._channel
        if not self._has_channels:
            found.append((0, data))
            return
        if channel is None:
            if not data:
                if is_end:
                    found.append(BytesMessage(data=b""))
                return
            channel, data = data[0], data[1:]
        found.append((channel, data))
        self._channel = None if is_end else channel

    def _pass_on(self, data: bytes, most: int, found: list[Piece | Event]) -> int:
        """Let wsproto parse bytes, and return the number of its events."""
        if data:
            self._frames.receive_data(data)
        count = 0
        for event in islice(self._frames.events(), most):
            count += 1
            if isinstance(event, BytesMessage):
                self._take(memoryview(bytes(event.data)), event.frame_finished and event.message_finished, found)
            else:
                found.append(event)
        return count
