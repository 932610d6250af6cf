"""Ports of pods through kube-apiserver and kwok's kubelet, which connects to ports of this machine; beside kubectl."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.kubelet import ports_to, running_kubelet
from trioformer import Client, open_client
from trioformer.errors import ConnectionFailedError, NotFoundError, PortForwardError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod, Service
from trioformer.pods import connect_port, forward_port
from trioformer.testing import APIServer, ControlPlane, serve_http

POD = {
    "metadata": {"name": "one", "labels": {"app": "one"}},
    "spec": {
        "nodeName": "node-1",
        "containers": [{"name": "main", "image": "x", "ports": [{"name": "http", "containerPort": 8080}]}],
    },
}
SERVICE = {
    "metadata": {"name": "one"},
    "spec": {"selector": {"app": "one"}, "ports": [{"name": "web", "port": 80, "targetPort": "http"}]},
}
both = pytest.mark.parametrize("kind", ["embedded", "real"])


async def serve(stream: trio.abc.HalfCloseableStream) -> None:
    """Send everything back, and its checksum when as much has arrived as the first line says.

    kwok does not tell the port where the input ends, and the client not where the output does.
    """
    digest, received = hashlib.sha256(), bytearray()
    with suppress(trio.BrokenResourceError):  # the client has gone
        while b"\n" not in received:
            if not (data := await stream.receive_some()):
                return
            received += data
        line, _, data = bytes(received).partition(b"\n")
        left = int(line)
        while True:
            digest.update(data)
            await stream.send_all(data)
            left -= len(data)
            if not left or not (data := await stream.receive_some()):
                break
        await stream.send_all(digest.digest())
        await stream.aclose()


@pytest.fixture(scope="module")
def port() -> int:
    """A port of this machine that is free."""

    async def find() -> int:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            return int(listener.socket.getsockname()[1])

    return trio.run(find)


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[ControlPlane]:
    """A control plane with a node whose port 8080 is the port of this machine."""
    directory, ports = tmp_path_factory.mktemp("assets"), ports_to({8080: port, 9: 9})
    with running_kubelet(assets, directory, ports, pod=POD, service=SERVICE) as running:
        yield running


@asynccontextmanager
async def opened(kind: str, cluster: ControlPlane, port: int) -> AsyncIterator[tuple[Client, list[str]]]:
    """Yield a client of either server, and the flags with which kubectl connects to it."""
    async with trio.open_nursery() as nursery:
        if kind == "real":
            await nursery.start(trio.serve_tcp, serve, port)
            async with open_client(kubeconfig=cluster.kubeconfig) as client:
                yield client, ["--kubeconfig", str(cluster.kubeconfig)]
        else:
            server = APIServer()
            server.create(from_dict(Pod, POD))
            server.create(from_dict(Service, SERVICE))
            server.script_pod("one").on_connect(8080, serve)
            url = await nursery.start(serve_http, server)
            async with open_client(ClusterConfig(server=url)) as client:
                yield client, ["--server", url]
        nursery.cancel_scope.cancel()


async def exchange(stream: trio.abc.HalfCloseableStream, data: bytes) -> None:
    """Send bytes, and check what comes back."""
    expected = data + hashlib.sha256(data).digest()
    received = bytearray()

    async def send() -> None:
        await stream.send_all(b"%d\n" % len(data) + data)
        await stream.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        async for piece in stream:
            received.extend(piece)
    assert received == expected


@both
async def test_a_connection_carries_bytes_both_ways_and_ends_exactly(
    kind: str, cluster: ControlPlane, port: int
) -> None:
    data = random.Random(0).randbytes(3_000_000)
    async with (
        opened(kind, cluster, port) as (client, _),
        connect_port(client.api(Pod, "default"), "one", "http") as stream,
    ):
        with trio.fail_after(60):
            await exchange(stream, data)


@asynccontextmanager
async def kubectl(assets: Path, *arguments: str, remote: int = 8080) -> AsyncIterator[tuple[int, trio.Process]]:
    """Forward ports with kubectl; yields the local port."""
    command = [str(assets / "kubectl"), *arguments]
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(trio.run_process, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        )
        assert process.stdout is not None
        printed = b""
        with trio.fail_after(30):
            while (found := re.search(rb"127.0.0.1:(\d+) -> %d\n" % remote, printed)) is None:
                data = await process.stdout.receive_some()
                assert data, "kubectl has ended"
                printed += data
        yield int(found[1]), process
        nursery.cancel_scope.cancel()


@both
@pytest.mark.parametrize("name", ["pod/one", "service/one"])
async def test_a_local_port_is_that_of_kubectl(
    kind: str, name: str, cluster: ControlPlane, port: int, assets: Path
) -> None:
    remote = "8080" if name == "pod/one" else "web"
    generator = random.Random(0)
    texts = [generator.randbytes(generator.choice([0, 1, 1000, 200_000])) for _ in range(20)]

    async def connect(local: int, data: bytes) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", local)
        async with stream:
            await exchange(stream, data or b"x")

    async with opened(kind, cluster, port) as (client, flags):
        api = client.api(name.partition("/")[0], "default")
        async with (
            forward_port(api, "one", remote) as forward,
            kubectl(assets, *flags, "port-forward", name, f":{remote}") as (other, _),
        ):
            with trio.fail_after(60):
                for local in (forward.port, other):
                    async with trio.open_nursery() as nursery:
                        for data in texts:
                            nursery.start_soon(connect, local, data)
            assert (forward.pod, forward.pod_port) == ("one", 8080)


@both
async def test_a_port_on_which_nothing_listens_is_an_error_of_the_node(
    kind: str, cluster: ControlPlane, port: int, assets: Path
) -> None:
    async with opened(kind, cluster, port) as (client, flags):
        pods = client.api(Pod, "default")
        async with connect_port(pods, "one", 9) as stream:
            with trio.fail_after(30), pytest.raises(trio.BrokenResourceError, match="connection refused") as raised:
                await stream.receive_some()
        assert isinstance(raised.value.__cause__, PortForwardError)
        text = str(raised.value).partition(": ")[2]
        async with kubectl(assets, *flags, "port-forward", "one", ":8080", ":9", remote=9) as (local, process):
            assert process.stderr is not None
            with trio.fail_after(30):
                async with await trio.open_tcp_stream("127.0.0.1", local) as stream:
                    assert await stream.receive_some() == b""
                problem = b"".join([data async for data in process.stderr]).decode()
        # Only kubectl ends with the connection.
        assert f"an error occurred forwarding {local} -> 9: {text}" in problem
        assert problem.endswith("error: lost connection to pod\n")
        with pytest.raises(NotFoundError, match='pods "none" not found'):
            async with connect_port(pods, "none", 9):
                pass


async def test_an_api_server_that_dies_breaks_connections_and_not_the_port(cluster: ControlPlane, port: int) -> None:
    errors: list[Exception] = []
    async with (
        opened("real", cluster, port) as (client, _),
        forward_port(client.api(Pod, "default"), "one", 8080, on_error=errors.append) as forward,
    ):
        with trio.fail_after(60):
            stream = await trio.open_tcp_stream("127.0.0.1", forward.port)
            async with stream:
                await stream.send_all(b"10\nhello")
                assert await stream.receive_some() == b"hello"
                await cluster.kill_api_server()
                with pytest.raises(trio.BrokenResourceError):
                    await stream.receive_some()
            assert isinstance(errors[0], ConnectionFailedError)
            await cluster.start_api_server()
            async with await trio.open_tcp_stream("127.0.0.1", forward.port) as stream:
                await exchange(stream, b"again")
