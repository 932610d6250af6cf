"""``exec`` and ``attach``: the pod and container that are meant, exit codes, and the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import termios
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.testing import APIServer, ScriptedPod, ScriptedProcess, serve_http


def add_pod(server: APIServer, name: str, *containers: str, phase: str = "", **more: object) -> ScriptedPod:
    found = [{"name": each, "image": "x", **more} for each in containers or ("main",)]
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
    status = {"phase": phase} if phase else {}
    server.create({**head, "spec": {"nodeName": "node-1", "containers": found}, "status": status})
    return server.script_pod(name)


async def test_the_output_and_the_exit_code_are_those_of_the_command(api_server: APIServer) -> None:
    pod = add_pod(api_server, "one")
    pod.script_command(["ls", "-l", "--", "/x"], stdout="out\n", stderr="err\n", exit_code=3)
    result = await run(api_server, "exec", "one", "--", "ls", "-l", "--", "/x")
    assert (result.code, result.out, result.err) == (3, "out\n", "err\ncommand terminated with exit code 3\n")
    pod.script_command(["true"])
    result = await run(api_server, "exec", "pod/one", "-c", "main", "--", "true")
    assert (result.code, result.out, result.err) == (0, "", "")


async def test_the_first_container_is_the_default_and_is_named(api_server: APIServer) -> None:
    pod = add_pod(api_server, "one", "a", "b")
    pod.script_command(["name"], stdout="a", container="a")
    pod.script_command(["name"], stdout="b", container="b")
    result = await run(api_server, "exec", "one", "--", "name")
    assert (result.out, result.err) == ("a", 'Defaulted container "a" out of: a, b\n')
    assert (await run(api_server, "exec", "-q", "one", "--", "name")).err == ""
    assert (await run(api_server, "exec", "one", "-c", "b", "--", "name")).out == "b"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--", "ls"], "a pod or TYPE/NAME is required"),
        (["one"], "a command after -- is required"),
        (["one", "ls"], "the command must follow --"),
        (["one", "two", "--", "ls"], "expected one pod before --, got 2: one two"),
        (["done", "--", "ls"], "cannot exec into a container in a completed pod; current phase is Succeeded"),
        (["cm/c", "--", "ls"], "cannot attach to *v1.ConfigMap: selector for *v1.ConfigMap not implemented"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_mistakes_of_exec_are_one_line(api_server: APIServer, arguments: list[str], problem: str) -> None:
    add_pod(api_server, "one")
    add_pod(api_server, "done", phase="Succeeded")
    api_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}})
    result = await run(api_server, "exec", *arguments)
    assert result.code == 1
    assert result.err.splitlines()[0].startswith(f"error: {problem}")


async def test_what_the_node_cannot_execute_is_an_error_of_the_node(api_server: APIServer) -> None:
    add_pod(api_server, "one")
    result = await run(api_server, "exec", "one", "--", "none")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: Internal error occurred: ")
    result = await run(api_server, "exec", "two", "--", "none")
    assert result.err == 'Error from server (NotFound): pods "two" not found\n'


async def test_the_best_pod_of_a_service_is_taken(api_server: APIServer, autojump_clock: MockClock) -> None:
    spec = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    metadata = {"name": "web", "namespace": "default"}
    api_server.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    began = trio.current_time()
    result = await run(api_server, "exec", "svc/web", "--pod-running-timeout=1m30s", "--", "name")
    assert (result.code, result.err) == (1, "error: timed out waiting for the condition\n")
    assert trio.current_time() == began + 90
    for name, node in (("pending", ""), ("running", "node-1")):
        head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        head["metadata"] = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        pod = {"containers": [{"name": "main", "image": "x"}], **({"nodeName": node} if node else {})}
        api_server.create({**head, "spec": pod})
    api_server.script_pod("running").script_command(["name"], stdout="running")
    assert (await run(api_server, "exec", "svc/web", "--", "name")).out == "running"


async def upper(process: ScriptedProcess) -> int:
    """Write the input in capital letters."""
    async for data in process.stdin:
        await process.stdout.send_all(data.upper())
    return 7


async def test_input_and_output_may_be_pipes_and_binary(api_server: APIServer, nursery: trio.Nursery) -> None:
    add_pod(api_server, "one").on_exec(upper)
    url = await nursery.start(serve_http, api_server)
    command = [sys.executable, "-m", "trioformer", "-s", url, "exec", "-it", "one", "--", "upper"]
    done = await trio.run_process(
        command, stdin=b"\xffab" * 100_000, capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.stdout == b"\xffAB" * 100_000
    assert done.stderr.decode().splitlines() == [
        "Unable to use a TTY - input is not a terminal or the right kind of file",
        "command terminated with exit code 7",
    ]
    assert done.returncode == 7


async def test_a_terminal_is_raw_while_it_is_connected(api_server: APIServer, nursery: trio.Nursery) -> None:
    modes = []
    user, program = os.openpty()

    async def shell(process: ScriptedProcess) -> int:
        await process.stdout.send_all(b"$ ")
        modes.append(await process.stdin.receive_some())  # Ctrl-C as a byte
        modes.append(termios.tcgetattr(program)[3] & termios.ICANON)
        return 0

    pod = add_pod(api_server, "one", tty=True, stdin=True)
    pod.on_exec(shell)
    url = await nursery.start(serve_http, api_server)
    arguments = ["exec", "-it", "one", "--", "sh"]
    before = termios.tcgetattr(program)
    shown = b""
    started = partial(
        trio.run_process,
        [sys.executable, "-m", "trioformer", "-s", url, *arguments],
        stdin=program,
        stdout=program,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    try:
        process: trio.Process = await nursery.start(started)
        while b"$ " not in shown:
            await trio.lowlevel.wait_readable(user)
            shown += os.read(user, 1024)
        os.write(user, b"\x03")
        assert await process.wait() == 0
        assert modes == [b"\x03", 0]
        assert termios.tcgetattr(program) == before
    finally:
        os.close(user)
        os.close(program)


def given_stdin(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    monkeypatch.setattr("trioformer.cli.commands._interactive._STDIN", fd)


async def run_with_files(server: APIServer, out: int, *arguments: str) -> tuple[int, str]:
    """Run a command whose output is a file; returns its exit code, and what it has written to standard error."""
    given = ["--server", server.config.server, *arguments]
    with os.fdopen(out, "w", encoding="utf-8", closefd=False) as shown, tempfile.TemporaryFile("w+") as err:
        code = await run_command(given, shown, err, {}, opener_of(server.http_transport()))
        err.seek(0)
        return code, err.read()


async def test_the_input_and_the_output_may_be_files(
    api_server: APIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def upper(process: ScriptedProcess) -> int:
        await process.stdout.send_all((await process.stdin.receive_all()).upper())
        await process.stderr.send_all(b"done\n")
        return 4

    add_pod(api_server, "one").on_exec(upper)
    (tmp_path / "in").write_text("text")
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as out:
        given_stdin(monkeypatch, given.fileno())
        code, err = await run_with_files(api_server, out.fileno(), "exec", "-i", "one", "--", "upper")
    assert (code, (tmp_path / "out").read_text()) == (4, "TEXT")
    assert err == "done\ncommand terminated with exit code 4\n"


async def test_an_input_that_is_no_terminal_is_noted_unless_quiet(
    api_server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pod(api_server, "one").script_command(["ls"], stdout="out")
    note = "Unable to use a TTY - input is not a terminal or the right kind of file\n"
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as nothing:
        given_stdin(monkeypatch, nothing.fileno())
        for flags, err in (("-it", note), ("-itq", ""), ("-i", ""), ("-t", "")):
            result = await run(api_server, "exec", flags, "one", "--", "ls")
            assert (result.code, result.out, result.err) == (0, "out", err), flags


async def test_a_standard_input_that_is_closed_is_an_error(
    api_server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pod(api_server, "one").script_command(["ls"])
    monkeypatch.setattr(sys, "stdin", None)
    result = await run(api_server, "exec", "-i", "one", "--", "ls")
    assert (result.code, result.err) == (1, "error: -i requires standard input, but it is closed\n")


async def test_an_input_or_output_that_fails_is_an_error_of_one_line(
    api_server: APIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def echo(process: ScriptedProcess) -> int:
        await process.stdout.send_all(b"x")
        await process.stdin.receive_some()
        return 0

    pod = add_pod(api_server, "one")
    pod.script_command(["ls"], stdout="out")
    pod.on_exec(echo)
    with os.fdopen(os.open("/dev/full", os.O_WRONLY), "w") as full:
        code, err = await run_with_files(api_server, full.fileno(), "exec", "one", "--", "ls")
        assert (code, err) == (1, "error: cannot write to standard output: No space left on device\n")
    directory = os.open(tmp_path, os.O_RDONLY)
    given_stdin(monkeypatch, directory)
    try:
        result = await run(api_server, "exec", "-i", "one", "--", "echo")
    finally:
        os.close(directory)
    assert (result.code, result.err) == (1, "error: cannot use standard input: Is a directory\n")


async def test_a_reader_that_has_gone_is_not_an_error_of_the_command(api_server: APIServer) -> None:
    add_pod(api_server, "one").script_command(["ls"], stdout="out")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(BrokenPipeError):
            await run_with_files(api_server, writer, "exec", "one", "--", "ls")
    finally:
        os.close(writer)


async def test_a_connection_that_breaks_is_an_error_of_one_line(api_server: APIServer) -> None:
    add_pod(api_server, "one").on_exec(ScriptedProcess.disconnect)
    result = await run(api_server, "exec", "one", "--", "ls")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "exit code is not known" in result.err
