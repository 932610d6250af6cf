"""Requests of httpx to ports of pods."""

from __future__ import annotations

import ssl

import httpx
import pytest
import trio
import trustme
from trio.testing import MockClock

from tests.pods.test_port_streams import POD
from trioformer.client import Api, Client
from trioformer.errors import NotFoundError, PortForwardError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import port_transport
from trioformer.testing import APIServer, ScriptedConnection, ScriptedPod


@pytest.fixture
def web(api_server: APIServer) -> ScriptedPod:
    api_server.create(from_dict(Pod, POD))
    return api_server.script_pod("web-0")


@pytest.fixture
def pods(client: Client) -> Api[Pod]:
    return client.api(Pod, namespace="default")


async def receive_request(stream: trio.abc.Stream) -> bytes:
    """Return the head and the body of the next request on a connection; nothing at its end."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (data := await stream.receive_some()):
            return b""
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    size = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            size = int(line.partition(b":")[2])
    while len(body) < size:
        body += await stream.receive_some()
    return head + b"\n" + body


def response(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


async def test_requests_go_to_the_pod_on_connections_that_are_kept(web: ScriptedPod, pods: Api[Pod]) -> None:
    seen: list[tuple[int, bytes]] = []
    connections = 0

    async def serve(connection: ScriptedConnection) -> None:
        nonlocal connections
        connections += 1
        number = connections
        while request := await receive_request(connection):
            seen.append((number, request))
            await connection.send_all(response(b"hello"))

    web.on_connect(8080, serve)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 8080)) as http:
        assert (await http.get("http://web-0/healthz?x=1", headers={"X-A": "b"})).text == "hello"
        assert (await http.post("http://web-0/", content=b"body")).text == "hello"
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(http.get, "http://web-0/")
    assert seen[0][0] == seen[1][0] == 1
    assert seen[0][1].startswith(b"GET /healthz?x=1 HTTP/1.1\r\nHost: web-0\r\n")
    assert b"\r\nX-A: b" in seen[0][1]
    assert seen[1][1].endswith(b"\nbody")
    assert (connections, len(seen)) == (3, 5)


async def test_a_connection_that_the_pod_has_closed_is_not_used_again(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def serve_one(connection: ScriptedConnection) -> None:
        await receive_request(connection)
        await connection.send_all(response(b"hello"))

    web.on_connect(8080, serve_one)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 8080)) as http:
        for _ in range(3):
            assert (await http.get("http://web-0/")).text == "hello"
            await trio.testing.wait_all_tasks_blocked()


async def test_a_response_may_end_with_the_connection(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def serve(connection: ScriptedConnection) -> None:
        await receive_request(connection)
        await connection.send_all(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(300_000))

    web.on_connect(8080, serve)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 8080)) as http:
        assert (await http.get("http://web-0/")).content == bytes(300_000)
        async with http.stream("GET", "http://web-0/") as streamed:
            assert sum([len(part) async for part in streamed.aiter_bytes()]) == 300_000


async def test_a_response_to_head_has_no_body(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def serve(connection: ScriptedConnection) -> None:
        await connection.receive_some()
        await connection.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        await trio.sleep_forever()

    web.on_connect(8080, serve)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 8080)) as http:
        with trio.fail_after(5):
            assert (await http.head("http://web-0/")).content == b""


async def test_tls_is_that_of_the_pod(web: ScriptedPod, pods: Api[Pod]) -> None:
    authority = trustme.CA()
    server_context, client_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("web.default.svc").configure_cert(server_context)
    authority.configure_trust(client_context)

    async def serve(connection: ScriptedConnection) -> None:
        stream = trio.SSLStream(connection, server_context, server_side=True, https_compatible=True)
        while request := await receive_request(stream):
            await stream.send_all(response(request.split(b"\r\n")[1]))

    web.on_connect(8443, serve)
    transport = port_transport(pods, "web-0", 8443, tls=client_context)
    async with httpx.AsyncClient(transport=transport) as http:
        assert (await http.get("https://web.default.svc/")).text == "Host: web.default.svc"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get("https://other/")


async def test_errors_are_those_of_httpx(web: ScriptedPod, pods: Api[Pod]) -> None:
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 9)) as http:
        with pytest.raises(httpx.ReadError, match="connection refused") as refused:
            await http.get("http://web-0/")
        assert isinstance(refused.value.__cause__, trio.BrokenResourceError)
        assert isinstance(refused.value.__cause__.__cause__, PortForwardError)
    async with httpx.AsyncClient(transport=port_transport(pods, "none", 9)) as http:
        with pytest.raises(httpx.ConnectError, match='pods "none" not found') as missing:
            await http.get("http://web-0/")
        assert isinstance(missing.value.__cause__, NotFoundError)

    async def cut_off(connection: ScriptedConnection) -> None:
        await receive_request(connection)
        await connection.send_all(response(b"hello")[:-2])

    web.on_connect(9, cut_off)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 9)) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("http://web-0/")


async def test_the_timeouts_of_httpx_hold(web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock) -> None:
    async def wait(connection: ScriptedConnection) -> None:
        await trio.sleep(100)

    web.on_connect(8080, wait)
    async with httpx.AsyncClient(transport=port_transport(pods, "web-0", 8080), timeout=3) as http:
        began_at = trio.current_time()
        with pytest.raises(httpx.ReadTimeout):
            await http.get("http://web-0/")
        assert trio.current_time() == began_at + 3
        with pytest.raises(httpx.WriteTimeout):
            await http.post("http://web-0/", content=bytes(30_000_000))
        with pytest.raises(httpx.ConnectTimeout):
            await http.get("https://web-0/")
