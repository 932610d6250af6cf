"""A plugin's process: started, read until it has ended, and killed with its children.

The task that reads may be cancelled, and another one goes on: nothing that was read is lost, and no task of its own
belongs to a process.

What counts is what the plugin itself has written when it exits.
A process that it leaves behind, such as a browser or an agent, may hold the pipes open for hours; it is not waited for
(Go's ``exec.Cmd`` waits), and it lives on if the plugin has exited by itself.

A plugin that does not talk to the user has a session of its own, so that a signal reaches all of its processes, and
Ctrl-C reaches none.
One that does must stay in the foreground process group of the terminal, which is the program's; then its descendants
are signalled one by one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, final

import attrs
import trio

from ..._secret import Secret
from ..._util import raise_ungrouped
from ...kubeconfig import InteractiveMode
from ._policy import Problem
from ._stderr import ErrorOutput

MAX_OUTPUT: Final = 1 << 20
"""Bytes that a plugin may print; a token and a certificate have a few thousand."""
KILL_PATIENCE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""
REPORT_AFTER: Final = 2.0
"""Seconds after which lines of a plugin that still runs are reported: it may ask for something."""

_PIECE: Final = 64 * 1024
_STDIN: Final = 0
_STDERR: Final = 2


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


class OutputLimitError(Exception):
    """The plugin has printed more than :data:`MAX_OUTPUT`."""


@final
@attrs.define(eq=False)
class PluginProcess:
    """A running plugin; whoever has started it calls :meth:`communicate` to its end, or :meth:`kill`.

    Attributes:
        errors: What it has written to its standard error.
    """

    _process: trio.Process = attrs.field(repr=False)  # whose repr() shows the arguments
    _is_interactive: bool
    _report: Callable[[], None] = attrs.field(repr=False)
    _terminal: list[Any] | None = attrs.field(repr=False)
    errors: ErrorOutput = attrs.field(factory=ErrorOutput, init=False)
    _output: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    _has_lines: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    @classmethod
    async def start(cls, invocation: Invocation, report: Callable[[], None]) -> PluginProcess:
        """Start it; if this is cancelled, it was not started.

        Args:
            invocation: What to run.
            report: Called when it has written lines to its standard error, and still runs.

        Raises:
            OSError: It cannot be started; without traceback, which has the environment.
        """
        is_interactive = invocation.is_interactive
        # The user reads its questions on the terminal; a question has no line end, and may be in colour.
        shares_stderr = is_interactive and os.isatty(_STDERR)
        terminal = _terminal_settings() if is_interactive else None  # before the plugin can change them
        error: OSError
        try:
            process = await trio.lowlevel.open_process(
                invocation.arguments,
                executable=invocation.executable,
                env=invocation.environment,
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if shares_stderr else subprocess.PIPE,
                start_new_session=not is_interactive,
            )
        except OSError as exc:
            error = OSError(exc.errno, exc.strerror)
        except ValueError:  # a NUL in an argument or a variable
            error = OSError(0, "an argument or a variable contains a NUL")
        else:
            process.args = [invocation.executable]  # its repr() shows them, in the traceback of a Cancelled
            return cls(process, is_interactive, report, terminal)
        raise error

    @property
    def output(self) -> Secret[bytes]:
        """What it has printed."""
        return Secret(bytes(self._output))

    @property
    def exit_code(self) -> int | None:
        """How it has ended; negative for a signal, and None while it runs."""
        return self._process.returncode

    async def communicate(self) -> None:
        """Read what it writes, until it has exited.

        Raises:
            OutputLimitError: It prints too much; kill it.

        Cancellation:
            It runs on; call this again, or :meth:`kill`.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_output, nursery.cancel_scope)
                nursery.start_soon(self._read_errors)
                nursery.start_soon(self._report_while_it_runs)
                await self._process.wait()
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            await raise_ungrouped(group)
        self._read_the_rest()
        if self._is_too_long:
            raise OutputLimitError
        self._close()

    async def kill(self) -> None:
        """End it and its children: with SIGTERM, and after a second with SIGKILL.

        Cancellation:
            Is not noticed.
        """
        with trio.CancelScope(shield=True):
            if self.exit_code is None:
                children = list(_descendants(self._process.pid))
                self._signal(children, signal.SIGTERM)
                with trio.move_on_after(KILL_PATIENCE):
                    await self._process.wait()
                self._signal(children, signal.SIGKILL)
                await self._process.wait()
                self._read_the_rest()
                if self._terminal is not None:  # it may have turned the echo off, to ask for a password
                    with suppress(termios.error):
                        termios.tcsetattr(_STDIN, termios.TCSANOW, self._terminal)
            self._close()

    def _signal(self, children: list[tuple[int, str]], number: signal.Signals) -> None:
        # Its process group exists as long as any process in it, also after it has exited itself.
        if not self._is_interactive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        elif self.exit_code is None:
            self._process.send_signal(number)
        for child, began in children:
            if _began(child) == began:  # not another process, which has got the number since
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, number)

    @property
    def _is_too_long(self) -> bool:
        return len(self._output) > MAX_OUTPUT

    async def _read_output(self, scope: trio.CancelScope) -> None:
        stream = self._process.stdout
        assert stream is not None
        # No piece is in a variable: a cancellation would keep it in its traceback.
        while not self._is_too_long:
            before = len(self._output)
            self._output += await stream.receive_some(_PIECE)
            if len(self._output) == before:
                return
        scope.cancel()

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        while stream is not None and self._add_errors(await stream.receive_some(_PIECE)):
            if self.errors.has_lines():
                self._has_lines.set()

    def _read_the_rest(self) -> None:
        """Read what is in the pipes, also after it was killed: what it has printed is hidden in what it has said."""
        while not self._is_too_long and (piece := _available(self._process.stdout)):
            self._output += piece.reveal()
        for _ in range(MAX_OUTPUT // _PIECE):  # a process that it left behind may write without end
            if not (piece := _available(self._process.stderr)):
                return
            self.errors.add(piece.reveal())

    def _add_errors(self, data: bytes | bytearray) -> bool:
        self.errors.add(data)
        return bool(data)

    async def _report_while_it_runs(self) -> None:
        while True:
            await self._has_lines.wait()
            await trio.sleep(REPORT_AFTER)
            self._has_lines = trio.Event()
            self._report()

    def _close(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()  # type: ignore[attr-defined]  # trio does not say that they are FdStreams


def _available(stream: trio.abc.ReceiveStream | None) -> Secret[bytes]:
    """Read what is in a pipe, without waiting; empty if there is nothing, or the pipe has ended."""
    if stream is None:
        return Secret(b"")
    try:
        return Secret(os.read(stream.fileno(), _PIECE))  # type: ignore[attr-defined]  # as above
    except OSError:  # nothing at the moment, or it is closed
        return Secret(b"")


def _descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Find the children of a process, and theirs, where the kernel lists them; each with when it began."""
    todo = [pid]
    while todo:
        parent = todo.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    found = [int(child) for child in file.read().split()]
                todo += found
                yield from ((child, _began(child)) for child in found)


def _began(pid: int) -> str:
    """Return when a process began, in ticks since the start of the system; empty if it does not exist."""
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        # The name of the program may contain spaces and brackets.
        return file.read().rpartition(")")[2].split()[19]
    return ""


def _terminal_settings() -> list[Any] | None:
    with suppress(termios.error):
        return termios.tcgetattr(_STDIN)
    return None


def may_ask(mode: InteractiveMode) -> bool | Problem:
    """Whether a plugin gets the standard input of this program, as its mode says and as there is a terminal."""
    if mode is InteractiveMode.NEVER:
        return False
    has_terminal = os.isatty(_STDIN) and _is_in_foreground()
    if mode is InteractiveMode.ALWAYS and not has_terminal:
        problem = "was not run: its interactiveMode is Always, and the standard input is not a terminal"
        return Problem(f"{problem}; run the program in one, or choose another user", permanent=True)
    return has_terminal


def _is_in_foreground() -> bool:
    """Whether reading from the terminal would not stop the process, as it stops one in the background of a shell."""
    try:
        return os.tcgetpgrp(_STDIN) == os.getpgrp()
    except OSError:  # a terminal without job control
        return True


def how_it_ended(process: PluginProcess) -> str:
    """Return how a plugin ended that failed, as a predicate."""
    code = process.exit_code or 0
    if code >= 0:
        return f"has failed with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was ended by signal {-code}"
