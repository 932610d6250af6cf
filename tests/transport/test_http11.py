"""Connections of the pool: what they write, when they are used again, and when they are closed."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.support.scripted_http import serving
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport._network import _SocketStream
from trioformer.transport._open import IDLE_PERIOD
from trioformer.transport._outgoing import Outgoing

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def states(transport: Transport) -> list[str]:
    return sorted(map(repr, transport._generations.present.requests.connections))  # type: ignore[attr-defined]


async def test_a_request_with_a_body_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    write = _SocketStream.write

    async def spy(stream: _SocketStream, data: bytes, patience: float | None = None) -> None:
        written.append(data)
        await write(stream, data, patience)

    monkeypatch.setattr(_SocketStream, "write", spy)
    async with (
        serving(OK, keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url)) as transport,
    ):
        await transport.request("POST", "/x", content=b'{"a":1}', content_type="application/json")
        await transport.request("GET", "/y")
    assert [(each.partition(b" ")[0], each.rpartition(b"\r\n\r\n")[2]) for each in written] == [
        (b"POST", b'{"a":1}'),
        (b"GET", b""),
    ]


async def test_a_request_takes_the_connection_that_was_used_last(autojump_clock: MockClock) -> None:
    async with (
        serving(0.5, OK, keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url)) as transport,
    ):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(transport.request, "GET", "/x")
        assert states(transport) == ["<Http11Connection: idle>"] * 3
        # one connection is used again and again, and the others expire beside it
        for _ in range(4):
            await transport.request("GET", "/x")
            await trio.sleep(IDLE_PERIOD / 3)
        await transport.request("GET", "/x")
        assert states(transport) == ["<Http11Connection: idle>"]
        assert server.connections == 3


async def test_a_connection_whose_response_was_not_read_is_closed() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"
    async with (
        serving(head, None, keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url)) as transport,
    ):
        async with transport.stream("/x", for_watch=False) as body:
            assert await body.receive_some() == b"ok"
            assert states(transport) == ["<Http11Connection: in use>"]
        assert states(transport) == []


@pytest.mark.parametrize(
    ("path", "params", "target"),
    [
        ("/api/v1/pods", None, b"/api/v1/pods"),
        (
            "/api/v1/pods/web-0.x",
            {"fieldManager": "me", "dryRun": "All"},
            b"/api/v1/pods/web-0.x?fieldManager=me&dryRun=All",
        ),
        ("/api/v1/pods", {"labelSelector": "a=b"}, b"/api/v1/pods?labelSelector=a%3Db"),
        ("/api/v1/pods", {"fieldManager": "a b"}, b"/api/v1/pods?fieldManager=a+b"),
        ("/api/v1/nodes/a%3Ab", None, b"/api/v1/nodes/a%3Ab"),
        ("/api/../secret", None, b"/api/../secret"),
        ("/api/./x", None, b"/api/./x"),
        ("/api//x", None, b"/api//x"),
        ("/api/v1/", None, b"/api/v1/"),
        ("/api/\u00e9", None, b"/api/%C3%A9"),
        ("/a?b=c%2Fd+e", None, b"/a?b=c%2Fd+e"),
        ("/a#b", None, b"/a%23b"),
        ("/a b\r\n", {"c": "\r\n"}, b"/a%20b%0D%0A?c=%0D%0A"),
        ("/a", {"labelSelector": "x," * 40_000}, b"/a?labelSelector=" + b"x%2C" * 40_000),
    ],
)
async def test_a_target_is_quoted_and_never_resolved(path: str, params: dict[str, str] | None, target: bytes) -> None:
    outgoing = Outgoing(method="GET", path=path, params=params, headers=[], accepts_gzip=False, where="")
    assert outgoing.target() == target


@pytest.mark.parametrize("prefix", ["", "/k8s/clusters/c-1"])
async def test_a_target_begins_with_the_path_of_the_server(prefix: str) -> None:
    async with (
        serving(OK, keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url + prefix)) as transport,
    ):
        await transport.request("GET", "/api/v1/pods", params={"limit": "5"})
        await transport.request("GET", "/api/v1/pods", params={"labelSelector": "a=b,c in (d)"})
        await transport.request("GET", "/api/v1/pods/..", params={"labelSelector": "x" * 70_000})
    heads = [head.partition(b" HTTP/1.1")[0].decode() for head in server.heads]
    assert heads == [
        f"GET {prefix}/api/v1/pods?limit=5",
        f"GET {prefix}/api/v1/pods?labelSelector=a%3Db%2Cc+in+%28d%29",
        f"GET {prefix}/api/v1/pods/..?labelSelector={'x' * 70_000}",
    ]
