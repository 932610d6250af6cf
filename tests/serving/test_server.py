"""The loop that accepts connections."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import AsyncExitStack
from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.support.controllers import errors_of
from tests.support.raw_http import connection, read_to_end
from trioformer._listeners import open_listener
from trioformer._serving import Message, ServerLimits, _server, serve_app
from trioformer._serving._connection import Places, Receive, Send


async def ok(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


class FullListener:
    """A listener for which no file descriptor is left at first."""

    def __init__(self, number: int, failures: int) -> None:
        self.number, self.failures = number, failures

    async def accept(self) -> str:
        await trio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            raise OSError(self.number, os.strerror(self.number))
        return "a stream"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_a_lack_of_file_descriptors_closes_an_idle_connection_and_is_logged_once(
    number: int, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    places = Places(10)
    closed: list[bool] = []

    async def idle() -> None:
        with places.waiting(1_000) as scope:
            await trio.sleep_forever()
        closed.append(scope.cancelled_caught)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(idle)
        await trio.testing.wait_all_tasks_blocked()
        assert await _server._accept(FullListener(number, 3), places) == "a stream"  # type: ignore[arg-type,comparison-overlap]  # only accept() is called
    assert closed == [True]
    assert trio.current_time() == pytest.approx(0.3)
    assert errors_of(caplog) == [f"cannot accept a connection: {os.strerror(number)}; trying again"]


async def test_another_error_of_accept_is_raised(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        await _server._accept(FullListener(errno.EBADF, 1), Places(1))  # type: ignore[arg-type]  # as above


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
    assert [one for one in errors_of(caplog) if "cannot accept" not in one] == []
    nursery.cancel_scope.cancel()


async def test_the_number_of_connections_is_at_most_a_quarter_of_the_file_descriptors(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))
    limits = ServerLimits(connections=1_000)
    url = await nursery.start(partial(serve_app, ok, await open_listener("127.0.0.1:0"), limits=limits))
    async with connection(url) as first, connection(url), connection(url):
        with trio.fail_after(5):
            assert await read_to_end(first) == b""
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "limits", [{"connections": 0}, {"head_size": 0}, {"head_period": 0}, {"send_period": -1}], ids=str
)
def test_limits_are_validated(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        ServerLimits(**limits)  # type: ignore[arg-type]  # the wrong values are the point


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
