"""How long the parts of a response may take: any time for a watch after its head, and no time in which we were busy."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import TypeAlias, cast, final

import attrs
import h11
import pytest
import trio
import trio.testing
import trustme
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_http import CHUNKED, Loopback, Step, chunk, complete, serving
from trioformer.errors import LimitExceededError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import open_transport
from trioformer.transport._limits import BodyMeter, LimitPassedError, Limits
from trioformer.transport._network import _SocketStream

MemoryStream: TypeAlias = trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]

HOUR = 3600.0
CA = trustme.CA()
CERTIFICATE = CA.issue_cert("127.0.0.1")
EVENTS = chunk(b"one") + b"4;a=b\r\nlong\r\n" + chunk(b"three") + b"0\r\nx: y\r\n\r\n"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    if not request.param:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    return context


def trust(tls: ssl.SSLContext | None) -> bytes | None:
    return CA.cert_pem.bytes() if tls else None


@final
@attrs.define(eq=False)
class Pipe:
    """Looks like a ``trio.SocketStream`` whose peer is in the same process."""

    stream: MemoryStream
    has_data: bool = False

    @property
    def socket(self) -> Pipe:
        return self

    def is_readable(self) -> bool:
        return self.has_data

    def fileno(self) -> int:
        return 0

    def getsockopt(self, level: int, option: int) -> int:
        return 0

    async def send_all(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def receive_some(self, max_bytes: int) -> bytes:
        return bytes(await self.stream.receive_some(max_bytes))


def connected() -> tuple[_SocketStream, Pipe, MemoryStream]:
    """Return a connection, what is below it, and its peer."""
    client, server = trio.testing.memory_stream_pair()
    pipe = Pipe(client)
    return _SocketStream(cast("trio.SocketStream", pipe)), pipe, server


# --- between two bytes of a watch ---


def received(steps: Iterable[bytes | float]) -> bytes:
    """Return what httpcore reads when a server sends these bytes, with these pauses in seconds."""

    async def run() -> bytes:
        stream, _, server = connected()
        await stream.write(b"GET /x HTTP/1.1\r\n\r\n")

        async def send() -> None:
            for step in steps:
                if isinstance(step, bytes):
                    await server.send_all(step)
                else:
                    await trio.sleep(step)
            await server.aclose()

        data = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while more := await stream.read(65_536):
                data += more
        return data

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def body(data: bytes) -> bytes:
    """Return the body of a complete response, as h11 reads it."""
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(data)
    pieces = b""
    while type(event := reader.next_event()) is not h11.EndOfMessage:
        assert isinstance(event, h11.Response | h11.Data)
        if isinstance(event, h11.Data):
            pieces += event.data
    return pieces


def test_a_watch_may_be_silent_for_an_hour_after_any_of_its_bytes() -> None:
    for at in range(len(EVENTS) + 1):
        assert body(received([CHUNKED, EVENTS[:at], HOUR, EVENTS[at:]])) == b"onelongthree", EVENTS[:at]


@given(cuts=st.lists(st.tuples(st.integers(0, len(EVENTS)), st.sampled_from([0.0, 59.0, 61.0, HOUR])), max_size=12))
def test_a_watch_may_be_silent_wherever_its_bytes_are_divided(cuts: list[tuple[int, float]]) -> None:
    steps: list[bytes | float] = [CHUNKED]
    last = 0
    for at, pause in sorted(cuts):
        steps += [EVENTS[last:at], pause]
        last = at
    steps.append(EVENTS[last:])
    assert body(received(steps)) == b"onelongthree"


async def test_a_line_end_in_a_read_of_its_own_is_not_the_beginning_of_headers(tls: ssl.SSLContext | None) -> None:
    script: list[Step] = [CHUNKED, b"3\r\none", 0.05, b"\r\n", 0.5, chunk(b"two"), None]
    async with (
        serving(*script, tls=tls) as server,
        open_transport(
            ClusterConfig(server=server.url, ca_data=trust(tls)), limits=Limits(header_period=0.2)
        ) as transport,
        transport.stream("/x", for_watch=True) as stream,
    ):
        assert await stream.receive_some() == b"one"
        assert await stream.receive_some() == b"two"


@pytest.mark.parametrize("at", range(1, len(CHUNKED) - 1))
def test_the_head_of_a_response_has_a_minute_once_it_has_begun(at: int) -> None:
    received([HOUR, CHUNKED[:at], 59.0, CHUNKED[at:]])
    with pytest.raises(ExceptionGroup) as caught:
        received([HOUR, CHUNKED[:at], 30.0, CHUNKED[at : at + 1], 31.0, CHUNKED[at + 1 :], b"?"])
    passed = caught.value.exceptions[0]
    assert isinstance(passed, LimitPassedError)
    assert passed.limit == "header_period"


def test_an_interim_response_is_not_the_beginning_of_the_next_one() -> None:
    interim = b"HTTP/1.1 102 Processing\r\n\r\n"
    steps = [interim[:9], 59.0, interim[9:], HOUR, CHUNKED[:9], 59.0, CHUNKED[9:]]
    assert received(steps) == interim + CHUNKED


# --- while the program is held up ---


def metered() -> tuple[BodyMeter, _SocketStream, Pipe, MemoryStream]:
    """Return a connection on which a body is read, as :class:`ByteStream` arranges it."""
    stream, pipe, server = connected()
    meter = BodyMeter(Limits(body_period=100.0, body_progress=10), "list_bytes")
    stream.body_patience, meter.is_watched = meter.patience, True
    return meter, stream, pipe, server


@pytest.mark.parametrize(
    ("jump", "has_data", "is_given_up"),
    [(99.0, False, False), (100.05, False, True), (100.05, True, False), (100.2, False, False)],
    ids=["in time", "on time", "data at hand", "late"],
)
async def test_a_deadline_that_is_noticed_late_does_not_blame_the_server(
    mock_clock: trio.testing.MockClock, jump: float, has_data: bool, is_given_up: bool
) -> None:
    meter, stream, pipe, server = metered()
    pipe.has_data = has_data

    async def hold_up() -> None:
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(jump)
        await trio.testing.wait_all_tasks_blocked()
        await server.send_all(b"x")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold_up)
        if is_given_up:
            with pytest.raises(LimitPassedError, match="too slowly: 0 bytes in 100 s") as caught:
                await meter.receive(lambda: stream.read(100))
            assert caught.value.limit == "body_progress"
        else:
            assert await meter.receive(lambda: stream.read(100)) == b"x"


async def test_a_server_has_another_period_and_not_all_time(mock_clock: trio.testing.MockClock) -> None:
    meter, stream, _, _ = metered()

    async def hold_up() -> None:
        for jump in (110.0, 100.05):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(jump)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold_up)
        with pytest.raises(LimitPassedError):
            await meter.receive(lambda: stream.read(100))
    assert trio.current_time() == pytest.approx(210.05)


async def test_data_that_had_to_wait_for_the_program_begins_another_period(mock_clock: trio.testing.MockClock) -> None:
    meter, stream, _, server = metered()
    for _ in range(5):

        async def receive() -> bytes:
            data = await stream.read(100)
            mock_clock.jump(150)  # with the data at hand
            return data

        await server.send_all(b"x")
        assert await meter.receive(receive) == b"x"


@pytest.mark.parametrize("for_watch", [True, False])
async def test_the_deadline_of_a_body_ends_with_the_body(for_watch: bool) -> None:
    responses: list[Step] = [complete(b"one"), CHUNKED + chunk(b"two"), 0.5, chunk(b"three") + b"0\r\n\r\n"]
    server = Loopback(lambda head: responses[:1] if b"/first" in head else responses[1:], keep_alive=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        limits = Limits(body_period=0.2)
        async with open_transport(ClusterConfig(server=server.url), limits=limits) as transport:
            assert (await transport.request("GET", "/first")).body == b"one"
            async with transport.stream("/second", for_watch=for_watch) as stream:
                assert await stream.receive_some() == b"two"
                if for_watch:
                    assert await stream.receive_some() == b"three"
                else:
                    with pytest.raises(LimitExceededError, match="too slowly: 3 bytes"):
                        await stream.receive_some()
        nursery.cancel_scope.cancel()
