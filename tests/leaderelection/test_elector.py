"""Leader election: acquiring, renewing, losing and releasing the Lease."""

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

from tests.support.lease_candidates import NAME, NAMESPACE, Fault, LeaderRuns, candidate, create_lease, stored_lease
from trioformer.client import Client
from trioformer.errors import ConnectionFailedError, ForbiddenError, LeadershipLostError
from trioformer.leaderelection._elector import LeaderElector, leadership, run_as_leader
from trioformer.leaderelection._leadership import LeaderElectionOptions, Leadership
from trioformer.leaderelection._lease_lock import LeaseLock, LeaseRecord
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import RequestRecord


async def do_nothing(leadership: Leadership) -> None:
    """Leader code that returns immediately."""


def inject_next(count: int, fault: Fault, *, method: str = "PUT") -> Callable[[httpx.Request], Fault]:
    """Inject a fault into the next requests with a method."""
    left = itertools.count(count, -1)
    return lambda request: fault if request.method == method and next(left) > 0 else "none"


# --- the Lease and its record -----------------------------------------------------------------------------------------


def test_a_record_survives_a_round_trip_through_a_lease_with_its_microseconds() -> None:
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
            "spec": {"holderIdentity": "old", "strategy": "kept", "preferredHolder": "kept"},
        },
    )
    api_server.create(made if not labels else made.evolve(metadata=made.metadata.evolve(labels=labels)))
    lock = LeaseLock(client.api(Lease, namespace=NAMESPACE), NAME, {"by": "us"})
    with pytest.raises(RuntimeError, match="lease default/the-lease cannot be updated before it has been read"):
        await lock.update(LeaseRecord())
    assert await lock.get() == LeaseRecord(holder_identity="old")
    await lock.update(LeaseRecord(holder_identity="new", lease_duration_seconds=1))
    stored = to_dict(api_server.get(Lease, NAME, namespace=NAMESPACE))
    assert stored["metadata"]["labels"] == {**labels, "by": "us"}
    assert stored["metadata"]["annotations"] == {"kept": "yes"}
    assert stored["spec"].items() >= {"holderIdentity": "new", "strategy": "kept", "preferredHolder": "kept"}.items()


# --- acquiring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "transitions"), [(None, 0), ("", 4), ("us", 3)], ids=["no lease", "released", "our own"]
)
async def test_a_lease_that_no_other_candidate_holds_is_acquired_immediately(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    holder: str | None,
    transitions: int,
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    if holder is not None:
        create_lease(api_server, holder)
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as term:
        assert trio.current_time() == 0
        spec = stored_lease(api_server)
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("us", 15)
        assert spec.lease_transitions == term.transitions == transitions
        assert spec.renew_time is not None
        assert elector.is_leader
        assert term.is_held
        assert term.expires_at == pytest.approx(15, abs=0.1)


async def test_a_held_lease_is_acquired_when_it_has_not_changed_for_its_duration(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    create_lease(api_server, "them", lease_duration_seconds=40, renew_time=datetime(1999, 1, 1, tzinfo=UTC))
    await trio.sleep(1_000)  # its age on the server does not matter
    async with candidate(api_server, nursery, "us") as (elector, transport):
        async with elector.lead() as term:
            assert trio.current_time() == pytest.approx(1_040)
            assert term.transitions == 4
        times = [time for method, time in transport.sent[:-3] if method == "GET"]
    assert times[0] == 1_000
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert all(0.8 <= delay < 1.6 for delay in delays[:-1])  # the last one ends at the expiry
    assert max(delays[:-1]) - min(delays[:-1]) > 0.5


@pytest.mark.parametrize("seed", range(5))
async def test_the_next_leader_takes_over_within_lease_duration_and_retry_period(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, seed: int
) -> None:
    rng = random.Random(seed)
    async with candidate(api_server, nursery, "us", rng=rng) as (elector, _):
        create_lease(api_server, "them")
        led = trio.Event()

        async def work(leadership: Leadership) -> None:
            led.set()

        async with trio.open_nursery() as waiting:
            waiting.start_soon(elector.run, work)
            for _ in range(3):
                await trio.sleep(rng.uniform(1, 5))
                renewed = trio.current_time()
                api_server.patch(Lease, NAME, {"spec": {"renewTime": f"2026-01-01T00:00:{renewed:09.6f}Z"}})
            if is_released := bool(seed % 2):
                api_server.patch(Lease, NAME, {"spec": {"holderIdentity": ""}})
            await led.wait()
            taken_after = round(trio.current_time() - renewed, 6)
        assert taken_after < 2 if is_released else 15 <= taken_after < 15 + 2


async def test_a_candidate_that_creates_the_lease_second_waits(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestTryAcquireOrRenewLeases"""
    async with candidate(api_server, nursery, "us") as (elector, transport):

        def create_concurrently(request: httpx.Request) -> Fault:
            if request.method == "POST":
                create_lease(api_server, "them")
            return "none"

        transport.fault = create_concurrently
        with trio.move_on_after(5) as scope:
            await elector.run(do_nothing)
        assert scope.cancelled_caught
        assert elector.leader == "them"
        assert transport.methods[:3] == ["GET", "POST", "GET"]
        assert stored_lease(api_server).holder_identity == "them"


async def test_candidates_detect_renewals_even_if_the_holders_clock_stands_still(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with (
        candidate(api_server, nursery, "stopped", wall_clock=lambda: 1e9) as (first, _),
        candidate(api_server, nursery, "other") as (second, _),
    ):
        nursery.start_soon(first.run, runs.leader_code())
        await runs.wait_for("stopped")
        nursery.start_soon(second.run, runs.leader_code())
        await trio.sleep(100)
        assert runs.running == ["stopped"]
        nursery.cancel_scope.cancel()


async def test_a_lease_without_duration_is_given_the_candidates_duration(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "by hand", lease_duration_seconds=None, lease_transitions=None)
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as term:
        assert 15 <= trio.current_time() < 19.4
        assert term.transitions == 1


async def test_a_candidate_waits_while_the_lease_cannot_be_decoded(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_lease(api_server, "")
    api_server.patch(Lease, NAME, {"spec": {"leaseDurationSeconds": "ten"}}, namespace=NAMESPACE)
    async with candidate(api_server, nursery, "us") as (elector, _):
        with trio.move_on_after(50):
            await elector.run(do_nothing)
        assert elector.statistics().failures > 10
        (line,) = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert line.startswith("lease default/the-lease: cannot be acquired, retrying: ")
        assert line.count("lease default/the-lease") == 1
        assert line.endswith("; correct or delete the lease")
        api_server.delete(Lease, NAME, namespace=NAMESPACE)
        assert await elector.run(do_nothing) is None


async def test_a_candidate_that_may_not_read_the_lease_raises_after_the_grace_period(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await trio.sleep(1_000)

    def reject(record: RequestRecord) -> int:
        return 500 if record.time < 1_020 else 403  # a server that is starting returns 500, which is transient

    api_server.fail_next(1_000, resource="leases", status=reject)
    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(ForbiddenError) as caught:
            await elector.run(do_nothing)
    assert 1_050 <= trio.current_time() < 1_058.8
    assert caught.value.__notes__[1:] == ["while 'us' waited for lease default/the-lease"]
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 2


async def test_an_infinite_grace_period_tolerates_hours_without_permission(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us", grace_period=float("inf")) as (elector, _):
        until = 2 * 3600

        def forbidden(request: RequestRecord) -> int | None:
            return 403 if trio.current_time() < until else None

        api_server.fail_next(100_000, resource="leases", status=forbidden)
        async with elector.lead():
            assert until <= trio.current_time() < until + 4.4


async def test_a_candidate_that_is_cancelled_during_its_first_write_releases_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = inject_next(1, "lose response", method="POST")
        with trio.move_on_after(1) as scope:
            await elector.run(do_nothing)
        assert scope.cancelled_caught
        assert transport.methods == ["GET", "POST", "GET", "PUT"]
    assert stored_lease(api_server).holder_identity == ""


@pytest.mark.parametrize(("status", "is_released"), [(500, True), (403, False)], ids=["failed", "rejected"])
async def test_a_candidate_whose_first_write_failed_releases_what_may_be_written(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, status: int, is_released: bool
) -> None:
    def write_and_fail(request: httpx.Request) -> Fault:
        if request.method == "POST":
            create_lease(api_server, "us")
            api_server.fail_next(verb="create", status=status)
        return "none"

    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = write_and_fail
        with trio.move_on_after(1):
            await elector.run(do_nothing)
        assert transport.methods == ["GET", "POST", *(["GET", "PUT"] if is_released else [])]
    assert (stored_lease(api_server).holder_identity == "") is is_released


async def test_a_lease_that_may_be_held_is_released_although_the_next_write_is_rejected(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    rng = random.Random(0)  # the first try takes 5 s, the second follows within a second, the third after 6.5 s
    async with candidate(api_server, nursery, "us", rng=rng) as (elector, transport):
        transport.fault = inject_next(1, "lose response", method="POST")
        api_server.fail_next(1, verb="update", status=409)
        with trio.move_on_after(6.4) as scope:
            await elector.run(do_nothing)
        assert scope.cancelled_caught
        assert transport.methods == ["GET", "POST", "GET", "PUT", "GET", "PUT"]
    assert stored_lease(api_server).holder_identity == ""


async def test_a_candidate_tries_sooner_ten_times_after_the_connection_failed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse"
        with trio.move_on_after(30):
            await elector.run(do_nothing)
        gaps = [after - before for (_, before), (_, after) in itertools.pairwise(transport.sent)]
        assert all(0.5 <= gap < 1 for gap in gaps[:10])
        assert all(2 <= gap <= 4.4 for gap in gaps[10:])
        assert len(gaps) > 12


async def test_a_holder_renews_sooner_after_the_connection_failed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport), elector.lead():
        await trio.sleep(9)  # between two renewals
        transport.sent.clear()
        transport.fault = lambda _: "refuse"
        await trio.sleep(4)
        times = [at for method, at in transport.sent if method == "PUT"]
        assert len(times) >= 4
        assert all(0.5 <= after - before < 1 for before, after in itertools.pairwise(times))


async def test_a_candidate_whose_write_lost_its_response_leads_when_it_reads_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = inject_next(1, "lose response", method="POST")
        async with elector.lead() as term:
            assert 5 <= trio.current_time() < 9.4
            assert term.transitions == 0


# --- holding ----------------------------------------------------------------------------------------------------------


async def test_the_holder_updates_without_reading_until_an_update_fails(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestFastPathLeaderElection"""
    async with candidate(api_server, nursery, "us") as (elector, transport), elector.lead():
        await trio.sleep(5)
        assert transport.sent == [("GET", 0), ("POST", 0), ("PUT", 2), ("PUT", 4)]
        transport.sent.clear()
        api_server.fail_next(verb="update", status=409)
        await trio.sleep(4)
        assert transport.sent == [("PUT", 6), ("GET", 6), ("PUT", 6), ("PUT", 8)]
        statistics = elector.statistics()
        assert (statistics.renewals, statistics.failures, statistics.terms) == (4, 1, 1)
        assert statistics.renewal_age == pytest.approx(1, abs=0.1)


async def test_a_renewal_counts_from_when_it_was_sent(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda request: "slow" if request.method in ("POST", "PUT") else "none"  # 2 s each way
        async with elector.lead() as term:
            assert trio.current_time() == 4
            assert term.expires_at == pytest.approx(15, abs=0.1)
            await trio.sleep(20)
            assert [time for method, time in transport.sent if method == "PUT"] == [4.5, 9, 13.5, 18, 22.5]
            assert term.expires_at == pytest.approx(33, abs=0.1)


async def test_the_lease_is_emptied_when_the_leader_code_has_ended(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """client-go: TestReleaseLeaseLeases, TestReleaseMethodCallsGet"""
    caplog.set_level(logging.INFO)
    create_lease(api_server, "")
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, transport):
        assert await elector.run(runs.leader_code(for_seconds=3)) == "done by us"
        assert transport.methods == ["GET", "PUT", "PUT", "GET", "PUT"]
        assert not elector.is_leader
        assert elector.leader == ""
    spec = stored_lease(api_server)
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("", 1, 4)
    assert spec.acquire_time == spec.renew_time
    assert [record.message for record in caplog.records if record.name == "trioformer.leaderelection"] == [
        "lease default/the-lease: acquired by 'us', transitions 4",
        "lease default/the-lease: released by 'us'",
    ]


async def test_a_release_with_a_conflict_is_retried_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestReleaseRetriesOnConflict"""
    async with candidate(api_server, nursery, "us") as (elector, transport):
        async with elector.lead():
            api_server.fail_next(3, verb="update", status=409)
        assert trio.current_time() == 0
        assert transport.methods == ["GET", "POST", *["GET", "PUT"] * 4]
    assert stored_lease(api_server).holder_identity == ""


@pytest.mark.parametrize("problem", ["an update under way", "an error", "a conflict"])
async def test_a_leader_that_is_cancelled_releases_the_lease_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, problem: str
) -> None:
    """client-go: TestReleaseOnCancellation_Leases"""
    released: list[str] = []
    async with candidate(api_server, nursery, "us") as (elector, transport):

        def fault(request: httpx.Request) -> Fault:
            if request.method == "PUT" and b'"holderIdentity":""' in request.content:
                released.append("once")
            elif request.method == "PUT" and problem == "an update under way":
                return "lose response"
            elif request.method == "PUT" and problem == "an error":
                return "refuse"
            return "none"

        transport.fault = fault
        if problem == "a conflict":
            api_server.fail_next(100, verb="update", status=lambda record: 409 if record.time == 2 else None)
        with trio.move_on_after(3) as scope:
            await elector.run(LeaderRuns().leader_code())
        assert scope.cancelled_caught
        assert trio.current_time() == 3
    assert released == ["once"]
    assert stored_lease(api_server).holder_identity == ""


@attrs.define(eq=False)
class NotFoundPages(httpx.AsyncBaseTransport):
    """A proxy that responds to the next requests of a method with a page, before or after it forwards them."""

    inner: httpx.AsyncBaseTransport
    method: str
    forwards: bool = False
    left: int = 1

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self.left or request.method != self.method:
            return await self.inner.handle_async_request(request)
        self.left -= 1
        if self.forwards:
            await (await self.inner.handle_async_request(request)).aread()
        return httpx.Response(404, html="<title>404 Not Found</title>")


async def test_a_404_that_is_not_a_status_does_not_mean_that_the_lease_is_deleted(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        async with elector.lead():
            transport.inner = NotFoundPages(transport.inner, "GET")
        assert transport.methods[-3:] == ["GET", "GET", "PUT"]
    assert stored_lease(api_server).holder_identity == ""


async def test_a_write_may_have_been_executed_although_a_proxy_rejects_it(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.inner = NotFoundPages(transport.inner, "POST", forwards=True)
        with trio.move_on_after(1):
            await elector.run(do_nothing)
        assert transport.methods == ["GET", "POST", "GET", "PUT"]
    assert stored_lease(api_server).holder_identity == ""


async def test_a_release_retries_failures_for_a_limited_time(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        async with elector.lead():
            api_server.fail_next(2, resource="leases", status=500)
        assert stored_lease(api_server).holder_identity == ""
        assert trio.current_time() < 1
        began = trio.current_time()
        async with elector.lead():
            transport.fault = lambda _: "hang"
        assert trio.current_time() == began + 10
        assert "not released by 'us'" in caplog.records[-1].message
        transport.fault = lambda _: "none"
        async with elector.lead():
            transport.fault = lambda _: "refuse"
        assert trio.current_time() < began + 12


async def test_after_cancellation_the_lease_is_renewed_until_the_leader_code_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with (
        candidate(api_server, nursery, "first") as (first, _),
        candidate(api_server, nursery, "second") as (second, _),
    ):
        stop = trio.CancelScope()

        async def until_stopped() -> None:
            with stop:
                await first.run(runs.leader_code(clean_up=60))

        nursery.start_soon(until_stopped)
        await runs.wait_for("first")
        nursery.start_soon(second.run, runs.leader_code())
        await trio.sleep(7)
        stop.cancel()
        await runs.wait_for("second")
        assert runs.ended == [("first", 0, 67)]
        assert 67 <= trio.current_time() < 71.4
        assert runs.leaderships[-1].transitions == 2 - 1
        nursery.cancel_scope.cancel()


async def test_an_exception_of_the_leader_code_is_raised_unwrapped_after_the_release(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    error = KeyError("mine")

    async def work(leadership: Leadership) -> None:
        await trio.sleep(5)
        raise error

    with pytest.raises(KeyError) as caught:
        await run_as_leader(client, work, name=NAME, namespace=NAMESPACE)
    assert caught.value is error
    assert stored_lease(api_server).holder_identity == ""
    with pytest.raises(KeyError) as caught:
        async with leadership(client, name=NAME, namespace=NAMESPACE) as term:
            raise error
    assert caught.value is error
    assert term.transitions == 1
    assert not term.is_held
    with pytest.raises(ExceptionGroup) as group:
        async with leadership(client, name=NAME, namespace=NAMESPACE), trio.open_nursery():
            raise error
    assert group.value.exceptions == (error,)
    with pytest.raises(KeyboardInterrupt):
        async with leadership(client, name=NAME, namespace=NAMESPACE):
            raise KeyboardInterrupt
    assert stored_lease(api_server).holder_identity == ""


async def test_a_cancellation_inside_the_leader_code_stays_inside(
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


@pytest.mark.parametrize("fault", ["hang", "refuse", "lose response"])
async def test_leadership_is_lost_after_the_renew_deadline_when_the_api_server_hangs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, fault: Fault
) -> None:
    runs = LeaderRuns()
    async with (
        candidate(api_server, nursery, "first") as (first, transport),
        candidate(api_server, nursery, "second") as (second, _),
    ):
        lost = trio.Event()

        async def until_lost() -> None:
            with pytest.raises(LeadershipLostError, match=r"the lease was not renewed for 10\.0 s") as caught:
                await first.run(runs.leader_code(clean_up=4.5))
            assert isinstance(caught.value.__cause__, ConnectionFailedError)
            lost.set()

        nursery.start_soon(until_lost)
        term = await runs.wait_for("first")
        nursery.start_soon(second.run, runs.leader_code())
        await trio.sleep(20.5)  # the last renewal was at 20
        transport.fault = lambda request: fault if request.method == "PUT" else "hang"
        await trio.sleep(9.4)
        assert term.is_held
        await trio.sleep(0.2)
        assert not term.is_held
        assert runs.running == ["first"]
        await runs.wait_for("second")
        assert runs.ended == [("first", 0, pytest.approx(34.5, abs=0.01))]
        assert 35 <= trio.current_time() < 41 + 4.4
        await lost.wait()
        assert first.statistics().losses == 1
        nursery.cancel_scope.cancel()


async def test_a_leader_without_permission_loses_the_leadership_with_the_error(
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
    text = "lease default/the-lease: 'us' lost the leadership: the lease was not renewed for 10.0 s"
    assert str(caught.value) == text
    (line,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert line == f"{text}; its leader code is cancelled"


async def test_renewals_after_a_loss_protect_leader_code_that_is_cleaning_up(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with (
        candidate(api_server, nursery, "first") as (first, transport),
        candidate(api_server, nursery, "second") as (second, _),
    ):

        async def until_lost() -> None:
            with pytest.raises(LeadershipLostError):
                await first.run(runs.leader_code(clean_up=30))

        nursery.start_soon(until_lost)
        await runs.wait_for("first")
        nursery.start_soon(second.run, runs.leader_code())
        transport.fault = lambda _: "refuse" if trio.current_time() < 11 else "none"
        await runs.wait_for("second")
        assert runs.ended == [("first", 0, pytest.approx(40, abs=0.01))]
        assert first.statistics().overruns == 0
        nursery.cancel_scope.cancel()


async def test_leader_code_that_does_not_end_in_time_is_logged_as_critical(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """client-go: TestLeaderElectionHealthChecker"""
    overruns: list[float] = []
    async with candidate(api_server, nursery, "us", on_overrun=lambda: overruns.append(trio.current_time())) as (
        elector,
        transport,
    ):
        assert elector.is_healthy()
        health: list[tuple[bool, bool]] = []

        async def work(leadership: Leadership) -> None:
            transport.fault = lambda _: "hang"
            with trio.CancelScope(shield=True):
                await trio.sleep(34)
                health.append((elector.is_healthy(), elector.is_healthy(grace=0)))
                await trio.sleep(2)
                health.append((elector.is_healthy(), elector.is_leader))
                transport.fault = lambda _: "none"
            await trio.sleep_forever()

        with pytest.raises(LeadershipLostError):
            await elector.run(work)
        assert health == [(True, False), (False, False)]
        assert elector.is_healthy()
        assert elector.statistics().overruns == 1
    assert overruns == [pytest.approx(15, abs=0.01)]
    (line,) = [record.message for record in caplog.records if record.levelno == logging.CRITICAL]
    assert line == (
        "lease default/the-lease: the leader code of 'us' was cancelled and still runs 15.0 s after the last renewal; "
        "another candidate may lead"
    )


@pytest.mark.parametrize(
    ("suspended", "is_held", "is_lost"),
    [(15.0, False, True), (12.0, True, True), (3.0, True, False)],
    ids=["past the lease", "past the renew deadline", "short"],
)
async def test_a_suspend_longer_than_the_renew_deadline_loses_the_leadership(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    suspended: float,
    is_held: bool,
    is_lost: bool,
) -> None:
    boot = 1e6
    async with candidate(api_server, nursery, "us", boot_clock=lambda: boot + trio.current_time()) as (elector, _):
        lost: list[str] = []
        with trio.move_on_after(30):
            try:
                async with elector.lead() as term:
                    await trio.sleep(5)
                    boot += suspended
                    assert term.is_held is is_held
                    await trio.sleep_forever()
            except LeadershipLostError as error:
                lost.append(str(error))
                assert trio.current_time() == 6
        assert bool(lost) is is_lost
    assert stored_lease(api_server).holder_identity == ""


async def test_a_process_stopped_for_longer_than_the_lease_detects_it_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):

        async def work(leadership: Leadership) -> None:
            await trio.sleep(1)
            autojump_clock.jump(20)  # as after SIGSTOP, or while leader code blocks the event loop
            assert not leadership.is_held
            assert leadership.expires_at < trio.current_time()
            transport.sent.clear()
            await trio.sleep_forever()

        with pytest.raises(LeadershipLostError, match=r"the lease was not renewed for 21\.0 s"):
            await elector.run(work)
    assert trio.current_time() == 21
    assert elector.statistics().losses == 1


async def test_again_after_loss_waits_for_the_lease_again(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if 1 < trio.current_time() < 100 else "none"
        run = elector.run(runs.leader_code(for_seconds=20), again_after_loss=True)
        assert await run == "done by us"
        (_, began, ended), (_, again, done) = runs.ended
        assert (began, ended) == (0, pytest.approx(10, abs=0.01))
        assert 100 <= again < 104.4
        assert done == again + 20
        assert elector.statistics().terms == 2


LOST = "lease default/the-lease: 'us' lost the leadership: the lease was not renewed for 10.0 s"


async def fail_to_clean_up() -> None:
    """Leader code whose clean-up fails."""
    try:
        await trio.sleep_forever()
    finally:
        raise OSError("cannot close")


async def fail_to_clean_up_in_a_nursery() -> None:
    """The same, in one of two tasks; the other's cancellation comes with the failure."""
    async with trio.open_nursery() as tasks:
        tasks.start_soon(trio.sleep_forever)
        tasks.start_soon(fail_to_clean_up)


@pytest.mark.parametrize("work", [fail_to_clean_up, fail_to_clean_up_in_a_nursery], ids=["plain", "in a group"])
async def test_again_after_loss_survives_a_clean_up_that_fails(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
    work: Callable[[], Any],
) -> None:
    began: list[float] = []

    async def run_twice(leadership: Leadership) -> str:
        began.append(trio.current_time())
        if len(began) == 1:
            await work()
        return "done"

    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if 1 < trio.current_time() < 100 else "none"
        assert await elector.run(run_twice, again_after_loss=True) == "done"
        assert elector.statistics().losses == 1
    assert began[0] == 0
    assert 100 <= began[1] < 104.4
    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    lost, failed = [each.getMessage() for each in errors]
    assert "'us' lost the leadership: the lease was not renewed for 10.0 s" in lost
    assert failed == (
        "lease default/the-lease: the leader code of 'us' failed as it ended; waiting for the lease again"
    )
    assert errors[1].exc_info is not None


@pytest.mark.parametrize("work", [fail_to_clean_up, fail_to_clean_up_in_a_nursery], ids=["plain", "in a group"])
async def test_a_clean_up_that_fails_is_raised_with_a_note_of_the_loss(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, work: Callable[[], Any]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if trio.current_time() > 1 else "none"
        with pytest.raises((OSError, ExceptionGroup)) as caught:
            async with elector.lead():
                await work()
    assert caught.value.__notes__ == [LOST]
    (error,) = getattr(caught.value, "exceptions", (caught.value,))
    assert str(error) == "cannot close"


async def test_leader_code_that_fails_before_a_loss_ends_the_run(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    error = KeyError("mine")

    async def work(leadership: Leadership) -> None:
        await trio.sleep(5)
        raise error

    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if 1 < trio.current_time() < 7 else "none"
        with pytest.raises(KeyError) as caught:
            await elector.run(work, again_after_loss=True)
    assert caught.value is error
    assert not hasattr(error, "__notes__")


async def test_a_clean_up_that_fails_is_raised_if_the_caller_is_cancelled_as_well(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async def work(leadership: Leadership) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            raise OSError("cannot close")

    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if trio.current_time() > 1 else "none"
        with pytest.raises(OSError, match="cannot close"):
            with trio.move_on_after(11):
                await elector.run(work, again_after_loss=True)


@pytest.mark.parametrize("again", [False, True])
async def test_an_interrupt_after_a_loss_ends_the_run(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, again: bool
) -> None:
    async def work(leadership: Leadership) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyboardInterrupt

    async with candidate(api_server, nursery, "us") as (elector, transport):
        transport.fault = lambda _: "refuse" if trio.current_time() > 1 else "none"
        with pytest.raises(KeyboardInterrupt) as caught:
            await elector.run(work, again_after_loss=again)
    assert caught.value.__notes__ == [LOST]


async def test_a_loss_of_a_nested_election_is_not_that_of_the_outer_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    runs: list[int] = []

    async def work(leadership: Leadership) -> None:
        runs.append(1)
        raise LeadershipLostError("the inner one")

    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(LeadershipLostError, match="the inner one"):
            await elector.run(work, again_after_loss=True)
    assert runs == [1]


async def test_a_result_is_returned_even_if_the_leadership_was_lost(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):

        async def work(leadership: Leadership) -> str:
            transport.fault = lambda _: "refuse"
            with trio.CancelScope(shield=True):
                await trio.sleep(12)
            return "whole"

        assert await elector.run(work) == "whole"
        assert elector.statistics().losses == 1


async def test_a_loss_after_the_callers_cancellation_raises_no_error(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport):
        with trio.move_on_after(1) as scope:
            transport.fault = lambda _: "refuse" if trio.current_time() > 1 else "none"
            await elector.run(LeaderRuns().leader_code(clean_up=13))
        assert scope.cancelled_caught
        assert elector.statistics().losses == 1


# --- callbacks --------------------------------------------------------------------------------------------------------


async def test_on_new_leader_is_called_once_for_each_leader(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    leaders: list[str] = []
    create_lease(api_server, "them")
    async with candidate(api_server, nursery, "us", on_new_leader=leaders.append) as (elector, _):
        with trio.move_on_after(5):
            await elector.run(do_nothing)
        api_server.patch(Lease, NAME, {"spec": {"holderIdentity": ""}}, namespace=NAMESPACE)
        with trio.move_on_after(5):
            await elector.run(LeaderRuns().leader_code())
        api_server.patch(
            Lease, NAME, {"spec": {"holderIdentity": "others", "leaseDurationSeconds": 15}}, namespace=NAMESPACE
        )
        with trio.move_on_after(5):
            await elector.run(do_nothing)
    assert leaders == ["them", "", "us", "others"]


@pytest.mark.parametrize("when", ["acquiring", "renewing"])
async def test_an_exception_of_on_new_leader_ends_the_election_and_releases_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, when: str
) -> None:
    def on_new_leader(leader: str) -> None:
        if when == "acquiring" or leader == "":
            raise KeyError(leader)

    async with candidate(api_server, nursery, "us", on_new_leader=on_new_leader) as (elector, _):
        with pytest.raises(KeyError):  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                assert when == "renewing"
                await trio.sleep(1)
                api_server.delete(Lease, NAME, namespace=NAMESPACE)
                await trio.sleep_forever()
        if when == "acquiring":
            assert stored_lease(api_server).holder_identity == ""
        else:
            assert trio.current_time() == 2


async def test_a_candidate_cannot_run_twice_at_the_same_time(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _):
        assert repr(elector) == "<LeaderElector 'us' for lease default/the-lease, not running>"
        async with elector.lead() as term:
            assert repr(elector) == "<LeaderElector 'us' for lease default/the-lease, leading>"
            assert repr(term) == "<Leadership of 'us', transitions 0, held>"
            with pytest.raises(trio.BusyResourceError, match="'us' for lease default/the-lease"):
                await elector.run(do_nothing)
        assert repr(term) == "<Leadership of 'us', transitions 0, over>"
        await elector.run(do_nothing)


def test_inconsistent_durations_are_rejected() -> None:
    """client-go: TestLeaderElectionConfigValidation"""

    def assert_rejected(text: str, **durations: Any) -> None:
        with pytest.raises(ValueError, match=text):
            LeaderElectionOptions(**durations)

    assert_rejected("lease_duration must be longer than renew_deadline", lease_duration=10)
    assert_rejected("renew_deadline must be longer than 1.2", renew_deadline=2.4)
    for name in ("lease_duration", "renew_deadline", "retry_period"):
        assert_rejected(f"{name} must be a number of seconds above 0, not 0", **{name: 0})
        assert_rejected(f"{name} must be a number of seconds above 0, not inf", **{name: float("inf")})
    assert_rejected("grace_period", grace_period=-1)
    options = LeaderElectionOptions()
    assert (options.lease_duration, options.renew_deadline, options.retry_period) == (15, 10, 2)


async def test_the_names_of_lease_and_identity_must_not_be_empty(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    """client-go: TestLeaderElectionConfigValidation"""
    with pytest.raises(ValueError, match="the name of the lease must not be empty"):
        LeaderElector(client, name="", namespace=NAMESPACE)
    with pytest.raises(ValueError, match="the identity must not be empty"):
        LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="")
    with pytest.raises(ValueError, match="a namespace must not be empty"):
        LeaderElector(client, name=NAME, namespace="")
    identities = {LeaderElector(client, name=NAME, namespace=NAMESPACE).identity for _ in range(2)}
    assert len(identities) == 2
