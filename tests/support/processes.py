"""Programs under test as child processes, read line by line without polling, and in this process."""

from __future__ import annotations

import io
import logging
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import attrs
import pytest
import trio
import trio.testing

ROOT = Path(__file__).parents[2]
POD_LOGGER = ROOT / "examples" / "pod_logger.py"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: embedded
contexts: [{{name: embedded, context: {{cluster: embedded}}}}]
clusters: [{{name: embedded, cluster: {{server: "{url}"}}}}]
"""
"""A kubeconfig for a server over plain HTTP; to be formatted with its ``url``."""


@attrs.define(eq=False)
class Program:
    """A running Python program, its standard output in lines."""

    process: trio.Process
    lines: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    _streams: int = 2
    """How many of its streams have not ended."""
    _news: trio.Event = attrs.field(factory=trio.Event)

    @property
    def is_over(self) -> bool:
        """Whether both of its streams have been read to their ends."""
        return not self._streams

    async def wait_until_over(self) -> int:
        """Wait until it has ended and all that it has written is there; returns the exit code."""
        while not self.is_over:
            await self._wait_for_news()
        return await self.process.wait()

    async def wait_for(self, condition: Callable[[Sequence[str]], bool]) -> None:
        """Wait until the lines so far fulfil ``condition``."""
        while not condition(self.lines):
            assert not self.is_over, f"the program has ended: {self.lines[-3:]} {self.errors[-3:]}"
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        # More than one task may wait.
        if self._news.is_set():
            self._news = trio.Event()
        await self._news.wait()

    async def wait_for_output(self) -> None:
        """Wait until the program has printed or reported anything, or has ended."""
        while not (self.lines or self.errors or self.is_over):
            await self._wait_for_news()

    async def wait_for_line(self, line: str) -> None:
        """Wait until the program has printed ``line``."""
        await self.wait_for(lambda lines: line in lines)

    async def interrupt(self) -> int:
        """Press Ctrl-C, wait until it has ended, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await self.wait_until_over()

    async def read(self, stream: trio.abc.ReceiveStream, into: list[str]) -> None:
        """Gather a stream's lines until it ends."""
        rest = b""
        async for chunk in stream:
            *whole, rest = (rest + chunk).split(b"\n")
            into.extend(line.decode() for line in whole)
            self._news.set()
        self._streams -= 1
        self._news.set()


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[Program]:
    """Run ``python command…`` beside the block, and end it with the block."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-u", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    program = Program(process)
    try:
        async with process.stdout, process.stderr, trio.open_nursery() as nursery:
            nursery.start_soon(program.read, process.stdout, program.lines)
            nursery.start_soon(program.read, process.stderr, program.errors)
            try:
                yield program
            finally:
                nursery.cancel_scope.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def result_of(*command: str, deadline: float = 30) -> tuple[int, list[str], list[str]]:
    """Run ``python command…`` to its end and return exit code, output lines and error lines."""
    with trio.fail_after(deadline):
        async with running(*command) as program:
            return await program.wait_until_over(), program.lines, program.errors


# --- without a process of their own -----------------------------------------------------------------------------------


def result_here(
    program: str,
    *arguments: str,
    is_virtual: bool = False,
    interrupt_after: float | None = None,
    output: TextIO | None = None,
    errors: TextIO | None = None,
) -> tuple[int, list[str], list[str]]:
    """Run a program as ``python program arguments…`` would, but in this process; returns what :func:`result_of` does.

    Args:
        program: Its file.
        arguments: Its command line.
        is_virtual: Whether it has a clock that jumps over every wait; not for programs that use sockets.
        interrupt_after: The seconds, by its clock, after which Ctrl-C is pressed.
        output: Its standard output, instead of one whose lines are returned.
        errors: Its standard error, likewise.
    """
    run, code = trio.run, 0

    def run_with_clock(main: Callable[..., Awaitable[object]], *given: object, **options: Any) -> object:
        async def interrupt(after: float) -> None:
            await trio.sleep(after)
            signal.raise_signal(signal.SIGINT)

        async def main_and_interrupt() -> object:
            if interrupt_after is not None:
                trio.lowlevel.spawn_system_task(interrupt, interrupt_after)
            with trio.fail_after(60):  # by its clock: a guard against one that does not end
                return await main(*given)

        clock = trio.testing.MockClock(autojump_threshold=0) if is_virtual else None
        return run(main_and_interrupt, clock=clock, **options)

    written, reported = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, logging_as_in_a_new_process():
        patch.setattr(sys, "argv", [program, *arguments])
        patch.syspath_prepend(str((ROOT / program).parent))
        patch.setattr(trio, "run", run_with_clock)
        with redirect_stdout(output or written), redirect_stderr(errors or reported):
            try:
                runpy.run_path(str(ROOT / program), run_name="__main__")
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return code, written.getvalue().splitlines(), reported.getvalue().splitlines()


@contextmanager
def logging_as_in_a_new_process() -> Iterator[None]:
    """Take all handlers and levels away, and put them back after the block."""
    root = logging.getLogger()
    before = {each: (each.handlers[:], each.level, each.propagate) for each in (root, *_loggers())}
    for each in before:
        each.handlers, each.propagate = [], True
        each.setLevel(logging.NOTSET)
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for each in (root, *_loggers()):
            each.handlers, level, each.propagate = before.get(each, ([], logging.NOTSET, True))
            each.setLevel(level)


def _loggers() -> list[logging.Logger]:
    return [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]


Result = Callable[..., tuple[int, list[str], list[str]]]
"""Runs a program to its end and returns exit code, output lines and error lines."""


def result_of_process(
    program: str, *arguments: str, is_virtual: bool = False, interrupt_after: float | None = None
) -> tuple[int, list[str], list[str]]:
    """Run a program in a process of its own, in real time; the seconds begin with its first line."""

    async def interrupted() -> tuple[int, list[str], list[str]]:
        with trio.fail_after(60):
            async with running(program, *arguments) as started:
                await started.wait_for(bool)
                await trio.sleep(interrupt_after or 0.0)
                return await started.interrupt(), started.lines, started.errors

    return trio.run(partial(result_of, program, *arguments) if interrupt_after is None else interrupted)


HERE_OR_AS_PROCESS = [
    pytest.param(result_here, id="here"),
    pytest.param(result_of_process, id="process", marks=pytest.mark.long),
]
"""Ways to run a program that ends by itself: a process takes ten times as long."""


@contextmanager
def serving_in_a_thread(serve: Callable[..., Awaitable[object]]) -> Iterator[str]:
    """Run a server beside the block, in a thread and with a loop of its own; yields what it gives to ``started()``."""
    started, urls, stop = threading.Event(), list[str](), list[Callable[[], None]]()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            token, scope = trio.lowlevel.current_trio_token(), nursery.cancel_scope
            stop.append(lambda: token.run_sync_soon(scope.cancel))
            urls.append(await nursery.start(serve))
            started.set()

    def run_and_wake() -> None:
        try:
            trio.run(run)
        finally:
            started.set()  # with an error; there is no URL then

    thread = threading.Thread(target=run_and_wake)
    thread.start()
    started.wait()
    try:
        yield urls[0]
    finally:
        stop[0]()
        thread.join()
