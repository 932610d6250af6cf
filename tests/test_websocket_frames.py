"""The parser of frames beside wsproto's: the same messages and events from the same bytes, however they are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping

from trioformer._websocket_frames import ReceivedMessages


def frame(first: int, data: bytes, size_in: int | None = None, mask: bytes | None = None) -> bytes:
    """A frame; ``size_in`` bytes after the second one have its size, None for as many as it needs."""
    if size_in is None:
        size_in = 0 if len(data) < 126 else 2 if len(data) < 0x10000 else 8
    short = {0: min(len(data), 125), 2: 126, 8: 127}[size_in]
    head = bytes((first, short | (0 if mask is None else 0x80))) + len(data).to_bytes(8, "big")[8 - size_in :]
    return head + (mask or b"") + data


BINARY, PIECE, CONTINUED, LAST, TEXT, CLOSE, PING, PONG = 0x82, 0x02, 0x00, 0x80, 0x81, 0x88, 0x89, 0x8A

contents = st.one_of(
    st.binary(max_size=8), st.sampled_from([0, 1, 2, 124, 125, 126, 127, 300, 70_000]).map(lambda size: bytes(size))
)
usual = st.one_of(
    contents.filter(bool).map(lambda data: frame(BINARY, data)),
    st.sampled_from([frame(PING, b"ping"), frame(PONG, b""), frame(PONG, bytes(125))]),
)
unusual = st.one_of(
    st.builds(frame, st.sampled_from([BINARY, PIECE, CONTINUED, LAST, TEXT, CLOSE, PING, 0x83, 0xC2]), contents),
    st.builds(frame, st.integers(0, 255), contents, st.sampled_from([0, 2, 8])),
    st.builds(frame, st.just(BINARY), contents, st.none(), st.just(b"mask")),
    st.sampled_from([frame(CLOSE, b""), frame(CLOSE, b"\x03\xe8bye"), b"\x82\x7f" + bytes([255]) * 8]),
    st.binary(max_size=12),
)
streams = st.lists(st.one_of(usual, usual, usual, unusual), max_size=10).map(b"".join)


def parts(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in pairwise(places)]


def by_wsproto(data: list[bytes]) -> tuple[list[Any], bool]:
    """What wsproto makes of it: pieces of messages and events, and whether it ends inside of a message."""
    frames = Connection(ConnectionType.CLIENT)
    found: list[Any] = []
    channel: int | None = None
    for each in data:
        frames.receive_data(each)
        for event in frames.events():
            if not isinstance(event, BytesMessage):
                found.append(event)
                if isinstance(event, CloseConnection):
                    return found, channel is not None
                continue
            content = bytes(event.data)
            is_end = event.frame_finished and event.message_finished
            if channel is None and not content:
                found += [BytesMessage(data=b"")] if is_end else []
                continue
            if channel is None:
                channel, content = content[0], content[1:]
            found.append((channel, content))
            channel = None if is_end else channel
    return found, channel is not None


def fed(received: ReceivedMessages, data: bytes) -> list[tuple[int, bytes] | Event]:
    """What a parser makes of bytes, in slices, without views."""
    found: list[tuple[int, bytes] | Event] = []
    received.feed(data)
    while received.has_more:
        items = received.take(3)
        assert len(items) <= 3
        found += [(item[0], bytes(item[1])) if isinstance(item, tuple) else item for item in items]
    return found


def by_us(data: list[bytes]) -> tuple[list[Any], bool]:
    received = ReceivedMessages(Connection(ConnectionType.CLIENT), is_client=True)
    found: list[Any] = []
    for each in data:
        found += fed(received, each)
        if found and isinstance(found[-1], CloseConnection):
            break
    return found, received.is_inside


@given(data=streams, cuts=st.lists(st.integers(0, 1_000_000), max_size=12))
@example(data=frame(BINARY, b"\x01one") + frame(PIECE, b"\x01t") + frame(BINARY, b"x"), cuts=[])
@example(data=frame(PIECE, b"\x01t") + frame(PING, b"") + frame(LAST, b"wo") + frame(BINARY, b"\x02x"), cuts=[3, 5])
@example(data=frame(CLOSE, b"\x03\xe8bye") + frame(BINARY, b"\x01late"), cuts=[2])
@example(data=frame(BINARY, bytes(10), 2), cuts=[3])
async def test_the_same_comes_out_of_the_same_bytes_cut_anywhere(data: bytes, cuts: list[int]) -> None:
    assert by_us(parts(data, cuts)) == by_wsproto(parts(data, cuts))


@given(data=streams)
async def test_the_same_comes_out_byte_by_byte(data: bytes) -> None:
    single = [bytes((each,)) for each in data[:2000]]
    assert by_us(single) == by_wsproto(single)


@given(data=streams, cuts=st.lists(st.integers(0, 1_000_000), max_size=12))
async def test_what_a_client_sends_is_left_to_wsproto(data: bytes, cuts: list[int]) -> None:
    received = ReceivedMessages(Connection(ConnectionType.SERVER), is_client=False)
    frames = Connection(ConnectionType.CLIENT)
    sent = b"".join(map(frames.send, [BytesMessage(data=b"\x01" + data), Ping(), BytesMessage(data=b"\x02")]))
    found = [item for each in parts(sent, cuts) for item in fed(received, each)]
    pieces = [item for item in found if isinstance(item, tuple)]
    assert b"".join(content for channel, content in pieces if channel == 1) == data
    assert found[-2:] == [Ping(), (2, b"")]


def test_whole_messages_are_views_of_what_has_arrived() -> None:
    received = ReceivedMessages(Connection(ConnectionType.CLIENT), is_client=True)
    data = frame(BINARY, b"\x01" + bytes(300)) + frame(BINARY, b"\x02ab")
    received.feed(data)
    (first, second) = received.take(10)
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert (first[0], len(first[1]), first[1].obj) == (1, 300, data)
    assert (second[0], second[1].obj, bytes(second[1])) == (2, data, b"ab")


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 65_537])
def test_each_size_is_read(size: int) -> None:
    received = ReceivedMessages(Connection(ConnectionType.CLIENT), is_client=True)
    received.feed(frame(BINARY, b"\x01" + bytes(size)))
    (piece,) = received.take(10)
    assert isinstance(piece, tuple)
    assert len(piece[1]) == size
    assert not received.is_inside


@given(data=st.lists(usual, max_size=10).map(b"".join), cuts=st.lists(st.integers(0, 1_000_000), max_size=12))
async def test_messages_without_channels_are_whole(data: bytes, cuts: list[int]) -> None:
    frames = Connection(ConnectionType.CLIENT)
    frames.receive_data(data)
    expected = b"".join(bytes(event.data) for event in frames.events() if isinstance(event, BytesMessage))
    received = ReceivedMessages(Connection(ConnectionType.CLIENT), is_client=True, has_channels=False)
    found = [item for each in parts(data, cuts) for item in fed(received, each) if isinstance(item, tuple)]
    assert b"".join(content for _, content in found) == expected
    assert {channel for channel, _ in found} <= {0}
