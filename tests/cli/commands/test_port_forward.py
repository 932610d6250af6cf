"""``port-forward``: what it prints is what kubectl v1.36 prints, and its errors are one line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from tests.pods.conftest import pod
from tests.pods.test_port_streams import echo
from tests.support.cli import Output, opener_of, run
from trioformer.cli._main import run_command
from trioformer.cli.commands._port_forward import _Port
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod, Service
from trioformer.testing import APIServer, ScriptedPod

PORTS = [{"name": "echo", "containerPort": 7000}, {"name": "log", "containerPort": 514, "protocol": "UDP"}]


@pytest.fixture
def web(api_server: APIServer) -> ScriptedPod:
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "ports": PORTS}]}
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0", "labels": {"app": "web"}}, "spec": spec}))
    ports = [{"name": "first", "port": 80, "targetPort": "echo"}]
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}
    api_server.create(from_dict(Service, service))
    pod = api_server.script_pod("web-0")
    pod.on_connect(7000, echo)
    return pod


@asynccontextmanager
async def running(server: APIServer, *arguments: str) -> AsyncIterator[tuple[Output, Output, list[int]]]:
    """Run the command in the background; yields what it prints, and its exit code when it has ended."""
    out, err, codes = Output(), Output(), list[int]()
    given = ["--server", server.config.server, "port-forward", *arguments]

    async def run_it() -> None:
        codes.append(await run_command(given, out, err, {}, opener_of(server.http_transport())))
        err.changed.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        yield out, err, codes
        nursery.cancel_scope.cancel()


async def send(line: str) -> bytes:
    """Connect to the address in a line of the output."""
    host, _, port = line.split()[2].rpartition(":")
    async with await trio.open_tcp_stream(host.strip("[]"), int(port)) as stream:
        await stream.send_all(b"hello ")
        await stream.send_eof()
        return b"".join([data async for data in stream])


@pytest.mark.parametrize("name", ["web-0", "svc/web"])
async def test_ports_are_forwarded(name: str, web: ScriptedPod, api_server: APIServer) -> None:
    remote = "7000" if "web-0" in name else "80"
    async with running(api_server, name, f":{remote}", "--address", "127.0.0.1") as (out, err, codes):
        [line] = await out.wait_for(1)
        assert line.startswith("Forwarding from 127.0.0.1:")
        assert line.endswith(" -> 7000")
        assert await send(line) == b"hello end"
        assert (err.getvalue(), codes) == ("", [])


async def test_several_ports_are_forwarded_on_several_addresses(web: ScriptedPod, api_server: APIServer) -> None:
    web.on_connect(7001, echo)
    arguments = ("web-0", ":echo", "0:7001", "--address=127.0.0.1,127.0.0.2")
    async with running(api_server, *arguments) as (out, _, _):
        lines = await out.wait_for(4)
        assert [line.split()[-1] for line in lines] == ["7000", "7000", "7001", "7001"]
        assert [line.split()[2].split(":")[0] for line in lines] == ["127.0.0.1", "127.0.0.2"] * 2
        for line in lines:
            assert await send(line) == b"hello end"


async def test_a_failed_connection_is_a_line_and_not_the_end(web: ScriptedPod, api_server: APIServer) -> None:
    async with running(api_server, "web-0", ":9", "--address=127.0.0.1") as (out, err, codes):
        [line] = await out.wait_for(1)
        with pytest.raises(trio.BrokenResourceError):
            await send(line)
        port = line.split()[2].rpartition(":")[2]
        [problem] = await err.wait_for(1)
        assert problem.startswith(
            f"an error occurred forwarding {port} -> 9: error forwarding port 9 to pod web-0, uid "
        )
        web.on_connect(9, echo)
        assert await send(line) == b"hello end"
        assert codes == []
        api_server.delete(Pod, "web-0")
        with pytest.raises(trio.BrokenResourceError):
            await send(line)
        assert (await err.wait_for(3))[-1] == "error: lost connection to pod"
    assert codes == [1]


async def test_a_port_that_is_taken_is_a_line(web: ScriptedPod, api_server: APIServer) -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        result = await run(api_server, "port-forward", "web-0", f"{port}:7000", "--address=127.0.0.1")
    reason = f"cannot listen on port {port} of 127.0.0.1: Address already in use"
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines() == [
        f"Unable to listen on port {port}: {reason}",
        f"error: unable to listen on any of the requested ports: ['{port}:7000']",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["web-0"], "error: TYPE/NAME and list of ports are required for port-forward"),
        (["none", "80"], 'Error from server (NotFound): pods "none" not found'),
        (["web-0", "none"], "error: Pod 'web-0' does not have a named port 'none'; it has echo, log"),
        (["web-0", "514"], "error: UDP protocol is not supported for 514"),
        (["web-0", "80", "--address=example.com"], "error: example.com is not a valid IP"),
        (["cm/c", "80"], "error: cannot attach to *v1.ConfigMap: selector for *v1.ConfigMap not implemented"),
        (["pending", "80"], "error: unable to forward port because pod is not running. Current status=Pending"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
async def test_what_is_wrong_is_one_line(
    arguments: list[str], problem: str, web: ScriptedPod, api_server: APIServer
) -> None:
    api_server.create(from_dict(ConfigMap, {"metadata": {"name": "c"}}))
    api_server.create(pod("pending"))
    result = await run(api_server, "port-forward", *arguments)
    assert (result.code, result.out) == (1, "")
    lines = result.err.splitlines()
    assert lines[0].startswith(problem)
    assert len(lines) == (2 if "are required" in problem else 1)


@pytest.mark.parametrize("port", ["80:", "70000", "1:0", "1:2:3", "9" * 30])
async def test_a_wrong_port_is_named(api_server: APIServer, port: str) -> None:
    result = await run(api_server, "port-forward", "web-0", port)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert port in result.err


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("80", _Port(None, "80")),
        (":80", _Port(0, "80")),
        ("8443:https", _Port(8443, "https")),
    ],
)
def test_a_port_has_a_local_and_a_remote_part(text: str, port: _Port) -> None:
    assert _Port.parse(text) == port
