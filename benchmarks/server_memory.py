"""Measure the memory of kube-apiserver while many caches are filled at once, by lists or by watch-lists.

::

    KUBEBUILDER_ASSETS=… python benchmarks/server_memory.py [--clients 20] [--pods 10000] [--repeats 3]

Each round starts kube-apiserver again, waits until its watch cache serves pods, lets it collect its garbage, and then
lets all clients begin at once.
A client is a thread that sends the requests with which an informer begins, over a TLS connection of its own, and counts
the bytes of the response: full caches in as many processes would take the machine's memory and CPU.
Therefore it reads faster than an informer.

Reports the medians of the peak of the resident memory (``VmHWM``) above that before, the CPU of kube-apiserver, and the
time until the last client has all pods; with both kinds of request in turns.  Linux only.
"""

from __future__ import annotations

import argparse
import base64
import os
import socket
import ssl
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import trio
import yaml
from harness.environments import BENCHMARKS, CACHE
from harness.report import medians_of, shown, write_table
from harness.running import RunFailedError

from trioformer.testing import ControlPlane

sys.path.insert(0, str(BENCHMARKS / "servers"))

import cluster  # it imports the modules beside it
import pods

PATHS = {
    "list": "/api/v1/pods?limit=500&resourceVersion=0",
    "watch-list": "/api/v1/pods?watch=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300"
    "&allowWatchBookmarks=true&sendInitialEvents=true",
}
"""The first request of an informer; at resourceVersion 0 the watch cache ignores the limit."""
END = b'"k8s.io/initial-events-end":"true"'
COLUMNS = {"idle": "MB before", "peak": "MB above", "per_client": "MB per client", "cpu": "CPU s", "wall": "s"}
MEGABYTE = 1024**2
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Address:
    """Where and how to connect."""

    def __init__(self, kubeconfig: Path) -> None:
        read = yaml.safe_load(kubeconfig.read_text())
        given = read["clusters"][0]["cluster"]
        self.url = urlsplit(given["server"])
        self.tls = ssl.create_default_context(cadata=base64.b64decode(given["certificate-authority-data"]).decode())
        self.tls.load_cert_chain(kubeconfig.with_name("client.crt"), kubeconfig.with_name("client.key"))

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self.url.hostname or "", self.url.port or 443))
        return self.tls.wrap_socket(plain, server_hostname=self.url.hostname)


def fill(address: Address, kind: str, start: threading.Barrier) -> int:
    """Read all pods, and return how many bytes they took."""
    size, tail, buffer = 0, b"", bytearray(64 * 1024)
    with address.connect() as stream:
        request = (
            f"GET {PATHS[kind]} HTTP/1.1\r\nHost: {address.url.netloc}\r\nAccept: application/json\r\n"
            "Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
        )
        start.wait()
        stream.sendall(request.encode())
        while count := stream.recv_into(buffer):
            read = tail + buffer[:count]
            if not size and not read.startswith(b"HTTP/1.1 200 "):
                raise RunFailedError(f"{kind}: {bytes(read[:300])!r}")
            size += count
            if kind == "watch-list" and END in read:
                return size
            tail = bytes(read[-len(END) :])
    if kind == "watch-list" or not tail.endswith(b"0\r\n\r\n"):
        raise RunFailedError(f"{kind}: the response ended early, after {size:,} bytes")
    return size


def collect_garbage(address: Address) -> None:
    """Let kube-apiserver free what its start has left: new allocations would take that memory, unseen."""
    for _ in range(2):
        with address.connect() as stream:
            request = f"GET /debug/pprof/heap?gc=1 HTTP/1.1\r\nHost: {address.url.netloc}\r\nConnection: close\r\n\r\n"
            stream.sendall(request.encode())
            begin = stream.recv(12)
            while stream.recv(64 * 1024):
                pass
        if not begin.startswith(b"HTTP/1.1 200"):
            raise RunFailedError(f"no garbage collection: {begin!r}")


def memory_of(pid: int, name: str) -> float:
    """Return ``VmRSS`` or ``VmHWM`` in MB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines[name].split()[0]) / 1024


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def wait_until_cached(kubeconfig: Path) -> None:
    """Wait until the watch cache serves pods."""
    requests = cluster.Requests(kubeconfig)
    path = f"/api/v1/pods?resourceVersion=0&fieldSelector=metadata.name%3D{pods.name_of(0)}"
    for _ in range(120):
        try:
            items = requests.send("GET", path)["items"]
        except RuntimeError:
            items = []
        if items:
            return
        time.sleep(0.5)
    raise RunFailedError("the watch cache has no pods after a minute")


def measure(kubeconfig: Path, pid: int, kind: str, options: argparse.Namespace) -> dict[str, float]:
    """Let all clients fill their caches, and return what kube-apiserver used."""
    wait_until_cached(kubeconfig)
    address = Address(kubeconfig)
    collect_garbage(address)
    time.sleep(options.settle)
    start = threading.Barrier(options.clients + 1)
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # VmHWM begins again
    idle, cpu = memory_of(pid, "VmRSS"), cpu_of(pid)
    with ThreadPoolExecutor(options.clients) as threads:
        filling = [threads.submit(fill, address, kind, start) for _ in range(options.clients)]
        start.wait()
        began = time.perf_counter()
        sizes = [each.result() for each in filling]
        wall = time.perf_counter() - began
    if min(sizes) < options.pods * 8_000:
        raise RunFailedError(f"{kind}: {min(sizes):,} bytes are not {options.pods:,} pods")
    peak = memory_of(pid, "VmHWM") - idle
    return {
        "idle": idle,
        "peak": peak,
        "per_client": peak / options.clients,
        "cpu": cpu_of(pid) - cpu,
        "wall": wall,
        "bytes": statistics.mean(sizes),
    }


def write(runs: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> None:
    """Write the runs as JSON, and their medians as reStructuredText."""
    rows = [["", *COLUMNS.values()]]
    rows += [[kind, *(shown(values[name]) for name in COLUMNS)] for kind, values in medians_of(runs).items()]
    title = f"kube-apiserver while {options.clients} clients read {options.pods:,} pods at once"
    write_table(options.results, "server-memory", title, rows, runs, options.repeats)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the memory of kube-apiserver while caches are filled.")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settle", type=float, default=15.0, help="seconds before each round")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results")
    options = parser.parse_args()
    directory = CACHE / f"cluster-{options.pods}"
    loaded = directory / f"loaded-{options.pods}"
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in PATHS}
    async with ControlPlane(directory=directory) as control_plane:
        kubeconfig = control_plane.kubeconfig
        if not loaded.exists():
            await trio.to_thread.run_sync(cluster.load, cluster.Requests(kubeconfig), options.pods)
            loaded.touch()
        for number in range(options.repeats):
            for kind in list(PATHS)[:: -1 if number % 2 else 1]:
                await control_plane.stop_api_server()
                await control_plane.start_api_server()
                pid = control_plane.process_ids["kube-apiserver"]
                run = await trio.to_thread.run_sync(measure, kubeconfig, pid, kind, options)
                print(number + 1, kind, {name: round(value, 1) for name, value in run.items()}, flush=True)
                runs[kind].append(run)
    write(runs, options)


if __name__ == "__main__":
    trio.run(main)
