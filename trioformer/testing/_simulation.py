"""A small simulated cluster for demos: pods are created, become ready, change, and are deleted."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from string import Template
from typing import Any, final

import attrs
import trio
import yaml

from .._util import open_serving_nursery, opened_by
from ..client import Client
from ..models.core_v1 import Node, Pod
from ._server import APIServer

PERIOD = 0.5
"""Seconds between two changes. Of three consecutive changes, one adds a pod, one updates a pod, and one deletes a
pod."""
MAX_PODS = 6
"""The maximum number of pods."""
NODES = ("node-1", "node-2", "node-3")
APPS = (
    ("web", "nginx:1.27", "7d9c8b6f5"),
    ("api", "registry.example.com/api:2.4.1", "5f6d7c9b84"),
    ("worker", "registry.example.com/worker:2.4.1", "6b8f4d5c7d"),
)
"""The name, the image and the hash of each application."""
NAMESPACE = "default"


@opened_by("client", "async with open_simulated_cluster() as client:")
async def open_simulated_cluster(
    simulate: Callable[[APIServer], Awaitable[object]] | None = None, *, server: APIServer | None = None
) -> AsyncGenerator[Client, None]:
    """Run an embedded API server with simulated activity, and open a client for this server.

    By default, the activity is in the namespace ``default``.  The simulation creates three nodes and three pods.  Then
    the simulation makes one change every half second.  The changes take turns: the simulation creates a pod, changes
    the label of another pod, or deletes the oldest pod.  A new pod starts to run half a second after it was created,
    and there are at most six pods.  The sequence of changes is the same in every run.

    A demo can call this function instead of :func:`~trioformer.client.open_client` to run without a cluster::

        async with open_simulated_cluster() if "--embedded" in sys.argv else open_client() as client:
            ...

    Args:
        simulate: An async function that simulates another activity.  It is started with ``nursery.start``, so the
            block begins when the function has called ``task_status.started()``.
        server: The server, which must not be running.  The default is a new server.

    Raises:
        ExceptionGroup: The function ``simulate`` raised an exception.  Exceptions raised in the block propagate
            unchanged.

    Ownership:
        The tasks of the server and of ``simulate`` belong to this context manager, which cancels them when the block
        ends.  The server runs until the block and the simulation have ended, so both may clean up in a shielded scope.
    """
    served = APIServer() if server is None else server
    serving = trio.CancelScope(shield=True)
    async with open_serving_nursery() as nursery:
        with trio.CancelScope(shield=True):  # a start that is cancelled would leave a task that nothing cancels
            await nursery.start(_serve_in, serving, served)
        try:
            async with open_serving_nursery() as acting:
                await acting.start(simulate_cluster if simulate is None else simulate, served)
                async with served.open_client() as client:
                    yield client
        finally:
            serving.cancel()


async def _serve_in(scope: trio.CancelScope, server: APIServer, *, task_status: trio.TaskStatus[None]) -> None:
    """Run the server until the shielded ``scope`` is cancelled, so that tasks can still use the server to clean up."""
    with scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            task_status.started()


async def simulate_cluster(server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Simulate the default activity of :func:`open_simulated_cluster` until cancelled.  The objects are not deleted."""
    cluster = _SimulatedCluster(server)
    cluster.create_nodes()
    for _ in APPS:
        server.script_pod(cluster.create_pod())
    task_status.started()
    for step in itertools.count():
        await trio.sleep(PERIOD)
        cluster.advance(step)


@final
@attrs.define(eq=False)
class _SimulatedCluster:
    """A cluster simulation that plays the roles of a scheduler, a kubelet and a kubectl user."""

    _server: APIServer
    _pods: list[str] = attrs.field(factory=list)
    """The names of the pods, oldest first."""
    _pending: str = ""
    """The pod that was created last, if it is not running yet."""
    _count: int = 0
    _node: str = attrs.field(init=False)
    _pod: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        text = Path(__file__).with_name("simulation.yaml").read_text("utf-8")
        self._node, self._pod = text.split("---\n")

    def create_nodes(self) -> None:
        existing = {node.name for node in self._server.list(Node)}
        for name in NODES:
            if name not in existing:
                self._create(self._node, node=name)

    def advance(self, step: int) -> None:
        """Make the changes of the next step."""
        existing = {pod.name for pod in self._server.list(Pod, namespace=NAMESPACE)}
        self._pods = [name for name in self._pods if name in existing]  # clients may delete them too
        if self._pending in existing:
            self._server.script_pod(self._pending)
        self._pending = ""
        match step % 3:
            case 0 if len(self._pods) < MAX_PODS:
                self._pending = self.create_pod()
            case 1 if self._pods:
                labels = {"demo.trioformer/step": str(step)}
                self._server.patch(Pod, self._pods[step % len(self._pods)], {"metadata": {"labels": labels}})
            case 2 if self._pods:
                self._server.delete(Pod, self._pods.pop(0), namespace=NAMESPACE)

    def create_pod(self) -> str:
        """Create the next pod, bound to a node but not running, and return its name."""
        app, image, digest = APPS[self._count % len(APPS)]
        name = self._create(self._pod, app=app, image=image, hash=digest, node=NODES[self._count % len(NODES)])
        self._count += 1
        self._pods.append(name)
        return name

    def _create(self, template: str, **names: str) -> str:
        made: Any = self._server.create(yaml.safe_load(Template(template).substitute(names)))
        name: str = made["metadata"]["name"]
        return name
