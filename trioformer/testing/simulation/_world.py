"""What a scenario can see and do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import trio

from ...models.core_v1 import Pod
from .._direct_api import DirectAPI
from ._record import Record, acting

if TYPE_CHECKING:
    from .._scripted_pods import ScriptedPod
    from .._server import APIServer


@final
class World(DirectAPI):
    """The cluster of a story, as its user sees it.

    The methods :meth:`create`, :meth:`replace`, :meth:`patch`, :meth:`delete`, :meth:`get` and :meth:`list` are those
    of :class:`~trioformer.testing.APIServer`.  They take effect immediately.
    """

    __slots__ = ("_kinds", "_late_by", "_late_until", "_record", "_registry", "_server", "_storage")

    def __init__(self, server: APIServer, record: Record) -> None:
        self._storage, self._kinds, self._registry = server._storage, server._kinds, server._registry
        self._server, self._record = server, record
        self._late_by = self._late_until = 0.0

    @property
    def now(self) -> float:
        """The virtual time since the start of the story, in seconds."""
        return trio.current_time()

    @property
    def trace(self) -> tuple[str, ...]:
        """What has happened so far, one line for each request, write, step and fault."""
        return tuple(map(str, self._record.entries))

    def kill_pod(self, name: str, *, namespace: str = "default") -> None:
        """Let the containers of a pod end with an error, so that the pod fails.

        Raises:
            NotFoundError: The pod does not exist.
        """
        script = self._server.script_pod(name, namespace=namespace)
        for container in self.get(Pod, name, namespace=namespace).spec.containers:
            script.end(container=container.name, exit_code=137)

    def fail_a_pod(self) -> None:
        """Let the oldest running pod with a controller, which can replace it, fail."""
        owned = [pod for pod in self.list(Pod) if any(owner.controller for owner in pod.metadata.owner_references)]
        if running := [pod for pod in owned if pod.status.phase == "Running"]:
            first = min(running, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.name))
            with acting("the cluster"):
                self.kill_pod(first.name, namespace=first.namespace or "default")

    def delay_pods(self, seconds: float) -> None:
        """Let the pods that start in the next five minutes become ready late."""
        self._late_by, self._late_until = seconds, self.now + 300

    def run_pod(self, run: Callable[[Pod, ScriptedPod], None], pod: Pod, script: ScriptedPod) -> None:
        """Run a pod, now or late."""
        if self.now < self._late_until:
            self._record.disturb(self._late_by)
            script.after(self._late_by, lambda: run(pod, script))
        else:
            run(pod, script)
