"""The requests of one connection, for any cuts of what arrives."""

from __future__ import annotations

import pytest

from trioformer._serving._requests import Request, RequestParser

GET = b"GET / HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /a?b HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
UPGRADE = b"connection: upgrade\r\nupgrade: h2c\r\n"

READ_GET = ("GET", b"/", b"", True)
READ_POST = ("POST", b"/a?b", b"abc", True)


def parse(data: bytes, *, size: int = 1_000_000, head_size: int = 200, body_size: int = 20) -> RequestParser:
    """Parse what arrives in pieces of a size, and what is unread after a request."""
    parser = RequestParser(head_size, body_size)
    for start in range(0, len(data), size):
        if not parser.refusal:
            piece, parser.unread = parser.unread + data[start : start + size], b""
            parser.feed(piece)
    while parser.unread and not parser.refusal:
        rest, parser.unread = parser.unread, b""
        parser.feed(rest)
    return parser


def seen(request: Request) -> tuple[str, bytes, bytes, bool]:
    return request.method, request.target, bytes(request.body), request.keeps_alive


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (GET + b"\r\n", [READ_GET]),
        (b"\r\n" + GET + b"\r\n", [READ_GET]),
        (b"GET / HTTP/1.0\r\n\r\n", [("GET", b"/", b"", False)]),
        (b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", [("GET", b"/", b"", False)]),
        (GET + b"connection: x, Close\r\n\r\n", [("GET", b"/", b"", False)]),
        (POST + b"content-length: 3\r\n\r\nabc" + GET + b"\r\n", [READ_POST, READ_GET]),
        (POST + CHUNKED + b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nhost: y\r\n\r\n", [READ_POST]),
        (GET + UPGRADE + b"\r\n" + GET + b"\r\n", [READ_GET] * 2),
        (b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n" + GET + b"\r\n", [("CONNECT", b"a:1", b"", True), READ_GET]),
        (POST + UPGRADE + b"content-length: 3\r\n\r\nabc" + GET + b"\r\n", [READ_POST, READ_GET]),
        (POST + UPGRADE + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n" + GET + b"\r\n", [READ_POST, READ_GET]),
        (POST + UPGRADE + b"content-length: 0\r\n\r\n" + GET + b"\r\n", [("POST", b"/a?b", b"", True), READ_GET]),
    ],
    ids=[
        "a head",
        "after an empty line",
        "HTTP/1.0",
        "HTTP/1.0 with keep-alive",
        "close",
        "two requests",
        "chunks with a trailer",
        "an upgrade that is ignored",
        "CONNECT",
        "an upgrade with a body",
        "an upgrade with chunks",
        "an upgrade with an empty body",
    ],
)
def test_requests_are_read_for_any_cuts(data: bytes, size: int, expected: list[tuple[str, bytes, bytes, bool]]) -> None:
    parser = parse(data, size=size)
    assert [seen(request) for request in parser.complete] == expected
    assert not parser.refusal
    parser.complete.clear()
    assert not parser.has_begun


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_headers_have_lower_names_and_no_space_around_values(size: int) -> None:
    parser = parse(b"GET / HTTP/1.1\r\nHost:x\r\nEmpty:\r\nX-Y: \t a b \t\r\nx-y: \xe4\r\n\r\n", size=size)
    assert parser.complete[0].headers == [(b"host", b"x"), (b"empty", b""), (b"x-y", b"a b"), (b"x-y", b"\xe4")]


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (POST + b"content-length: 5\r\n" + CHUNKED + b"0\r\n\r\n", 400),
        (POST + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", 400),
        (POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab", 400),
        (POST + b"content-length: +1\r\n\r\na", 400),
        (POST + b"content-length: 1 1\r\n\r\na", 400),
        (POST + b"content-length: 99999999999999999999999\r\n\r\na", 400),
        (POST + b"transfer-encoding: gzip\r\n\r\n", 501),
        (POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"transfer-encoding: gzip\r\n" + CHUNKED + b"0\r\n\r\n", 501),
        (POST + b"transfer-encoding: chunked\r\n" + CHUNKED + b"0\r\n\r\n", 400),
        (POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\n" + CHUNKED + b"0\r\n\r\n", 501),
        (POST + CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", 400),
        (POST + CHUNKED + b"1\r\nab\r\n0\r\n\r\n", 400),
        (POST + CHUNKED + b"1\na\r\n0\r\n\r\n", 400),
        (GET + b"a: b\r\n c\r\n\r\n", 400),
        (GET + b"a: b\n\r\n", 400),
        (GET + b"a: b\rc: d\r\n\r\n", 400),
        (GET + b"a: \x00\r\n\r\n", 400),
        (GET + b"a b: c\r\n\r\n", 400),
        (GET + b"host: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/0.9\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nhost: x\r\n\r\n", 400),
        (b"GET /\xc3\xa4 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (POST + b"content-length: 21\r\n\r\n" + b"x" * 21, 413),
        (POST + CHUNKED + b"15\r\n" + b"x" * 21 + b"\r\n0\r\n\r\n", 413),
    ],
)
def test_what_servers_could_read_in_two_ways_is_refused(data: bytes, code: int, size: int) -> None:
    parser = parse(data, size=size)
    assert not parser.complete
    assert parser.refusal == code


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\na: ",
        b"GET / HTTP/1.1\r\n",
        POST + CHUNKED + b"1;a=",
        POST + CHUNKED + b"1\r\na\r\n0\r\na: ",
        POST + UPGRADE + CHUNKED + b"1;a=",
    ],
    ids=["target", "header", "headers", "extension", "trailer", "extension after an upgrade"],
)
def test_nothing_but_a_body_can_be_longer_than_the_limit(begin: bytes) -> None:
    filling = b"a: b\r\n" * 50 if begin.endswith(b"1.1\r\n") else b"x" * 300
    assert parse(begin + filling, size=50).refusal == 431


def test_a_request_before_one_that_is_refused_is_read() -> None:
    parser = parse(GET + b"\r\n" + b"GET\r\n\r\n")
    assert [seen(request) for request in parser.complete] == [READ_GET]
    assert parser.refusal == 400


def test_the_bytes_after_an_upgrade_are_left_to_the_other_protocol() -> None:
    parser = RequestParser(200, 20)
    parser.feed(GET + UPGRADE + b"\r\n" + b"\x00early")
    assert (b"upgrade", b"h2c") in parser.complete[0].headers
    assert parser.unread == b"\x00early"


def test_a_request_with_a_body_cannot_switch_to_another_protocol() -> None:
    (request,) = parse(POST + UPGRADE + b"content-length: 1\r\n\r\na").complete
    assert b"upgrade" not in dict(request.headers)


@pytest.mark.parametrize("value", [b"100-continue", b"100-Continue"])
def test_the_client_awaits_that_it_may_send_the_body(value: bytes) -> None:
    parser = parse(POST + b"content-length: 2\r\nexpect: " + value + b"\r\n\r\n")
    assert parser.awaits_continue
    parser.feed(b"a")
    assert not parser.awaits_continue
