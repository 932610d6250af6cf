"""Commands in containers through kube-apiserver and kwok's kubelet, which executes them on this machine."""

from __future__ import annotations

import hashlib
import random
import resource
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.kubelet import attached_to, commands_in, kubectl, pod_of, running_kubelet
from trioformer import open_client
from trioformer.client import Api
from trioformer.errors import (
    BadRequestError,
    CommandFailedError,
    ConnectionFailedError,
    InternalServerError,
    NotFoundError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import attach_to_pod, exec_in_pod, run_in_pod
from trioformer.pods._exec import CompletedCommand
from trioformer.testing import APIServer, ControlPlane, ScriptedProcess, serve_http

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "pod.log"
    path.touch()
    return path


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[ControlPlane]:
    """A control plane with a node that executes commands."""
    configured = (commands_in(), attached_to(log))
    with running_kubelet(assets, tmp_path_factory.mktemp("assets"), *configured, pod=pod_of("one")) as running:
        yield running


async def execute_here(process: ScriptedProcess) -> int:
    """Execute a command on this machine, as kwok does."""
    async with trio.open_nursery() as nursery:
        run: trio.Process = await nursery.start(
            partial(
                trio.run_process,
                process.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
            )
        )

        async def copy(source: trio.abc.ReceiveStream, target: trio.abc.SendStream) -> None:
            try:
                async for data in source:
                    await target.send_all(data)
            except trio.BrokenResourceError:
                pass
            finally:
                await target.aclose()

        sender = trio.CancelScope()

        async def copy_input() -> None:
            with sender:
                await copy(process.stdin, run.stdin)  # type: ignore[arg-type]  # checked above

        nursery.start_soon(copy_input)
        async with trio.open_nursery() as outputs:
            outputs.start_soon(copy, run.stdout, process.stdout)
            outputs.start_soon(copy, run.stderr, process.stderr)
        code = await run.wait()
        sender.cancel()
    return code if code >= 0 else 128 - code


@asynccontextmanager
async def opened(kind: str, cluster: ControlPlane) -> AsyncIterator[Api[Pod]]:
    """Yield the API of pods of either server; both execute commands on this machine."""
    if kind == "real":
        async with open_client(kubeconfig=cluster.kubeconfig) as client:
            yield client.api(Pod, namespace="default")
        return
    server = APIServer()
    server.create(from_dict(Pod, pod_of("one")))
    server.script_pod("one").on_exec(execute_here)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        async with open_client(ClusterConfig(server=url)) as client:
            yield client.api(Pod, namespace="default")
        nursery.cancel_scope.cancel()


both = pytest.mark.parametrize("kind", ["embedded", "real"])


@both
async def test_a_command_has_its_outputs(kind: str, cluster: ControlPlane) -> None:
    async with opened(kind, cluster) as pods:
        done = await run_in_pod(pods, "one", ["sh", "-c", 'echo out; echo err >&2; echo $0 "$1"', "a b", "&=%ü"])
        assert (done.exit_code, done.text, done.stderr) == (0, "out\na b &=%ü\n", b"err\n")
        assert await run_in_pod(pods, "one", ["true"]) == CompletedCommand(("true",), 0, b"", b"")


@both
@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("exit 127", 127), ("kill -9 $$", 137)])
async def test_another_exit_code_is_an_error(
    kind: str, script: str, code: int, cluster: ControlPlane, assets: Path
) -> None:
    command = ["sh", "-c", f"echo before; {script}"]
    async with opened(kind, cluster) as pods:
        if kind == "embedded":
            with pytest.raises(CommandFailedError) as raised:
                await run_in_pod(pods, "one", command)
            assert (raised.value.exit_code, raised.value.stdout) == (code, b"before\n")
            return
        # kwok reports no exit codes; kubectl prints the same text, with what kube-apiserver puts before it for v5.
        with pytest.raises(InternalServerError) as failed:
            await run_in_pod(pods, "one", command)
        printed = kubectl(cluster, assets, "exec", "one", "--", *command)
        assert printed.stdout == "before\n"
        prefix = "Internal error occurred: "
        assert failed.value.status_message.startswith(prefix)
        assert printed.stderr.replace(prefix * 2, prefix) == f"error: {failed.value.status_message}\n"


@both
async def test_a_command_that_does_not_exist_is_an_error_of_the_node(kind: str, cluster: ControlPlane) -> None:
    async with opened(kind, cluster) as pods:
        if kind == "real":
            with pytest.raises(InternalServerError, match="error executing command in container"):
                await run_in_pod(pods, "one", ["/none"])
        with pytest.raises(NotFoundError, match='pods "none" not found'):
            await run_in_pod(pods, "none", ["true"])
        with pytest.raises(BadRequestError, match="container other is not valid for pod one"):
            await run_in_pod(pods, "one", ["true"], container="other")


@both
async def test_input_arrives_byte_for_byte(kind: str, cluster: ControlPlane) -> None:
    data = random.Random(0).randbytes(5_000_000)
    # kwok does not tell a command where its input ends, not for kubectl either.
    command = ["sh", "-c", f"head -c {len(data)} | sha256sum"]
    async with opened(kind, cluster) as pods:
        done = await run_in_pod(pods, "one", command, input=data)
        assert done.text.split()[0] == hashlib.sha256(data).hexdigest()
        if kind == "embedded":
            assert (await run_in_pod(pods, "one", ["cat"], input=data)).stdout == data


@both
async def test_a_large_output_needs_no_memory(kind: str, cluster: ControlPlane) -> None:
    size = 100 * MEBIBYTE
    digest, received = hashlib.sha256(), 0
    async with opened(kind, cluster) as pods:
        async with exec_in_pod(pods, "one", ["head", "-c", "1000", "/dev/zero"]) as process:
            assert await process.wait() == 0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        async with exec_in_pod(pods, "one", ["head", "-c", str(size), "/dev/zero"], stderr=False) as process:
            async for data in process.stdout:
                digest.update(data)
                received += len(data)
            assert await process.wait() == 0
    assert received == size
    assert digest.digest() == hashlib.sha256(bytes(size)).digest()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


@pytest.mark.parametrize("size", [None, (101, 37)])
async def test_a_terminal_has_its_size(size: tuple[int, int] | None, cluster: ControlPlane) -> None:
    # kwok may lose what is written right before the end, so the command waits for its input.
    script = "test -t 0 && echo terminal; read -r line; stty size; read -r line"
    async with opened("real", cluster) as pods:
        async with exec_in_pod(pods, "one", ["sh", "-c", script], stdin=True, tty=True, terminal_size=size) as process:
            with trio.fail_after(30):
                assert await process.stdout.receive_some() == b"terminal\r\n"
                await process.stdin.send_all(b"go\n")
                printed = b""
                while len(printed.split()) < 3:
                    printed += await process.stdout.receive_some()
                await process.stdin.send_all(b"end\n")
                assert await process.wait() == 0
        if size is not None:
            assert printed.split() == [b"go", b"37", b"101"]


async def test_what_a_container_writes_arrives_at_who_is_attached(cluster: ControlPlane, log: Path) -> None:
    async def write() -> None:
        # kwok begins with what is written after it has opened the file, and nothing shows when that is.
        while True:
            with log.open("a") as file:
                file.write("2026-01-01T00:00:00.000000000Z stdout F hello\n")
            await trio.sleep(0.1)

    async with opened("real", cluster) as pods, attach_to_pod(pods, "one", stderr=False) as process:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                assert (await process.stdout.receive_some()).splitlines()[0] == b"hello"
                nursery.cancel_scope.cancel()


async def test_a_command_goes_through_an_ordinary_client_many_times(cluster: ControlPlane) -> None:
    async with opened("real", cluster) as pods:
        for _ in range(20):
            await run_in_pod(pods, "one", ["true"])
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(run_in_pod, pods, "one", ["true"])


async def test_kubectl_executes_commands_in_pods_of_the_embedded_server(assets: Path) -> None:
    server = APIServer()
    server.create(from_dict(Pod, pod_of("one")))
    server.script_pod("one").on_exec(execute_here)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)

        async def kubectl_exec(*arguments: str, data: bytes = b"") -> tuple[int, bytes, str]:
            command = [str(assets / "kubectl"), "--server", url, "exec", *arguments]
            with trio.fail_after(60):
                done = await trio.run_process(
                    command, stdin=data, capture_stdout=True, capture_stderr=True, check=False
                )
            return done.returncode, done.stdout, done.stderr.decode()

        assert await kubectl_exec("one", "--", "sh", "-c", "echo out; exit 3") == (
            3,
            b"out\n",
            "command terminated with exit code 3\n",
        )
        data = random.Random(1).randbytes(3_000_000)
        assert await kubectl_exec("-i", "one", "--", "cat", data=data) == (0, data, "")
        code, _, problem = await kubectl_exec("one", "-c", "other", "--", "true")
        assert (code, "container other is not valid for pod one" in problem) == (1, True)
        nursery.cancel_scope.cancel()


async def test_an_api_server_that_dies_ends_the_process_with_an_error(cluster: ControlPlane) -> None:
    async with opened("real", cluster) as pods:
        async with exec_in_pod(pods, "one", ["sh", "-c", "echo begun; exec sleep 1000"]) as process:
            with trio.fail_after(60):
                assert await process.stdout.receive_some() == b"begun\n"
                await cluster.kill_api_server()
                with pytest.raises(trio.BrokenResourceError):
                    await process.stdout.receive_some()
                with pytest.raises(ConnectionFailedError, match="ended before the process did"):
                    await process.wait()
                await cluster.start_api_server()
        assert (await run_in_pod(pods, "one", ["echo", "again"])).text == "again\n"
