"""Runs the inputs of a fuzzer: many in one process and one run of trio, in virtual time.

A fuzzer is a class with two methods: ``generate`` makes an input from random numbers, and ``check`` gives it to the
library and checks what happens.  An input is a value; its number and the seed of the run say which one it is, so
``python -m tests.fuzz NAME --only NUMBER`` repeats it.
"""

from __future__ import annotations

import logging
import math
import random
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Generic, TypeVar

import attrs
import trio
import trio.testing

from .oracle import Finding, Oracle, last_place

I = TypeVar("I")  # noqa: E741  # an input

PATIENCE = 7_200.0
"""Virtual seconds that an input may take: the library's own deadlines are seconds and minutes."""
REAL_PATIENCE = 30
"""Real seconds that an input may take: the machine may be busy."""
MAX_FINDINGS = 25
"""Different findings after which a run ends."""


class Fuzzer(ABC, Generic[I]):
    """Makes inputs, and checks what the library does with them."""

    name: str

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        """Open what all inputs share, such as a client."""
        yield

    @abstractmethod
    def generate(self, rng: random.Random) -> I:
        """Make an input."""

    @abstractmethod
    async def check(self, given: I, oracle: Oracle) -> None:
        """Give an input to the library, and check what happens.

        Raises:
            Finding: Something that must not be.
        """


@attrs.define(eq=False)
class Report:
    """What a run has found."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    longest_step: float = 0.0
    longest_label: str = ""
    counts: Counter[str] = attrs.field(factory=Counter)
    findings: dict[str, list[str]] = attrs.field(factory=dict)
    """By the first line, the inputs and the details of equal findings."""

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in self.counts.most_common())
        return (
            f"{self.name}: {self.inputs:,} inputs in {self.seconds:.1f} s; longest step without a checkpoint"
            f" {self.longest_step * 1000:.0f} ms ({self.longest_label}); {len(self.findings)} kinds of findings; {kinds}"
        )

    def add(self, label: str, finding: Finding) -> None:
        """Add a finding to those that have the same first line."""
        first, _, detail = str(finding).partition("\n")
        self.findings.setdefault(first, []).append(f"{label}: {detail}")

    def raise_findings(self) -> None:
        """Fail with everything that was found."""
        __tracebackhide__ = True
        if self.findings:
            lines = [f"{first}\n    {len(each)} times, {each[0]}" for first, each in self.findings.items()]
            raise AssertionError(f"{self}\n" + "\n".join(lines))


def generated(fuzzer: Fuzzer[I], count: int, *, seed: int = 0, start: int = 0) -> Iterator[tuple[str, I]]:
    """Make inputs, each with its number; the same ones for the same seed."""
    for number in range(start, start + count):
        yield str(number), fuzzer.generate(random.Random(f"{fuzzer.name} {seed} {number}"))


def run(fuzzer: Fuzzer[I], inputs: Iterable[tuple[str, I]]) -> Report:
    """Check inputs, and report."""
    report, oracle = Report(fuzzer.name), Oracle()
    clock = trio.testing.MockClock(autojump_threshold=0)
    began = time.perf_counter()
    with _logging_to(oracle):
        trio.run(_run, fuzzer, inputs, report, oracle, clock=clock)
    report.seconds = time.perf_counter() - began
    report.counts = oracle.counts
    return report


async def _run(fuzzer: Fuzzer[I], inputs: Iterable[tuple[str, I]], report: Report, oracle: Oracle) -> None:
    async with fuzzer.open(oracle):
        for label, given in inputs:
            stopwatch = _Stopwatch()
            trio.lowlevel.add_instrument(stopwatch)
            report.inputs += 1
            try:
                await trio.lowlevel.checkpoint()  # so that a check without one is a step of its own
                await _check(fuzzer, given, oracle)
            except Finding as finding:
                report.add(label, finding)
            finally:
                trio.lowlevel.remove_instrument(stopwatch)
                stopwatch.after_task_step(trio.lowlevel.current_task())
            if stopwatch.longest > report.longest_step:
                report.longest_step, report.longest_label = stopwatch.longest, label
            if len(report.findings) >= MAX_FINDINGS:
                return


async def _check(fuzzer: Fuzzer[I], given: I, oracle: Oracle) -> None:
    with trio.move_on_after(PATIENCE) as scope, _watchdog(scope):
        try:
            await fuzzer.check(given, oracle)
        except Finding:
            raise
        except Exception as error:
            oracle.error(error, ())
            raise Finding(f"{type(error).__name__} from {last_place(error)}") from error
        oracle.raise_problem()
    if scope.cancelled_caught:
        raise Finding("hangs\nuntil the deadline of the test")


@contextmanager
def _watchdog(scope: trio.CancelScope) -> Iterator[None]:
    """Cancel an input that takes too long in real time; end the run if it never comes to a checkpoint."""
    token = trio.lowlevel.current_trio_token()
    is_late = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_late
        if is_late:
            raise AssertionError(f"an input neither ends nor comes to a checkpoint for {2 * REAL_PATIENCE} s")
        is_late = True
        token.run_sync_soon(scope.cancel)

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, REAL_PATIENCE, REAL_PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class _Stopwatch(trio.abc.Instrument):
    """Measures the CPU time of the longest step of a task, in which every other task waits."""

    longest = 0.0
    _began = math.inf

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.longest = max(self.longest, time.thread_time() - self._began)


@contextmanager
def _logging_to(oracle: Oracle) -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers[:] = [oracle]  # without those of pytest, which would keep every record
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
