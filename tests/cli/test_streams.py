"""The standard streams of the tool: pipes that nobody reads, full disks, closed streams, other encodings, signals."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.support.processes import KUBECONFIG, ROOT, running, serving_in_a_thread
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer, ScriptedProcess, serve_http

TOOL = f"{shlex.quote(sys.executable)} -m trioformer"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That of an embedded server with 100 large objects."""
    server = APIServer()
    data = {"text": "x" * 2_000 + "日本"}
    for number in range(100):
        server.create(from_dict(ConfigMap, {"metadata": {"name": f"settings-{number}"}, "data": data}))
    spec = {"nodeName": "node-1", "containers": [{"name": "main"}]}
    server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": spec}))
    web = server.script_pod("web-0")
    web.write_log("x" * 500_000)
    web.script_command(["fail"], exit_code=0xC000_013A)
    web.script_command(["fail", "again"], exit_code=-256)

    async def write(process: ScriptedProcess) -> None:
        while True:
            await process.stdout.send_all(b"yes\n" * 1_000)

    web.on_exec(write)

    async def serve(*, task_status: trio.TaskStatus[str]) -> None:
        await serve_http(server, task_status=task_status)

    with serving_in_a_thread(serve) as url:
        path = tmp_path_factory.mktemp("streams") / "kubeconfig"
        path.write_text(KUBECONFIG.format(url=url))
        yield path


def shell(script: str, kubeconfig: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """Run a script in which ``TOOL`` is the tool; returns the exit code, and both outputs."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONUNB", "PYTHONIO"))}
    variables |= {"PYTHONPATH": str(ROOT), "KUBECONFIG": str(kubeconfig or "/nonexistent"), **environment}
    done = subprocess.run(
        ["bash", "-c", script.replace("TOOL", TOOL)], capture_output=True, env=variables, check=False, cwd=ROOT
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_pipe_that_nobody_reads_any_more_ends_the_tool_without_a_word(kubeconfig: Path) -> None:
    code, out, err = shell("TOOL get configmaps -o yaml | head -1; exit ${PIPESTATUS[0]}", kubeconfig)
    assert (code, out, err) == (141, "apiVersion: v1\n", "")


@pytest.mark.parametrize("command", ["version --client", "help", "get configmaps -o yaml"])
def test_a_full_disk_is_an_error_of_one_line(command: str, kubeconfig: Path) -> None:
    assert shell(f"TOOL {command} >/dev/full", kubeconfig) == (
        1,
        "",
        "error: cannot write to standard output: No space left on device\n",
    )


@pytest.mark.parametrize("command", ["exec web-0 -- write", "exec -i web-0 -- write </dev/null"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_process_with_a_full_output_is_an_error_of_one_line(command: str, unbuffered: str, kubeconfig: Path) -> None:
    problem = "error: cannot write to standard output: No space left on device\n"
    assert shell(f"TOOL {command} >/dev/full", kubeconfig, PYTHONUNBUFFERED=unbuffered) == (1, "", problem)


def test_streams_that_are_closed_are_as_dev_null(kubeconfig: Path) -> None:
    # As for kubectl: Go opens /dev/null in their place.
    assert shell("TOOL version --client >&-") == (0, "", "")
    assert shell("TOOL get nothing 2>&-", kubeconfig) == (1, "", "")
    code, out, err = shell("TOOL get configmap settings-1 -o name <&- 2>&-", kubeconfig)
    assert (code, out, err) == (0, "configmap/settings-1\n", "")


def test_output_is_utf_8_whatever_the_locale_says(kubeconfig: Path) -> None:
    code, out, err = shell(
        "TOOL get configmap settings-1 -o jsonpath={.data.text}", kubeconfig, PYTHONIOENCODING="ascii"
    )
    assert (code, out, err) == (0, "x" * 2_000 + "日本", "")


def test_an_argument_that_is_not_utf_8_is_named(kubeconfig: Path) -> None:
    assert shell("TOOL get configmaps -l $'\\xff'", kubeconfig) == (
        1,
        "",
        "error: an argument is not UTF-8: b'\\xff'\n",
    )


def test_the_exit_code_of_a_process_is_that_of_the_tool_as_far_as_a_shell_sees_it(kubeconfig: Path) -> None:
    problem = "command terminated with exit code"
    assert shell("TOOL exec web-0 -- fail", kubeconfig) == (0x3A, "", f"{problem} {0xC000_013A}\n")
    assert shell("TOOL exec web-0 -- fail again", kubeconfig) == (1, "", f"{problem} -256\n")


def test_a_process_whose_output_nobody_reads_any_more_ends_the_tool(kubeconfig: Path) -> None:
    code, out, err = shell("TOOL exec web-0 -- yes | head -1; exit ${PIPESTATUS[0]}", kubeconfig)
    assert (code, out, err) == (141, "yes\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_what_follows_without_a_word(number: signal.Signals, kubeconfig: Path) -> None:
    with trio.fail_after(60):
        async with running("-m", "trioformer", "get", "cm", "-w", "--kubeconfig", str(kubeconfig)) as program:
            await program.wait_for_output()
            program.process.send_signal(number)
            assert (await program.wait_until_over(), program.errors) == (128 + number, [])


@pytest.mark.parametrize("command", ["get configmaps -o yaml", "get --raw /api/v1/configmaps", "logs web-0"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_tool_while_its_output_is_blocked(
    number: signal.Signals, command: str, kubeconfig: Path
) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    given = [sys.executable, "-m", "trioformer", *command.split(), f"--kubeconfig={kubeconfig}"]
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(partial(trio.run_process, given, stdout=writer, check=False, cwd=ROOT))
            try:
                await trio.lowlevel.wait_readable(reader)
                process.send_signal(number)
                assert await process.wait() == 128 + number
            finally:
                process.kill()
                os.close(reader)
                os.close(writer)
