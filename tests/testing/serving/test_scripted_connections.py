"""What the function of a scripted port sees of its connection."""

from __future__ import annotations

import pytest
import trio

from trioformer.client import Client
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import connect_port
from trioformer.testing import APIServer
from trioformer.testing._serving._scripted_connections import ConnectionHandler, ScriptedConnection


async def talk(client: Client, api_server: APIServer, handler: ConnectionHandler, *, then: bytes = b"") -> bytes:
    """Connect to a port that a function answers, send something, and return what it sends."""
    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": spec}))
    api_server.script_pod("web-0").on_connect(80, handler)
    async with connect_port(client.api(Pod, "default"), "web-0", 80) as stream:
        await stream.send_all(b"abc")
        received = [data async for data in stream]
        if then:
            await stream.send_all(then)
        return b"".join(received)


async def test_a_connection_is_a_stream_of_trio(client: Client, api_server: APIServer) -> None:
    pieces: list[bytes] = []

    async def handle(connection: ScriptedConnection) -> None:
        assert repr(connection) == "<ScriptedConnection to port 80>"
        pieces.append(await connection.receive_some(2))
        pieces.append(await connection.receive_some())
        await connection.wait_send_all_might_not_block()
        await connection.send_all(b"x" * 100_000)
        await connection.send_eof()
        await connection.send_eof()
        with pytest.raises(trio.ClosedResourceError, match="no more data can be sent"):
            await connection.send_all(b"more")

    assert await talk(client, api_server, handle) == b"x" * 100_000
    assert pieces == [b"ab", b"c"]


async def test_a_problem_and_a_broken_connection_are_errors_of_the_client(
    client: Client, api_server: APIServer
) -> None:
    async def fail(connection: ScriptedConnection) -> None:
        connection.fail("read: connection reset by peer")
        with pytest.raises(trio.ClosedResourceError):
            await connection.send_all(b"more")

    with pytest.raises(trio.BrokenResourceError, match="connection reset by peer"):
        await talk(client, api_server, fail)

    async def disconnect(connection: ScriptedConnection) -> None:
        await connection.disconnect()

    api_server.script_pod("web-0").on_connect(81, disconnect)
    async with connect_port(client.api(Pod, "default"), "web-0", 81) as stream:
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()


@pytest.mark.parametrize("ending", ["terminated", "deleted"])
async def test_a_connection_ends_with_its_pod(client: Client, api_server: APIServer, ending: str) -> None:
    ended = trio.Event()

    async def end_the_pod(connection: ScriptedConnection) -> None:
        if ending == "deleted":
            api_server.delete(Pod, "web-0")
        else:
            api_server.script_pod("web-0").end()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    with pytest.raises(trio.BrokenResourceError):
        await talk(client, api_server, end_the_pod)
    await ended.wait()


async def test_a_function_sees_the_end_of_its_client_and_may_end_twice(client: Client, api_server: APIServer) -> None:
    problems: list[str] = []

    async def handle(connection: ScriptedConnection) -> None:
        await connection.wait_send_all_might_not_block()
        while await connection.receive_some(1):
            pass
        await connection.send_eof()
        await connection.send_eof()
        try:
            await connection.send_all(b"late")
        except trio.ClosedResourceError as exc:
            problems.append(str(exc))

    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": spec}))
    api_server.script_pod("web-0").on_connect(80, handle)
    async with connect_port(client.api(Pod, "default"), "web-0", 80) as stream:
        await stream.send_all(b"abc")
        await stream.send_eof()
        assert [data async for data in stream] == []
    assert len(problems) == 1
