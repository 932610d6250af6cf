"""Single attempts to acquire a Lease, by a caller that decides itself when to make the next one."""

from __future__ import annotations

import logging
import random
from datetime import UTC, datetime

import attrs
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, LeaderRuns, candidate, create_lease, stored_lease
from trioformer.leaderelection._elector import claim_of, try_run
from trioformer.leaderelection._leadership import Leadership
from trioformer.leaderelection._lease_lock import LeaseRecord
from trioformer.models.coordination_v1 import Lease
from trioformer.testing import APIServer


def record_on(server: APIServer) -> LeaseRecord:
    return LeaseRecord.of(server.get(Lease, NAME, namespace=NAMESPACE))


async def fail(leadership: Leadership) -> None:
    raise ZeroDivisionError


async def test_an_attempt_that_succeeds_holds_the_lease_while_the_leader_code_runs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        assert await try_run(elector, runs.leader_code(for_seconds=60)) == 0
        assert runs.ended == [("us", 0, 60)]
        assert stored_lease(api_server).holder_identity == ""
        with pytest.raises(ZeroDivisionError):
            await try_run(elector, fail)
        assert stored_lease(api_server).holder_identity == ""


async def test_an_attempt_at_a_held_lease_reads_it_once_and_returns_a_delay(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "them")
    async with candidate(api_server, nursery, "us") as (elector, transport):
        assert 0 < await try_run(elector, LeaderRuns().leader_code()) <= 2
        assert transport.methods == ["GET"]
        assert trio.current_time() == 0


@pytest.mark.parametrize("fault", ["refuse", "hang", "lose response"])
async def test_an_attempt_that_fails_leaves_nothing_held(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, fault: str
) -> None:
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda request: fault if request.method == "POST" else "none"  # type: ignore[return-value]  # one of Fault
        assert await try_run(elector, runs.leader_code()) > 0
        assert runs.leaderships == []
        leases = api_server.list(Lease)
        assert [each.spec.holder_identity for each in leases] in ([], [""])


async def test_a_lost_leadership_ends_the_leader_code_and_is_no_error(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, transport):
        nursery.start_soon(try_run, elector, runs.leader_code(clean_up=1))
        await runs.wait_for("us")
        transport.fault = lambda _: "hang"
        await trio.sleep(30)
        [(_, _, ended_at)] = runs.ended
        assert ended_at == pytest.approx(11, abs=0.1)


async def test_an_event_starts_the_lease_duration_before_the_first_attempt(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "them")
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        claim = claim_of(elector)
        claim.observe_event(record_on(api_server))
        assert claim.free_at == 15
        await trio.sleep(14.9)
        assert await try_run(elector, runs.leader_code(for_seconds=1)) > 0
        await trio.sleep(0.1)
        assert await try_run(elector, runs.leader_code(for_seconds=1)) == 0
        assert claim.free_at == 16


async def test_an_old_event_delays_an_attempt_and_makes_no_second_leader(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "them", renew_time=datetime(2026, 1, 1, tzinfo=UTC))
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        claim = claim_of(elector)
        claim.observe_event(record_on(api_server))
        await trio.sleep(10)
        claim.observe_event(attrs.evolve(record_on(api_server), holder_identity=""))  # released before
        assert claim.free_at == 10
        assert await try_run(elector, runs.leader_code()) > 0
        assert claim.free_at == 25
        await trio.sleep(14)
        assert await try_run(elector, runs.leader_code()) > 0


async def test_an_event_that_shows_an_own_write_is_ignored(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _):

        async def work(leadership: Leadership) -> None:
            written.append(record_on(api_server))

        written: list[LeaseRecord] = []
        await try_run(elector, work)
        claim_of(elector).observe_event(written[0])
        assert elector.leader == ""


async def test_annotations_are_set_with_the_next_renewal_and_others_are_kept(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    def annotations() -> dict[str, str]:
        return {**api_server.get(Lease, NAME, namespace=NAMESPACE).metadata.annotations}

    async with candidate(api_server, nursery, "us") as (elector, _):
        claim_of(elector).annotate({"asks": "1"})
        nursery.start_soon(try_run, elector, LeaderRuns().leader_code())
        await trio.sleep(1)
        assert annotations() == {"asks": "1"}
        api_server.patch(Lease, NAME, {"metadata": {"annotations": {"kept": "yes"}}}, namespace=NAMESPACE)
        claim_of(elector).annotate({"asks": "1,2"})
        await trio.sleep(5)
        assert annotations() == {"asks": "1,2", "kept": "yes"}


async def test_a_failure_of_a_group_of_claims_is_logged_once(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api_server.fail_next(1_000, resource="leases", status=403)
    async with (
        candidate(api_server, nursery, "us", rng=random.Random(0)) as (first, _),
        candidate(api_server, nursery, "us") as (second, _),
    ):
        claim_of(first).group = claim_of(second).group = "ranges"
        for _ in range(5):
            for elector in (first, second):
                await try_run(elector, LeaderRuns().leader_code())
            await trio.sleep(30)
        assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 1
