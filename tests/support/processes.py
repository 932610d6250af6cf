"""Programs under test as child processes, read line by line without polling."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

ROOT = Path(__file__).parents[2]
POD_LOGGER = ROOT / "examples" / "pod_logger.py"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: embedded
contexts: [{{name: embedded, context: {{cluster: embedded}}}}]
clusters: [{{name: embedded, cluster: {{server: "{url}"}}}}]
"""
"""How programs find a server that is reached by plain HTTP; to be formatted with its ``url``."""


@attrs.define(eq=False)
class Program:
    """A running Python program, its standard output in lines."""

    process: trio.Process
    lines: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    is_over: bool = False
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def wait_for(self, condition: Callable[[Sequence[str]], bool]) -> None:
        """Wait until the lines so far fulfil ``condition``."""
        while not condition(self.lines):
            assert not self.is_over, f"the program has ended: {self.lines[-3:]} {self.errors[-3:]}"
            self._news = trio.Event()
            await self._news.wait()

    async def wait_for_line(self, line: str) -> None:
        """Wait until the program has printed ``line``."""
        await self.wait_for(lambda lines: line in lines)

    async def interrupt(self) -> int:
        """Press Ctrl-C and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await self.process.wait()

    async def read(self, stream: trio.abc.ReceiveStream, into: list[str]) -> None:
        """Gather a stream's lines until it ends."""
        rest = b""
        async for chunk in stream:
            *whole, rest = (rest + chunk).split(b"\n")
            into.extend(line.decode() for line in whole)
            self._news.set()
        self.is_over = True
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
            code = await program.process.wait()
            await trio.testing.wait_all_tasks_blocked(0.05)  # both streams have been read to their ends
            return code, program.lines, program.errors
