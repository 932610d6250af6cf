"""A plugin's process: started, read until it has ended, and killed.

The task that reads may be cancelled, and another one goes on: nothing that was read is lost, and no task of its own
belongs to a process.

What counts is what the plugin itself has written when it exits.
A process that it leaves behind, such as a browser or an agent, may hold the pipe open for hours; it is not waited for
(Go's ``exec.Cmd`` waits), and it lives on if the plugin has exited by itself.

Its standard error is that of this program, so the user sees its questions and device codes.
A plugin that does not read from the terminal has a session of its own, so that a signal reaches all of its processes,
and Ctrl-C reaches none.
One that does must stay in the foreground process group of the terminal, which is the program's; then only the plugin
itself is signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast, final

import attrs
import trio

from ..._secret import Secret
from ..._util import raise_ungrouped
from ...kubeconfig import InteractiveMode
from ._exec_policy import PluginError

KILL_PATIENCE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""

_PIECE: Final = 64 * 1024
_PIPE: Final = 1 << 20
"""Bytes that a pipe holds at most."""
_STDIN: Final = 0
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows both end a process at once


@final
@attrs.frozen(eq=False)
class Invocation:
    """What is run; ``repr()`` shows only the program."""

    executable: str
    """The path of the program."""
    arguments: tuple[str, ...] = attrs.field(repr=False)
    """The command line, with the name of the program."""
    environment: Mapping[str, str] = attrs.field(repr=False)
    """All variables."""
    is_interactive: bool = False
    """Whether it gets the standard input of this program, a terminal."""


@final
@attrs.define(eq=False)
class PluginProcess:
    """A running plugin; the task that has started it calls :meth:`communicate` to its end, or :meth:`kill`."""

    _process: trio.Process = attrs.field(repr=False)  # whose repr() shows the arguments
    _is_interactive: bool
    _output: bytearray = attrs.field(factory=bytearray, init=False, repr=False)

    @classmethod
    async def start(cls, invocation: Invocation) -> PluginProcess:
        """Start it; if this call is cancelled, the plugin was not started.

        Raises:
            OSError: It cannot be started; without traceback, which has the environment.
        """
        error: OSError
        try:
            process = await trio.lowlevel.open_process(
                invocation.arguments,
                executable=invocation.executable,
                env=invocation.environment,
                stdin=None if invocation.is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=not invocation.is_interactive,
            )
        except OSError as exc:
            error = OSError(exc.errno, exc.strerror)
        except ValueError:  # a NUL in an argument or a variable
            error = OSError(0, "an argument or a variable contains a NUL")
        else:
            process.args = [invocation.executable]  # its repr() shows them, in the traceback of a Cancelled
            return cls(process, invocation.is_interactive)
        raise error

    @property
    def output(self) -> Secret[bytes]:
        """What it has printed."""
        return Secret(bytes(self._output))

    @property
    def exit_code(self) -> int | None:
        """Its exit code; negative after a signal, and None while it runs."""
        return self._process.returncode

    async def communicate(self) -> None:
        """Read what it prints, until it has exited.

        Cancellation:
            It runs on; call this again, or :meth:`kill`.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                await self._process.wait()
                if hasattr(self._stdout, "fileno"):
                    nursery.cancel_scope.cancel()
                else:  # Windows, where a cancelled read may have taken something from the pipe
                    nursery.cancel_scope.deadline = trio.current_time() + KILL_PATIENCE
        except BaseExceptionGroup as group:
            await raise_ungrouped(group)
        if hasattr(self._stdout, "fileno"):
            with suppress(BlockingIOError):  # there is nothing in the pipe
                self._output += os.read(self._stdout.fileno(), _PIPE)
        self._stdout.close()

    async def kill(self) -> None:
        """End it: with SIGTERM, and after a second with SIGKILL.

        Cancellation:
            Is not noticed.
        """
        with trio.CancelScope(shield=True):
            if self.exit_code is None:
                self._signal(signal.SIGTERM)
                with trio.move_on_after(KILL_PATIENCE):
                    await self._process.wait()
                self._signal(_KILL)
                await self._process.wait()
            self._stdout.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._is_interactive or not hasattr(os, "killpg"):
            self._process.send_signal(number)
        else:
            # Its process group exists as long as any process in it, also after it has exited itself.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    @property
    def _stdout(self) -> trio.lowlevel.FdStream:
        return cast("trio.lowlevel.FdStream", self._process.stdout)  # on Windows another class, without fileno()

    async def _read(self) -> None:
        # No piece is in a variable: a cancellation would keep it in its traceback.
        while self._add(await self._stdout.receive_some(_PIECE)):
            pass

    def _add(self, data: bytes | bytearray) -> bool:
        self._output += data
        return bool(data)


def may_ask(mode: InteractiveMode) -> bool:
    """Whether a plugin gets the standard input of this program, as its mode says and as there is a terminal.

    Raises:
        PluginError: Its mode requires a terminal, which is not there.
    """
    has_terminal = os.isatty(_STDIN)
    if mode is InteractiveMode.ALWAYS and not has_terminal:
        problem = "was not run: its interactiveMode is Always, and the standard input is not a terminal"
        raise PluginError(f"{problem}; run the program in one, or choose another user", permanent=True)
    return has_terminal and mode is not InteractiveMode.NEVER


def how_it_ended(process: PluginProcess) -> str:
    """Return how a plugin ended that failed, and what to do, as a predicate."""
    code = process.exit_code or 0
    if code >= 0:
        return f"has failed with exit code {code}; its standard error says why, or run it by hand"
    return f"was ended by signal {-code}"
