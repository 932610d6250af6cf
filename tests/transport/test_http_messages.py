"""Heads and bodies of HTTP/1.1, compared with h11 for any cuts of what arrives."""

from __future__ import annotations

import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.transport import _failures as failures
from trioformer.transport._errors import InvalidResponseError, TooLongHeadError
from trioformer.transport.http._connection import BodyReader, Expected
from trioformer.transport.http._messages import (
    Framing,
    Headers,
    Request,
    end_of_head,
    read_head,
)

LIMIT = 64 * 1024
NAMES = st.from_regex(rb"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).filter(
    lambda name: name.lower() not in (b"content-length", b"transfer-encoding", b"connection", b"upgrade")
)
VALUES = st.from_regex(rb"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True)
PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
EXTENSIONS = st.sampled_from([b"", b" ", b";a=b", b';a="b c"'])
CUTS = st.lists(st.integers(0, 400), max_size=6)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut what is sent into what arrives."""
    places = sorted({0, len(data), *(place for place in cuts if place < len(data))})
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def read_with_h11(received: list[bytes]) -> tuple[int, dict[str, str], bytes]:
    """Read a response that is complete or ends with the connection."""
    machine = h11.Connection(h11.CLIENT)
    machine.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    machine.send(h11.EndOfMessage())
    code, headers, body = 0, dict[str, str](), b""
    for data in [*received, b""]:
        machine.receive_data(data)
        while (event := machine.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                code = event.status_code
                for name, value in event.headers:
                    key, text = name.decode(), value.decode()
                    headers[key] = f"{headers[key]}, {text}" if key in headers else text
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return code, headers, body
    raise AssertionError("the response does not end")


def read(received: list[bytes]) -> tuple[int, dict[str, str], bytes]:
    """The same with what is tested."""
    held, end = b"", 0
    rest = iter([*received, b""])
    while not end:
        searched = len(held)
        held += next(rest)
        end = end_of_head(held, max(0, searched - 2))
    head = read_head(held[:end])
    reader = BodyReader(head, LIMIT)
    body = reader.feed(held[end:]) if held[end:] else b""
    while reader.expected is not Expected.NOTHING:
        body += reader.feed(next(rest))
    assert not reader.has_excess
    return head.code, head.headers, body


@given(
    st.integers(200, 599).filter(lambda code: code not in (204, 304)),
    st.lists(st.tuples(NAMES, VALUES), max_size=6),
    st.sampled_from(Framing),
    PIECES,
    EXTENSIONS,
    st.lists(st.tuples(NAMES, VALUES), max_size=2),
    CUTS,
)
def test_a_response_is_read_as_h11_reads_it(
    code: int,
    headers: list[tuple[bytes, bytes]],
    framing: Framing,
    pieces: list[bytes],
    extension: bytes,
    trailers: list[tuple[bytes, bytes]],
    cuts: list[int],
) -> None:
    body = b"".join(pieces)
    if framing is Framing.SIZED:
        headers = [*headers, (b"Content-Length", b"%d" % len(body))]
    elif framing is Framing.CHUNKED:
        headers = [*headers, (b"Transfer-Encoding", b"chunked")]
        body = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n"
        body += b"".join(b"%b: %b\r\n" % trailer for trailer in trailers) + b"\r\n"
    head = b"HTTP/1.1 %d OK\r\n" % code + b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"
    received = cut(head + body, cuts)
    assert read(received) == read_with_h11(received)


@given(PIECES, CUTS, st.binary(min_size=1, max_size=5))
def test_bytes_after_a_body_are_noticed(pieces: list[bytes], cuts: list[int], excess: bytes) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    sized = b"".join(pieces)
    for head, body in (
        (b"Transfer-Encoding: chunked", chunks + b"0\r\n\r\n"),
        (b"Content-Length: %d" % len(sized), sized),
    ):
        reader = BodyReader(read_head(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n"), LIMIT)
        found = b"".join(reader.feed(data) for data in cut(body + excess, cuts))
        assert (found, reader.expected is Expected.NOTHING, reader.has_excess) == (sized, True, True)


def test_a_head_that_is_not_valid_is_refused_and_not_quoted() -> None:
    for head in [
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nspace : x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: b\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: b\rc: d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ]:
        with pytest.raises(InvalidResponseError) as caught:
            read_head(head)
        assert str(caught.value).endswith("is not valid")


def test_a_chunk_that_is_not_valid_is_refused() -> None:
    for chunk in [b"x\r\n", b"-1\r\n", b"2\r\nabcd", b"0x1\r\n", b"f" * 2_000, b"1\n"]:
        reader = BodyReader(read_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), LIMIT)
        with pytest.raises(failures.RemoteProtocolError):
            reader.feed(chunk)


def test_trailers_have_a_limit_and_are_lines_of_a_head() -> None:
    for trailers, error in (
        (b"a: " + b"x" * 70_000, TooLongHeadError),
        (b"HTTP/1.1 200 OK\r\n\r\n", InvalidResponseError),
    ):
        reader = BodyReader(read_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), LIMIT)
        with pytest.raises(error):
            reader.feed(b"0\r\n" + trailers)


def test_a_body_that_ends_early_is_an_error() -> None:
    for header in [b"Content-Length: 5", b"Transfer-Encoding: chunked"]:
        reader = BodyReader(read_head(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n"), LIMIT)
        assert reader.feed(b"4\r\n") is not None
        with pytest.raises(failures.EarlyEndError):
            reader.feed(b"")


def test_the_server_says_whether_it_keeps_the_connection() -> None:
    for head, keeps_alive in [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", False),
    ]:
        assert read_head(head + b"\r\nContent-Length: 0\r\n\r\n").keeps_alive is keeps_alive


def test_warnings_are_not_joined_and_may_be_utf_8() -> None:
    head = read_head('HTTP/1.1 200 OK\r\nWarning: 299 - "é"\r\nwarning: 299 - "b"\r\n\r\n'.encode())
    assert head.warnings == ['299 - "é"', '299 - "b"']


@given(st.lists(st.tuples(NAMES, VALUES), max_size=4), st.none() | st.binary(max_size=20))
def test_h11_reads_the_request_that_is_sent(headers: list[tuple[bytes, bytes]], content: bytes | None) -> None:
    request = Request(
        method="POST", path="/a%2Fb", params={"c": "d&e"}, headers=Headers(headers), content=content, where=""
    )
    machine = h11.Connection(h11.SERVER)
    machine.receive_data(request.encode(b"host:1", request.target("/prefix"), [(b"Authorization", b"x")]))
    found = machine.next_event()
    assert isinstance(found, h11.Request)
    assert (found.method, found.target) == (b"POST", b"/prefix/a%2Fb?c=d%26e")
    names = [name.lower() for name, _ in headers]
    expected = [b"host", *names, b"authorization", b"content-length"]
    assert [name for name, _ in found.headers] == expected
    body = b""
    while isinstance(event := machine.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert body == (content or b"")


def test_a_header_cannot_end_its_line() -> None:
    for item in [(b"a\r\nb", b"c"), (b"a", b"b\nc: d"), (b"a", b"b\x00")]:
        with pytest.raises(ValueError, match="line break"):
            Headers([item])
