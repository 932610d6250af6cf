"""How late the event loop of a client wakes a task that wants to run every 5 ms.

The ticks have a fixed schedule: a loop that is busy for a second misses 200 of them, and each counts with its own
delay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import measure

PERIOD = 0.005


class Lags:
    """The delays since the last report."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._due = time.perf_counter() + PERIOD

    def start(self) -> None:
        """Tick in the running asyncio loop."""
        self._task = asyncio.create_task(self.run(asyncio.sleep))

    async def run(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        """Tick forever; ``sleep`` is that of the loop."""
        while True:
            await sleep(max(0.0, self._due - time.perf_counter()))
            self._count()

    def _count(self) -> None:
        now = time.perf_counter()
        while self._due <= now:
            self._late.append((now - self._due) * 1000)
            self._due += PERIOD

    def report(self) -> dict[str, float]:
        """Take the delays in milliseconds, with those of the ticks that are due now."""
        self._count()
        late, self._late = self._late, []
        return measure.quantiles(late or [0.0])
