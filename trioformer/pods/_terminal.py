"""Connect a process in a container to the terminal of this program (``kubectl exec -it``)."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Final

import trio

from .._util import raise_ungrouped
from ._processes import PodProcess

try:
    import termios
    import tty
except ImportError:
    raise ImportError("terminals are not supported on Windows") from None

_PIECE: Final = 4096
"""The number of bytes in one write.  A pipe that is ready accepts at least this many (``PIPE_BUF``)."""


async def interact(process: PodProcess, *, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> int:
    """Connect the standard streams of this program to a process in a container until the process ends.

    ::

        async with exec_in_pod(pods, "web-0", ["sh"], stdin=True, tty=True) as process:
            exit_code = await interact(process)

    If the process has a terminal and ``stdin`` is a terminal, the local terminal is set to raw mode during the call,
    so Ctrl-C is sent to the process.  At the end, the previous mode is always restored.
    The process's terminal has the same size as the local terminal.  If trio does not run in the main thread, later
    size changes are ignored.

    Args:
        process: The process.  Only the streams that were requested for the process are connected.
        stdin: The file descriptor to read from.
        stdout: The file descriptor for standard output.
        stderr: The file descriptor for standard error, which may be the same as ``stdout``.

    Returns:
        The exit code of the process.

    Raises:
        StatusError: The node could not execute the command.
        ConnectionFailedError: The connection ended before the process did.
        OSError: ``stdin`` cannot be read, or an output cannot be written.

    Cancellation:
        Restores the terminal mode.  The process continues until the block of :func:`exec_in_pod` ends.

    Ownership:
        This function runs its tasks in its own nursery.  Exceptions are not wrapped in groups.
    """
    with _raw_mode(stdin) if process.tty else _unchanged():
        async with _background_tasks() as start:
            if process.tty and (size := terminal_size(stdin, stdout)) is not None:
                await _resize(process, size)
                start(partial(_follow_size, process, stdin, stdout))
            if process._stdin is not None:
                start(partial(_send, stdin, process.stdin))
            if process._stderr is not None:
                locks = {stdout: trio.Lock(), stderr: trio.Lock()}  # only one task can wait for a descriptor
                async with _background_tasks(waits=True) as start_output:
                    start_output(partial(_write, process.stderr, stderr, locks[stderr]))
                    await _write(process._stdout, stdout, locks[stdout])
            else:
                await _write(process._stdout, stdout, trio.Lock())
            return await process.wait()


def terminal_size(*fds: int) -> os.terminal_size | None:
    """Return the size of the first file descriptor that is a terminal, or None if there is none."""
    for fd in fds:
        try:
            size = os.get_terminal_size(fd)
        except OSError:
            continue
        if size.columns > 0 and size.lines > 0:
            return size
    return None


@contextmanager
def _raw_mode(fd: int) -> Iterator[None]:
    try:
        before = termios.tcgetattr(fd)
    except termios.error:  # not a terminal
        yield
        return
    try:
        tty.setraw(fd, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


@asynccontextmanager
async def _background_tasks(
    *, waits: bool = False
) -> AsyncGenerator[Callable[[Callable[[], Awaitable[None]]], None], None]:
    """Run background tasks during a block, and cancel them or wait for them at the end of the block.

    The first exception is raised without an exception group.
    """
    errors: list[Exception] = []

    async def run(task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except Exception as exc:  # noqa: BLE001  # raised below
            errors.append(exc)
            nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            try:
                yield lambda task: nursery.start_soon(run, task)
            except Exception as exc:  # noqa: BLE001  # raised below
                errors.append(exc)
                nursery.cancel_scope.cancel()
            if not waits:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        await raise_ungrouped(group)
    if errors:
        raise errors[0]


async def _follow_size(process: PodProcess, *fds: int) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    with trio.open_signal_receiver(signal.SIGWINCH) as signals:
        async for _ in signals:
            if (size := terminal_size(*fds)) is not None:
                await _resize(process, size)


async def _resize(process: PodProcess, size: os.terminal_size) -> None:
    with suppress(trio.BrokenResourceError):  # wait() raises the reason
        await process.resize(*size)


async def _send(fd: int, stdin: trio.abc.SendStream) -> None:
    while True:
        await _wait(trio.lowlevel.wait_readable, fd)
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            continue
        except OSError as exc:
            if exc.errno != errno.EIO:  # the other side of the terminal is closed
                raise
            data = b""
        try:
            if not data:
                await stdin.aclose()
                return
            await stdin.send_all(data)
        except trio.BrokenResourceError:
            return  # the process has ended


async def _write(output: trio.abc.ReceiveStream | None, fd: int, lock: trio.Lock) -> None:
    if output is None:
        return
    try:
        async for data in output:
            rest = memoryview(data)
            async with lock:
                while rest:
                    await _wait(trio.lowlevel.wait_writable, fd)
                    try:
                        rest = rest[os.write(fd, rest[:_PIECE]) :]
                    except BlockingIOError:
                        continue
    except trio.BrokenResourceError:
        pass  # wait() raises the reason


async def _wait(ready: Callable[[int], Awaitable[None]], fd: int) -> None:
    try:
        await ready(fd)
    except PermissionError:  # a file is always ready
        await trio.lowlevel.checkpoint()
