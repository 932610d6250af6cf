"""How late a task is woken that only wants to tick every 5 ms, and how much of that the garbage collector takes."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import measure
import trio

PERIOD = 0.005


class Ticks:
    """What has been seen; all in milliseconds."""

    def __init__(self) -> None:
        self._ticks: list[tuple[float, float, float]] = []  # when it was due, how late it was, how late without GC
        self.collections: list[float] = []
        self._began = 0.0
        self._collecting = 0.0

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            lasted = (time.perf_counter() - self._began) * 1000
            self.collections.append(lasted)
            self._collecting += lasted

    async def run(self) -> None:
        while True:
            self._collecting = 0.0
            due = trio.current_time() + PERIOD
            await trio.sleep_until(due)
            late = (trio.current_time() - due) * 1000
            self._ticks.append((due, late, max(0.0, late - self._collecting)))

    def report(self, *, since: float = -math.inf) -> dict[str, float]:
        """What was seen since a time on trio's clock."""
        seen = [(late, without_gc) for due, late, without_gc in self._ticks if due >= since]
        return {
            "ticks": len(seen),
            **measure.quantiles([late for late, _ in seen]),
            "max_without_gc": max(without_gc for _, without_gc in seen),
            "longest_gc": max(self.collections, default=0.0),
            "gc": sum(self.collections),
        }


@asynccontextmanager
async def ticking() -> AsyncGenerator[Ticks, None]:
    """Tick beside the block."""
    ticks = Ticks()
    gc.callbacks.append(ticks.collected)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ticks.run)
            yield ticks
            nursery.cancel_scope.cancel()
    finally:
        gc.callbacks.remove(ticks.collected)
