"""A shell beside a child process, which kills it should this Python be killed itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import final

import attrs
import trio

__all__ = ["Guard", "start_watchdog"]

SCRIPT = 'read -r line || kill -KILL "$1"'
"""A line is the order to go; the end of the input without one is that nobody is left to give it."""


@final
@attrs.define(eq=False)
class Guard:
    """The shell, and the pipe that the kernel closes when this process ends, however it ends."""

    _shell: trio.Process
    _pipe: int
    _is_released: bool = attrs.field(default=False, init=False)

    def release(self) -> None:
        """Order the shell to go; its process has ended, and the pid may be a stranger's soon."""
        if not self._is_released:
            self._is_released = True
            with contextlib.suppress(BrokenPipeError):  # somebody has killed the shell
                os.write(self._pipe, b"\n")
            os.close(self._pipe)

    async def dismiss(self) -> None:
        """Let the shell go, and wait until it has gone."""
        self.release()
        with trio.CancelScope(shield=True):
            await self._shell.wait()


async def start_watchdog(pid: int) -> Guard:
    """Start the guard of a process."""
    reading, writing = os.pipe()
    try:
        # In a session of its own, so that Ctrl-C in a terminal does not reach it.
        shell = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", SCRIPT, "guard", str(pid)],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.defpath},
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Guard(shell, writing)
