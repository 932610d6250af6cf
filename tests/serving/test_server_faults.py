"""An error inside one connection, whoever raises it, ends this connection only, and is logged once."""

from __future__ import annotations

import ssl
from typing import Any, final

import attrs
import pytest
import trio
import trio.testing
import trustme

from tests.support.controllers import errors_of
from tests.support.raw_http import read_to_end
from trioformer._asgi import Message, Receive, Send
from trioformer._serving import serve_stream
from trioformer._serving._connection import Places

GET = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


class InjectedError(Exception):
    """What no code expects."""


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


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("method", ["receive_some", "send_all", "send_eof", "aclose"])
async def test_an_error_of_the_stream_closes_the_connection(
    method: str, has_tls: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    if has_tls and method == "send_eof":
        pytest.skip("a TLS stream has no send_eof()")
    contexts = None
    client, server = trio.testing.memory_stream_pair()
    await client.send_all(client_hello() if has_tls else GET)
    if has_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(context)
        client.send_stream.close()
        contexts = lambda: context  # noqa: E731
    await serve_stream(ok, FaultyStream(server, method), Places(1), tls=contexts)  # and returns
    assert len(errors_of(caplog)) == 1
    assert "InjectedError" in caplog.text


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
async def test_what_is_no_exception_ends_the_server(
    raised: BaseException, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def interrupted(scope: Message, receive: Receive, send: Send) -> None:
        raise BaseExceptionGroup("a nursery", [raised, InjectedError()])

    client, server = trio.testing.memory_stream_pair()
    await client.send_all(GET)
    with pytest.raises(BaseExceptionGroup) as caught:
        await serve_stream(interrupted, server, Places(1))
    assert caught.value.exceptions == (raised,)
    assert errors_of(caplog) == ["error in a connection, which is closed"]  # the other one


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
