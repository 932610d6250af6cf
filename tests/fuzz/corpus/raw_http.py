"""Bytes of servers that were quoted, or that kept a client busy."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping

import trio

from tests.fuzz.fake_sockets import Step
from tests.fuzz.raw_http import CLEAN, Conversation
from tests.fuzz.secrets import CONTENT

SECRET = CONTENT.encode()
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"


def sent(*steps: Step, reads: str = "request") -> Conversation:
    return Conversation((*steps, b""), reads)


def dripping(head: bytes, size: int, pause: float) -> tuple[Step, ...]:
    def steps() -> Iterator[Step]:
        yield head
        for _ in range(size):
            yield b"x"
            yield pause

    return tuple(steps())


def compressed(data: bytes) -> bytes:
    body = gzip.compress(data)
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


CASES: Mapping[str, Callable[[], Conversation]] = {
    "a chunk size that is an object": lambda: sent(CHUNKED + SECRET + b"\r\n"),
    "the same in a list": lambda: sent(CHUNKED + SECRET + b"\r\n", reads="stream"),
    "the same in a watch": lambda: sent(CHUNKED + b"2\r\n{}\r\n" + SECRET + b"\r\n", reads="watch"),
    "a status line that is an object": lambda: sent(SECRET + b"\r\n\r\n"),
    "a field that is an object": lambda: sent(b"HTTP/1.1 200 OK\r\n" + SECRET + b"\r\n\r\n"),
    "a length that is an object": lambda: sent(b"HTTP/1.1 200 OK\r\nContent-Length: " + SECRET + b"\r\n\r\n"),
    "two lengths": lambda: sent(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}abc"),
    "a length and chunks": lambda: sent(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
    "a response after the response": lambda: sent(CLEAN + CLEAN.replace(b"clean", b"SMUGG")),
    "a response after the chunks": lambda: sent(CHUNKED + b"2\r\n{}\r\n0\r\n\r\n" + CLEAN.replace(b"clean", b"SMUGG"), reads="stream"),
    "100,000 interim responses": lambda: sent(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, CLEAN),
    "an interim response each second, without end": lambda: sent(*[b"HTTP/1.1 100 Continue\r\n\r\n", 1.0] * 3_000, None),
    "5,000 fields": lambda: sent(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5_000 + b"Content-Length: 0\r\n\r\n"),
    "a head that never ends": lambda: sent(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000),
    "a body that drips": lambda: sent(*dripping(ENDLESS, 100, 60.0)),
    "a list that drips": lambda: sent(*dripping(CHUNKED + b"64\r\n", 100, 60.0), reads="stream"),
    "10 MB in 10 KB": lambda: sent(compressed(b" " * 10_000_000)),
    "10 MB in 10 KB in a list": lambda: sent(compressed(b" " * 10_000_000), reads="stream"),
    "10 MB in 10 KB in a watch": lambda: sent(compressed(b" " * 10_000_000), reads="watch"),
    "a reset inside a field": lambda: Conversation((b"HTTP/1.1 200 OK\r\nX: " + SECRET, trio.BrokenResourceError("reset"))),
    "another protocol": lambda: sent(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + SECRET),
    "TLS where none is": lambda: sent(b"\x15\x03\x01\x00\x02\x02\x46"),
    "chunks that are cut off, over TLS": lambda: Conversation((CHUNKED + SECRET + b"\r\n", b""), "request", is_tls=True),
}  # fmt: skip
