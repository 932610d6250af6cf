"""Run a program until it ends or receives a signal: ``sys.exit(trioformer.run(main))``.

SIGTERM ends a Kubernetes pod, and SIGINT (Ctrl-C) ends a program in a terminal.  After the first signal, the program
should end its requests and release its leases.  A second signal must kill the program.  Shells, kubelets and people
need an exit code and a one-line message, not the traceback of nested exception groups.

The handlers of the two signals depend on the state of the run:

- *Running*: this module handles both signals.  The first signal asks trio to end the function, and a second one kills
  the process.
- *Stopping*, while trio ends the function: both signals have the system's default action, so either of them kills the
  process at any time.  In process 1 of a container, this module still handles them, because Linux drops signals with
  the default action there.
- *Over*: both signals have the handlers that they had before the run.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, TextIO, TypeAlias, TypeVarTuple, Unpack, final

import attrs
import trio

from . import _text
from ._suggestions import describe
from .errors import TrioformerError

__all__ = ["run"]

logger = logging.getLogger(__name__)

Args = TypeVarTuple("Args")

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None
"""The result of ``signal.getsignal``; None for a handler that was not installed from Python."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
FAILED: Final = 1
"""The exit code after an error from the library."""
CLOSED_PIPE: Final = 128 + 13
"""The exit code of a program whose output pipe was closed, as a shell reports SIGPIPE."""
MAX_CODE: Final = 255


def run(async_fn: Callable[[Unpack[Args]], Awaitable[int | None]], *args: *Args, stop: trio.Event | None = None) -> int:
    """Run an async function as ``trio.run`` does, shut it down cleanly on SIGINT or SIGTERM, and return the exit code.

    ::

        if __name__ == "__main__":
            sys.exit(trioformer.run(main))

    The first SIGINT or SIGTERM cancels the function, which then cleans up as on every cancellation: requests end,
    leases are released, recorded events are written.  A second signal of either kind kills the process immediately,
    even if its cleanup or a thread is stuck.  Python does not notice signals while the main thread runs code of an
    extension module, so several signals that arrive during this time count as one signal.  If the program is process 1
    of a container, Python may also notice the second signal late. To avoid this, start the program with an init
    process, for example with ``docker run --init``.

    To finish some work first, such as the keys in a queue, pass an event.  The first signal then sets the event
    instead of cancelling the function, which returns when it is ready::

        stop = trio.Event()
        sys.exit(trioformer.run(main, stop, stop=stop))

    A :class:`~trioformer.errors.TrioformerError` is printed to standard error as one line, with its notes
    (``BaseException.add_note``) and without a traceback. Equal lines are printed once.
    The traceback is logged at level DEBUG.

    A signal that the process ignores stays ignored, for example SIGINT in a background job of a shell.

    Args:
        async_fn: The program. The function's return value is the exit code; None stands for 0.
        args: Its arguments.
        stop: An event that the first signal sets, instead of cancelling the function.

    Returns:
        The exit code, from 0 to 255.  It is

        - the result of the function, even after a signal;
        - 130 after SIGINT or 143 after SIGTERM, as in a shell, if the signal cancelled the function;
        - 1 after an error from the library, even after a signal, or if standard output cannot be written, for example
          because the disk is full;
        - 141 if standard output is a closed pipe (``… | head``), for which no error is printed.

    Raises:
        TypeError: ``async_fn`` is not an async function, or its result is neither None nor an ``int``.
        ValueError: The exit code is not between 0 and 255.
        RuntimeError: The call was not made in the main thread, which is the only thread where Python handles signals.
            Use ``trio.run`` instead.
        BaseException: The function raised an exception that is not from the library, alone or in a group with errors
            from the library.

    Ownership: handles the two signals while the function runs, and then restores the earlier handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("trioformer.run() requires the main thread, because it handles signals; use trio.run()")
    _check_is_function(async_fn)
    program = _Program(stop)
    try:
        with program.signals_handled():
            code = program.exit_code_of(trio.run(program.main, async_fn, args))
        _flush_output()  # Python would do it at its exit, where an error cannot be caught
    except BaseException as error:
        failures = _reportable(error)
        if failures is None:
            raise
        logger.debug("the program failed", exc_info=error)
        _report(failures)
        _end_output()
        return FAILED if failures else CLOSED_PIPE
    return code


@final
@attrs.define(eq=False)
class _Program:
    """The state of one run: receives the first signal, and ends the function."""

    _stop: trio.Event | None
    _signal: int | None = attrs.field(default=None, init=False)
    """The first signal."""
    _handled: tuple[signal.Signals, ...] = attrs.field(default=(), init=False)
    """The signals that are not ignored."""
    _token: trio.lowlevel.TrioToken | None = attrs.field(default=None, init=False)
    """While the function runs, the token with which a signal handler can reach the function's scope."""
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    async def main(self, async_fn: Callable[[Unpack[Args]], Awaitable[int | None]], args: tuple[*Args]) -> int | None:
        """Run the function in a scope that the first signal cancels."""
        self._token = trio.lowlevel.current_trio_token()
        if self._signal is not None:  # before there was a token
            self._end()
        code = None
        with self._scope:
            awaitable = async_fn(*args)
            _check_is_awaitable(awaitable, async_fn)
            code = await awaitable
        if self._scope.cancelled_caught:
            assert self._signal is not None
            return 128 + self._signal
        return code

    @staticmethod
    def exit_code_of(returned: object) -> int:
        """Convert the result of the function to an exit code, with 0 for None."""
        if returned is None:
            return 0
        if not isinstance(returned, int) or isinstance(returned, bool):
            raise TypeError(f"a program must return its exit code, an int, or None for 0, not {describe(returned)}")
        if not 0 <= returned <= MAX_CODE:
            raise ValueError(f"an exit code must be between 0 and {MAX_CODE}, not {returned}")
        return returned

    @contextmanager
    def signals_handled(self) -> Iterator[None]:
        """Handle the two signals during the block, except for a signal that the process ignores."""
        before: Mapping[signal.Signals, _Handler] = {
            each: handler for each in SIGNALS if (handler := signal.getsignal(each)) is not signal.SIG_IGN
        }
        # A handler that was not installed from Python cannot be put back, so it stays.
        ours = {each: handler for each, handler in before.items() if handler is not None}
        self._handled = tuple(ours)

        def on_signal(number: int, _: FrameType | None) -> None:
            if self._signal is not None:
                _kill_itself(number)
            self._signal = number
            if self._token is not None:
                # After the end of trio.run there is nothing left to end.
                with contextlib.suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(self._end)

        try:
            for each in ours:
                signal.signal(each, on_signal)
            yield
        finally:
            for each, handler in ours.items():
                signal.signal(each, handler)

    def _end(self) -> None:
        """Ask the function to end. Later calls have no effect."""
        # Not in the handler: the other signal may have arrived, and Python would drop it and report a race.
        if not _is_init():
            for each in self._handled:
                signal.signal(each, signal.SIG_DFL)
        if self._stop is None:
            self._scope.cancel()
        else:
            self._stop.set()


def _is_init() -> bool:
    """Return whether this is process 1. Linux drops the signals that process 1 does not handle."""
    return os.getpid() == 1


def _kill_itself(number: int) -> NoReturn:
    if not _is_init():
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    os._exit(128 + number)


def _check_is_function(given: object) -> None:
    if isinstance(given, Coroutine):
        given.close()  # so that Python does not warn that it was never awaited
        raise TypeError("trioformer.run() calls the function: write run(main, argument), not run(main(argument))")


def _check_is_awaitable(returned: object, async_fn: object) -> None:
    if not isinstance(returned, Awaitable):
        name = getattr(async_fn, "__qualname__", repr(async_fn))
        raise TypeError(f"trioformer.run() requires an async function, but {name} is not one; write `async def`")


def _leaves(error: BaseException, around: tuple[str, ...] = ()) -> Iterator[tuple[BaseException, tuple[str, ...]]]:
    """Yield each exception in nested groups with its own notes and then the notes of the enclosing groups."""
    notes = (*getattr(error, "__notes__", ()), *around)
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each, notes)
    else:
        yield error, notes


def _reportable(error: BaseException) -> list[tuple[TrioformerError, tuple[str, ...]]] | None:
    """Return the errors to print, or None if any error is neither from the library nor about standard output."""
    failures: list[tuple[TrioformerError, tuple[str, ...]]] = []
    for leaf, notes in _leaves(error):
        if isinstance(leaf, TrioformerError):
            failures.append((leaf, notes))
        elif isinstance(leaf, BrokenPipeError) and (_is_broken(sys.stdout) or _is_broken(sys.stderr)):
            continue
        elif isinstance(leaf, OSError) and leaf.errno is not None and leaf.errno == _errno_of_output():
            failures.append((TrioformerError(f"cannot write to standard output: {leaf.strerror}"), notes))
        else:
            return None
    return failures


def _report(failures: list[tuple[TrioformerError, tuple[str, ...]]]) -> None:
    """Print each line only once, because many informers may have failed for the same reason."""
    if sys.stderr is None:  # it was closed when the program began; print() would take standard output instead
        return
    lines: dict[str, str] = {}
    for failure, notes in failures:
        shown = _unrepeated(notes)
        request_id = getattr(failure, "request_id", "")  # another one for each request
        same = [note for note in shown if not request_id or request_id not in note]
        lines.setdefault("; ".join([str(failure), *same]), _text.one_line("; ".join([str(failure), *shown])))
    with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it is closed
        for line in dict.fromkeys(lines.values()):
            print(f"{_program_name()}: {line}", file=sys.stderr)  # noqa: T201  # output of the program
        _flush(sys.stderr)


def _unrepeated(notes: tuple[str, ...]) -> list[str]:
    """Omit each note that is the beginning of another note.

    For example, a group may have the note ``informer of pods``, and an error in the group a longer note with the same
    beginning.
    """
    found = dict.fromkeys(notes)
    return [note for note in found if not any(other.startswith(f"{note}: ") for other in found)]


def _program_name() -> str:
    """Return the name under which the user started the program."""
    path = Path(sys.argv[0] if sys.argv else "")
    return (path.parent.name if path.stem == "__main__" else path.stem.removeprefix("-c")) or "python"


def _flush(stream: TextIO | None) -> None:
    if stream is not None and not stream.closed:
        stream.flush()


def _flush_output() -> None:
    try:
        _flush(sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as error:
        # A second attempt may succeed, but data that did not fit into the buffer is lost.
        raise TrioformerError(f"cannot write to standard output: {error.strerror}") from error


def _is_broken(stream: TextIO | None) -> bool:
    """Return whether a stream is a pipe or socket whose other end is closed."""
    if not hasattr(select, "poll"):  # Windows has no other way
        return True
    poll = select.poll()
    try:
        poll.register(stream, 0)  # type: ignore[arg-type]  # None is refused with the TypeError
    except (TypeError, OSError, ValueError):
        return False  # a program may have no such stream, or a closed one, or one that is not a file
    return any(happened & (select.POLLERR | select.POLLHUP) for _, happened in poll.poll(0))


def _errno_of_output() -> int | None:
    """Return the error if standard output cannot be written.

    Flushing the rest of Python's buffer raises the error again.
    With PYTHONUNBUFFERED, the buffer is empty, so the device or the disk is checked instead.
    """
    try:
        _flush(sys.stdout)
        if getattr(sys.stdout, "write_through", False):
            number = sys.stdout.fileno()
            os.write(number, b"")
            if hasattr(os, "fstatvfs") and stat.S_ISREG(os.fstat(number).st_mode) and not os.fstatvfs(number).f_bavail:
                return errno.ENOSPC
    except OSError as error:
        return error.errno
    return None


def _end_output() -> None:
    """Flush Python's buffer. If that fails, discard the data, because Python would report the failure again at exit."""
    try:
        _flush(sys.stdout)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
