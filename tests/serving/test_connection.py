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
from trioformer._serving import Message, ServerLimits, serve_stream
from trioformer._serving._connection import ASGIApplication, Places, Receive, Send

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\n"
LIMITS = ServerLimits(head_period=10, body_period=60, idle_period=90, send_period=5)


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


async def test_requests_that_do_not_wait_for_responses_end_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected(echo) as stream:
        await stream.send_all(POST + b"content-length: 3\r\n\r\nabc" + GET * 100)
        response = await read_to_end(stream)
    assert response.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in response
    assert response.endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize("piece", [100_000, 1_000])
async def test_a_head_that_is_too_long_is_refused(piece: int, autojump_clock: trio.testing.MockClock) -> None:
    head = GET[:-2] + b"x: " + b"x" * 2 * LIMITS.head_size + b"\r\n\r\n"
    async with connected(echo) as client:
        for start in range(0, len(head), piece):
            await client.send_all(head[start : start + piece])
        await client.send_stream.aclose()
        assert status_of(await read_to_end(client)) == 431


async def test_a_body_does_not_count_as_part_of_its_head(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as client:
        await client.send_all(POST + b"content-length: 40000\r\n\r\n" + b"x" * 40_000)
        await receive_response(client, b"x" * 40_000)


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


@pytest.mark.parametrize("request_line", [b"HEAD / HTTP/3.0", b"CONNECT / HTTP/2.0", b"GET / HTTP/9.9"])
async def test_another_version_is_refused(
    request_line: bytes, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(echo) as stream:
        await stream.send_all(request_line + b"\r\nhost: x\r\n\r\n")
        response = await read_to_end(stream)
    assert status_of(response) == 505
    assert response.endswith(b"\r\n\r\n") == request_line.startswith(b"HEAD")  # to which no body is sent
    assert caplog.messages == []


async def test_a_bad_request_after_a_head_request_is_refused_with_a_body(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(echo) as stream:
        await stream.send_all(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        await receive_response(stream, b"")
        await stream.send_all(b"GET\r\n\r\n")
        response = await read_to_end(stream)
    assert status_of(response) == 400
    assert response.endswith(b"\r\n\r\n400 bad request\n")
    assert caplog.messages == []


async def test_a_body_that_is_not_read_ends_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    async def refuse(scope: Message, receive: Receive, send: Send) -> None:
        await respond(send, b"too large", 413)

    async with connected(refuse) as stream:
        await stream.send_all(POST + b"content-length: 1000000\r\n\r\n" + b"x" * 50_000)
        response = await read_to_end(stream)
        assert status_of(response) == 413
        assert b"connection: close" in response


# --- deadlines ---


@pytest.mark.parametrize("head", [b"", b"GET", GET[:-2]])
async def test_a_first_head_has_10_s(head: bytes, autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream:
        await stream.send_all(head)
        assert await read_to_end(stream) == b""
    assert trio.current_time() == 10


async def test_a_connection_may_be_idle_for_longer_than_a_head_may_take(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected(echo) as stream:
        await stream.send_all(GET)
        await receive_response(stream, b"GET")
        await trio.sleep(89)
        await stream.send_all(GET)
        await receive_response(stream, b"GET")
        assert await read_to_end(stream) == b""
    assert trio.current_time() == 89 + 90


async def test_a_body_that_drips_is_refused_after_its_period(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(echo) as stream, trio.open_nursery() as nursery:

        async def drip() -> None:
            for _ in range(1_000):
                await stream.send_all(b"x")
                await trio.sleep(1)

        await stream.send_all(POST + b"content-length: 1000\r\n\r\n")
        nursery.start_soon(drip)
        response = await read_to_end(stream)
        nursery.cancel_scope.cancel()
    assert status_of(response) == 408
    assert trio.current_time() <= 62


async def test_a_peer_that_does_not_read_ends_its_response_after_the_period(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended: list[float] = []

    async def huge(scope: Message, receive: Receive, send: Send) -> None:
        await respond(send, b"x" * 10_000_000)
        ended.append(trio.current_time())

    client, server = trio.testing.lockstep_stream_pair()  # nothing is sent until it is read
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, huge, server, Places(1), limits=LIMITS))
        await client.send_all(GET)
    assert ended == [5]


# --- the end of a response ---


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


async def test_requests_are_logged_when_they_end(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with connected(echo, access_log=logging.getLogger("tests.access")) as stream:
        await stream.send_all(b"GET /a?b=%0a HTTP/1.0\r\n\r\n")
        await read_to_end(stream)
    assert caplog.messages == ['- "GET /a?b=%0a HTTP/1.0" 200']


# --- the places of connections ---


async def wait_in(places: Places, log: list[str], name: str, *, seconds: float = 1_000) -> None:
    await places.take()
    log.append(f"{name} has a place")
    try:
        with places.waiting(seconds):
            await trio.sleep_forever()
        log.append(f"{name} is closed at {trio.current_time():g}")
    finally:
        places.release()


async def test_the_connection_that_has_waited_longest_gives_way(autojump_clock: trio.testing.MockClock) -> None:
    places, log = Places(2), list[str]()
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(wait_in, places, log, name)
            await trio.testing.wait_all_tasks_blocked()
        assert log == ["a has a place", "b has a place", "a is closed at 0", "c has a place"]
        nursery.cancel_scope.cancel()


async def test_a_new_connection_waits_while_all_others_serve_requests(autojump_clock: trio.testing.MockClock) -> None:
    places, log = Places(2), list[str]()

    async def busy() -> None:
        await places.take()
        await trio.sleep(7)
        places.release()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy)
        nursery.start_soon(busy)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(partial(wait_in, places, log, "c", seconds=1))
    assert log == ["c has a place", "c is closed at 8"]


async def test_a_connection_that_waits_no_longer_is_not_closed(autojump_clock: trio.testing.MockClock) -> None:
    places = Places(1)
    with places.waiting(5) as scope:
        pass
    places.close_one()
    assert not scope.cancel_called


async def test_a_cancelled_wait_takes_no_place(autojump_clock: trio.testing.MockClock) -> None:
    places = Places(1)
    await places.take()
    with trio.move_on_after(1):
        await places.take()
    places.release()
    with trio.fail_after(1):
        await places.take()
