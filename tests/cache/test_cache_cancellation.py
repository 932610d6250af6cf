"""A cancelled informer leaves no task, no connection and no async generator.

Checked over real sockets with trio's instrumentation, at each point where an informer may wait.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from tests.support.loopback_server import EVENT, LIST_HEAD, POD, Exchange, LoopbackServer
from tests.support.scripted_list_watch import ScriptedListWatch, listing, pod
from trioformer import (
    ClusterConfig,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
    open_client,
)
from trioformer.models.core_v1 import Pod


@attrs.define(eq=False)
class Tasks(trio.abc.Instrument):
    """Records every task that was spawned and has not exited."""

    alive: set[trio.lowlevel.Task] = attrs.field(factory=set)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.alive.add(task)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self.alive.discard(task)


def suspended_generators() -> list[str]:
    """Return the suspended async generators, except those of open ``async with`` blocks."""
    gc.collect()
    return [
        obj.__qualname__
        for obj in gc.get_objects()
        if isinstance(obj, types.AsyncGeneratorType) and obj.ag_frame is not None and not obj.ag_running
        if not obj.__qualname__.startswith("open_")
    ]


@attrs.define(eq=False)
class Point:
    """A point at which the informer is cancelled."""

    reached: trio.Event = attrs.field(factory=trio.Event)

    async def wait_here(self) -> None:
        self.reached.set()
        await trio.sleep_forever()


class WaitingHandler(ResourceEventHandler[Pod]):
    def __init__(self, point: Point) -> None:
        self.point = point

    async def on_update(self, old: Pod, new: Pod) -> None:
        await self.point.wait_here()


async def before_the_response(exchange: Exchange, point: Point) -> None:
    await point.wait_here()


async def in_the_middle_of_a_page(exchange: Exchange, point: Point) -> None:
    await exchange.begin()
    await exchange.chunk(LIST_HEAD + POD + b"," + POD[:20])
    await point.wait_here()


async def between_two_pages(exchange: Exchange, point: Point) -> None:
    if "continue=" in exchange.target:
        await point.wait_here()
    await exchange.respond(LIST_HEAD.replace(b'"7"', b'"7","continue":"more"') + POD + b"]}")


async def in_a_watch_list(exchange: Exchange, point: Point) -> None:
    await exchange.begin()
    await exchange.chunk(EVENT)
    await exchange.chunk(EVENT[:30])
    await point.wait_here()


async def in_a_watch(exchange: Exchange, point: Point) -> None:
    if not exchange.is_watch:
        await exchange.respond(LIST_HEAD + POD + b"]}")
        return
    await exchange.begin()
    await exchange.chunk(EVENT)
    await exchange.chunk(EVENT[:30])
    await point.wait_here()


async def in_backoff_of_a_list(exchange: Exchange, point: Point) -> None:
    await exchange.respond(b"{}", 500)


async def in_backoff_of_a_watch(exchange: Exchange, point: Point) -> None:
    if exchange.is_watch:
        await exchange.respond(b"{}", 500)
    else:
        await exchange.respond(LIST_HEAD + POD + b"]}")


async def in_a_handler(exchange: Exchange, point: Point) -> None:
    if not exchange.is_watch:
        await exchange.respond(LIST_HEAD + POD + b"]}")
        return
    await exchange.begin()
    await exchange.chunk(EVENT)
    await trio.sleep_forever()


SCRIPTS = [
    before_the_response,
    in_a_watch_list,
    in_the_middle_of_a_page,
    between_two_pages,
    in_a_watch,
    in_backoff_of_a_list,
    in_backoff_of_a_watch,
    in_a_handler,
]
WITH_WATCH_LIST = {before_the_response, in_a_watch_list}
"""The scripts that respond to a watch-list; for the others the server does not support it."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.parametrize("by", ["an enclosing scope", "an error of another task"])
def test_nothing_is_left_after_a_cancellation(script: Callable[[Exchange, Point], Awaitable[None]], by: str) -> None:
    """client-go: TestShutdown, TestRunUntil"""
    tasks = Tasks()

    async def main() -> None:
        point = Point()

        async def respond(exchange: Exchange) -> None:
            if "sendInitialEvents=" in exchange.target and script not in WITH_WATCH_LIST:
                await exchange.respond(b"{}", 400)
            else:
                await script(exchange, point)

        server = LoopbackServer(respond)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            await trio.testing.wait_all_tasks_blocked()
            before = set(tasks.alive)
            async with open_client(ClusterConfig(server=server.url)) as client:
                factory = SharedInformerFactory(
                    client, options=ReflectorOptions(watch_error_handler=lambda error: point.reached.set())
                )
                handler = WaitingHandler(point if script is in_a_handler else Point())
                factory.informer(Pod).add_event_handler(handler)
                with (
                    pytest.RaisesGroup(ZeroDivisionError)
                    if by == "an error of another task"
                    else trio.CancelScope() as scope
                ):
                    async with trio.open_nursery() as own:
                        own.start_soon(factory.run)
                        await point.reached.wait()
                        await trio.testing.wait_all_tasks_blocked()
                        if isinstance(scope, trio.CancelScope):
                            scope.cancel()
                        else:
                            raise ZeroDivisionError
                # no checkpoint since factory.run returned
                assert {task.name for task in tasks.alive - before - server_tasks(nursery)} == set()
                assert suspended_generators() == []
            await server.wait_until_idle()
            nursery.cancel_scope.cancel()

    trio.run(main, instruments=[tasks])
    assert tasks.alive == set()


def server_tasks(nursery: trio.Nursery) -> set[trio.lowlevel.Task]:
    """Return all tasks in a nursery, and their descendants."""
    found: set[trio.lowlevel.Task] = set()
    for task in nursery.child_tasks:
        found.add(task)
        for child in task.child_nurseries:
            found |= server_tasks(child)
    return found


def test_nothing_is_left_when_it_is_cancelled_before_its_first_step() -> None:
    """client-go: TestShutdown"""
    tasks = Tasks()

    async def main() -> None:
        async with open_client(ClusterConfig(server="http://127.0.0.1:1")) as client:
            before = set(tasks.alive)
            factory = SharedInformerFactory(client)
            factory.informer(Pod)
            with trio.CancelScope() as scope:
                scope.cancel()
                await factory.run()
            assert tasks.alive == before
            assert suspended_generators() == []

    trio.run(main, instruments=[tasks])


async def test_the_end_of_a_subscription_removes_its_buffer(autojump_clock: trio.testing.MockClock) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(pod("a"))]))
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        with trio.move_on_after(1), informer.subscribe() as notifications:
            async for _ in notifications:
                pass
        assert informer.statistics().handlers_and_subscriptions == 0
        nursery.cancel_scope.cancel()
