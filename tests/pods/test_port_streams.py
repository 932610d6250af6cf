"""Connections to ports of pods: streams, ends and errors, in memory and on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from tests.pods.conftest import either, pod
from trioformer._channels import ChannelSocket
from trioformer._spdy import TUNNEL, SpdyFrames
from trioformer.client import Api, Client
from trioformer.errors import (
    BadRequestError,
    ConnectionFailedError,
    NotFoundError,
    PortForwardError,
    UnexpectedResponseError,
)
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.pods import connect_port
from trioformer.pods._port_streams import _END_PATIENCE, PodConnection
from trioformer.testing import APIServer, ScriptedConnection, ScriptedPod

MIB = 1024 * 1024
both = pytest.mark.parametrize("is_socket", [False, True], ids=["memory", "socket"])


async def echo(connection: ScriptedConnection) -> None:
    async for data in connection:
        await connection.send_all(data)
    await connection.send_all(b"end")


@both
async def test_each_side_ends_what_it_sends(
    is_socket: bool, web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    web.on_connect(7, echo)
    data = bytes(range(256)) * 4096
    received = bytearray()

    async def send(stream: trio.abc.HalfCloseableStream) -> None:
        await stream.send_all(data)
        await stream.send_eof()
        await stream.send_eof()  # nothing happens
        with pytest.raises(trio.ClosedResourceError, match="send_eof"):
            await stream.send_all(b"x")

    async with either(is_socket, api_server, pods) as api, connect_port(api, "web-0", 7) as stream:
        assert repr(stream) == "<PodConnection to port 7 of web-0: open>"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, stream)
            async for piece in stream:
                received += piece
        assert received == data + b"end"
        assert await stream.receive_some() == b""
    with pytest.raises(trio.ClosedResourceError):
        await stream.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_eof()
    assert repr(stream) == "<PodConnection to port 7 of web-0: closed>"


async def test_parts_of_what_has_arrived_can_be_received(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.on_connect(7, echo)
    async with connect_port(pods, "web-0", 7) as stream:
        await stream.send_all(b"")
        await stream.send_all(b"hello")
        await stream.wait_send_all_might_not_block()
        assert [await stream.receive_some(2) for _ in range(3)] == [b"he", b"ll", b"o"]
        with pytest.raises(ValueError, match="max_bytes"):
            await stream.receive_some(0)


async def test_one_task_sends_and_one_receives(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def wait(connection: ScriptedConnection) -> None:
        await trio.sleep(10)

    web.on_connect(7, wait)
    async with connect_port(pods, "web-0", 7) as stream:
        nursery.start_soon(stream.receive_some)
        nursery.start_soon(stream.send_all, bytes(64 * MIB))
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="receiving"):
            await stream.receive_some()
        with pytest.raises(trio.BusyResourceError, match="sending"):
            await stream.send_all(b"x")
        nursery.cancel_scope.cancel()
        await trio.lowlevel.cancel_shielded_checkpoint()


async def test_a_pod_that_does_not_read_blocks_who_sends(
    web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    received = bytearray()

    async def read_late(connection: ScriptedConnection) -> None:
        await trio.sleep(5)
        async for data in connection:
            received.extend(data)

    web.on_connect(7, read_late)
    async with connect_port(pods, "web-0", 7) as stream:
        await stream.send_all(bytes(8 * MIB))
        assert trio.current_time() >= 5
        await stream.send_eof()
        assert await stream.receive_some() == b""
    assert len(received) == 8 * MIB


async def test_the_error_of_the_node_is_that_of_the_stream(
    web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    async def fail(connection: ScriptedConnection) -> None:
        await connection.send_all(b"half")
        connection.fail("read: connection reset by peer")

    web.on_connect(7, fail)
    uid = api_server.get(Pod, "web-0").uid
    where = "forward port {} of pods/web-0 in namespace default: error forwarding port {} to pod web-0, uid " + uid
    async with either(True, api_server, pods) as api:
        async with connect_port(api, "web-0", 7) as stream:
            assert await stream.receive_some() == b"half"
            with pytest.raises(trio.BrokenResourceError) as raised:
                await stream.receive_some()
            assert str(raised.value) == where.format(7, 7) + ": read: connection reset by peer"
            assert isinstance(raised.value.__cause__, PortForwardError)
            with pytest.raises(trio.BrokenResourceError, match="read: connection reset by peer"):
                await stream.send_all(b"x")
        async with connect_port(api, "web-0", 8) as stream:
            with pytest.raises(
                trio.BrokenResourceError, match=r"dial tcp4 127\.0\.0\.1:8: connect: connection refused"
            ):
                await stream.receive_some()


async def test_a_connection_that_breaks_is_no_end(web: ScriptedPod, api_server: APIServer, pods: Api[Pod]) -> None:
    async def break_off(connection: ScriptedConnection) -> None:
        await connection.send_all(b"half")
        await connection.disconnect()

    web.on_connect(7, break_off)
    async with either(True, api_server, pods) as api, connect_port(api, "web-0", 7) as stream:
        assert await stream.receive_some() == b"half"
        with pytest.raises(trio.BrokenResourceError, match="the connection to the node has ended") as raised:
            await stream.receive_some()
        assert isinstance(raised.value.__cause__, ConnectionFailedError)


async def test_what_cannot_be_connected_to_is_an_error(web: ScriptedPod, client: Client, api_server: APIServer) -> None:
    pods = client.api(Pod, "default")
    with pytest.raises(NotFoundError, match='pods "none" not found'):
        async with connect_port(pods, "none", 7):
            pass
    api_server.create(pod("new", node=""))
    with pytest.raises(BadRequestError, match="pod new does not have a host assigned"):
        async with connect_port(pods, "new", 7):
            pass
    with pytest.raises(TypeError, match=r"connect_port\(\) is for pods"):
        async with connect_port(client.api(ConfigMap, "default"), "x", 7):
            pass
    mistakes = {0: "between 1 and 65535", "70000": "between 1", "": "not be empty", "9000:80": "pass .* local_port="}
    for port, problem in mistakes.items():
        with pytest.raises(ValueError, match=problem):
            async with connect_port(pods, "web-0", port):
                pass
    with pytest.raises(TypeError, match="a port must be a number or a name"):
        async with connect_port(pods, "web-0", 1.5):  # type: ignore[arg-type]  # the mistake
            pass


async def test_the_end_of_the_block_ends_the_connection_of_the_pod(
    web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    ended = trio.Event()

    async def wait(connection: ScriptedConnection) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    web.on_connect(7, wait)
    async with either(True, api_server, pods) as api:
        async with connect_port(api, "web-0", 7):
            pass
        await ended.wait()


# --- what no node sends ---


@asynccontextmanager
async def unaccepted() -> AsyncIterator[tuple[PodConnection, ChannelSocket, SpdyFrames]]:
    """Yield a connection that is not opened, and its peer."""
    one, other = memory_stream_pair()
    socket = ChannelSocket(one, TUNNEL, is_client=True)
    peer = ChannelSocket(other, TUNNEL, is_client=False)
    yield PodConnection._create("web-0", 7, socket, "forward", "the server"), peer, SpdyFrames(is_client=False)
    await socket.aclose()
    await peer.aclose()


@asynccontextmanager
async def scripted() -> AsyncIterator[tuple[PodConnection, ChannelSocket, SpdyFrames]]:
    """Yield a connection, and its peer."""
    async with unaccepted() as (connection, peer, frames):
        await peer.send(0, frames.accept(1) + frames.accept(3))
        await connection.open()
        yield connection, peer, frames


async def test_a_ping_has_a_response() -> None:
    ping = bytes.fromhex("80030006 00000004 00000002")
    async with scripted() as (connection, peer, frames):
        await peer.receive_batch()
        await peer.send(0, ping + frames.data(3, b"x"))
        assert await connection.receive_some() == b"x"
        assert await peer.receive_batch() == [(0, ping)]


async def test_a_ping_that_cannot_be_answered_ends_nothing() -> None:
    ping = bytes.fromhex("80030006 00000004 00000002")
    async with scripted() as (connection, peer, frames):
        await peer.send(0, frames.data(3, b"x") + ping)
        await peer.aclose()
        assert await connection.receive_some() == b"x"
        with pytest.raises(trio.BrokenResourceError, match="connection to the node has ended"):
            await connection.receive_some()
    async with scripted() as (connection, peer, frames):
        await peer.send(0, ping + frames.data(3, b"x", is_end=True) + frames.data(1, b"refused", is_end=True))
        await peer.aclose()
        assert await connection.receive_some() == b"x"
        with pytest.raises(trio.BrokenResourceError, match=r"^forward: refused$"):
            await connection.receive_some()


async def test_a_silent_node_is_pinged(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    async with scripted() as (connection, peer, frames):
        await peer.receive_batch()
        began_at = trio.current_time()
        nursery.start_soon(connection.receive_some)
        with trio.fail_after(1_000):
            for expected in (10, 10 + 60, 10 + 60 + 60):  # it has not responded
                [(_, ping)] = await peer.receive_batch()
                assert ping == bytes.fromhex("80030006 00000004 00000001")
                assert trio.current_time() - began_at == expected
            await peer.send(0, ping)
            await peer.receive_batch()
            assert trio.current_time() - began_at == 130 + 10
        await peer.send(0, frames.data(3, b"x"))


async def test_a_task_that_is_blocked_in_sending_delays_no_data(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def receive_late(connection: ScriptedConnection) -> None:
        await trio.sleep(12)
        await connection.send_all(b"begin")
        await trio.sleep(300)
        async for _ in connection:
            pass

    async def send(stream: trio.abc.HalfCloseableStream) -> None:
        await stream.send_all(bytes(8 * MIB))
        await stream.send_eof()

    web.on_connect(7, receive_late)
    async with connect_port(pods, "web-0", 7) as stream:
        nursery.start_soon(send, stream)
        assert await stream.receive_some() == b"begin"
        assert trio.current_time() == 12  # and not after a ping that waits for the other task
        assert await stream.receive_some() == b""


async def test_what_is_not_spdy_breaks_the_connection() -> None:
    for end in ["bytes", "text", "close"]:
        async with scripted() as (connection, peer, frames):
            await peer.send(0, frames.data(3, b"x") + (bytes.fromhex("ffff0000 00000000") if end == "bytes" else b""))
            if end == "close":
                await peer.aclose()
            elif end == "text":
                await peer._stream.send_all(b"\x81\x01x")
            assert await connection.receive_some() == b"x"
            expected = {
                "bytes": "not SPDY/3.1",
                "text": "a text message",
                "close": "connection to the node has ended",
            }
            with pytest.raises(trio.BrokenResourceError, match=expected[end]) as raised:
                await connection.receive_some()
            assert isinstance(raised.value.__cause__, ConnectionFailedError)


async def test_an_error_may_follow_the_end_of_the_data(autojump_clock: MockClock) -> None:
    async with scripted() as (connection, peer, frames):
        await peer.send(0, frames.data(3, b"", is_end=True) + frames.data(1, b"no\nroute"))
        await peer.send(0, frames.data(1, b"", is_end=True))
        with pytest.raises(trio.BrokenResourceError, match=r"^forward: no.*route$"):
            await connection.receive_some()
    async with scripted() as (connection, peer, frames):
        await peer.send(0, frames.data(3, b"x", is_end=True))
        began_at = trio.current_time()
        assert [data async for data in connection] == [b"x"]  # the node has nothing to say
        assert trio.current_time() == began_at + _END_PATIENCE


async def test_the_reason_may_follow_after_a_send_that_fails() -> None:
    async with scripted() as (connection, peer, frames):
        await peer.send(0, frames.data(3, b"x") + frames.data(1, b"refused") + frames.reset(3))
        assert await connection.receive_some() == b"x"
        with pytest.raises(trio.BrokenResourceError, match="the connection to the pod has ended"):
            await connection.send_all(b"x")
        await peer.send(0, frames.reset(1))
        with pytest.raises(trio.BrokenResourceError, match="refused"):
            await connection.receive_some()
        with pytest.raises(trio.BrokenResourceError, match="refused"):
            await connection.send_all(b"x")


async def test_a_node_may_refuse_the_streams() -> None:
    async with unaccepted() as (connection, peer, frames):
        await peer.send(0, frames.reset(1) + frames.reset(3))
        with pytest.raises(PortForwardError, match="reset the connection"):
            await connection.open()


async def test_a_node_must_accept_the_streams_in_time(autojump_clock: MockClock) -> None:
    async with unaccepted() as (connection, peer, frames):
        await peer.send(0, frames.accept(1))
        began_at = trio.current_time()
        problem = "within 30 s"
        with trio.fail_after(1_000), pytest.raises(ConnectionFailedError, match=problem):
            await connection.open()
        assert trio.current_time() - began_at == 30


async def test_data_before_the_stream_is_accepted_is_not_kept(autojump_clock: MockClock) -> None:
    async with unaccepted() as (connection, peer, frames):
        await peer.send(0, frames.accept(1) + frames.data(3, b"x"))
        problem = "data on a stream that the node has not accepted"
        with trio.fail_after(5), pytest.raises(ConnectionFailedError, match=problem):
            await connection.open()
        assert not connection._pieces


async def test_a_server_without_spdy_is_named(
    web: ScriptedPod, pods: Api[Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trioformer.pods._port_streams.TUNNEL", "SPDY/9+portforward.k8s.io")
    with pytest.raises((UnexpectedResponseError, BadRequestError), match="SPDY/9"):
        async with connect_port(pods, "web-0", 7):
            pass
