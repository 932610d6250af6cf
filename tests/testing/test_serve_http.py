"""The embedded API server on a real socket: in this process, and as a command."""

from __future__ import annotations

import io
import json
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.support.kubeconfigs import load_kubeconfig
from tests.support.processes import Program, running
from tests.support.raw_requests import config_map, pod
from trioformer.client import open_client
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http
from trioformer.testing.__main__ import main

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def served(server: APIServer) -> AsyncIterator[str]:
    """Serve beside the block, on loopback."""
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            yield await nursery.start(serve_http, server)
            nursery.cancel_scope.cancel()


async def receive_until(stream: trio.SocketStream, text: bytes, received: bytes = b"") -> bytes:
    while text not in received:
        chunk = await stream.receive_some()
        assert chunk, received
        received += chunk
    return received


@asynccontextmanager
async def raw_watch(url: str, path: str = PODS) -> AsyncIterator[trio.SocketStream]:
    """A watch on a socket of its own, its head read already."""
    host, port = url.removeprefix("http://").split(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(f"GET {path}?watch=1 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = await receive_until(stream, b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head.lower()
        yield stream


# --- in this process ------------------------------------------------------------------------------------------------


async def test_requests_are_answered_over_http() -> None:
    server = APIServer()
    async with served(server) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.post(PODS, json=pod())).status_code == 201
        listed = await http.get(PODS)
        assert listed.headers["content-length"] == str(len(listed.content))
        assert "server" not in listed.headers
        assert len(listed.json()["items"]) == 1
        assert (await http.get("/nope")).status_code == 404
    assert [one.name for one in server.list(Pod)] == ["web-1"]


async def test_a_watch_streams_one_chunk_for_each_event() -> None:
    server = APIServer()
    async with served(server) as url, raw_watch(url) as stream:
        for name in ("a", "b"):
            server.create(pod(name))
            received = await receive_until(stream, b"\n\r\n")
            size, _, frame = received.partition(b"\r\n")
            assert int(size, 16) == len(frame) - 2
            assert json.loads(frame)["object"]["metadata"]["name"] == name
        server.disconnect_watches()
        assert await receive_until(stream, b"0\r\n\r\n") == b"0\r\n\r\n"


async def test_a_client_that_leaves_ends_its_watch() -> None:
    server = APIServer()
    async with served(server) as url:
        async with raw_watch(url) as stream:
            server.create(pod())
            await receive_until(stream, b"\n\r\n")
            assert server.statistics().open_watches == 1
        async with httpx.AsyncClient(base_url=url) as http:
            for _ in range(100):  # each a round trip: the server notices within a few
                await http.get("/version")
                if not server.statistics().open_watches:
                    return
    pytest.fail("the watch is still open")


async def test_a_reset_breaks_the_connection() -> None:
    server = APIServer()
    async with served(server) as url, raw_watch(url) as stream:
        server.create(pod())
        await receive_until(stream, b"\n\r\n")
        server.disconnect_watches(how="reset")
        assert await stream.receive_some() == b""  # and no last chunk before it


async def test_a_reset_is_the_same_error_in_process() -> None:
    server, errors = APIServer(), set[str]()
    async with served(server) as url, trio.open_nursery() as nursery:
        await nursery.start(server.run)
        for opened in (open_client(ClusterConfig(server=url)), server.open_client()):
            async with opened as client, client.api(Pod).watch(resource_version="1") as events:
                server.disconnect_watches(how="reset")
                with pytest.raises(ConnectionFailedError) as caught:
                    await anext(events)
                errors.add(str(caught.value).rpartition(": ")[2])
        nursery.cancel_scope.cancel()
    assert errors == {"the connection closed before the end of the body; try again"}


async def test_the_end_does_not_wait_for_watches(mock_clock: trio.testing.MockClock) -> None:
    """The clock stands still, and jumps to what is waited for as soon as the end waits for anything."""
    server = APIServer()
    async with AsyncExitStack() as watches:
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve_http, server)
            for _ in range(2):
                await watches.enter_async_context(raw_watch(url))
            assert server.statistics().open_watches == 2
            mock_clock.autojump_threshold = 0.05  # only now: real sockets are no faster than others
            nursery.cancel_scope.cancel()
        assert trio.current_time() == 0
        assert server.statistics().open_watches == 0


async def test_requests_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = APIServer()
    logger = logging.getLogger("tests.access")
    with caplog.at_level(logging.INFO, "tests.access"):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(partial(serve_http, server, access_log=logger))
            async with httpx.AsyncClient(base_url=url) as http:
                await http.get("/version")
            nursery.cancel_scope.cancel()
    assert "GET /version" in caplog.text


@pytest.mark.parametrize(
    "bind",
    ["", "8001", "127.0.0.1:x", "127.0.0.1:65536"],
)
async def test_an_address_has_a_host_and_a_port(bind: str) -> None:
    with pytest.raises(ValueError, match="cannot listen on"):
        await serve_http(APIServer(), bind)


async def test_an_address_in_use_raises_oserror() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            await serve_http(APIServer(), f"127.0.0.1:{taken.getsockname()[1]}")


# --- the command, here ----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Presses Ctrl-C when the URL appears."""

    def write(self, text: str) -> int:
        written = super().write(text)
        if "http://" in text:
            signal.raise_signal(signal.SIGINT)
        return written


def test_the_command_prints_its_url_and_ends_on_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    file = tmp_path / "kubeconfig"
    assert (
        main(
            ["serve", "--bind=127.0.0.1:0", f"--write-kubeconfig={file}", "--living", "--access-log", "--insecure-http"]
        )
        == 0
    )
    (url,) = terminal.getvalue().splitlines()
    config = load_kubeconfig(file)
    assert (config.server, config.namespace, config.context) == (url, "default", "trioformer")


@pytest.mark.parametrize(
    ("bind", "problem"),
    [
        ("127.0.0.1", "it must be host:port, such as 127.0.0.1:8001, or :8001"),
        ("127.0.0.1:99999", "the port must be at most 65535"),
    ],
)
def test_a_bad_address_is_one_line(bind: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", bind]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: cannot listen on '{bind}': {problem}")


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", "--bind", bind]) == 1
    assert capsys.readouterr().err.splitlines() == [f"error: cannot listen on {bind}: Address already in use"]


def test_a_kubeconfig_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", "127.0.0.1:0", "--write-kubeconfig", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [f"error: cannot write the kubeconfig {tmp_path}: Is a directory"]


@pytest.mark.parametrize("arguments", [[], ["frob"], ["serve", "--frob"], ["serve", "--bind"]])
def test_usage_errors_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m trioformer.testing" in capsys.readouterr().err


# --- the command, as a process --------------------------------------------------------------------------------------


@asynccontextmanager
async def command(*options: str) -> AsyncIterator[tuple[Program, str]]:
    """Run the command."""
    with trio.fail_after(30):
        async with running(
            "-m", "trioformer.testing", "serve", "--bind", "127.0.0.1:0", "--insecure-http", *options
        ) as program:
            await program.wait_for(lambda lines: bool(lines))
            yield program, program.lines[0]


@pytest.mark.parametrize("patience", [30.0, pytest.param(1.5, marks=pytest.mark.long)])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_command_at_once_with_watches_open(how: signal.Signals, patience: float) -> None:
    async with command() as (program, url), raw_watch(url), raw_watch(url):
        with trio.fail_after(patience):
            program.process.send_signal(how)
            assert await program.wait_until_over() == 0
        assert program.errors == []
        assert program.lines == [url]


async def test_a_client_that_has_stopped_reading_does_not_hold_up_the_end() -> None:
    async with command() as (program, url), raw_watch(url, CONFIG_MAPS):
        async with httpx.AsyncClient(base_url=url, timeout=20) as http:
            for number in range(20):  # far more than two sockets' buffers hold
                body = {**config_map(f"cm-{number}"), "data": {"text": "x" * 1_000_000}}
                assert (await http.post(CONFIG_MAPS, json=body)).status_code == 201
        program.process.send_signal(signal.SIGTERM)
        assert await program.wait_until_over() == 0
        assert program.errors == []


@pytest.mark.parametrize("patience", [30.0, pytest.param(3.0, marks=pytest.mark.long)])
async def test_the_simulated_cluster_shows_every_kind_of_event(patience: float) -> None:
    """How soon is tested in virtual time, in ``tests/testing/test_simulation.py``, and here with ``--long``."""
    async with command("--living") as (_, url), raw_watch(url) as stream:
        received = b""
        with trio.fail_after(patience):
            for kind in (b'"ADDED"', b'"MODIFIED"', b'"DELETED"'):
                received = await receive_until(stream, kind, received)
