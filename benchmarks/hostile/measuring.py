"""One bomb: how long other tasks wait for it, how much memory it takes, and what the library says about it."""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType

import attrs
import trio

PERIOD = 0.001
PATIENCE = 10.0
"""Seconds after which a call that has not returned is cancelled."""
PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1024**2


@attrs.frozen
class Bomb:
    """One input, and what is done with it."""

    name: str
    """Its name on the command line."""
    group: str
    """The heading of its table."""
    what: str
    """What it sends, in words."""
    run: Callable[[Measured], Awaitable[str]]
    """Prepares it, lets it go off inside the measured block, and returns the answer."""
    most_memory: float
    """MB that it may take above what the process had before."""
    expected: str
    """A regular expression for the answer."""
    counts_gc: bool
    """Whether the time of the garbage collector counts; not where the program asked for as many objects."""
    may_last: bool
    """Whether there may be no answer: it costs no more than the bytes that arrive, and is no error."""


BOMBS: dict[str, Bomb] = {}


def bomb(
    name: str,
    group: str,
    what: str,
    *,
    most_memory: float = 32.0,
    expected: str = "",
    counts_gc: bool = True,
    may_last: bool = False,
) -> Callable[[Callable[[Measured], Awaitable[str]]], Callable[[Measured], Awaitable[str]]]:
    """Add a function to the bombs."""

    def add(run: Callable[[Measured], Awaitable[str]]) -> Callable[[Measured], Awaitable[str]]:
        if name in BOMBS:
            raise ValueError(f"two bombs are named {name}")
        BOMBS[name] = Bomb(name, group, what, run, most_memory, expected, counts_gc, may_last)
        return run

    return add


class Measured:
    """A block of a bomb: the gaps between the wakings of a task that sleeps 1 ms, and the peak of the memory.

    What was prepared before the block is not measured, and neither is the time for which the thread could have run and
    other processes had the processors.
    """

    def __init__(self) -> None:
        self.stall = 0.0
        """Milliseconds of the longest gap."""
        self.stall_without_gc = 0.0
        """The same without the time that the garbage collector took, which grows with the objects that live."""
        self.stall_cpu = 0.0
        """Milliseconds of CPU of this thread in the gap that had most of it."""
        self.memory = math.nan
        """MB of the peak above the memory before."""
        self.duration = math.nan
        """Seconds of the block."""
        self._is_inside = False
        self._collected = self._collection_began = 0.0
        self._before = 0.0
        self._last = self._last_cpu = self._began = 0.0
        self._schedule = open("/proc/thread-self/schedstat", "rb", buffering=0)  # noqa: SIM115  # as long as the process

    def __enter__(self) -> None:
        gc.collect()
        gc.callbacks.append(self._count_collection)
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again
        self._before = _status("VmRSS")
        self._is_inside = True
        self._began = time.perf_counter()
        self._last, self._last_cpu = self._times()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._record()  # work at the end of the block, after which nothing slept
        self._is_inside = False
        gc.callbacks.remove(self._count_collection)
        self.duration = time.perf_counter() - self._began
        self.memory = _status("VmHWM") - self._before

    def _times(self) -> tuple[float, float]:
        """Return the time without that of waiting for a processor, and the CPU of this thread, in seconds."""
        self._schedule.seek(0)
        used, waited, _ = self._schedule.read().split()
        return time.perf_counter() - int(waited) / 1e9, int(used) / 1e9

    def _record(self) -> None:
        if self._is_inside:
            now, cpu = self._times()
            gap = (now - self._last - PERIOD) * 1000
            self.stall = max(self.stall, gap)
            self.stall_without_gc = max(self.stall_without_gc, gap - self._collected)
            self._collected = 0.0
            self.stall_cpu = max(self.stall_cpu, (cpu - self._last_cpu) * 1000)
            self._last, self._last_cpu = now, cpu

    def _count_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection_began, _ = self._times()
        else:
            self._collected += (self._times()[0] - self._collection_began) * 1000

    async def beat(self) -> None:
        """Wake every millisecond, for ever."""
        while True:
            await trio.sleep(PERIOD)
            self._record()


@asynccontextmanager
async def beating() -> AsyncGenerator[Measured, None]:
    """Run the task that measures beside the block."""
    measured = Measured()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(measured.beat)
        yield measured
        nursery.cancel_scope.cancel()


def _status(name: str) -> float:
    """Return ``VmRSS`` or ``VmHWM`` in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


_kept: list[object] = []
"""What was returned: freeing it takes the program's time, and not that of the call."""


async def answer_of(call: Callable[[], Awaitable[object]], *, patience: float = PATIENCE) -> str:
    """Call, and describe what it returned or raised; a call that takes too long is cancelled."""
    with trio.move_on_after(patience) as scope:
        try:
            result = await call()
            _kept.append(result)
        except Exception as exc:  # noqa: BLE001  # it is what is asked for
            return describe(exc)
    return f"no answer in {patience:g} s" if scope.cancelled_caught else describe_result(result)


def answer_now(call: Callable[[], object]) -> str:
    """The same for a function that is not async: all other tasks wait for it."""
    try:
        return describe_result(call())
    except Exception as exc:  # noqa: BLE001  # it is what is asked for
        return describe(exc)


def describe_result(result: object) -> str:
    """Say in a few words what came back; never the content, which may be huge."""
    with suppress(TypeError):
        return f"{type(result).__name__} of {len(result):,}"  # type: ignore[arg-type]  # that is what is tried
    return type(result).__name__


def describe(error: BaseException) -> str:
    """Name the class of an error, whether it is the library's, and the beginning of its text."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    module = type(error).__module__.partition(".")[0]
    is_ours = module in ("trioformer", "trio") or type(error) in (ValueError, TypeError)
    text = "".join(c if c.isprintable() else "?" for c in str(error)[:400])
    length = len(str(error))
    name = type(error).__name__ if is_ours else f"FOREIGN {type(error).__qualname__}"
    return f"{name}: {text[:230]}{'…' if length > 230 else ''}" + (
        f" ({length:,} characters)" if length > 5_000 else ""
    )


def say(text: str) -> None:
    """Write to standard error, for whoever runs one bomb by hand."""
    print(text, file=sys.stderr, flush=True)
