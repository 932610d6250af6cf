"""One connection of a server, without sockets and in virtual time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from tests.support.raw_http import read_to_end, status_of
from trioformer._asgi import Message, Receive, Send
from trioformer._serving import ServerLimits, serve_stream
from trioformer._serving._connection import ASGIApplication, Places

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\n"
LIMITS = ServerLimits(body_size=40_000)


async def respond(send: Send, text: bytes, code: int = 200) -> None:
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": False})


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """Respond with the body of the request."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    await respond(send, body or scope["method"].encode())


@asynccontextmanager
async def connected(
    app: ASGIApplication, *, limits: ServerLimits = LIMITS, access_log: logging.Logger | None = None
) -> AsyncIterator[trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]]:
    """Serve an application on a stream in memory; yields the client's end."""
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(serve_stream, app, server, Places(limits.connections), limits=limits, access_log=access_log)
        )
        yield client
        nursery.cancel_scope.cancel()


async def receive_response(stream: trio.abc.ReceiveStream, body: bytes) -> bytes:
    """Read one response that ends with a body."""
    received = b""
    while not received.endswith(b"\r\n\r\n" + body):
        data = await stream.receive_some()
        assert data, received
        received += data
    return received


# --- requests ---


async def test_requests_follow_each_other_on_a_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream:
        for _ in range(3):
            await stream.send_all(GET)
            assert status_of(await receive_response(stream, b"GET")) == 200
    assert trio.current_time() == 0


async def test_a_body_that_is_expected_first_is_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream:
        await stream.send_all(POST + b"content-length: 2\r\nexpect: 100-continue\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        await stream.send_all(b"ab")
        assert status_of(await receive_response(stream, b"ab")) == 200


async def test_a_head_request_gets_the_head_only(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream:
        await stream.send_all(b"HEAD / HTTP/1.0\r\n\r\n")
        response = await read_to_end(stream)
        assert b"content-length: 4" in response
        assert response.endswith(b"\r\n\r\n")


async def test_pipelined_requests_are_served_in_order(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream:
        await stream.send_all(POST + b"content-length: 3\r\n\r\nabc" + GET * 2)
        assert (await receive_response(stream, b"GET")).count(b"HTTP/1.1 200") in (2, 3)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (GET[:-2] + b"x: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (POST + b"content-length: 40000\r\n\r\n" + b"x" * 40_000, 200),
        (POST + b"content-length: 40001\r\n\r\n" + b"x" * 40_001, 413),
        (b"GET\r\n\r\n", 400),
    ],
    ids=["a large head", "a body", "a large body", "not HTTP"],
)
async def test_a_request_has_limits(
    request_: bytes, code: int, is_first: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(echo) as client:
        if not is_first:
            await client.send_all(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
            await receive_response(client, b"")
        await client.send_all(request_)
        await client.send_stream.aclose()
        assert status_of(await read_to_end(client)) == code
    assert caplog.messages == []


@pytest.mark.parametrize("sent", [b"GET / HT", GET[:-2], POST + b"content-length: 9\r\n\r\n1"])
async def test_a_request_that_is_cut_off_is_refused(sent: bytes, autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as client:
        await client.send_all(GET + sent)
        await client.send_stream.aclose()
        response = await read_to_end(client)
    assert response.count(b"HTTP/1.1 200 ") == response.count(b"HTTP/1.1 400 ") == 1


# --- deadlines ---


@pytest.mark.parametrize("sent", [b"", b"G", POST + b"content-length: 9\r\n\r\n12345678"])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_request_has_10_s_and_an_idle_connection_90_s(
    sent: bytes, is_first: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with connected(echo) as stream:
        if not is_first:
            await stream.send_all(GET)
            await receive_response(stream, b"GET")
            await trio.sleep(50)
        await stream.send_all(sent)
        assert await read_to_end(stream) == b""
    assert trio.current_time() == (10 if is_first else 60 if sent else 90)


async def test_an_application_has_no_deadline(autojump_clock: trio.testing.MockClock) -> None:
    async def slow(scope: Message, receive: Receive, send: Send) -> None:
        await trio.sleep(1_000)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await trio.sleep(1_000)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with connected(slow) as stream:
        for _ in range(2):
            await stream.send_all(GET)
            await receive_response(stream, b"0\r\n\r\n")
    assert trio.current_time() == 4_000


async def test_a_peer_that_does_not_read_ends_its_response_after_the_period(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended: list[float] = []

    async def huge(scope: Message, receive: Receive, send: Send) -> None:
        try:
            await respond(send, b"x" * 10_000_000)
        finally:
            ended.append(trio.current_time())

    client, server = trio.testing.lockstep_stream_pair()  # nothing is sent until it is read
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, huge, server, Places(1), limits=LIMITS))
        await client.send_all(GET)
    assert ended == [5]


# --- the end of a response ---


@pytest.mark.parametrize(
    ("method", "version", "end"),
    [
        ("GET", "1.1", b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
        ("HEAD", "1.1", b"transfer-encoding: chunked\r\n\r\n"),
        ("GET", "1.0", b"connection: close\r\n\r\nabc"),
        ("HEAD", "1.0", b"connection: close\r\n\r\n"),
    ],
)
async def test_a_response_can_have_an_unknown_length(
    method: str, version: str, end: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    async def stream(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"a", b"bc"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with connected(stream) as client:
        await client.send_all(f"{method} / HTTP/{version}\r\nhost: x\r\n\r\n".encode())
        await client.send_stream.aclose()
        response = await read_to_end(client)
    assert response.endswith(end)
    assert response.count(b"\r\n\r\n") == end.count(b"\r\n\r\n")


@pytest.mark.parametrize("code", [204, 304])
async def test_some_responses_have_no_body(code: int, autojump_clock: trio.testing.MockClock) -> None:
    async def bodiless(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": code, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with connected(bodiless) as client:
        for _ in range(2):
            await client.send_all(GET)
            assert b"transfer-encoding" not in await receive_response(client, b"")


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb"])
async def test_a_header_with_a_line_break_is_not_sent(
    value: bytes, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def inject(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", value)]})

    async with connected(inject) as client:
        await client.send_all(GET)
        assert status_of(await read_to_end(client)) == 500
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_the_client_disconnects_during_a_response(autojump_clock: trio.testing.MockClock) -> None:
    messages: list[str] = []

    async def endless(scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        messages.append((await receive())["type"])
        await send({"type": "http.response.body", "body": b"ignored", "more_body": True})

    async with connected(endless) as stream:
        await stream.send_all(GET)
        await stream.receive_some()
        await stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
    assert messages == ["http.disconnect"]


async def test_an_error_of_the_application_is_a_500_and_is_logged_once(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(scope: Message, receive: Receive, send: Send) -> None:
        raise KeyError("a bug")

    async with connected(broken) as stream:
        await stream.send_all(GET)
        response = await read_to_end(stream)
    assert status_of(response) == 500
    assert b"bug" not in response
    assert [(record.name, record.levelname) for record in caplog.records] == [("trioformer.serving", "ERROR")]
    assert capsys.readouterr().err == ""


async def test_an_error_in_the_middle_of_a_response_breaks_it_off(autojump_clock: trio.testing.MockClock) -> None:
    async def broken(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        raise KeyError("a bug")

    async with connected(broken) as stream:
        await stream.send_all(GET)
        response = await read_to_end(stream)
    assert response.endswith(b"1\r\na\r\n")  # and no last chunk


@pytest.mark.parametrize("size", [1, 10_000])
async def test_requests_sent_during_a_response_are_served_later(
    size: int, autojump_clock: trio.testing.MockClock
) -> None:
    async def wait_and_respond(scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        with trio.move_on_after(1) as waiting:
            await receive()
        await respond(send, b"waited" if waiting.cancelled_caught else b"disconnected")

    async with connected(wait_and_respond) as stream:
        await stream.send_all(GET)
        await trio.testing.wait_all_tasks_blocked()
        await stream.send_all(GET * size)  # more than the server buffers
        received = b""
        while received.count(b"waited") < 2:
            received += await stream.receive_some()
        assert b"disconnected" not in received


async def test_the_application_can_switch_to_another_protocol(autojump_clock: trio.testing.MockClock) -> None:
    async def switch(scope: Message, receive: Receive, send: Send) -> None:
        stream = await scope["extensions"]["trioformer.upgrade"]([(b"upgrade", b"echo"), (b"connection", b"upgrade")])
        await stream.wait_send_all_might_not_block()
        for _ in range(2):
            await stream.send_all(await stream.receive_some())
        await stream.aclose()

    async with connected(switch) as stream:
        await stream.send_all(GET[:-2] + b"upgrade: echo\r\nconnection: upgrade\r\n\r\nearly")
        assert (await receive_response(stream, b"early")).startswith(b"HTTP/1.1 101 ")
        await stream.send_all(b"later")
        assert await read_to_end(stream) == b"later"


# --- the places of connections ---


async def test_the_connection_that_has_waited_longest_is_closed_for_a_new_one() -> None:
    places = Places(3)
    ended: list[str] = []
    async with trio.open_nursery() as nursery:
        for name in ("has waited", "longest", "other"):
            nursery.start_soon(wait_in, places, ended, name)
            await trio.testing.wait_all_tasks_blocked()
        with places.take() as scope:
            assert scope is not None
            await trio.testing.wait_all_tasks_blocked()
            assert ended == ["longest"]
        nursery.cancel_scope.cancel()


async def wait_in(places: Places, ended: list[str], name: str) -> None:
    with places.take() as scope:
        assert scope is not None
        with places.waiting(scope, 1_000):
            if name != "has waited":
                await trio.sleep_forever()
        await trio.sleep_forever()
    ended.append(name)
