"""A shell that kills a child process when this Python process is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import final

import attrs
import trio

__all__ = ["Watchdog", "start_watchdog"]

SCRIPT = 'read -r line || kill -KILL "$1"'
"""The script of the watchdog shell.  If it reads a line from standard input, it ends.  If it reads the end of file
first, the Python process has died, and the script kills the child process."""


@final
@attrs.define(eq=False)
class Watchdog:
    """A watchdog shell and the pipe to it, which the kernel closes when this Python process ends for any reason."""

    _shell: trio.Process
    _pipe: int
    _is_closed: bool = attrs.field(default=False, init=False)

    def close(self) -> None:
        """End the shell without killing the child process.

        Call this method when the child process has ended, because its process id may be reused.
        """
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(BrokenPipeError):  # the shell was killed
                os.write(self._pipe, b"\n")
            os.close(self._pipe)

    async def aclose(self) -> None:
        """End the shell without killing the child process, and wait until the shell has ended."""
        self.close()
        with trio.CancelScope(shield=True):
            await self._shell.wait()


async def start_watchdog(pid: int) -> Watchdog:
    """Start a watchdog for a process."""
    reading, writing = os.pipe()
    try:
        # The shell gets its own session, so that Ctrl-C in a terminal does not reach it.
        shell = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", SCRIPT, "watchdog", str(pid)],
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
    return Watchdog(shell, writing)
