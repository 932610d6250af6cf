"""Run clients and controllers of other projects against the embedded API server, and print what they show.

::

    python -m tests.e2e.foreign.run                              # all, for ten minutes of controllers
    python -m tests.e2e.foreign.run client_node kube_rs          # only these clients
    python -m tests.e2e.foreign.run controllers --seconds 60

The clients are built in ``.cache/foreign/``, and need npm, Maven and Cargo with their registries.  The controllers are
kube-controller-manager, kube-scheduler and kwok in ``KUBEBUILDER_ASSETS``.  ``nox -s foreign`` builds them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import trio

from . import clients, controllers

CACHE: Final = Path(".cache/foreign").absolute()
CONTROLLERS: Final = "controllers"
PINNED: Final = {
    "client_java": ("pom.xml", r"<artifactId>(client-java)</artifactId>\s*<version>(\d[\d.]+)"),
    "client_node": ("package.json", r'"(@kubernetes/client-node)": "(.*)"'),
    "kube_rs": ("Cargo.toml", r'(?m)^(kube) = .*?"=(.*?)"'),
}
"""Where the versions of the clients are pinned."""
TOOLS: Final = {
    "client_java": ["java", "--version"],
    "client_node": ["node", "--version"],
    "kube_rs": ["cargo", "--version"],
}


def first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def check_client(name: str) -> bool:
    """Build and run a client, print its results, and return whether all checks have passed."""
    file, pattern = PINNED[name]
    found = re.findall(pattern, (clients.HERE / name / file).read_text())[-1]
    print(f"{' '.join(found)} with {first_line(TOOLS[name])}", flush=True)
    results = trio.run(clients.results_of, name, clients.build(name, CACHE))
    for check, error in results.items():
        print(f"  {check}: {error or 'passed'}", flush=True)
    return not any(results.values()) and len(results) == clients.CLIENTS[name].checks


def check_controllers(seconds: float) -> bool:
    """Run the controllers, print their figures, and return True."""
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    for program in controllers.PROGRAMS:
        print(f"{program}: {first_line([str(assets / program), '--version'])}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        trio.run(controllers.run, assets, Path(directory), seconds)
    return True


def main() -> int:
    """Run what the arguments name; returns 1 if something has failed."""
    parser = argparse.ArgumentParser(description="Run programs of other projects against the embedded API server.")
    every = [*clients.CLIENTS, CONTROLLERS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(every)} (default: all)")
    parser.add_argument("--seconds", type=float, default=600, help="how long Deployments change (default: 600)")
    arguments = parser.parse_args()
    names = arguments.names or every
    if unknown := set(names) - set(every):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    failed = [
        name
        for name in names
        if not (check_controllers(arguments.seconds) if name == CONTROLLERS else check_client(name))
    ]
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
