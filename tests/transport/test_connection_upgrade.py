"""Connections that switch from HTTP to another protocol."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio
import trustme

from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._connection import MAX_REQUESTS
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.http._upgraded import UpgradedStream

HEADERS = [(b"Connection", b"Upgrade"), (b"Upgrade", b"echo")]
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"


@attrs.define(eq=False)
class Server:
    """Accepts connections, and lets a function speak on each after the head of its first request."""

    speak: Callable[[trio.abc.Stream], Awaitable[None]]
    url: str = ""
    ca: bytes = b""
    heads: list[bytes] = attrs.field(factory=list)
    closed: trio.Event = attrs.field(factory=trio.Event)

    async def serve(self, stream: trio.abc.Stream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some() or b"\r\n\r\n"
            self.heads.append(head)
            try:
                await self.speak(stream)
            except trio.BrokenResourceError:
                pass
            finally:
                self.closed.set()


@asynccontextmanager
async def serving(speak: Callable[[trio.abc.Stream], Awaitable[None]], *, tls: bool) -> AsyncIterator[Server]:
    server = Server(speak)
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.ca = authority.cert_pem.bytes()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.socket.getsockname()[1]}"

    async def handle(stream: trio.SocketStream) -> None:
        await server.serve(trio.SSLStream(stream, context, server_side=True, https_compatible=True) if tls else stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        yield server
        nursery.cancel_scope.cancel()


def connected(server: Server) -> ClusterConfig:
    return ClusterConfig(server=server.url, ca_data=server.ca) if server.ca else ClusterConfig(server=server.url)


async def echo(stream: trio.abc.Stream) -> None:
    await stream.send_all(SWITCH + b"hello")
    while data := await stream.receive_some():
        await stream.send_all(data)


def pool_of(transport: Transport) -> list[str]:
    return sorted(map(repr, transport._generations.present.requests.connections))  # type: ignore[attr-defined]


@pytest.mark.parametrize("tls", [False, True])
async def test_both_sides_speak_at_the_same_time_after_a_switch(tls: bool) -> None:
    size, received = 4_000_000, 0
    async with (
        serving(echo, tls=tls) as server,
        open_transport(connected(server)) as transport,
        transport.upgrade("/x?a=1&a=2", HEADERS, where="upgrade x") as response,
    ):
        assert response.code == 101
        stream = response.upgraded
        assert await stream.receive_some(2) == b"he"
        assert await stream.receive_some() == b"llo"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, bytes(size))
            while received < size:
                received += len(await stream.receive_some())
        assert received == size
    (head,) = server.heads
    assert head.startswith(b"GET /x?a=1&a=2 HTTP/1.1\r\n")
    assert b"Upgrade: echo\r\n" in head


async def test_a_reader_does_not_wait_for_a_sender_whose_peer_waits_to_be_read() -> None:
    size, received = 48_000_000, 0

    def shrink(connection: socket.socket | trio.socket.SocketType) -> None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, option, 32_768)

    async def echo_in_small_buffers(stream: trio.abc.Stream) -> None:
        shrink(stream.transport_stream.socket)  # type: ignore[attr-defined]  # it is an SSLStream
        await echo(stream)

    async with (
        serving(echo_in_small_buffers, tls=True) as server,
        open_transport(connected(server)) as transport,
        transport.upgrade("/x", HEADERS, where="upgrade x") as response,
    ):
        stream = response.upgraded
        shrink(stream._stream.raw.socket)  # type: ignore[attr-defined]  # it is a TCPStream

        async def send() -> None:
            for _ in range(size // 16_000):
                await stream.send_all(bytes(16_000))

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                while received < size:
                    received += len(await stream.receive_some())
                    await trio.lowlevel.checkpoint()


async def test_a_stream_is_readable_when_something_has_arrived() -> None:
    async def speak_when_asked(stream: trio.abc.Stream) -> None:
        await stream.send_all(SWITCH)
        await stream.receive_some()
        await stream.send_all(b"hello")
        await stream.receive_some()

    async with (
        serving(speak_when_asked, tls=False) as server,
        open_transport(connected(server)) as transport,
        transport.upgrade("/x", HEADERS, where="upgrade x") as response,
    ):
        stream = response.upgraded
        assert isinstance(stream, UpgradedStream)
        assert not stream.is_readable
        await stream.send_all(b"go")
        assert await stream.receive_some(1) == b"h"
        assert stream.is_readable
        assert await stream.receive_some() == b"ello"
        assert not stream.is_readable


async def test_the_end_of_the_block_closes_the_connection() -> None:
    async with serving(echo, tls=True) as server, open_transport(connected(server)) as transport:
        async with transport.upgrade("/x", HEADERS, where="upgrade x") as response:
            assert pool_of(transport) == ["<Connection: switched>"]
            stream = response.upgraded
        assert pool_of(transport) == []
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"x")
        with trio.fail_after(5):
            await server.closed.wait()


async def test_a_peer_that_has_gone_is_an_error_of_trio_for_who_sends() -> None:
    async def leave(stream: trio.abc.Stream) -> None:
        await stream.send_all(SWITCH)
        await trio.aclose_forcefully(stream)

    async with (
        serving(leave, tls=True) as server,
        open_transport(connected(server)) as transport,
        transport.upgrade("/x", HEADERS, where="upgrade x") as response,
    ):
        with trio.fail_after(5):
            assert await response.upgraded.receive_some() == b""
            with pytest.raises(trio.BrokenResourceError):
                await response.upgraded.send_all(bytes(20_000_000))


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the platform has no such option")
async def test_a_peer_that_reads_nothing_may_do_so_after_a_switch_only() -> None:
    async def refuse_first(stream: trio.abc.Stream) -> None:
        await stream.send_all(REFUSAL)
        await stream.receive_some()
        await echo(stream)

    def options_of(transport: Transport) -> tuple[int, int]:
        (connection,) = transport._generations.present.requests.connections  # type: ignore[attr-defined]
        sock = connection.stream.raw.socket
        patience = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        return patience, sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    async with serving(refuse_first, tls=True) as server, open_transport(connected(server)) as transport:
        async with transport.upgrade("/x", HEADERS, where="upgrade x") as response:
            assert (response.code, await response.receive_some()) == (403, b"no")
            assert await response.receive_some() == b""
        assert options_of(transport) == (42_000, 1)
        async with transport.upgrade("/x", HEADERS, where="upgrade x") as response:
            assert response.upgraded is response.upgraded
            assert options_of(transport) == (0, 1)
        assert len(server.heads) == 1


async def test_a_refusal_has_its_body_and_its_connection_is_used_again() -> None:
    async def refuse(stream: trio.abc.Stream) -> None:
        await stream.send_all(REFUSAL)
        await stream.receive_some()
        await stream.send_all(REFUSAL)

    async with serving(refuse, tls=False) as server, open_transport(connected(server)) as transport:
        for _ in range(2):
            async with transport.upgrade("/x", HEADERS, where="upgrade x") as response:
                assert (response.code, await response.receive_some()) == (403, b"no")
                assert await response.receive_some() == b""
                with pytest.raises(ValueError, match="did not switch"):
                    assert response.upgraded
        assert len(server.heads) == 1


async def test_an_upgrade_is_not_sent_twice() -> None:
    async def drop(stream: trio.abc.Stream) -> None: ...

    async with serving(drop, tls=False) as server, open_transport(connected(server)) as transport:
        with pytest.raises(ConnectionFailedError, match=r"^upgrade x: "):
            async with transport.upgrade("/x", HEADERS, where="upgrade x"):
                pytest.fail("there is a response")
        assert len(server.heads) == 1


async def test_streams_of_other_protocols_do_not_keep_requests_waiting() -> None:
    async with (
        serving(echo, tls=False) as server,
        open_transport(connected(server)) as transport,
        AsyncExitStack() as stack,
    ):
        with trio.fail_after(10):
            for _ in range(MAX_REQUESTS + 1):
                await stack.enter_async_context(transport.upgrade("/x", HEADERS, where="upgrade x"))


async def test_a_switch_that_nobody_requested_is_an_error() -> None:
    async with serving(echo, tls=False) as server, open_transport(connected(server)) as transport:
        with pytest.raises(ConnectionFailedError), trio.fail_after(5):
            await transport.request("GET", "/x", retries=False)


async def test_the_end_of_the_client_ends_a_stream() -> None:
    async with serving(echo, tls=False) as server, trio.open_nursery() as nursery:
        ended = trio.Event()

        async def receive(transport: Transport, *, task_status: trio.TaskStatus[None]) -> None:
            async with transport.upgrade("/x", HEADERS, where="upgrade x") as response:
                assert await response.upgraded.receive_some() == b"hello"
                task_status.started()
                with pytest.raises(trio.ClosedResourceError):
                    await response.upgraded.receive_some()
                ended.set()

        async with open_transport(connected(server)) as transport:
            await nursery.start(receive, transport)
        with trio.fail_after(5):
            await ended.wait()
