"""What every driver shares: its options, and how it measures its own process.  Only the standard library.

A driver is one client in a process of its own.
It says ``{"ready": true}`` when its cache is filled, is then sent whatever the workload sends, and ends with one line
that holds its measurements: ``wall`` and ``cpu`` (user and system) in seconds, memory in bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

PAGE = os.sysconf("SC_PAGE_SIZE")
SENT = "bench.example.com/sent"


def options() -> argparse.Namespace:
    """Parse what the harness asks of a driver."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--pods", type=int, required=True, help="how many pods the list holds")
    parser.add_argument("--events", type=int, default=0, help="how many events come after it")
    parser.add_argument("--handlers", type=int, default=1)
    parser.add_argument("--node-index", action="store_true", help="index by spec.nodeName too")
    parser.add_argument("--read", action="store_true", help="the handler reads labels, node and phase")
    parser.add_argument("--controller", choices=("plain", "journal"), help="a controller, without or with its journal")
    parser.add_argument("--tick", action="store_true", help="measure the list too, and a ticker of the loop")
    parser.add_argument("--door", default="trio", help="trio, asyncio, uvloop or dict")
    parser.add_argument("--rate", type=int, default=0, help="how many events come each second; 0: all at once")
    parser.add_argument("--switch-interval", type=float, default=0.005, help="of threads, in seconds")
    parser.add_argument("--drop-managed-fields", action="store_true")
    parser.add_argument("--json", action="store_true", help="request JSON, by a client that prefers protobuf")
    return parser.parse_args()


def cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def whole_process() -> dict[str, object]:
    """What this process has used since its start; the harness measures how long it took."""
    return {"cpu": cpu(), "rss": rss()}


class Meter:
    """Measures from where it is made to where it is read."""

    def __init__(self) -> None:
        self._rss = rss()
        self._cpu = cpu()
        self._wall = time.perf_counter()

    def read(self) -> dict[str, float]:
        wall, used, grown = time.perf_counter() - self._wall, cpu() - self._cpu, rss() - self._rss
        return {"wall": wall, "cpu": used, "rss": grown}


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def ready() -> None:
    """Tell the harness that the cache is filled."""
    say(ready=True)


def of_list(values: Mapping[str, object]) -> dict[str, object]:
    """Name what was measured of the list, beside what is measured of the events after it."""
    return {f"list_{name}": value for name, value in values.items()}


def finish(values: dict[str, object]) -> NoReturn:
    """Say what was measured, and end at once: tearing down the heap is no part of it."""
    say(**values)
    sys.stdout.flush()
    os._exit(0)


def quantiles(values: list[float]) -> dict[str, float]:
    """The median, the 99th percentile and the largest."""
    ordered = sorted(values)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[int(len(ordered) * 0.99)], "max": ordered[-1]}


def latencies(sent_and_seen: list[tuple[int, int]]) -> dict[str, float]:
    """What a latency workload reports, in milliseconds, of pairs of nanoseconds."""
    return quantiles([(seen - sent) / 1e6 for sent, seen in sent_and_seen])
