"""Requests, lists, watches and probes through proxies."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme

from tests.support.proxies import SCHEMES, Proxy, Scheme, proxy
from tests.support.scripted_http import CHUNKED, Loopback, Step, chunk, complete, serving, suspended_generators
from trioformer.errors import ConfigError, ConnectionFailedError, ProxyError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport

CA = trustme.CA()
USER = ("anna", "p@ss:w/rd")


def server_context(*names: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert(*names).configure_cert(context)
    return context


TLS = server_context("127.0.0.1", "api.test", "::1")


def respond(head: bytes) -> list[Step]:
    if b"watch" in head:
        return [CHUNKED + chunk(b"one"), None]
    return [complete(b"hello")]


@asynccontextmanager
async def opened(
    scheme: Scheme,
    *,
    tls: bool = True,
    user: tuple[str, str] | None = None,
    url: str | None = None,
    ca: trustme.CA = CA,
    host: str = "api.test",
) -> AsyncGenerator[tuple[Loopback, Proxy, Transport], None]:
    """Open a server, a proxy that alone knows the server's name, and a client."""
    server = Loopback(respond, keep_alive=True, tls=TLS if tls else None)
    async with trio.open_nursery() as nursery, proxy(scheme, tls=TLS, user=user, hosts={"api.test": "127.0.0.1"}) as p:
        await nursery.start(server.run)
        config = ClusterConfig(
            server=server.url.replace("127.0.0.1", host),
            ca_data=ca.cert_pem.bytes() if tls else None,
            proxy_url=p.url if url is None else url.format(port=p.port),
            source="test",
        )
        async with open_transport(config) as transport:
            yield server, p, transport
        with trio.fail_after(5):
            await server.wait_until_open(0)
            await p.wait_until_tunnels(0)
        nursery.cancel_scope.cancel()
    assert suspended_generators() == []


every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
every_user = pytest.mark.parametrize("user", [None, USER], ids=["open", "password"])


@every_scheme
@every_user
async def test_requests_watches_and_probes_go_through_the_proxy(scheme: Scheme, user: tuple[str, str] | None) -> None:
    async with opened(scheme, user=user) as (server, p, transport):
        for _ in range(2):
            assert (await transport.request("GET", "/x")).body == b"hello"
        await transport.health.prepare()
        async with transport.stream("/watch", for_watch=True) as body:
            assert await body.receive_some() == b"one"
            assert (p.connections, p.tunnels, p.refused) == (3, 3, 0)
        assert p.targets == [f"api.test:{server.port}"] * 3
        assert (server.connections, server.probe_connections) == (2, 1)
        assert b"anna" not in b"".join(server.heads)
        assert b"proxy" not in b"".join(server.heads).lower()


async def test_requests_without_tls_have_the_whole_url_as_their_target(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    CA.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))  # without TLS the configuration has no authorities
    for scheme in ("http", "https"):
        async with opened(scheme, tls=False, user=USER) as (server, p, transport):
            assert (await transport.request("GET", "/x", params={"a": "b"})).body == b"hello"
            await transport.health.prepare()
            async with transport.stream("/watch", for_watch=True) as body:
                assert await body.receive_some() == b"one"
            url = f"http://api.test:{server.port}"
            assert p.targets == [f"{url}/x?a=b", f"{url}/livez?exclude=etcd", f"{url}/watch"]
            assert p.refused == 0
            assert all(f"Host: api.test:{server.port}".encode() in head for head in p.heads)


@every_scheme
async def test_broken_tunnels_end_watches_and_the_next_request_connects_again(scheme: Scheme) -> None:
    async with opened(scheme) as (server, p, transport):
        await transport.request("GET", "/x")
        async with transport.stream("/watch", for_watch=True) as body:
            assert await body.receive_some() == b"one"
            p.break_tunnels()
            with pytest.raises(ConnectionFailedError) as caught:
                await body.receive_some()
            assert not isinstance(caught.value, ProxyError)  # the server may have received the request
        with trio.fail_after(5):
            await server.wait_until_open(0)
        assert (await transport.request("GET", "/x")).body == b"hello"


async def test_the_connection_of_a_forwarded_request_that_is_rejected_is_not_kept() -> None:
    async with (
        serving(b"HTTP/1.1 407 X\r\nContent-Length: 9\r\n\r\nhello", None) as server,
        open_transport(ClusterConfig(server="http://api.test", proxy_url=server.url)) as transport,
    ):
        with pytest.raises(ProxyError):
            await transport.request("GET", "/x")
        present = transport._generations.present
        assert present.requests.connections == []  # type: ignore[attr-defined]  # of a Pool
    assert suspended_generators() == []


@every_scheme
async def test_a_server_that_the_proxy_cannot_reach_is_an_error(scheme: Scheme) -> None:
    async with proxy(scheme, tls=TLS) as p:
        config = ClusterConfig(server="https://127.0.0.1:9", ca_data=CA.cert_pem.bytes(), proxy_url=p.url)
        async with open_transport(config) as transport:
            with pytest.raises(ProxyError, match=r"cannot connect to 127\.0\.0\.1:9 ") as caught:
                await transport.request("GET", "/x")
            assert (caught.value.permanent, caught.value.refused) == (False, False)


async def test_the_certificate_of_the_proxy_is_verified() -> None:
    async with opened("https", ca=trustme.CA()) as (server, p, transport):
        with pytest.raises(ProxyError, match="has a certificate that does not verify") as caught:
            await transport.request("GET", "/x")
        assert caught.value.permanent
        assert (server.connections, p.targets) == (0, [])


async def test_the_certificate_of_the_proxy_has_its_own_name_and_not_the_servers() -> None:
    server = Loopback(respond, tls=server_context("api.test"))
    async with trio.open_nursery() as nursery, proxy("https", tls=server_context("127.0.0.1")) as p:
        await nursery.start(server.run)
        config = ClusterConfig(
            server=server.url, ca_data=CA.cert_pem.bytes(), proxy_url=p.url, tls_server_name="api.test"
        )
        async with open_transport(config) as transport:
            assert (await transport.request("GET", "/x")).body == b"hello"
        nursery.cancel_scope.cancel()


async def test_the_certificate_of_the_server_is_verified_inside_the_tunnel() -> None:
    server = Loopback(respond, tls=server_context("other.test"))
    async with trio.open_nursery() as nursery, proxy("http") as p:
        await nursery.start(server.run)
        config = ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes(), proxy_url=p.url)
        async with open_transport(config) as transport:
            with pytest.raises(ConnectionFailedError, match="the server's certificate does not verify"):
                await transport.request("GET", "/x")
        nursery.cancel_scope.cancel()


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Loopback(respond, keep_alive=True, tls=TLS)
    async with trio.open_nursery() as nursery, proxy("socks5", user=USER, hosts={"api.test": "127.0.0.1"}) as p:
        await nursery.start(server.run)
        monkeypatch.setenv("HTTPS_PROXY", p.url)
        monkeypatch.setenv("NO_PROXY", "other.test")
        config = ClusterConfig(server=f"https://api.test:{server.port}", ca_data=CA.cert_pem.bytes())
        async with open_transport(config) as transport:
            assert (await transport.request("GET", "/x")).body == b"hello"
        assert p.targets == [f"api.test:{server.port}"]
        nursery.cancel_scope.cancel()


async def test_a_proxy_that_is_not_valid_is_an_error_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://anna:secret@proxy")
    with pytest.raises(ConfigError, match="HTTPS_PROXY: is not a valid proxy URL: it must begin with") as caught:
        async with open_transport(ClusterConfig(server="https://api.test")):
            pass
    assert "secret" not in str(caught.value)
