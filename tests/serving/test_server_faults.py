"""An error inside one connection, whoever raises it, ends this connection only, and is logged once."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, final

import attrs
import h11
import pytest
import trio
import trio.testing
import trustme

from tests.support.controllers import errors_of
from tests.support.raw_http import exchange, read_to_end, status_of
from trioformer._listeners import open_listener
from trioformer._serving import Message, serve_app, serve_stream
from trioformer._serving._connection import Connection, Places, Receive, Send

GET = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
OTHER_VERSION = b" / HTTP/3.0\r\nhost: x\r\n\r\n"
ACCESS = logging.getLogger("tests.access")


class InjectedError(Exception):
    """What no code expects."""


def fail(*args: object) -> NoReturn:
    raise InjectedError


async def fail_later(*args: object) -> NoReturn:
    await trio.lowlevel.checkpoint()
    raise InjectedError


async def ok(scope: Message, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


@final
@attrs.define(eq=False)
class FaultyStream(trio.abc.HalfCloseableStream):
    """A stream with one method that raises when it is called for the first time."""

    stream: trio.StapledStream[Any, Any]
    fault: str = ""

    def _check(self, method: str) -> None:
        if self.fault == method:
            self.fault = ""
            raise InjectedError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        self._check("receive_some")
        return bytes(await self.stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._check("send_all")
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        self._check("send_eof")
        await self.stream.send_eof()

    async def aclose(self) -> None:
        self._check("aclose")
        await self.stream.aclose()


async def talk(stream: FaultyStream, client: trio.abc.Stream, request: bytes, **arguments: Any) -> bytes:
    """Serve one connection; returns what its client receives."""
    await client.send_all(request)
    await serve_stream(ok, stream, Places(1), access_log=ACCESS, **arguments)
    return await read_to_end(client)


@pytest.mark.parametrize("method", ["receive_some", "send_all", "send_eof", "aclose"])
async def test_an_error_of_the_stream_closes_the_connection(
    method: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    client, server = trio.testing.memory_stream_pair()
    await talk(FaultyStream(server, method), client, GET)  # and ends
    assert len(errors_of(caplog)) == 1
    assert "InjectedError" in caplog.text


STEPS: dict[str, tuple[type, str, Callable[..., object], bytes]] = {
    "prepare": (Connection, "__attrs_post_init__", fail, GET),
    "parse": (h11.Connection, "next_event", fail, GET),
    "parse what is received": (h11.Connection, "receive_data", fail, GET),
    "describe the request": (Connection, "_scope", fail, GET),
    "respond": (Connection, "_respond", fail_later, GET),
    "format": (h11.Connection, "send", fail, GET),
    "refuse": (Connection, "_refuse", fail_later, b"GET" + OTHER_VERSION),
    "format a refusal": (h11.Connection, "send", fail, b"GET" + OTHER_VERSION),
    "linger": (Connection, "_linger", fail_later, GET),
    "begin anew": (h11.Connection, "start_next_cycle", fail, GET.replace(b"connection: close\r\n", b"")),
}


@pytest.mark.parametrize("step", STEPS)
async def test_an_error_at_any_step_ends_only_its_connection(
    step: str, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    owner, name, fault, request = STEPS[step]
    url = await nursery.start(partial(serve_app, ok, await open_listener("127.0.0.1:0"), access_log=ACCESS))
    original, faults = getattr(owner, name), [fault]

    def faulty(*args: Any) -> Any:
        return faults.pop()(*args) if faults else original(*args)

    with pytest.MonkeyPatch.context() as patch, trio.fail_after(5):
        patch.setattr(owner, name, faulty)
        await exchange(url, request)
    assert faults == []
    assert len(errors_of(caplog)) == 1
    assert "InjectedError" in caplog.text
    assert status_of(await exchange(url, GET)) == 200
    nursery.cancel_scope.cancel()


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize("method", ["receive_some", "send_all", "aclose"])
async def test_an_error_of_the_stream_below_tls_closes_the_connection(
    method: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    client, server = trio.testing.memory_stream_pair()
    stream = FaultyStream(server, method)
    await talk(stream, client, client_hello(), tls=context)
    assert stream.fault == ""
    assert errors_of(caplog) == ["error in a connection, which is closed"]


async def test_an_error_in_the_tls_handshake_ends_only_its_connection(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    url = await nursery.start(partial(serve_app, ok, await open_listener("127.0.0.1:0"), tls=context))
    with pytest.MonkeyPatch.context() as patch, trio.fail_after(5):
        patch.setattr(trio.SSLStream, "do_handshake", fail_later)
        await exchange(url, GET)
    assert errors_of(caplog) == ["error in a connection, which is closed"]
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    port = int(url.rpartition(":")[2])
    async with await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", port, ssl_context=trust, https_compatible=True
    ) as stream:
        await stream.send_all(GET)
        assert status_of(await read_to_end(stream)) == 200
    nursery.cancel_scope.cancel()


async def test_a_stream_whose_close_fails_is_closed_all_the_same(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    await talk(FaultyStream(server, "aclose"), client, GET)
    with pytest.raises(trio.ClosedResourceError):
        await server.receive_some()


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
async def test_what_is_no_exception_ends_the_server(
    raised: BaseException, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def interrupted(scope: Message, receive: Receive, send: Send) -> None:
        raise raised

    client, server = trio.testing.memory_stream_pair()
    await client.send_all(GET)
    with pytest.raises(type(raised)):
        await serve_stream(interrupted, server, Places(1))
    assert errors_of(caplog) == []


async def test_the_end_of_the_server_is_no_error_of_its_connections(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, ok, server, Places(1))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert errors_of(caplog) == []
    assert await read_to_end(client) == b""
