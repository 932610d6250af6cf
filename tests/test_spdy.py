"""The frames of SPDY: what one side sends is what the other one receives, however it is cut."""

from __future__ import annotations

import contextlib
import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer._spdy import (
    DICTIONARY,
    MAX_CONTROL,
    Pinged,
    SpdyError,
    SpdyEvent,
    SpdyFrames,
    StreamAccepted,
    StreamData,
    StreamOpened,
    StreamReset,
    WentAway,
)

PING = bytes.fromhex("80030006 00000004 00000001")
GOAWAY = bytes.fromhex("80030007 00000008 00000000 00000000")
SETTINGS = bytes.fromhex("80030004 00000004 00000000")


def joined(events: list[SpdyEvent]) -> list[SpdyEvent]:
    """Join the data of a frame that has arrived in parts."""
    result: list[SpdyEvent] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, StreamData) and isinstance(last, StreamData) and last.stream == event.stream:
            result[-1] = StreamData(last.stream, last.data + event.data, event.is_end)
        else:
            result.append(event)
    return result


def test_the_dictionary_is_that_of_the_specification() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.lists(st.integers(0, 300), max_size=20), st.binary(max_size=50))
def test_frames_may_be_cut_anywhere(cuts: list[int], data: bytes) -> None:
    sender, receiver = SpdyFrames(is_client=True), SpdyFrames(is_client=False)
    headers = {"streamtype": "data", "port": "8080", "requestid": "7"}
    sent = b"".join(
        (
            sender.open(1, {**headers, "streamtype": "error"}),
            sender.open(3, headers),
            sender.accept(2),
            sender.data(3, data),
            PING,
            sender.data(1, b"", is_end=True),
            SETTINGS,
            sender.reset(3),
            GOAWAY,
        )
    )
    places = [0, *sorted(cuts), len(sent)]
    events = [event for start, end in itertools.pairwise(places) for event in receiver.receive(sent[start:end])]
    assert joined(events) == [
        StreamOpened(1, {**headers, "streamtype": "error"}),
        StreamOpened(3, headers),
        StreamAccepted(2),
        StreamData(3, data, False),
        Pinged(PING),
        StreamData(1, b"", True),
        StreamReset(3),
        WentAway(),
    ]


def test_an_own_ping_needs_no_response() -> None:
    assert list(SpdyFrames(is_client=True).receive(PING)) == []


def test_a_stream_may_be_opened_and_ended_in_one_frame() -> None:
    frame = bytearray(SpdyFrames(is_client=True).open(5, {}))
    frame[4] = 1
    assert list(SpdyFrames(is_client=False).receive(bytes(frame))) == [StreamOpened(5, {}), StreamData(5, b"", True)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff" * 9, "not SPDY/3.1"),
        (bytes.fromhex("80020001 00000004 00000001"), "not SPDY/3.1"),
        (bytes.fromhex("80030001 00ffffff"), "not SPDY/3.1"),
        (bytes.fromhex("80030003 00000002 0000"), "too short"),
        (bytes.fromhex("80030001 0000000e 00000001 00000000 0000 41424344"), "cannot be decompressed"),
    ],
)
def test_what_is_not_spdy_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(SpdyError, match=problem):
        list(SpdyFrames(is_client=False).receive(data))


@pytest.mark.parametrize("size", [MAX_CONTROL, 10 * MAX_CONTROL])
def test_headers_have_a_limit_also_when_decompressed(size: int) -> None:
    frame = SpdyFrames(is_client=True).open(1, {"port": "8" * size})
    with pytest.raises(SpdyError, match="longer than 65536 bytes"):
        list(SpdyFrames(is_client=False).receive(frame))


def test_headers_that_are_cut_off_are_an_error() -> None:
    compressor = zlib.compressobj(zdict=DICTIONARY)
    block = compressor.compress(b"\0\0\0\1\0\0\0\4po") + compressor.flush(zlib.Z_SYNC_FLUSH)
    frame = b"\x80\x03\x00\x01" + (len(block) + 10).to_bytes(4, "big") + bytes(3) + b"\1" + bytes(6) + block
    with pytest.raises(SpdyError, match="truncated"):
        list(SpdyFrames(is_client=False).receive(frame))


@given(st.binary(max_size=200))
def test_any_bytes_are_events_or_an_error(data: bytes) -> None:
    frames = SpdyFrames(is_client=False)
    with contextlib.suppress(SpdyError):
        list(frames.receive(data))
