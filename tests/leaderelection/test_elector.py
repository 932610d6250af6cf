"""Leader election: what is written to the Lease, when, and how it ends."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, Fate, Stage, candidate, hold, lease_in
from trioformer.client import Client
from trioformer.errors import ConnectionFailedError, ForbiddenError
from trioformer.leaderelection._elector import LeaderElector, leadership, run_as_leader
from trioformer.leaderelection._leadership import LeaderElectionOptions, Leadership, LeadershipLostError
from trioformer.leaderelection._lease_lock import LeaseLock, LeaseRecord
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.testing import APIServer, RequestRecord


async def nothing(lead: Leadership) -> None:
    """A body that ends at once."""


def the_next(count: int, fate: Fate, *, method: str = "PUT") -> Callable[[httpx.Request], Fate]:
    """Let the next requests of a method have a fate."""
    left = itertools.count(count, -1)
    return lambda request: fate if request.method == method and next(left) > 0 else "pass"


# --- the Lease and its record -----------------------------------------------------------------------------------------


def test_a_record_goes_to_a_lease_and_back_with_its_microseconds() -> None:
    """client-go: TestLeaseConversion"""
    record = LeaseRecord(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        renew_time=datetime(2026, 1, 2, 3, 4, 6, 1, UTC),
        lease_transitions=7,
    )
    lease = Lease(metadata=ObjectMeta(name="x"), spec=record.written_to(LeaseSpec()))
    assert to_dict(lease)["spec"]["renewTime"] == "2026-01-02T03:04:06.000001Z"
    assert LeaseRecord.of(from_dict(Lease, to_dict(lease))) == record
    assert LeaseRecord.of(Lease(metadata=ObjectMeta(name="x"))) == LeaseRecord()


@pytest.mark.parametrize("labels", [{}, {"app": "x"}])
async def test_an_update_sets_the_labels_and_keeps_everything_else(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, labels: dict[str, str]
) -> None:
    """client-go: TestUpdateWithNilLabelsOnLease"""
    made = from_dict(
        Lease,
        {
            "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": {"kept": "yes"}},
            "spec": {"holderIdentity": "old", "strategy": "kept", "unheardOf": "kept"},
        },
    )
    api_server.create(made if not labels else attrs.evolve(made, metadata=attrs.evolve(made.metadata, labels=labels)))
    lock = LeaseLock(client.api(Lease, namespace=NAMESPACE), NAME, {"by": "us"})
    with pytest.raises(RuntimeError, match="lease default/the-lease was not read, so it cannot be updated"):
        await lock.update(LeaseRecord())
    assert await lock.get() == LeaseRecord(holder_identity="old")
    await lock.update(LeaseRecord(holder_identity="new", lease_duration_seconds=1))
    stored = to_dict(api_server.get(Lease, NAME, namespace=NAMESPACE))
    assert stored["metadata"]["labels"] == {**labels, "by": "us"}
    assert stored["metadata"]["annotations"] == {"kept": "yes"}
    assert stored["spec"].items() >= {"holderIdentity": "new", "strategy": "kept", "unheardOf": "kept"}.items()


# --- acquiring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "transitions"), [(None, 0), ("", 4), ("us", 3)], ids=["no lease", "released", "our own"]
)
async def test_a_lease_that_nobody_else_has_is_taken_at_once(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    holder: str | None,
    transitions: int,
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    if holder is not None:
        hold(api_server, holder)
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as lead:
        assert trio.current_time() == 0
        spec = lease_in(api_server)
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("us", 15)
        assert spec.lease_transitions == lead.transitions == transitions
        assert spec.renew_time is not None
        assert elector.is_leader
        assert lead.is_held
        assert lead.expires_at == pytest.approx(15, abs=0.1)


async def test_a_lease_that_is_held_is_left_alone_until_it_has_not_changed_for_its_duration(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    hold(api_server, "them", lease_duration_seconds=40, renew_time=datetime(1999, 1, 1, tzinfo=UTC))
    await trio.sleep(1_000)  # how old it is says nothing
    async with candidate(api_server, nursery, "us") as (elector, wire):
        async with elector.lead() as lead:
            assert trio.current_time() == pytest.approx(1_040)
            assert lead.transitions == 4
        times = [time for method, time in wire.sent[:-3] if method == "GET"]
    assert times[0] == 1_000
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert all(0.8 <= delay < 1.6 for delay in delays[:-1])  # the last one is for the moment at which it runs out
    assert max(delays[:-1]) - min(delays[:-1]) > 0.5


@pytest.mark.parametrize("seed", range(20))
async def test_the_next_one_leads_within_the_lease_and_a_retry_period_of_the_last_renewal_and_soon_after_a_release(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, seed: int
) -> None:
    rng = random.Random(seed)
    async with candidate(api_server, nursery, "us", rng=rng) as (elector, _):
        hold(api_server, "them")
        led = trio.Event()

        async def body(lead: Leadership) -> None:
            led.set()

        async with trio.open_nursery() as waiting:
            waiting.start_soon(elector.run, body)
            for _ in range(3):
                await trio.sleep(rng.uniform(1, 5))
                renewed = trio.current_time()
                api_server.patch(Lease, NAME, {"spec": {"renewTime": f"2026-01-01T00:00:{renewed:09.6f}Z"}})
            if is_released := bool(seed % 2):
                api_server.patch(Lease, NAME, {"spec": {"holderIdentity": ""}})
            await led.wait()
            taken_after = trio.current_time() - renewed
        assert taken_after < 2 if is_released else 15 <= taken_after < 15 + 2


async def test_whoever_creates_the_lease_second_waits(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    async with candidate(api_server, nursery, "us") as (elector, wire):

        def somebody_is_quicker(request: httpx.Request) -> Fate:
            if request.method == "POST":
                hold(api_server, "them")
            return "pass"

        wire.fate = somebody_is_quicker
        with trio.move_on_after(5) as scope:
            await elector.run(nothing)
        assert scope.cancelled_caught
        assert elector.leader == "them"
        assert wire.methods[:3] == ["GET", "POST", "GET"]
        assert lease_in(api_server).holder_identity == "them"


async def test_the_others_see_a_change_even_if_the_holders_clock_stands_still(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    stage = Stage()
    async with (
        candidate(api_server, nursery, "stopped", wall_clock=lambda: 1e9) as (first, _),
        candidate(api_server, nursery, "other") as (second, _),
    ):
        nursery.start_soon(first.run, stage.body())
        await stage.wait_for("stopped")
        nursery.start_soon(second.run, stage.body())
        await trio.sleep(100)
        assert stage.on_stage == ["stopped"]
        nursery.cancel_scope.cancel()


async def test_a_holder_that_names_no_duration_gets_ours(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    hold(api_server, "by hand", lease_duration_seconds=None, lease_transitions=None)
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as lead:
        assert 15 <= trio.current_time() < 19.4
        assert lead.transitions == 1


async def test_a_lease_that_cannot_be_read_is_waited_for_until_it_can(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    hold(api_server, "")
    api_server.patch(Lease, NAME, {"spec": {"leaseDurationSeconds": "ten"}}, namespace=NAMESPACE)
    async with candidate(api_server, nursery, "us") as (elector, _):
        with trio.move_on_after(50):
            await elector.run(nothing)
        assert elector.statistics().failures > 10
        (line,) = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert line.startswith("lease default/the-lease: cannot be acquired, trying again: lease default/the-lease:")
        assert line.endswith("; correct it, or delete it")
        api_server.delete(Lease, NAME, namespace=NAMESPACE)
        assert await elector.run(nothing) is None


async def test_a_candidate_that_may_not_read_the_lease_raises_after_the_grace_period(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await trio.sleep(1_000)

    def refuse(record: RequestRecord) -> int:
        return 500 if record.time < 1_020 else 403  # what is not said by a server that is starting

    api_server.fail_next(1_000, resource="leases", status=refuse)
    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(ForbiddenError) as caught:
            await elector.run(nothing)
    assert 1_050 <= trio.current_time() < 1_058.8
    assert caught.value.__notes__ == ["while 'us' waited for lease default/the-lease"]
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 2


async def test_one_that_shall_wait_for_ever_gets_over_hours_without_permission(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us", grace_period=float("inf")) as (elector, _):
        until = 2 * 3600

        def forbidden(request: RequestRecord) -> int | None:
            return 403 if trio.current_time() < until else None

        api_server.fail_next(100_000, resource="leases", status=forbidden)
        async with elector.lead():
            assert until <= trio.current_time() < until + 4.4


async def test_a_candidate_that_is_cancelled_while_its_first_write_is_under_way_releases_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        wire.fate = the_next(1, "lose answer", method="POST")
        with trio.move_on_after(1) as scope:
            await elector.run(nothing)
        assert scope.cancelled_caught
        assert wire.methods == ["GET", "POST", "GET", "PUT"]
    assert lease_in(api_server).holder_identity == ""


@pytest.mark.parametrize(("status", "is_released"), [(500, True), (403, False)], ids=["failed", "refused"])
async def test_a_candidate_whose_first_write_was_answered_with_an_error_releases_what_may_have_been_written(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, status: int, is_released: bool
) -> None:
    def write_and_fail(request: httpx.Request) -> Fate:
        if request.method == "POST":
            hold(api_server, "us")
            api_server.fail_next(verb="create", status=status)
        return "pass"

    async with candidate(api_server, nursery, "us") as (elector, wire):
        wire.fate = write_and_fail
        with trio.move_on_after(1):
            await elector.run(nothing)
        assert wire.methods == ["GET", "POST", *(["GET", "PUT"] if is_released else [])]
    assert (lease_in(api_server).holder_identity == "") is is_released


async def test_a_candidate_that_may_hold_the_lease_already_releases_it_although_its_next_write_is_refused(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    rng = random.Random(0)  # the second try comes after 9 s, the third after 11
    async with candidate(api_server, nursery, "us", rng=rng) as (elector, wire):
        wire.fate = the_next(1, "lose answer", method="POST")
        api_server.fail_next(1, verb="update", status=409)
        with trio.move_on_after(9.5) as scope:
            await elector.run(nothing)
        assert scope.cancelled_caught
        assert wire.methods == ["GET", "POST", "GET", "PUT", "GET", "PUT"]
    assert lease_in(api_server).holder_identity == ""


async def test_a_candidate_whose_write_went_through_without_an_answer_leads_when_it_reads_that(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        wire.fate = the_next(1, "lose answer", method="POST")
        async with elector.lead() as lead:
            assert 5 <= trio.current_time() < 9.4
            assert lead.transitions == 0


# --- holding ----------------------------------------------------------------------------------------------------------


async def test_the_holder_updates_without_reading_until_an_update_fails(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestFastPathLeaderElection"""
    async with candidate(api_server, nursery, "us") as (elector, wire), elector.lead():
        await trio.sleep(5)
        assert wire.sent == [("GET", 0), ("POST", 0), ("PUT", 2), ("PUT", 4)]
        wire.sent.clear()
        api_server.fail_next(verb="update", status=409)
        await trio.sleep(4)
        assert wire.sent == [("PUT", 6), ("GET", 6), ("PUT", 6), ("PUT", 8)]
        statistics = elector.statistics()
        assert (statistics.renewals, statistics.failures, statistics.terms) == (4, 1, 1)
        assert statistics.renewal_age == pytest.approx(1, abs=0.1)


async def test_a_renewal_counts_from_when_it_was_sent(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        wire.fate = lambda request: "slow" if request.method in ("POST", "PUT") else "pass"  # 2 s each way
        async with elector.lead() as lead:
            assert trio.current_time() == 4
            assert lead.expires_at == pytest.approx(15, abs=0.1)
            await trio.sleep(20)
            assert [time for method, time in wire.sent if method == "PUT"] == [4.5, 9, 13.5, 18, 22.5]
            assert lead.expires_at == pytest.approx(33, abs=0.1)


async def test_a_body_that_has_ended_leaves_an_empty_lease_for_the_next_one(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """client-go: TestReleaseLeaseLeases, TestReleaseMethodCallsGet"""
    caplog.set_level(logging.INFO)
    hold(api_server, "")
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (elector, wire):
        assert await elector.run(stage.body(for_seconds=3)) == "done by us"
        assert wire.methods == ["GET", "PUT", "PUT", "GET", "PUT"]
        assert not elector.is_leader
        assert elector.leader == ""
    spec = lease_in(api_server)
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("", 1, 4)
    assert spec.acquire_time == spec.renew_time
    assert [record.message for record in caplog.records if record.name == "trioformer.controller"] == [
        "lease default/the-lease: 'us' leads now, transitions 4",
        "lease default/the-lease: released by 'us'",
    ]


async def test_a_release_that_meets_a_conflict_is_tried_again_at_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestReleaseRetriesOnConflict"""
    async with candidate(api_server, nursery, "us") as (elector, wire):
        async with elector.lead():
            api_server.fail_next(3, verb="update", status=409)
        assert trio.current_time() == 0
        assert wire.methods == ["GET", "POST", *["GET", "PUT"] * 4]
    assert lease_in(api_server).holder_identity == ""


@pytest.mark.parametrize("trouble", ["an update under way", "an error", "a conflict"])
async def test_a_leader_that_is_cancelled_releases_the_lease_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, trouble: str
) -> None:
    """client-go: TestReleaseOnCancellation_Leases"""
    released: list[str] = []
    async with candidate(api_server, nursery, "us") as (elector, wire):

        def fate(request: httpx.Request) -> Fate:
            if request.method == "PUT" and b'"holderIdentity":""' in request.content:
                released.append("once")
            elif request.method == "PUT" and trouble == "an update under way":
                return "lose answer"
            elif request.method == "PUT" and trouble == "an error":
                return "refuse"
            return "pass"

        wire.fate = fate
        if trouble == "a conflict":
            api_server.fail_next(100, verb="update", status=lambda record: 409 if record.time == 2 else None)
        with trio.move_on_after(3) as scope:
            await elector.run(Stage().body())
        assert scope.cancelled_caught
        assert trio.current_time() == 3
    assert released == ["once"]
    assert lease_in(api_server).holder_identity == ""


async def test_a_release_gets_over_failures_but_does_not_take_for_ever(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        async with elector.lead():
            api_server.fail_next(2, resource="leases", status=500)
        assert lease_in(api_server).holder_identity == ""
        assert trio.current_time() < 1
        began = trio.current_time()
        async with elector.lead():
            wire.fate = lambda _: "swallow"
        assert trio.current_time() == began + 10
        assert "could not be released" in caplog.records[-1].message
        wire.fate = lambda _: "pass"
        async with elector.lead():
            wire.fate = lambda _: "refuse"
        assert trio.current_time() < began + 12


async def test_on_the_callers_cancellation_the_lease_is_renewed_until_the_body_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    stage = Stage()
    async with (
        candidate(api_server, nursery, "first") as (first, _),
        candidate(api_server, nursery, "second") as (second, _),
    ):
        stop = trio.CancelScope()

        async def until_stopped() -> None:
            with stop:
                await first.run(stage.body(clean_up=60))

        nursery.start_soon(until_stopped)
        await stage.wait_for("first")
        nursery.start_soon(second.run, stage.body())
        await trio.sleep(7)
        stop.cancel()
        await stage.wait_for("second")
        assert stage.performances == [("first", 0, 67)]
        assert 67 <= trio.current_time() < 71.4
        assert stage.leads[-1].transitions == 2 - 1
        nursery.cancel_scope.cancel()


async def test_a_body_that_raises_releases_the_lease_and_its_exception_is_in_no_group(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    error = KeyError("mine")

    async def body(lead: Leadership) -> None:
        await trio.sleep(5)
        raise error

    with pytest.raises(KeyError) as caught:
        await run_as_leader(client, body, name=NAME, namespace=NAMESPACE)
    assert caught.value is error
    assert lease_in(api_server).holder_identity == ""
    with pytest.raises(KeyError) as caught:
        async with leadership(client, name=NAME, namespace=NAMESPACE) as lead:
            raise error
    assert caught.value is error
    assert lead.transitions == 1
    assert not lead.is_held
    with pytest.raises(ExceptionGroup) as group:
        async with leadership(client, name=NAME, namespace=NAMESPACE), trio.open_nursery():
            raise error
    assert group.value.exceptions == (error,)
    with pytest.raises(KeyboardInterrupt):
        async with leadership(client, name=NAME, namespace=NAMESPACE):
            raise KeyboardInterrupt
    assert lease_in(api_server).holder_identity == ""


async def test_a_cancellation_inside_the_body_stays_inside(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    async with leadership(client, name=NAME, namespace=NAMESPACE):
        with trio.move_on_after(1) as inner:
            await trio.sleep_forever()
        assert inner.cancelled_caught
        await trio.sleep(1)
    with trio.move_on_after(3) as outer:
        async with leadership(client, name=NAME, namespace=NAMESPACE):
            await trio.sleep_forever()
    assert outer.cancelled_caught
    assert trio.current_time() == 5


# --- losing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fate", ["swallow", "refuse", "lose answer"])
async def test_an_api_that_hangs_costs_the_leadership_after_the_renew_deadline(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, fate: Fate
) -> None:
    stage = Stage()
    async with (
        candidate(api_server, nursery, "first") as (first, wire),
        candidate(api_server, nursery, "second") as (second, _),
    ):
        lost = trio.Event()

        async def until_lost() -> None:
            with pytest.raises(LeadershipLostError, match=r"it was not renewed for 10\.0 s") as caught:
                await first.run(stage.body(clean_up=4.5))
            assert isinstance(caught.value.__cause__, ConnectionFailedError)
            lost.set()

        nursery.start_soon(until_lost)
        lead = await stage.wait_for("first")
        nursery.start_soon(second.run, stage.body())
        await trio.sleep(20.5)  # the last renewal was at 20
        wire.fate = lambda request: fate if request.method == "PUT" else "swallow"
        await trio.sleep(9.4)
        assert lead.is_held
        await trio.sleep(0.2)
        assert not lead.is_held
        assert stage.on_stage == ["first"]
        await stage.wait_for("second")
        assert stage.performances == [("first", 0, pytest.approx(34.5, abs=0.01))]
        assert 35 <= trio.current_time() < 41 + 4.4
        await lost.wait()
        assert first.statistics().losses == 1
        nursery.cancel_scope.cancel()


async def test_a_leader_without_permission_loses_it_and_says_why(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(LeadershipLostError) as caught:  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                api_server.fail_next(100, resource="leases", status=403)
                await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, ForbiddenError)
    assert str(caught.value) == "lease default/the-lease: 'us' does not lead any more: it was not renewed for 10.0 s"
    (line,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert line == f"{caught.value}; its body is cancelled"


async def test_a_renewal_after_the_loss_keeps_the_others_away_from_a_body_that_still_cleans_up(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    stage = Stage()
    async with (
        candidate(api_server, nursery, "first") as (first, wire),
        candidate(api_server, nursery, "second") as (second, _),
    ):

        async def until_lost() -> None:
            with pytest.raises(LeadershipLostError):
                await first.run(stage.body(clean_up=30))

        nursery.start_soon(until_lost)
        await stage.wait_for("first")
        nursery.start_soon(second.run, stage.body())
        wire.fate = lambda _: "refuse" if trio.current_time() < 11 else "pass"
        await stage.wait_for("second")
        assert stage.performances == [("first", 0, pytest.approx(40, abs=0.01))]
        assert first.statistics().overruns == 0
        nursery.cancel_scope.cancel()


async def test_a_body_that_does_not_end_in_time_is_told_loudly(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """client-go: TestLeaderElectionHealthChecker"""
    overruns: list[float] = []
    async with candidate(api_server, nursery, "us", on_overrun=lambda: overruns.append(trio.current_time())) as (
        elector,
        wire,
    ):
        assert elector.is_healthy()
        health: list[tuple[bool, bool]] = []

        async def body(lead: Leadership) -> None:
            wire.fate = lambda _: "swallow"
            with trio.CancelScope(shield=True):
                await trio.sleep(34)
                health.append((elector.is_healthy(), elector.is_healthy(grace=0)))
                await trio.sleep(2)
                health.append((elector.is_healthy(), elector.is_leader))
                wire.fate = lambda _: "pass"
            await trio.sleep_forever()

        with pytest.raises(LeadershipLostError):
            await elector.run(body)
        assert health == [(True, False), (False, False)]
        assert elector.is_healthy()
        assert elector.statistics().overruns == 1
    assert overruns == [pytest.approx(15, abs=0.01)]
    (line,) = [record.message for record in caplog.records if record.levelno == logging.CRITICAL]
    assert line == (
        "lease default/the-lease: the body of 'us' was cancelled and still runs, 15.0 s after the last renewal: "
        "others may lead now"
    )


async def test_a_lease_that_was_given_to_another_one_by_hand_is_lost_at_the_next_renewal(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        with pytest.raises(LeadershipLostError, match="it is held by 'them'") as caught:  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                await trio.sleep(2.5)
                api_server.patch(Lease, NAME, {"spec": {"holderIdentity": "them"}}, namespace=NAMESPACE)
                await trio.sleep_forever()
        assert trio.current_time() == 4
        assert caught.value.__cause__ is None
        assert wire.methods[-2:] == ["PUT", "GET"]  # and no release
    assert lease_in(api_server).holder_identity == "them"


@pytest.mark.parametrize("deed", ["deleted", "emptied"])
async def test_a_lease_that_was_deleted_or_emptied_by_hand_is_taken_again(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
    deed: str,
) -> None:
    hold(api_server, "")
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as lead:
        await trio.sleep(2.5)
        if deed == "deleted":
            api_server.delete(Lease, NAME, namespace=NAMESPACE)
        else:
            api_server.patch(Lease, NAME, {"spec": {"holderIdentity": ""}}, namespace=NAMESPACE)
        await trio.sleep(2)
        spec = lease_in(api_server)
        assert (spec.holder_identity, spec.lease_transitions) == ("us", 4)
        assert lead.is_held
        assert lead.expires_at == pytest.approx(19, abs=0.1)
    again = {"deleted": "created it again", "emptied": "taken it again"}[deed]
    assert [record.message for record in caplog.records] == [
        f"lease default/the-lease: was {deed} by somebody else, 'us' has {again}"
    ]


async def test_a_lease_that_another_one_had_and_released_is_lost(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(LeadershipLostError, match="it was emptied"):  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                released = {"spec": {"holderIdentity": "", "leaseTransitions": 1}}
                api_server.patch(Lease, NAME, released, namespace=NAMESPACE)
                await trio.sleep_forever()


@pytest.mark.parametrize(
    ("slept", "is_held", "is_lost"),
    [(15.0, False, True), (12.0, True, True), (3.0, True, False)],
    ids=["sleep", "doze", "nap"],
)
async def test_a_machine_that_slept_for_longer_than_the_renew_deadline_has_lost_the_lease(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    slept: float,
    is_held: bool,
    is_lost: bool,
) -> None:
    boot = 1e6
    async with candidate(api_server, nursery, "us", boot_clock=lambda: boot + trio.current_time()) as (elector, _):
        lost: list[str] = []
        with trio.move_on_after(30):
            try:
                async with elector.lead() as lead:
                    await trio.sleep(5)
                    boot += slept
                    assert lead.is_held is is_held
                    await trio.sleep_forever()
            except LeadershipLostError as error:
                lost.append(str(error))
                assert trio.current_time() == 6
        assert bool(lost) is is_lost
    assert lease_in(api_server).holder_identity == ""


async def test_a_program_that_stood_still_for_longer_than_the_lease_knows_it_at_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):

        async def body(lead: Leadership) -> None:
            await trio.sleep(1)
            autojump_clock.jump(20)  # SIGSTOP, or a body that computes
            assert not lead.is_held
            assert lead.expires_at < trio.current_time()
            wire.sent.clear()
            await trio.sleep_forever()

        with pytest.raises(LeadershipLostError, match=r"it was not renewed for 21\.0 s"):
            await elector.run(body)
    assert trio.current_time() == 21
    assert elector.statistics().losses == 1


async def test_leadership_that_was_lost_is_waited_for_again_if_that_is_wanted(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (elector, wire):
        wire.fate = lambda _: "refuse" if 1 < trio.current_time() < 100 else "pass"
        run = elector.run(stage.body(for_seconds=20), again_after_loss=True)
        assert await run == "done by us"
        (_, began, ended), (_, again, done) = stage.performances
        assert (began, ended) == (0, pytest.approx(10, abs=0.01))
        assert 100 <= again < 104.4
        assert done == again + 20
        assert elector.statistics().terms == 2


async def test_an_election_inside_of_a_body_loses_for_itself(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs: list[int] = []

    async def body(lead: Leadership) -> None:
        runs.append(1)
        raise LeadershipLostError("the inner one")

    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(LeadershipLostError, match="the inner one"):
            await elector.run(body, again_after_loss=True)
    assert runs == [1]


async def test_a_result_counts_even_if_the_leadership_was_lost_meanwhile(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):

        async def body(lead: Leadership) -> str:
            wire.fate = lambda _: "refuse"
            with trio.CancelScope(shield=True):
                await trio.sleep(12)
            return "whole"

        assert await elector.run(body) == "whole"
        assert elector.statistics().losses == 1


async def test_a_caller_who_cancels_gets_no_error_of_a_loss_that_followed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire):
        with trio.move_on_after(1) as scope:
            wire.fate = lambda _: "refuse" if trio.current_time() > 1 else "pass"
            await elector.run(Stage().body(clean_up=13))
        assert scope.cancelled_caught
        assert elector.statistics().losses == 1


# --- whom it tells ----------------------------------------------------------------------------------------------------


async def test_each_new_leader_is_told_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    leaders: list[str] = []
    hold(api_server, "them")
    async with candidate(api_server, nursery, "us", on_new_leader=leaders.append) as (elector, _):
        with trio.move_on_after(5):
            await elector.run(nothing)
        api_server.patch(Lease, NAME, {"spec": {"holderIdentity": ""}}, namespace=NAMESPACE)
        with trio.move_on_after(5):
            await elector.run(Stage().body())
        api_server.patch(
            Lease, NAME, {"spec": {"holderIdentity": "others", "leaseDurationSeconds": 15}}, namespace=NAMESPACE
        )
        with trio.move_on_after(5):
            await elector.run(nothing)
    assert leaders == ["them", "", "us", "others"]


@pytest.mark.parametrize("when", ["acquiring", "renewing"])
async def test_an_observer_that_fails_ends_the_election_and_releases_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, when: str
) -> None:
    def observe(leader: str) -> None:
        if when == "acquiring" or leader == "":
            raise KeyError(leader)

    async with candidate(api_server, nursery, "us", on_new_leader=observe) as (elector, _):
        with pytest.raises(KeyError):  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                assert when == "renewing"
                await trio.sleep(1)
                api_server.delete(Lease, NAME, namespace=NAMESPACE)
                await trio.sleep_forever()
        if when == "acquiring":
            assert lease_in(api_server).holder_identity == ""
        else:
            assert trio.current_time() == 2


async def test_a_candidate_runs_once_at_a_time(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _):
        assert repr(elector) == "<LeaderElector 'us' for lease default/the-lease, not running>"
        async with elector.lead() as lead:
            assert repr(elector) == "<LeaderElector 'us' for lease default/the-lease, leading>"
            assert repr(lead) == "<Leadership of 'us', transitions 0, held>"
            with pytest.raises(trio.BusyResourceError, match="'us' for lease default/the-lease is running already"):
                await elector.run(nothing)
        assert repr(lead) == "<Leadership of 'us', transitions 0, over>"
        await elector.run(nothing)


def test_times_that_do_not_fit_are_refused() -> None:
    """client-go: TestLeaderElectionConfigValidation"""

    def refused(text: str, **times: Any) -> None:
        with pytest.raises(ValueError, match=text):
            LeaderElectionOptions(**times)

    refused("lease_duration must be longer than renew_deadline", lease_duration=10)
    refused("renew_deadline must be longer than 1.2", renew_deadline=2.4)
    for name in ("lease_duration", "renew_deadline", "retry_period"):
        refused(f"{name} must be a number of seconds above 0, not 0", **{name: 0})
        refused(f"{name} must be a number of seconds above 0, not inf", **{name: float("inf")})
    refused("grace_period", grace_period=-1)
    options = LeaderElectionOptions()
    assert (options.lease_duration, options.renew_deadline, options.retry_period) == (15, 10, 2)


async def test_a_lease_and_an_identity_need_names(autojump_clock: trio.testing.MockClock, client: Client) -> None:
    """client-go: TestLeaderElectionConfigValidation"""
    with pytest.raises(ValueError, match="the name of the lease must not be empty"):
        LeaderElector(client, name="", namespace=NAMESPACE)
    with pytest.raises(ValueError, match="the identity must not be empty"):
        LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="")
    with pytest.raises(ValueError, match="a namespace must not be empty"):
        LeaderElector(client, name=NAME, namespace="")
    identities = {LeaderElector(client, name=NAME, namespace=NAMESPACE).identity for _ in range(2)}
    assert len(identities) == 2
