"""What the requests of one client have shown about its server: probes of silent watches."""

from __future__ import annotations

import math
import random
import re
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from tests.support.probed_server import ProbedServer
from tests.support.scripted_http import complete
from trioformer.transport import _failures as failures
from trioformer.transport.http._sockets import NetworkStream, TCPStream
from trioformer.transport.policy._liveness import ServerHealth

PROBE = "/prefix/livez?exclude=etcd"
NOT_RESPONDING = (
    "the server has sent nothing for 30 s and did not respond to a probe within 15 s; the connection is presumed dead"
)
UNVERIFIED = "silent for 30 s on a connection that cannot be verified; watch again"


class Watch:
    """The connection of a watch in memory, and when it received what."""

    def __init__(self, health: ServerHealth, *, resumable: bool = False) -> None:
        self._server, client = trio.testing.memory_stream_pair()
        self._stream = NetworkStream(cast("TCPStream", client), health=health)
        self._timeout = math.inf if resumable else None
        self.received: list[tuple[float, bytes]] = []
        self.ended: tuple[float, str] | None = None

    async def run(self) -> None:
        try:
            while True:
                data = await self._stream.receive(self._timeout)
                self.received.append((trio.current_time(), data))
        except failures.ReadError as exc:
            self.ended = (trio.current_time(), str(exc))

    async def send(self, data: bytes) -> None:
        await self._server.send_all(data)


async def open_watches(health: ServerHealth, number: int, *, resumable: bool = False) -> list[Watch]:
    """Open watches as the transport does: after the probe connection."""
    await health.prepare()
    return [Watch(health, resumable=resumable) for _ in range(number)]


# --- what it costs ---


async def test_watches_that_are_idle_cost_120_probes_an_hour_at_most(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    watches = await open_watches(server.health(), 20)
    phases = random.Random(1)
    with trio.move_on_after(3600):
        async with trio.open_nursery() as nursery:
            for watch in watches:
                nursery.start_soon(watch.run)
                await trio.sleep(phases.uniform(0, 5))
    assert 100 <= len(server.requests) - 1 <= 120
    assert set(server.paths) == {PROBE}
    assert len(server.streams) == 1
    assert [watch.ended for watch in watches] == [None] * 20


# --- a server that does not respond ---


async def test_all_watches_of_a_server_that_stops_responding_end_after_45_s(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer()
    watches = await open_watches(server.health(), 20)
    server.delay = math.inf
    async with trio.open_nursery() as nursery:
        for watch in watches:
            nursery.start_soon(watch.run)
    opened_at = server.streams[0].opened_at
    for watch in watches:
        assert watch.ended is not None
        assert watch.ended[1] == NOT_RESPONDING
        assert watch.ended[0] - opened_at == pytest.approx(45, abs=0.1)
    assert len(server.requests) == 2
    assert server.streams[0].is_closed, "the next probe needs another connection"


async def test_any_response_to_a_probe_vouches_for_a_watch(autojump_clock: trio.testing.MockClock) -> None:
    for status in ["200 OK", "401 X", "503 X"]:
        server = ProbedServer(reply=complete(b"", status))
        (watch,) = await open_watches(server.health(), 1)
        with trio.move_on_after(100):
            await watch.run()
        assert watch.ended is None
        assert len(server.requests) == 4
        assert len(server.streams) == 1
        assert len(server.rejected) == (4 if "401" in status else 0)


async def test_a_probe_has_the_headers_of_a_request(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    await server.health().prepare()
    assert server.heads[0].split(b"\r\n") == [
        b"GET /prefix/livez?exclude=etcd HTTP/1.1",
        b"Host: api.test:1",
        b"Authorization: Bearer t",
        b"",
        b"",
    ]


async def test_a_probe_is_repeated_after_the_process_was_stopped(mock_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    health = server.health()
    mock_clock.autojump_threshold = 0
    (watch,) = await open_watches(health, 1)
    server.delay = math.inf
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(31)
        mock_clock.autojump_threshold = math.inf
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        assert watch.ended is None
        mock_clock.jump(14.9)
        await wait_all_tasks_blocked()
        assert watch.ended is None
        mock_clock.jump(0.2)
    assert watch.ended is not None
    assert len(server.requests) == 2


async def test_a_response_that_arrives_after_a_stop_counts(mock_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    mock_clock.autojump_threshold = 0
    (watch,) = await open_watches(server.health(), 1)
    server.delay = 80
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(31)
        mock_clock.autojump_threshold = math.inf
        mock_clock.jump(70)
        await wait_all_tasks_blocked()
        server.delay = 0.01
        mock_clock.autojump_threshold = 0
        await trio.sleep(60)
        assert watch.ended is None
        assert len(server.streams) == 1
        nursery.cancel_scope.cancel()


# --- one probe for all ---


async def test_data_that_arrives_during_a_probe_is_received_at_once(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    (watch,) = await open_watches(server.health(), 1)
    server.delay = 10
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(32)
        await watch.send(b"data")
        await wait_all_tasks_blocked()
        assert watch.received == [(trio.current_time(), b"data")]
        server.delay = 0.01
        await trio.sleep(120)
        nursery.cancel_scope.cancel()
    assert watch.ended is None
    assert len(server.streams) == 1, "the connection must stay as old as the watches"


@pytest.mark.parametrize("leaves", ["data", "cancelled"])
async def test_a_waiting_watch_takes_over_the_probe_of_one_that_leaves(
    autojump_clock: trio.testing.MockClock, leaves: str
) -> None:
    server = ProbedServer()
    first, second = await open_watches(server.health(), 2)
    server.delay = math.inf
    begin = server.requests[0][0]
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def run_first() -> None:
            with scope:
                await first.run()

        nursery.start_soon(run_first)
        await trio.sleep(0.5)
        nursery.start_soon(second.run)
        await trio.sleep(31.5)
        if leaves == "data":
            await first.send(b"data")
        else:
            scope.cancel()
    assert second.ended is not None
    assert second.ended[0] - begin == pytest.approx(45, abs=0.1), "15 s after the request was sent, by whichever task"
    assert [time - begin for time, _ in server.requests[:2]] == pytest.approx([0, 30], abs=0.02)
    assert [time for time, _ in server.requests if 30.1 < time - begin <= 45] == []


async def test_an_old_response_shows_nothing_about_now(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    (watch,) = await open_watches(server.health(), 1)
    server.delay = 3
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(31)
        await watch.send(b"data")  # the response arrives 2 s later, and nobody waits for it
        await trio.sleep(4)
        server.delay = math.inf
    assert watch.ended is not None
    assert watch.ended[0] == pytest.approx(31 + 30 + 15, abs=0.1)
    assert len(server.requests) == 3


async def test_cancelling_a_verification_leaves_no_group(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    (watch,) = await open_watches(server.health(), 1)
    server.delay = math.inf
    caught: list[BaseException] = []
    with trio.move_on_after(35) as scope:
        try:
            await watch.run()
        except BaseException as exc:
            caught.append(exc)
            raise
    assert scope.cancelled_caught
    assert [type(exc) for exc in caught] == [trio.Cancelled]


# --- connections of another age ---


async def test_a_younger_probe_connection_does_not_vouch_for_a_watch(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    health = server.health()
    watches = await open_watches(health, 3, resumable=True)
    (other,) = await open_watches(health, 1)
    server.streams[0].is_readable = True  # the server has closed it
    begin = trio.current_time()
    with trio.move_on_after(100):
        async with trio.open_nursery() as nursery:
            for watch in [*watches, other]:
                nursery.start_soon(watch.run)
    assert len(server.streams) == 2
    assert server.streams[0].is_closed
    ended = sorted(watch.ended for watch in watches if watch.ended is not None)
    assert [text for _, text in ended] == [UNVERIFIED] * 3
    assert [time - begin for time, _ in ended] == pytest.approx([30, 60, 90], abs=0.2)
    assert other.ended is None, "it cannot be resumed"


async def test_a_younger_probe_connection_vouches_for_younger_watches(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer()
    health = server.health()
    await open_watches(health, 1)
    server.streams[0].is_readable = True
    await trio.sleep(31)
    (watch,) = await open_watches(health, 1, resumable=True)
    with trio.move_on_after(100):
        await watch.run()
    assert watch.ended is None
    assert len(server.streams) == 2


async def test_a_connection_that_closes_as_a_probe_is_sent_is_replaced(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    (watch,) = await open_watches(server.health(), 1)
    server.streams[0].error = failures.ReadError("closed")
    with trio.move_on_after(100):
        await watch.run()
    assert watch.ended is None
    assert len(server.streams) == 2


async def test_a_response_that_closes_the_connection_is_a_response(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer(reply=b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    (watch,) = await open_watches(server.health(), 1, resumable=True)
    assert server.streams[0].is_closed
    await watch.run()
    assert watch.ended is not None
    assert watch.ended[1] == UNVERIFIED


async def test_a_proxy_that_closes_idle_connections_does_not_end_quiet_watches_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer(reply=b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    health = server.health()
    ends = []
    for _ in range(4):
        (watch,) = await open_watches(health, 1, resumable=True)
        with trio.move_on_after(3_600):
            await watch.run()
        ends.append(watch.ended)
    assert [end is not None for end in ends] == [True, True, False, False]


async def test_a_probe_that_fails_while_other_requests_have_responses_does_not_end_a_watch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer()
    health = server.health()
    resumable, other = await open_watches(health, 1, resumable=True) + await open_watches(health, 1)
    server.delay = math.inf
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resumable.run)
        nursery.start_soon(other.run)
        for _ in range(100):
            await trio.sleep(1)
            health.record_response()
        nursery.cancel_scope.cancel()
    assert resumable.ended is not None
    assert resumable.ended[1] == UNVERIFIED
    assert other.ended is None


async def test_what_is_no_response_closes_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    for reply, problem in [(b"SSH-2.0\r\n\r\n", "invalid HTTP/1.1 response"), (b"", "without a response")]:
        server = ProbedServer()
        (watch,) = await open_watches(server.health(), 1)
        server.reply = reply
        await watch.run()
        assert watch.ended is not None
        assert re.search(rf"a probe failed \(.*{problem}", watch.ended[1])
        assert all(stream.is_closed for stream in server.streams)


# --- before a watch ---


async def test_the_probe_connection_is_opened_once_for_many_watches(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer(connect_delay=0.2)
    health = server.health()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(health.prepare)
    assert trio.current_time() == pytest.approx(0.21)
    assert len(server.requests) == 1


async def test_opening_the_probe_connection_delays_a_watch_by_a_second_at_most(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer(connect_delay=20)
    health = server.health()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(health.prepare)
    assert trio.current_time() == pytest.approx(1)
    await health.prepare()
    assert trio.current_time() == pytest.approx(1), "it is not attempted again for half a minute"
    await trio.sleep(30)
    server.connect_delay = 0
    await health.prepare()
    assert len(server.streams) == 1


async def test_watches_that_are_opened_after_an_outage_can_be_verified(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    health = server.health()
    await health.prepare()
    server.streams[0].is_readable = True  # closed by the server
    server.connect_error = failures.ConnectError("down")
    health.record_failure()
    await trio.sleep(60)
    await health.prepare()
    server.connect_error = None
    await health.prepare()
    assert len(server.streams) == 1, "it was attempted just now"
    health.record_response()  # of the first watch
    watches = await open_watches(health, 3, resumable=True)
    with trio.move_on_after(100):
        async with trio.open_nursery() as nursery:
            for watch in watches:
                nursery.start_soon(watch.run)
    assert [watch.ended for watch in watches] == [None] * 3
    assert len(server.streams) == 2


async def test_a_request_that_was_left_on_a_lost_connection_is_repeated(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ProbedServer(delay=3)
    (watch,) = await open_watches(server.health(), 1)
    server.streams[0].error = failures.ReadError("reset")
    with trio.move_on_after(40):
        await watch.run()
    assert watch.ended is None
    assert len(server.streams) == 2


# --- retries ---


async def test_a_closed_client_opens_no_probe_connection(autojump_clock: trio.testing.MockClock) -> None:
    server = ProbedServer()
    health = server.health()
    await health.prepare()
    health.close()
    assert server.streams[0].is_closed
    await trio.sleep(60)
    await health.prepare()
    assert len(server.streams) == 1
