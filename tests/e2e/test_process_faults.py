"""Streams through kube-apiserver and kwok's kubelet when one of the two is killed, and their slow readers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.kubelet import attached_to, commands_in, logs_from, pod_of, ports_to, running_kubelet
from tests.support.remains import open_files, wait_for_tasks_to_end
from trioformer import open_client
from trioformer.client import Api
from trioformer.errors import ConnectionFailedError, StatusError
from trioformer.models.core_v1 import Pod
from trioformer.pods import attach_to_pod, connect_port, exec_in_pod, follow_logs, read_logs, run_in_pod
from trioformer.testing import ControlPlane

UNREACHABLE = re.compile("error dialing backend|connection refused")
SLEEP = ["sh", "-c", "echo begun; exec sleep 1000"]
MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "pod.log"
    path.write_text("2026-01-01T00:00:00.000000000Z stdout F one\n")
    return path


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A port of this machine that never responds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, log: Path, port: int) -> Iterator[ControlPlane]:
    """A control plane whose programs are killed; the last test leaves it without kwok."""
    configured = (commands_in(), attached_to(log), logs_from(log), ports_to({8080: port}))
    with running_kubelet(assets, tmp_path_factory.mktemp("assets"), *configured, pod=pod_of("one")) as running:
        yield running


@asynccontextmanager
async def opened(cluster: ControlPlane) -> AsyncIterator[Api[Pod]]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        yield client.api(Pod, namespace="default")


async def test_a_slow_reader_receives_everything(cluster: ControlPlane) -> None:
    size = 4 * MEBIBYTE
    received = 0
    async with opened(cluster) as pods:
        with trio.fail_after(60):
            async with exec_in_pod(pods, "one", ["head", "-c", str(size), "/dev/zero"], stderr=False) as process:
                assert process.stdout is not None
                async for data in process.stdout:
                    assert len(data) <= 2 * MEBIBYTE
                    received += len(data)
                    await trio.sleep(0.1)
                assert await process.wait() == 0
    assert received == size


async def break_exec(pods: Api[Pod], began: Callable[[], None], killed: str) -> None:
    async with exec_in_pod(pods, "one", SLEEP, stdin=True) as process:
        assert process.stdout is not None
        assert await process.stdout.receive_some() == b"begun\n"
        began()
        if killed == "kwok":
            # The end of the node's connection is a success for kube-apiserver, and it says so.
            assert await process.stdout.receive_some() == b""
            assert await process.wait() == 0
            return
        with pytest.raises(trio.BrokenResourceError):
            await process.stdout.receive_some()
        with pytest.raises(ConnectionFailedError, match="ended before the process did"):
            await process.wait()


async def break_kubectl(cluster: ControlPlane, assets: Path, began: Callable[[], None], killed: str) -> None:
    command = [str(assets / "kubectl"), "--kubeconfig", str(cluster.kubeconfig), "exec", "one", "--", *SLEEP]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    async with process.stdout:
        assert await process.stdout.receive_some() == b"begun\n"
        began()
        assert await process.wait() == (0 if killed == "kwok" else 1)


async def break_attach(pods: Api[Pod], began: Callable[[], None], _: str) -> None:
    async with attach_to_pod(pods, "one") as process:
        began()
        # Its exit code is 0 also when a connection between the server and the node has ended.
        try:
            assert process.stdout is not None
            async for _ in process.stdout:
                pass
            assert await process.wait() == 0
        except (trio.BrokenResourceError, ConnectionFailedError, StatusError):
            pass


async def break_port(pods: Api[Pod], began: Callable[[], None], _: str) -> None:
    async with connect_port(pods, "one", 8080) as stream:
        await stream.send_all(b"hello")
        began()
        # kube-apiserver notices that the node has gone when the client pings it.
        with pytest.raises(trio.BrokenResourceError) as raised:
            await stream.receive_some()
        assert isinstance(raised.value.__cause__, ConnectionFailedError)


@pytest.mark.parametrize("killed", ["kube-apiserver", "kwok"])
async def test_what_is_open_ends_when_a_server_is_killed(
    killed: str, cluster: ControlPlane, assets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trioformer.pods._port_streams._PING_PERIOD", 1.0)
    async with opened(cluster) as pods:
        tasks, open_before = trio.lowlevel.current_statistics().tasks_living, len(open_files())
        left = 4
        all_began = trio.Event()

        def began() -> None:
            nonlocal left
            left -= 1
            if not left:
                all_began.set()

        with trio.fail_after(40):
            async with trio.open_nursery() as nursery:
                for each in (break_exec, break_attach, break_port):
                    nursery.start_soon(each, pods, began, killed)
                nursery.start_soon(break_kubectl, cluster, assets, began, killed)
                await all_began.wait()
                await trio.sleep(0.5)  # kwok opens the file of attach and the port after the response
                if killed == "kwok":
                    os.kill(cluster.process_ids["kwok"], signal.SIGKILL)
                else:
                    await cluster.kill_api_server()
            await wait_for_tasks_to_end(tasks)
        assert len(open_files()) <= open_before
        if killed == "kwok":
            for operation in (run_in_pod(pods, "one", ["true"]), read_logs(pods, "one")):
                with pytest.raises(StatusError, match=UNREACHABLE):
                    await operation
            with pytest.raises(StatusError):
                async with follow_logs(pods, "one") as lines:
                    await anext(lines)
        else:
            with pytest.raises(ConnectionFailedError, match="refused"):
                await run_in_pod(pods, "one", ["true"])
            await cluster.start_api_server()
            assert (await run_in_pod(pods, "one", ["echo", "again"])).text == "again\n"
