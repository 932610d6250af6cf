"""Replicas of a manager with leader election: the controllers of only one run at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, create_lease, stored_lease
from tests.support.managers import Worker, initializing
from tests.support.raw_requests import pod
from trioformer import Client, SharedInformerFactory, open_client
from trioformer.client import ClientOptions
from trioformer.controller import Controller, Request
from trioformer.leaderelection import LeaderElectionOptions, LeadershipLostError
from trioformer.manager import LeaderElection, ManagerContext, run_controllers
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer
from trioformer.transport import TokenBucketRateLimiter


def election(identity: str) -> LeaderElection:
    return LeaderElection(NAME, NAMESPACE, identity)


async def test_a_standby_starts_when_the_leader_was_stopped_and_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    log: list[str] = []
    stops = [trio.Event(), trio.Event()]

    def record_holder() -> None:
        log.append(f"the lease is {stored_lease(api_server).holder_identity}'s")

    for name, stop in zip("ab", stops, strict=True):
        worker = Worker(name, log, end_after=20, on_end=record_holder)
        run = partial(run_controllers, client, initializing(worker), leader_election=election(name), stop=stop)
        await nursery.start(run)  # started when it is a candidate
        await trio.sleep(1)
    await trio.sleep(99)
    stops[0].set()
    await trio.sleep(25)
    stops[1].set()
    await trio.sleep(25)
    started = [line for line in log if line.endswith("b starts")]
    assert log == [
        "0 a starts",
        "101 a is stopped",
        "121 a ends",
        "the lease is a's",
        *started,
        "126 b is stopped",
        "146 b ends",
        "the lease is b's",
    ]
    assert 121 <= float(started[0].split()[0]) <= 121 + 4.4
    assert not stored_lease(api_server).holder_identity


async def test_a_manager_that_waits_for_the_lease_stops_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "another")
    log: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        await inner.start(
            partial(run_controllers, client, initializing(Worker("a", log)), leader_election=election("a"), stop=stop)
        )
        await trio.sleep(5)
        stop.set()
    assert trio.current_time() == 5
    assert log == []
    assert stored_lease(api_server).holder_identity == "another"


@pytest.mark.parametrize("more", [{}, {"http": "127.0.0.1:0"}, {"always": ["a-always"]}])
async def test_a_lost_lease_cancels_controllers_without_grace_and_raises(
    more: dict[str, Any], autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    log: list[str] = []
    workers = [Worker(name, log, end_after=100) for name in ("a", *more.get("always", ()))]

    async def assign_to_another() -> None:
        await trio.sleep(10)
        api_server.patch(Lease, NAME, {"spec": {"holderIdentity": "another"}}, namespace=NAMESPACE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(assign_to_another)
        with pytest.raises(ExceptionGroup) as caught:
            await run_controllers(client, initializing(*workers), leader_election=election("a"), **more)
    (error,) = caught.value.exceptions  # in one group, not in several
    assert isinstance(error, LeadershipLostError)
    assert "the lease is held by 'another'" in str(error)
    events = [line.split()[1:] for line in log]
    assert [words for words in events if words[0] == "a"] == [["a", "starts"], ["a", "is", "cancelled"]]
    assert 10 <= trio.current_time() <= 12.5  # at the next renewal, not 100 s later


@attrs.define(eq=False)
class RecordingTransport(httpx.AsyncBaseTransport):
    """Records the user agents of the requests for Leases and for other objects."""

    inner: httpx.AsyncBaseTransport
    of_leases: set[str] = attrs.field(factory=set)
    of_others: set[str] = attrs.field(factory=set)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        seen = self.of_leases if "/leases" in request.url.path else self.of_others
        seen.add(request.headers["user-agent"])
        return await self.inner.handle_async_request(request)


async def test_busy_controllers_do_not_delay_the_renewals_of_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async def reconcile(request: Request) -> None:
        while True:
            await context_client.api(Pod, "default").list()

    async def start(context: ManagerContext) -> Controller:
        nonlocal context_client
        context_client = context.client
        controller = Controller("busy", reconcile, workers=24)
        controller.watch(context.factory.informer(Pod))
        return controller

    for number in range(24):
        api_server.create(pod(f"p{number}"))
    recorded = RecordingTransport(api_server.http_transport())
    async with open_client(
        api_server.config,
        http_transport=recorded,
        rate_limiter=TokenBucketRateLimiter(qps=5, burst=10),
        options=ClientOptions(user_agent="mine/1"),
    ) as client:
        context_client, stop = client, trio.Event()
        with trio.move_on_after(120) as scope:
            await run_controllers(client, {"busy": start}, leader_election=election("a"), stop=stop)
        assert context_client is client
    assert scope.cancelled_caught
    assert trio.current_time() == 120
    assert recorded.of_leases == {"mine/1/leader-election"}
    assert recorded.of_others == {"mine/1"}


async def test_an_election_with_a_client_of_its_own_uses_that(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    recorded = RecordingTransport(api_server.http_transport())
    async with open_client(
        api_server.config, http_transport=recorded, options=ClientOptions(user_agent="given/1")
    ) as given:
        with trio.move_on_after(10):
            await run_controllers(
                client, initializing(Worker("a", [])), leader_election=attrs.evolve(election("a"), client=given)
            )
    assert recorded.of_leases == {"given/1"}
    assert recorded.of_others == set()


async def test_the_lease_is_released_when_a_controller_fails(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    with pytest.raises(ExceptionGroup):
        await run_controllers(client, initializing(Worker("a", [], fail_after=5)), leader_election=election("a"))
    assert trio.current_time() == 5
    assert not stored_lease(api_server).holder_identity


async def test_after_cancellation_controllers_end_before_the_lease_is_released(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    seen: list[str | None] = []
    worker = Worker("a", [], on_end=lambda: seen.append(stored_lease(api_server).holder_identity))
    with trio.move_on_after(10):
        await run_controllers(client, initializing(worker), leader_election=election("a"))
    assert trio.current_time() == 10
    assert seen == ["a"]
    assert not stored_lease(api_server).holder_identity


async def test_a_standby_syncs_informers_that_were_requested_before(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "another")
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    await nursery.start(partial(run_controllers, client, {}, leader_election=election("a"), factory=factory))
    assert informer.has_synced
    nursery.cancel_scope.cancel()


async def test_an_initializer_receives_the_current_leadership(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "", lease_transitions=3)
    leaderships: list[tuple[str, int, bool]] = []

    async def note(context: ManagerContext) -> None:
        assert context.leadership is not None
        leaderships.append((context.leadership.identity, context.leadership.transitions, context.leadership.is_held))

    with trio.move_on_after(30):
        await run_controllers(client, {"note": note}, leader_election=election("a"))
    assert leaderships == [("a", 4, True)]


async def test_the_election_uses_the_given_options(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    options = LeaderElectionOptions(lease_duration=30, renew_deadline=20)
    seconds: list[int | None] = []
    worker = Worker("a", [], on_end=lambda: seconds.append(stored_lease(api_server).lease_duration_seconds))
    with trio.move_on_after(1):
        await run_controllers(
            client, initializing(worker), leader_election=LeaderElection(NAME, NAMESPACE, "a", options)
        )
    assert seconds == [30]


async def test_an_invalid_lease_name_raises_before_anything_starts(client: Client) -> None:
    with pytest.raises(ValueError, match="the name of the lease must not be empty"):
        await run_controllers(client, {}, leader_election=LeaderElection("", NAMESPACE))
