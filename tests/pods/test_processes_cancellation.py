"""Processes, logs and ports, cancelled at every step: nothing is left on either side."""

from __future__ import annotations

import itertools
import os
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio

from tests.support.remains import (
    OPEN_FILES,
    Where,
    cancel_at_each_step,
    open_files,
    serving,
    wait_for_tasks_to_end,
)
from tests.support.scripted_http import AtStep
from trioformer.client import Api, Client
from trioformer.errors import ConnectionFailedError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import (
    PodProcess,
    attach_to_pod,
    connect_port,
    exec_in_pod,
    follow_logs,
    follow_logs_of,
    forward_port,
    interact,
    run_in_pod,
)
from trioformer.testing import APIServer, ScriptedConnection, ScriptedProcess

pytestmark = pytest.mark.skipif(not OPEN_FILES.exists(), reason="counts the file descriptors that Linux knows")

CLOSED = (trio.ClosedResourceError, trio.BrokenResourceError, ConnectionFailedError)
SPEC = {"nodeName": "node-1", "containers": [{"name": "main"}]}


class Played:
    """The processes of the server's side."""

    def __init__(self) -> None:
        self.running = 0
        self._ended = trio.Event()

    async def play(self, process: ScriptedProcess) -> int:
        """Return what is read on both outputs, and end with the input or at a full stop."""
        self.running += 1
        try:
            async for data in process.stdin:
                await process.stdout.send_all(data)
                await process.stderr.send_all(data)
                if b"." in data:
                    break
            await process.stdout.send_all(b"end")
            return 3
        finally:
            self.running -= 1
            self._ended.set()

    async def connect(self, connection: ScriptedConnection) -> None:
        """Return what is received."""
        self.running += 1
        try:
            async for data in connection:
                await connection.send_all(data)
        finally:
            self.running -= 1
            self._ended.set()

    async def wait_until_over(self) -> None:
        while self.running:
            self._ended = trio.Event()
            await self._ended.wait()


@pytest.fixture
def played(api_server: APIServer) -> Played:
    found = Played()
    for name in ("web-0", "web-1"):
        api_server.create(from_dict(Pod, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": SPEC}))
        scripted = api_server.script_pod(name)
        scripted.on_exec(found.play)
        scripted.on_attach(found.play)
        scripted.on_connect(7, found.connect)
        scripted.write_log("one", "two")
    return found


async def receive_all(stream: trio.abc.ReceiveStream | None) -> bytes:
    assert stream is not None
    return b"".join([data async for data in stream])


async def exchange(process: PodProcess) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive_all, process.stdout)
        nursery.start_soon(receive_all, process.stderr)
        await process.stdin.send_all(bytes(100_000))
        await process.stdin.aclose()
    await process.wait()


async def execute(pods: Api[Pod]) -> None:
    async with exec_in_pod(pods, "web-0", ["cat"], stdin=True) as process:
        await exchange(process)


async def attach(pods: Api[Pod]) -> None:
    async with attach_to_pod(pods, "web-0", container="main", stdin=True) as process:
        await exchange(process)


async def execute_on_a_terminal(pods: Api[Pod]) -> None:
    async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True, terminal_size=(80, 24)) as process:
        await process.resize(100, 50)
        await process.stdin.send_all(b".")
        await receive_all(process.stdout)
        await process.wait()


async def run_whole_command(pods: Api[Pod]) -> None:
    await run_in_pod(pods, "web-0", ["cat"], input=b"x", check=False)


async def follow_a_log(pods: Api[Pod]) -> None:
    async with follow_logs(pods, "web-0") as lines:
        assert [str(await anext(lines)) for _ in range(2)] == ["one", "two"]


async def follow_logs_of_pods(pods: Api[Pod]) -> None:
    async with follow_logs_of(pods, label_selector={"app": "web"}) as lines:
        assert sorted([str(await anext(lines)) for _ in range(4)]) == ["one", "one", "two", "two"]


async def connect_to_a_port(pods: Api[Pod]) -> None:
    async with connect_port(pods, "web-0", 7) as stream:
        await stream.send_all(bytes(10_000))
        await stream.send_eof()
        assert len(await receive_all(stream)) == 10_000


async def forward_a_port(pods: Api[Pod]) -> None:
    async with (
        forward_port(pods, "web-0", 7) as forward,
        await trio.open_tcp_stream(forward.host, forward.port) as stream,
    ):
        await stream.send_all(bytes(10_000))
        await stream.send_eof()
        assert len(await receive_all(stream)) == 10_000


OPERATIONS = [
    execute,
    attach,
    execute_on_a_terminal,
    run_whole_command,
    follow_a_log,
    follow_logs_of_pods,
    connect_to_a_port,
    forward_a_port,
]


def name_of(value: object) -> str:
    return str(getattr(value, "__name__", value))


@pytest.mark.parametrize(
    ("operation", "where"), [(execute, "memory"), *((each, "socket") for each in OPERATIONS)], ids=name_of
)
async def test_a_cancelled_process_leaves_nothing_on_either_side(
    operation: Callable[[Api[Pod]], Awaitable[object]], where: Where, played: Played, api_server: APIServer
) -> None:
    async with serving(where, api_server) as open_client:

        async def once() -> None:
            async with open_client() as client:
                await operation(client.api(Pod, namespace="default"))

        def check() -> None:
            assert played.running == 0

        assert await cancel_at_each_step(once, after_each=check) > 15


@pytest.mark.parametrize("operation", [execute, follow_logs_of_pods, connect_to_a_port, forward_a_port], ids=name_of)
async def test_a_client_is_as_good_as_before_after_each_cancellation(
    operation: Callable[[Api[Pod]], Awaitable[object]], played: Played, api_server: APIServer
) -> None:
    async with serving("socket", api_server) as open_client, open_client() as client:
        pods = client.api(Pod, namespace="default")
        for step in itertools.count(1):
            with trio.CancelScope() as scope, AtStep(step, scope.cancel):
                await operation(pods)
            await played.wait_until_over()
            assert [each for each in pool_of(client) if "idle" not in each] == []
            if not scope.cancel_called:
                break
        assert len(pool_of(client)) <= 2
        async with exec_in_pod(pods, "web-0", ["cat"], stdin=True):
            assert len([each for each in pool_of(client) if "idle" not in each]) == 1


@pytest.mark.parametrize("operation", [execute, execute_on_a_terminal], ids=name_of)
async def test_a_client_that_is_closed_at_any_step_ends_what_uses_it(
    operation: Callable[[Api[Pod]], Awaitable[object]], played: Played, api_server: APIServer
) -> None:
    async def operate(client: Client, done: trio.Event) -> None:
        # What had begun has lost its connection; everything else is refused.
        with suppress(*CLOSED):
            try:
                await operation(client.api(Pod, namespace="default"))
            except BaseExceptionGroup as group:
                assert group.split(CLOSED)[1] is None  # noqa: PT017  # both are right
        done.set()

    async with serving("socket", api_server) as open_client:
        tasks, files = trio.lowlevel.current_statistics().tasks_living, open_files()
        for step in itertools.count(1):
            done, closed = trio.Event(), trio.Event()
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery, open_client() as client:
                    nursery.start_soon(operate, client, done)
                    with AtStep(step, closed.set):
                        await first_of(closed, done)
                await wait_for_tasks_to_end(tasks)
            assert (played.running, open_files()) == (0, files)
            if not closed.is_set():
                break
        assert step > 5


async def first_of(*events: trio.Event) -> None:
    async with trio.open_nursery() as nursery:

        async def wait(event: trio.Event) -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        for each in events:
            nursery.start_soon(wait, each)


def pool_of(client: Client) -> list[str]:
    """Return the connections of a client, each with its state."""
    present = client._transport._generations.present
    found = [getattr(each, "connections", []) for each in (present.requests, present.watches)]
    return [repr(connection) for each in found for connection in each]


async def test_the_terminal_is_as_before_after_each_cancellation(played: Played, api_server: APIServer) -> None:
    user, program = os.openpty()
    os.set_blocking(user, False)
    before = termios.tcgetattr(program)

    def prepare() -> None:
        assert termios.tcgetattr(program) == before
        assert played.running == 0
        termios.tcflush(program, termios.TCIOFLUSH)
        os.write(user, b"ls\r.")

    async with serving("socket", api_server) as open_client:

        async def once() -> None:
            async with open_client() as client:
                pods = client.api(Pod, namespace="default")
                async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True) as process:
                    await interact(process, stdin=program, stdout=program)

        termios.tcflush(program, termios.TCIOFLUSH)
        os.write(user, b".")
        assert await cancel_at_each_step(once, after_each=prepare) > 30
    os.close(user)
    os.close(program)
