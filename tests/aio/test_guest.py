"""One guest run of trio for all doors of an asyncio loop: it starts, is shared, and ends in every way a loop can."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest
import trio
import trio.lowlevel
import trio.testing
import uvloop

from tests.support.asyncio_programs import check_nothing_remains, client_of, open_files, run, server_with
from tests.support.processes import ROOT
from trioformer import aio
from trioformer._doors._jobs import Job
from trioformer.aio import _guest
from trioformer.aio._guest import guest_of_loop
from trioformer.errors import CacheNotSyncedError
from trioformer.models.core_v1 import ConfigMap

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
NewLoop = Callable[[], asyncio.AbstractEventLoop]


async def forever() -> None:
    await trio.sleep_forever()


# --- opening and leaving


@LOOPS
def test_a_call_returns_its_result_and_raises_its_exception_as_it_is(new_loop: NewLoop) -> None:
    async def fail() -> None:
        async with trio.open_nursery():
            await trio.lowlevel.checkpoint()
        raise KeyError("x")

    async def main() -> None:
        async with guest_of_loop() as guest:
            assert await guest.call(trio.to_thread.run_sync, threading.get_ident) != threading.get_ident()
            with pytest.raises(KeyError, match="x"):
                await guest.call(fail)

    run(main, new_loop=new_loop)


def test_doors_of_one_loop_share_a_guest_and_the_last_one_ends_it() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            guest = client._door.guest
            async with AsyncExitStack() as stack:
                caches = [await stack.enter_async_context(aio.open_cache(ConfigMap, client=client)) for _ in range(9)]
                assert {cache._guest for cache in caches} == {guest}
                await asyncio.gather(*(cache.wait_until_synced() for cache in caches))
                assert [len(cache) for cache in caches] == [1] * 9
            assert trio.lowlevel.in_trio_run()
        check_nothing_remains()

    run(main)


def test_a_thousand_doors_one_after_another_leave_nothing() -> None:
    async def main() -> None:
        for _ in range(20):
            async with guest_of_loop() as guest:
                await guest.call(trio.sleep, 0)
        gc.collect()
        files, threads = open_files(), threading.active_count()
        for _ in range(1_000):
            async with guest_of_loop() as guest:
                await guest.call(trio.sleep, 0)
        gc.collect()
        assert open_files() == files
        assert threading.active_count() <= threads  # an idle thread of trio's cache ends after ten seconds

    run(main)


def test_a_door_can_be_opened_while_the_last_one_closes() -> None:
    async def main() -> None:
        first = guest_of_loop()
        old = await first.__aenter__()
        leaving = asyncio.ensure_future(first.__aexit__(None, None, None))
        await asyncio.sleep(0)
        assert old.is_ending
        assert not old.has_ended
        async with guest_of_loop() as new:
            assert new is not old
            assert old.has_ended
        await leaving

    run(main)


def test_a_door_can_be_left_in_another_task() -> None:
    async def main() -> None:
        server = server_with("a")
        stack = AsyncExitStack()

        async def enter() -> None:
            client = await stack.enter_async_context(client_of(server))
            cache = await stack.enter_async_context(aio.open_cache(ConfigMap, client=client))
            await cache.wait_until_synced()

        await asyncio.create_task(enter())
        await asyncio.create_task(stack.aclose())
        check_nothing_remains()

    run(main)


def test_cancelling_again_while_a_door_closes_does_not_leave_it_open() -> None:
    async def slow_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.05)
            ended.append(True)

    ended: list[bool] = []

    async def main() -> None:
        async def program() -> None:
            async with guest_of_loop() as guest:
                await guest.call(slow_end)

        task = asyncio.create_task(program())
        await asyncio.sleep(0.01)
        for _ in range(10):
            task.cancel()
            await asyncio.sleep(0.002)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    run(main)


@LOOPS
def test_a_program_can_be_cancelled_at_each_step_of_its_loop(new_loop: NewLoop) -> None:
    async def program() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            maps = client.api(ConfigMap, namespace="default")
            async with (
                aio.open_cache(ConfigMap, client=client) as cache,
                aio.open_cache(ConfigMap, client=client, namespace="default"),
            ):
                await cache.wait_until_synced()
                await maps.list()
                async with maps.watch() as events:
                    async for _ in events:
                        break
                async for _ in cache.subscribe():
                    break

    async def cancelled_after(steps: int) -> bool:
        """Return whether the program was cancelled before its end."""
        task = asyncio.ensure_future(program())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        check_nothing_remains()
        return task.cancelled()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        steps = 0
        while runner.run(cancelled_after(steps)):
            steps += 1
        assert steps > 30
        gc.collect()
        before = open_files()
        for step in range(steps):
            runner.run(cancelled_after(step))
        gc.collect()
        assert open_files() == before


def test_a_deadline_and_a_failed_neighbour_cancel_a_call() -> None:
    cancelled: list[str] = []

    async def wait(name: str) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled.append(name)
            raise

    async def fail() -> None:
        raise ValueError("neighbour")

    async def main() -> None:
        async with guest_of_loop() as guest:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await guest.call(wait, "deadline")
            with pytest.raises(ExceptionGroup) as raised:  # noqa: PT012
                async with asyncio.TaskGroup() as group:
                    group.create_task(guest.call(wait, "neighbour"))
                    group.create_task(fail())
            assert [type(error) for error in raised.value.exceptions] == [ValueError]
            assert cancelled == ["deadline", "neighbour"]

    run(main)


def test_a_call_that_is_still_running_ends_with_the_last_door() -> None:
    async def main() -> None:
        async with guest_of_loop() as guest:
            call = asyncio.ensure_future(guest.call(forever))
            await asyncio.sleep(0.01)
        with pytest.raises(trio.ClosedResourceError):
            await call

    run(main)


def test_a_call_that_ends_with_the_last_door_raises_no_exception_of_trio() -> None:
    async def in_nursery() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(forever)

    async def fail_at_end() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(forever)
            try:
                await forever()
            finally:
                raise ValueError("mine")

    async def main() -> None:
        async with guest_of_loop() as guest:
            calls = [asyncio.ensure_future(guest.call(each)) for each in (in_nursery, fail_at_end)]
            await asyncio.sleep(0.01)
        with pytest.raises(trio.ClosedResourceError):
            await calls[0]
        with pytest.raises(ExceptionGroup) as raised:
            await calls[1]
        assert [type(error) for error in raised.value.exceptions] == [ValueError]

    run(main)


def test_a_task_that_is_cancelled_while_the_last_door_closes_is_cancelled() -> None:
    async def slow_end() -> None:
        try:
            await forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.05)

    async def main() -> None:
        async with guest_of_loop() as guest:
            call = asyncio.ensure_future(guest.call(slow_end))
            await asyncio.sleep(0.01)
            call.cancel()
            await asyncio.sleep(0)
            assert not call.done()
        await asyncio.wait([call])
        assert call.cancelled()

    run(main)


def test_calls_leave_no_garbage() -> None:
    async def fail() -> None:
        raise ValueError

    async def main() -> None:
        gc.collect()
        async with guest_of_loop() as guest:
            gc.disable()
            try:
                for _ in range(10):
                    await guest.call(trio.lowlevel.checkpoint)
                    with contextlib.suppress(ValueError):
                        await guest.call(fail)
                assert sum(isinstance(each, Job) for each in gc.get_objects()) <= 1
            finally:
                gc.enable()

    run(main)


def test_context_variables_go_into_trio_and_do_not_come_back() -> None:
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")

    async def read() -> str:
        found = variable.get()
        variable.set("trio")
        return found

    async def main() -> None:
        async with guest_of_loop() as guest:
            variable.set("caller")
            assert await guest.call(read) == "caller"
            assert variable.get() == "caller"

    run(main)


# --- where a door is refused


def test_a_door_is_refused_in_trio() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"trioformer\.open_client"):
            async with guest_of_loop():
                pass

    trio.run(main)
    anyio.run(main, backend="trio")


def test_a_door_is_refused_without_a_loop() -> None:
    coroutine = _guest.Guest.join()
    with pytest.raises(RuntimeError, match="asyncio"):
        coroutine.send(None)


def test_the_functions_of_trio_are_refused_in_the_host() -> None:
    from trioformer import open_client

    async def main() -> None:
        async with guest_of_loop():
            with pytest.raises(RuntimeError, match=r"trioformer\.aio"):
                async with open_client():
                    pass

    run(main)


def test_a_client_of_asyncio_is_refused_in_a_trio_function() -> None:
    async def main() -> None:
        async with client_of(server_with("a")) as client:

            async def use(_: object) -> None:
                await client.api(ConfigMap, namespace="default").list()

            with pytest.raises(RuntimeError, match=r"trioformer\.aio"):
                await client.run(use)

    run(main)


def test_a_door_of_another_loop_is_refused_until_the_stopped_loop_is_closed() -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    door = guest_of_loop()
    first.run_until_complete(door.__aenter__())

    async def use_second() -> None:
        async with guest_of_loop() as guest:
            await guest.call(trio.sleep, 0)

    with pytest.raises(RuntimeError, match=r"another event loop .* 'spawn'"):
        second.run_until_complete(use_second())
    with pytest.warns(ResourceWarning):
        first.close()
    second.run_until_complete(use_second())
    second.close()


def test_a_door_is_refused_in_another_loop_than_its_own() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:

            async def elsewhere() -> None:
                with pytest.raises(RuntimeError, match="belongs to another"):
                    await client.api(ConfigMap, namespace="default").get("a")
                with pytest.raises(RuntimeError, match="belongs to another"):
                    await aio.start_cache(ConfigMap, client=client)

            await asyncio.to_thread(asyncio.run, elsewhere())
            assert (await client.api(ConfigMap, namespace="default").get("a")).name == "a"

    run(main)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_trio_finalizes_its_generators_in_each_run_of_the_loop() -> None:
    ended: list[type[BaseException] | None] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            try:
                await trio.lowlevel.checkpoint()
            except BaseException as error:
                ended.append(type(error))
                raise

    async def use() -> None:
        async for _ in numbers():
            break
        gc.collect()
        await trio.testing.wait_all_tasks_blocked()

    door = guest_of_loop()
    with asyncio.Runner() as runner:
        guest = runner.run(door.__aenter__())
        for _ in range(2):
            runner.run(guest.call(use))
        runner.run(door.__aexit__(None, None, None))
    assert ended == [trio.Cancelled] * 2


# --- loops that end with an open door


@LOOPS
def test_the_end_of_the_loop_closes_an_open_door_with_a_warning(new_loop: NewLoop) -> None:
    ended: list[bool] = []

    async def wait() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(True)

    async def main() -> None:
        guest = await _guest.Guest.join()
        guest.start(wait)
        await asyncio.sleep(0.01)

    with pytest.warns(ResourceWarning, match="aclose") as warned, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert len(warned) == 1
    assert ended == [True]
    assert not trio.lowlevel.in_trio_run()


def test_the_end_of_the_loop_closes_clients_and_caches_without_errors(caplog: pytest.LogCaptureFixture) -> None:
    opened: list[object] = []

    async def main() -> None:
        server = server_with("a")
        guest = await _guest.Guest.join()
        guest.start(server.run)
        manager = aio.open_client(server.config, http_transport=server.http_transport())
        client = await manager.__aenter__()
        cache = await aio.start_cache(ConfigMap, client=client)
        opened.extend([manager, cache])  # as attributes of an object that forgets to close them
        await cache.wait_until_synced()

    with pytest.warns(ResourceWarning, match="aclose") as warned:
        asyncio.run(main())
    assert len(warned) == 1
    assert not caplog.records
    assert not trio.lowlevel.in_trio_run()


@LOOPS
@pytest.mark.parametrize("is_busy", [True, False])
def test_closing_the_loop_closes_an_open_door_with_a_warning(new_loop: NewLoop, is_busy: bool) -> None:
    ended: list[bool] = []

    async def wait() -> None:
        try:
            while is_busy:
                await trio.lowlevel.checkpoint()
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.01)
            ended.append(True)

    async def use() -> None:
        async with guest_of_loop() as guest:
            await guest.call(trio.sleep, 0)

    async def main() -> None:
        guest = await _guest.Guest.join()
        guest.start(wait)
        await asyncio.sleep(0.01)

    loop = new_loop()
    loop.run_until_complete(main())
    before = open_files()
    with pytest.warns(ResourceWarning, match="aclose") as warned:
        loop.close()
    assert len(warned) == 1
    assert ended == [True]
    assert open_files() < before
    run(use, new_loop=new_loop)


@pytest.mark.filterwarnings("error::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("by_asyncio_run", [True, False])
def test_trio_ends_with_the_loop_where_the_warning_is_an_error(
    by_asyncio_run: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "asyncio")

    async def main() -> None:
        await _guest.Guest.join()

    if by_asyncio_run:
        asyncio.run(main())
    else:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
    assert not trio.lowlevel.in_trio_run()
    assert sys.get_asyncgen_hooks() == (None, None)


@pytest.mark.parametrize("asks_generators", [True, False])
def test_a_loop_of_another_thread_can_be_closed_with_a_warning(asks_generators: bool) -> None:
    def close() -> None:
        if asks_generators:
            loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), 5))
        loop.close()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(_guest.Guest.join(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    with pytest.warns(ResourceWarning, match="aclose"):
        close()


def test_closing_the_loop_ends_calls_into_the_host() -> None:
    errors: list[BaseException] = []

    async def endless() -> None:
        await asyncio.sleep(3600)

    async def main() -> None:
        guest = await _guest.Guest.join()

        async def call() -> None:
            try:
                await guest.hosted(endless)()
            except BaseException as error:
                errors.append(error)
                raise

        guest.start(call)
        await asyncio.sleep(0.01)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    with pytest.warns(ResourceWarning, match="aclose"):
        loop.close()
    assert len(errors) == 1
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio would log it at exit


def test_trio_that_dies_raises_in_each_call_and_cache() -> None:
    async def break_trio() -> None:
        async def die() -> None:
            raise ValueError("broken")

        trio.lowlevel.spawn_system_task(die)
        await trio.sleep_forever()

    async def main() -> None:
        server = server_with("a")
        stack = AsyncExitStack()
        guest = await stack.enter_async_context(guest_of_loop())
        client = await stack.enter_async_context(client_of(server))
        cache = await stack.enter_async_context(aio.open_cache(ConfigMap, client=client))
        await cache.wait_until_synced()
        assert len(cache) == 1
        reading = asyncio.ensure_future(anext(cache.subscribe()))
        await reading
        with pytest.raises(trio.ClosedResourceError):
            await guest.call(break_trio)
        with pytest.raises(CacheNotSyncedError):  # noqa: PT012
            while True:  # the informer ends soon
                cache.list()
                await asyncio.sleep(0)
        assert not cache.has_synced
        with pytest.raises(trio.TrioInternalError):
            await stack.aclose()

    asyncio.run(main())


# --- signals


def interrupted(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that prints a line when it is ready, and send it SIGINT."""
    with subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    return subprocess.CompletedProcess([], process.returncode, first + out, err)


def test_ctrl_c_ends_a_program_as_without_a_door() -> None:
    ended = interrupted("""
        import asyncio, trio
        from trioformer.aio._guest import guest_of_loop

        async def wait():
            try:
                await trio.sleep_forever()
            finally:
                print("trio ended")

        async def main():
            async with guest_of_loop() as guest:
                print("ready", flush=True)
                await guest.call(wait)

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert ended.stdout.splitlines() == ["ready", "trio ended", "interrupted"]
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_trio_does_not_take_over_sigint() -> None:
    async def main() -> None:
        async with guest_of_loop() as guest:
            await guest.call(trio.sleep, 0)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# --- calls into the host


def test_a_hosted_function_is_an_asyncio_task() -> None:
    async def inside(number: int) -> int:
        assert asyncio.current_task() is not None
        await asyncio.sleep(0)
        async with asyncio.timeout(1):
            await anyio.lowlevel.checkpoint()
        return number + 1

    async def main() -> None:
        async with guest_of_loop() as guest:
            assert await guest.call(guest.hosted(inside), 1) == 2

    run(main)


def test_cancelling_a_hosted_call_cancels_its_task_and_awaits_its_end() -> None:
    seen: list[str] = []

    async def inside() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            seen.append("ended")
            raise

    async def main() -> None:
        async with guest_of_loop() as guest:

            async def limited() -> None:
                with trio.move_on_after(0.01):
                    await guest.hosted(inside)()
                seen.append("after")

            await guest.call(limited)

    run(main)
    assert seen == ["ended", "after"]


def test_an_error_in_the_cleanup_of_a_cancelled_hosted_call_is_raised() -> None:
    async def inside() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise ValueError("cleanup")

    async def main() -> None:
        async with guest_of_loop() as guest:

            async def limited() -> None:
                with trio.move_on_after(0.01):
                    await guest.hosted(inside)()

            with pytest.raises(ValueError, match="cleanup"):
                await guest.call(limited)

    run(main)


def test_a_hosted_task_that_is_cancelled_by_its_own_program_is_an_error_in_trio() -> None:
    async def inside() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def main() -> None:
        async with guest_of_loop() as guest:
            with pytest.raises(RuntimeError, match="inside"):
                await guest.call(guest.hosted(inside))

    run(main)


def test_a_hosted_function_may_be_any_object_that_can_be_called() -> None:
    @dataclasses.dataclass(slots=True)  # neither hashable nor weakly referable, and without a name
    class Reconciler:
        calls: int = 0

        async def __call__(self) -> int:
            self.calls += 1
            if self.calls == 3:
                raise asyncio.CancelledError
            return self.calls

    async def main() -> None:
        async with guest_of_loop() as guest:
            once = guest.hosted(Reconciler())
            twice = guest.hosted(once)
            assert (await guest.call(once), await guest.call(twice)) == (1, 2)
            with pytest.raises(RuntimeError, match="Reconciler"):
                await guest.call(twice)

    run(main)


def test_an_eager_task_factory_does_not_start_hosted_tasks_inside_of_trio() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("needs eager tasks")

    async def inside() -> None:
        await anyio.lowlevel.checkpoint()

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        async with guest_of_loop() as guest:
            await guest.call(guest.hosted(inside))

    run(main)
