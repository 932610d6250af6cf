"""Requests that are sent again."""

from __future__ import annotations

import gc
import logging
import socket
import traceback
import weakref
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import (
    InMemory,
    Loopback,
    Reply,
    Step,
    complete,
    response,
    serving,
    suspended_generators,
)
from trioformer._secret import Secret
from trioformer.client import ClientOptions
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import ObservedRequest, RequestObserver, TokenBucketRateLimiter
from trioformer.transport._internal import ByteStream, Transport, open_http_client, open_transport
from trioformer.transport.auth._credentials import Credential
from trioformer.transport.http._network import Network
from trioformer.transport.http._sockets import NetworkStream, TCPStream

Clock = trio.testing.MockClock

CONFIG = ClusterConfig(server="http://api.test")
WRITES = ["POST", "PUT", "PATCH", "DELETE"]


@attrs.define(eq=False)
class Recorded:
    """A request observer that records the codes and numbers of attempts, and when each was answered or failed."""

    attempts: list[tuple[int | None, int]] = attrs.field(factory=list)
    answered_at: list[float] = attrs.field(factory=list)

    def request_started(self, request: ObservedRequest) -> None:
        pass

    def request_ended(self, request: ObservedRequest) -> None:
        if request.code is None:
            self.request_responded(request)

    def request_responded(self, request: ObservedRequest) -> None:
        self.attempts.append((request.code, request.attempt))
        self.answered_at.append(trio.current_time())


def lost() -> httpx.ReadError:
    error = httpx.ReadError("")
    error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    return error


def refused() -> httpx.ConnectError:
    error = httpx.ConnectError("all attempts to connect failed")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    return error


def not_sent() -> httpx.ConnectError:
    error = httpx.ConnectError("")
    error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    return error


@asynccontextmanager
async def opened(
    *replies: Reply,
    observer: RequestObserver | None = None,
    retries: int = 10,
    qps: float | None = None,
    config: ClusterConfig = CONFIG,
) -> AsyncIterator[tuple[Transport, InMemory]]:
    carrier = InMemory([*replies])
    async with open_transport(
        config,
        http_transport=carrier,
        observer=observer,
        rate_limiter=None if qps is None else TokenBucketRateLimiter(qps=qps, burst=1),
        options=ClientOptions(retries=retries),
    ) as transport:
        yield transport, carrier


# --- responses --------------------------------------------------------------------------------------------------------


async def test_a_rejected_request_is_sent_again_identically(autojump_clock: Clock) -> None:
    """client-go: TestCheckRetryHandles429And5xx, TestConnectionResetByPeerIsRetried."""
    for method in ["GET", *WRITES]:
        observer = Recorded()
        replies = [
            response(429, "busy", retry_after="3"),
            response(503, "busy", retry_after="2"),
            response(201, "done"),
        ]
        async with opened(*replies, observer=observer) as (transport, carrier):
            found = await transport.request(
                method, "/x", params={"a": "b"}, content=b'{"a": 1}', content_type="application/json", accept="text/x"
            )
        assert (found.code, found.body) == (201, b"done")
        assert observer.attempts == [(429, 1), (503, 2), (201, 3)]
        first, second = (b - a for a, b in zip(observer.answered_at, observer.answered_at[1:], strict=False))
        assert 3.0 <= first <= 3.3
        assert 2.0 <= second <= 2.2
        sent = [(each.method, each.url, each.headers.raw, each.content) for each in carrier.requests]
        assert sent == [sent[0]] * 3
        assert sent[0][3] == b'{"a": 1}'


async def test_the_response_to_the_eleventh_attempt_is_returned(autojump_clock: Clock) -> None:
    """client-go: TestRequestMaxRetries, TestCheckRetryClosesBody."""
    replies = [response(429, str(number), retry_after="1") for number in range(12)]
    async with opened(*replies) as (transport, carrier):
        found = await transport.request("POST", "/x")
        assert (found.code, found.body, len(carrier.requests)) == (429, b"10", 11)
    assert 10.0 <= trio.current_time() <= 11.0


async def test_streams_are_sent_again_until_their_response_begins(autojump_clock: Clock) -> None:
    """client-go: TestRequestStreamWithRetry, TestRequestWatch."""
    for for_watch in [False, True]:
        replies = [response(429, "busy", retry_after="1"), lost(), response(500, retry_after="0"), response(200, "one")]
        async with opened(*replies) as (transport, carrier):
            async with transport.stream("/x", for_watch=for_watch) as body:
                assert (body.code, await body.receive_some()) == (200, b"one")
            assert len(carrier.requests) == 4
        states = [each.stream.state for each in replies if isinstance(each, httpx.Response)]  # type: ignore[attr-defined]
        assert "new" not in states
        assert suspended_generators() == []


async def test_an_exception_in_the_block_of_a_stream_is_not_retried(autojump_clock: Clock) -> None:
    async with opened(response(200, "one")) as (transport, carrier):
        with pytest.raises(ConnectionFailedError, match="of the block"):
            async with transport.stream("/x", for_watch=False):
                raise ConnectionFailedError("of the block")
        assert len(carrier.requests) == 1


# --- connection failures ----------------------------------------------------------------------------------------------


async def test_reads_are_sent_again_after_the_connection_was_lost(autojump_clock: Clock) -> None:
    observer = Recorded()
    ended = httpx.RemoteProtocolError("Server disconnected without sending a response.")
    cut = response(200, "beginning", lost())
    async with opened(lost(), ended, cut, response(200, "all"), observer=observer) as (transport, _):
        assert (await transport.request("GET", "/x")).body == b"all"
    assert observer.attempts == [(None, 1), (None, 2), (200, 3), (200, 4)]


async def test_what_was_read_before_a_failure_is_not_kept_for_the_next_attempt(autojump_clock: Clock) -> None:
    begun: list[weakref.ref[set[bytes]]] = []

    async def read(body: ByteStream) -> int:
        gc.collect()
        assert [each() for each in begun] == [None] * len(begun)
        pieces: set[bytes] = set()
        begun.append(weakref.ref(pieces))
        while piece := await body.receive_some():
            pieces.add(piece)
        return len(begun)

    cut = [response(200, "beginning", lost()) for _ in range(2)]
    async with opened(*cut, response(200, "all")) as (transport, _):
        assert await transport.read("/x", read) == 3


async def test_writes_are_never_sent_again_if_they_may_have_arrived(autojump_clock: Clock) -> None:
    for method in WRITES:
        for reply in (lost(), httpx.ReadTimeout("x"), response(200, "beginning", lost())):
            async with opened(reply) as (transport, carrier):
                with pytest.raises(ConnectionFailedError, match=r"; the server may have executed the request$"):
                    await transport.request(method, "/x", content=b"{}")
                assert len(carrier.requests) == 1


async def test_what_was_not_sent_is_sent_again_whatever_it_is(autojump_clock: Clock) -> None:
    for method in ["GET", *WRITES]:
        async with opened(not_sent(), not_sent(), response(200)) as (transport, _):
            assert (await transport.request(method, "/x")).code == 200


async def test_a_server_that_was_never_reached_is_an_error_at_once(autojump_clock: Clock) -> None:
    async with opened(refused(), response(200), refused(), refused(), response(201)) as (transport, carrier):
        with pytest.raises(ConnectionFailedError, match=r"connection refused; check the port and that .* runs$"):
            await transport.request("GET", "/x")
        assert len(carrier.requests) == 1
        await transport.request("GET", "/x")
        assert (await transport.request("POST", "/x")).code == 201


async def test_earlier_errors_are_in_the_text_and_the_context_of_the_last_one(autojump_clock: Clock) -> None:
    """client-go: TestRequestWatchWithWrapPreviousError, TestWrapPreviousError."""
    async with opened(lost(), not_sent(), httpx.ReadTimeout("x")) as (transport, _):
        with pytest.raises(ConnectionFailedError) as caught:
            await transport.request("GET", "/x")
    text = str(caught.value)
    assert text.startswith("http://api.test: timeout while waiting for the response; ")
    assert "; after 3 attempts; the attempt before failed: cannot connect" in text
    shown = "".join(traceback.format_exception(caught.value))
    first, second, third = (shown.index(each) for each in ("connection was lost", "cannot connect", "timeout while"))
    assert first < second < third


async def test_with_zero_retries_nothing_is_sent_again(autojump_clock: Clock) -> None:
    async with opened(lost(), response(429, retry_after="1"), response(401), retries=0) as (transport, carrier):
        with pytest.raises(ConnectionFailedError, match=r"the connection was lost; try again$"):
            await transport.request("GET", "/x")
        assert (await transport.request("GET", "/x")).code == 429
        assert (await transport.request("GET", "/x")).code == 401
        assert len(carrier.requests) == 3
    with pytest.raises(ValueError, match="retries"):
        async with opened(retries=-1):
            raise AssertionError


@pytest.mark.parametrize("for_watch", [False, True])
async def test_who_retries_for_himself_gets_the_first_answer(for_watch: bool, autojump_clock: Clock) -> None:
    async with opened(lost(), response(429, retry_after="1"), response(503, retry_after="1")) as (transport, carrier):
        with pytest.raises(ConnectionFailedError):
            async with transport.stream("/x", for_watch=for_watch, resumable=for_watch, retries=False):
                raise AssertionError
        async with transport.stream("/x", for_watch=for_watch, resumable=for_watch, retries=for_watch) as body:
            assert body.code == 429
        assert (await transport.request("GET", "/x", retries=False)).code == 503
        assert len(carrier.requests) == 3
    assert trio.current_time() == 0


# --- order, cancellation ----------------------------------------------------------------------------------------------


async def test_a_retry_waits_first_and_then_for_the_rate_limit(autojump_clock: Clock) -> None:
    """client-go: TestRequestWatchWithRetryInvokeOrder."""
    observer = Recorded()
    replies = [response(429, retry_after="1"), response(200)]
    async with opened(*replies, observer=observer, qps=0.1) as (transport, _):
        await transport.request("GET", "/x")
    assert observer.answered_at == pytest.approx([0, 10])
    for for_watch, expected in ((True, [0, 10]), (False, [10, 20])):
        observer = Recorded()
        replies = [response(200), response(429, retry_after="1"), response(200)]
        async with opened(*replies, observer=observer, qps=0.1) as (transport, _):
            began_at = trio.current_time()
            await transport.request("GET", "/x")
            async with transport.stream("/x", for_watch=for_watch):
                assert [each - began_at for each in observer.answered_at[1:]] == pytest.approx(expected)


async def test_a_waiting_retry_does_not_keep_others_from_sending(autojump_clock: Clock) -> None:
    replies = [*(response(429, retry_after="100") for _ in range(100)), *(response(200) for _ in range(101))]
    async with opened(*replies) as (transport, _), trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(transport.request, "GET", "/x")
        await trio.sleep(50)
        assert (await transport.request("GET", "/x")).code == 200
        assert trio.current_time() == 50


async def test_a_cancelled_wait_sends_nothing(autojump_clock: Clock) -> None:
    async with opened(response(429, retry_after="60")) as (transport, carrier):
        with trio.move_on_after(5) as scope:
            await transport.request("POST", "/x")
        assert scope.cancelled_caught
        assert len(carrier.requests) == 1
    assert trio.current_time() == 5


async def test_a_retry_after_the_end_of_the_client_raises(autojump_clock: Clock) -> None:
    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await transport.request("GET", "/x")

    async with trio.open_nursery() as nursery, opened(response(429, retry_after="1")) as (transport, _):
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()


async def test_each_retry_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture, autojump_clock: Clock) -> None:
    caplog.set_level(logging.INFO, "trioformer.transport")
    async with opened(response(429, retry_after="0"), lost(), response(200)) as (transport, _):
        await transport.request("GET", "/x", where="get pod default/a")
    first, second = caplog.messages
    assert first == "get pod default/a: http://api.test: HTTP 429; retrying in 0.0 s (retry 1)"
    assert second.startswith("get pod default/a: http://api.test: the connection was lost; try again; retrying ")
    assert second.endswith(" s (retry 2)")


# --- credentials ------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Rotating:
    """A source that obtains another credential after each rejection, as long as there are some."""

    tokens: list[str]
    latest: Credential = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.latest = Credential(Secret(self.tokens.pop(0)))

    async def get(self) -> Credential:
        await trio.lowlevel.checkpoint()
        return self.latest

    def reject(self, credential: Credential) -> None:
        if credential is self.latest and self.tokens:
            self.latest = Credential(Secret(self.tokens.pop(0)))

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()


async def test_a_401_is_sent_again_once_with_another_credential(autojump_clock: Clock) -> None:
    """client-go: TestRoundTripper"""
    for method in ["GET", *WRITES]:
        for retries in [True, False]:
            replies = [response(401), response(200), response(401), response(401), response(401)]
            async with opened(*replies) as (transport, carrier):
                transport._credentials = Rotating(["old", "new", "newer"])
                assert (await transport.request(method, "/x", retries=retries)).code == 200
                assert [each.headers["authorization"] for each in carrier.requests] == ["old", "new"]
                assert (await transport.request(method, "/x", retries=retries)).code == 401
                assert [each.headers["authorization"] for each in carrier.requests[2:]] == ["new", "newer"]
                assert (await transport.request(method, "/x", retries=retries)).code == 401
                assert len(carrier.requests) == 5
            assert trio.current_time() == 0


async def test_a_401_to_an_authorization_of_the_program_rejects_no_credential(autojump_clock: Clock) -> None:
    async with opened(response(401), response(200)) as (transport, carrier), open_http_client(transport) as http:
        transport._credentials = Rotating(["old", "new"])
        assert (await http.get("/x", headers={"Authorization": "of a visitor"})).status_code == 401
        await http.get("/x")
        assert [each.headers["authorization"] for each in carrier.requests] == ["of a visitor", "old"]


# --- connections ------------------------------------------------------------------------------------------------------


async def test_a_connection_that_was_closed_while_idle_is_replaced_before_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """client-go: TestReconnectBrokenTCP_HTTP1."""
    looks: list[str] = []
    look = TCPStream.is_readable.fget
    assert look is not None

    def close_and_look(stream: TCPStream) -> bool:
        looks.append("look")
        if len(looks) == 1:  # before the second request
            stream.socket.shutdown(socket.SHUT_RD)
        return look(stream)

    observer = Recorded()
    async with (
        serving(complete(b"ok"), keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url), observer=observer) as transport,
    ):
        monkeypatch.setattr(TCPStream, "is_readable", property(close_and_look))
        await transport.request("POST", "/x", content=b"1")
        assert (await transport.request("POST", "/x", content=b"2")).body == b"ok"
        assert server.connections == 2
        assert observer.attempts == [(200, 1), (200, 1)]


@pytest.mark.parametrize("retries", [0, 1])
async def test_a_connection_that_was_reset_before_its_first_byte_was_not_used(
    retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Network.connect
    connections: list[NetworkStream] = []

    async def connect_and_reset(network: Network, host: str, port: int, patience: float) -> NetworkStream:
        stream = await connect(network, host, port, patience)
        connections.append(stream)
        if len(connections) == 1:
            await server.wait_until_open(1)
            server.reset_connections()
            assert isinstance(stream.raw, TCPStream)
            await trio.lowlevel.wait_readable(stream.raw.socket)
        return stream

    monkeypatch.setattr(Network, "connect", connect_and_reset)
    async with (
        serving() as server,
        open_transport(ClusterConfig(server=server.url), options=ClientOptions(retries=retries)) as transport,
    ):
        if retries:
            assert (await transport.request("POST", "/x", content=b"1")).body == b"hello"
        else:
            with pytest.raises(ConnectionFailedError) as caught:
                await transport.request("POST", "/x", content=b"1")
            assert "may have" not in str(caught.value)
        assert len(connections) == 1 + retries


async def test_a_connection_that_a_cancelled_request_has_used_is_not_used_again() -> None:
    """client-go: TestHTTP1DoNotReuseRequestAfterTimeout."""
    scripts: list[list[Step]] = [[complete(b"ok")], [None], [complete(b"ok")]]
    server = Loopback(lambda _: scripts.pop(0), keep_alive=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_transport(ClusterConfig(server=server.url)) as transport, trio.open_nursery() as requests:
            await transport.request("GET", "/x")
            requests.start_soon(transport.request, "GET", "/hang")
            while len(server.heads) < 2:
                await trio.testing.wait_all_tasks_blocked()
            requests.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await server.wait_until_open(0)
                assert (await transport.request("GET", "/x")).body == b"ok"
        assert server.connections == 2
        nursery.cancel_scope.cancel()
