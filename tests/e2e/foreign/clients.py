"""Clients in other languages against the embedded API server; see ``run.py``."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import attrs
import trio

from tests.e2e.embedded_cluster import kubeconfig_of, results_of_checks
from trioformer.testing import APIServer
from trioformer.testing.control_plane._certificates import issue_certificates

HERE: Final = Path(__file__).parent
SECONDS: Final = 180
"""The time limit of all checks of a client."""


@attrs.frozen
class ForeignClient:
    """A program in a folder beside this file: how it is built there and run, and how many checks it has."""

    build: str
    run: str
    checks: int


CLIENTS: Final = {
    "client_java": ForeignClient(
        "mvn --batch-mode --quiet dependency:copy-dependencies -DoutputDirectory=lib", "java -cp lib/* Main.java", 5
    ),
    "client_node": ForeignClient("npm install --silent --no-audit --no-fund --package-lock=false", "node main.mjs", 4),
    "kube_rs": ForeignClient("cargo build --quiet", "target/debug/kube-rs", 6),
}


def build(name: str, directory: Path) -> Path:
    """Copy a client into a directory and build it there; returns the folder.

    Raises:
        subprocess.CalledProcessError: The build failed.
    """
    folder = directory / name
    shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
    subprocess.run(CLIENTS[name].build.split(), cwd=folder, check=True)
    return folder


async def disturb(server: APIServer, fault: str) -> None:
    """Break all watches and change an object, and for the fault ``compact``, compact the change."""
    while not server.disconnect_watches(how="reset"):  # noqa: ASYNC110  # until the client watches again
        await trio.sleep(0.01)
    server.patch("configmaps", "a", {"metadata": {"annotations": {"fault": fault}}}, namespace="foreign")
    if fault == "compact":
        server.compact()


async def results_of(name: str, folder: Path) -> dict[str, str]:
    """Run the checks of a client that has been built in a folder; returns the error of each, empty if it has passed."""
    server = APIServer()
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreign"}})
    async with kubeconfig_of(server, folder, issue_certificates(folder)) as kubeconfig:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        run = functools.partial(trio.run_process, CLIENTS[name].run.split(), cwd=folder, env=environment)
        return await results_of_checks(run, SECONDS, functools.partial(disturb, server))
