"""Controllers in an asyncio program: their functions are asyncio tasks that the controller owns."""

from __future__ import annotations

import asyncio
import logging

import anyio
import anyio.lowlevel
import pytest

from tests.support.asyncio_programs import client_of, run, server_with, until
from trioformer import ResourceEventHandler, aio
from trioformer.controller import Controller, Request
from trioformer.models.core_v1 import ConfigMap


def test_a_controller_reconciles_in_asyncio_and_knows_its_writes() -> None:
    made: list[Controller] = []
    finished = asyncio.Event()

    async def start_maps(context: aio.ManagerContext) -> Controller:
        maps = context.factory.informer(ConfigMap, namespace="default")

        async def reconcile(request: Request) -> None:
            assert asyncio.current_task() is not None
            await anyio.lowlevel.checkpoint()
            found = maps.lister.get(request)
            if found is not None and not found.data:
                api = context.client.api(ConfigMap)
                await asyncio.gather(api.patch(request, {"data": {"x": "1"}}))
            elif found is not None:
                finished.set()

        controller = Controller(context.name, reconcile, journal=True)
        controller.watch(maps)
        made.append(controller)
        return controller

    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            stop = asyncio.Event()
            running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}, stop=stop))
            await finished.wait()
            stop.set()
            await running
            first = made[0].journal(Request("default", "a"))[0]
            assert [write.method for write in first.writes] == ["PATCH"]
            assert server.get(ConfigMap, "a").data == {"x": "1"}

    run(main)


def test_a_call_is_cancelled_at_its_deadline_and_with_the_manager(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "trioformer")
    seen: list[str] = []

    async def start_maps(context: aio.ManagerContext) -> Controller:
        async def reconcile(request: Request) -> None:
            seen.append("begun")
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.01)
                seen.append("ended")

        controller = Controller(context.name, reconcile, reconcile_deadline=0.02)
        controller.watch(context.factory.informer(ConfigMap, namespace="default"))
        return controller

    async def main() -> None:
        async with client_of(server_with("a")) as client:
            running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}))
            await until(lambda: seen[:2] == ["begun", "ended"] and seen[-1] == "begun")
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert seen.count("begun") == seen.count("ended")

    run(main)


def test_errors_are_retried_and_reported_to_asyncio_functions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "trioformer")
    failures: list[str] = []
    succeeded = asyncio.Event()

    async def on_error(request: Request, error: Exception, then: str) -> None:
        await anyio.lowlevel.checkpoint()
        failures.append(f"{request.name} {error} {then}")

    async def start_maps(context: aio.ManagerContext) -> Controller:
        async def reconcile(request: Request) -> None:
            await asyncio.sleep(0)
            if not failures:
                raise ValueError("once")
            succeeded.set()

        controller = Controller(context.name, reconcile, on_error=on_error)
        controller.watch(context.factory.informer(ConfigMap, namespace="default"))
        return controller

    async def main() -> None:
        async with client_of(server_with("a")) as client, asyncio.TaskGroup() as group:
            running = group.create_task(aio.run_controllers(client, {"maps": start_maps}))
            await succeeded.wait()
            running.cancel()

    run(main)
    assert failures == ["a once retry"]


def test_handlers_are_asyncio_functions() -> None:
    seen: list[str] = []
    removed = asyncio.Event()

    class Handler(ResourceEventHandler[ConfigMap]):
        async def on_add(self, obj: ConfigMap, /, *, is_initial: bool) -> None:
            await asyncio.sleep(0)
            seen.append(f"add {obj.name} {is_initial}")

        async def on_update(self, old: ConfigMap, new: ConfigMap, /) -> None:
            await asyncio.sleep(0)
            seen.append(f"update {new.name}")

        async def on_delete(self, obj: ConfigMap, /, *, is_stale: bool) -> None:
            await asyncio.sleep(0)
            seen.append(f"delete {obj.name}")
            removed.set()

    async def start_maps(context: aio.ManagerContext) -> Controller | None:
        context.add_event_handler(context.factory.informer(ConfigMap, namespace="default"), Handler())
        return None

    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}))
            await until(lambda: bool(seen))
            server.patch(ConfigMap, "a", {"data": {"x": "1"}})
            await until(lambda: len(seen) == 2)
            server.delete(ConfigMap, "a", namespace="default")
            await removed.wait()
            running.cancel()
            await asyncio.wait([running])

    run(main)
    assert seen == ["add a True", "update a", "delete a"]


def test_the_same_controller_may_be_returned_again() -> None:
    controllers: list[Controller] = []
    calls: list[str] = []

    async def start_maps(context: aio.ManagerContext) -> Controller:
        if not controllers:

            async def reconcile(request: Request) -> None:
                await asyncio.sleep(0)
                calls.append(request.name)

            controllers.append(Controller(context.name, reconcile))
        controllers[0].add(Request("default", "a"))
        controllers[0].watch(context.factory.informer(ConfigMap, namespace="default"))
        return controllers[0]

    async def main() -> None:
        async with client_of(server_with("a")) as client:
            for number in (1, 2):
                running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}))
                await until(lambda: len(calls) >= number)  # noqa: B023
                running.cancel()
                await asyncio.wait([running])
                controllers[0]._watches.clear()

    run(main)


def test_an_initializer_that_fails_or_returns_something_else_ends_the_manager() -> None:
    async def fail(context: aio.ManagerContext) -> Controller:
        raise ValueError(context.name)

    async def wrong(context: aio.ManagerContext) -> Controller:
        return "controller"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    async def main() -> None:
        async with client_of(server_with()) as client:
            for initializer in (fail, wrong):
                with pytest.raises(ExceptionGroup) as raised:
                    await aio.run_controllers(client, {"maps": initializer})
                assert raised.group_contains((ValueError, TypeError))

    run(main)


def test_events_are_recorded() -> None:
    async def start_maps(context: aio.ManagerContext) -> Controller | None:
        assert (context.name, context.leadership) == ("maps", None)
        found = await context.client.api(ConfigMap).get("a", namespace="default")
        context.recorder.event(found, reason="Seen", action="Look", note="hello")
        return None

    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            stop = asyncio.Event()
            running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}, stop=stop))
            await until(lambda: bool(server.list("events.events.k8s.io")))
            stop.set()
            await running

    run(main)
