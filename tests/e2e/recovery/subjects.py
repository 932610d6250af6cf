"""The informers that recover: programs of trioformer and of client-go, each informer behind a proxy of its own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from tests.e2e.recovery.writer import Writer
from tests.e2e.tcp_proxy import TcpProxy, proxy_before
from tests.support.processes import ROOT
from trioformer.testing import ControlPlane

OURS, THEIRS = "trioformer", "client-go"
RESPONSE_DEADLINE = 30.0
END_DEADLINE = 5.0
POLL_PERIOD = 0.1
"""Seconds between two looks at the states: what a figure may be too large by."""


@attrs.frozen
class State:
    """What an informer knows: resourceVersions by key."""

    cache: Mapping[str, str]
    """In its cache."""
    replay: Mapping[str, str]
    """By the notifications of its handler alone."""
    illegal: Sequence[str]
    """The notifications that contradict earlier ones."""

    def agrees_with(self, listed: Mapping[str, str]) -> bool:
        return self.cache == self.replay == listed


@attrs.define(eq=False)
class Subject:
    """A program with informers of one library."""

    library: str
    proxies: Sequence[TcpProxy]
    """The proxy of each of its informers."""
    _process: trio.Process
    _received: bytearray = attrs.field(factory=bytearray)

    async def states(self) -> list[State]:
        """Ask for the states of its informers."""
        assert self._process.stdin is not None
        await self._process.stdin.send_all(b"state\n")
        return [State(**each) for each in await self.receive()]

    async def receive(self) -> Any:
        """Receive one line."""
        assert self._process.stdout is not None
        while b"\n" not in self._received:
            more = await self._process.stdout.receive_some()
            assert more, f"the program of {self.library} has ended"
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)


@asynccontextmanager
async def run_subject(
    library: str, command: Sequence[str], url: str, kubeconfig: Path, namespace: str, count: int, log: Path
) -> AsyncIterator[Subject]:
    """Run a program with so many informers beside the block, which begins when they have synced."""
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(proxy_before(url)) for _ in range(count)]
        with log.open("wb") as errors:
            process = await trio.lowlevel.open_process(
                [
                    *command,
                    *("--kubeconfig", str(kubeconfig), "--namespace", namespace),
                    *(proxy.url for proxy in proxies),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with process.stdin, process.stdout:
                subject = Subject(library, proxies, process)
                with trio.fail_after(RESPONSE_DEADLINE):
                    assert await subject.receive() == {"synced": True}
                yield subject
        finally:  # its standard input has ended
            with trio.move_on_after(END_DEADLINE, shield=True):
                await process.wait()
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()


@attrs.frozen
class Comparison:
    """Subjects of the same ConfigMaps, and the writer of these."""

    subjects: Sequence[Subject]
    writer: Writer

    @property
    def network(self) -> list[TcpProxy]:
        return [proxy for subject in self.subjects for proxy in subject.proxies]

    async def converge(self, since: float, patience: float) -> dict[str, list[float]]:
        """Measure the recovery of each informer.

        While the writer pauses, but for one object that every informer must receive, the states are compared with a
        fresh list again and again: an external program sends no event when its cache changes.

        Returns:
            By library: for each informer the seconds since a moment until its cache and its replay are what a fresh
            list is; infinite if they are not within the patience.
        """
        took = {subject.library: [math.inf] * len(subject.proxies) for subject in self.subjects}
        async with self.writer.paused():
            await self.writer.mark()
            with trio.move_on_at(since + patience):
                while any(math.inf in each for each in took.values()):
                    listed = await self.writer.list()
                    for subject in self.subjects:
                        if math.inf in took[subject.library]:
                            await self._compare(subject, listed, since, took[subject.library])
                    await trio.sleep(POLL_PERIOD)
        return took

    @staticmethod
    async def _compare(subject: Subject, listed: Mapping[str, str], since: float, took: list[float]) -> None:
        with trio.fail_after(RESPONSE_DEADLINE, shield=True):  # a line must not be received in part
            for number, state in enumerate(await subject.states()):
                if took[number] == math.inf and state.agrees_with(listed):
                    took[number] = trio.current_time() - since

    def noticed(self, since: float) -> dict[str, list[float]]:
        """Return the seconds since a moment until each informer closed a connection or made one."""
        return {subject.library: [proxy.noticed_after(since) for proxy in subject.proxies] for subject in self.subjects}

    async def illegal(self) -> dict[str, list[str]]:
        """Return the notifications of each library that contradict earlier ones."""
        return {
            subject.library: [each for state in await subject.states() for each in state.illegal]
            for subject in self.subjects
        }


@asynccontextmanager
async def comparison(
    control_plane: ControlPlane, writer: Writer, programs: Mapping[str, Sequence[str]], logs: Path, *, count: int = 1
) -> AsyncIterator[Comparison]:
    """Run the programs, by library, with so many informers each, and the writer, beside the block."""
    subjects: list[Subject] = []
    async with AsyncExitStack() as stack:
        await writer.fill()
        for library, command in programs.items():
            log = logs / f"{library}.log"
            running = run_subject(
                library, command, control_plane.url, control_plane.kubeconfig, writer.namespace, count, log
            )
            subjects.append(await stack.enter_async_context(running))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            yield Comparison(subjects, writer)
            nursery.cancel_scope.cancel()


def programs_of(assets: Path, *libraries: str) -> dict[str, Sequence[str]]:
    """Return the command of each library's program."""
    commands: dict[str, Sequence[str]] = {
        OURS: (sys.executable, "-m", "tests.e2e.recovery.subject_program"),
        THEIRS: (str(assets / "recovery-client-go"),),
    }
    return {library: commands[library] for library in libraries}
