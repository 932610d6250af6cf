"""The renewer and the watchdog of one term, without a candidate around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, FaultInjector, SlowPlugin, stored_lease
from trioformer.client import open_client
from trioformer.errors import ExecPluginError
from trioformer.leaderelection._hold import Hold
from trioformer.leaderelection._leadership import LeaderElectionOptions, Term, TermCounts, TermState
from trioformer.leaderelection._lease_claim import LeaseClaim
from trioformer.leaderelection._lease_lock import LeaseLock
from trioformer.models.coordination_v1 import Lease
from trioformer.testing import APIServer


@attrs.define(eq=False)
class Held:
    """An acquired Lease, and what the hold did."""

    claim: LeaseClaim
    term: Term
    hold: Hold
    counts: TermCounts
    transport: FaultInjector
    cancelled_at: list[float]


@asynccontextmanager
async def holding(server: APIServer, **options: Any) -> AsyncIterator[Held]:
    """Acquire the Lease and hold it during the block."""
    async with trio.open_nursery() as nursery:
        transport = FaultInjector(server.http_transport(), nursery)
        async with open_client(server.config, http_transport=transport) as client:
            election, counts, cancelled_at = LeaderElectionOptions(**options), TermCounts(), list[float]()
            claim = LeaseClaim(LeaseLock(client.api(Lease, namespace=NAMESPACE), NAME, {}), "us", election)
            term = await claim.try_acquire()
            assert term is not None
            hold = Hold(claim, election, term, counts, lambda: cancelled_at.append(trio.current_time()))
            nursery.start_soon(hold.run)
            yield Held(claim, term, hold, counts, transport, cancelled_at)
            nursery.cancel_scope.cancel()


async def test_a_held_term_is_renewed_every_retry_period(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        await trio.sleep(7)
        assert held.transport.sent[2:] == [("PUT", 2), ("PUT", 4), ("PUT", 6)]
        assert held.term.state is TermState.HELD
        assert held.term.is_held
        assert held.cancelled_at == []


async def test_a_term_is_lost_at_the_renew_deadline_while_requests_hang(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        held.transport.fault = lambda _: "hang"
        await trio.sleep(9.9)
        assert held.term.state is TermState.HELD
        await trio.sleep(0.2)
        assert held.term.state is TermState.LOST
        assert held.cancelled_at == [pytest.approx(10, abs=0.01)]
        assert held.term.loss is not None
        assert held.term.loss.reason == "the lease was not renewed for 10.0 s"
        assert held.term.loss.cause is held.claim.failure
        assert held.counts.losses == 1


async def test_a_lost_term_is_renewed_until_the_leader_code_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        held.transport.fault = lambda _: "refuse" if trio.current_time() < 12 else "none"
        await trio.sleep(60)
        assert held.term.state is TermState.LOST
        assert held.term.age() <= 2
        assert held.cancelled_at == [pytest.approx(10, abs=0.01)]  # once
        assert held.counts.overruns == 0


async def test_a_term_that_another_candidate_ended_is_not_renewed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        await trio.sleep(3)
        api_server.patch(Lease, NAME, {"spec": {"holderIdentity": "them"}}, namespace=NAMESPACE)
        await trio.sleep(60)
        assert held.term.state is TermState.LOST
        assert held.term.has_successor
        assert held.transport.sent[-2:] == [("PUT", 4), ("GET", 4)]
        assert held.counts.overruns == 1
    assert stored_lease(api_server).holder_identity == "them"


@pytest.mark.parametrize("ends_at", [14, 16])
async def test_leader_code_that_still_runs_when_the_lease_expires_is_reported(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, ends_at: int
) -> None:
    overruns: list[float] = []
    async with holding(api_server, on_overrun=lambda: overruns.append(trio.current_time())) as held:
        held.transport.fault = lambda _: "hang"
        await trio.sleep(ends_at)
        held.term.end()
        await trio.sleep(60)
        assert overruns == [pytest.approx(15, abs=0.01)] * (ends_at > 15)
        assert held.counts.overruns == (ends_at > 15)


async def test_an_ended_term_cannot_be_lost(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with holding(api_server) as held:
        held.transport.fault = lambda _: "hang"
        held.term.end()
        await trio.sleep(60)
        assert held.term.state is TermState.ENDED
        assert held.term.loss is None
        assert held.cancelled_at == []


async def test_an_unexpected_error_loses_the_term_and_is_kept(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    def on_new_leader(leader: str) -> None:
        if leader == "":
            raise KeyError("mine")

    async with holding(api_server, on_new_leader=on_new_leader) as held:
        api_server.delete(Lease, NAME, namespace=NAMESPACE)
        await trio.sleep(3)
        assert held.term.state is TermState.LOST
        assert isinstance(held.term.unexpected_error, KeyError)
        assert held.cancelled_at == [2]


# --- slow credential plugins ---


async def test_a_term_is_kept_while_a_plugin_is_slow(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        plugin = SlowPlugin(6, lifetime=4)
        plugin.install(held.claim._lock._api)
        await trio.sleep(120)
        assert held.term.state is TermState.HELD
        assert held.claim.failures == 0
        assert len(plugin.runs) >= 10
        assert held.cancelled_at == []


async def test_a_term_is_lost_at_the_renew_deadline_while_a_plugin_hangs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        plugin = SlowPlugin(240)
        plugin.install(held.claim._lock._api)
        await trio.sleep(9.9)
        assert held.term.state is TermState.HELD
        await trio.sleep(0.2)
        assert held.term.state is TermState.LOST
        assert held.cancelled_at == [pytest.approx(10, abs=0.01)]
        assert held.term.loss is not None
        reason = "the lease was not renewed for 10.0 s; the credential plugin 'sso' has not ended"
        assert held.term.loss.reason == reason
        assert plugin.runs == [2], "nothing kills the plugin, which other requests may wait for"


async def test_a_failed_plugin_is_run_once_for_each_attempt_to_renew(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with holding(api_server) as held:
        plugin = SlowPlugin(3, error=ExecPluginError("no"))
        plugin.install(held.claim._lock._api)
        await trio.sleep(6)
        assert plugin.runs == [2, pytest.approx(5.5)], "once for each attempt"
        plugin.error = None
        await trio.sleep(3)
        assert held.term.renewed_at.trio == pytest.approx(8.5)
        assert held.term.state is TermState.HELD
