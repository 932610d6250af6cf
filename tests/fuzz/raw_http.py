"""Bytes of a hostile server on a connection: framing, floods, bodies that drip or end early, compression."""

from __future__ import annotations

import gzip
import random
import ssl
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trustme

from trioformer.errors import TrioformerError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Response, Transport, open_transport

from .engine import Fuzzer
from .fake_sockets import FakeStream, Step, fake_sockets
from .framing import FramingError, decompressed, parse
from .oracle import Oracle
from .secrets import CONTENT, TOKEN

CLEAN_BODY = b'{"clean":true}'
CLEAN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(CLEAN_BODY), CLEAN_BODY)
BODIES = (
    b'{"kind":"Secret","data":{"password":"' + CONTENT.encode() + b'"}}',
    b"",
    b"\n",
    CONTENT.encode() * 50,
    CLEAN_BODY[:5] + CONTENT.encode(),
)
SIZES = (
    b"%X", b"000%x", b"0x%x", b"-%x", b"+%x", b" %x", b"%x ", b"%x;a=b", b'%x;a="\r\n"', b"%x\t", b"%xg", b"", b"%x;" + b"e" * 9_000,
    b"ffffffffffffffff%x", b"0" * 40 + b"%x", b"%x\n", b"%x\r", b"\xd9\xa3%x", b"%x,%x",
)  # fmt: skip
LENGTHS = (
    b"%d, %d", b"%d,%d", b"-%d", b"+%d", b"0%d", b"%d ", b"1%d", b"0x%x", b"%d.0", b"1e1", b"", b"9" * 30, b"9" * 5_000, b"\xd9\xa3", b"%d\x00",
)  # fmt: skip
CODINGS = (
    b"chunked, chunked", b"gzip, chunked", b"identity", b"xchunked", b"Chunked", b"chunked\x0b", b" chunked", b"chunked,", b"", b"chunked;q=1", b"gzip",
)  # fmt: skip
FIELDS = (
    b"Content-Length : 5", b" folded: x", b"\tfolded", b"no colon " + CONTENT.encode(), b": empty", b"a b: c", b"X: \x00", b"X: \xff\xfe",
    b"X: a\rb", b"X: a\nContent-Length: 5", b"Set-Cookie: a=" + CONTENT.encode(), b"Connection: close", b"Connection: upgrade",
    b"Upgrade: h2c", b"Keep-Alive: timeout=99999999999", b"Trailer: Content-Length", b"X: " + b"y" * 70_000, b"X" * 70_000 + b": y",
    b"Date: \x1b[2J", b"Content-Type: application/json",
)  # fmt: skip
STATUS_LINES = (
    b"HTTP/1.0 200 OK", b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1  200 OK", b"HTTP/2 200 OK", b"HTTP/1.2 200 OK", b"http/1.1 200 OK",
    b"HTTP/1.1 99 x", b"HTTP/1.1 1000 x", b"HTTP/1.1 2OO OK", b"ICY 200 OK", b"", b"<html>" + CONTENT.encode(), b"HTTP/1.1 200 O\xff\x1b[2JK",
    b"HTTP/1.1 204 No", b"HTTP/1.1 304 No", b"HTTP/1.1 101 Switching", b"HTTP/1.1 500 Oops", b"HTTP/1.1 200 " + b"x" * 70_000, b"SSH-2.0-x",
    b"PRI * HTTP/2.0", b"\x15\x03\x01\x00\x02\x02\x46", b"HTTP/1.1 600 x", b"HTTP/1.1 429 Slow\r\nRetry-After: " + b"9" * 5_000,
)  # fmt: skip


@attrs.frozen
class Conversation:
    """What the server sends after the first request, and how it is read."""

    steps: tuple[Step, ...]
    reads: str = "request"
    """``request``, ``stream`` or ``watch``."""
    is_tls: bool = False

    @property
    def data(self) -> bytes:
        """All bytes that arrive before the end, an error, or the silence."""
        sent = bytearray()
        for step in self.steps:
            if isinstance(step, bytes) and step:
                sent += step
            elif not isinstance(step, float):
                break
        return bytes(sent)

    @property
    def is_ended(self) -> bool:
        return b"" in self.steps


class RawHTTP(Fuzzer[Conversation]):
    """Sends a request and reads the response, and then another one, which must get its own response."""

    name = "raw_http"

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        authority = trustme.CA()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("server.example").configure_cert(self._tls)
        plain = ClusterConfig(server="http://server.example:8080")
        secure = ClusterConfig(server="https://server.example", token=TOKEN, ca_data=authority.cert_pem.bytes())
        self._streams: list[FakeStream] = []
        self._steps: tuple[Step, ...] = ()
        with fake_sockets(self._connect):
            async with open_transport(plain) as one, open_transport(secure) as other:
                self._transports = (one, other)
                yield

    def _connect(self, host: str, port: int) -> FakeStream:
        stream = FakeStream(self._respond, self._tls if port == 443 else None)
        self._streams.append(stream)
        return stream

    def _respond(self, head: bytes) -> tuple[Step, ...]:
        if b"GET /fuzzed" in head:
            return self._steps
        return (CLEAN if b"GET /clean" in head else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",)

    def generate(self, rng: random.Random) -> Conversation:
        data, is_ended = _response(rng)
        if rng.random() < 0.12 and data:
            position = rng.randrange(len(data))
            data, is_ended = (data[:position], True) if rng.random() < 0.7 else (data + data[position:], is_ended)
        steps: list[Step] = list(_pieces(rng, data))
        steps.append(b"" if is_ended else rng.choice((b"", b"", None, trio.BrokenResourceError("reset"))))
        return Conversation(tuple(steps), rng.choice(("request", "stream", "watch")), rng.random() < 0.1)

    async def check(self, given: Conversation, oracle: Oracle) -> None:
        self._steps = given.steps
        transport = self._transports[given.is_tls]
        try:
            result = await oracle.call(lambda: _read(transport, given.reads))
            _compare(result, given, oracle)
            self._steps = (CLEAN,)
            second: Any = await oracle.call(lambda: transport.request("GET", "/clean"))
            if isinstance(second, Response):
                oracle.expect(second.body == CLEAN_BODY, "a request gets the response to another one", second.body)
        finally:
            for stream in self._streams:
                stream.is_stale = True
            self._streams = [stream for stream in self._streams if not stream.is_closed]
            # The pool closes them when the next request asks for a connection.
            oracle.expect(len(self._streams) < 20, "connections stay open")


async def _read(transport: Transport, reads: str) -> tuple[int, bytes]:
    if reads == "request":
        response = await transport.request("GET", "/fuzzed")
        return response.code, response.body
    # No watch lasts for ever without a byte, if nothing answers the probes; a minute shows what it reads.
    with trio.move_on_after(600):
        async with transport.stream("/fuzzed", for_watch=reads == "watch") as stream:
            body = bytearray()
            while chunk := await stream.receive_some():
                body += chunk
            return stream.code, bytes(body)
    return 0, b""


def _compare(result: Any, given: Conversation, oracle: Oracle) -> None:
    """Compare what the library read with what the second parser reads."""
    if (given.steps and isinstance(given.steps[-1], Exception)) or given.steps[-1:] == (None,):
        is_ended = False
    else:
        is_ended = given.is_ended
    try:
        parsed = parse(given.data, is_ended=is_ended)
    except FramingError as exc:
        is_unread = not isinstance(result, Exception) and result[0] >= 300 and result[1] == b""  # a compressed error
        is_refused = isinstance(result, TrioformerError) or result == (0, b"") or is_unread
        oracle.expect(is_refused, f"a response is accepted that is not one: {exc}", (given.data[:300], result))
        return
    if isinstance(result, TrioformerError):
        is_slow = any(isinstance(step, float) for step in given.steps)
        oracle.expect(not parsed.is_strict or is_slow, "a valid response is refused", (result, given.data[:300]))
    elif result != (0, b""):
        body = decompressed(parsed)
        oracle.expect(result[0] == parsed.code, "the code is another", (result[0], parsed.code))
        if result[1] == b"" and parsed.code >= 300 and parsed.values(b"content-encoding"):
            return  # the body of an error is not decompressed
        if body is not None:
            oracle.expect(result[1] == body, "the body is another", (given.data[:300], result[1][:300], body[:300]))


def _response(rng: random.Random) -> tuple[bytes, bool]:
    """Make the bytes of a response; and whether the connection must end after it."""
    body, fields, is_ended = rng.choice(BODIES), [], False
    if rng.random() < 0.15:
        body, coding = _compressed(rng, body)
        fields.append(b"Content-Encoding: " + coding)
    line = b"HTTP/1.1 200 OK" if rng.random() < 0.8 else rng.choice(STATUS_LINES)
    framed = body
    match rng.randrange(7):
        case 0 | 1:
            fields.append(b"Content-Length: %d" % len(body))
        case 2 | 3:
            fields.append(b"Transfer-Encoding: chunked")
            framed = _chunks(rng, body, is_odd=rng.random() < 0.5)
        case 4:
            fields.append(b"Content-Length: " + _filled(rng.choice(LENGTHS), len(body)))
            fields += [b"Content-Length: %d" % len(body)] if rng.random() < 0.5 else []
        case 5:
            fields.append(b"Transfer-Encoding: " + rng.choice(CODINGS))
            fields += (
                [rng.choice((b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(body)))]
                if rng.random() < 0.6
                else []
            )
            framed = _chunks(rng, body, is_odd=False)
        case _:
            is_ended = True
    if rng.random() < 0.3:
        fields.append(rng.choice(FIELDS))
    if rng.random() < 0.02:
        fields += [b"X-%d: %s" % (number, b"z" * 20) for number in range(rng.choice((99, 120, 5_000)))]
    rng.shuffle(fields)
    end = b"\r\n" if rng.random() < 0.95 else rng.choice((b"\n", b"\r", b"\r\r\n"))
    head = b"".join(each + end for each in (line, *fields)) + end
    before = b""
    if rng.random() < 0.08:
        interim = rng.choice(
            (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", b"HTTP/1.1 102 P\r\n\r\n")
        )
        before = interim * rng.choice((1, 3, 50, 2_000))
    after = CLEAN.replace(b"clean", b"SMUGG") if rng.random() < 0.1 else b""
    return before + head + framed + after, is_ended


def _filled(template: bytes, size: int) -> bytes:
    return template.replace(b"%d", b"%d" % size).replace(b"%x", b"%x" % size)


def _chunks(rng: random.Random, body: bytes, *, is_odd: bool) -> bytes:
    middle = rng.randrange(len(body) + 1)
    parts = [part for part in (body[:middle], body[middle:]) if part]
    lines = [(b"%x" % len(part), part) for part in parts]
    last = b"0\r\n\r\n"
    if is_odd:
        if lines and rng.random() < 0.7:
            at = rng.randrange(len(lines))
            lines[at] = (_filled(rng.choice(SIZES), len(lines[at][1])), lines[at][1])
        last = rng.choice(
            (
                last,
                b"0\r\nX: y\r\n\r\n",
                b"0\r\n",
                b"",
                b"00\r\n\r\n",
                b"0\r\nContent-Length: 9\r\n\r\n",
                b"0\n\n",
                b"0;x\r\n\r\n",
            )
        )
    text = b"".join(size + b"\r\n" + part + b"\r\n" for size, part in lines) + last
    return text.replace(b"\r\n", rng.choice((b"\n", b"\r\n\r\n", b"")), 1) if is_odd and rng.random() < 0.2 else text


def _compressed(rng: random.Random, body: bytes) -> tuple[bytes, bytes]:
    if rng.random() < 0.2:
        body = b" " * rng.choice((10_000, 10_000, 3_000_000)) + body
    coding = rng.choice((b"gzip", b"deflate", b"gzip, gzip", b"br", b"zstd", b"identity", b"x-gzip", b"\xff", b"GZIP"))
    if coding.lower() in (b"gzip", b"x-gzip"):
        body = gzip.compress(body, 6)
    elif coding == b"deflate":
        body = zlib.compress(body)
    elif coding == b"gzip, gzip":
        body = gzip.compress(gzip.compress(body))
    if rng.random() < 0.2 and body:
        at = rng.randrange(len(body))
        body = body[:at] + bytes([body[at] ^ 255]) + body[at + 1 :]
    return body, coding


def _pieces(rng: random.Random, data: bytes) -> list[Step]:
    """Cut the bytes into what arrives at once; sometimes with pauses, rarely byte by byte."""
    choice = rng.random()
    if choice < 0.6 or len(data) < 3:
        return [data] if data else []
    if choice < 0.65 and len(data) < 600:
        pause = rng.choice((0.0, 1.0, 20.0, 80.0, 100.0))
        return [
            step for at in range(len(data)) for step in ([data[at : at + 1], pause] if pause else [data[at : at + 1]])
        ]
    ends = sorted({rng.randrange(1, len(data)) for _ in range(3)})
    parts: list[Step] = [data[begin:end] for begin, end in zip([0, *ends], [*ends, len(data)], strict=True)]
    if choice > 0.9:
        parts.insert(rng.randrange(len(parts)), rng.choice((5.0, 80.0, 100.0, 4_000.0)))
    return parts
