"""Measure what replicas that share the objects of a kind save, beside one replica that has all of them.

::

    KUBEBUILDER_ASSETS=… python benchmarks/shares.py [--objects 20000] [--events 10000]
    KUBEBUILDER_ASSETS=… python benchmarks/shares.py --replay 100000
    KUBEBUILDER_ASSETS=… python benchmarks/shares.py --leases

The first form has ConfigMaps of 1 KB in 400 namespaces on a real kube-apiserver, which filters the lists and watches of
the four replicas (with ``ShardedListAndWatch``) or does not.
The second has pods of 10 KB, divided by their uids, from the replay server, which filters them or does not.
The first replica owns all ranges until the others join, as when a Deployment is created, and gives three quarters away.
So its memory and its list are shown apart.
The CPU of events is that above the idle CPU, which renews and watches Leases.

The third measures how often the replicas write Leases, with default options, by the number of ranges and replicas.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import trio
from harness.environments import BENCHMARKS, CACHE
from harness.report import shown, write_table

sys.path.insert(0, str(Path(__file__).parent.parent))

from trioformer import Client, SharedInformer, SharedInformerFactory, open_client
from trioformer.cache import ApiListWatch
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding import Shares, open_shares
from trioformer.testing import ControlPlane

REPLICAS = 4
NAMESPACES = 400
WORKERS = 16
GATE = "--feature-gates=ShardedListAndWatch=true"
COLUMNS = {
    "kept": "objects",
    "rss": "memory, MB",
    "peak": "peak, MB",
    "list_cpu": "CPU s to fill",
    "list_received": "objects received",
    "received": "events received",
    "notified": "notifications",
    "cpu": "CPU s of events",
    "idle_cpu": "CPU ms/s idle",
}
Numbers = dict[str, float]


class Process:
    """A driver or a server, which says lines of JSON."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BENCHMARKS.parent
        )

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("error: a program has ended")
        return json.loads(line)

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


async def in_parallel(count: int, act: Callable[[int], Awaitable[object]]) -> None:
    """Call a function with each number, by some workers."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await act(number)

    async with trio.open_nursery() as nursery:
        for _ in range(WORKERS):
            nursery.start_soon(work)


def where(number: int) -> tuple[str, str]:
    """The namespace and the name of an object."""
    return f"team-{number % NAMESPACES}-prod", f"config-{number}"


async def load(client: Client, count: int) -> None:
    """Create the objects."""

    async def create_namespace(number: int) -> None:
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=where(number)[0])))

    async def create(number: int) -> None:
        namespace, name = where(number)
        found = ConfigMap(metadata=ObjectMeta(name=name), data={"text": "x" * 1000, "turn": ""})
        await client.api(ConfigMap, namespace).create(found)

    await in_parallel(NAMESPACES, create_namespace)
    await in_parallel(count, create)


async def write(client: Client, label: str, count: int, objects: int) -> None:
    """Patch objects, which are spread over the namespaces."""

    async def patch(number: int) -> None:
        namespace, name = where(number * 7919 % objects)
        await client.api(ConfigMap, namespace).patch(name, {"data": {"turn": f"{label} {number}"}})

    await in_parallel(count, patch)


async def measure(
    arguments: Sequence[str], replicas: int, events: int, send: Callable[[], Awaitable[None]]
) -> list[Numbers]:
    """Start replicas, send events, and return what each has measured, that which was the first to begin with."""
    count = replicas or 1
    run = trio.to_thread.run_sync
    command = [sys.executable, str(BENCHMARKS / "drivers" / "share_cache.py"), "--replicas", str(replicas), *arguments]
    running = [Process(command)]
    try:
        if count > 1:
            await trio.sleep(10)  # it owns all ranges
        running += [Process(command) for _ in range(count - 1)]
        for each in running:
            await run(each.read)
        await trio.sleep(15)  # their idle CPU, for Leases
        for each in running:
            each.tell("begin")
            await run(each.read)
        await send()
        count = 0
        with trio.move_on_after(120):
            while count < events:
                await trio.sleep(1)
                for each in running:
                    each.tell("count")
                count = sum([(await run(each.read))["notified"] for each in running])
        await trio.sleep(1)
        for each in running:
            each.tell("end")
        return [await run(each.read) for each in running]
    finally:
        for each in running:
            each.kill()


def rows_of(label: str, runs: Sequence[Numbers]) -> dict[str, Numbers]:
    """Return the row of one replica, or of the first and the median of the others."""
    if len(runs) == 1:
        return {label: runs[0]}
    others = {name: statistics.median(run[name] for run in runs[1:]) for name in COLUMNS}
    return {f"{label}, the first of {len(runs)}": runs[0], f"{label}, median of the others": others}


def report(name: str, title: str, found: dict[str, list[Numbers]], results: Path) -> None:
    """Print and write the tables."""
    rows = [["", *COLUMNS.values()]]
    for label, runs in found.items():
        for run in runs:
            for memory in ("rss", "peak"):
                run[memory] /= 1024**2
            print(label, {key: round(value, 2) for key, value in run.items()}, flush=True)
        for row, values in rows_of(label, runs).items():
            rows.append([row, *(shown(values[each]) for each in COLUMNS)])
    write_table(results, name, title, rows, found, 1)


async def real(options: argparse.Namespace) -> None:
    """Measure with kube-apiserver."""
    directory = CACHE / f"shares-{options.objects}"
    loaded = directory / "loaded"
    found: dict[str, list[Numbers]] = {}
    for label, flags, replicas in (
        ("without shares", [], 0),
        ("filtered by the server", [GATE], REPLICAS),
        ("filtered here", [], REPLICAS),
    ):
        async with (
            ControlPlane(directory=directory, api_server_flags=flags) as control_plane,
            open_client(kubeconfig=control_plane.kubeconfig) as client,
        ):
            if not loaded.exists():
                await load(client, options.objects)
                loaded.touch()
            for lease in (await client.api(Lease, "default").list()).items:
                await client.api(Lease, "default").delete(lease.name)
            kubeconfig = str(control_plane.kubeconfig)
            arguments = ["--kubeconfig", kubeconfig, "--leases", kubeconfig, "--kind", "ConfigMap", "--by", options.by]
            found[label] = await measure(
                arguments, replicas, options.events, partial(write, client, label, options.events, options.objects)
            )
            print(label, found[label], file=sys.stderr, flush=True)
    title = f"Caches of {options.objects:,} ConfigMaps by {options.by}, and {options.events:,} events"
    report("shares", title, found, options.results)


async def replayed(options: argparse.Namespace) -> None:
    """Measure with the replay server, and the Leases on kube-apiserver."""
    command = [sys.executable, str(BENCHMARKS / "servers" / "replay.py"), "--pods", str(options.replay)]
    command += ["--events", str(options.events)]
    found: dict[str, list[Numbers]] = {}
    for label, replicas, more in (
        ("without shares", 0, []),
        ("filtered by the server", REPLICAS, []),
        ("filtered here", REPLICAS, ["--ignore-shards"]),
    ):
        async with ControlPlane() as control_plane:
            server = Process(command + more)
            try:
                said = await trio.to_thread.run_sync(server.read)

                async def go(server: Process = server) -> None:
                    server.tell("go")

                arguments = ["--kubeconfig", said["kubeconfig"], "--leases", str(control_plane.kubeconfig)]
                arguments += ["--kind", "Pod", "--by", "uid"]
                found[label] = await measure(arguments, replicas, options.events, go)
            finally:
                server.kill()
    title = f"Caches of {options.replay:,} replayed pods, and {options.events:,} events"
    report("shares-replayed", title, found, options.results)


async def count_leases(options: argparse.Namespace) -> None:
    """Measure how often Leases are written."""
    async with ControlPlane() as control_plane:
        for ranges, replicas in ((16, 1), (16, 4), (16, 8), (64, 4)):
            async with AsyncExitStack() as stack:
                nursery = await stack.enter_async_context(trio.open_nursery())
                name = f"leases-{ranges}-{replicas}"
                for number in range(replicas):
                    client = await stack.enter_async_context(open_client(kubeconfig=control_plane.kubeconfig))
                    shares = Shares(name, ranges, identity=f"replica-{number}")
                    await stack.enter_async_context(open_shares(client, shares, SharedInformerFactory(client)))
                client = await stack.enter_async_context(open_client(kubeconfig=control_plane.kubeconfig))
                source = ApiListWatch(client.api(Lease, "default"), f"trioformer.dev/shares={name}")
                informer = SharedInformer(source)
                await nursery.start(informer.run)
                await trio.sleep(30 if replicas > 1 else 5)
                count = 0
                with informer.subscribe() as notifications, trio.move_on_after(options.seconds):
                    async for _ in notifications:
                        count += 1
                print(f"{ranges} ranges, {replicas} replicas: {count / options.seconds:.1f} writes of Leases a second")
                nursery.cancel_scope.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--by", choices=("namespace", "uid"), default="namespace")
    parser.add_argument("--replay", type=int, default=0, help="the number of pods of the replay server")
    parser.add_argument("--leases", action="store_true", help="count the writes of Leases")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long they are counted")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results")
    options = parser.parse_args()
    trio.run(count_leases if options.leases else replayed if options.replay else real, options)


if __name__ == "__main__":
    main()
