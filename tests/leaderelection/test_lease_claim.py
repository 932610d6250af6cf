"""What becomes of leaders and candidates when a Lease is changed by hand, a clock jumps, or a process stands still.

docs/contract.rst has the same in words; tests/leaderelection/test_elector.py has what the API server and the way there
can do.
"""

from __future__ import annotations

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

from tests.support.lease_candidates import NAME, NAMESPACE, Fate, Stage, Wire, candidate, hold, lease_in
from trioformer.client import open_client
from trioformer.leaderelection import LeaderElector, Leadership, LeadershipLostError
from trioformer.leaderelection._leadership import boot_clock
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

LEASE = "lease default/the-lease:"
END_OF_TIME = "9999-12-31T23:59:59.999999Z"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What is logged for users of leader election since this was last called."""
    caplog.set_level(logging.INFO, "trioformer.controller")

    def lines() -> list[str]:
        told = [f"{each.levelname} {each.getMessage()}" for each in caplog.records if each.name.startswith("trio")]
        caplog.clear()
        return told

    return lines


def edited(**spec: Any) -> Callable[[APIServer], object]:
    """An edit by hand."""
    return lambda server: server.patch(Lease, NAME, {"spec": spec}, namespace=NAMESPACE)


def deleted(server: APIServer) -> None:
    server.delete(Lease, NAME, namespace=NAMESPACE)


def annotated(server: APIServer) -> None:
    server.patch(Lease, NAME, {"metadata": {"annotations": {"note": "hands off"}}}, namespace=NAMESPACE)


# --- changed by hand, while it is held --------------------------------------------------------------------------------

CHANGED = f"WARNING {LEASE} was changed by somebody else, 'us' has renewed it all the same"

KEPT = {
    "deleted": (deleted, f"WARNING {LEASE} was deleted by somebody else, 'us' has created it again"),
    "emptied": (edited(holderIdentity=""), f"WARNING {LEASE} was emptied by somebody else, 'us' has taken it again"),
    "without holder": (
        edited(holderIdentity=None),
        f"WARNING {LEASE} was emptied by somebody else, 'us' has taken it again",
    ),
    "shortened": (edited(leaseDurationSeconds=1), CHANGED),
    "without duration": (edited(leaseDurationSeconds=None), CHANGED),
    "for ever": (edited(leaseDurationSeconds=2**31 - 1), CHANGED),
    "renewed in the future": (edited(renewTime="2040-01-01T00:00:00.000000Z"), CHANGED),
    "renewed at the end of time": (edited(renewTime=END_OF_TIME), CHANGED),
    "renewed long ago": (edited(renewTime="1970-01-01T00:00:00.000000Z"), CHANGED),
    "never renewed": (edited(renewTime=None, acquireTime=None), CHANGED),
    "with other transitions": (edited(leaseTransitions=99), CHANGED),
    "with a note": (annotated, CHANGED),
}


@pytest.mark.parametrize("what", KEPT)
async def test_a_leader_whose_lease_is_changed_by_hand_puts_it_right_and_leads_on(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    what: str,
) -> None:
    deed, line = KEPT[what]
    hold(api_server, "")
    async with (
        candidate(api_server, nursery, "us") as (elector, _),
        candidate(api_server, nursery, "other") as (other, _),
        elector.lead() as lead,
    ):
        if "taken" not in line:  # else the other would, if it were the first to look
            nursery.start_soon(other.run, Stage().body())
        await trio.sleep(5)
        log()
        deed(api_server)
        await trio.sleep(5)
        assert lead.is_held
        await trio.sleep(60)
        assert lead.is_held
        assert [each for each in log() if "'other'" not in each] == [line]
        spec = lease_in(api_server)
        assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("us", 15, 4)
        nursery.cancel_scope.cancel()


async def test_an_update_that_fails_once_is_told_and_leads_to_nothing_else(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as lead:
        log()
        api_server.fail_next(verb="update", status=500)
        await trio.sleep(5)
        assert lead.is_held
        (line,) = log()
        assert line.startswith(f"WARNING {LEASE} cannot be updated as it was, reading it: ")


async def test_an_outage_is_told_once_for_each_kind_of_failure_and_again_when_it_comes_again(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, wire), elector.lead() as lead:
        await trio.sleep(1)  # it renews every two seconds
        for _ in range(2):
            log()
            wire.fate = lambda request: "refuse"
            await trio.sleep(6)
            wire.fate = lambda request: "pass"
            await trio.sleep(6)
            reading, trying = log()
            assert reading.startswith(f"WARNING {LEASE} cannot be updated as it was, reading it: ")
            assert trying.startswith(f"WARNING {LEASE} cannot be renewed, trying again: ")
        assert lead.is_held


async def test_a_lease_that_is_deleted_and_cannot_be_created_is_created_with_the_next_renewal(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    async with candidate(api_server, nursery, "us") as (elector, _), elector.lead() as lead:
        log()
        deleted(api_server)
        api_server.fail_next(verb="create", status=500)
        await trio.sleep(5)
        assert lead.expires_at == pytest.approx(19, abs=0.1)
        failed, created = log()
        assert failed.startswith(f"WARNING {LEASE} cannot be renewed, trying again: ")
        assert created == f"WARNING {LEASE} was deleted by somebody else, 'us' has created it again"


TAKEN = {
    "given to somebody": (edited(holderIdentity="them"), "it is held by 'them'"),
    "had by another one, and released": (edited(holderIdentity="", leaseTransitions=5), "it was emptied"),
}


@pytest.mark.parametrize("what", TAKEN)
async def test_a_leader_whose_lease_another_one_had_by_hand_does_not_lead_any_more(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    what: str,
) -> None:
    deed, why = TAKEN[what]
    hold(api_server, "")
    async with candidate(api_server, nursery, "us") as (elector, _):
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=why):  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                await trio.sleep(5)
                log()
                deed(api_server)
                await trio.sleep_forever()
    assert trio.current_time() == 6
    assert log() == [f"ERROR {LEASE} 'us' does not lead any more: {why}; its body is cancelled"]
    assert lease_in(api_server).holder_identity != "us"


@pytest.mark.parametrize("deed", [deleted, edited(holderIdentity="them")], ids=["deleted", "given to somebody"])
async def test_a_lease_that_is_deleted_or_given_away_as_its_leader_ends_is_left_so(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    deed: Callable[[APIServer], object],
) -> None:
    """client-go: TestReleaseLeaseLeases"""
    async with candidate(api_server, nursery, "us") as (elector, _):
        async with elector.lead():
            deed(api_server)
            before = api_server.list(Lease)
        assert log()[1:] == [f"INFO {LEASE} 'us' does not hold it, nothing to release"]
    assert api_server.list(Lease) == before


async def test_an_observer_that_fails_is_told_of_even_if_the_body_fails_in_its_clean_up(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    def observe(leader: str) -> None:
        if leader == "them":
            raise KeyError(leader)

    async with candidate(api_server, nursery, "us", on_new_leader=observe) as (elector, _):
        with pytest.raises(ValueError, match="cleaning up failed") as info:  # noqa: PT012  # the block is what is cancelled
            async with elector.lead():
                log()
                edited(holderIdentity="them")(api_server)
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError("cleaning up failed")
    told = f"{LEASE} 'us' failed while renewing: KeyError('them')"
    assert info.value.__notes__ == [told]
    assert log()[-1] == f"ERROR {told}"


# --- changed by hand, seen by a candidate -----------------------------------------------------------------------------


async def test_a_candidate_that_saw_who_held_a_deleted_lease_gives_the_holder_time_to_come_back(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    hold(api_server, "them")
    leaders: list[str] = []
    async with candidate(api_server, nursery, "us", on_new_leader=leaders.append) as (elector, _):
        nursery.start_soon(elector.run, Stage().body())
        await trio.sleep(1)
        deleted(api_server)
        await trio.sleep(10)
        held, missing = log()
        assert held == f"INFO {LEASE} held by 'them', 'us' waits until it was not renewed for 15 s"
        assert missing.startswith(f"WARNING {LEASE} was deleted while 'them' held it, 'us' waits for another 1")
        hold(api_server, "them", renew_time=datetime(2026, 1, 1, tzinfo=UTC))  # the holder's next renewal, at last
        await trio.sleep(14)
        assert leaders == ["them"]
        assert log() == []
        await trio.sleep(8)
        (line,) = log()
        assert line.startswith(f"INFO {LEASE} 'us' leads now, transitions 4; 'them' has not renewed it for 1")
        nursery.cancel_scope.cancel()


async def test_a_candidate_takes_a_deleted_lease_when_its_time_is_over_and_counts_on(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    hold(api_server, "them")
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, stage.body())
        await trio.sleep(1)
        deleted(api_server)
        lead = await stage.wait_for("us")
        assert 15 <= trio.current_time() < 19.4
        assert lead.transitions == lease_in(api_server).lease_transitions == 4
        assert log()[2:] == [f"INFO {LEASE} 'us' leads now, transitions 4"]
        nursery.cancel_scope.cancel()


async def test_a_candidate_waits_for_as_long_as_the_lease_says_when_it_looks(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    hold(api_server, "them", lease_duration_seconds=2**31 - 1)
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, stage.body())
        await trio.sleep(3_600)
        assert stage.on_stage == []
        edited(leaseDurationSeconds=60)(api_server)
        await stage.wait_for("us")
        assert 3_660 <= trio.current_time() < 3_669
        *waits, leads = log()
        assert waits == [
            f"INFO {LEASE} held by 'them', 'us' waits until it was not renewed for {2**31 - 1:g} s",
            f"INFO {LEASE} held by 'them', 'us' waits until it was not renewed for 60 s",
        ]
        assert leads.startswith(f"INFO {LEASE} 'us' leads now, transitions 4; 'them' has not renewed it for 6")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("duration", [1, None])
async def test_a_lease_whose_duration_is_shortened_by_hand_makes_no_second_leader(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, duration: int | None
) -> None:
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (ours, _), candidate(api_server, nursery, "them") as (theirs, _):
        nursery.start_soon(ours.run, stage.body())
        lead = await stage.wait_for("us")
        nursery.start_soon(theirs.run, stage.body())
        for _ in range(10):
            await trio.sleep_until(lead.expires_at - 15 + 2.01)  # right after a renewal
            edited(leaseDurationSeconds=duration)(api_server)
            await trio.sleep(1.9)
            assert (stage.on_stage, ours.is_leader, theirs.is_leader) == (["us"], True, False)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "renew_time",
    [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
    ids=["none", "long ago", "end of time"],
)
@pytest.mark.parametrize("holder", ["them", "us"])
async def test_no_candidate_looks_at_what_a_lease_says_of_the_time(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    renew_time: datetime | None,
    holder: str,
) -> None:
    hold(api_server, holder, renew_time=renew_time, acquire_time=renew_time)
    async with candidate(api_server, nursery, "us", wall_clock=lambda: 1e9) as (elector, _), elector.lead():
        assert trio.current_time() == 0 if holder == "us" else 15 <= trio.current_time() < 19.4
        await trio.sleep(60)
        renewed = lease_in(api_server).renew_time
        assert renewed is not None
        assert 1e9 <= renewed.timestamp() < 1e9 + 1
        assert not [line for line in log() if not line.startswith("INFO")]


async def test_a_new_life_of_a_candidate_changes_the_lease_even_if_its_clock_stands_still(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    # Else those who watch would not see that somebody lives.
    for _ in range(3):
        async with candidate(api_server, nursery, "us", wall_clock=lambda: 1e9) as (elector, wire):
            before = lease_in(api_server) if api_server.list(Lease) else None
            with trio.CancelScope() as killed:
                async with elector.lead():
                    assert lease_in(api_server) != before
                    wire.fate = lambda _: "refuse"
                    killed.cancel()


# --- clocks that jump -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-86_400.0, -3_600.0, 3_600.0, 86_400.0])
@pytest.mark.parametrize("whose", ["leader's", "candidate's"])
async def test_a_wall_clock_that_jumps_changes_nothing(
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
        us.lead() as lead,
    ):
        nursery.start_soon(they.run, Stage().body())
        await trio.sleep(31)
        log()
        walls[whose] += jump
        for _ in range(60):
            await trio.sleep(1)
            assert lead.is_held
            assert lead.expires_at >= trio.current_time() + 12
        assert log() == []
        nursery.cancel_scope.cancel()


def test_the_clock_that_counts_the_sleep_of_a_machine_cannot_be_set() -> None:
    before = boot_clock()
    assert boot_clock() >= before
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert boot_clock() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)


@attrs.define
class Worker:
    """A body that does something every second, and looks whether it may."""

    steps: list[float] = attrs.field(factory=list)
    deeds: list[float] = attrs.field(factory=list)

    async def work(self, lead: Leadership) -> None:
        while True:
            self.steps.append(trio.current_time())
            if lead.is_held:
                self.deeds.append(trio.current_time())
            await trio.sleep(1)


@pytest.mark.parametrize("turn", range(10))  # trio lets tasks that wake at once run in an order that it draws
async def test_a_leader_that_stood_still_past_its_lease_takes_one_step_at_most_and_knows_better(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    turn: int,
) -> None:
    worker = Worker()

    async def stand_still() -> None:
        await trio.sleep(5.5)
        log()
        autojump_clock.jump(60)  # SIGSTOP and SIGCONT a minute later

    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(stand_still)
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=r"it was not renewed for 61\.5 s"):
            await elector.run(worker.work)
    assert worker.deeds == [0, 1, 2, 3, 4, 5]
    assert worker.steps in (worker.deeds, [*worker.deeds, 65.5])
    assert log() == [
        f"ERROR {LEASE} 'us' does not lead any more: it was not renewed for 61.5 s; its body is cancelled",
        f"INFO {LEASE} released by 'us'",
    ]


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("is_renewed", [True, False])
async def test_a_body_that_cleans_up_for_long_after_it_stood_still_is_told_loudly_unless_the_lease_was_renewed(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    is_renewed: bool,
    turn: int,
) -> None:
    overruns: list[float] = []

    async def stand_still() -> None:
        await trio.sleep(5.5)
        log()
        if not is_renewed:
            wire.fate = lambda _: "refuse"
        autojump_clock.jump(60)

    options = {"on_overrun": lambda: overruns.append(trio.current_time())}
    async with candidate(api_server, nursery, "us", **options) as (elector, wire):
        nursery.start_soon(stand_still)
        with pytest.raises(LeadershipLostError):
            await elector.run(Stage().body(clean_up=5))
    loud = [line for line in log() if line.startswith("CRITICAL")]
    if is_renewed:
        assert (overruns, loud) == ([], [])
    else:
        line = "the body of 'us' was cancelled and still runs, 61.6 s after the last renewal: others may lead now"
        assert (overruns, loud) == ([pytest.approx(65.6)], [f"CRITICAL {LEASE} {line}"])


async def test_a_leader_whose_machine_slept_knows_at_once_although_its_clock_did_not_move(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    slept, worker = 0.0, Worker()

    async def sleep() -> None:
        nonlocal slept
        await trio.sleep(4.5)
        log()
        slept = 60.0

    async with candidate(api_server, nursery, "us", boot_clock=lambda: slept + trio.current_time()) as (elector, _):
        nursery.start_soon(sleep)
        with trio.fail_after(100), pytest.raises(LeadershipLostError, match=r"it was not renewed for 62\.0 s"):
            await elector.run(worker.work)
    assert trio.current_time() == 6
    assert worker.deeds == [0, 1, 2, 3, 4]
    assert len(log()) == 2


async def test_a_candidate_that_stood_still_looks_before_it_takes_a_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, log: Callable[[], list[str]]
) -> None:
    hold(api_server, "them")
    stage = Stage()
    async with candidate(api_server, nursery, "us") as (elector, _):
        nursery.start_soon(elector.run, stage.body())
        await trio.sleep(1)
        edited(renewTime="2026-01-01T00:00:00.000000Z")(api_server)
        autojump_clock.jump(60)
        await trio.sleep(14)
        assert stage.on_stage == []
        await stage.wait_for("us")
        assert 76 <= trio.current_time() < 61 + 4.4 + 15 + 4.4
        nursery.cancel_scope.cancel()


# --- a client that others keep busy -----------------------------------------------------------------------------------


def only_leases_pass(request: httpx.Request) -> Fate:
    return "pass" if "/leases" in request.url.path else "swallow"


@asynccontextmanager
async def busy(server: APIServer, nursery: trio.Nursery, **client_options: Any) -> AsyncIterator[LeaderElector]:
    """A candidate, whose client is kept busy by two hundred tasks as soon as it has become the leader."""
    wire = Wire(server.http_transport(), nursery, fate=only_leases_pass)
    async with open_client(server.config, http_transport=wire, **client_options) as client:
        config_maps = client.api(ConfigMap, namespace=NAMESPACE)

        async def ask() -> None:
            await trio.sleep(1)
            await config_maps.get("x")

        async with trio.open_nursery() as crowd:
            for _ in range(200):
                crowd.start_soon(ask)
            yield LeaderElector(client, name=NAME, namespace=NAMESPACE, identity="us")
            crowd.cancel_scope.cancel()


@pytest.mark.parametrize("client_options", [{}, {"qps": 5.0, "burst": 5}], ids=["hundred hang", "qps used up"])
async def test_a_leader_whose_client_others_keep_busy_loses_in_time_and_says_so(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    log: Callable[[], list[str]],
    client_options: dict[str, Any],
) -> None:
    async with busy(api_server, nursery, **client_options) as elector:
        with pytest.raises(LeadershipLostError):
            await elector.run(Stage().body())
        assert trio.current_time() == pytest.approx(20, abs=0.1)  # 10 for a release that has no chance either
        no_answer = f"{LEASE[:-1]}: no answer came within 5 s"
        assert log()[1:] == [
            f"WARNING {LEASE} cannot be updated as it was, reading it: {no_answer}",
            f"ERROR {LEASE} 'us' does not lead any more: it was not renewed for 10.0 s; its body is cancelled",
            f"WARNING {LEASE} cannot be released, trying again: {no_answer}",
            f"WARNING {LEASE} could not be released by 'us'; it runs out by itself in 15 s",
        ]


async def test_a_leader_with_a_client_of_its_own_does_not_notice(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with busy(api_server, nursery), candidate(api_server, nursery, "us") as (elector, _):
        with trio.move_on_after(100) as scope:
            await elector.run(Stage().body())
        assert scope.cancelled_caught
        assert elector.statistics().failures == 0
