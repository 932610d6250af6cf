"""The guard of an external program kills it with this Python, and never anything else."""

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
    """A program that is ready at once and never ends by itself."""
    (tmp_path / "logs").mkdir()
    return Program(["/bin/sleep", "1000"], 1, [], tmp_path, issue_certificates(tmp_path))


async def test_a_guard_kills_when_nobody_is_left() -> None:
    process = await trio.lowlevel.open_process(["/bin/sleep", "1000"], stdout=subprocess.DEVNULL)
    guard = await start_watchdog(process.pid)
    os.close(guard._pipe)  # as the kernel does
    with trio.fail_after(10):
        assert await process.wait() == -signal.SIGKILL
        await guard._shell.wait()


async def test_a_program_that_dies_by_itself_and_is_asked_for_has_no_guard_any_more(program: Program) -> None:
    await program.start()
    pid, guard = program.pid, program._guard
    assert pid is not None
    assert guard is not None
    os.kill(pid, signal.SIGKILL)
    await trio.to_thread.run_sync(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # dead, and still ours
    assert program.pid is None  # from here on the pid may be anybody's
    with trio.fail_after(10):
        assert await guard._shell.wait() == 0  # it was told to go, and has killed nothing
    await program.kill()
