"""Requests cancelled at any point leave no connection behind: in the pool, at the server and in the kernel."""

from __future__ import annotations

import itertools
import random
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
import trustme

from tests.support.scripted_http import CHUNKED, END, AtStep, Loopback, chunk, complete, suspended_generators
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import _failures as failures
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.http._network import Network

CA = trustme.CA()
CERTIFICATE = CA.issue_cert("127.0.0.1")
KERNEL = Path("/proc/self/net/tcp")
ESTABLISHED = "01"

pytestmark = pytest.mark.skipif(not KERNEL.exists(), reason="counts the sockets that Linux knows")


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    if not request.param:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    return context


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None) -> AsyncGenerator[tuple[Loopback, ClusterConfig], None]:
    def respond(head: bytes) -> list[bytes]:
        return [CHUNKED + chunk(b"one"), chunk(b"two") + END] if b"/stream" in head else [complete(b"ok")]

    server = Loopback(respond, keep_alive=True, tls=tls)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield server, ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes() if tls else None)
        nursery.cancel_scope.cancel()


def connections_in_kernel(server: Loopback) -> int:
    """Count the client's ends of the connections to this server that are open."""
    rows = [line.split() for line in KERNEL.read_text().splitlines()[1:]]
    return sum(remote.endswith(f":{server.port:04X}") and state == ESTABLISHED for _, _, remote, state, *_ in rows)


def pool_of(transport: Transport) -> list[str]:
    """Return the pool's connections of both clients, each with its state."""
    clients = (transport._generations.present.requests, transport._generations.present.watches)
    return [repr(each) for client in clients for each in client.connections]  # type: ignore[attr-defined]  # of a Pool


async def check_counts(server: Loopback, transport: Transport) -> None:
    """Check that every connection of the pools can be used, and that nobody knows of another."""
    pool = pool_of(transport)
    assert [each for each in pool if "idle" not in each] == []
    assert transport._limiter.borrowed_tokens == 0
    probes = transport.health._connection
    expected = len(pool) + (probes is not None and probes.is_live)
    with trio.fail_after(30):
        await server.wait_until_open(expected)
    assert connections_in_kernel(server) == expected


async def read(transport: Transport, *, for_watch: bool) -> None:
    async with transport.stream("/stream", for_watch=for_watch) as body:
        while await body.receive_some():
            pass


async def send(transport: Transport, kind: str) -> None:
    if kind == "request":
        await transport.request("POST", "/x", content=b"{}")
    else:
        await read(transport, for_watch=kind == "watch")


@pytest.mark.parametrize("is_connected", [False, True])
async def test_a_request_cancelled_at_any_step_leaves_no_connection(
    tls: ssl.SSLContext | None, is_connected: bool
) -> None:
    for kind in ["request", "list", "watch"]:
        async with serving(tls) as (server, config):
            completed = 0
            for step in itertools.count(1):
                async with open_transport(config) as transport:
                    if is_connected:
                        await transport.request("GET", "/x")
                    with trio.CancelScope() as scope, AtStep(step, scope.cancel):
                        await send(transport, kind)
                    completed += not scope.cancel_called
                    await check_counts(server, transport)
                await server.wait_until_open(0)
                if completed > 2:
                    break
            assert connections_in_kernel(server) == 0
        assert suspended_generators() == []


async def send_until_closed(transport: Transport, kind: str, done: trio.Event) -> None:
    with suppress(trio.ClosedResourceError, ConnectionFailedError):  # the latter for a body that had begun
        await send(transport, kind)
    done.set()


async def test_a_client_closed_at_any_step_of_a_request_leaves_nothing(tls: ssl.SSLContext | None) -> None:
    for kind in ["request", "list", "watch"]:
        async with serving(tls) as (server, config):
            for step in range(1, 61, 2):
                must_close = trio.Event()
                async with trio.open_nursery() as nursery, open_transport(config) as transport:
                    with AtStep(step, must_close.set):
                        nursery.start_soon(send_until_closed, transport, kind, must_close)
                        await must_close.wait()
                with trio.fail_after(10):
                    await server.wait_until_open(0)
                assert (connections_in_kernel(server), pool_of(transport)) == (0, [])
        assert suspended_generators() == []


async def test_a_connection_that_cannot_be_prepared_is_closed() -> None:
    async with serving(None) as (server, _):
        with pytest.raises(failures.ConnectError):
            await Network(socket_options=[(9_999, 9_999, 1)]).connect("127.0.0.1", server.port, None)
        stream = await Network().connect("127.0.0.1", server.port, None)
        with pytest.raises(failures.ConnectError, match="label"):
            await stream.start_tls(ssl.create_default_context(), ".test")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert connections_in_kernel(server) == 0
        await server.wait_until_open(0)


@attrs.define(eq=False)
class _Sender:
    """Sends requests, cancels each at a random step, and counts."""

    server: Loopback
    transport: Transport
    rng: random.Random
    left: int
    completed: int = 0
    cancelled: int = 0

    async def run(self) -> None:
        while self.left:
            self.left -= 1
            steps = int(10 ** self.rng.uniform(0, 3.5))  # of all tasks
            with trio.CancelScope() as scope, AtStep(steps, scope.cancel):
                await self._send(self.rng.choice(["GET", "POST", "list", "watch"]))
            if scope.cancelled_caught:
                self.cancelled += 1
            else:
                self.completed += 1

    async def _send(self, kind: str) -> None:
        if kind in ("list", "watch"):
            await read(self.transport, for_watch=kind == "watch")
        else:
            await self.transport.request(kind, "/x", content=b"{}" if kind == "POST" else None)


@pytest.mark.parametrize("number", [200, pytest.param(10_000, marks=pytest.mark.long)])
async def test_after_random_cancellations_pool_server_and_kernel_count_alike(
    tls: ssl.SSLContext | None, number: int
) -> None:
    async with serving(tls) as (server, config):
        async with open_transport(config) as transport:
            sender = _Sender(server, transport, random.Random(number), number)
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(sender.run)
            assert sender.completed > number / 10, sender
            assert sender.cancelled > number / 10, sender
            await check_counts(server, transport)
        await server.wait_until_open(0)
        assert connections_in_kernel(server) == 0
    assert suspended_generators() == []
