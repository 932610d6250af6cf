"""Managers of which only one may work: they take turns, and never work at once."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing

from tests.support.controllers import leaves
from tests.support.lease_candidates import NAME, NAMESPACE, create_lease, stored_lease
from tests.support.managers import Worker, starting
from trioformer import Client, SharedInformerFactory
from trioformer.leaderelection import LeaderElectionOptions, LeadershipLostError
from trioformer.manager import LeaderElection, ManagerContext, run_controllers
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


def election(identity: str) -> LeaderElection:
    return LeaderElection(NAME, NAMESPACE, identity)


async def test_a_standby_begins_when_the_leader_was_told_to_stop_and_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    diary: list[str] = []
    stops = [trio.Event(), trio.Event()]

    def holder() -> None:
        diary.append(f"the lease is {stored_lease(api_server).holder_identity}'s")

    for name, stop in zip("ab", stops, strict=True):
        worker = Worker(name, diary, end_after=20, on_end=holder)
        run = partial(run_controllers, client, starting(worker), leader_election=election(name), stop=stop)
        await nursery.start(run)  # it has started when it stands as a candidate
        await trio.sleep(1)
    await trio.sleep(99)
    stops[0].set()
    await trio.sleep(25)
    stops[1].set()
    await trio.sleep(25)
    begun = [line for line in diary if line.endswith("b begins")]
    assert diary == [
        "0 a begins",
        "101 a is stopped",
        "121 a ends",
        "the lease is a's",
        *begun,
        "126 b is stopped",
        "146 b ends",
        "the lease is b's",
    ]
    assert 121 <= float(begun[0].split()[0]) <= 121 + 4.4
    assert not stored_lease(api_server).holder_identity


async def test_who_waits_for_the_lease_is_stopped_at_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "somebody else")
    diary: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        await inner.start(
            partial(run_controllers, client, starting(Worker("a", diary)), leader_election=election("a"), stop=stop)
        )
        await trio.sleep(5)
        stop.set()
    assert trio.current_time() == 5
    assert diary == []
    assert stored_lease(api_server).holder_identity == "somebody else"


async def test_who_loses_the_lease_ends_its_controllers_without_grace_and_says_so(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    diary: list[str] = []
    worker = Worker("a", diary, end_after=100)

    async def take_away() -> None:
        await trio.sleep(10)
        api_server.patch(Lease, NAME, {"spec": {"holderIdentity": "somebody else"}}, namespace=NAMESPACE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_away)
        with pytest.raises(ExceptionGroup) as caught:
            await run_controllers(client, starting(worker), leader_election=election("a"))
    (error,) = leaves(caught.value)
    assert isinstance(error, LeadershipLostError)
    assert "the lease is held by 'somebody else'" in str(error)
    assert [line.split()[1:] for line in diary] == [["a", "begins"], ["a", "is", "cancelled"]]
    assert 10 <= trio.current_time() <= 12.5  # at the next renewal, and no 100 s later


async def test_the_lease_is_released_when_a_controller_fails(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    with pytest.raises(ExceptionGroup):
        await run_controllers(client, starting(Worker("a", [], fail_after=5)), leader_election=election("a"))
    assert trio.current_time() == 5
    assert not stored_lease(api_server).holder_identity


async def test_cancelled_its_controllers_end_before_the_lease_is_released(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    seen: list[str | None] = []
    worker = Worker("a", [], on_end=lambda: seen.append(stored_lease(api_server).holder_identity))
    with trio.move_on_after(10):
        await run_controllers(client, starting(worker), leader_election=election("a"))
    assert trio.current_time() == 10
    assert seen == ["a"]
    assert not stored_lease(api_server).holder_identity


async def test_a_standby_has_caches_that_were_asked_for_before(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "somebody else")
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    await nursery.start(partial(run_controllers, client, {}, leader_election=election("a"), factory=factory))
    assert informer.has_synced
    nursery.cancel_scope.cancel()


async def test_a_starter_is_given_the_term_that_its_controller_is_for(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "", lease_transitions=3)
    terms: list[tuple[str, int, bool]] = []

    async def note(context: ManagerContext) -> None:
        assert context.leadership is not None
        terms.append((context.leadership.identity, context.leadership.transitions, context.leadership.is_held))

    with trio.move_on_after(30):
        await run_controllers(client, {"note": note}, leader_election=election("a"))
    assert terms == [("a", 4, True)]


async def test_the_times_of_the_election_are_those_that_were_given(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    options = LeaderElectionOptions(lease_duration=30, renew_deadline=20)
    seconds: list[int | None] = []
    worker = Worker("a", [], on_end=lambda: seconds.append(stored_lease(api_server).lease_duration_seconds))
    with trio.move_on_after(1):
        await run_controllers(client, starting(worker), leader_election=LeaderElection(NAME, NAMESPACE, "a", options))
    assert seconds == [30]


async def test_a_lease_that_cannot_be_is_refused_before_anything_begins(client: Client) -> None:
    with pytest.raises(ValueError, match="the name of the lease must not be empty"):
        await run_controllers(client, {}, leader_election=LeaderElection("", NAMESPACE))
