"""Sockets and TLS: silent connections over real sockets, with short times, and the handshake."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import pytest
import trio
import trio.testing
import trustme

from tests.support.scripted_http import (
    CHUNKED,
    ONE_CHUNK,
    Loopback,
    Step,
    chunk,
    complete,
    suspended_generators,
)
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import _failures as failures
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.http._sockets import NetworkStream, TCPStream

SILENCE = 0.05
PATIENCE = 5.0
"""Of a probe that is responded to, on a machine with other work."""
SHORT_PATIENCE = 0.1
CA = trustme.CA()
CERTIFICATE = CA.issue_cert("127.0.0.1")


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    if not request.param:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    return context


class Script:
    """A server of probes and watches; ``probes`` is how it responds to a probe, ``watch`` to a watch."""

    def __init__(self, watch: list[Step]) -> None:
        self.probe: Step = complete(b"ok")
        self.watch = watch
        self.sent = 0
        self.is_ignored = trio.Event()
        """Set when a probe has arrived that is not responded to."""

    def __call__(self, head: bytes) -> Iterator[Step]:
        if b"/livez" in head:
            self.sent += 1
            if self.probe is None:
                self.is_ignored.set()
            yield self.probe
        else:
            yield from self.watch


@asynccontextmanager
async def opened(
    script: Script, tls: ssl.SSLContext | None, *, patience: float = PATIENCE
) -> AsyncGenerator[tuple[Loopback, Transport], None]:
    server = Loopback(script, tls=tls, keep_alive=True, scripts_probes=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        config = ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes() if tls else None)
        async with open_transport(config) as transport:
            transport.health.silence, transport.health.patience = SILENCE, patience
            yield server, transport
        nursery.cancel_scope.cancel()


async def test_a_silent_watch_goes_on_while_the_server_responds_to_probes() -> None:
    script = Script([ONE_CHUNK, SILENCE * 8, chunk(b"two"), None])
    async with opened(script, None) as (server, transport), transport.stream("/x", for_watch=True) as body:
        assert await body.receive_some() == b"one"
        assert await body.receive_some() == b"two"
        assert script.sent >= 2
        assert server.connections == 2
    assert suspended_generators() == []


async def test_a_server_that_stops_responding_ends_a_watch() -> None:
    script = Script([ONE_CHUNK, None])
    async with (
        opened(script, None, patience=SHORT_PATIENCE) as (server, transport),
        transport.stream("/x", for_watch=True) as body,
    ):
        assert await body.receive_some() == b"one"
        script.probe = None
        for _ in range(2):
            with pytest.raises(ConnectionFailedError) as caught:
                await body.receive_some()
        assert str(caught.value) == (
            f"{server.url}: the server has sent nothing for 0.05 s and did not respond to a probe within 0.1 s; "
            "the connection is presumed dead"
        )
    assert suspended_generators() == []


async def test_a_watch_without_a_response_is_verified_too() -> None:
    script = Script([None])
    async with opened(script, None, patience=SHORT_PATIENCE) as (_, transport):
        await transport.health.prepare()
        script.probe = None
        with pytest.raises(ConnectionFailedError, match="presumed dead"):
            async with transport.stream("/x", for_watch=True, retries=False):
                pass
    assert suspended_generators() == []


async def test_a_watch_cancelled_during_a_probe_closes_its_connection() -> None:
    script = Script([ONE_CHUNK, None])
    async with opened(script, None) as (_, transport):
        with trio.CancelScope() as scope:
            async with transport.stream("/x", for_watch=True) as body:
                await body.receive_some()
                script.probe = None
                async with trio.open_nursery() as nursery:

                    @nursery.start_soon
                    async def _() -> None:
                        await script.is_ignored.wait()
                        scope.cancel()

                    await body.receive_some()
        assert scope.cancelled_caught
        assert transport._generations.present.watches.connections == []  # type: ignore[attr-defined]  # of a Pool
    assert suspended_generators() == []


async def test_the_probe_connection_has_the_tls_server_name() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert("api.test").configure_cert(context)
    server = Loopback(Script([None]), tls=context, keep_alive=True, scripts_probes=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        config = ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes(), tls_server_name="api.test")
        async with open_transport(config) as transport:
            await transport.health.prepare()
            assert server.heads[0].startswith(b"GET /livez?exclude=etcd HTTP/1.1\r\nHost: 127.0.0.1:")
        nursery.cancel_scope.cancel()


async def test_a_tls_handshake_has_ten_seconds(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    with pytest.raises(failures.ConnectTimeout):
        await NetworkStream(TCPStream(ours)).start_tls(ssl.create_default_context(), "127.0.0.1", 30)
    assert trio.current_time() == 10
    await theirs.aclose()


@attrs.define(eq=False)
class _Interrupted:
    """A health whose verification is interrupted by Ctrl-C."""

    silence: float = 1.0
    look_at: float = float("inf")
    scope: trio.CancelScope | None = None

    async def verify(self, opened_at: float, *, resumable: bool) -> None:
        if self.scope is not None:
            self.scope.cancel()
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_keyboard_interrupt_during_a_verification_is_neither_wrapped_nor_lost(
    is_cancelled: bool, autojump_clock: trio.testing.MockClock
) -> None:
    mine, _peer = trio.socket.socketpair()
    with trio.CancelScope() as scope:
        health = _Interrupted(scope=scope if is_cancelled else None)
        stream = NetworkStream(TCPStream(trio.SocketStream(mine)), health=health)  # type: ignore[arg-type]  # of the same shape
        with pytest.raises(KeyboardInterrupt):
            await stream.receive(None)
    _peer.close()
    stream.close()


async def test_bytes_after_a_response_are_not_the_next_response(tls: ssl.SSLContext | None) -> None:
    for first in [
        complete(b"first") + complete(b"first"),
        complete(b"first") + b"junk",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nfirst",
        CHUNKED + chunk(b"first") + b"0\r\n\r\n" + complete(b"first"),
    ]:
        responses = iter([first, complete(b"second"), complete(b"third")])
        script = Script([])
        async with opened(script, tls) as (server, transport):
            for expected in (b"" if b" 204 " in first else b"first", b"second", b"third"):
                script.watch = [next(responses)]
                assert (await transport.request("POST", "/x", content=b"{}")).body == expected
                assert len(pool_of(transport)) == (expected in {b"second", b"third"})
            assert server.connections == 2


async def test_what_the_socket_does_not_take_at_once_is_sent_when_the_peer_reads(
    tls: ssl.SSLContext | None, nursery: trio.Nursery
) -> None:
    for size in [1_000, 16_384, 200_000]:
        ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least that the kernel allows, a few kilobytes
        peer: trio.abc.Stream = theirs if tls is None else trio.SSLStream(theirs, tls, server_side=True)
        stream = NetworkStream(TCPStream(ours))
        if isinstance(peer, trio.SSLStream):
            nursery.start_soon(peer.do_handshake)
            stream = await stream.start_tls(
                ssl.create_default_context(cadata=CA.cert_pem.bytes().decode()), "127.0.0.1"
            )
            await trio.testing.wait_all_tasks_blocked()
        messages = [bytes([number]) * size for number in range(20)]
        nursery.start_soon(send_all, stream, messages)
        await trio.testing.wait_all_tasks_blocked()  # nothing has been read, and the socket is full
        received = b""
        while len(received) < 20 * size:
            received += await peer.receive_some()
        assert received == b"".join(messages)
        stream.close()
        await theirs.aclose()


async def send_all(stream: NetworkStream, messages: Iterable[bytes]) -> None:
    for message in messages:
        await stream.send(message, PATIENCE)


async def test_a_peer_that_reads_nothing_ends_a_send() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = NetworkStream(TCPStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours))))
        with pytest.raises(failures.WriteTimeout):
            await stream.send(bytes(10_000_000), SHORT_PATIENCE)
        stream.close()
        with pytest.raises(failures.WriteError):
            await stream.send(b"x", SHORT_PATIENCE)


async def test_a_socket_has_one_sender_and_says_when_it_is_closed() -> None:
    ours, theirs = socket.socketpair()
    raw = TCPStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raw.send_all, bytes(10_000_000))
            await trio.testing.wait_all_tasks_blocked()
            assert raw.send_now(b"x") == 0
            with pytest.raises(trio.BusyResourceError):
                await raw.send_all(b"x")
            nursery.cancel_scope.cancel()
        raw.close()
        assert raw.is_readable
        assert raw.send_now(b"x") == 0
        for use in (raw.receive_some(1), raw.send_all(b"x")):
            with pytest.raises(trio.ClosedResourceError):
                await use


async def test_sending_and_receiving_are_checkpoints_even_if_nothing_waits() -> None:
    ours, theirs = socket.socketpair()
    raw = TCPStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
    with theirs:
        theirs.send(b"x")
        for use in (partial(raw.send_all, b"x"), partial(raw.receive_some, 1)):
            with trio.testing.assert_checkpoints():
                await use()
            with trio.CancelScope() as scope:
                scope.cancel()
                await use()
            assert scope.cancelled_caught
        raw.close()


async def test_a_probe_is_not_sent_on_a_connection_with_bytes_after_a_response() -> None:
    script = Script([])
    script.probe = complete(b"ok") * 2
    async with opened(script, None) as (_, transport):
        await transport.health.prepare()
        connection = transport.health._connection
        assert connection is not None
        assert not connection.is_live


class _Line(trio.abc.Stream):
    """A connection that TLS does not close, and that can send two messages of TLS in one piece."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.held: bytearray | None = None

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.held is None:
            await self.stream.send_all(data)
        else:
            self.held += data

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return bytes(await self.stream.receive_some(max_bytes))

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def release(self) -> None:
        assert self.held is not None
        data, self.held = self.held, None
        await self.stream.send_all(data)


@attrs.define(eq=False)
class _ClosingServer:
    """A TLS server that sends close_notify after its last response on a connection, and leaves the socket open.

    The first connection has the responses, the others always "ok"; one for probes is not counted.
    """

    responses: list[bytes]
    closes_probes: bool = False
    in_one_piece: bool = True
    connections: int = 0
    has_closed: trio.Event = attrs.field(factory=trio.Event)

    async def serve(self, connection: trio.SocketStream) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        CERTIFICATE.configure_cert(context)
        line = _Line(connection)
        stream = trio.SSLStream(line, context, server_side=True)
        head = await self._receive(stream)
        is_probed = b"/livez" in head and not self.closes_probes
        self.connections += not is_probed
        responses = self.responses if self.connections == 1 and not is_probed else [complete(b"ok")] * 9
        with suppress(trio.BrokenResourceError):  # the client has not read close_notify
            for number, response in enumerate(responses, 1):
                if number > 1 and not await self._receive(stream):
                    return
                if self.in_one_piece and number == len(responses):
                    line.held = bytearray()
                if response:
                    await stream.send_all(response)
            await stream.aclose()
            if line.held:
                await line.release()
            self.has_closed.set()
            while await connection.receive_some():
                pass

    @staticmethod
    async def _receive(stream: trio.SSLStream[_Line]) -> bytes:
        """Receive a request with its body: OpenSSL sends no close_notify while there is something to read."""
        request = await Loopback._receive_head(stream)
        while request.startswith(b"POST") and not request.endswith(b"{}"):
            request += await stream.receive_some()
        return request


@asynccontextmanager
async def closing(server: _ClosingServer) -> AsyncGenerator[Transport, None]:
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        url = f"https://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with open_transport(ClusterConfig(server=url, ca_data=CA.cert_pem.bytes())) as transport:
            with trio.fail_after(30):  # not 90 s, which is the timeout of a request
                yield transport
        nursery.cancel_scope.cancel()


def pool_of(transport: Transport) -> list[object]:
    return list(transport._generations.present.requests.connections)  # type: ignore[attr-defined]  # of a Pool


async def test_close_notify_is_the_end_of_a_complete_body() -> None:
    for in_one_piece in [False, True]:
        for response in [
            complete(b"done"),
            CHUNKED + chunk(b"do") + chunk(b"ne") + b"0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndone",
        ]:
            server = _ClosingServer([response], in_one_piece=in_one_piece)
            async with closing(server) as transport:
                assert (await transport.request("GET", "/x")).body == b"done"
                await server.has_closed.wait()
                assert (await transport.request("POST", "/x", content=b"{}")).body == b"ok"
                assert server.connections == 2
                assert len(pool_of(transport)) == 1


async def test_close_notify_inside_a_response_is_an_error_at_once() -> None:
    for in_one_piece in [False, True]:
        for response in [
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndone",
            CHUNKED + chunk(b"done"),
            CHUNKED + b"9\r\ndone",
            b"",
        ]:
            server = _ClosingServer([complete(b"ok"), response], in_one_piece=in_one_piece)
            async with closing(server) as transport:
                await transport.request("GET", "/x")
                with pytest.raises(ConnectionFailedError, match=r"closed.*try again"):
                    await transport.request("POST", "/x", content=b"{}")
                assert pool_of(transport) == []


async def test_a_probe_is_not_sent_on_a_connection_with_close_notify() -> None:
    server = _ClosingServer([complete(b"ok")], closes_probes=True)
    async with closing(server) as transport:
        await transport.health.prepare()
        await server.has_closed.wait()
        connection = transport.health._connection
        assert connection is not None
        assert not connection.is_live
