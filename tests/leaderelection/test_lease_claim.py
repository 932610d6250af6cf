"""Leaders and candidates when other clients edit the Lease, a clock jumps, or a process is stopped.

docs/contract.rst lists the same cases; tests/leaderelection/test_elector.py tests faults of API server and transport.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
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
    SlowPlugin,
    candidate,
    create_lease,
    stored_lease,
)
from trioformer._surroundings import boot_time
from trioformer.client import open_client
from trioformer.errors import ExecPluginError
from trioformer.leaderelection import LeaderElector, Leadership, LeadershipLostError
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.transport import TokenBucketRateLimiter

LEASE = "lease default/the-lease:"
END_OF_TIME = "9999-12-31T23:59:59.999999Z"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The log of leader election since the last call."""
    caplog.set_level(logging.INFO, "trioformer.leaderelection")

    def read() -> list[str]:
        lines = [f"{each.levelname} {each.getMessage()}" for each in caplog.records if each.name.startswith("trio")]
        caplog.clear()
        return lines

    return read


def edited(**spec: Any) -> Callable[[APIServer], object]:
    """An edit of the Lease by another client."""
    return lambda server: server.patch(Lease, NAME, {"spec": spec}, namespace=NAMESPACE)


def deleted(server: APIServer) -> None:
    server.delete(Lease, NAME, namespace=NAMESPACE)


def annotated(server: APIServer) -> None:
    server.patch(Lease, NAME, {"metadata": {"annotations": {"note": "do not edit"}}}, namespace=NAMESPACE)


# --- edited while it is held ------------------------------------------------------------------------------------------

CHANGED = f"WARNING {LEASE} changed by another client; 'us' renewed it"
EMPTIED = f"WARNING {LEASE} cleared by another client; 'us' acquired it again"

KEPT = {
    "deleted": (deleted, f"WARNING {LEASE} deleted by another client; 'us' created it again"),
    "emptied": (edited(holderIdentity=""), EMPTIED),
    "shortened": (edited(leaseDurationSeconds=1), CHANGED),
    "for ever": (edited(leaseDurationSeconds=2**31 - 1), CHANGED),
    "renewed at the end of time": (edited(renewTime=END_OF_TIME), CHANGED),
    "never renewed": (edited(renewTime=None, acquireTime=None), CHANGED),
    "with a note": (annotated, CHANGED),
}


@pytest.mark.parametrize("what", KEPT)
async def test_a_leader_restores_an_edited_lease_and_continues_to_lead(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    what: str,
) -> None:
    edit, line = KEPT[what]
    create_lease(api_server, "")
    async with (
        candidate(api_server, nursery, "us") as (elector, _),
        candidate(api_server, nursery, "other") as (other, _),
        elector.lead() as term,
    ):
        if line != EMPTIED:  # otherwise the other candidate may acquire it first
            nursery.start_soon(other.run, LeaderRuns().leader_code())
        await trio.sleep(5)
        log()
        edit(api_server)
        await trio.sleep(5)
        assert term.is_held
        await trio.sleep(60)
        assert term.is_held
        assert [each for each in log() if "'other'" not in each] == [line]
        spec = stored_lease(api_server)
        assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("us", 15, 4)
        nursery.cancel_scope.cancel()


async def test_an_update_that_fails_once_is_logged_without_further_effect(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as term:
        log()
        api_server.fail_next(verb="update", status=500)
        await trio.sleep(5)
        assert term.is_held
        (line,) = log()
        assert line.startswith(f"WARNING {LEASE} cannot be updated, reading it: ")


async def test_each_outage_is_logged_once_for_each_kind_of_failure(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, transport), elector.lead() as term:
        await trio.sleep(1)  # it renews every two seconds
        for _ in range(2):
            log()
            transport.fault = lambda request: "refuse"
            await trio.sleep(6)
            transport.fault = lambda request: "none"
            await trio.sleep(6)
            reading, retrying = log()
            assert reading.startswith(f"WARNING {LEASE} cannot be updated, reading it: ")
            assert retrying.startswith(f"WARNING {LEASE} cannot be renewed, retrying: ")
        assert term.is_held


async def test_a_deleted_lease_that_cannot_be_created_is_created_at_the_next_renewal(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as term:
        log()
        deleted(api_server)
        api_server.fail_next(verb="create", status=500)
        await trio.sleep(5)
        assert term.expires_at == pytest.approx(19, abs=0.1)
        failed, created = log()
        assert failed.startswith(f"WARNING {LEASE} cannot be renewed, retrying: ")
        assert created == f"WARNING {LEASE} deleted by another client; 'us' created it again"


LOST = {
    "another holder": (edited(holderIdentity="them"), "the lease is held by 'them'"),
    "released by another holder": (edited(holderIdentity="", leaseTransitions=5), "the holder was cleared"),
}


@pytest.mark.parametrize("what", LOST)
async def test_a_leader_whose_lease_had_another_holder_loses_the_leadership(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    what: str,
) -> None:
    edit, why = LOST[what]
    create_lease(api_server, "")
    async with candidate(api_server, nursery, "us") as (elector, _):
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=why):  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                await trio.sleep(5)
                log()
                edit(api_server)
                await trio.sleep_forever()
    assert trio.current_time() == 6
    assert log() == [f"ERROR {LEASE} 'us' lost the leadership: {why}; its leader code is cancelled"]
    assert stored_lease(api_server).holder_identity != "us"


@pytest.mark.parametrize("edit", [deleted, edited(holderIdentity="them")], ids=["deleted", "another holder"])
async def test_a_release_leaves_a_deleted_or_reassigned_lease_unchanged(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    edit: Callable[[APIServer], object],
) -> None:
    """client-go: TestReleaseLeaseLeases"""
    async with candidate(api_server, nursery, "us") as (elector, _):
        async with elector.lead():
            edit(api_server)
            before = api_server.list(Lease)
        assert log()[1:] == [f"INFO {LEASE} not held by 'us', nothing to release"]
    assert api_server.list(Lease) == before


async def test_a_failed_callback_is_logged_even_if_the_leader_code_raises_in_its_clean_up(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    def on_new_leader(leader: str) -> None:
        if leader == "them":
            raise KeyError(leader)

    async with candidate(api_server, nursery, "us", on_new_leader=on_new_leader) as (elector, _):
        with pytest.raises(ValueError, match="cleaning up failed") as info:  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                log()
                edited(holderIdentity="them")(api_server)
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError("cleaning up failed")
    text = f"{LEASE} 'us' failed while renewing: KeyError('them')"
    assert info.value.__notes__ == [text]
    assert log()[-1] == f"ERROR {text}"


# --- edited, as seen by a candidate -----------------------------------------------------------------------------------


async def test_a_candidate_gives_the_holder_of_a_deleted_lease_time_to_create_it_again(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    create_lease(api_server, "them")
    leaders: list[str] = []
    async with candidate(api_server, nursery, "us", on_new_leader=leaders.append) as (elector, _):
        nursery.start_soon(elector.run, LeaderRuns().leader_code())
        await trio.sleep(1)
        deleted(api_server)
        await trio.sleep(10)
        held, missing = log()
        assert held == f"INFO {LEASE} held by 'them'; 'us' waits until it has not been renewed for 15 s"
        assert missing.startswith(f"WARNING {LEASE} deleted while 'them' held it; 'us' waits another 1")
        create_lease(api_server, "them", renew_time=datetime(2026, 1, 1, tzinfo=UTC))  # the holder's renewal
        await trio.sleep(14)
        assert leaders == ["them"]
        assert log() == []
        await trio.sleep(8)
        (line,) = log()
        assert line.startswith(f"INFO {LEASE} acquired by 'us', transitions 4; 'them' had not renewed it for 1")
        nursery.cancel_scope.cancel()


async def test_an_expired_deleted_lease_is_acquired_with_the_next_transition(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    create_lease(api_server, "them")
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, runs.leader_code())
        await trio.sleep(1)
        deleted(api_server)
        term = await runs.wait_for("us")
        assert 15 <= trio.current_time() < 19.4
        assert term.transitions == stored_lease(api_server).lease_transitions == 4
        assert log()[2:] == [f"INFO {LEASE} acquired by 'us', transitions 4"]
        nursery.cancel_scope.cancel()


async def test_a_candidate_waits_for_the_duration_that_the_lease_currently_names(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    create_lease(api_server, "them", lease_duration_seconds=2**31 - 1)
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, runs.leader_code())
        await trio.sleep(600)
        assert runs.running == []
        edited(leaseDurationSeconds=60)(api_server)
        await runs.wait_for("us")
        assert 660 <= trio.current_time() < 669
        *waits, acquired = log()
        assert waits == [
            f"INFO {LEASE} held by 'them'; 'us' waits until it has not been renewed for {2**31 - 1:g} s",
            f"INFO {LEASE} held by 'them'; 'us' waits until it has not been renewed for 60 s",
        ]
        assert acquired.startswith(f"INFO {LEASE} acquired by 'us', transitions 4; 'them' had not renewed it for 6")
        nursery.cancel_scope.cancel()


async def test_a_lease_whose_transitions_cannot_grow_is_not_acquired(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    """Its number is a fencing token, which must not begin again."""
    create_lease(api_server, "them", lease_transitions=2**31 - 1)
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, runs.leader_code())
        await trio.sleep(60)
        assert runs.running == []
        _, line = log()
        assert line == (
            f"WARNING {LEASE} cannot be acquired, retrying: leaseTransitions has reached its maximum, {2**31 - 1};"
            " correct the lease"
        )
        edited(leaseTransitions=7)(api_server)
        assert (await runs.wait_for("us")).transitions == 8
        nursery.cancel_scope.cancel()


async def test_the_name_of_another_holder_is_logged_as_one_short_line(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    create_lease(api_server, "\x1b[2J\n\u202e" + "x" * 10_000)

    async def lose(_: Leadership) -> None:
        edited(holderIdentity="\x1b[2J" * 5_000, leaseDurationSeconds=15)(api_server)
        await trio.sleep_forever()

    async with candidate(api_server, nursery, "us") as (elector, _):
        with pytest.raises(LeadershipLostError) as caught:
            await elector.run(lose)
    lines = [str(caught.value)]
    lines += log()
    assert any(r"held by '\x1b[2J\n\u202exxx" in line for line in lines)
    assert all(line.isprintable() and len(line) < 3_000 for line in lines), lines


@pytest.mark.parametrize("duration", [1, None])
async def test_a_shortened_lease_duration_does_not_make_a_second_leader(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, duration: int | None
) -> None:
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (ours, _), candidate(api_server, nursery, "them") as (theirs, _):
        nursery.start_soon(ours.run, runs.leader_code())
        term = await runs.wait_for("us")
        nursery.start_soon(theirs.run, runs.leader_code())
        for _ in range(10):
            await trio.sleep_until(term.expires_at - 15 + 2.01)  # immediately after a renewal
            edited(leaseDurationSeconds=duration)(api_server)
            await trio.sleep(1.9)
            assert (runs.running, ours.is_leader, theirs.is_leader) == (["us"], True, False)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "renew_time",
    [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
    ids=["none", "long ago", "end of time"],
)
@pytest.mark.parametrize("holder", ["them", "us"])
async def test_candidates_ignore_the_times_in_a_lease(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    renew_time: datetime | None,
    holder: str,
) -> None:
    create_lease(api_server, holder, renew_time=renew_time, acquire_time=renew_time)
    async with candidate(api_server, nursery, "us", wall_clock=lambda: 1e9) as (elector, _), elector.lead():
        assert trio.current_time() == 0 if holder == "us" else 15 <= trio.current_time() < 19.4
        await trio.sleep(60)
        renewed = stored_lease(api_server).renew_time
        assert renewed is not None
        assert 1e9 <= renewed.timestamp() < 1e9 + 1
        assert not [line for line in log() if not line.startswith("INFO")]


@pytest.mark.parametrize("step", [0.0, 0.3, 3_600.0])
async def test_the_renew_time_changes_and_follows_a_clock_that_was_set_back(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, step: float
) -> None:
    wall = 1e9
    seen: list[float] = []
    async with candidate(api_server, nursery, "us", wall_clock=lambda: wall) as (elector, _), elector.lead():
        wall -= step
        for _ in range(10):
            await trio.sleep(2.5)
            renewed = stored_lease(api_server).renew_time
            assert renewed is not None
            seen.append(renewed.timestamp())
    assert len(set(seen)) == 10, "candidates that miss some renewals see a change as well"
    assert all(abs(each - wall) < 1 for each in seen)


async def test_a_restarted_candidate_changes_the_lease_even_if_its_clock_stands_still(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    # Otherwise candidates would not detect the renewal.
    for _ in range(3):
        async with candidate(api_server, nursery, "us", wall_clock=lambda: 1e9) as (elector, transport):
            before = stored_lease(api_server) if api_server.list(Lease) else None
            with trio.CancelScope() as killed:
                async with elector.lead():
                    assert stored_lease(api_server) != before
                    transport.fault = lambda _: "refuse"
                    killed.cancel()


# --- clocks that jump -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-86_400.0, -3_600.0, 3_600.0, 86_400.0])
@pytest.mark.parametrize("whose", ["leader's", "candidate's"])
async def test_jumps_of_the_wall_clock_have_no_effect(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    jump: float,
    whose: str,
) -> None:
    walls = {"leader's": 1e9, "candidate's": 1e9}
    async with (
        candidate(api_server, nursery, "us", wall_clock=lambda: walls["leader's"] + trio.current_time()) as (us, _),
        candidate(api_server, nursery, "they", wall_clock=lambda: walls["candidate's"]) as (they, _),
        us.lead() as term,
    ):
        nursery.start_soon(they.run, LeaderRuns().leader_code())
        await trio.sleep(31)
        log()
        walls[whose] += jump
        for _ in range(60):
            await trio.sleep(1)
            assert term.is_held
            assert term.expires_at >= trio.current_time() + 12
        assert log() == []
        nursery.cancel_scope.cancel()


def test_the_boot_clock_counts_suspend_time_and_cannot_be_set() -> None:
    before = boot_time()
    assert boot_time() >= before
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert boot_time() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)


@attrs.define
class Worker:
    """Leader code that checks every second whether it still leads, and acts if it does."""

    steps: list[float] = attrs.field(factory=list)
    actions: list[float] = attrs.field(factory=list)

    async def work(self, leadership: Leadership) -> None:
        while True:
            self.steps.append(trio.current_time())
            if leadership.is_held:
                self.actions.append(trio.current_time())
            await trio.sleep(1)


@pytest.mark.parametrize("turn", range(10))  # trio randomizes the order of tasks that wake at the same time
async def test_a_leader_stopped_past_its_lease_takes_at_most_one_step_with_is_held_false(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    turn: int,
) -> None:
    worker = Worker()

    async def stop_process() -> None:
        await trio.sleep(5.5)
        log()
        autojump_clock.jump(60)  # as by SIGSTOP, and SIGCONT a minute later

    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(stop_process)
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=r"the lease was not renewed for 61\.5 s"):
            await elector.run(worker.work)
    assert worker.actions == [0, 1, 2, 3, 4, 5]
    assert worker.steps in (worker.actions, [*worker.actions, 65.5])
    assert log() == [
        f"ERROR {LEASE} 'us' lost the leadership: the lease was not renewed for 61.5 s; its leader code is cancelled",
        f"INFO {LEASE} released by 'us'",
    ]


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("is_renewed", [True, False])
async def test_a_long_clean_up_after_a_stop_is_logged_unless_the_lease_was_renewed(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    is_renewed: bool,
    turn: int,
) -> None:
    overruns: list[float] = []

    async def stop_process() -> None:
        await trio.sleep(5.5)
        log()
        if not is_renewed:
            transport.fault = lambda _: "refuse"
        autojump_clock.jump(60)

    options = {"on_overrun": lambda: overruns.append(trio.current_time())}
    async with candidate(api_server, nursery, "us", **options) as (elector, transport):
        nursery.start_soon(stop_process)
        with pytest.raises(LeadershipLostError):
            await elector.run(LeaderRuns().leader_code(clean_up=5))
    critical = [line for line in log() if line.startswith("CRITICAL")]
    if is_renewed:
        assert (overruns, critical) == ([], [])
    else:
        line = (
            "the leader code of 'us' was cancelled and still runs 61.6 s after the last renewal; "
            "another candidate may lead"
        )
        assert (overruns, critical) == ([pytest.approx(65.6)], [f"CRITICAL {LEASE} {line}"])


async def test_a_leader_detects_a_suspend_that_stopped_its_clock(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    suspended, worker = 0.0, Worker()

    async def suspend() -> None:
        nonlocal suspended
        await trio.sleep(4.5)
        log()
        suspended = 60.0

    async with candidate(api_server, nursery, "us", boot_clock=lambda: suspended + trio.current_time()) as (elector, _):
        nursery.start_soon(suspend)
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=r"the lease was not renewed for 62\.0 s"):
            await elector.run(worker.work)
    assert trio.current_time() == 6
    assert worker.actions == [0, 1, 2, 3, 4]
    assert len(log()) == 2


async def test_a_stopped_candidate_reads_the_lease_again_before_it_acquires_it(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    create_lease(api_server, "them")
    runs = LeaderRuns()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, runs.leader_code())
        await trio.sleep(1)
        edited(renewTime="2026-01-01T00:00:00.000000Z")(api_server)
        autojump_clock.jump(60)
        await trio.sleep(14)
        assert runs.running == []
        await runs.wait_for("us")
        assert 76 <= trio.current_time() < 61 + 4.4 + 15 + 4.4
        nursery.cancel_scope.cancel()


# --- a busy client ----------------------------------------------------------------------------------------------------


def hang_except_leases(request: httpx.Request) -> Fault:
    return "none" if "/leases" in request.url.path else "hang"


@asynccontextmanager
async def busy(server: APIServer, nursery: trio.Nursery, **client_options: Any) -> AsyncIterator[LeaderElector]:
    """A candidate whose client is kept busy by two hundred tasks as soon as it leads."""
    transport = FaultInjector(server.http_transport(), nursery, fault=hang_except_leases)
    async with open_client(server.config, http_transport=transport, **client_options) as client:
        config_maps = client.api(ConfigMap, namespace=NAMESPACE)

        async def send_request() -> None:
            await trio.sleep(1)
            await config_maps.get("x")

        async with trio.open_nursery() as busy_tasks:
            for _ in range(200):
                busy_tasks.start_soon(send_request)
            yield LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="us")
            busy_tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "client_options",
    [{}, {"rate_limiter": TokenBucketRateLimiter(qps=5, burst=5)}],
    ids=["hanging requests", "rate limit"],
)
async def test_a_leader_with_a_busy_client_loses_the_leadership_in_time(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    client_options: dict[str, Any],
) -> None:
    async with busy(api_server, nursery, **client_options) as elector:
        with pytest.raises(LeadershipLostError):
            await elector.run(LeaderRuns().leader_code())
        assert trio.current_time() == pytest.approx(20, abs=0.1)  # including 10 s for the release, which fails as well
        no_response = "no response within 5 s"
        lost = "'us' lost the leadership: the lease was not renewed for 10.0 s; its leader code is cancelled"
        assert log()[1:] == [
            f"WARNING {LEASE} cannot be updated, reading it: {no_response}",
            f"ERROR {LEASE} {lost}",
            f"WARNING {LEASE} cannot be released, retrying: {no_response}",
            f"WARNING {LEASE} not released by 'us'; it expires in 15 s",
        ]


async def test_a_leader_with_a_separate_client_is_not_affected_by_a_busy_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with busy(api_server, nursery), candidate(api_server, nursery, "us") as (elector, _):
        with trio.move_on_after(100) as scope:
            await elector.run(LeaderRuns().leader_code())
        assert scope.cancelled_caught
        assert elector.statistics().failures == 0


# --- slow credential plugins ------------------------------------------------------------------------------------------


async def test_a_candidate_waits_for_a_plugin_as_long_as_it_takes(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    plugin = SlowPlugin(200)
    async with candidate(api_server, nursery, "us") as (elector, _):
        plugin.install(elector._claim._lock._api)
        with trio.fail_after(300):
            async with elector.lead() as term:
                assert trio.current_time() == pytest.approx(200)
                await trio.sleep(60)
                assert term.is_held
    assert plugin.runs == [0]
    assert elector.statistics().failures == 0


async def test_a_failed_plugin_is_run_again_after_the_retry_period_and_named(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    plugin = SlowPlugin(1, error=ExecPluginError("the credential plugin 'sso' has ended with exit code 1"))
    async with candidate(api_server, nursery, "us") as (elector, transport):
        plugin.install(elector._claim._lock._api)
        with trio.move_on_after(60):
            await elector.run(LeaderRuns().leader_code())
    assert transport.sent == []
    assert all(3 <= later - earlier <= 5.5 for earlier, later in itertools.pairwise(plugin.runs))
    assert log() == [
        f"WARNING {LEASE} cannot be acquired, retrying: the credential plugin 'sso' has ended with exit code 1"
    ]
