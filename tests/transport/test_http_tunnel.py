"""Proxies that do not connect: each way has its error, within a bound of bytes and of time."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from trioformer._secret import Secret
from trioformer.transport._errors import ProxyFailedError
from trioformer.transport._proxy._environment import find_route
from trioformer.transport._proxy._proxy import Proxy
from trioformer.transport.http._sockets import READ_SIZE
from trioformer.transport.http._tunnel import MAX_HEAD, TUNNEL_PATIENCE, open_tunnel

SOCKS = "socks5://anna:planted@proxy"
HTTP = "http://anna:planted@proxy"


def parsed(url: str) -> Proxy:
    route = find_route("https://api.test", Secret(url), source="test")
    assert route is not None
    return route.proxy


@attrs.define(eq=False)
class Scripted:
    """A connection to a proxy that sends these bytes, whatever it receives, and then closes, or stays silent."""

    to_send: bytes = b""
    stays_open: bool = False
    piece: int = 1_000_000
    """Bytes that arrive at a time."""
    received: bytearray = attrs.field(factory=bytearray)
    read: int = 0
    """Bytes that the client has read."""

    def send_now(self, data: bytes) -> int:
        return 0

    def problem(self) -> None:
        return None

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.received += data

    async def receive_some(self, max_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        data = self.to_send[self.read : self.read + min(max_bytes, self.piece)]
        if not data and self.stays_open:
            await trio.sleep_forever()
        self.read += len(data)
        return data


async def failure(url: str, stream: Scripted, host: str = "api.test") -> ProxyFailedError:
    with pytest.raises(ProxyFailedError) as caught:
        await open_tunnel(stream, parsed(url), host, 6443)
    text = str(caught.value)
    assert text.startswith(f"the proxy {url.partition(':')[0]}://proxy:")
    for secret in ("anna", "planted", "YW5uYTpwbGFudGVk"):
        assert secret not in text
    return caught.value


CLOSED = "closed the connection without a response"
NO_HTTP = "did not respond with HTTP/1.1"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.mark.parametrize(
    ("response", "words", "is_permanent"),
    [
        (b"HTTP/1.1 407 X\r\n\r\n", "rejected the user and password", True),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "does not permit connections to api.test:6443 (HTTP 403)", True),
        (b"HTTP/1.1 502 X\r\n\r\n", "cannot connect to api.test:6443 (HTTP 502)", False),
        (b"\x15\x03\x01\x00\x02\x02\x46", NO_HTTP, True),
        (b"HTTP/1.1 200 X\r\nplanted\r\n\r\n", NO_HTTP, True),
        (b"HTTP/1.1 101 X\r\nUpgrade: planted\r\n\r\n", "api.test:6443 (HTTP 101)", True),
        (b"", CLOSED, False),
        (ESTABLISHED + b"planted", "sent something after its response", True),
    ],
)
async def test_each_other_response_to_http_connect_has_its_error(
    response: bytes, words: str, is_permanent: bool
) -> None:
    error = await failure(HTTP, Scripted(response))
    assert str(error).startswith("the proxy http://proxy:80 (proxy-url) ")
    assert words in str(error)
    assert (error.permanent, error.refused) == (is_permanent, False)


async def test_a_proxy_that_requires_a_user_says_where_to_write_it() -> None:
    assert "add them to its URL" in str(await failure("http://proxy", Scripted(b"HTTP/1.1 407 X\r\n\r\n")))


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000,
        b"H" * 1_000_000,
    ],
    ids=["headers", "long header", "interim responses", "no line"],
)
@pytest.mark.parametrize("piece", [1_000, 1_000_000])
async def test_a_head_without_end_ends_when_it_is_too_long(response: bytes, piece: int) -> None:
    stream = Scripted(response, piece=piece)
    error = await failure(HTTP, stream)
    assert str(error).endswith(
        ("bytes of headers; check that it is a proxy", "check its port and the scheme of its URL")
    )
    assert stream.read <= MAX_HEAD + min(piece, READ_SIZE)


@pytest.mark.parametrize(
    ("url", "sent"),
    [(HTTP, b""), (HTTP, b"HTTP/1.1 200 OK\r\nX: y"), (SOCKS, b"\x05"), (SOCKS, b"\x05\x02\x01\x00\x05\x00\x00\x01")],
)
async def test_a_proxy_that_hangs_has_a_minute(url: str, sent: bytes, autojump_clock: trio.testing.MockClock) -> None:
    began_at = trio.current_time()
    error = await failure(url, Scripted(sent, stays_open=True))
    assert trio.current_time() == began_at + TUNNEL_PATIENCE == began_at + 60
    assert "did not respond within 60 s" in str(error)
    assert not error.permanent


async def test_waiting_for_a_proxy_can_be_cancelled() -> None:
    with trio.move_on_after(0) as scope:
        await open_tunnel(Scripted(stays_open=True), parsed(HTTP), "api.test", 6443)
    assert scope.cancelled_caught


NAME = b"\x05\x01\x00\x03\x08api.test\x19\x2b"
OK = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
LOGIN = b"\x01\x04anna\x07planted"


@pytest.mark.parametrize("piece", [1, 1_000])
@pytest.mark.parametrize(
    ("url", "host", "answers", "requests"),
    [
        (SOCKS, "api.test", b"\x05\x02" + b"\x01\x00" + OK, b"\x05\x02\x00\x02" + LOGIN + NAME),
        (SOCKS, "api.test", b"\x05\x00" + OK, b"\x05\x02\x00\x02" + NAME),
        ("socks5://proxy", "api.test", b"\x05\x00" + OK, b"\x05\x01\x00" + NAME),
        (
            "socks5://proxy",
            "10.1.2.3",
            b"\x05\x00" + OK,
            b"\x05\x01\x00" + b"\x05\x01\x00\x01\x0a\x01\x02\x03\x19\x2b",
        ),
        (
            "socks5://proxy",
            "fd00::1",
            b"\x05\x00\x05\x00\x00\x04" + bytes(18),
            b"\x05\x01\x00" + b"\x05\x01\x00\x04\xfd\x00" + bytes(13) + b"\x01\x19\x2b",
        ),
        ("socks5://proxy", "api.test", b"\x05\x00\x05\x00\x00\x03\x02ab\x00\x00", b"\x05\x01\x00" + NAME),
    ],
)
async def test_socks_sends_and_reads_exactly_what_the_rfc_has(
    url: str, host: str, answers: bytes, requests: bytes, piece: int
) -> None:
    stream = Scripted(answers + b"what the server sends", piece=piece)
    await open_tunnel(stream, parsed(url), host, 6443)
    assert bytes(stream.received) == requests
    assert stream.read == len(answers)


@pytest.mark.parametrize(
    ("answers", "words", "is_permanent"),
    [
        (b"\x05\xff", "rejected the user and password", True),
        (b"\x05\x02\x01\x01", "rejected the user and password", True),
        *(
            (answers, "does not speak SOCKS5", True)
            for answers in (b"\x05\x01", b"\x04\x00", b"\x05\x00HTTP", b"\x05\x00\x05\x00\x00\x09planted")
        ),
        (b"\x05\x00\x05\x02\x00\x01", "does not permit connections to api.test:6443", True),
        (b"\x05\x00\x05\x04\x00\x01", "api.test:6443 (SOCKS5 reply 4: the host is unreachable", False),
        (b"\x05\x00\x05\x63\x00\x01", "api.test:6443 (SOCKS5 reply 99: ", False),
        *((answers, CLOSED, False) for answers in (b"", b"\x05", b"\x05\x02", b"\x05\x00\x05\x00\x00\x01\x00")),
    ],
)
async def test_each_other_answer_of_a_socks_proxy_has_its_error(answers: bytes, words: str, is_permanent: bool) -> None:
    error = await failure(SOCKS, Scripted(answers))
    assert str(error).startswith("the proxy socks5://proxy:1080 (proxy-url) ")
    assert words in str(error)
    assert (error.permanent, error.refused) == (is_permanent, False)
