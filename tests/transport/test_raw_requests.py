"""An httpx client of a cluster: what it sends, to whom, and how it fails."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.scripted_http import CHUNKED, InMemory, Loopback, chunk, complete, response, serving
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import open_http_client, open_transport

CA = trustme.CA()
CA_PEM = CA.cert_pem.bytes()


def server_tls() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert("127.0.0.1").configure_cert(context)
    return context


def moved_to(url: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()


@asynccontextmanager
async def http_client(server: Loopback, prefix: str = "", **options: object) -> AsyncGenerator[httpx.AsyncClient]:
    config = ClusterConfig(server=server.url + prefix, ca_data=CA_PEM, token="t0ken", **options)  # type: ignore[arg-type]
    async with open_transport(config) as transport, open_http_client(transport) as http:
        yield http


async def test_requests_have_the_credentials_and_are_below_the_servers_path() -> None:
    async with serving(tls=server_tls()) as server, http_client(server, "/k8s/c-1") as http:
        for url in ("/metrics?a=b%20c", "metrics?a=b%20c", f"{server.url}/k8s/c-1/metrics?a=b%20c"):
            found = await http.get(url)
            assert (found.status_code, found.text) == (200, "hello")
        await http.get("/metrics", params={"a": "b c"})
        *heads, last = server.heads
        assert last.startswith(b"GET /k8s/c-1/metrics?a=b+c HTTP/1.1\r\n")
        for head in heads:
            assert head.startswith(b"GET /k8s/c-1/metrics?a=b%20c HTTP/1.1\r\n")
            assert head.count(b"\r\nHost: ") == head.count(b"\r\nAuthorization: Bearer t0ken\r\n") == 1
            assert b"\r\nuser-agent: trioformer/" in head.lower()


async def test_another_server_gets_nothing() -> None:
    for is_redirected in [False, True]:
        async with serving() as other, serving(moved_to(f"{other.url}/x"), tls=server_tls()) as server:
            async with http_client(server) as http:
                with pytest.raises(httpx.UnsupportedProtocol, match=f"not for {other.url}/x"):
                    await http.get("/x" if is_redirected else f"{other.url}/x?token=1", follow_redirects=True)
            assert (other.connections, len(server.heads)) == (0, is_redirected)


async def test_other_paths_of_a_server_with_a_path_get_nothing() -> None:
    for path in ["/x", "/k8s/c-10/x", "/k8s/c-1/../c-10/x", "/"]:
        async with serving(tls=server_tls()) as server, http_client(server, "/k8s/c-1") as http:
            with pytest.raises(httpx.UnsupportedProtocol):
                await http.get(server.url + path)
            assert server.heads == []


async def test_another_scheme_or_port_is_another_server() -> None:
    async with serving(tls=server_tls()) as server, http_client(server) as http:
        for url in (server.url.replace("https", "http"), "https://127.0.0.1", "https://localhost:" + str(server.port)):
            with pytest.raises(httpx.UnsupportedProtocol):
                await http.get(url)
        assert server.heads == []


async def test_a_redirect_to_the_same_server_is_followed_on_demand() -> None:
    answers = iter([moved_to("/y"), complete(b"hello")])
    server = Loopback(lambda _: [next(answers)], tls=server_tls())
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with http_client(server) as http:
            assert (await http.get("/x", follow_redirects=True)).text == "hello"
        assert b"\r\nAuthorization: Bearer t0ken\r\n" in server.heads[1]
        nursery.cancel_scope.cancel()


async def test_neither_cookies_nor_the_environment_change_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"
    async with serving(answer, tls=server_tls()) as server, http_client(server) as http:
        for _ in range(2):
            await http.get("/x")
        assert b"cookie" not in server.heads[1].lower()
        assert not http.trust_env


async def test_an_authorization_of_a_request_is_used_instead() -> None:
    async with serving(tls=server_tls()) as server, http_client(server) as http:
        await http.get("/x", auth=("jo", "pass"))
        assert b"t0ken" not in server.heads[0]
        assert server.heads[0].lower().count(b"\r\nauthorization: ") == 1


async def test_a_request_is_sent_again_where_that_is_safe(autojump_clock: trio.testing.MockClock) -> None:
    replies: list[httpx.Response | Exception | float] = [response(429, "slow", retry_after="1"), response(200, "hello")]
    async with (
        open_transport(ClusterConfig(server="http://memory"), http_transport=InMemory(replies)) as transport,
        open_http_client(transport) as http,
    ):
        assert (await http.get("/x")).text == "hello"
        assert trio.current_time() >= 1


async def test_a_response_to_head_has_no_body_whatever_its_length() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    async with serving(answer, tls=server_tls(), keep_alive=True) as server, http_client(server) as http:
        for _ in range(2):
            with trio.fail_after(5):
                found = await http.head("/x")
            assert (found.headers["content-length"], found.content) == ("5", b"")
        assert server.connections == 1


async def test_headers_of_a_response_need_not_be_ascii() -> None:
    answer = 'HTTP/1.1 200 OK\r\nWarning: 299 - "größer"\r\nX-Name: é\r\nContent-Length: 0\r\n\r\n'
    async with serving(answer.encode(), tls=server_tls()) as server, http_client(server) as http:
        found = await http.get("/x")
        assert (found.headers["warning"], found.headers["x-name"]) == ('299 - "größer"', "é")


async def test_what_would_be_another_request_is_not_sent() -> None:
    for method, headers in [
        ("GET /y HTTP/1.1\r\nX:", {}),
        ("GET", {"X": "a\r\nY: b"}),
        ("GET", {"X: a\r\nY": "b"}),
        ("GET", {"Host": "a\r\nY: b"}),
    ]:
        async with serving(tls=server_tls()) as server, http_client(server) as http:
            with pytest.raises(httpx.LocalProtocolError):
                await http.request(method, "/x", headers=headers)
            assert server.heads == []


async def test_a_compressed_response_is_decompressed_by_httpx() -> None:
    body = gzip.compress(b"hello")
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with serving(answer, tls=server_tls()) as server, http_client(server) as http:
        assert (await http.get("/x")).text == "hello"


async def test_a_failure_is_an_error_of_httpx_with_our_text() -> None:
    async with serving(b"nonsense\r\n\r\n", tls=server_tls()) as server, http_client(server) as http:
        with pytest.raises(httpx.RemoteProtocolError, match=r"POST /x: .*check that it is an API server"):
            await http.post("/x")


async def test_a_body_that_ends_early_is_an_error_of_httpx() -> None:
    async with serving(CHUNKED, chunk(b"one"), tls=server_tls()) as server, http_client(server) as http:
        async with http.stream("GET", "/x") as found:
            with pytest.raises(httpx.RemoteProtocolError):
                await found.aread()
        await server.wait_until_open(0)


async def test_closing_it_leaves_the_client_of_the_cluster_open() -> None:
    async with serving(tls=server_tls()) as server:
        config = ClusterConfig(server=server.url, ca_data=CA_PEM)
        async with open_transport(config) as transport:
            async with open_http_client(transport) as http:
                await http.get("/x")
            assert (await transport.request("GET", "/x")).body == b"hello"
            late = open_http_client(transport)
        with pytest.raises(trio.ClosedResourceError):
            await late.get("/x")
