"""How late a task is woken that only wants to tick every 5 ms, and the longest step of any task.

A step is what a task does between two checkpoints.  Steps are measured in CPU time of the thread, since other processes
that have the processor meanwhile only add to the wall time; with the garbage collection that they trigger, and without.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import measure
import trio

PERIOD = 0.005
SHORT = 0.001
"""Seconds of a step that is not kept."""


class Ticks(trio.abc.Instrument):
    """What has been seen; reported in milliseconds."""

    def __init__(self) -> None:
        self._ticks: list[tuple[float, float]] = []  # when it was due, how late it was
        self._steps: list[tuple[float, float, float]] = []  # when it ended, its time, that without GC
        self._step_began = self._collecting_began = time.thread_time()
        self._collecting = 0.0

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._collecting_began

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._collecting = 0.0
        self._step_began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took = time.thread_time() - self._step_began
        if took > SHORT:
            self._steps.append((trio.current_time(), took, took - self._collecting))

    async def run(self) -> None:
        while True:
            due = trio.current_time() + PERIOD
            await trio.sleep_until(due)
            self._ticks.append((due, trio.current_time() - due))

    def report(self, *, since: float = -math.inf) -> dict[str, float]:
        """What was seen since a time on trio's clock."""
        steps = [step for step in self._steps if step[0] >= since] or [(0.0, 0.0, 0.0)]
        return {
            **measure.quantiles([late * 1000 for due, late in self._ticks if due >= since]),
            "step": max(took for _, took, _ in steps) * 1000,
            "step_without_gc": max(without_gc for _, _, without_gc in steps) * 1000,
        }


@asynccontextmanager
async def ticking() -> AsyncGenerator[Ticks, None]:
    """Tick beside the block."""
    ticks = Ticks()
    gc.callbacks.append(ticks.collected)
    trio.lowlevel.add_instrument(ticks)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ticks.run)
            yield ticks
            nursery.cancel_scope.cancel()
    finally:
        trio.lowlevel.remove_instrument(ticks)
        gc.callbacks.remove(ticks.collected)
