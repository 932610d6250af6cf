"""Running servers and drivers, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from .environments import BENCHMARKS, CACHE, REPOSITORY, SOURCE, UnavailableError, control_plane, go_program, python_of
from .workloads import Entrant, Workload

PATIENCE = 600.0
"""Seconds that one run of a driver may take."""
WRITE_INTERVAL = 0.01

Result: TypeAlias = dict[str, Any]


class RunFailedError(Exception):
    """A driver failed; the message is one line."""


class Server:
    """A server process that has said that it is ready."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UnavailableError(f"{Path(command[1]).name} did not start")
        self.said: Result = json.loads(line)

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def serving(workload: Workload, pods: int) -> Generator[Server, None, None]:
    """Start the workload's server, and stop it after the block."""
    python = str(python_of("servers"))
    environment: dict[str, str] = {}
    if workload.server == "real":
        command = [python, str(BENCHMARKS / "servers" / "cluster.py"), "--pods", str(pods)]
        command += ["--directory", str(CACHE / f"cluster-{pods}")]
        environment = {"KUBEBUILDER_ASSETS": str(control_plane()), "PYTHONPATH": str(REPOSITORY)}
    else:
        command = [python, str(BENCHMARKS / "servers" / "replay.py"), "--pods", str(pods), "--size", workload.size]
        command += ["--tls"] if workload.tls else []
        environment = {"PYTHONPATH": str(REPOSITORY)}
    server = Server(command, environment)
    try:
        yield server
    finally:
        server.close()


def drive(server: Server, workload: Workload, entrant: Entrant, *, pods: int, events: int) -> Result:
    """Run an entrant's driver once and return what it measured.

    Raises:
        RunFailedError: It ended without a result, or did not end.
    """
    if workload.server == "replay":
        server.tell(f"reset {pods} {events} {workload.rate}")
    arguments = [
        "--kubeconfig",
        server.said["kubeconfig"],
        "--pods",
        str(pods),
        "--events",
        str(events),
        *(("--rate", str(workload.rate)) if workload.rate else ()),
        *entrant.flags,
    ]
    if entrant.rival == "client_go":
        command = [str(go_program("client_go")), workload.kind, *arguments]
    else:
        program = BENCHMARKS / "drivers" / f"{'start' if workload.kind == 'start' else 'drive'}_{entrant.rival}.py"
        command = [str(python_of(entrant.rival)), str(program), workload.kind, *arguments]
    environment = {**os.environ}
    if entrant.rival.startswith("trioformer"):
        environment["PYTHONPATH"] = str(SOURCE)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=CACHE
    )
    said: list[str] = []
    errors = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    errors.start()
    deadline = threading.Timer(PATIENCE, process.kill)
    deadline.start()
    result: Result = {}
    for line in process.stdout:
        if not line.startswith("{"):
            continue
        words = json.loads(line)
        if words == {"ready": True}:
            server.tell("go" if workload.server == "replay" else f"write {events} {WRITE_INTERVAL}")
        else:
            result = {**words, "elapsed": time.perf_counter() - began}
    process.wait()
    expired = not deadline.is_alive()
    deadline.cancel()
    errors.join()
    if process.returncode != 0 or not result:
        last = [line.strip() for line in said if line.strip()][-1:] or [f"ended with {process.returncode}"]
        raise RunFailedError(f"took more than {PATIENCE:g} s" if expired else last[0][:200])
    return result
