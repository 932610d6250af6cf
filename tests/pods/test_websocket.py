"""The handshake of WebSockets: what servers and proxies respond that have none, and the choice of the protocol."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection

from trioformer._channels import V4, V5, accept_token
from trioformer.client import Api, open_client
from trioformer.errors import (
    TrioformerError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod
from trioformer.pods import exec_in_pod, run_in_pod

SUCCESS = b'{"metadata":{},"status":"Success"}'


@asynccontextmanager
async def responding(response: bytes, *frames: bytes) -> AsyncIterator[tuple[Api[Pod], list[bytes]]]:
    """Serve one response to each request, with the token of its key, and frames after it."""
    heads: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some()
            heads.append(head)
            found = re.search(rb"Sec-WebSocket-Key: (\S+)", head, re.IGNORECASE)
            assert found is not None
            with trio.CancelScope():
                try:
                    await stream.send_all(response.replace(b"TOKEN", accept_token(found[1])) + b"".join(frames))
                    await stream.send_eof()
                    while await stream.receive_some():
                        pass
                except trio.BrokenResourceError:
                    pass

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        async with open_client(ClusterConfig(server=f"http://127.0.0.1:{port}")) as client:
            yield client.api(Pod, namespace="default"), heads
        nursery.cancel_scope.cancel()


def switch(protocol: str = V4, *, accept: str = "TOKEN", upgrade: str = "websocket") -> bytes:
    chosen = f"Sec-WebSocket-Protocol: {protocol}\r\n" if protocol else ""
    return (
        f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: {upgrade}\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n{chosen}\r\n"
    ).encode()


def refusal(code: str, body: bytes, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def messages(*contents: bytes) -> bytes:
    frames = Connection(ConnectionType.SERVER)
    sent = [frames.send(BytesMessage(data=each)) for each in contents]
    return b"".join([*sent, frames.send(CloseConnection(code=1000))])


async def test_the_request_names_the_command_and_the_protocols() -> None:
    async with responding(switch(), messages(b"\x01hello", b"\x03" + SUCCESS)) as (pods, heads):
        done = await run_in_pod(pods, "web-0", ["echo", "a b", "&=%ü", "\udcff"], container="main")
        assert (done.exit_code, done.stdout) == (0, b"hello")
    (head,) = heads
    line, *headers = head.decode().split("\r\n")
    assert line == (
        "GET /api/v1/namespaces/default/pods/web-0/exec?command=echo&command=a+b&command=%26%3D%25%C3%BC&command=%FF"
        "&stdout=true&stderr=true&container=main HTTP/1.1"
    )
    assert "Sec-WebSocket-Protocol: v4.channel.k8s.io" in headers
    assert "Sec-WebSocket-Version: 13" in headers


async def test_version_5_is_requested_for_an_input() -> None:
    async with (
        responding(switch(V5), messages(b"\x03" + SUCCESS)) as (pods, heads),
        exec_in_pod(pods, "web-0", ["cat"], stdin=True) as process,
    ):
        assert process.can_close_stdin
        assert await process.wait() == 0
    assert "\r\nSec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n" in heads[0].decode()


async def test_version_4_does_all_but_ending_the_input() -> None:
    async with responding(switch(V4), messages(b"\x01", b"\x01hello", b"\x03" + SUCCESS)) as (pods, _):
        assert (await run_in_pod(pods, "web-0", ["true"])).text == "hello"
        with pytest.raises(TrioformerError, match=r"cannot close the stdin .* Kubernetes 1\.30"):
            await run_in_pod(pods, "web-0", ["cat"], input="x")
        async with exec_in_pod(pods, "web-0", ["cat"], stdin=True) as process:
            await process.stdin.send_all(b"x")
            await process.stdin.aclose()
            assert await process.wait() == 0


async def test_a_status_in_pieces_is_put_together_and_the_output_after_it_is_kept() -> None:
    frames = Connection(ConnectionType.SERVER)
    sent = b"".join(
        frames.send(BytesMessage(data=each))
        for each in (b"\x03" + SUCCESS[:10], b"\x01one", b"\x03" + SUCCESS[10:], b"\x01two")
    )
    async with responding(switch(), sent) as (pods, _):
        assert (await run_in_pod(pods, "web-0", ["true"])).text == "onetwo"
