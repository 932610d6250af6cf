"""Splitting lists and watches in protobuf while they arrive."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.client.bodies._list_splitter import ListHead
from trioformer.client.bodies._protobuf import MessageFrameSplitter, MessageListSplitter, bytes_in
from trioformer.client.bodies._wire_format import WireFormat
from trioformer.errors import DecodeError
from trioformer.models._internal import MAGIC, envelope_of, scan_whole, tagged
from trioformer.models.core_v1 import Pod

META = tagged(1, b"") + tagged(2, b"7") + tagged(3, b"next") + b"\x20\x03"
HEAD = ListHead(kind="PodList", api_version="v1", resource_version="7", continue_token="next", remaining_item_count=3)
messages = st.binary(max_size=300) | st.sampled_from([b"", b"x" * 20_000])
cuts = st.lists(st.integers(0, 100_000), max_size=30)


def listing(*items: bytes, meta: bytes = META, kind: str = "PodList") -> bytes:
    return envelope_of("v1", kind, tagged(1, meta) + b"".join(tagged(2, item) for item in items))


def pieces_of(body: bytes, cuts: list[int]) -> list[bytes]:
    positions = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    return [body[begin:end] for begin, end in pairwise(positions)]


def split(*pieces: bytes) -> tuple[list[bytes], ListHead]:
    splitter = MessageListSplitter()
    items = [item for piece in pieces for item in splitter.feed(memoryview(piece))]
    rest, head = splitter.finish()
    return items + rest, head


def bytewise(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


@given(items=st.lists(messages, max_size=12), cuts=cuts)
def test_any_list_in_any_pieces_splits_into_its_items(items: list[bytes], cuts: list[int]) -> None:
    assert split(*pieces_of(listing(*items), cuts)) == (items, HEAD)


@given(items=st.lists(st.binary(max_size=200), max_size=6))
def test_any_list_splits_byte_by_byte(items: list[bytes]) -> None:
    assert split(*bytewise(listing(*items))) == (items, HEAD)


def test_an_item_is_returned_with_the_piece_that_completes_it() -> None:
    body = listing(b"a" * 200, b"b" * 200)
    first = body.index(b"a" * 200) + 200
    splitter = MessageListSplitter()
    assert splitter.feed(body[: first - 1]) == []
    assert splitter.feed(body[first - 1 : first]) == [b"a" * 200]
    assert splitter.feed(body[first:]) == [b"b" * 200]


def test_a_list_may_have_other_fields_anywhere() -> None:
    other = tagged(9, b"later")
    body = envelope_of("v1", "PodList", other + tagged(2, b"a") + tagged(1, META) + other + tagged(2, b"b"))
    for pieces in ([body], bytewise(body)):
        assert split(*pieces) == ([b"a", b"b"], HEAD)


def test_an_empty_list_has_its_metadata() -> None:
    assert split(listing()) == ([], HEAD)
    assert split(listing(meta=b"")) == ([], ListHead(kind="PodList", api_version="v1", resource_version=""))
    bare = ListHead(kind="PodList", api_version="v1", resource_version="")
    assert split(*bytewise(envelope_of("v1", "PodList", b""))) == ([], bare)


def test_a_list_that_ends_early_is_an_error() -> None:
    body = listing(b"a" * 30, b"b" * 30)
    last = len(body) - 4  # the two empty fields after the list's message
    assert split(body[:last]) == split(body)
    for end in range(last):
        with pytest.raises(DecodeError, match="ended early"):
            split(body[:end])


def test_what_is_not_a_list_is_an_error_of_one_line() -> None:
    meta = tagged(1, tagged(1, b"v1") + tagged(2, b"PodList"))
    begin = MAGIC + meta
    too_long = b"\xff" * 10
    for body, text in [
        (b'{"kind":"PodList","items":[]}', "does not begin like Kubernetes protobuf"),
        (b"<html>login</html>", "does not begin like Kubernetes protobuf"),
        (MAGIC + b"\x08\x01", "not a protobuf list"),
        (MAGIC + tagged(9, b"x" * 5_000), "not a protobuf list"),
        (MAGIC + b"\x0a\xff\xff\xff\xff\x7f" + b"x" * 5_000, "not a protobuf list"),
        (MAGIC + too_long + b"\x01", "more than ten bytes"),
        (MAGIC + b"\x12" + too_long + b"\x01", "more than ten bytes"),
        (begin + tagged(2, b"\x12\x09a"), "longer than the list"),
        (begin + tagged(2, b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7fa"), "longer than the list"),
        (begin + tagged(2, b"\x10\x09"), "longer than the list, or is not a message"),
        (begin + tagged(2, b"\x13\x00"), "not a message"),
        (begin + tagged(2, b"\x12" + too_long), "more than ten bytes"),
        (begin + tagged(2, tagged(1, b"\x12\x09a")), "longer than its message"),
        (begin + tagged(2, tagged(1, b"\x07")), "unknown wire type 7"),
        (MAGIC + tagged(1, b"\x12\x09a") + tagged(2, b""), "longer than its message"),
        (MAGIC + tagged(2, b"")[:1], "ended early"),
        (b"", "ended early"),
    ]:
        for pieces in ([body], bytewise(body)):
            with pytest.raises(DecodeError, match=text) as caught:
                split(*pieces)
            assert "\n" not in str(caught.value)


def test_a_list_that_is_shorter_than_its_last_length_is_an_error() -> None:
    message = tagged(1, META) + b"\x12"  # a tag at the end of the list
    with pytest.raises(DecodeError, match=r"longer than the list|ended early"):
        split(MAGIC + tagged(1, tagged(2, b"PodList")) + tagged(2, message) + b"\x05abcdefgh")


def test_a_large_item_in_small_pieces_is_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = 0
    original = MessageListSplitter._cut

    def counting(self: MessageListSplitter, data: bytes, begin: int) -> tuple[int, list[bytes]]:
        nonlocal cuts
        cuts += 1
        return original(self, data, begin)

    monkeypatch.setattr(MessageListSplitter, "_cut", counting)
    big = b"x" * 100_000
    assert split(*pieces_of(listing(big, b"a"), list(range(0, 100_100, 10)))) == ([big, b"a"], HEAD)
    assert cuts < 40


def test_items_do_not_keep_the_body_in_memory() -> None:
    splitter = MessageListSplitter()
    (item,) = splitter.feed(listing(b"a" * 100))
    assert type(item) is bytes


# --- frames ---


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def feed(splitter: MessageFrameSplitter, piece: bytes) -> list[bytes]:
    return [bytes_in(frame) for frame in splitter.feed(piece)]


@given(frames=st.lists(messages, max_size=12), cuts=cuts, half=st.binary(min_size=1, max_size=40))
def test_any_frames_in_any_pieces_are_split(frames: list[bytes], cuts: list[int], half: bytes) -> None:
    splitter = MessageFrameSplitter()
    found = [frame for piece in pieces_of(framed(*frames), cuts) for frame in feed(splitter, piece)]
    assert found == frames
    assert splitter.pending == 0
    assert feed(splitter, framed(half)[:-1]) == []
    assert splitter.pending == 3 + len(half)
    assert feed(splitter, half[-1:]) == [half]
    assert splitter.pending == 0


@given(frames=st.lists(st.binary(max_size=40), max_size=6))
def test_any_frames_are_split_byte_by_byte(frames: list[bytes]) -> None:
    splitter = MessageFrameSplitter()
    assert [frame for piece in bytewise(framed(*frames)) for frame in feed(splitter, piece)] == frames


def test_the_frames_end_before_one_over_the_limit() -> None:
    for last in (b"x" * 1_001, b"\n" * 70_000):
        for step in (1, 7, 1_000_000):
            splitter = MessageFrameSplitter(max_frame=1_000)
            body = framed(b"a", b"y" * 1_000, last, b"b")
            found = [frame for at in range(0, len(body), step) for frame in feed(splitter, body[at : at + step])]
            assert found == [b"a", b"y" * 1_000]
            assert splitter.is_too_large
            assert splitter.pending == 0


def test_a_frame_of_sixteen_mebibytes_is_accepted() -> None:
    splitter = MessageFrameSplitter()
    frame = b"x" * (16 * 1024 * 1024)
    assert feed(splitter, framed(frame)[:-1]) == []
    assert feed(splitter, b"x") == [frame]
    assert feed(splitter, (16 * 1024 * 1024 + 1).to_bytes(4, "big")) == []
    assert splitter.is_too_large


def test_a_large_frame_in_small_pieces_has_no_quadratic_cost() -> None:
    body = framed(b"x" * 16_000_000, b"a")
    splitter = MessageFrameSplitter()
    began = time.thread_time()
    found = [frame for at in range(0, len(body), 4_000) for frame in feed(splitter, body[at : at + 4_000])]
    assert list(map(len, found)) == [16_000_000, 1]
    assert time.thread_time() - began < 1


def test_a_list_of_another_kind_is_refused_by_its_kind() -> None:
    wire_format = WireFormat(Pod, scan_whole, protobuf=True)
    for kind in ("NodeList", "List"):
        with pytest.raises(DecodeError, match=kind):
            wire_format.check_list(ListHead(kind=kind, api_version="v1"), None)
