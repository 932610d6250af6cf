"""Streamed bodies: complete, closed early, cancelled, and with errors; in memory and over a socket."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.scripted_http import (
    CHUNKED,
    END,
    Body,
    InMemory,
    Loopback,
    Step,
    cancelled_at_step,
    chunk,
    response,
    suspended_generators,
)
from trioformer.client import ClientOptions
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import ByteStream, Transport, open_transport
from trioformer.transport.http._pool import Pool


@attrs.define(eq=False)
class Opened:
    """One body from either kind of server, and a check that it is closed afterwards."""

    transport: Transport
    for_watch: bool
    check_closed: Callable[[], None]

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[ByteStream]:
        async with self.transport.stream("/x", for_watch=self.for_watch) as body:
            yield body


def pool_of(transport: Transport, *, for_watch: bool) -> list[object]:
    http_transport = transport._generations.present.watches if for_watch else transport._generations.present.requests
    assert isinstance(http_transport, Pool)
    return list(http_transport.connections)


@asynccontextmanager
async def in_memory(*steps: Step, for_watch: bool = True) -> AsyncIterator[Opened]:
    body = Body(steps)

    def check_closed() -> None:
        assert body.state in ("read", "unwound", "closed unread")

    async with open_transport(
        ClusterConfig(server="http://memory"), http_transport=InMemory([httpx.Response(200, stream=body)])
    ) as transport:
        yield Opened(transport, for_watch, check_closed)


@asynccontextmanager
async def over_a_socket(*steps: Step, for_watch: bool = True) -> AsyncIterator[Opened]:
    coded = [chunk(step) if isinstance(step, bytes) else step for step in steps]
    server = Loopback(lambda _: [CHUNKED, *coded, END])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_transport(ClusterConfig(server=server.url)) as transport:

            def check_closed() -> None:
                assert pool_of(transport, for_watch=for_watch) == []

            yield Opened(transport, for_watch, check_closed)
        nursery.cancel_scope.cancel()


@pytest.fixture(params=[in_memory, over_a_socket])
def opened(request: pytest.FixtureRequest) -> Callable[..., AsyncIterator[Opened]]:
    return request.param  # type: ignore[no-any-return]  # pytest types it as Any


async def test_a_body_is_received_chunk_by_chunk_to_its_end(opened) -> None:
    """Chunks that arrive together over a socket are one."""
    async with opened(b"one", 0.05, b"two") as it:
        async with it.stream() as body:
            assert body.code == 200
            assert await body.receive_some() == b"one"
            assert await body.receive_some() == b"two"
            assert await body.receive_some() == b""
            assert await body.receive_some() == b""
        assert suspended_generators() == []


async def test_a_body_closed_early_leaves_no_generator_suspended(opened) -> None:
    async with opened(b"one", b"two", None) as it:
        async with it.stream() as body:
            await body.receive_some()
        it.check_closed()
        assert suspended_generators() == []


async def test_a_cancelled_receive_closes_the_stream_and_all_generators(opened) -> None:
    async with opened(b"one", None) as it:
        with trio.CancelScope() as scope:
            async with it.stream() as body:
                await body.receive_some()
                async with trio.open_nursery() as nursery:

                    @nursery.start_soon
                    async def _() -> None:
                        await wait_all_tasks_blocked(0.01)
                        scope.cancel()

                    await body.receive_some()
        assert scope.cancelled_caught
        it.check_closed()
        assert suspended_generators() == []
        with pytest.raises(trio.ClosedResourceError):
            await body.receive_some()


async def test_an_exception_of_the_block_of_a_stream_is_not_wrapped(opened) -> None:
    async with opened(b"one", None) as it:
        error = KeyError("mine")

        async def fail() -> None:
            async with it.stream() as body:
                await body.receive_some()
                raise error

        with pytest.raises(KeyError) as caught:
            await fail()
        assert caught.value is error
        it.check_closed()
        assert suspended_generators() == []


async def test_a_receive_can_be_cancelled_even_if_chunks_are_ready(opened) -> None:
    async with opened(b"one", 0.05, b"two", None) as it, it.stream() as body:
        await body.receive_some()
        await trio.sleep(0.1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await body.receive_some()
        assert scope.cancelled_caught
        assert await body.receive_some() == b"two"  # nothing is lost: no read had begun


async def test_two_tasks_cannot_receive_at_the_same_time(opened) -> None:
    async with opened(None) as it, it.stream() as body, trio.open_nursery() as nursery:
        nursery.start_soon(body.receive_some)
        await wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.BusyResourceError):
            await body.receive_some()
        nursery.cancel_scope.cancel()


async def test_closing_a_stream_ends_another_tasks_receive(nursery) -> None:
    async with over_a_socket(None) as it:
        ended = trio.Event()

        async def read(body: ByteStream) -> None:
            with pytest.raises(trio.ClosedResourceError, match="was being read"):
                await body.receive_some()
            ended.set()

        async with it.stream() as body:
            nursery.start_soon(read, body)
            await wait_all_tasks_blocked(0.01)
        await ended.wait()
        it.check_closed()
        assert suspended_generators() == []


async def test_a_body_that_ends_early_is_a_failed_connection_each_time() -> None:
    server = Loopback(lambda _: [CHUNKED, chunk(b"one"), 0.05, b"5\r\nhal"])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_transport(ClusterConfig(server=server.url)) as transport:
            async with transport.stream("/x", for_watch=True) as body:
                assert await body.receive_some() == b"one"
                assert await body.receive_some() == b"hal"
                for _ in range(2):
                    with pytest.raises(ConnectionFailedError, match=server.url):
                        await body.receive_some()
            assert pool_of(transport, for_watch=True) == []
        nursery.cancel_scope.cancel()
    assert suspended_generators() == []


async def test_a_watch_has_no_read_timeout_and_a_list_has() -> None:
    http_transport = InMemory([response(200), response(200), response(200)])
    async with open_transport(ClusterConfig(server="http://memory"), http_transport=http_transport) as transport:
        async with transport.stream("/x", for_watch=True):
            pass
        async with transport.stream("/x", for_watch=False):
            pass
        await transport.request("GET", "/x")
    watch, listing, request = (made.extensions["timeout"] for made in http_transport.requests)
    assert watch == {"connect": 30.0, "read": None, "write": 60.0, "pool": None}
    assert listing == request == {"connect": 30.0, "read": 90.0, "write": 60.0, "pool": None}


async def test_many_cancelled_watches_leave_an_empty_pool() -> None:
    server = Loopback(lambda _: [CHUNKED, chunk(b"one"), None])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_transport(ClusterConfig(server=server.url)) as transport:

            async def watch() -> None:
                async with transport.stream("/x", for_watch=True) as body:
                    while True:
                        await body.receive_some()

            for step in (1, 30, 60, 100, 200, 300, 400, 1_000_000):
                async with cancelled_at_step(step) as watches:
                    for _ in range(20):
                        watches.start_soon(watch)
            assert pool_of(transport, for_watch=True) == []
        nursery.cancel_scope.cancel()
    assert suspended_generators() == []


async def test_an_error_in_a_body_shows_no_piece_of_it_in_variables() -> None:
    secret = b"aHVudGVyMg"
    replies = [response(200, secret, httpx.ReadError("gone")) for _ in range(2)]
    async with open_transport(
        ClusterConfig(server="http://memory"), http_transport=InMemory([*replies]), options=ClientOptions(retries=1)
    ) as transport:
        with pytest.raises(ConnectionFailedError) as caught:
            await transport.request("GET", "/x")
    error: BaseException | None = caught.value
    shown = []
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals["__name__"].startswith("tests."):
                continue
            names = [name for name, value in frame.f_locals.items() if secret.decode() in repr(value)]
            shown += [(frame.f_code.co_qualname, name) for name in names]
        error = error.__cause__ or error.__context__
    assert shown == []
