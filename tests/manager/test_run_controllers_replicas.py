"""What runs on replicas that do not lead; the caller's health checks; and event recorders, which end last."""

from __future__ import annotations

from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, create_lease
from tests.support.managers import Worker, initializing
from tests.support.raw_requests import pod
from trioformer import Client
from trioformer.controller import Controller, Request
from trioformer.manager import LeaderElection, ManagerContext, run_controllers
from trioformer.models.core_v1 import Pod
from trioformer.models.events_v1 import Event
from trioformer.testing import APIServer

ELECTION = LeaderElection(NAME, NAMESPACE, "a")


async def test_controllers_that_always_run_do_not_wait_for_the_lease(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "another")
    log: list[str] = []
    stop = trio.Event()
    workers = initializing(Worker("leading", log), Worker("serving", log, end_after=2))
    await nursery.start(
        partial(run_controllers, client, workers, always={"serving"}, leader_election=ELECTION, stop=stop)
    )
    await trio.sleep(5)
    assert log == ["0 serving starts"]
    await trio.sleep(95)
    leading = next(line for line in log if line.endswith("leading starts"))
    stop.set()
    await trio.sleep(10)
    assert log[:2] == ["0 serving starts", leading]
    assert sorted(log[2:]) == [
        "100 leading ends",
        "100 leading is stopped",
        "100 serving is stopped",
        "102 serving ends",
    ]


async def test_a_replica_that_never_leads_drains_what_always_runs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "another")
    log: list[str] = []
    stop = trio.Event()
    workers = initializing(Worker("leading", log), Worker("serving", log, end_after=2))
    async with trio.open_nursery() as inner:
        run = partial(run_controllers, client, workers, always={"serving"}, leader_election=ELECTION, stop=stop)
        await inner.start(run)
        await trio.sleep(5)
        stop.set()
    assert log == ["0 serving starts", "5 serving is stopped", "7 serving ends"]


async def test_without_an_election_the_callers_order_is_kept(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    log: list[str] = []
    workers = initializing(*(Worker(name, log) for name in "abc"))
    await nursery.start(partial(run_controllers, client, workers, always={"c"}, start_interval=1))
    assert [line.split()[1] for line in log] == ["a", "b", "c"]
    nursery.cancel_scope.cancel()


async def test_a_warm_replica_has_its_caches_before_it_leads(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    create_lease(api_server, "another")
    api_server.create(pod("web-0"))
    contexts: list[ManagerContext] = []
    reconciled: list[tuple[str, bool]] = []

    async def start(context: ManagerContext) -> Controller:
        contexts.append(context)
        assert context.leadership is None

        async def reconcile(request: Request) -> None:
            reconciled.append((request.name, context.leadership is not None and context.leadership.is_held))

        controller = Controller(context.name, reconcile)
        controller.watch(context.factory.informer(Pod))
        return controller

    await nursery.start(partial(run_controllers, client, {"pods": start}, leader_election=ELECTION, warm_up=True))
    await trio.sleep(5)
    (context,) = contexts
    assert [obj.name for obj in context.factory.informer(Pod).lister.list()] == ["web-0"]
    assert reconciled == []
    await trio.sleep(95)
    assert len(contexts) == 1
    assert reconciled == [("web-0", True)]
    with pytest.raises(AttributeError):
        context.name = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # the mistake
    nursery.cancel_scope.cancel()


async def test_a_warm_replica_can_be_stopped_while_it_waits(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    create_lease(api_server, "another")
    log: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        workers = initializing(Worker("a", log))
        run = partial(run_controllers, client, workers, leader_election=ELECTION, warm_up=True, stop=stop)
        await inner.start(run)
        await trio.sleep(5)
        stop.set()
    assert (trio.current_time(), log) == (5, [])


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_events_of_the_last_reconcile_are_written(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, is_cancelled: bool
) -> None:
    api_server.create(pod("web-0"))
    stop = trio.Event()

    async def start(context: ManagerContext) -> Controller:
        pods = context.factory.informer(Pod)

        async def reconcile(request: Request) -> None:
            web = pods.lister.get(request.name, namespace=request.namespace)
            assert web is not None
            try:
                await trio.sleep(10)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)
                context.recorder.event(web, reason="Ended", action="Reconcile", note="in the last moment")

        controller = Controller(context.name, reconcile)
        controller.watch(pods)
        return controller

    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, {"the pods!": start}, stop=stop))
        await trio.sleep(5)
        if is_cancelled:
            inner.cancel_scope.cancel()
        stop.set()
    (event,) = api_server.list(Event)
    assert (event.reporting_controller, event.note) == ("the-pods", "in the last moment")


async def test_the_callers_checks_are_served(api_server: APIServer, client: Client) -> None:
    problem = ""

    def broken() -> str:
        raise ConnectionError("no route\nto the database")

    def wrong() -> str:
        return None  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # the mistake

    run = partial(
        run_controllers,
        client,
        {},
        http="127.0.0.1:0",
        checks={"database": lambda: problem, "broken": broken, "wrong": wrong},
        live_checks={"loop": lambda: ""},
    )
    async with trio.open_nursery() as inner:
        url = await inner.start(run)
        async with httpx.AsyncClient(base_url=url) as http:

            async def get(path: str) -> tuple[int, str]:
                response = await http.get(path)
                return response.status_code, response.text

            assert await get("/readyz/database") == (200, "ok")
            assert await get("/healthz/loop") == (200, "ok")
            assert (await get("/healthz/database"))[0] == 404
            problem = "it refuses connections"
            assert await get("/readyz/database") == (500, "internal server error: it refuses connections\n")
            text = "internal server error: the check raised ConnectionError: no route to the database\n"
            assert await get("/readyz/broken") == (500, text)
            text = "internal server error: the check returned NoneType, not a string\n"
            assert await get("/readyz/wrong") == (500, text)
            assert (await get("/healthz"))[0] == 200
        inner.cancel_scope.cancel()


async def test_names_of_checks_and_of_what_always_runs_are_checked(client: Client) -> None:
    workers = initializing(Worker("pods", []))
    with pytest.raises(ValueError, match="unknown controllers in always: 'nodes'; known controllers: pods"):
        await run_controllers(client, workers, always=["nodes"])
    with pytest.raises(ValueError, match="'pods' is not a valid name for a check: a controller has this name"):
        await run_controllers(client, workers, checks={"pods": lambda: ""})
    with pytest.raises(ValueError, match="'ping' is not a valid name for a check: it is reserved"):
        await run_controllers(client, workers, live_checks={"ping": lambda: ""})
