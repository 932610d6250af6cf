"""Chunks that arrive together are merged, and mean the same to h11."""

from __future__ import annotations

import itertools

import h11
import httpcore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trioformer.transport._chunks import MAX_SIZE_LINE, MAX_SPACES, ChunkMerger
from trioformer.transport._limits import LimitPassedError, Limits

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


def merged(merger: ChunkMerger, *reads: bytes) -> bytes:
    return b"".join(merger.feed(read) for read in reads)


def events(*reads: bytes) -> tuple[bytes, int, str]:
    """What h11 makes of some reads: the body, the number of Data events, and the last event or error."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    body, count, last = b"", 0, ""
    for read in (*reads, b""):
        try:
            connection.receive_data(read)
            while True:
                event = connection.next_event()
                last = "" if event in (h11.NEED_DATA, h11.PAUSED) else type(event).__name__
                if isinstance(event, h11.Data):
                    body += event.data
                    count += 1
                elif event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.EndOfMessage):
                    break
        except h11.RemoteProtocolError:
            return body, count, "error"
        if last == "EndOfMessage":
            break
    return body, count, last


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[begin:end] for begin, end in itertools.pairwise(places) if end > begin]


@given(
    pieces=st.lists(st.binary(min_size=1, max_size=50), max_size=12),
    cuts=st.lists(st.integers(0, 2_000), max_size=12),
    trailer=st.sampled_from([b"", b"X-Checksum: 7\r\n"]),
    head=st.sampled_from(
        [
            HEAD,
            HEAD.replace(b"Transfer-Encoding: chunked", b"transfer-encoding:chunked"),
            b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD,
        ]
    ),
)
def test_h11_reads_the_same_body_however_the_bytes_are_divided(
    pieces: list[bytes], cuts: list[int], trailer: bytes, head: bytes
) -> None:
    data = head + chunked(*pieces, trailer=trailer)
    merger = ChunkMerger()
    merger.start()
    fed = [out for read in split(data, cuts) if (out := merger.feed(read))]
    body, _, last = events(*fed)
    assert (body, last) == (b"".join(pieces), "EndOfMessage")


@given(
    noise=st.binary(max_size=40),
    at=st.integers(0, 500),
    cuts=st.lists(st.integers(0, 2_000), max_size=6),
)
def test_whatever_is_not_ordinary_framing_means_the_same_to_h11(noise: bytes, at: int, cuts: list[int]) -> None:
    data = HEAD + chunked(b"first", b"second" * 9, b"third")
    at %= len(data)
    data = data[:at] + noise + data[at:]
    reads = split(data, cuts)
    merger = ChunkMerger()
    merger.start()
    try:
        fed = [out for read in (*reads, b"") if (out := merger.feed(read))]
    except httpcore.RemoteProtocolError:
        assert events(*reads)[2] == "error"
    else:
        body, _, last = events(*fed)
        wanted = events(*reads)
        # An error may be noticed before or after the chunk that it follows; what is read is the same up to there.
        assert last == wanted[2]
        assert body.startswith(wanted[0]) or wanted[0].startswith(body)


line_ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r\n"])
sizes = st.sampled_from(
    [b"5", b"05", b"5 ", b"5\t", b"5;a", b"5;a=\r", b" 5", b"-5", b"+5", b"0x5", b"4", b"6", b"F" * 20, b""]
)
versions = st.sampled_from(
    [b"HTTP/1.1 ", b"HTTP/1.1 ", b"HTTP/1.0 ", b"HTTP/0.9 ", b"HTTP/2 ", b"HTTP/1.1  ", b"", b"http/1.1 "]
)
codes = st.sampled_from(
    [b"200 OK", b"200", b"200 ", b"204 x", b"304 x", b"404 x", b"100 x", b"199", b"999", b"000", b"20", b"2000"]
)
header_lines = st.sampled_from(
    [
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: chunked",
        b"transfer-encoding:CHUNKED ",
        b"Transfer-Encoding:\r\n chunked",
        b"Transfer-Encoding: chunked\r\n x",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding : chunked",
        b"Content-Length: 5",
        b"Content-Length: 5",
        b"Content-Length: 7",
        b"Content-Length: 5, 5",
        b"Content-Length: 5, 6",
        b"Content-Length: -5",
        b"Content-Length: +5",
        b"Content-Length: 5\r\n 5",
        b"Content-Length:",
        b"X: \xe9\xff",
        b"X\xe9: y",
        b"X: \x00",
        b": y",
        b" y",
        b"Connection: close",
        b"X",
    ]
)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Make a response that is nearly valid."""
    made = b""
    for _ in range(draw(st.integers(1, 2))):
        made += draw(versions) + draw(codes) + draw(line_ends)
        made += b"".join(draw(header_lines) + draw(line_ends) for _ in range(draw(st.integers(0, 3))))
        made += draw(line_ends)
    for _ in range(draw(st.integers(0, 3))):
        made += draw(st.sampled_from([b"", draw(sizes) + draw(line_ends)])) + b"hello" + draw(line_ends)
    if draw(st.booleans()):
        made += draw(st.sampled_from([b"0", b"000", b"0;x", b"0 "])) + draw(line_ends)
        made += draw(st.sampled_from([b"", b"X: y\r\n", b"X y\r\n", b"X: y\n", b" z\r\n"]))
    return made + draw(line_ends) + draw(st.sampled_from([b"", b"", b"HTTP/1.1 200 OK\r\n\r\n"]))


@settings(max_examples=5 * settings.default.max_examples)
@given(data=responses(), cuts=st.lists(st.integers(0, 500), max_size=8))
def test_h11_alone_means_the_same_as_h11_behind_a_merger(data: bytes, cuts: list[int]) -> None:
    reads = split(data, cuts)
    wanted = events(*reads)
    merger = ChunkMerger()
    merger.start()
    try:
        fed = [merger.feed(read) for read in (*reads, b"")]
    except httpcore.RemoteProtocolError:
        assert wanted[2] == "error"
        return
    body, _, last = events(*[read for read in fed if read])
    assert last == wanted[2]
    if last == "error":
        assert body.startswith(wanted[0]) or wanted[0].startswith(body)
    else:
        assert body == wanted[0]


def test_chunks_of_one_read_become_one() -> None:
    merger = ChunkMerger()
    merger.start()
    fed = merger.feed(HEAD + chunked(*[b"an event\n"] * 100)[: -len(b"0\r\n\r\n")])
    assert fed == HEAD + b"%x\r\n" % 900 + b"an event\n" * 100 + b"\r\n"


def test_a_part_of_a_chunk_is_passed_on_at_once() -> None:
    merger = ChunkMerger()
    merger.start()
    assert merged(merger, HEAD + b"a\r\n01234") == HEAD + b"5\r\n01234\r\n"
    assert merged(merger, b"56789") == b"5\r\n56789\r\n"
    assert merged(merger, b"\r") == b""
    assert merged(merger, b"\n3") == b""
    assert merged(merger, b"\r\nabc\r\n") == b"3\r\nabc\r\n"
    assert merged(merger, b"0\r\n\r\n") == b"0\r\n\r\n"


def test_the_next_response_of_the_connection_is_merged_too() -> None:
    merger = ChunkMerger()
    for _ in range(3):
        merger.start()
        assert merged(merger, HEAD + chunked(b"a", b"b")) == HEAD + b"2\r\nab\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1\r\na\r\n0\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n1\r\na\r\n1\r\nb\r\n",
    ],
)
def test_anything_else_is_passed_on_as_it_is(data: bytes) -> None:
    merger = ChunkMerger()
    merger.start()
    assert merged(merger, data) == data
    assert merged(merger, b"1\r\nc\r\n1\r\nd\r\n") == b"1\r\nc\r\n1\r\nd\r\n"


@pytest.mark.parametrize(
    "size", [b"-1\r\n", b" 1\r\n", b"1\na\n", b"1" * 40 + b"\r\n", b"x\r\n", b"\r\n", b"1;a\nb\r\n"]
)
def test_a_size_that_h11_refuses_is_an_error(size: bytes) -> None:
    data = HEAD + b"1\r\nb\r\n" + size + b"a\r\n"
    assert events(data)[2] == "error"
    merger = ChunkMerger()
    merger.start()
    with pytest.raises(httpcore.RemoteProtocolError, match=r"^the size of a chunk is not valid$"):
        merger.feed(data)


def test_a_size_without_an_end_is_an_error_after_a_kilobyte() -> None:
    merger = ChunkMerger()
    merger.start()
    merger.feed(HEAD + b"1;" + b"x" * (MAX_SIZE_LINE - 2))
    with pytest.raises(httpcore.RemoteProtocolError, match=r"^the size of a chunk is not valid$"):
        merger.feed(b"x")


def test_extensions_of_chunks_are_dropped() -> None:
    merger = ChunkMerger()
    merger.start()
    assert merged(merger, HEAD + b'1;a="b"\r\na\r\n01 \r\nb\r\n0;x\r\n\r\n') == HEAD + chunked(b"ab")
    assert merger.is_at_end


@pytest.mark.parametrize(
    "data", [b"SSH-2.0-OpenSSH_9.6\r\n", b"<html>\r\n\r\n", b"\x00\x00\x12\x04", b"\r\nHTTP/1.1 200 OK\r\n\r\n", b"H2"]
)
def test_what_does_not_begin_like_http_is_an_error_at_once(data: bytes) -> None:
    merger = ChunkMerger()
    merger.start()
    with pytest.raises(httpcore.RemoteProtocolError, match=r"^the response does not begin with HTTP/$"):
        merger.feed(data)


OK_HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("limit", "data"),
    [
        ("header_bytes", OK_HEAD + b"a: " + b"x" * 70_000),
        ("header_bytes", OK_HEAD + b"a: " + b"x" * 70_000 + b"\r\n\r\n"),
        ("headers", OK_HEAD + b"a:b\r\n" * 2_000 + b"\r\n"),
        ("headers", OK_HEAD.replace(b"\r", b"") + b"a:b\n" * 2_000 + b"\n"),
        ("interim_responses", b"HTTP/1.1 100 Continue\r\n\r\n" * 17),
        ("interim_responses", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 17),
        ("header_bytes", HEAD + b"0\r\nx:" + b"y" * 70_000),
        ("headers", HEAD + b"0\r\n" + b"a:b\r\n" * 2_000 + b"\r\n"),
    ],
)
@pytest.mark.parametrize("read", [3, 4096, 1_000_000])
def test_what_is_not_the_body_has_limits(limit: str, data: bytes, read: int) -> None:
    merger = ChunkMerger()
    merger.start()
    with pytest.raises(LimitPassedError) as caught:
        merged(merger, *[data[begin : begin + read] for begin in range(0, len(data), read)])
    assert caught.value.limit == limit


def test_limits_can_be_raised() -> None:
    limits = Limits(header_bytes=100_000, headers=3_000, interim_responses=20)
    data = b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + OK_HEAD + b"a:b\r\n" * 2_998 + b"b:" + b"x" * 70_000 + b"\r\n\r\n"
    merger = ChunkMerger(limits)
    merger.start()
    assert merged(merger, data) == data


@pytest.mark.parametrize("space", [b" ", b"\t", b" \t"])
def test_a_thousand_spaces_in_a_header_are_an_error(space: bytes) -> None:
    """h11 needs 17 s to refuse 60,000 of them before a character that is not valid."""
    merger = ChunkMerger()
    merger.start()
    with pytest.raises(httpcore.RemoteProtocolError, match=r"^a header contains a thousand spaces$"):
        merger.feed(OK_HEAD + b"a:" + space * MAX_SPACES + b"\x00\r\n\r\n")


def test_a_chunk_that_is_longer_than_its_size_is_an_error() -> None:
    merger = ChunkMerger()
    merger.start()
    with pytest.raises(httpcore.RemoteProtocolError, match="longer than its size"):
        merger.feed(HEAD + b"1\r\nabc\r\n")


def test_what_is_held_at_the_end_of_the_connection_is_passed_on() -> None:
    merger = ChunkMerger()
    merger.start()
    assert merged(merger, HEAD + b"1\r\na\r\n1") == HEAD + b"1\r\na\r\n"
    assert merger.feed(b"") == b"1"
    assert merger.feed(b"") == b""


def test_bytes_without_a_request_are_passed_on() -> None:
    assert ChunkMerger().feed(HEAD + chunked(b"a", b"b")) == HEAD + chunked(b"a", b"b")


# --- the end of a response ---

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
COMPLETE = {
    "length": OK,
    "no body": b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "chunked": HEAD + chunked(b"one", b"two"),
    "no chunk": HEAD + chunked(),
    "1xx": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    "trailer": HEAD + chunked(b"one", trailer=b"X: y\r\n"),
    "extension": HEAD + b"1;extension=1\r\na\r\n0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "both": HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + chunked(b"one"),
}
UNKNOWN = {
    "101": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "until the end": b"HTTP/1.1 200 OK\r\n\r\nbody",
    "two lengths in one": OK.replace(b" 2", b" 2, 2"),
}


@pytest.mark.parametrize("response", COMPLETE.values(), ids=COMPLETE)
@given(cuts=st.lists(st.integers(0, 2_000), max_size=6))
def test_a_response_is_at_its_end_after_its_last_byte(response: bytes, cuts: list[int]) -> None:
    merger = ChunkMerger()
    for _ in range(2):
        merger.start()
        for read in split(response, cuts):
            assert not merger.is_at_end
            merger.feed(read)
        assert merger.is_at_end


@pytest.mark.parametrize("response", COMPLETE.values(), ids=COMPLETE)
@pytest.mark.parametrize("extra", [b"x", OK, HEAD + chunked(b"one")], ids=["junk", "response", "chunks"])
@given(cuts=st.lists(st.integers(0, 2_000), max_size=6))
def test_bytes_after_a_response_are_noticed(response: bytes, extra: bytes, cuts: list[int]) -> None:
    merger = ChunkMerger()
    merger.start()
    merged(merger, *split(response + extra, cuts))
    assert not merger.is_at_end
    merger.start()
    merged(merger, OK)
    assert merger.is_at_end


@pytest.mark.parametrize("response", UNKNOWN.values(), ids=UNKNOWN)
def test_a_response_whose_end_only_h11_knows_is_not_taken_to_be_at_it(response: bytes) -> None:
    merger = ChunkMerger()
    merger.start()
    merged(merger, response)
    assert not merger.is_at_end
