"""The terminal of this program, connected with a process in a container."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trioformer.client import Api
from trioformer.errors import ConnectionFailedError
from trioformer.models.core_v1 import Pod
from trioformer.pods import exec_in_pod, interact
from trioformer.testing import ScriptedPod, ScriptedProcess


@attrs.frozen
class Terminal:
    """A terminal; the test has the keyboard and the screen."""

    user: int
    program: int

    @property
    def mode(self) -> list[object]:
        return termios.tcgetattr(self.program)

    @property
    def is_raw(self) -> bool:
        flags = termios.tcgetattr(self.program)[3]
        return not flags & (termios.ICANON | termios.ECHO | termios.ISIG)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.program, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def screen(self, size: int) -> bytes:
        shown = b""
        while len(shown) < size:
            await trio.lowlevel.wait_readable(self.user)
            shown += os.read(self.user, 1024)
        return shown


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    user, program = os.openpty()
    found = Terminal(user, program)
    found.resize(80, 24)
    yield found
    os.close(user)
    os.close(program)


async def shell(process: ScriptedProcess) -> int:
    """Echo until Ctrl-D, and show new sizes."""

    async def show_sizes() -> None:
        while True:
            size = await process.wait_resized()
            await process.stdout.send_all(f"<{size.columns}x{size.lines}>".encode())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(show_sizes)
        async for data in process.stdin:
            if data == b"\x04":
                break
            await process.stdout.send_all(b"[" + data + b"]")
        nursery.cancel_scope.cancel()
    return 5


async def test_a_terminal_is_raw_while_a_process_has_it(web: ScriptedPod, pods: Api[Pod], terminal: Terminal) -> None:
    web.on_exec(shell)
    before, codes = terminal.mode, list[int]()
    async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True) as process, trio.open_nursery() as nursery:

        async def run() -> None:
            codes.append(await interact(process, stdin=terminal.program, stdout=terminal.program))

        nursery.start_soon(run)
        assert await terminal.screen(7) == b"<80x24>"
        assert terminal.is_raw
        os.write(terminal.user, b"ls\x03\r")  # Ctrl-C goes to the process
        assert await terminal.screen(6) == b"[ls\x03\r]"
        terminal.resize(100, 50)
        signal.raise_signal(signal.SIGWINCH)
        assert await terminal.screen(8) == b"<100x50>"
        os.write(terminal.user, b"\x04")
    assert codes == [5]
    assert terminal.mode == before


async def test_the_terminal_is_restored_after_a_cancellation_and_an_error(
    web: ScriptedPod, pods: Api[Pod], terminal: Terminal
) -> None:
    async def break_off(process: ScriptedProcess) -> None:
        await process.stdin.receive_some()
        await process.disconnect()

    before = terminal.mode
    for is_error in (False, True):
        web.on_exec(break_off)
        async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True) as process, trio.open_nursery() as nursery:

            async def run() -> None:
                if is_error:  # noqa: B023  # used in this turn only
                    with pytest.raises(ConnectionFailedError):
                        await interact(process, stdin=terminal.program, stdout=terminal.program)
                else:
                    await interact(process, stdin=terminal.program, stdout=terminal.program)

            nursery.start_soon(run)
            await wait_all_tasks_blocked()
            assert terminal.is_raw
            if is_error:
                os.write(terminal.user, b"x")
            else:
                nursery.cancel_scope.cancel()
        assert terminal.mode == before


async def test_without_a_terminal_the_bytes_are_copied(web: ScriptedPod, pods: Api[Pod], tmp_path: Path) -> None:
    async def sort(process: ScriptedProcess) -> int:
        data = await process.stdin.receive_all()
        await process.stderr.send_all(b"sorted")
        await process.stdout.send_all(bytes(sorted(data)))
        return 0

    web.on_exec(sort)
    (tmp_path / "in").write_bytes(bytes(reversed(range(256))) * 100)
    with (
        (tmp_path / "in").open("rb") as given,
        (tmp_path / "out").open("wb") as out,
        (tmp_path / "err").open("wb") as err,
    ):
        async with exec_in_pod(pods, "web-0", ["sort"], stdin=True) as process:
            code = await interact(process, stdin=given.fileno(), stdout=out.fileno(), stderr=err.fileno())
    assert code == 0
    assert (tmp_path / "out").read_bytes() == bytes(sorted(bytes(range(256)) * 100))
    assert (tmp_path / "err").read_bytes() == b"sorted"


async def test_both_outputs_go_to_the_same_slow_reader(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def both(process: ScriptedProcess) -> int:
        for _ in range(1000):
            await process.stdout.send_all(b"o" * 100)
            await process.stderr.send_all(b"e" * 100)
        return 5

    async def read(into: bytearray) -> None:
        while data := await stream.receive_some(4096):
            await wait_all_tasks_blocked()
            into += data

    web.on_exec(both)
    received = bytearray()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    async with trio.lowlevel.FdStream(reader) as stream, trio.open_nursery() as nursery:
        nursery.start_soon(read, received)
        async with exec_in_pod(pods, "web-0", ["both"]) as process:
            try:
                assert await interact(process, stdout=writer, stderr=writer) == 5
            finally:
                os.close(writer)
    assert (received.count(b"o"), received.count(b"e")) == (100_000, 100_000)


async def test_a_process_has_a_terminal_where_this_program_has_none(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.on_exec(shell)
    given, writer = os.pipe()
    reader, shown = os.pipe()
    os.set_blocking(given, False)
    os.write(writer, b"ls")
    os.close(writer)
    try:
        async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True) as process:
            assert await interact(process, stdin=given, stdout=shown) == 5
        assert os.read(reader, 100) == b"[ls]"
    finally:
        for fd in (given, reader, shown):
            os.close(fd)


async def test_a_reader_that_has_gone_is_an_error(web: ScriptedPod, pods: Api[Pod]) -> None:
    async def yes(process: ScriptedProcess) -> None:
        while True:
            await process.stdout.send_all(b"y\n" * 1000)

    web.on_exec(yes)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        async with exec_in_pod(pods, "web-0", ["yes"]) as process:
            with pytest.raises(BrokenPipeError):
                await interact(process, stdout=writer)
    finally:
        os.close(writer)
