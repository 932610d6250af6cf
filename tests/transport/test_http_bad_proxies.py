"""Requests through proxies that fail or hang, and requests through good ones that are cancelled."""

from __future__ import annotations

import base64
import itertools
import logging
import socket
import ssl
import struct
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
import trustme

from tests.support.proxies import SCHEMES, Proxy, Scheme, proxy
from tests.support.scripted_http import CHUNKED, END, AtStep, Loopback, Step, chunk, complete, suspended_generators
from trioformer._retry import Outcome, outcome_of
from trioformer.errors import ProxyError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport

CA = trustme.CA()
NAME, PASSWORD = "us3r-0f-a-pr0xy", "passw0rd-0f-a-pr0xy"
TOKEN = "t0k3n-0f-a-us3r"
SECRETS = (PASSWORD, TOKEN, base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode())
SILENCE = 0.05


def server_context(authority: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


TLS = server_context()


def configuration(proxy_url: str, server: str = "https://127.0.0.1:9") -> ClusterConfig:
    return ClusterConfig(server=server, ca_data=CA.cert_pem.bytes(), token=TOKEN, proxy_url=proxy_url, source="test")


def check_hidden(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Check that neither the tracebacks with their variables nor the log have a secret."""
    shown = caplog.text
    pending: list[object] = [error]
    while pending:
        each = pending.pop()
        if isinstance(each, BaseException):
            while each.__traceback__ is not None and "/tests/" in each.__traceback__.tb_frame.f_code.co_filename:
                each.__traceback__ = each.__traceback__.tb_next
            # Also of causes that httpcore hides, which trackers of errors may find.
            shown += "".join(traceback.TracebackException.from_exception(each, capture_locals=True).format(chain=False))
            pending += [each.__cause__, each.__context__, *each.args]
    assert "self = " in shown
    assert [line for line in shown.splitlines() if any(secret in line for secret in SECRETS)] == []


@asynccontextmanager
async def answering(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run a server that sends these bytes after the first ones that it receives, and closes; yields its port."""

    async def serve(stream: trio.abc.Stream) -> None:
        if tls is not None:
            stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        try:
            await stream.receive_some()
            await stream.send_all(answer)
        except trio.BrokenResourceError:
            pass
        await trio.aclose_forcefully(stream)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def failed(transport: Transport, kind: str = "request") -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        await send(transport, kind)
    return caught.value


@pytest.mark.parametrize(
    ("scheme", "tls", "answer", "text", "is_permanent", "kind"),
    [
        ("http", None, b"HTTP/1.1 503 X\r\n\r\n", "cannot connect to 127.0.0.1:9 (HTTP 503)", False, "request"),
        ("http", None, b"HTTP/1.1 200 X\r\nX: " + b"y" * 100_000, "responded with more than 16384", False, "list"),
        ("https", server_context(trustme.CA()), b"", "has a certificate that does not verify", True, "request"),
        ("https", None, b"HTTP/1.1 400 X\r\n\r\n", "failed the TLS handshake", True, "request"),
        ("socks5", None, b"\x05\x02\x01\x01", "rejected the user and password", True, "request"),
        ("socks5", None, b"\x05\x00\x05\x05\x00\x01", "cannot connect to 127.0.0.1:9 (SOCKS5 reply 5", False, "watch"),
    ],
)
async def test_a_bad_proxy_is_its_documented_error(
    scheme: str,
    tls: ssl.SSLContext | None,
    answer: bytes,
    text: str,
    is_permanent: bool,
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with (
        answering(answer, tls) as port,
        open_transport(configuration(f"{scheme}://{NAME}:{PASSWORD}@127.0.0.1:{port}")) as transport,
    ):
        with trio.fail_after(5):
            error = await failed(transport, kind)
    assert f"https://127.0.0.1:9 (test): the proxy {scheme}://127.0.0.1:{port} (proxy-url) {text}" in str(error)
    assert error.permanent is is_permanent
    assert outcome_of(error) is (Outcome.DENIED if is_permanent else Outcome.LOST)
    check_hidden(error, caplog)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_proxy_that_refuses_connections_is_an_error(scheme: Scheme, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"{scheme}://{NAME}:{PASSWORD}@127.0.0.1:{unused.getsockname()[1]}"
        async with open_transport(configuration(url)) as transport:
            error = await failed(transport)
    assert "refuses connections" in str(error)
    assert (error.refused, error.permanent) == (True, False)
    check_hidden(error, caplog)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_request_is_sent_again_if_the_proxy_resets_the_connection(scheme: Scheme) -> None:
    resets = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal resets
        if resets < 1:
            resets += 1
            await stream.receive_some()
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await stream.aclose()
        else:
            await p._serve(stream)

    async with serving(scheme) as (server, p, _), trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        config = configuration(p.url.replace(str(p.port), str(port)), server.url)
        async with open_transport(config) as transport:
            response = await transport.request("POST", "/x", content=b"{}")
        assert (response.body, resets, len(server.heads)) == (b"ok", 1, 1)
        nursery.cancel_scope.cancel()


async def test_a_proxy_whose_name_does_not_exist_is_an_error() -> None:
    async with open_transport(configuration("http://proxy.invalid:3128")) as transport:
        error = await failed(transport)
    assert "http://proxy.invalid:3128 (proxy-url) has a host name that cannot be resolved" in str(error)


async def test_a_proxy_that_does_not_accept_in_time_is_an_error(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_tcp_stream(*_args: object, **_options: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(trio, "open_tcp_stream", open_tcp_stream)
    async with open_transport(configuration("http://proxy")) as transport:
        error = await failed(transport)
        assert trio.current_time() == 30
    assert "did not accept the connection in time" in str(error)
    assert not error.permanent


def respond(head: bytes) -> list[Step]:
    if b"/watch" in head:
        return [CHUNKED + chunk(b"one"), None]
    return [CHUNKED + chunk(b"one"), chunk(b"two") + END] if b"/stream" in head else [complete(b"ok")]


@asynccontextmanager
async def serving(scheme: Scheme) -> AsyncGenerator[tuple[Loopback, Proxy, ClusterConfig], None]:
    server = Loopback(respond, keep_alive=True, tls=TLS)
    async with trio.open_nursery() as nursery, proxy(scheme, tls=TLS, user=(NAME, PASSWORD)) as p:
        await nursery.start(server.run)
        yield server, p, configuration(p.url, server.url)
        nursery.cancel_scope.cancel()


async def send(transport: Transport, kind: str) -> None:
    if kind == "request":
        await transport.request("POST", "/x", content=b"{}")
    else:
        async with transport.stream("/stream", for_watch=kind == "watch") as body:
            while await body.receive_some():
                pass


@pytest.mark.parametrize(("scheme", "kind"), [*((scheme, "request") for scheme in SCHEMES), ("https", "watch")])
async def test_a_request_cancelled_at_any_step_leaves_no_tunnel(scheme: Scheme, kind: str) -> None:
    async with serving(scheme) as (server, p, config):
        completed = 0
        for step in itertools.count(1):
            async with open_transport(config) as transport:
                with trio.CancelScope() as scope, AtStep(step, scope.cancel):
                    await send(transport, kind)
                completed += not scope.cancel_called
                present = transport._generations.present
                pools = [each.connections for each in (present.requests, present.watches)]  # type: ignore[union-attr]  # a Pool
                assert [each for pool in pools for each in pool if "idle" not in repr(each)] == []
                assert transport._limiter.borrowed_tokens == 0
            with trio.fail_after(5):
                await server.wait_until_open(0)
                await p.wait_until_tunnels(0)
            if completed > 2:
                break
    assert suspended_generators() == []


def verified_soon(transport: Transport, patience: float) -> Transport:
    transport.health.silence, transport.health.patience = SILENCE, patience
    return transport


async def test_a_silent_watch_goes_on_while_probes_come_through_the_proxy() -> None:
    server = Loopback(lambda _: [CHUNKED + chunk(b"one"), SILENCE * 8, chunk(b"two"), None], keep_alive=True, tls=TLS)
    async with trio.open_nursery() as nursery, proxy("https", tls=TLS) as p:
        await nursery.start(server.run)
        async with (
            open_transport(configuration(p.url, server.url)) as transport,
            verified_soon(transport, 5).stream("/watch", for_watch=True) as body,
        ):
            assert await body.receive_some() == b"one"
            assert await body.receive_some() == b"two"
            assert server.probes >= 2
            assert p.connections == 2
        nursery.cancel_scope.cancel()
    assert suspended_generators() == []
