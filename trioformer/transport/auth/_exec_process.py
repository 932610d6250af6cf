"""Start the process of a plugin, read its output until it exits, and kill it if necessary.

If the task that reads the output is cancelled, another task can continue without losing output.  No task is started
for a process.

The output of the plugin ends when the plugin exits.
A background process of the plugin, such as a browser or an agent, may keep the pipe open for hours.  Unlike Go's
``exec.Cmd``, this module does not wait for such a process. It does not kill such a process either, if the plugin has
exited by itself.

The plugin inherits the standard error of this program, so that the user sees the questions and device codes that the
plugin prints.
A plugin that does not read from the terminal gets its own session. This module can then send signals to all processes
of the plugin, and Ctrl-C does not reach them.
A plugin that reads from the terminal must stay in this program's foreground process group, so signals are sent only to
the plugin itself.
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
from ...kubeconfig._internal import InteractiveMode
from ._exec_policy import PluginError

KILL_PATIENCE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""

_PIECE: Final = 64 * 1024
_PIPE: Final = 1 << 20
"""The maximum capacity of a pipe, in bytes."""
_STDIN: Final = 0
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows, both end a process immediately


@final
@attrs.frozen(eq=False)
class Invocation:
    """The command to run. ``repr()`` shows only the program."""

    executable: str
    """The path of the program."""
    arguments: tuple[str, ...] = attrs.field(repr=False)
    """The command line, including the name of the program."""
    environment: Mapping[str, str] = attrs.field(repr=False)
    """All environment variables."""
    is_interactive: bool = False
    """Whether the plugin inherits the standard input of this program, which is a terminal."""


@final
@attrs.define(eq=False)
class PluginProcess:
    """A running plugin.

    Its owner must call :meth:`communicate` or :meth:`kill`. If a call to :meth:`communicate` is cancelled, the owner
    must call it again, or call :meth:`kill`.
    """

    _process: trio.Process = attrs.field(repr=False)  # its repr() shows the arguments
    _is_interactive: bool
    _output: bytearray = attrs.field(factory=bytearray, init=False, repr=False)

    @classmethod
    async def start(cls, invocation: Invocation) -> PluginProcess:
        """Start a plugin. If this call is cancelled, the plugin is not started.

        Raises:
            OSError: The plugin cannot be started. The error has no traceback, because a traceback would contain the
                environment.
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
            error = OSError(0, "an argument or an environment variable contains a NUL character")
        else:
            process.args = [invocation.executable]  # its repr() shows them, in the traceback of a Cancelled
            return cls(process, invocation.is_interactive)
        raise error

    @property
    def output(self) -> Secret[bytes]:
        """The output of the plugin."""
        return Secret(bytes(self._output))

    @property
    def exit_code(self) -> int | None:
        """The exit code. It is negative if a signal ended the plugin, and None while the plugin is running."""
        return self._process.returncode

    async def communicate(self) -> None:
        """Read the output until the plugin has exited.

        Cancellation:
            The plugin keeps running. Call this method again, or :meth:`kill`.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                await self._process.wait()
                if hasattr(self._stdout, "fileno"):
                    nursery.cancel_scope.cancel()
                else:  # Windows, where a cancelled read may have consumed data
                    nursery.cancel_scope.deadline = trio.current_time() + KILL_PATIENCE
        except BaseExceptionGroup as group:
            await raise_ungrouped(group)
        if hasattr(self._stdout, "fileno"):
            with suppress(BlockingIOError):  # the pipe is empty
                self._output += os.read(self._stdout.fileno(), _PIPE)
        self._stdout.close()

    async def kill(self) -> None:
        """End the plugin with SIGTERM, and after a second with SIGKILL.

        Cancellation:
            Is ignored.
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
            # The process group exists as long as any process in it, even after the plugin has exited.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    @property
    def _stdout(self) -> trio.lowlevel.FdStream:
        return cast("trio.lowlevel.FdStream", self._process.stdout)  # on Windows another class, without fileno()

    async def _read(self) -> None:
        # Do not store a piece in a variable: the traceback of a cancellation would keep it.
        while self._add(await self._stdout.receive_some(_PIECE)):
            pass

    def _add(self, data: bytes | bytearray) -> bool:
        self._output += data
        return bool(data)


def may_ask(mode: InteractiveMode) -> bool:
    """Return whether a plugin with this mode inherits the standard input of this program.

    Raises:
        PluginError: The mode requires a terminal, but standard input is not a terminal.
    """
    has_terminal = os.isatty(_STDIN)
    if mode is InteractiveMode.ALWAYS and not has_terminal:
        problem = "was not run: its interactiveMode is Always, and the standard input is not a terminal"
        raise PluginError(f"{problem}; run the program in a terminal, or choose another user", permanent=True)
    return has_terminal and mode is not InteractiveMode.NEVER


def how_it_ended(process: PluginProcess) -> str:
    """Return a predicate that describes why a plugin failed and how to fix this."""
    code = process.exit_code or 0
    if code >= 0:
        return f"failed with exit code {code}; see its standard error, or run the plugin by hand"
    return f"was ended by signal {-code}"
