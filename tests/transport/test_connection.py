"""Requests and connections."""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager, nullcontext

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trioformer
from tests.support.scripted_http import (
    CHUNKED,
    ONE_CHUNK,
    InMemory,
    cancelled_at_step,
    response,
    serving,
    suspended_generators,
)
from trioformer.client import ClientOptions
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport._open import KEEPALIVE_COUNT, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, socket_options
from trioformer.transport.auth._credentials import Credential


async def test_a_request_sends_its_arguments_and_returns_the_complete_response() -> None:
    """Below the path of the server's URL.

    client-go: TestRequestURI
    """
    http_transport = InMemory([response(201, "he", "llo", x_name="value")])
    async with open_transport(
        ClusterConfig(server="https://api.test/prefix/"),
        http_transport=http_transport,
        options=ClientOptions(user_agent="me/1"),
    ) as transport:
        found = await transport.request(
            "POST", "/a%2Fb", params={"limit": "5", "labelSelector": "a in (b,c)"}, content=b"{}", content_type="text/x"
        )
        assert repr(transport) == "<Transport to https://api.test/prefix>"
    assert (found.code, found.headers["x-name"], found.body) == (201, "value", b"hello")
    assert "hello" not in repr(found)
    (request,) = http_transport.requests
    assert request.url.raw_path == b"/prefix/a%2Fb?limit=5&labelSelector=a+in+%28b%2Cc%29"
    assert request.content == b"{}"
    sent = {name: request.headers[name] for name in ("content-type", "accept", "accept-encoding", "user-agent")}
    assert sent == {
        "content-type": "text/x",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "me/1",
    }
    assert "authorization" not in request.headers
    assert "sni_hostname" not in request.extensions
    assert not http_transport.is_closed


async def test_the_slash_at_the_end_of_a_path_is_kept_and_that_of_the_server_dropped() -> None:
    """As it is given.

    client-go: TestRequestAbsPathPreservesTrailingSlash
    """
    for base in ["/prefix", "/prefix/"]:
        http_transport = InMemory([response(200)])
        async with open_transport(
            ClusterConfig(server=f"http://api.test{base}"), http_transport=http_transport
        ) as transport:
            await transport.request("GET", "/foo/bar/")
        assert http_transport.targets == ["GET /prefix/foo/bar/"]


async def test_the_kernel_keeps_connections_alive() -> None:
    async with (
        serving(ONE_CHUNK, None) as server,
        open_transport(ClusterConfig(server=server.url)) as transport,
        transport.stream("/x", for_watch=True) as body,
    ):
        await body.receive_some()
        (connection,) = transport._generations.present.watches.connections  # type: ignore[union-attr]  # of a Pool
        sock = connection.stream.raw.socket
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 9
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 42_000


def test_a_dead_peer_is_detected_within_45_seconds_of_its_last_byte() -> None:
    delay = 0.5  # of each timer of the kernel
    timers = 1 + KEEPALIVE_COUNT
    assert KEEPALIVE_IDLE + KEEPALIVE_COUNT * KEEPALIVE_INTERVAL + timers * delay <= 45


def test_socket_options_that_a_platform_lacks_are_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT")
    monkeypatch.delattr(socket, "TCP_KEEPIDLE")
    assert len(socket_options()) == 3


async def test_redirects_are_neither_followed_nor_parsed() -> None:
    for location in ["http://elsewhere.test/", "http://[::1", "\xff"]:
        head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 2\r\n\r\n".encode("latin-1")
        async with serving(head + b"ok") as server, open_transport(ClusterConfig(server=server.url)) as transport:
            found = await transport.request("GET", "/x")
            assert (found.code, found.body) == (302, b"ok")
            async with transport.stream("/x", for_watch=True) as body:
                assert (body.code, await body.receive_some()) == (302, b"ok")
        assert suspended_generators() == []


async def test_at_most_a_hundred_requests_are_in_flight_not_counting_watches(autojump_clock) -> None:
    http_transport = InMemory([reply for _ in range(121) for reply in (response(200, 1.0, "x"),)])
    async with open_transport(ClusterConfig(server="http://api.test"), http_transport=http_transport) as transport:
        async with trio.open_nursery() as nursery:
            for _ in range(120):
                nursery.start_soon(transport.request, "GET", "/x")
            await wait_all_tasks_blocked()
            assert len(http_transport.requests) == 100
            async with transport.stream("/x", for_watch=True):
                assert len(http_transport.requests) == 101
        assert trio.current_time() == pytest.approx(2.0)


async def test_cancelled_requests_release_limiter_and_pool() -> None:
    async with serving(None) as server, open_transport(ClusterConfig(server=server.url)) as transport:
        for step in (1, 100, 300, 600, 1_000, 1_500, 1_000_000):
            async with cancelled_at_step(step) as nursery:
                for _ in range(150):
                    nursery.start_soon(transport.request, "GET", "/x")
        assert transport._limiter.borrowed_tokens == 0
        assert transport._generations.present.requests.connections == []  # type: ignore[attr-defined]  # of a Pool
    assert suspended_generators() == []


@attrs.define(eq=False)
class Slow:
    """Credentials that a plugin obtains while the client is closed."""

    latest: Credential = attrs.field(factory=Credential)
    is_asked: trio.Event = attrs.field(factory=trio.Event)
    may_answer: trio.Event = attrs.field(factory=trio.Event)

    async def get(self) -> Credential:
        self.is_asked.set()
        await self.may_answer.wait()
        return self.latest

    def reject(self, credential: Credential) -> None:
        raise AssertionError

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.parametrize("kind", ["request", "list", "watch"])
async def test_a_client_closed_while_a_plugin_runs_sends_nothing(kind: str) -> None:
    ended: list[str] = []

    async def send(transport: Transport) -> None:
        try:
            if kind == "request":
                await transport.request("POST", "/x", content=b"{}")
            else:
                async with transport.stream("/x", for_watch=kind == "watch"):
                    pass
        except trio.ClosedResourceError:
            ended.append(kind)

    credentials = Slow()
    async with serving(ONE_CHUNK) as server:
        async with trio.open_nursery() as nursery:
            async with open_transport(ClusterConfig(server=server.url), credentials=credentials) as transport:
                nursery.start_soon(send, transport)
                await credentials.is_asked.wait()
            credentials.may_answer.set()
        assert (ended, server.heads, server.connections) == ([kind], [], 0)


async def test_requests_in_flight_end_when_the_transport_is_closed() -> None:
    async with serving(None) as server, trio.open_nursery() as nursery:
        seen: list[BaseException] = []

        async def send(transport: Transport) -> None:
            try:
                await transport.request("GET", "/x")
            except trio.ClosedResourceError as exc:
                seen.append(exc)

        async with open_transport(ClusterConfig(server=server.url)) as transport:
            nursery.start_soon(send, transport)
            await wait_all_tasks_blocked(0.01)
        await wait_all_tasks_blocked(0.01)
        assert len(seen) == 1


@pytest.mark.parametrize("for_watch", [False, True])
async def test_a_body_that_is_read_when_the_transport_is_closed_raises_so(for_watch: bool) -> None:
    async with serving(CHUNKED, None) as server, trio.open_nursery() as nursery:

        async def read(transport: Transport) -> None:
            with pytest.raises(trio.ClosedResourceError, match="the client was closed"):
                async with transport.stream("/x", for_watch=for_watch) as body:
                    await body.receive_some()

        async with open_transport(ClusterConfig(server=server.url)) as transport:
            nursery.start_soon(read, transport)
            await wait_all_tasks_blocked(0.01)


async def test_a_user_agent_must_be_printable_ascii() -> None:
    for name in ["bad\nname", "näme"]:
        with pytest.raises(ValueError, match="printable ASCII"):
            async with open_transport(ClusterConfig(server="http://api.test"), options=ClientOptions(user_agent=name)):
                pass


async def test_the_default_user_agent_is_the_library_and_its_version() -> None:
    http_transport = InMemory([response(200)])
    async with open_transport(ClusterConfig(server="http://api.test"), http_transport=http_transport) as transport:
        await transport.request("GET", "/x")
    assert http_transport.requests[-1].headers["user-agent"].startswith(f"trioformer/{trioformer.__version__} (")
