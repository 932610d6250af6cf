"""Bodies that are requested with gzip: decompressed in slices, within the limits."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, Loopback, serving, suspended_generators
from trioformer.client import ClientOptions
from trioformer.errors import ConnectionFailedError, LimitExceededError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import _failures as failures
from trioformer.transport._internal import ByteStream, Transport, open_transport
from trioformer.transport._limits import DEFAULT_LIMITS, Limits
from trioformer.transport._open import pays_to_compress
from trioformer.transport.auth._credentials import Credential
from trioformer.transport.http._body import SLICE, Gunzip
from trioformer.transport.http._httpx_transport import HTTPXTransport
from trioformer.transport.http._messages import Head, Headers, Request, read_head
from trioformer.transport.http._pool import Generation
from trioformer.transport.policy._liveness import ServerHealth

GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
DATA = b"".join(b'{"name":"%d"},' % number for number in range(200_000))


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def replying(body: bytes, code: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    return head % (code, len(body)) + body


Reader: TypeAlias = Callable[[Transport], Awaitable[bytes]]


@asynccontextmanager
async def connected(server: Loopback, limits: Limits = DEFAULT_LIMITS) -> AsyncIterator[Transport]:
    async with open_transport(
        ClusterConfig(server=server.url), options=ClientOptions(compression=True, limits=limits)
    ) as transport:
        yield transport


async def request(transport: Transport) -> bytes:
    return (await transport.request("GET", "/x")).body


async def read_list(transport: Transport) -> bytes:
    body = b""
    async with transport.stream("/x", for_watch=False) as stream:
        while chunk := await stream.receive_some():
            assert len(chunk) <= SLICE
            body += chunk
    return body


async def gunzip(pieces: Iterable[bytes]) -> bytes:
    source = iter(pieces)

    async def receive() -> bytes:
        await trio.lowlevel.checkpoint()
        return next(source, b"")

    gunzip, slices = Gunzip(receive), list[bytes]()
    while data := await gunzip.receive():
        slices.append(data)
    assert all(len(data) <= SLICE for data in slices)
    return b"".join(slices)


async def test_a_body_is_decompressed_whatever_its_chunks() -> None:
    for size, length in [(1_000_000, len(DATA)), (60_000, len(DATA)), (17, 500_000), (1, 20_000)]:
        assert await gunzip(pieces(gzip.compress(DATA[:length]), size)) == DATA[:length]


async def test_a_body_of_several_members_is_their_contents() -> None:
    for size in [1, 7, 1_000_000]:
        members = [gzip.compress(each) for each in (b"one", b"", b"two" * 50_000, b"")]
        assert await gunzip(pieces(b"".join(members), size)) == b"one" + b"two" * 50_000


async def test_a_body_that_ends_early_raises() -> None:
    for cut in [1, 5, 10, 11, 500, -1, -8, -9]:
        with pytest.raises(failures.DecodingError, match=r"^it ends early$"):
            await gunzip([gzip.compress(DATA[:5_000])[:cut]])


async def test_what_is_not_gzip_raises() -> None:
    for body in [
        b'{"kind":"List"}',
        zlib.compress(b"x"),
        gzip.compress(b"x") + b"rest of something",
        gzip.compress(b"x")[:-8] + b"\x00" * 8,
        gzip.compress(b"x")[:10] + b"\xff" * 50,
    ]:
        with pytest.raises(failures.DecodingError, match=r"^it is not gzip$"):
            await gunzip([body])


# --- over a transport ---

BOTH = pytest.mark.parametrize("read", [request, read_list])


@BOTH
async def test_a_compressed_body_is_read_and_its_connection_used_again(read: Reader) -> None:
    for coding in [b"gzip", b"GZIP", b"x-gzip"]:
        script = replying(gzip.compress(DATA)).replace(b": gzip", b": " + coding)
        async with serving(script, keep_alive=True) as server, connected(server) as transport:
            assert await read(transport) == DATA
            assert await read(transport) == DATA
        assert server.connections == 1
        assert all(b"\r\nAccept-Encoding: gzip\r\n" in head for head in server.heads)


async def test_writes_and_watches_are_not_compressed() -> None:
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    async with serving(plain) as server, connected(server) as transport:
        await transport.request("POST", "/x", content=b"{}")
        async with transport.stream("/x", for_watch=True) as stream:
            await stream.receive_some()
    assert len(server.heads) == 2
    assert all(b"\r\nAccept-Encoding: identity\r\n" in head for head in server.heads)


async def test_another_compression_is_left_as_it_is() -> None:
    for coding in [b"gzip, gzip", b"deflate", b"br", b"gzip, br"]:
        body = gzip.compress(DATA)
        script = replying(body).replace(b": gzip", b": " + coding)
        async with serving(script) as server, connected(server) as transport:
            assert await request(transport) == body


@BOTH
async def test_a_body_that_cannot_be_decompressed_is_a_failed_connection(read: Reader) -> None:
    for body, text in [(b"oops", "it is not gzip"), (gzip.compress(DATA)[:-1], "it ends early")]:
        async with serving(replying(body), keep_alive=True) as server, connected(server) as transport:
            with pytest.raises(ConnectionFailedError, match=rf"the response cannot be decompressed \({text}\)"):
                await read(transport)


async def test_limits_count_the_bytes_that_come_out() -> None:
    limits = Limits(object_bytes=1_000_000)
    bomb = replying(gzip.compress(b" " * 300_000_000, 9))
    async with serving(bomb) as server, connected(server, limits) as transport:
        tracemalloc.start()
        try:
            with pytest.raises(LimitExceededError, match="the body is too long"):
                await request(transport)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4_000_000


async def test_a_compressed_error_is_read_as_far_as_another_one() -> None:
    bomb = replying(gzip.compress(b"x" * 30_000_000, 9), b"500 Oops")
    async with serving(bomb) as server, connected(server) as transport:
        answer = await transport.request("GET", "/x")
    assert (answer.code, len(answer.body)) == (500, 256 * 1024)


async def test_other_tasks_run_between_the_slices_of_a_body() -> None:
    ran = 0

    async def run() -> None:
        nonlocal ran
        while True:
            await trio.lowlevel.checkpoint()
            ran += 1

    async with (
        serving(replying(gzip.compress(b" " * 100 * SLICE, 9))) as server,
        connected(server) as transport,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(run)
        with trio.testing.assert_checkpoints():
            await read_list(transport)
        nursery.cancel_scope.cancel()
    assert ran >= 100


async def test_a_compressed_body_can_be_left_or_cancelled_at_any_slice() -> None:
    for slices in [1, 50]:
        body = gzip.compress(b" " * 100 * SLICE, 9)
        for ends in ("left", "cancelled"):
            script = replying(body)
            async with serving(script, None) as server, connected(server) as transport:
                with trio.CancelScope() as scope:
                    async with transport.stream("/x", for_watch=False) as stream:
                        for _ in range(slices):
                            await stream.receive_some()
                        if ends == "cancelled":
                            scope.cancel()
                            await stream.receive_some()
                assert scope.cancelled_caught == (ends == "cancelled")
                assert suspended_generators() == ["serving"]


def test_compression_is_requested_by_default_where_the_link_may_be_slow() -> None:
    for server, in_cluster, pays in [
        ("https://10.0.0.1:6443", False, True),
        ("https://api.example.com", False, True),
        ("https://10.96.0.1:443", True, False),
        ("https://127.0.0.1:6443", False, False),
        ("https://[::1]:6443", False, False),
        ("http://localhost:8080", False, False),
        ("https://LOCALHOST", False, False),
    ]:
        assert pays_to_compress(ClusterConfig(server=server, in_cluster=in_cluster)) is pays


async def test_the_configuration_can_forbid_compression() -> None:
    for compression in [True, False, None]:
        plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        async with serving(plain) as server:
            config = ClusterConfig(server=server.url, disable_compression=True)
            async with open_transport(config, options=ClientOptions(compression=compression)) as transport:
                await request(transport)
        assert b"\r\nAccept-Encoding: identity\r\n" in server.heads[0]


@attrs.define(eq=False)
class Arrived:
    """A response that another task closes when its last piece is received; its connection is for others then."""

    pieces: list[bytes]
    close: Callable[[], Awaitable[None]] | None = None
    head: Head = attrs.field(factory=lambda: read_head(GZIP + b"\r\n"))
    upgraded: None = None
    is_closed: bool = False

    async def receive(self) -> bytes:
        assert not self.is_closed
        piece = self.pieces.pop(0)
        if not self.pieces and self.close is not None:
            await self.close()
        return piece

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_body_that_is_closed_while_it_is_decompressed_leaves_its_connection() -> None:
    compressed = gzip.compress(b"hello")
    health = ServerHealth._create("http://api.test", None)
    sender = HTTPXTransport(InMemory([]), "http://api.test")
    response = Arrived([compressed[:-8], compressed[-8:]])
    body = ByteStream(
        response,
        Request(method="GET", path="/x", headers=Headers([]), accepts_gzip=True, where=""),
        generation=Generation(sender, sender),
        sent_with=Credential(),
        health=health,
        limits=DEFAULT_LIMITS,
    )
    response.close = body.aclose
    assert await body.receive_some() == b"hello"
    with pytest.raises(trio.ClosedResourceError):
        await body.receive_some()
