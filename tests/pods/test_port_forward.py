"""Local ports that are forwarded to pods: many connections, their errors, and what is left."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import socket
import sys
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.pods.conftest import either, pod
from tests.pods.test_port_streams import echo
from trioformer.client import Api, Client
from trioformer.errors import ListenError, NotFoundError, PortForwardError
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod, Service
from trioformer.pods import forward_port
from trioformer.pods._port_forward import check_addresses
from trioformer.testing import APIServer, ScriptedConnection, ScriptedPod


async def open_local(port: int) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", port)


async def is_refused(port: int) -> bool:
    try:
        async with await open_local(port):
            return False
    except OSError:
        return True


def sockets() -> int:
    """Count the open sockets of this process."""
    gc.collect()
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(each).startswith("socket:")
    return found


async def test_a_local_port_is_one_of_the_pod(web: ScriptedPod, api_server: APIServer, pods: Api[Pod]) -> None:
    web.on_connect(7, echo)
    async with either(True, api_server, pods) as api, forward_port(api, "web-0", 7) as forward:
        assert forward.addresses == (("127.0.0.1", forward.port),)
        assert forward.url == f"http://127.0.0.1:{forward.port}"
        assert repr(forward) == f"<PortForward of {forward.url} to port 7 of web-0>"
        async with await open_local(forward.port) as stream:
            await stream.send_all(b"hello")
            await stream.send_eof()
            assert b"".join([data async for data in stream]) == b"helloend"
    assert await is_refused(forward.port)


@pytest.mark.skipif(sys.platform != "linux", reason="counts sockets in /proc")
async def test_connections_at_random_are_not_mixed_up_and_leave_nothing(
    web: ScriptedPod, api_server: APIServer, pods: Api[Pod]
) -> None:
    generator = random.Random(17)
    playing = done = 0
    errors: list[Exception] = []

    async def play(connection: ScriptedConnection) -> None:
        nonlocal playing
        playing += 1
        try:
            await echo(connection)
        finally:
            playing -= 1

    async def connect(number: int, port: int) -> None:
        nonlocal done
        data = b"%d " % number * generator.choice([1, 100, 20_000])
        how = generator.choice(["whole", "whole", "close", "reset"])
        async with await open_local(port) as stream, trio.open_nursery() as nursery:
            nursery.start_soon(send, stream, data)
            received = b""
            while len(received) < len(data):
                received += (piece := await stream.receive_some())
                assert piece
                if how != "whole" and len(received) > len(data) // 2:
                    break
            assert data.startswith(received)
            if how == "whole":
                await stream.send_eof()
                assert b"".join([piece async for piece in stream]) == b"end"
            elif how == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            nursery.cancel_scope.cancel()
        done += 1

    async def send(stream: trio.SocketStream, data: bytes) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(data)

    async def connect_some(port: int, numbers: list[int]) -> None:
        while numbers:
            await connect(numbers.pop(), port)

    web.on_connect(7, play)
    async with either(True, api_server, pods) as api:
        await api.get("web-0")
        await wait_all_tasks_blocked()
        before, tasks = sockets(), trio.lowlevel.current_statistics().tasks_living
        async with forward_port(api, "web-0", 7, max_connections=30, on_error=errors.append) as forward:
            numbers = list(range(100))
            async with trio.open_nursery() as nursery:
                for _ in range(40):
                    nursery.start_soon(connect_some, forward.port, numbers)
            assert done == 100
            while playing:
                await wait_all_tasks_blocked(0.01)
            assert errors == []
        await wait_all_tasks_blocked(0.01)
        assert trio.lowlevel.current_statistics().tasks_living <= tasks
        assert sockets() <= before


async def test_no_more_connections_than_allowed_are_forwarded_at_a_time(web: ScriptedPod, pods: Api[Pod]) -> None:
    most = playing = 0

    async def play(connection: ScriptedConnection) -> None:
        nonlocal most, playing
        playing += 1
        most = max(most, playing)
        await echo(connection)
        playing -= 1

    async def connect(port: int) -> None:
        async with await open_local(port) as stream:
            await stream.send_eof()
            assert b"".join([data async for data in stream]) == b"end"

    web.on_connect(7, play)
    async with forward_port(pods, "web-0", 7, max_connections=3) as forward, trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(connect, forward.port)
    assert most == 3


async def test_an_error_of_a_connection_ends_this_one_only(
    web: ScriptedPod, pods: Api[Pod], caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Exception] = []
    async with forward_port(pods, "web-0", 7, on_error=errors.append) as forward:
        async with await open_local(forward.port) as stream:
            with pytest.raises(trio.BrokenResourceError):  # a reset, and not an end
                await stream.receive_some()
        web.on_connect(7, echo)
        async with await open_local(forward.port) as stream:
            await stream.send_eof()
            assert await stream.receive_some() == b"end"
        [error] = errors
        assert isinstance(error, PortForwardError)
    assert not caplog.records
    async with forward_port(pods, "web-0", 9) as forward, await open_local(forward.port) as stream:
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()
    [record] = caplog.records
    assert record.getMessage().startswith(f"a connection to port {forward.port} was not forwarded: forward port 9 of")


async def test_what_was_received_before_an_error_is_delivered(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def fail(connection: ScriptedConnection) -> None:
        await connection.send_all(b"half")
        await connection.receive_some()
        connection.fail("connection reset by peer")

    web.on_connect(7, fail)
    forwarding = forward_port(pods, "web-0", 7, on_error=lambda _: None)
    async with forwarding as forward, await open_local(forward.port) as stream:
        assert await stream.receive_some() == b"half"
        await stream.send_all(b"x")
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()


async def test_a_program_that_is_gone_at_once_is_no_error(web: ScriptedPod, pods: Api[Pod]) -> None:
    errors: list[Exception] = []
    web.on_connect(7, echo)
    async with forward_port(pods, "web-0", 7, on_error=errors.append) as forward:
        gone = socket.create_connection(("127.0.0.1", forward.port))
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.close()  # before it is accepted
        async with await open_local(forward.port) as stream:
            await stream.send_eof()
            assert await stream.receive_some() == b"end"
    assert errors == []


async def test_a_pod_that_closes_first_does_not_reset_the_program(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def refuse(connection: ScriptedConnection) -> None:
        await connection.receive_some()
        await connection.send_all(b"too large")

    web.on_connect(7, refuse)
    async with forward_port(pods, "web-0", 7) as forward, await open_local(forward.port) as stream:
        await stream.send_all(bytes(100_000))
        await wait_all_tasks_blocked(0.01)
        await stream.send_all(b"x")
        assert b"".join([data async for data in stream]) == b"too large"


async def test_another_pod_of_the_service_takes_over(
    web: ScriptedPod, api_server: APIServer, client: Client, pods: Api[Pod]
) -> None:
    async def name(connection: ScriptedConnection) -> None:
        await connection.send_all(b"web-0")

    web.on_connect(8080, name)
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}
    api_server.create(from_dict(Service, service))
    api_server.patch(Pod, "web-0", {"metadata": {"labels": {"app": "web"}}})
    async with forward_port(client.api(Service, "default"), "web", 80) as forward:
        assert (forward.pod, forward.pod_port) == ("web-0", 8080)
        async with await open_local(forward.port) as stream:
            assert await stream.receive_some() == b"web-0"
        await pods.delete("web-0", grace_period_seconds=0)
        api_server.create(pod("web-1", labels={"app": "web"}))
        api_server.script_pod("web-1").on_connect(8080, echo)
        async with await open_local(forward.port) as stream:
            await stream.send_eof()
            assert await stream.receive_some() == b"end"
        assert forward.pod == "web-1"


async def test_what_cannot_be_forwarded_is_an_error_at_once(
    web: ScriptedPod, api_server: APIServer, client: Client, pods: Api[Pod]
) -> None:
    with pytest.raises(NotFoundError):
        async with forward_port(pods, "none", 7):
            pass
    web.end()
    with pytest.raises(PortForwardError, match=r"pod is not running\. Current status=Succeeded"):
        async with forward_port(pods, "web-0", 7):
            pass
    with pytest.raises(TypeError, match="this is the API of configmaps"):
        async with forward_port(client.api(ConfigMap, "default"), "x", 7):
            pass


async def test_a_port_that_is_taken_is_an_error(web: ScriptedPod, pods: Api[Pod]) -> None:
    async with forward_port(pods, "web-0", 7) as forward:
        with pytest.raises(ListenError, match=f"cannot listen on port {forward.port} of 127.0.0.1: Add") as raised:
            async with forward_port(pods, "web-0", 7, local_port=forward.port, address=["127.0.0.2", "127.0.0.1"]):
                pass
        assert raised.value.errno == errno.EADDRINUSE
    async with forward_port(pods, "web-0", 7, local_port=forward.port) as again:
        assert again.port == forward.port
    with pytest.raises(TypeError, match="local_port must be a number or None, not a str"):
        async with forward_port(pods, "web-0", 80, local_port="8080"):  # type: ignore[arg-type]  # the mistake
            pass
    with pytest.raises(ValueError, match="local_port must be between 0 and 65535"):
        async with forward_port(pods, "web-0", 7, local_port=70_000):
            pass


def test_addresses_are_those_of_kubectl() -> None:
    assert check_addresses("127.0.0.1") == {"127.0.0.1": False}
    assert check_addresses("localhost") == {"127.0.0.1": True, "::1": True}
    assert check_addresses(["::1", "localhost"]) == {"::1": False, "127.0.0.1": True}
    for wrong in ("example.com", [], ["", "::1"]):
        with pytest.raises(ValueError, match="address"):
            check_addresses(wrong)
    with pytest.raises(TypeError, match="must be a string such as"):
        check_addresses([1])  # type: ignore[list-item]  # the mistake


async def test_both_addresses_of_localhost_have_one_port(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.on_connect(7, echo)
    async with forward_port(pods, "web-0", 7, address="localhost") as forward:
        assert {port for _, port in forward.addresses} == {forward.port}
        assert forward.addresses[0][0] == "127.0.0.1"
        for host, port in forward.addresses:
            async with await trio.open_tcp_stream(host, port) as stream:
                await stream.send_eof()
                assert await stream.receive_some() == b"end"


async def test_one_address_of_localhost_is_enough(web: ScriptedPod, pods: Api[Pod]) -> None:
    with socket.socket(socket.AF_INET6) as free, socket.socket() as taken:
        try:
            free.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = free.getsockname()[1]  # other processes may use a port on one of the two addresses
        taken.bind(("127.0.0.1", port))
        free.close()
        async with forward_port(pods, "web-0", 7, local_port=port, address="localhost") as forward:
            assert forward.addresses == (("::1", port),)
            assert forward.url == f"http://[::1]:{port}"


async def test_the_end_of_the_block_ends_connections(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.on_connect(7, echo)
    async with forward_port(pods, "web-0", 7) as forward:
        stream = await open_local(forward.port)
        await stream.send_all(b"x")
        assert await stream.receive_some() == b"x"
    async with stream:
        assert await stream.receive_some() == b""
