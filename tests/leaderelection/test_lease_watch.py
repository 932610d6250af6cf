"""A candidate notices a release in a watch: how soon, how many requests, and what happens when the watch fails."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import (
    NAME,
    NAMESPACE,
    Fault,
    FaultInjector,
    LeaderRuns,
    candidate,
    create_lease,
    stored_lease,
)
from trioformer.client import open_client
from trioformer.leaderelection import LeaderElector
from trioformer.leaderelection._lease_watch import JITTER
from trioformer.models.coordination_v1 import Lease
from trioformer.testing import APIServer
from trioformer.transport import TokenBucketRateLimiter

WITHIN = 0.2
"""Seconds after a release in which another candidate leads."""


def edit(server: APIServer, **spec: object) -> None:
    """Edit the Lease, as another client does."""
    server.patch(Lease, NAME, {"spec": spec}, namespace=NAMESPACE)


def renew(server: APIServer) -> None:
    """Renew the Lease of the other candidate."""
    edit(server, renewTime=f"2026-01-01T00:{int(trio.current_time()) // 60:02d}:{trio.current_time() % 60:09.6f}Z")


async def renew_forever(server: APIServer) -> None:
    """Hold the Lease as another candidate does."""
    while True:
        renew(server)
        await trio.sleep(2)


@asynccontextmanager
async def waiting(server: APIServer, *, rng: random.Random | None = None) -> AsyncIterator[Waiting]:
    """A candidate that waits for the Lease of another one."""
    create_lease(server, "them")
    async with trio.open_nursery() as nursery:
        options = {} if rng is None else {"rng": rng}
        async with candidate(server, nursery, "us", **options) as (elector, transport), trio.open_nursery() as running:
            them = trio.CancelScope()
            led = trio.Event()

            async def renew_until_released() -> None:
                with them:
                    await renew_forever(server)

            async def lead() -> None:
                async with elector.lead():
                    led.set()
                    await trio.sleep_forever()

            running.start_soon(renew_until_released)
            running.start_soon(lead)
            yield Waiting(server, elector, transport, them, led)
            running.cancel_scope.cancel()


class Waiting:
    """What a test does with the candidate."""

    def __init__(
        self,
        server: APIServer,
        elector: LeaderElector,
        transport: FaultInjector,
        them: trio.CancelScope,
        led: trio.Event,
    ) -> None:
        self.server, self.elector, self.transport, self._them, self.led = server, elector, transport, them, led

    def stop_renewing(self) -> None:
        """Let the other candidate fail."""
        self._them.cancel()

    async def takeover(self) -> float:
        """Release the Lease as the other candidate does; return the seconds until ours leads."""
        self._them.cancel()
        released_at = trio.current_time()
        edit(self.server, holderIdentity="", leaseDurationSeconds=1)
        await self.led.wait()
        return trio.current_time() - released_at


# --- how soon ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
async def test_a_candidate_takes_over_within_200_ms_of_a_release(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, seed: int
) -> None:
    rng = random.Random(seed)
    async with waiting(api_server, rng=rng) as us:
        await trio.sleep(rng.uniform(0.1, 100))
        assert await us.takeover() <= WITHIN


async def test_a_leader_that_ends_hands_over_within_200_ms(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with (
        candidate(api_server, nursery, "first") as (first, _),
        candidate(api_server, nursery, "second") as (second, _),
    ):
        nursery.start_soon(first.run, runs.leader_code(for_seconds=7.3))
        await runs.wait_for("first")
        nursery.start_soon(second.run, runs.leader_code())
        await runs.wait_for("second")
        assert trio.current_time() - 7.3 <= WITHIN
        nursery.cancel_scope.cancel()


async def test_a_release_between_the_read_and_the_watch_is_noticed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:

        def delay_watches(request: httpx.Request) -> Fault:
            return "slow" if "watch" in request.url.params else "none"

        us.transport.fault, us.transport.latency = delay_watches, lambda: 0.3
        await trio.sleep(0.1)
        assert us.transport.methods == ["GET", "WATCH"]
        assert await us.takeover() <= 0.6 + WITHIN


@pytest.mark.parametrize("holder", [None, ""], ids=["created", "updated"])
async def test_a_candidate_that_came_second_watches_at_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, holder: str | None
) -> None:
    if holder is not None:
        create_lease(api_server, holder)
    async with candidate(api_server, nursery, "us") as (elector, transport):

        def acquire_first(request: httpx.Request) -> Fault:
            if request.method in ("POST", "PUT") and transport.methods.count("GET") == 1:
                if holder is None:
                    create_lease(api_server, "them")
                else:
                    edit(api_server, holderIdentity="them", leaseDurationSeconds=15)
            return "none"

        transport.fault = acquire_first
        runs = LeaderRuns()
        nursery.start_soon(elector.run, runs.leader_code())
        await trio.sleep(0.2)
        assert "WATCH" in transport.methods
        edit(api_server, holderIdentity="")
        await trio.sleep(WITHIN)
        assert runs.running == ["us"]
        nursery.cancel_scope.cancel()


async def test_a_holder_that_fails_is_still_replaced_at_the_expiry_and_not_before(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(21)  # renewed at 20
        us.stop_renewing()
        await us.led.wait()
        assert 35 <= trio.current_time() < 37


# --- how many requests ------------------------------------------------------------------------------------------------


async def test_a_candidate_with_a_watch_hardly_polls(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(240)
        methods = us.transport.methods
        assert methods.count("WATCH") == 1
        assert set(methods) == {"GET", "WATCH"}
        assert methods.count("GET") <= 3


async def test_a_candidate_whose_watch_shows_nothing_polls_and_takes_over_as_soon(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:

        def silence_watches(request: httpx.Request) -> Fault:
            return "hang" if "watch" in request.url.params else "none"

        us.transport.fault = silence_watches
        await trio.sleep(241)  # renewed at 240
        assert 150 <= us.transport.methods.count("GET") <= 300  # every 0.8 to 1.6 s
        us.stop_renewing()
        await us.led.wait()
        assert 255 <= trio.current_time() < 257


async def test_a_candidate_whose_reads_fail_does_not_rely_on_the_watch(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(1)
        us.stop_renewing()

        def refuse_reads(request: httpx.Request) -> Fault:
            return "none" if "watch" in request.url.params else "refuse"

        us.transport.fault = refuse_reads
        await trio.sleep(5)
        before = us.transport.methods.count("GET")
        async with trio.open_nursery() as renewing:
            renewing.start_soon(renew_forever, api_server)
            await trio.sleep(60)
            renewing.cancel_scope.cancel()
        assert us.transport.methods.count("GET") - before >= 60 / 4.4 - 1


async def test_a_watch_is_not_delayed_by_the_clients_rate_limit(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    create_lease(api_server, "them")
    async with open_client(
        api_server.config,
        http_transport=api_server.http_transport(),
        rate_limiter=TokenBucketRateLimiter(qps=0.1, burst=1),
    ) as client:
        elector = LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="us")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(renew_forever, api_server)
            nursery.start_soon(elector.run, LeaderRuns().leader_code())
            await trio.sleep(1)
            assert api_server.statistics().open_watches == 1
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(2))
async def test_many_candidates_at_a_release_send_few_writes_and_one_of_them_leads(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, seed: int
) -> None:
    """Requests take 3 ms each way."""
    count, rng, runs = 50, random.Random(seed), LeaderRuns()
    create_lease(api_server, "them")
    transports: list[FaultInjector] = []

    async def run(number: int) -> None:
        async with candidate(api_server, nursery, f"c{number}", rng=random.Random(rng.random())) as (
            elector,
            transport,
        ):
            transport.fault = lambda request: "none" if "watch" in request.url.params else "slow"
            transport.latency = lambda: 0.003
            transports.append(transport)
            await elector.run(runs.leader_code())

    async with trio.open_nursery() as candidates:
        for number in range(count):
            candidates.start_soon(run, number)
        await trio.sleep(9.99)
        for transport in transports:
            transport.sent.clear()
        edit(api_server, holderIdentity="")
        await trio.sleep(WITHIN)
        assert len(runs.running) == 1
        methods = [method for transport in transports for method in transport.methods]
        assert methods.count("PUT") <= count // 3
        assert methods.count("GET") <= count
        candidates.cancel_scope.cancel()


async def test_a_hint_is_used_once_and_failures_are_followed_by_the_usual_delays(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(10)
        api_server.fail_next(1_000, verb="update", status=500)
        us.transport.sent.clear()
        us.stop_renewing()
        edit(api_server, holderIdentity="")
        await trio.sleep(10)
        assert not us.led.is_set()
        puts = [at for method, at in us.transport.sent if method == "PUT"]
        assert puts[0] <= 10 + WITHIN
        assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(puts))


async def test_a_hint_does_not_shorten_a_retry_after(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(10)
        api_server.fail_next(1, verb="get", status=429, retry_after=7)
        await trio.sleep(1.7)
        us.transport.sent.clear()
        seconds = await us.takeover()
        assert 5 < seconds <= 7.7 + WITHIN
        assert us.transport.methods[0] == "GET"


async def test_a_lease_that_another_candidate_acquires_first_is_not_tried(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server, rng=random.Random(1)) as us:
        await trio.sleep(10.05)
        us.transport.sent.clear()
        us.stop_renewing()
        edit(api_server, holderIdentity="")
        await trio.testing.wait_all_tasks_blocked()
        edit(api_server, holderIdentity="others", leaseDurationSeconds=15)
        await trio.sleep(JITTER * 2)
        assert us.transport.sent == []
        await trio.sleep(5)
        assert "PUT" not in us.transport.methods
        assert not us.led.is_set()


async def test_a_deleted_lease_is_no_hint(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(11)
        us.stop_renewing()
        api_server.delete(Lease, NAME, namespace=NAMESPACE)
        await us.led.wait()
        # Renewed at 8 and 10, for 15 s; the deletion may come before the poll that would have seen the second one.
        assert 23 <= trio.current_time() < 27


# --- when the watch fails ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 405])
async def test_without_permission_to_watch_the_candidate_polls_and_logs_that_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    api_server.fail_next(1_000, verb="watch", resource="leases", status=status)
    async with waiting(api_server) as us:
        await trio.sleep(301)
        assert 4 <= us.transport.methods.count("WATCH") <= 6  # every minute
        assert await us.takeover() <= us.elector.options.retry_period
        assert us.elector.statistics().failures == 0
    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.startswith(
        "lease default/the-lease: cannot be watched, a release is noticed up to a retry period later: watch leases"
    )
    assert ("grant the verb watch" in line) == (status == 403)


async def test_a_permission_that_is_granted_later_is_used(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    api_server.fail_next(1, verb="watch", resource="leases", status=403)
    async with waiting(api_server) as us:
        await trio.sleep(70)
        assert api_server.statistics().open_watches == 1
        assert await us.takeover() <= WITHIN


@pytest.mark.parametrize("fault", ["hang", "refuse"])
async def test_without_a_response_to_the_watch_the_candidate_polls(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    async with waiting(api_server) as us:
        us.transport.fault = lambda request: fault if "watch" in request.url.params else "none"
        await trio.sleep(100)
        assert await us.takeover() <= us.elector.options.retry_period
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("how", ["unreachable", "compacted", "reset"])
async def test_the_watch_survives_outages(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, how: str
) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(30)
        if how == "unreachable":
            with api_server.unreachable():
                await trio.sleep(5)
        elif how == "compacted":
            api_server.disconnect_watches(how="reset")
            us.transport.fault = lambda request: "refuse" if "watch" in request.url.params else "none"
            await trio.sleep(20)
            api_server.compact()
            us.transport.fault = lambda request: "none"
        else:
            api_server.disconnect_watches(how="reset")
        await trio.sleep(65)
        assert api_server.statistics().open_watches == 1
        assert await us.takeover() <= WITHIN


async def test_the_watch_ends_with_the_wait(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with waiting(api_server) as us:
        await trio.sleep(3)
        assert api_server.statistics().open_watches == 1
        await us.takeover()
        await trio.sleep(1)
        assert api_server.statistics().open_watches == 0
        assert stored_lease(api_server).holder_identity == "us"


async def test_the_watch_ends_when_the_candidate_is_cancelled(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with waiting(api_server):
        await trio.sleep(3)
        assert api_server.statistics().open_watches == 1
    await trio.sleep(1)
    assert api_server.statistics().open_watches == 0


async def test_a_free_lease_is_acquired_without_a_watch(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        async with elector.lead():
            await trio.sleep(5)
        assert "WATCH" not in transport.methods


async def test_a_client_that_is_closed_while_its_candidate_waits_raises_unwrapped(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    create_lease(api_server, "them")
    async with open_client(api_server.config, http_transport=api_server.http_transport()) as client:
        elector = LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="us")

    with pytest.raises(trio.ClosedResourceError):
        await elector.run(LeaderRuns().leader_code())
