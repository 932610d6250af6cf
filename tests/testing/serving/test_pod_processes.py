"""Requests for exec and attach that are no WebSockets, and processes that a test plays wrongly."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from trioformer.client import Client
from trioformer.errors import ConnectionFailedError, NotFoundError
from trioformer.models.core_v1 import Pod
from trioformer.pods import exec_in_pod
from trioformer.testing import APIServer, ScriptedProcess

PATH = "/api/v1/namespaces/default/pods/one/exec?command=ls&stdout=true"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "main"}]},
}
ASKS = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


@pytest.mark.parametrize(
    ("method", "changed", "text"),
    [
        ("GET", {}, "Upgrade request required"),
        ("POST", {}, "Upgrade request required"),
        ("GET", ASKS | {"Upgrade": "SPDY/3.1"}, "Upgrade request required"),
        ("GET", ASKS | {"Connection": "close"}, "Upgrade request required"),
        ("GET", ASKS | {"Sec-WebSocket-Version": "8"}, "Upgrade request required"),
        ("GET", ASKS | {"Sec-WebSocket-Key": ""}, "Upgrade request required"),
        ("GET", ASKS | {"Sec-WebSocket-Protocol": "channel.k8s.io"}, "requested protocol(s) are not supported"),
    ],
)
async def test_what_is_no_websocket_is_refused(
    method: str, changed: dict[str, str], text: str, api_server: APIServer
) -> None:
    api_server.create(POD)
    async with httpx.AsyncClient(transport=api_server.http_transport(), base_url="http://x") as http:
        response = await http.request(method, PATH, headers=changed)
    assert (response.status_code, response.json()["reason"]) == (400, "BadRequest")
    assert text in response.json()["message"]


async def test_the_handshake_has_the_token_of_the_standard(api_server: APIServer) -> None:
    api_server.create(POD)
    async with (
        httpx.AsyncClient(transport=api_server.http_transport(), base_url="http://x") as http,
        http.stream("GET", PATH, headers=ASKS) as response,
    ):
        assert response.status_code == 101
        assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3
        assert response.headers["sec-websocket-protocol"] == "v5.channel.k8s.io"


async def test_an_error_of_the_function_that_plays_leaves_the_server() -> None:
    server = APIServer()
    server.create(POD)
    error = KeyError("a mistake")

    async def play(process: ScriptedProcess) -> int:
        raise error

    server.script_pod("one").on_exec(play)

    async def execute() -> None:
        async with server.open_client() as client, exec_in_pod(client.api(Pod, "default"), "one", ["ls"]) as process:
            with pytest.raises(ConnectionFailedError):
                await process.wait()

    with pytest.RaisesGroup(KeyError, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            nursery.start_soon(execute)


async def test_a_pod_that_is_gone_cannot_be_scripted(api_server: APIServer) -> None:
    api_server.create(POD)
    one = api_server.script_pod("one")
    api_server.delete(Pod, "one")
    with pytest.raises(NotFoundError):
        one.script_command(["ls"])


async def test_a_command_is_not_a_string(api_server: APIServer) -> None:
    api_server.create(POD)
    with pytest.raises(TypeError, match=r"\['ls', '-l'\]"):
        api_server.script_pod("one").script_command("ls -l")


@pytest.mark.parametrize("how", ["delete", "delete with a finalizer", "end", "fail", "restart"])
async def test_a_command_is_killed_with_its_container(how: str, api_server: APIServer, client: Client) -> None:
    finalizers = ["example.com/a"] if "finalizer" in how else []
    api_server.create({**POD, "metadata": {**POD["metadata"], "finalizers": finalizers}})
    one = api_server.script_pod("one")

    async def play(process: ScriptedProcess) -> int:
        await trio.sleep_forever()

    one.on_exec(play)
    with trio.fail_after(5):
        async with exec_in_pod(client.api(Pod, "default"), "one", ["sleep"]) as process:
            await wait_all_tasks_blocked()
            if how.startswith("delete"):
                api_server.delete(Pod, "one")
            elif how == "fail":
                api_server.patch(Pod, "one", {"status": {"phase": "Failed", "reason": "Evicted"}})
            elif how == "end":
                one.end()
            else:
                one.restart()
            assert await process.wait() == 137


async def test_a_command_survives_other_changes_of_its_pod(
    api_server: APIServer, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    api_server.create({**POD, "spec": {**POD["spec"], "containers": [{"name": "main"}, {"name": "side"}]}})
    one = api_server.script_pod("one")

    async def play(process: ScriptedProcess) -> int:
        await trio.sleep(10)
        return 3

    one.on_exec(play)
    async with exec_in_pod(client.api(Pod, "default"), "one", ["sleep"], container="main") as process:
        await wait_all_tasks_blocked()
        one.end(container="side")
        api_server.patch(Pod, "one", {"metadata": {"labels": {"a": "b"}}})
        assert await process.wait() == 3
