"""For the workload ``crud``: config maps are created, read, patched and deleted by sixteen workers at a time."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import measure
from measure import Meter

WORKERS = 16
REQUESTS = 4
"""Requests for each config map."""
NAMESPACE = "default"
DATA = {"config.yaml": "setting: value\n" * 70}
PATCH = {"data": {"n": "1"}}


def warm_up_names() -> list[str]:
    """The names of those before the measurement: one for each worker, whose connections are open then."""
    return [f"crud-{os.getpid()}-warm-up-{number}" for number in range(WORKERS)]


def measured_names(options: Namespace) -> Iterator[str]:
    """The names of those that count; all workers take from one iterator."""
    return (f"crud-{os.getpid()}-{number}" for number in range(options.events))


def finish(options: Namespace, meter: Meter) -> NoReturn:
    """Say what was measured, and end."""
    result = meter.read()
    requests = REQUESTS * options.events
    measure.finish(
        {
            "requests": requests,
            "requests_per_cpu_s": requests / result["cpu"],
            "requests_per_s": requests / result["wall"],
            **result,
        }
    )


async def drive(options: Namespace, crud: Callable[[str], Awaitable[None]]) -> NoReturn:
    """Drive a rival on asyncio; ``crud`` does all four with the config map of a name."""
    await asyncio.gather(*map(crud, warm_up_names()))
    names = measured_names(options)

    async def work() -> None:
        for name in names:
            await crud(name)

    meter = Meter()
    await asyncio.gather(*(work() for _ in range(WORKERS)))
    finish(options, meter)


def drive_threads(options: Namespace, crud: Callable[[str], None]) -> NoReturn:
    """Drive a synchronous rival, with a thread for each worker."""
    with ThreadPoolExecutor(WORKERS) as threads:
        for _ in threads.map(crud, warm_up_names()):
            pass
        meter = Meter()
        for _ in threads.map(crud, measured_names(options)):
            pass
    finish(options, meter)
