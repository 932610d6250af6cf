"""kube-controller-manager, and kwok, which simulates nodes and kubelets.

Both programs are clients of kube-apiserver, and reconnect when it restarts.  No scheduler runs, so kwok sets a pod to
running as soon as the pod's ``spec.nodeName`` is set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

import trio

from ...client import open_client
from ...errors import AlreadyExistsError
from ...kubeconfig import load_config
from ...models import ObjectMeta
from ...models.core_v1 import Node
from ...watchtools import has_condition, wait_for
from ._certificates import Certificates
from ._process import START_DEADLINE, ControlPlaneError, Program, make_program

__all__ = ["create_nodes", "make_component", "make_controller_manager", "make_kwok"]


def make_component(name: str, assets: Path, directory: Path, certificates: Certificates, *more: str) -> Program:
    """Return a component, such as ``kube-scheduler``, without starting it, for the kubeconfig in `directory`."""
    return make_program(name, assets, directory, certificates, ["/healthz"], *more)


def make_controller_manager(assets: Path, directory: Path, certificates: Certificates) -> Program:
    """Return kube-controller-manager, without starting it, for the server in the kubeconfig in `directory`."""
    key = f"--service-account-private-key-file={certificates.service_account_key}"
    # The default is a system directory, which the program would create.
    plugins = f"--flex-volume-plugin-dir={directory}/flexvolume"
    return make_component("kube-controller-manager", assets, directory, certificates, key, plugins)


def make_kwok(assets: Path, directory: Path, certificates: Certificates) -> Program:
    """Return kwok, without starting it, for all nodes of the server in the kubeconfig in `directory`."""
    return make_program("kwok", assets, directory, certificates, ["/healthz"])


async def create_nodes(kubeconfig: Path, names: Collection[str]) -> None:
    """Create the nodes that do not exist, and wait until kwok has made all nodes ready.

    Raises:
        ControlPlaneError: The nodes are not ready after :data:`START_DEADLINE` seconds.
    """
    async with open_client(load_config(kubeconfig=kubeconfig)) as client:
        nodes = client.api(Node)
        with trio.move_on_after(START_DEADLINE) as deadline:
            for name in names:
                with contextlib.suppress(AlreadyExistsError):
                    await nodes.create(Node(metadata=ObjectMeta(name=name)))
            for name in names:
                await wait_for(nodes, name, has_condition("Ready"))
    if deadline.cancelled_caught:
        raise ControlPlaneError(f"the nodes were not ready after {START_DEADLINE:g} seconds", process="kwok")
