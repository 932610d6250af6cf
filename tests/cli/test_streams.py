"""The standard streams of the tool: pipes that nobody reads, full disks, closed streams, other encodings, signals."""

from __future__ import annotations

import fcntl
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import trio

from tests.support.processes import KUBECONFIG, ROOT, running, serving_in_a_thread
from trioformer.cli._failures import CommandError
from trioformer.cli._main import main
from trioformer.cli._streams import Output, open_standard_streams
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.models.rbac_v1 import Role
from trioformer.testing import APIServer, ScriptedProcess, serve_http

CONTROLS = "\x07\x08\x1b]0;t\x7f\x9b2J\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
"""What a terminal obeys."""
LOG = f"\x1b[31mred\x1b[0m\ttab\r\n{CONTROLS}\x1b[2J\rover"
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
    for name in (f"role{CONTROLS}", "zzz"):
        server.create(from_dict(Role, {"metadata": {"name": name, "namespace": "default"}}))
    server.create(from_dict(Pod, {"metadata": {"name": "colored"}, "spec": spec}))
    server.script_pod("colored").write_log(LOG)
    web = server.script_pod("web-0")
    web.write_log("x" * 500_000)

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


def shown_on_a_terminal(*arguments: str, kubeconfig: Path, until: str = "\0") -> str:
    """Run the tool with a terminal as its standard output, until it ends or has shown a text."""
    user, screen = os.openpty()
    command = [sys.executable, "-m", "trioformer", "--kubeconfig", str(kubeconfig), *arguments]
    shown = b""
    environment = os.environ | {"COLUMNS": "200", "http_proxy": "http://p:1", "no_proxy": f"127.0.0.1,{CONTROLS}"}
    with subprocess.Popen(command, stdout=screen, cwd=ROOT, env=environment) as process:
        os.close(screen)
        with suppress(OSError):  # of a terminal without a program
            while until.encode() not in shown:
                shown += os.read(user, 65536)
        process.terminate()
    os.close(user)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("arguments", "until"),
    [
        (["get", "roles"], ""),
        (["watch", "roles"], "zzz"),
        (["doctor"], ""),
    ],
    ids=lambda each: " ".join(each).partition("{")[0] if isinstance(each, list) else "",
)
def test_a_terminal_does_not_obey_what_tenants_have_written(arguments: list[str], until: str, kubeconfig: Path) -> None:
    shown = shown_on_a_terminal(*arguments, kubeconfig=kubeconfig, until=until or "\0")
    assert shown
    assert until in shown
    assert {*CONTROLS.replace("\x1b]0;t", "").replace("2J", "")} & {*shown} == set()
    assert "\x1b]" not in shown


def test_a_log_keeps_lines_tabs_and_colors_on_a_terminal_and_every_byte_elsewhere(kubeconfig: Path) -> None:
    shown = shown_on_a_terminal("logs", "colored", kubeconfig=kubeconfig)
    red, controls = shown.splitlines()
    assert red == "\x1b[31mred\x1b[0m\ttab"
    assert controls.isprintable()
    assert controls.endswith(r"\u001b[2J\u000dover")
    assert shell("TOOL logs colored", kubeconfig)[1] == f"{LOG}\n"


def test_characters_and_colors_that_arrive_in_parts_are_written_whole() -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    out = Output(io.TextIOWrapper(terminal, encoding="utf-8"))
    data = "\x1b[38;5;1mé\r\n\x1b[0m".encode()
    for byte in data:
        out.write_bytes(bytes([byte]))
    assert terminal.getvalue() == data


def test_a_kubeconfig_may_be_a_pipe_that_is_read_once(kubeconfig: Path) -> None:
    expected = (0, "configmap/settings-1\n", "")
    command = "get configmap settings-1 -o name"
    assert shell(f"TOOL --kubeconfig <(cat {kubeconfig}) {command}") == expected
    assert shell(f"cat {kubeconfig} | KUBECONFIG=/gone:/dev/stdin TOOL {command}") == expected


async def test_the_tool_ends_while_it_waits_for_its_kubeconfig(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")
    command = [sys.executable, "-m", "trioformer", "--kubeconfig", str(tmp_path / "config"), "get", "pods"]
    with trio.fail_after(30):
        process = await trio.lowlevel.open_process(command, cwd=ROOT)
        try:
            # It opens the FIFO, which the test then opens, too.
            file = await trio.to_thread.run_sync(os.open, tmp_path / "config", os.O_WRONLY, abandon_on_cancel=True)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 128 + signal.SIGTERM
            os.close(file)
        finally:
            process.kill()


def test_a_pipe_that_nobody_reads_any_more_ends_the_tool_without_a_word(kubeconfig: Path) -> None:
    code, out, err = shell("TOOL get configmaps -o yaml | head -1; exit ${PIPESTATUS[0]}", kubeconfig)
    assert (code, out, err) == (141, "---\n", "")


@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [("get configmaps -o yaml", ""), ("exec web-0 -- write", "1"), ("exec -i web-0 -- write </dev/null", "")],
)
def test_a_full_disk_is_an_error_of_one_line(command: str, unbuffered: str, kubeconfig: Path) -> None:
    problem = "error: cannot write to standard output: No space left on device\n"
    assert shell(f"TOOL {command} >/dev/full", kubeconfig, PYTHONUNBUFFERED=unbuffered) == (1, "", problem)


def test_streams_that_are_closed_are_as_dev_null(kubeconfig: Path) -> None:
    # As for kubectl: Go opens /dev/null in their place.
    assert shell("TOOL version --client >&-") == (0, "", "")
    code, out, err = shell("TOOL get configmap settings-1 -o name <&- 2>&-", kubeconfig)
    assert (code, out, err) == (0, "configmap/settings-1\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_what_follows_without_a_word(number: signal.Signals, kubeconfig: Path) -> None:
    with trio.fail_after(60):
        async with running("-m", "trioformer", "get", "cm", "-w", "--kubeconfig", str(kubeconfig)) as program:
            await program.wait_for_output()
            program.process.send_signal(number)
            assert (await program.wait_until_over(), program.errors) == (128 + number, [])


@pytest.mark.parametrize(
    ("number", "command"), [(signal.SIGINT, "get configmaps -o yaml"), (signal.SIGTERM, "logs web-0")]
)
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


# --- in this process ---

FULL = "cannot write to standard output: No space left on device"


class Ended(BaseException):
    """What ``os._exit`` raises in these tests."""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The codes that ``os._exit`` was called with; the handlers of signals are put back."""
    codes: list[int] = []

    def end(code: int) -> NoReturn:
        codes.append(code)
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield codes
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_descriptor_that_is_closed_is_opened_with_dev_null(number: int) -> None:
    kept = os.dup(number)
    try:
        os.close(number)
        open_standard_streams()
        assert os.path.samestat(os.fstat(number), os.stat(os.devnull))
    finally:
        os.dup2(kept, number)
        os.close(kept)


def test_streams_that_python_has_not_opened_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        with stream:
            assert (stream.name, stream.encoding) == (os.devnull, "utf-8")


def test_the_streams_write_utf_8_and_bytes_of_arguments_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # not one of the system, so it stays as it is
    open_standard_streams()
    sys.stdout.write("日本\udcff")
    sys.stdout.flush()
    assert written.getvalue() == "日本".encode() + b"\xff"


def test_bytes_follow_the_text_also_where_a_part_of_them_is_written() -> None:
    class Slow(io.RawIOBase):
        written = b""

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            piece = bytes(memoryview(data)[:3])  # type: ignore[arg-type]  # the base class accepts any buffer
            self.written += piece
            return len(piece)

    slow = Slow()
    out = Output(io.TextIOWrapper(slow, encoding="utf-8"))  # type: ignore[type-var]  # as with PYTHONUNBUFFERED
    assert out.write("ab") == 2
    out.write_bytes(b"cdefghij")
    assert slow.written == b"abcdefghij"
    assert out.encoding == "utf-8"  # what else a stream has is that of the stream


def test_a_full_disk_fails_once_and_what_is_left_goes_nowhere() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        out = Output(full)
        out.write("in the buffer")
        with pytest.raises(CommandError, match=FULL):
            out.flush()
        assert os.path.samestat(os.fstat(full.fileno()), os.stat(os.devnull))
    for size in (1, 100_000):
        with open("/dev/full", "w", encoding="utf-8") as full, pytest.raises(CommandError, match=FULL):
            Output(full).write_bytes(b"x" * size)


def test_a_pipe_that_nobody_reads_stays_the_error_of_a_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb", buffering=0) as pipe:
        out = Output(io.TextIOWrapper(pipe, encoding="utf-8", write_through=True))
        with pytest.raises(BrokenPipeError):
            out.write("x")
        with pytest.raises(BrokenPipeError):
            out.write_bytes(b"x")


def test_a_signal_while_output_is_written_ends_the_process(exits: list[int]) -> None:
    class Blocked(io.StringIO):
        def write(self, text: str) -> int:
            signal.raise_signal(signal.SIGTERM)
            return len(text)

    handled: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: handled.append(number))
    out = Output(Blocked())
    out.end_on_signals()
    with pytest.raises(Ended):
        out.write("x")
    assert (exits, handled) == ([143], [])


def test_a_signal_between_two_writes_ends_the_process_at_the_next_one(exits: list[int]) -> None:
    handled: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: handled.append(number))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out = Output(io.StringIO())
    out.end_on_signals()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN  # a signal that is ignored stays ignored
    out.write("x")
    signal.raise_signal(signal.SIGINT)
    assert (exits, handled) == ([], [signal.SIGINT])
    with pytest.raises(Ended):
        out.write("x")
    assert exits == [130]


@pytest.fixture
def shown(exits: list[int], capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """Both outputs; the handlers of signals are those of a new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    return capsys


def test_the_tool_runs_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, shown: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["trioformer", "gett"])
    assert main() == 1
    problem = "error: unknown command 'gett' for trioformer; did you mean get?\n"
    assert shown.readouterr() == ("", problem)


def test_the_tool_reports_a_full_disk(monkeypatch: pytest.MonkeyPatch, shown: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert (main(["help"]), shown.readouterr().err) == (1, f"error: {FULL}\n")


@pytest.mark.parametrize(("returned", "code"), [(0, 0), (7, 7), (0xC000_013A, 0x3A), (-256, 1)])
def test_the_exit_code_has_8_bits_and_a_failure_stays_one(
    returned: int, code: int, monkeypatch: pytest.MonkeyPatch, shown: pytest.CaptureFixture[str]
) -> None:
    async def run_command(*_: object) -> int:
        await trio.lowlevel.checkpoint()
        return returned

    monkeypatch.setattr("trioformer.cli._main.run_command", run_command)
    assert (main([]), shown.readouterr().err) == (code, "")


def test_a_terminal_that_is_closed_ends_the_tool_in_order(
    monkeypatch: pytest.MonkeyPatch, shown: pytest.CaptureFixture[str]
) -> None:
    ended: list[str] = []

    async def run_command(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
            await trio.sleep_forever()
        finally:
            ended.append("clean")

    monkeypatch.setattr("trioformer.cli._main.run_command", run_command)
    assert (main([]), ended, shown.readouterr().err) == (143, ["clean"], "")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_terminal_that_is_closed_does_not_end_the_tool_after_nohup(
    monkeypatch: pytest.MonkeyPatch, shown: pytest.CaptureFixture[str]
) -> None:
    async def run_command(*_: object) -> int:
        signal.raise_signal(signal.SIGHUP)
        await trio.lowlevel.checkpoint()
        return 3

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr("trioformer.cli._main.run_command", run_command)
    assert (main([]), shown.readouterr().err) == (3, "")
