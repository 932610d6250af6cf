"""Measure how many keys a second go through a work queue: added, taken and done.

::

    python benchmarks/work_queue.py [--keys 50000] [--rounds 11] [--limit 150000]

One task does it all, so this is what the queue itself costs.
Prints the medians of CPU time, and fails when one of the first two is below the limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from trioformer.workqueue import RateLimitingQueue, WorkQueue

Scene = Callable[[list[str]], Awaitable[None]]


async def one_by_one(keys: list[str]) -> None:
    queue = WorkQueue[str]()
    for key in keys:
        queue.add(key)
        async with queue.take():
            pass


async def all_at_once(keys: list[str], *, queue_type: type[WorkQueue[str]] = WorkQueue) -> None:
    queue = queue_type()
    for key in keys:
        queue.add(key)
    for _ in keys:
        async with queue.take():
            pass


async def two_priorities(keys: list[str], *, oldest_every: int | None) -> None:
    queue = WorkQueue[str](oldest_every=oldest_every)
    for number, key in enumerate(keys):
        queue.add(key, priority=-100 if number % 2 else 0)
    for _ in keys:
        async with queue.take():
            pass


async def beside_delays(keys: list[str]) -> None:
    queue = WorkQueue[str]()
    for number in range(10_000):
        queue.add_after(f"later-{number}", 1_000 + number)
    for key in keys:
        queue.add(key)
        async with queue.take():
            pass


async def waiting_workers(keys: list[str]) -> None:
    async def handle(key: str) -> None:
        await trio.lowlevel.checkpoint()

    queue = WorkQueue[str]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(queue.process, handle, workers=4))
        for number, key in enumerate(keys):
            queue.add(key)
            if number % 4 == 3:
                await trio.lowlevel.checkpoint()
        await queue.drain()


SCENES: dict[str, Scene] = {
    "one by one": one_by_one,
    "all added, then all taken": all_at_once,
    "the same, rate limiting": partial(all_at_once, queue_type=RateLimitingQueue),
    "the same, two priorities": partial(two_priorities, oldest_every=None),
    "the same, every eighth the oldest": partial(two_priorities, oldest_every=8),
    "one by one beside 10,000 delayed": beside_delays,
    "handed to four workers that wait": waiting_workers,
}


async def rates(scene: Scene, keys: list[str], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        began = time.process_time()
        await scene(keys)
        found.append(len(keys) / (time.process_time() - began))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how many keys a second go through a work queue.")
    parser.add_argument("--keys", type=int, default=50_000, help="how many keys a round has (default 50,000)")
    parser.add_argument("--rounds", type=int, default=11, help="how many rounds are timed (default 11)")
    parser.add_argument("--limit", type=float, default=150_000, help="keys a second that must be reached")
    options = parser.parse_args()
    keys = [f"namespace-{number % 17}/pod-{number}" for number in range(options.keys)]
    found = {name: statistics.median(trio.run(rates, scene, keys, options.rounds)) for name, scene in SCENES.items()}
    for name, rate in found.items():
        print(f"{name:<36} {rate:9,.0f} keys/s")
    if min(list(found.values())[:2]) < options.limit:
        sys.exit(1)


if __name__ == "__main__":
    main()
