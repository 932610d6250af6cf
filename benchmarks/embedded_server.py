"""Compare the embedded servers of two checkouts: the import, a new server, and creates.

::

    python benchmarks/embedded_server.py OLD [--new NEW] [--rounds 9] [--objects 300]

The checkouts take turns, each round in a new process.
Prints the median CPU time of both, and the ratio, for each scene.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}}
OBJECTS: dict[str, dict[str, Any]] = {
    "Pod": {"apiVersion": "v1", "kind": "Pod", **TEMPLATE},
    "Deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    },
    "Service": {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    "ConfigMap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}},
}


def create_next(server: Any, objects: Iterator[Any]) -> None:
    server.create(next(objects))


def measure(count: int) -> dict[str, float]:
    """Return the CPU time of each scene in this process, in microseconds."""
    import trio  # noqa: PLC0415

    found: dict[str, float] = {}

    def timed(scene: str, times: int, run: Callable[[], object]) -> None:
        start = time.process_time()
        for _ in range(times):
            run()
        found[scene] = (time.process_time() - start) / times * 1e6

    timed("import", 1, lambda: importlib.import_module("trioformer.testing"))
    from trioformer.models import from_dict  # noqa: PLC0415
    from trioformer.testing import APIServer  # noqa: PLC0415

    timed("first APIServer()", 1, APIServer)
    timed("APIServer()", 20, APIServer)

    async def post(scene: str, objects: list[Any]) -> None:
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                await client.create(objects.pop())
                start = time.process_time()
                for one in objects:
                    await client.create(one)
                found[scene] = (time.process_time() - start) / len(objects) * 1e6
            nursery.cancel_scope.cancel()

    for kind, obj in OBJECTS.items():
        module = "apps_v1" if kind == "Deployment" else "core_v1"
        cls = getattr(importlib.import_module(f"trioformer.models.{module}"), kind)
        metadata = obj.get("metadata", {})
        named = [
            {**obj, "metadata": {**metadata, "name": f"object-{i}", "namespace": "default"}} for i in range(count + 1)
        ]
        objects = [from_dict(cls, one) for one in named]
        server, remaining = APIServer(), iter(named)
        server.create(next(remaining))
        timed(f"create {kind}", count, partial(create_next, server, remaining))
        trio.run(post, f"POST {kind}", objects)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("--new", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--objects", type=int, default=300)
    arguments = parser.parse_args()
    if arguments.rounds == 0:  # in a process of one round
        json.dump(measure(arguments.objects), sys.stdout)
        return
    results: dict[Path, list[dict[str, float]]] = {arguments.old: [], arguments.new: []}
    for number in range(arguments.rounds):
        for checkout in sorted(results, reverse=bool(number % 2)):
            command = [sys.executable, __file__, ".", "--rounds", "0", "--objects", str(arguments.objects)]
            output = subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(checkout.resolve())})
            results[checkout].append(json.loads(output))
    print(f"{'scene':<20}{'old, µs':>10}{'new, µs':>10}{'ratio':>8}")
    for scene in results[arguments.new][0]:
        old, new = (statistics.median(one[scene] for one in rounds) for rounds in results.values())
        print(f"{scene:<20}{old:>10.0f}{new:>10.0f}{new / old:>8.2f}")


if __name__ == "__main__":
    main()
