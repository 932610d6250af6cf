"""Measure commands in a pod: ``true`` many times, and one that writes 100 MB, with every client in turns.

::

    KUBEBUILDER_ASSETS=… python benchmarks/commands.py [--repeats 5] [--only trioformer,kubectl]

The pod is one of kwok, whose kubelet executes commands on this machine; so kube-apiserver and kwok are the same for all
clients, and share the processors with them.
Each run of a client is a process of its own, which measures itself without its start; kubectl is started for each
command, and all of its time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import trio
from harness.environments import BENCHMARKS, CACHE, SOURCE, copy_source, python_of
from harness.report import shown, write_table

from trioformer import open_client
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

RIVALS = {
    "trioformer": "trioformer",
    "kubernetes": "kubernetes",
    "kubernetes-asyncio": "kubernetes_asyncio",
    "kr8s": "kr8s",
    "kubectl": "",
}
KUBECTL_SHARE = 10
"""Only one in so many of the short commands is executed by kubectl, and counts as often."""
SIZE = 100 * 1024 * 1024
SIZES = {"kubernetes": SIZE // 10}
"""Its time grows with the square of the size: 100 MB take a minute."""
EXECUTED_HERE = """\
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata:
  name: all
spec:
  execs:
  - local:
      workDir: /
"""
COLUMNS = {
    "short_wall": "true, s",
    "short_cpu": "true, CPU s",
    "long_wall": "100 MB, s",
    "long_cpu": "100 MB, CPU s",
    "peak": "memory, MB",
}


def make_assets(directory: Path) -> Path:
    """Make a directory with the programs, where kwok's kubelet executes commands on this machine."""
    built = Path(os.environ["KUBEBUILDER_ASSETS"])
    for name in ("etcd", "kube-apiserver", "kwok"):
        (directory / name).symlink_to(built / name)
    (directory / "kwok.yaml").write_text((built / "kwok.yaml").read_text() + EXECUTED_HERE)
    return directory


async def start_pod(kubeconfig: Path) -> None:
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]}
    async with open_client(kubeconfig=kubeconfig) as client:
        pods = client.api(Pod, namespace="default")
        await pods.create(from_dict(Pod, {"metadata": {"name": "one"}, "spec": spec}))
        await wait_for(pods, "one", has_condition("Ready"))


def measure(rival: str, kubeconfig: Path, times: int) -> dict[str, float]:
    """Let a client execute both commands in a process of its own."""
    command = [str(python_of(rival)), str(BENCHMARKS / "drivers" / f"exec_{rival}.py")]
    command += ["--kubeconfig", str(kubeconfig), "--times", str(times), "--size", str(SIZES.get(rival, SIZE))]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)} if rival == "trioformer" else None
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=CACHE)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "peak": found["peak"] / 1024**2}


def measure_kubectl(kubeconfig: Path, times: int) -> dict[str, float]:
    """Start kubectl for each command."""
    kubectl = [str(Path(os.environ["KUBEBUILDER_ASSETS"]) / "kubectl"), "--kubeconfig", str(kubeconfig)]
    found: dict[str, float] = {}
    for name, command, count, share in (
        ("short", ["true"], times // KUBECTL_SHARE, KUBECTL_SHARE),
        ("long", ["head", "-c", str(SIZE), "/dev/zero"], 1, 1),
    ):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(count):
            subprocess.run([*kubectl, "exec", "one", "--", *command], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found |= {f"{name}_wall": wall * share, f"{name}_cpu": cpu * share}
    return found


def write(runs: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> None:
    """Write the runs as JSON, and their medians with the least of each in brackets as reStructuredText."""
    rows = [["", *COLUMNS.values()]]
    for label, done in runs.items():
        cells = []
        for name in COLUMNS:
            values = [run[name] for run in done if name in run]
            cells.append(f"{shown(statistics.median(values))} ({shown(min(values))})" if values else "")
        rows.append([f"{label} (10 MB)" if RIVALS[label] in SIZES else label, *cells])
    title = f"{options.times} times true, and 100 MB of output; in brackets the least"
    write_table(options.results, "commands", title, rows, runs, options.repeats)


async def main(options: argparse.Namespace) -> None:
    labels = [label for label in RIVALS if not options.only or label in options.only.split(",")]
    CACHE.mkdir(parents=True, exist_ok=True)
    copy_source()
    for label in labels:
        if RIVALS[label]:
            python_of(RIVALS[label])
    runs: dict[str, list[dict[str, float]]] = {label: [] for label in labels}
    directory = Path(tempfile.mkdtemp(prefix="commands-", dir=CACHE))
    try:
        async with ControlPlane(assets=make_assets(directory), nodes=["node-1"]) as control_plane:
            await start_pod(control_plane.kubeconfig)
            for number in range(options.repeats):
                for label in labels[:: -1 if number % 2 else 1]:

                    def run(label: str = label) -> dict[str, float]:
                        if not RIVALS[label]:
                            return measure_kubectl(control_plane.kubeconfig, options.times)
                        return measure(RIVALS[label], control_plane.kubeconfig, options.times)

                    found = await trio.to_thread.run_sync(run)
                    print(number + 1, label, {name: round(value, 3) for name, value in found.items()}, flush=True)
                    runs[label].append(found)
    finally:
        shutil.rmtree(directory)
    write(runs, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure commands in a pod.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--times", type=int, default=200, help="how often true is executed")
    parser.add_argument("--only", default="", help="clients, separated by commas")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results")
    trio.run(main, parser.parse_args())
