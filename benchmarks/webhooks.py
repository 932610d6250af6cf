"""Measure admission webhooks: the most calls a second on one core, and how long they take at half of that.

::

    python benchmarks/webhooks.py [--repeats 3] [--only trioformer,kopf]

Needs CPython 3.11 or newer, Go, two cores and Linux.
Each server runs in a process of its own on the first core, with the same two functions for a Website: one reads two
fields and accepts, the other adds a default.
The load (``admission/load.go``) runs on the second core, and sends what kube-apiserver sends: both calls in turns, over
16 connections that stay open, with TLS 1.3 and HTTP/1.1, since kube-apiserver uses no HTTP/2 for webhooks of Services.
It checks each response.
First each connection sends its next call when it has a response; then calls arrive at random times, half as many, and
each takes from the time that it was due.
kopf and trioformer also need an API server, which is an embedded one; none of the servers logs.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.environments import (
    BENCHMARKS,
    CACHE,
    SOURCE,
    UnavailableError,
    copy_source,
    go_program,
    python_of,
)
from harness.report import Line, write
from harness.running import RunFailedError
from harness.workloads import Entrant, Target, Workload

WORKLOAD = Workload(
    "Admission webhooks on one core: the most calls, and the time of a call at half of that",
    "webhooks",
    "none",
    (
        Entrant("trioformer", "trioformer"),
        Entrant("kopf", "kopf"),
        Entrant("kopf with uvloop", "kopf_uvloop"),
        Entrant("controller-runtime", "admission"),
    ),
    (Target("most", "trioformer", "kopf", at_least=2), Target("p99", "trioformer", at_most=20)),
    columns={
        "most": "calls/s",
        "cpu": "CPU µs/call",
        "p50": "p50 ms at half",
        "p99": "p99 ms at half",
        "peak": "memory, MB",
    },
)
LEAST_BUSY = 0.9
"""The share of its core that a server uses if neither the load nor another program is the limit."""


@contextmanager
def on_core(core: int) -> Generator[None, None, None]:
    """Let the programs that are started in the block run on one core only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running(
    command: list[str], core: int, environment: Mapping[str, str] | None = None
) -> Generator[subprocess.Popen[str], None, None]:
    """Run a program on one core during the block, without what it logs."""
    environment = {**os.environ, **(environment or {})}
    with on_core(core):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=CACHE, env=environment
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def make_certificate(directory: Path) -> None:
    """Make ``server.pem`` and ``server.key``, and ``client.pem`` with their authority."""
    command = [str(python_of("servers")), "-m", "trustme", "--quiet", "-d", str(directory), "-i", "127.0.0.1"]
    subprocess.run(command, check=True)


@contextmanager
def api_server(directory: Path, core: int) -> Generator[None, None, None]:
    """Run an embedded server that knows Websites, and write ``kubeconfig``."""
    command = [str(python_of("servers")), "-m", "trioformer.testing", "serve", "--bind", "127.0.0.1:0"]
    command += ["--load", str(BENCHMARKS / "admission" / "crd.yaml")]
    command += ["--write-kubeconfig", str(directory / "kubeconfig")]
    with running(command, core, {"PYTHONPATH": str(SOURCE)}) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise UnavailableError("the embedded server did not start")
        yield


def command_of(rival: str, port: int, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return how a server is started: the command, and its environment."""
    certificate, key, kubeconfig = (str(directory / name) for name in ("server.pem", "server.key", "kubeconfig"))
    if rival.startswith("kopf"):
        command = [str(python_of(rival)), "-m", "kopf", "run", "--quiet", "--standalone", "--namespace", "default"]
        environment = {"PORT": str(port), "CERTIFICATE": certificate, "KEY": key, "KUBECONFIG": kubeconfig}
        return [*command, str(BENCHMARKS / "drivers" / "admit_kopf.py")], environment
    options = ["--port", str(port), "--certificate", certificate, "--key", key]
    if rival == "admission":
        return [str(go_program(rival)), "serve", *options], {"GOMAXPROCS": "1"}
    driver = str(BENCHMARKS / "drivers" / f"admit_{rival}.py")
    return [str(python_of(rival)), driver, *options, "--kubeconfig", kubeconfig], {"PYTHONPATH": str(SOURCE)}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def peak_of(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def measure(rival: str, directory: Path, cores: tuple[int, int], period: float) -> dict[str, float]:
    """Start a server, and send it the load.

    Raises:
        RunFailedError: The server did not start, or gave a wrong response.
    """
    port = free_port()
    command, environment = command_of(rival, port, directory)
    with running(command, cores[0], environment) as server:
        load = [str(go_program("admission")), "load", "-port", str(port), "-pid", str(server.pid)]
        load += ["-authority", str(directory / "client.pem"), "-period", f"{period}s"]
        with on_core(cores[1]):
            done = subprocess.run(load, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunFailedError(done.stderr.strip().removeprefix("error: ")[:200])
        found: dict[str, float] = {**json.loads(done.stdout), "peak": peak_of(server.pid)}
    if found["busy"] < LEAST_BUSY:
        print(f"(only {found['busy']:.0%} of the core was used) ", end="")
    return found


def run(options: argparse.Namespace, lines: list[Line], cores: tuple[int, int]) -> None:
    """Let the servers take turns, every other round in the opposite order."""
    with tempfile.TemporaryDirectory(prefix="webhooks-", dir=CACHE) as name:
        directory = Path(name)
        make_certificate(directory)
        with api_server(directory, cores[1]):
            for number in range(options.repeats):
                for line in lines[:: -1 if number % 2 else 1]:
                    if line.error is not None:
                        continue
                    print(f"  round {number + 1}: {line.entrant.label} ... ", end="", flush=True)
                    try:
                        line.runs.append(measure(line.entrant.rival, directory, cores, options.period))
                    except RunFailedError as error:
                        line.error = str(error)
                        print(f"failed: {error}", flush=True)
                    else:
                        print(" ".join(f"{key}={value:.4g}" for key, value in line.runs[-1].items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure admission webhooks.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--period", type=float, default=5.0, help="seconds of each of the two measurements of a run")
    parser.add_argument("--only", default="", help="labels, separated by commas")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--check", action="store_true", help="fail when a target is not reached")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("error: two cores are required, one for the server and one for the load")
    CACHE.mkdir(parents=True, exist_ok=True)
    copy_source()
    only = [label for label in options.only.split(",") if label]
    lines = [Line(entrant, 0, 0) for entrant in WORKLOAD.entrants if not only or entrant.label in only]
    try:
        for line in lines:
            command_of(line.entrant.rival, 0, CACHE)  # which makes its environment
        run(options, lines, (cores[0], cores[1]))
    except UnavailableError as error:
        sys.exit(f"error: {error}")
    outcomes = write(options.results, "webhooks", WORKLOAD, lines, repeats=options.repeats)
    if options.check and not all(outcome.reached for outcome in outcomes):
        sys.exit("error: some targets are not reached")


if __name__ == "__main__":
    main()
