"""The body of a watch: bytes to frames, and frames to events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.client.bodies._contents import describe
from trioformer.client.bodies._wire_format import FrameSplitter, decode_watch_frame
from trioformer.errors import DecodeError

POD = b'{"metadata":{"name":"web-0","namespace":"default","uid":"u","resourceVersion":"7"},"spec":{}}'
frames = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")).filter(lambda data: bool(data.strip()))


@given(st.lists(frames, max_size=20), st.lists(st.integers(0, 900), max_size=20), frames)
def test_frames_are_split_at_newlines_for_any_chunks(lines: list[bytes], cuts: list[int], half: bytes) -> None:
    body = b"".join(line + b"\n" for line in lines) + half
    splitter = FrameSplitter()
    positions = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    found = [frame for begin, end in pairwise(positions) for frame in splitter.feed(body[begin:end])]
    assert found == lines
    assert splitter.pending == len(half)
    assert splitter.feed(b"\n") == [half]
    assert splitter.pending == 0


def test_the_frames_end_before_one_over_the_limit() -> None:
    for end in [b"", b"\n[]\n"]:
        for step in [7, 64 * 1024, 1_000_000]:
            splitter = FrameSplitter(max_frame=100_000)
            body = b"{}\n" + b"y" * 100_000 + b"\n" + b"x" * 100_001 + end
            found: list[bytes] = []
            for begin in range(0, len(body), step):
                found += splitter.feed(body[begin : begin + step])
                assert len(splitter._buffer) <= 200_000
                if splitter.is_too_large:
                    break
            assert found == [b"{}", b"y" * 100_000]
            assert splitter.is_too_large


def test_a_frame_of_sixteen_mebibytes_is_accepted() -> None:
    splitter = FrameSplitter()
    frame = b"x" * (16 * 1024 * 1024)
    assert splitter.feed(frame) == []
    assert splitter.feed(b"\n") == [frame]


def test_an_event_is_decoded_in_any_form() -> None:
    for form in [
        b'{"type":"%s","object":%s}',
        b'{"type":"%s","object":%s}\r',
        b' { "type" : "%s" , "object" : %s } ',
        b'{"type":"%s","object":%s,"more":{"metadata":{}}}',
        b'{"more":[{}],"type":"%s","object":%s}',
    ]:
        for type_ in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]:
            found, data, head = decode_watch_frame(form % (type_.encode(), POD))
            assert (found, data) == (type_, POD)
            assert head is not None
            assert (head.key, head.metadata.resourceVersion) == ("default/web-0", "7")


def test_an_invalid_event_is_a_decode_error_of_one_line() -> None:
    for frame, text in [
        (b"<html>oops</html>", "is not an event"),
        (b'{"type":"ADDED","object":', "is not an event"),
        (b"[" * 100_000, "is not an event"),
        (b'{"type":"RENAMED","object":{}}', "unknown type"),
        (b'{"type":"ADDED"}', "a watch event has no object"),
        (b'{"type":"ADDED","object":{"kind":"Pod"}}', "metadata"),
    ]:
        with pytest.raises(DecodeError, match=text) as caught:
            decode_watch_frame(frame)
        assert "\n" not in str(caught.value)


def test_anything_else_is_described_and_not_quoted() -> None:
    for data, shown in [
        (b"", "an empty body"),
        (b" \n", "2 bytes, not JSON"),
        (b' {"data":{"token":"s3cret"', "26 bytes, not JSON"),
        (b"<p>s3cret", "9 bytes, HTML"),
        (b"\x00\x1b[31m", "6 bytes, not JSON"),
    ]:
        assert describe(data) == shown
