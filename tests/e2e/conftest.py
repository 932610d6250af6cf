"""Fixtures of the end-to-end tests, which run against real binaries and never skip when these are missing.

Each process of pytest-xdist has control planes of its own, one of each fixture that its files ask for, and runs its
tests one after the other: no test stops a program that another one needs at that moment.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from trioformer.testing.control_plane._control_plane import ControlPlane

BUILD = Path(__file__).with_name("build.py")


@pytest.fixture(scope="session")
def assets() -> Path:
    """The directory of etcd, kube-apiserver and the others: ``KUBEBUILDER_ASSETS``, or else what build.py has built."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(given).absolute()
    build = runpy.run_path(str(BUILD))
    if missing := build["missing"]():
        pytest.fail(
            f"{', '.join(missing)} of {build['directory']()} not built, or from other versions: "
            f"run `{sys.executable} {BUILD}`, or set KUBEBUILDER_ASSETS",
            pytrace=False,
        )
    directory: Path = build["directory"]()
    return directory


@pytest.fixture(scope="session")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane that all tests share and none stops; what they create is in a namespace of their own."""
    yield from _running(ControlPlane(assets=assets))


@pytest.fixture(scope="session")
def breakable_control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane for the tests that stop its programs; whoever stops one starts it again."""
    yield from _running(ControlPlane(assets=assets))


@pytest.fixture(scope="session")
def cluster(assets: Path) -> Iterator[ControlPlane]:
    """A control plane where Deployments make pods and pods run, on ``node-1`` and ``node-2``.

    Its API server may be stopped; whoever stops it starts it again.
    """
    yield from _running(ControlPlane(assets=assets, controller_manager=True, nodes=["node-1", "node-2"]))


def _running(shared: ControlPlane) -> Iterator[ControlPlane]:
    # Entered and left outside the tests' own trio.run, which a ControlPlane allows: it holds no tasks.
    trio.run(shared.__aenter__)
    yield shared
    trio.run(shared.__aexit__, None, None, None)
