"""The portal: a thread of trio that starts with the first door and ends with the last."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.support.asyncio_programs import config_map, server_with
from tests.support.processes import ROOT
from tests.support.thread_programs import client_of, name_in, portal_threads, running_thread
from trioformer import sync
from trioformer.errors import CacheNotSyncedError
from trioformer.models.core_v1 import ConfigMap
from trioformer.sync._portal import Portal, portal_of_process


def test_doors_share_a_portal_that_ends_with_the_last() -> None:
    assert not portal_threads()
    with portal_of_process() as one:
        with portal_of_process() as two:
            assert two is one
            assert len(portal_threads()) == 1
        assert len(portal_threads()) == 1
    assert not portal_threads()
    with portal_of_process() as three:
        assert three is not one
    assert not portal_threads()


def test_many_threads_open_and_close_doors() -> None:
    failures: list[BaseException] = []

    def use() -> None:
        try:
            for number in range(20):
                with portal_of_process() as portal:
                    assert portal.call(_double, number) == 2 * number
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert not portal_threads()


async def _double(number: int) -> int:
    await trio.lowlevel.checkpoint()
    return 2 * number


def test_exceptions_arrive_as_they_are() -> None:
    failure = LookupError("as it is")

    async def fail() -> None:
        raise failure

    with portal_of_process() as portal:
        with pytest.raises(LookupError) as caught:
            portal.call(fail)
        assert caught.value is failure


VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


def test_a_call_has_the_context_variables_of_its_caller() -> None:
    async def read() -> str:
        return VARIABLE.get()

    with portal_of_process() as portal:
        token = VARIABLE.set("set")
        assert portal.call(read) == "set"
        VARIABLE.reset(token)
        assert portal.call(read) == "unset"


def interrupted(function: Callable[[], object], reached: threading.Event) -> None:
    """Call a function, and press Ctrl-C when it has been reached."""

    def press() -> None:
        assert reached.wait(10)
        time.sleep(0.05)  # until this thread waits
        os.kill(os.getpid(), signal.SIGINT)

    with running_thread(press), pytest.raises(KeyboardInterrupt):
        function()


def test_ctrl_c_cancels_the_call_and_waits_for_its_end() -> None:
    steps: list[str] = []
    started = threading.Event()

    async def wait() -> None:
        try:
            started.set()
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.05)
            steps.append("ended")

    with portal_of_process() as portal:
        interrupted(lambda: portal.call(wait), started)
        assert steps == ["ended"]
        assert portal.call(_double, 1) == 2


def test_ctrl_c_cancels_a_context_manager_that_is_being_entered() -> None:
    steps: list[str] = []
    started = threading.Event()

    @asynccontextmanager
    async def manager() -> AsyncGenerator[Any, None]:
        try:
            started.set()
            await trio.sleep_forever()
            yield None
        finally:
            steps.append("ended")

    with portal_of_process() as portal:

        def enter() -> None:
            with portal.open(manager()):
                raise AssertionError

        interrupted(enter, started)
    assert steps == ["ended"]


def test_an_interruption_before_the_call_has_been_posted_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Portal, job: object) -> None:
        raise KeyboardInterrupt

    with portal_of_process() as portal:
        monkeypatch.setattr(Portal, "start", interrupt)
        with pytest.raises(KeyboardInterrupt):
            portal.call(_double, 1)


def test_a_context_manager_is_held_open_by_one_task_until_the_end_of_the_block() -> None:
    tasks: list[object] = []

    @asynccontextmanager
    async def manager() -> AsyncGenerator[Any, None]:
        tasks.append(trio.lowlevel.current_task())
        yield "value"
        tasks.append(trio.lowlevel.current_task())

    with portal_of_process() as portal:
        with portal.open(manager()) as value:
            assert (value, len(tasks)) == ("value", 1)
        assert tasks[0] is tasks[1]
        with pytest.raises(LookupError), portal.open(manager()):
            raise LookupError
        assert len(tasks) == 4


def test_a_context_manager_that_fails() -> None:
    @asynccontextmanager
    async def manager(fails_at_once: bool) -> AsyncGenerator[Any, None]:
        if not fails_at_once:
            yield None
        raise LookupError

    with portal_of_process() as portal:
        with pytest.raises(LookupError), portal.open(manager(fails_at_once=True)):
            raise AssertionError
        with pytest.raises(LookupError), portal.open(manager(fails_at_once=False)):
            pass


def test_a_call_that_waits_when_the_last_door_closes_is_cancelled() -> None:
    started = threading.Event()

    async def wait() -> None:
        started.set()
        await trio.sleep_forever()

    def call() -> None:
        with pytest.raises(trio.ClosedResourceError):
            portal.call(wait)

    with portal_of_process() as portal:
        with running_thread(call):
            assert started.wait(10)
            portal.leave()
        with pytest.raises(trio.ClosedResourceError):
            portal.call(wait)
        portal._users += 1
    assert not portal_threads()


async def test_a_call_in_trio_names_the_functions_of_trio() -> None:
    with pytest.raises(RuntimeError, match=r"trioformer\.open_client"), sync.open_client():
        raise AssertionError


def test_a_call_in_an_asyncio_loop_names_the_door_of_asyncio() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"trioformer\.aio"), sync.open_client():
            raise AssertionError
        with pytest.raises(RuntimeError, match=r"trioformer\.aio"):
            portal.call(_double, 1)
        assert await asyncio.to_thread(portal.call, _double, 1) == 2

    with portal_of_process() as portal:
        asyncio.run(main())


def test_a_call_of_trio_into_its_own_portal_does_not_hang() -> None:
    async def call_again() -> None:
        portal.call(_double, 1)

    with portal_of_process() as portal, pytest.raises(RuntimeError, match=r"trioformer\.open_client"):
        portal.call(call_again)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_when_trio_breaks_all_calls_and_reads_raise() -> None:
    started = threading.Event()
    server = server_with("a")

    async def wait() -> None:
        started.set()
        await trio.sleep_forever()

    def call() -> None:
        with pytest.raises(trio.ClosedResourceError):
            portal.call(wait)

    def break_trio() -> None:
        raise LookupError("a defect")

    portal = Portal.join()
    job, _ = portal.job(server.run)
    portal.start(job)
    opening = sync.open_client(server.config, http_transport=server.http_transport())
    client = opening.__enter__()
    cache = sync.start_cache(ConfigMap, client=client, namespace="default")
    cache.wait_until_synced()
    with running_thread(call):
        assert started.wait(10)
        portal.post(break_trio)
    with pytest.raises(trio.ClosedResourceError):
        portal.call(_double, 1)
    with pytest.raises(CacheNotSyncedError):
        cache.list()
    with pytest.raises(CacheNotSyncedError):
        cache.close()
    with portal_of_process() as other:  # a new one
        assert other.call(_double, 1) == 2


class _Deaf:
    """The token of a run that never calls what was posted."""

    def run_sync_soon(self, *args: object) -> None: ...


@pytest.mark.parametrize("starts", [False, True])
def test_a_call_raises_when_trio_cannot_start_or_dies(monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    dies = threading.Event()

    def run(main: Any, **kwargs: object) -> None:
        if starts:
            main.__self__._token = _Deaf()
            main.__self__._ready.set()
            assert dies.wait(10)
        raise OSError("too many open files")

    monkeypatch.setattr(trio, "run", run)
    with portal_of_process() as portal:

        def call() -> None:
            with pytest.raises(trio.ClosedResourceError) as raised:
                portal.call(_double, 1)
            assert isinstance(raised.value.__cause__, OSError)

        with running_thread(call):
            if starts:
                time.sleep(0.05)
            dies.set()


def test_a_block_that_the_garbage_collector_closes_in_the_portal_does_not_hang() -> None:
    def block() -> Any:
        with portal_of_process() as portal, portal.open(asynccontextmanager(_nothing)()):
            yield

    async def close() -> None:
        opened.close()

    with portal_of_process() as portal:
        opened = block()
        next(opened)
        portal.call(close)


def in_child(function: Callable[[], None]) -> None:
    """Call a function in a forked process, and check that it ends well."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(20)
            function()
            os.write(writing, b"well")
        except BaseException as error:  # noqa: BLE001  # shown in the parent
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        assert answer.read() == b"well"
    os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork_the_old_doors_refuse_and_new_doors_work() -> None:
    def child() -> None:
        for use in (
            lambda: api.get("a"),
            lambda: cache.list(),
            lambda: len(cache),
            lambda: cache.state,
            lambda: cache.has_synced,
            lambda: cache.subscribe(),
            lambda: next(subscription),
            lambda: next(iter(api.pages())),
            lambda: sync.open_cache(ConfigMap, client=client).__enter__(),
        ):
            with pytest.raises(RuntimeError, match=r"before fork\(\)"):
                use()
        cache.close()
        assert not portal_threads()
        with client_of(server_with("b")) as other:
            assert other.api(ConfigMap, namespace="default").get("b").name == "b"
        assert not portal_threads()

    with client_of(server_with("a")) as client:
        api = client.api(ConfigMap, namespace="default")
        with sync.open_cache(ConfigMap, client=client, namespace="default") as cache:
            subscription = cache.subscribe()
            assert name_in(next(subscription)) == "a"
            in_child(child)
            api.create(config_map("c"))
            assert name_in(next(subscription)) == "c"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_may_leave_the_blocks_of_its_parent() -> None:
    with portal_of_process() as portal:
        opened = portal.open(asynccontextmanager(_nothing)())
        opened.__enter__()

        def leave() -> None:
            opened.__exit__(None, None, None)
            portal.leave()

        in_child(leave)
        assert portal.call(_double, 1) == 2
        opened.__exit__(None, None, None)


async def _nothing() -> AsyncGenerator[None, None]:
    yield None


PROGRAM = """
import sys, trio
from trioformer.sync._portal import Portal
portal = Portal.join()
async def hold():
    try:
        await trio.sleep_forever()
    finally:
        print("closed", flush=True)
job, _ = portal.job(hold)
portal.start(job)
async def nothing(): await trio.sleep(0.01)
portal.call(nothing)
"""


def test_a_forgotten_door_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "closed\n"
    assert "ResourceWarning: the process ended while a client or a cache" in done.stderr


INTERRUPTED = """
import signal, time, trio
from trioformer.sync._portal import portal_of_process
with portal_of_process() as portal:
    def call(*_):
        portal.call(trio.lowlevel.checkpoint)
    def handle(*_):
        call()
        signal.setitimer(signal.ITIMER_REAL, 0.0002)
    signal.signal(signal.SIGALRM, handle)
    handle()
    ends = time.monotonic() + 2
    while time.monotonic() < ends:
        call()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGALRM")
def test_signal_handlers_that_use_doors_do_not_stop_the_program() -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, timeout=20, check=True)
