"""WebSockets that carry channels: frames, pings, half frames and ends, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from trioformer._channels import V4, V5, ChannelSocket


class Peer:
    """The server's side, frame by frame."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.frames = Connection(ConnectionType.SERVER)
        self.events: list[Event] = []

    async def send(self, *events: Event) -> None:
        await self.stream.send_all(b"".join(map(self.frames.send, events)))

    async def receive(self) -> Event:
        while not self.events:
            data = await self.stream.receive_some()
            assert data, "the client has closed the connection"
            self.frames.receive_data(bytes(data))
            self.events.extend(self.frames.events())
        return self.events.pop(0)

    async def respond_to_pings(self) -> None:
        while True:
            event = await self.receive()
            if isinstance(event, Ping):
                await self.send(event.response())


def pair(protocol: str = V5) -> tuple[ChannelSocket, Peer]:
    one, other = memory_stream_pair()
    return ChannelSocket(one, protocol, is_client=True), Peer(other)


async def test_each_message_belongs_to_a_channel() -> None:
    socket, peer = pair()
    await socket.send(0, b"hello")
    await socket.send(0, b"")
    await socket.send(4, b"{}")
    await socket.close_channel(0)
    sent = [await peer.receive() for _ in range(3)]
    assert [bytes(event.data) for event in sent if isinstance(event, BytesMessage)] == [
        b"\x00hello",
        b"\x04{}",
        b"\xff\x00",
    ]
    await peer.send(BytesMessage(data=b"\x01one"), BytesMessage(data=b"\x02"), BytesMessage(data=b"\x01two"))
    assert [await socket.receive() for _ in range(3)] == [(1, b"one"), (2, b""), (1, b"two")]


async def test_all_that_has_arrived_is_received_at_once() -> None:
    socket, peer = pair()
    await peer.send(BytesMessage(data=b"\x01one"), BytesMessage(data=b"\x02two"), CloseConnection(code=1000))
    assert await socket.receive_batch() == [(1, b"one"), (2, b"two")]
    assert await socket.receive_batch() == []


async def test_other_tasks_run_while_many_small_frames_are_parsed() -> None:
    socket, peer = pair()
    count, turns, received = 2000, 0, b""
    await peer.send(*(BytesMessage(data=b"\x01x") for _ in range(count)), CloseConnection(code=1000))

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        while batch := await socket.receive_batch():
            ((_, data),) = batch
            assert len(data) <= 256
            received += data
        nursery.cancel_scope.cancel()
    assert len(received) == count
    assert turns >= count // 256


async def test_a_receive_that_is_cancelled_between_frames_loses_nothing() -> None:
    socket, peer = pair()
    await peer.send(*(BytesMessage(data=b"\x01x") for _ in range(300)))
    assert await socket.receive_batch() == [(1, b"x" * 256)]
    with trio.CancelScope() as scope:
        scope.cancel()
        await socket.receive_batch()
    assert await socket.receive_batch() == [(1, b"x" * 44)]


async def test_large_data_is_sent_in_pieces() -> None:
    socket, peer = pair()
    data = bytes(range(256)) * 1024
    await socket.send(0, data)
    found = b""
    while len(found) < len(data):
        event = await peer.receive()
        assert isinstance(event, BytesMessage)
        found += bytes(event.data).removeprefix(b"\x00") if event.frame_finished else b""
        assert len(event.data) <= 32 * 1024 + 1
    assert len(found) >= len(data) - 8  # the bytes that are 0 at the beginning of a piece


async def test_a_message_of_several_frames_is_one_of_its_channel() -> None:
    socket, peer = pair()
    await peer.send(
        BytesMessage(data=b"\x01on", message_finished=False),
        Ping(payload=b"x"),
        BytesMessage(data=b"e", message_finished=True),
        BytesMessage(data=b"\x02two"),
    )
    assert [await socket.receive() for _ in range(3)] == [(1, b"on"), (1, b"e"), (2, b"two")]
    assert await peer.receive() == Pong(payload=b"x")


@given(
    messages=st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=400)), max_size=8),
    cuts=st.lists(st.integers(0, 4000), max_size=12),
)
async def test_messages_arrive_however_they_are_cut(messages: list[tuple[int, bytes]], cuts: list[int]) -> None:
    socket, peer = pair()
    data = b"".join(peer.frames.send(BytesMessage(data=bytes((channel,)) + content)) for channel, content in messages)
    data += peer.frames.send(CloseConnection(code=1000))
    found: dict[int, bytes] = {}

    async def receive() -> None:
        while (received := await socket.receive()) is not None:
            channel, piece = received
            found[channel] = found.get(channel, b"") + piece

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
        for begin, end in pairwise(places):
            await peer.stream.send_all(data[begin:end])
            await wait_all_tasks_blocked()
    expected: dict[int, bytes] = {}
    for channel, content in messages:
        expected[channel] = expected.get(channel, b"") + content
    assert found == expected


async def test_no_channel_can_be_closed_in_version_4() -> None:
    socket, _ = pair(V4)
    assert not socket.can_close_channels
    with pytest.raises(ValueError, match="cannot close a channel"):
        await socket.close_channel(0)


async def test_a_cancelled_receive_loses_nothing() -> None:
    socket, peer = pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await socket.receive()
    await peer.send(BytesMessage(data=b"\x01one"))
    assert await socket.receive() == (1, b"one")


async def test_a_silent_peer_is_pinged_and_its_response_is_enough(autojump_clock: MockClock) -> None:
    socket, peer = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.respond_to_pings)
        with trio.move_on_after(3600) as scope:
            await socket.receive()
        assert scope.cancelled_caught
        nursery.cancel_scope.cancel()


async def test_a_peer_that_does_not_respond_to_pings_is_an_error(autojump_clock: MockClock) -> None:
    socket, peer = pair()
    with pytest.raises(trio.BrokenResourceError, match="not responded to pings for 61 s"):
        await socket.receive()
    assert 65 <= trio.current_time() <= 72
    assert isinstance(await peer.receive(), Ping)


async def test_a_peer_that_nobody_has_listened_to_is_not_silent(autojump_clock: MockClock) -> None:
    socket, peer = pair()
    with trio.move_on_after(6):
        await socket.receive()
    assert isinstance(await peer.receive(), Ping)
    await peer.send(Pong())
    await trio.sleep(3600)
    with trio.move_on_after(50) as scope:
        await socket.receive()
    assert scope.cancelled_caught


def half_a_message(peer: Peer) -> bytes:
    return peer.frames.send(BytesMessage(data=b"\x01one"))[:-1]


def text(peer: Peer) -> bytes:
    return peer.frames.send(TextMessage(data="one"))


def no_channel(peer: Peer) -> bytes:
    return peer.frames.send(BytesMessage(data=b""))


def no_frame(peer: Peer) -> bytes:
    return b"HTTP/1.1 500 Internal Server Error\r\n\r\n"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (half_a_message, "the connection ended inside a message"),
        (text, "a text message"),
        (no_channel, "a message without a channel"),
        (no_frame, "the WebSocket has failed"),
    ],
)
async def test_what_is_wrong_is_an_error_after_what_was_right(make: Callable[[Peer], bytes], problem: str) -> None:
    socket, peer = pair()
    await peer.send(BytesMessage(data=b"\x01right"))
    await peer.stream.send_all(make(peer))
    await peer.stream.aclose()
    assert await socket.receive() == (1, b"right")
    if make is half_a_message:
        assert await socket.receive() == (1, b"on")
    for _ in range(2):
        with pytest.raises(trio.BrokenResourceError, match=problem):
            await socket.receive()


@pytest.mark.parametrize(
    ("code", "text"), [(1000, ""), (1001, "close code 1001"), (1005, ""), (4000, "close code 4000")]
)
async def test_an_end_without_a_reason_has_its_code(code: int, text: str) -> None:
    socket, peer = pair()
    await peer.send(CloseConnection(code=code))
    assert await socket.receive() is None
    assert socket.close_text == text


@pytest.mark.parametrize("has_close_frame", [False, True])
async def test_the_end_of_the_peer_is_an_end(has_close_frame: bool) -> None:
    socket, peer = pair()
    if has_close_frame:
        await peer.send(BytesMessage(data=b"\x01one"), CloseConnection(code=1011, reason="node is gone"))
    else:
        await peer.send(BytesMessage(data=b"\x01one"))
        await peer.stream.aclose()
    assert [await socket.receive() for _ in range(3)] == [(1, b"one"), None, None]
    assert socket.close_text == ("node is gone" if has_close_frame else "")
    with pytest.raises(trio.BrokenResourceError):
        await socket.send(0, b"x")


async def test_a_closed_socket_says_so_to_the_peer_and_to_who_uses_it() -> None:
    socket, peer = pair()
    async with trio.open_nursery() as nursery:

        async def receive() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await socket.receive()

        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await socket.receive()
        await socket.aclose()
        await socket.aclose()
    assert isinstance(await peer.receive(), CloseConnection)
    with pytest.raises(trio.ClosedResourceError):
        await socket.send(0, b"x")
    with pytest.raises(trio.ClosedResourceError):
        await socket.receive()


async def test_after_a_cancelled_send_nothing_more_is_sent() -> None:
    class Stuck(trio.abc.Stream):
        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            await trio.sleep_forever()

        async def wait_send_all_might_not_block(self) -> None:
            raise AssertionError

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            await trio.sleep_forever()
            raise AssertionError

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()

    socket = ChannelSocket(Stuck(), V5, is_client=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(socket.send, 0, b"x")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.BrokenResourceError, match="no more data can be sent"):
        await socket.send(0, b"y")
    await socket.aclose()
