"""Commands in containers and the processes that they run: streams, exit codes and errors, in memory and on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from trioformer.client import Api, Client, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod, ScriptedProcess, serve_http

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def pod(name: str = "web-0", *containers: str, node: str = "node-1", **metadata: object) -> Pod:
    spec = {"nodeName": node or None, "containers": [{"name": each} for each in containers or ("main",)]}
    return from_dict(Pod, {"metadata": {"name": name, **metadata}, "spec": spec})


@pytest.fixture
def web(api_server: APIServer) -> ScriptedPod:
    api_server.create(pod())
    return api_server.script_pod("web-0")


@pytest.fixture
def pods(client: Client) -> Api[Pod]:
    return client.api(Pod, namespace="default")


@asynccontextmanager
async def on_socket(server: APIServer) -> AsyncIterator[Api[Pod]]:
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        async with open_client(ClusterConfig(server=url)) as client:
            yield client.api(Pod, namespace="default")
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def either(is_socket: bool, server: APIServer, in_memory: Api[Pod]) -> AsyncIterator[Api[Pod]]:
    if not is_socket:
        yield in_memory
        return
    async with on_socket(server) as found:
        yield found


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
        api.exec("web-0", ["ls", "-l", "/a b"]) as process,
    ):
        assert process.stdin is None
        assert await receive_all(process.stdout) == b"one\n"
        assert await receive_all(process.stderr) == b"\xff"
        assert (await process.wait(), process.exit_code) == (3, 3)


@both
async def test_a_process_reads_its_input_until_that_is_closed(
    is_socket: bool, web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    web.on_exec(cat)
    sent = bytes(range(256)) * 4096 * 4
    received = b""
    async with (
        either(is_socket, api_server, pods) as api,
        api.exec("web-0", ["cat"], stdin=True) as process,
    ):
        stdin = process.stdin
        assert stdin is not None

        async def send() -> None:
            await stdin.send_all(sent)
            await stdin.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            received = await receive_all(process.stdout)
        assert await process.wait() == 0
    assert received == sent
