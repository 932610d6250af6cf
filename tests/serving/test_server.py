"""The loop that accepts connections."""

from __future__ import annotations

import math
import os
import resource
from contextlib import AsyncExitStack
from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_http import connection, read_to_end
from trioformer._asgi import Message, Receive, Send
from trioformer._listeners import open_listener
from trioformer._serving import GracefulEnd, ServerLimits, serve_app


async def ok(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


async def test_the_server_survives_a_process_without_file_descriptors(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    url = await nursery.start(partial(serve_app, ok, await open_listener("127.0.0.1:0")))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with connection(url) as stream:
        await trio.testing.wait_all_tasks_blocked(0.05)
        used = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 2, hard))
        try:
            async with connection(url):  # the last descriptor is the client's
                await trio.testing.wait_all_tasks_blocked(0.05)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/")).text == "ok"
        await stream.send_eof()
        await read_to_end(stream)
    assert {record.name for record in caplog.records if record.levelname == "ERROR"} <= {"trio.serve_listeners"}
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("code", "phrase"), [(200, "OK"), (422, "Unprocessable Entity"), (413, "Request Entity Too Large")]
)
async def test_a_response_has_a_reason_phrase(nursery: trio.Nursery, code: int, phrase: str) -> None:
    async def respond(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": code, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    url = await nursery.start(partial(serve_app, respond, await open_listener("127.0.0.1:0")))
    async with httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/")).reason_phrase == phrase
    nursery.cancel_scope.cancel()


async def test_clients_that_do_not_read_do_not_keep_others_out(nursery: trio.Nursery) -> None:
    async def huge(scope: Message, receive: Receive, send: Send) -> None:
        body = b"x" * (50_000_000 if scope["path"] == "/huge" else 2)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    limits = ServerLimits(connections=3, send_period=1_000)
    url = await nursery.start(partial(serve_app, huge, await open_listener("127.0.0.1:0"), limits=limits))
    async with AsyncExitStack() as clients:
        for _ in range(7):
            stream = await clients.enter_async_context(connection(url))
            await stream.send_all(b"GET /huge HTTP/1.1\r\nhost: x\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked(0.05)
        async with httpx.AsyncClient(base_url=url) as http:
            with trio.fail_after(10):
                assert (await http.get("/")).text == "xx"
    nursery.cancel_scope.cancel()


async def test_a_new_connection_is_closed_while_all_others_run_the_application(nursery: trio.Nursery) -> None:
    has_begun = trio.Event()

    async def hang(scope: Message, receive: Receive, send: Send) -> None:
        has_begun.set()
        await trio.sleep_forever()

    limits = ServerLimits(connections=1)
    url = await nursery.start(partial(serve_app, hang, await open_listener("127.0.0.1:0"), limits=limits))
    async with connection(url) as first:
        await first.send_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await has_begun.wait()
        async with connection(url) as second:
            with trio.fail_after(5):
                assert await read_to_end(second) == b""
    nursery.cancel_scope.cancel()


async def test_a_response_that_began_before_the_graceful_end_closes_its_connection(nursery: trio.Nursery) -> None:
    finish = trio.Event()

    async def stream(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await finish.wait()
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})

    ended = trio.Event()
    end = GracefulEnd(trio.Event(), delay=0, grace=math.inf)

    async def serve(*, task_status: trio.TaskStatus[str]) -> None:
        await serve_app(stream, await open_listener("127.0.0.1:0"), end=end, task_status=task_status)
        ended.set()

    url = await nursery.start(serve)
    async with connection(url) as stream_of_client:
        await stream_of_client.send_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked(0.05)
        end.begins.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        finish.set()
        with trio.fail_after(5):
            assert (await read_to_end(stream_of_client)).endswith(b"\r\n\r\nok")
    with trio.fail_after(5):
        await ended.wait()


async def test_a_response_that_began_before_the_graceful_end_is_not_the_last_one(nursery: trio.Nursery) -> None:
    # Its client does not know that the connection ends, and may have sent the next request.
    finish = trio.Event()

    async def stream(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await finish.wait()
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})

    end = GracefulEnd(trio.Event(), delay=60, grace=math.inf)
    url = await nursery.start(partial(serve_app, stream, await open_listener("127.0.0.1:0"), end=end))
    async with connection(url) as client:
        await client.send_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked(0.05)
        end.begins.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        finish.set()
        await client.send_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        with trio.fail_after(5):
            received = await read_to_end(client)
        assert received.count(b"\r\n\r\nok") == 2
        assert received.count(b"connection: close") == 1
    nursery.cancel_scope.cancel()
