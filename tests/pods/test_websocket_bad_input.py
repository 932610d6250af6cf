"""Errors of exec and attach: each row of the table in ``docs/howto/exec.rst`` is tested here."""

from __future__ import annotations

import re
import struct
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.pods.test_websocket import SUCCESS, refusal, responding, switch
from tests.support.remains import OPEN_FILES, open_files, wait_for_tasks_to_end
from trioformer import errors
from trioformer._channels import V4
from trioformer.client import Api
from trioformer.errors import ConnectionFailedError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import exec_in_pod, run_in_pod
from trioformer.testing import APIServer

pytestmark = pytest.mark.skipif(not OPEN_FILES.exists(), reason="counts the file descriptors that Linux knows")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "exec.rst"
BINARY, TEXT, CLOSE, PING = 2, 1, 8, 9


def rows() -> list[tuple[str, str, str]]:
    """Return the rows of the table: what has happened, the error, a part of its text."""
    cells = r"   \* - (.+)\n((?:       .+\n)*)     - `(\w+)`\n     - ``(.+)``\n"
    return [
        (" ".join([first, *rest.split()]), error, text)
        for first, rest, error, text in re.findall(cells, PAGE.read_text())
    ]


# --- what is sent ---


def frame(kind: int, payload: bytes = b"", *, length: int | None = None, bits: int = 8, mask: bytes = b"") -> bytes:
    """Return a frame; ``length`` is what it claims, ``bits`` are the four before its kind."""
    size = len(payload) if length is None else length
    marked = 0x80 if mask else 0
    if size < 126:
        head = bytes((marked | size,))
    elif size < 65_536:
        head = bytes((marked | 126,)) + struct.pack("!H", size)
    else:
        head = bytes((marked | 127,)) + struct.pack("!Q", size)
    return bytes((bits << 4 | kind,)) + head + mask + payload


def status(content: bytes) -> bytes:
    return frame(BINARY, b"\x03" + content)


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason)


OUTPUT = frame(BINARY, b"\x01hello")
END = status(SUCCESS)
FORBIDDEN = b'{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}'
NO_UPGRADE = b'{"kind":"Status","status":"Failure","message":"Upgrade request required","code":400}'
NO_NODE = (
    b'{"kind":"Status","status":"Failure","message":"error dialing backend: dial tcp 10.0.0.1:10250: i/o timeout",'
    b'"code":500}'
)
PROXY_PAGE = b"<html><head><title>Bad Gateway</title></head></html>"


class Command:
    """A case on the embedded server: what is executed where."""

    def __init__(self, pod: str, *command: str, **options: Any) -> None:
        self.pod, self.command, self.options = pod, command or ("true",), options


class Bytes:
    """A case with a scripted response, and what follows it."""

    def __init__(self, response: bytes, *frames: bytes, **options: Any) -> None:
        self.response, self.frames, self.options = response, frames, options


def after_switch(*frames: bytes) -> Bytes:
    return Bytes(switch(), *frames)


CASES: dict[str, list[Command | Bytes]] = {
    "the pod does not exist": [Command("none")],
    "the container does not exist": [Command("web-0", container="other")],
    "the pod has several containers, and no container is named": [Command("two")],
    "the pod is not assigned to a node yet": [Command("unscheduled")],
    "the permission ``create`` or ``get`` for ``pods/exec`` or ``pods/attach`` is missing": [
        Bytes(refusal("403 Forbidden", FORBIDDEN))
    ],
    "the program does not exist": [Command("web-0", "nothing")],
    "the container has ended, or has not started": [Command("ended")],
    "the exit code is not 0": [Command("web-0", "fail")],
    "the output is larger than ``max_output_bytes``": [
        Command("web-0", "print", max_output_bytes=4),
        Bytes(switch(), frame(BINARY, b"\x01" + bytes(1000), length=2**62), max_output_bytes=100),
    ],
    "``input`` is passed, and the server is older than Kubernetes 1.30": [Bytes(switch(V4), END, input="x")],
    "the API server cannot reach the node": [Bytes(refusal("500 Internal Server Error", NO_NODE))],
    "the server, or a proxy in front of it, does not support WebSockets": [
        Bytes(refusal("400 Bad Request", NO_UPGRADE)),
        Bytes(b"HTTP/1.1 302 Found\r\nLocation: https://login.example/\r\nContent-Length: 0\r\n\r\n"),
    ],
    "a proxy responds with its own page": [Bytes(refusal("502 Bad Gateway", PROXY_PAGE, "text/html"))],
    "the response is not a valid WebSocket handshake": [
        Bytes(switch(accept="x")),
        Bytes(switch(upgrade="SPDY/3.1")),
    ],
    "the server chooses another WebSocket protocol": [Bytes(switch("")), Bytes(switch("channel.k8s.io"))],
    "the response is not HTTP": [
        Bytes(b"SSH-2.0-OpenSSH_9.9\r\n"),
    ],
    "the connection ends before the process does": [
        after_switch(OUTPUT),
        after_switch(close(1000), END),
        after_switch(b"\x82\x7e\x01"),
    ],
    "the connection ends within a message": [
        after_switch(OUTPUT[:-1]),
        after_switch(frame(BINARY, b"\x01" + bytes(1000), length=2**62)),
    ],
    "the server closes the connection with a reason": [after_switch(OUTPUT, close(1001, b"the node is gone"))],
    "a frame is invalid": [
        *(after_switch(close(code, b"why")) for code in (0, 1015)),
        after_switch(OUTPUT, b"HTTP/1.1 500 Internal Server Error\r\n\r\n"),
        after_switch(frame(BINARY, b"\x01x", bits=12)),
        after_switch(frame(BINARY, b"\x01x", mask=bytes(4))),
        after_switch(frame(3, b"x")),
        after_switch(frame(BINARY, b"\x01a", bits=0), OUTPUT),
        after_switch(frame(PING, bytes(126))),
        after_switch(frame(BINARY, b"\x01x", length=2**63)),
        after_switch(close(1011, bytes(200))),
    ],
    "data arrives on a channel that was not requested": [
        after_switch(OUTPUT, frame(BINARY, bytes((channel,)) + b"x"), END) for channel in (0, 255)
    ],
    "a message is text": [after_switch(OUTPUT, frame(TEXT, b"\x01hello"), END)],
    "a message is empty": [after_switch(OUTPUT, frame(BINARY), END)],
    "the Status is invalid": [
        after_switch(status(b"not json")),
        after_switch(status(b"[]")),
        after_switch(status(bytes(100_000))),
        after_switch(status(SUCCESS[:-1]), close(1000)),
    ],
    "the Status has neither success nor an exit code": [
        after_switch(status(b"{}")),
        after_switch(status(b'{"status":1,"message":[],"reason":{},"code":"x"}')),
        after_switch(status(b'{"status":"Failure","details":[1]}')),
    ],
}
EXPECTED = {what: (getattr(errors, error), text) for what, error, text in rows()}


def test_each_row_of_the_table_has_cases() -> None:
    assert [what for what, _, _ in rows()] == list(CASES)


@asynccontextmanager
async def embedded(server: APIServer) -> AsyncIterator[Api[Pod]]:
    for name, containers, node in [
        ("web-0", ["main"], "node-1"),
        ("two", ["a", "b"], "node-1"),
        ("ended", ["main"], "node-1"),
        ("unscheduled", ["main"], None),
    ]:
        spec = {"nodeName": node, "containers": [{"name": each} for each in containers]}
        server.create(from_dict(Pod, {"metadata": {"name": name}, "spec": spec}))
    server.script_pod("ended").end()
    web = server.script_pod("web-0")
    web.script_command(["fail"], stdout="half", stderr="no space left", exit_code=3)
    web.script_command(["print"], stdout="hello")
    async with server.open_client() as client:
        yield client.api(Pod, namespace="default")


@asynccontextmanager
async def scripted(case: Bytes) -> AsyncIterator[Api[Pod]]:
    async with responding(case.response, *case.frames) as (pods, _):
        yield pods


@pytest.mark.parametrize("what", CASES, ids=lambda what: what[:40])
async def test_what_goes_wrong_is_the_error_of_the_table(what: str, api_server: APIServer) -> None:
    kind, text = EXPECTED[what]
    for case in CASES[what]:
        name, command = (case.pod, case.command) if isinstance(case, Command) else ("web-0", ("true",))
        tasks, files = trio.lowlevel.current_statistics().tasks_living, open_files()
        opened: AbstractAsyncContextManager[Api[Pod]] = (
            embedded(api_server) if isinstance(case, Command) else scripted(case)
        )
        with trio.fail_after(30):
            async with opened as pods:
                with pytest.raises(kind) as raised:
                    await run_in_pod(pods, name, command, **case.options)
            await wait_for_tasks_to_end(tasks)
        assert open_files() == files
        assert type(raised.value) is kind
        message = str(raised.value)
        assert text in message
        assert message.startswith(f"exec in pods/{name} in namespace default: ")
        assert message.isprintable()
        assert len(message) < 1200


FRAMES = {
    what: case
    for what, cases in CASES.items()
    for case in cases
    if isinstance(case, Bytes) and case.response == switch() and EXPECTED[what][0] is ConnectionFailedError
}


async def test_the_streams_end_with_the_same_error_as_the_process() -> None:
    for what, case in FRAMES.items():
        _, text = EXPECTED[what]
        async with scripted(case) as pods, exec_in_pod(pods, "web-0", ["true"]) as process:
            for stream in (process.stdout, process.stderr):
                with pytest.raises(trio.BrokenResourceError, match=re.escape(text)) as raised:
                    await receive_all(stream)
                assert isinstance(raised.value.__cause__, ConnectionFailedError)
            for _ in range(2):
                with pytest.raises(ConnectionFailedError, match=re.escape(text)):
                    await process.wait()


async def receive_all(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([data async for data in stream])
