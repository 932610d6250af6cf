"""The watchdog of an external program kills it when this process dies, and never another process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import trio

from trioformer.testing.control_plane._certificates import issue_certificates
from trioformer.testing.control_plane._process import Program
from trioformer.testing.control_plane._watchdog import start_watchdog

pytestmark = pytest.mark.skipif(not hasattr(os, "waitid"), reason="no waitid() here")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program that is ready immediately and runs until it is killed."""
    (tmp_path / "logs").mkdir()
    return Program(["/bin/sleep", "1000"], 1, [], tmp_path, issue_certificates(tmp_path))


async def test_a_watchdog_kills_the_process_when_its_pipe_is_closed() -> None:
    process = await trio.lowlevel.open_process(["/bin/sleep", "1000"], stdout=subprocess.DEVNULL)
    watchdog = await start_watchdog(process.pid)
    os.close(watchdog._pipe)  # as the kernel does when this process dies
    with trio.fail_after(10):
        assert await process.wait() == -signal.SIGKILL
        await watchdog._shell.wait()


async def test_reading_the_pid_of_a_dead_program_closes_its_watchdog(program: Program) -> None:
    await program.start()
    pid, watchdog = program.pid, program._watchdog
    assert pid is not None
    assert watchdog is not None
    os.kill(pid, signal.SIGKILL)
    # Dead but not reaped: the pid cannot be reused yet.
    await trio.to_thread.run_sync(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert program.pid is None  # from here on the pid may be reused
    with trio.fail_after(10):
        assert await watchdog._shell.wait() == 0  # it has ended without killing
    await program.kill()
