"""Commands in containers and the processes that they run: streams, exit codes and errors, in memory and on a socket."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.pods.conftest import either, pod
from trioformer.client import Api, Client
from trioformer.errors import BadRequestError, ConnectionFailedError, InternalServerError, NotFoundError
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.pods import attach_to_pod, exec_in_pod
from trioformer.testing import APIServer, ScriptedPod, ScriptedProcess

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
MIB = 1024 * 1024


async def receive_all(stream: trio.abc.ReceiveStream | None) -> bytes:
    assert stream is not None
    return b"".join([data async for data in stream])


async def cat(process: ScriptedProcess) -> None:
    async for data in process.stdin:
        await process.stdout.send_all(data)


both = pytest.mark.parametrize("is_socket", [False, True])


# --- streams and exit codes ---


@both
async def test_a_command_has_its_output_and_its_exit_code(
    is_socket: bool, web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    web.script_command(["ls", "-l", "/a b"], stdout="one\n", stderr=b"\xff", exit_code=3)
    async with (
        either(is_socket, api_server, pods) as api,
        exec_in_pod(api, "web-0", ["ls", "-l", "/a b"]) as process,
    ):
        with pytest.raises(RuntimeError, match="this process has no stdin: pass stdin=True"):
            process.stdin  # noqa: B018  # reading it raises
        assert await receive_all(process.stdout) == b"one\n"
        assert await receive_all(process.stderr) == b"\xff"
        assert (await process.wait(), process.exit_code) == (3, 3)


async def test_a_process_reads_its_input_until_that_is_closed(
    web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    web.on_exec(cat)
    sent = bytes(range(256)) * 4096 * 4
    received = b""
    async with (
        either(True, api_server, pods) as api,
        exec_in_pod(api, "web-0", ["cat"], stdin=True) as process,
    ):
        stdin = process.stdin

        async def send() -> None:
            await stdin.send_all(sent)
            await stdin.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            received = await receive_all(process.stdout)
        assert await process.wait() == 0
    assert received == sent


async def test_outputs_are_read_in_any_order(web: ScriptedPod, api_server: APIServer, pods: Api[Pod]) -> None:
    async def write(process: ScriptedProcess) -> None:
        for _ in range(3):
            await process.stderr.send_all(b"e" * 100_000)
            await process.stdout.send_all(b"o" * 100_000)

    web.on_exec(write)
    async with either(True, api_server, pods) as api:
        async with exec_in_pod(api, "web-0", ["x"]) as process:
            assert await process.wait() == 0
            assert await receive_all(process.stdout) == b"o" * 300_000
            assert await receive_all(process.stderr) == b"e" * 300_000
        async with exec_in_pod(api, "web-0", ["x"]) as process, trio.open_nursery() as nursery:
            found: dict[str, bytes] = {}

            async def keep(name: str, stream: trio.abc.ReceiveStream | None) -> None:
                found[name] = await receive_all(stream)

            nursery.start_soon(keep, "stdout", process.stdout)
            nursery.start_soon(keep, "stderr", process.stderr)
        assert found == {"stdout": b"o" * 300_000, "stderr": b"e" * 300_000}


async def test_output_that_nobody_reads_blocks_the_process(
    web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    written = 0

    async def write(process: ScriptedProcess) -> None:
        nonlocal written
        for _ in range(100):
            await process.stderr.send_all(bytes(MIB // 10))
            written += MIB // 10
        await process.stdout.send_all(b"end")

    web.on_exec(write)
    async with exec_in_pod(pods, "web-0", ["x"]) as process, trio.open_nursery() as nursery:
        nursery.start_soon(process.wait)
        await trio.sleep(10)
        assert written < 4 * MIB
        await process.stderr.aclose()
        assert await receive_all(process.stdout) == b"end"
        with pytest.raises(trio.ClosedResourceError):
            await process.stderr.receive_some()
    assert written == 100 * (MIB // 10)


async def test_a_stream_has_one_task_for_each_direction(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def wait(process: ScriptedProcess) -> None:
        await process.wait_resized()

    web.on_exec(wait)
    async with exec_in_pod(pods, "web-0", ["x"], stdin=True, tty=True) as process:
        stdin, stdout = process.stdin, process.stdout
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stdout.receive_some)
            nursery.start_soon(stdin.send_all, bytes(10 * MIB))
            await wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                await stdout.receive_some()
            with pytest.raises(trio.BusyResourceError):
                await stdin.send_all(b"x")
            nursery.cancel_scope.cancel()
        with pytest.raises(trio.BrokenResourceError):  # a part of a message has been sent
            await stdin.send_all(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await stdout.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await stdin.send_all(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await process.wait()


async def test_a_terminal_has_a_size_and_no_standard_error(web: ScriptedPod, pods: Api[Pod]) -> None:
    sizes: list[tuple[int, int]] = []

    async def top(process: ScriptedProcess) -> None:
        assert process.tty
        await process.stderr.send_all(b"nobody sees this")
        sizes.append(await process.wait_resized())
        await process.stdout.send_all(b"!")
        await process.wait_resized()
        sizes.extend(process.sizes)

    web.on_exec(top)
    async with exec_in_pod(pods, "web-0", ["top"], tty=True, terminal_size=(80, 24)) as process:
        with pytest.raises(RuntimeError, match="has no stderr"):
            process.stderr  # noqa: B018  # reading it raises
        assert await process.stdout.receive_some() == b"!"
        await process.resize(132, 50)
        assert await process.wait() == 0
    assert sizes == [(80, 24), (80, 24), (132, 50)]


# --- attach ---


async def test_who_attaches_receives_what_the_container_writes_until_it_ends(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.write_log("before")
    async with attach_to_pod(pods, "web-0") as process, trio.open_nursery() as nursery:
        found: list[bytes] = []

        async def read() -> None:
            found.extend([data async for data in process.stdout])

        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        web.write_log("one")
        await wait_all_tasks_blocked()
        web.end(exit_code=7)
        assert await process.wait() == 0
    assert found == [b"one\n"]


# --- errors ---


async def test_what_cannot_be_executed_is_an_error(web: ScriptedPod, api_server: APIServer, pods: Api[Pod]) -> None:
    api_server.create(pod("two", "a", "b"))
    api_server.create(pod("ended"))
    api_server.script_pod("ended").end()
    api_server.create(pod("unscheduled", node=""))
    async with either(True, api_server, pods) as api:
        for name, container, kind, text in [
            ("none", None, NotFoundError, 'exec in pods/none in namespace default: pods "none" not found'),
            ("two", None, BadRequestError, r"a container name must be specified for pod two, choose one of: \[a b\]"),
            ("web-0", "other", BadRequestError, "container other is not valid for pod web-0"),
            ("unscheduled", None, BadRequestError, "pod unscheduled does not have a host assigned"),
        ]:
            with pytest.raises(kind, match=text):
                async with exec_in_pod(api, name, ["true"], container=container):
                    pytest.fail("it was executed")
        for name, text in [
            ("web-0", 'exec: "true": executable file not found'),
            ("ended", r'container not found \("main"\)'),
        ]:
            async with exec_in_pod(api, name, ["true"], stdin=True) as process:
                with pytest.raises(InternalServerError, match=text):
                    await process.wait()
                with pytest.raises(trio.BrokenResourceError, match=text) as raised:
                    await process.stdout.receive_some()
                assert isinstance(raised.value.__cause__, InternalServerError)
                with pytest.raises(trio.BrokenResourceError):
                    await process.stdin.send_all(b"x")


async def test_the_container_is_that_of_the_annotation(api_server: APIServer, pods: Api[Pod]) -> None:
    api_server.create(pod("annotated", "a", "b", annotations={DEFAULT_CONTAINER: "b"}))
    scripted = api_server.script_pod("annotated")
    scripted.script_command(["where"], stdout="a", container="a")
    scripted.script_command(["where"], stdout="b", container="b")
    async with exec_in_pod(pods, "annotated", ["where"]) as process:
        assert await receive_all(process.stdout) == b"b"
    async with exec_in_pod(pods, "annotated", ["where"], container="a") as process:
        assert await receive_all(process.stdout) == b"a"


async def test_wrong_arguments_are_refused_before_a_request(
    api_server: APIServer, client: Client, pods: Api[Pod]
) -> None:
    wrong: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (TypeError, r"write \['sh', '-c', 'ls /'\]", "ls /", {}),
        (ValueError, "must not be empty", [], {}),
        (ValueError, "must not contain a NUL", ["ls", "a\0b"], {}),
        (ValueError, "one of stdin, stdout and stderr", ["ls"], {"stdout": False, "stderr": False}),
        (ValueError, "pass tty=True", ["ls"], {"terminal_size": (1, 1)}),
    ]
    for kind, text, command, given in wrong:
        with pytest.raises(kind, match=text):
            async with exec_in_pod(pods, "web-0", command, **given):
                pytest.fail("it was executed")
    with pytest.raises(TypeError, match=r"exec_in_pod\(\) is for pods"):
        async with exec_in_pod(client.api(ConfigMap, namespace="default"), "x", ["ls"]):  # type: ignore[misc]  # that is the test
            pytest.fail("it was executed")
    assert [each for each in api_server.requests if each.subresource] == []


# --- ends ---


async def test_the_end_of_the_block_ends_the_process_of_the_server(web: ScriptedPod, pods: Api[Pod]) -> None:
    ended = trio.Event()

    async def wait(process: ScriptedProcess) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    web.on_exec(wait)
    async with exec_in_pod(pods, "web-0", ["sleep"]):
        await wait_all_tasks_blocked()
        assert not ended.is_set()
    await ended.wait()


async def test_a_connection_that_ends_before_the_process_is_an_error(
    web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    async def break_off(process: ScriptedProcess) -> None:
        await process.stdout.send_all(b"half")
        await process.disconnect()

    web.on_exec(break_off)
    async with either(True, api_server, pods) as api, exec_in_pod(api, "web-0", ["x"]) as process:
        assert await process.stdout.receive_some() == b"half"
        with pytest.raises(trio.BrokenResourceError) as raised:
            await process.stdout.receive_some()
        assert isinstance(raised.value.__cause__, ConnectionFailedError)
        with pytest.raises(ConnectionFailedError, match="ended before the process did, so its exit code is not known"):
            await process.wait()


async def test_a_wrong_use_of_a_process_says_what_is_wrong(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def echo(process: ScriptedProcess) -> int:
        await cat(process)
        return 0

    web.on_exec(echo)
    async with exec_in_pod(pods, "web-0", ["cat"], stdin=True) as process:
        assert repr(process).endswith(": running>")
        assert repr(process.stdin).startswith("<ProcessInput of ")
        assert repr(process.stdout).startswith("<ProcessOutput, standard output of ")
        with pytest.raises(RuntimeError, match="pass tty=True"):
            await process.resize(80, 24)
        with pytest.raises(ValueError, match="max_bytes must be at least 1"):
            await process.stdout.receive_some(0)
        await process.stdin.wait_send_all_might_not_block()
        await process.stdin.send_all(b"abcd")
        assert await process.stdout.receive_some(3) == b"abc"
        assert await process.stdout.receive_some(3) == b"d"
        await process.stdin.aclose()
        await process.stdin.aclose()
        with pytest.raises(trio.ClosedResourceError, match="this input is closed"):
            await process.stdin.send_all(b"more")
        assert await process.wait() == 0
        assert repr(process).endswith(": exit code 0>")
    assert repr(process).endswith(": closed>")
    with pytest.raises(trio.ClosedResourceError):
        await process.stdout.receive_some()
