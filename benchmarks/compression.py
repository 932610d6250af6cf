"""Measure where compressed responses pay: lists and informers over loopback, a LAN and a slow link.

::

    KUBEBUILDER_ASSETS=… python benchmarks/compression.py [--pods 10000] [--repeats 3]

kube-apiserver compresses lists and objects of more than 128 KiB with gzip at level 1, and no watch, so no watch-list.
Each run has a client process of its own, which reads over TLS, through ``servers/link.py`` unless it is loopback.
Reports the medians of the wall time, the CPU of the client and that of kube-apiserver, with and without compression in
turns.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio
from harness.environments import BENCHMARKS, CACHE
from harness.report import medians_of, shown, write_table
from harness.running import Server

from trioformer import SharedInformerFactory, open_client
from trioformer.cache import ReflectorOptions
from trioformer.client import ClientOptions
from trioformer.kubeconfig import load_config
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane

sys.path.insert(0, str(BENCHMARKS / "servers"))

import cluster  # it imports the modules beside it
import pods

LINKS: dict[str, tuple[float, float] | None] = {
    "loopback": None,
    "1 Gbit/s, 0.5 ms": (1000, 0.0005),
    "50 Mbit/s, 20 ms": (50, 0.02),
}
"""Bandwidth in Mbit/s and round trip in seconds."""
WORKLOADS = ("list", "namespace", "informer", "informer, plain list")
COLUMNS = {"wall": "s", "cpu": "CPU s, client", "server_cpu": "CPU s, server"}
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


async def client(options: argparse.Namespace) -> None:
    """Do one workload, and say what it took."""
    config = load_config(kubeconfig=options.kubeconfig)
    config = attrs.evolve(config, server=f"https://127.0.0.1:{options.port}")
    async with open_client(config, options=ClientOptions(compression=options.compression)) as opened:
        await opened.version()
        began, cpu = time.perf_counter(), time.process_time()
        if options.workload.startswith("informer"):
            factory = SharedInformerFactory(opened, options=ReflectorOptions(watch_list=options.workload == "informer"))
            informer = factory.informer(Pod)
            async with trio.open_nursery() as nursery:
                await nursery.start(factory.run)
                await informer.wait_until_synced()
                done = time.perf_counter() - began, time.process_time() - cpu
                count = len(informer.lister.list())
                nursery.cancel_scope.cancel()
        else:
            namespace = pods.namespace_of(0) if options.workload == "namespace" else None
            count = len(await opened.api(Pod, namespace=namespace).list())
            done = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"wall": done[0], "cpu": done[1], "count": count}))


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def measure(kubeconfig: Path, port: int, pid: int, workload: str, *, compression: bool) -> dict[str, float]:
    """Let a client process do one workload."""
    before = cpu_of(pid)
    command = [sys.executable, __file__, "--client", workload, "--kubeconfig", str(kubeconfig), "--port", str(port)]
    command += ["--compression"] if compression else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {**json.loads(done.stdout), "server_cpu": cpu_of(pid) - before}


def write(runs: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> None:
    """Write the runs as JSON, and their medians as reStructuredText."""
    medians = medians_of(runs)
    rows = [["", *(f"{unit}, {with_}" for unit in COLUMNS.values() for with_ in ("plain", "gzip"))]]
    for link in LINKS:
        for workload in WORKLOADS:
            both = [medians[f"{link}: {workload}: {coding}"] for coding in ("plain", "gzip")]
            rows.append([f"{workload}, {link}", *(shown(values[name]) for name in COLUMNS for values in both)])
    title = f"{options.pods:,} pods of 10.4 KB without and with gzip"
    write_table(options.results, "compression", title, rows, runs, options.repeats)


async def main(options: argparse.Namespace) -> None:
    directory = options.directory or CACHE / f"cluster-{options.pods}"
    loaded = directory / f"loaded-{options.pods}"
    runs: dict[str, list[dict[str, float]]] = {}
    async with ControlPlane(directory=directory) as control_plane:
        kubeconfig, pid = control_plane.kubeconfig, control_plane.process_ids["kube-apiserver"]
        if not loaded.exists():
            await trio.to_thread.run_sync(cluster.load, cluster.Requests(kubeconfig), options.pods)
            loaded.touch()
        own_port = urlsplit(load_config(kubeconfig=kubeconfig).server).port or 443
        with ExitStack() as stack:
            ports = {
                name: own_port if link is None else open_link(stack, own_port, link) for name, link in LINKS.items()
            }
            for number in range(options.repeats):
                for name, port in ports.items():
                    for workload in WORKLOADS:
                        for compression in (False, True)[:: -1 if number % 2 else 1]:

                            def run(port: int = port, workload: str = workload, gzip: bool = compression) -> Any:
                                return measure(kubeconfig, port, pid, workload, compression=gzip)

                            found = await trio.to_thread.run_sync(run)
                            key = f"{name}: {workload}: {'gzip' if compression else 'plain'}"
                            print(number + 1, key, {each: round(value, 2) for each, value in found.items()}, flush=True)
                            runs.setdefault(key, []).append(found)
    write(runs, options)


def open_link(stack: ExitStack, target: int, link: tuple[float, float]) -> int:
    """Start a link in a process of its own, and return its port."""
    command = [sys.executable, str(BENCHMARKS / "servers" / "link.py"), "--target", str(target)]
    command += ["--megabits", str(link[0]), "--round-trip", str(link[1])]
    server = Server(command, {})
    stack.callback(server.close)
    return int(server.said["port"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure where compressed responses pay.")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="of the control plane")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--client", dest="workload", help="do one workload, and end")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--compression", action="store_true")
    given = parser.parse_args()
    if given.workload:
        trio.run(client, given)
    else:
        trio.run(main, given)
