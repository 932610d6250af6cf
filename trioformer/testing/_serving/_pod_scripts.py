"""The scripts and logs of containers.  Each instance of a container has its own log, numbered by ``restartCount``.

The state of a container is read from the stored status of its pod.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeAlias, final

import attrs

from .._storage._clock import Clock
from .._storage._kinds import ServedKind
from .._storage._registry import Registry
from .._storage._status import APIStatusError
from .._storage._storage import JSONObject
from .._storage._tracking import Writer
from ._scripted_connections import ConnectionHandler
from ._scripted_processes import ProcessScripts
from ._watching import Watches

PODS: Final = ("", "v1", "pods")
_KUBELET: Final = Writer("kubelet", writes_all=True)
STATUSES: Final = {
    "containers": "containerStatuses",
    "initContainers": "initContainerStatuses",
    "ephemeralContainers": "ephemeralContainerStatuses",
}
"""The field of the status that corresponds to each field of the spec with containers."""

LogKey: TypeAlias = tuple[str, str, int]
"""The uid of a pod, a container, and its number of restarts."""


@final
@attrs.frozen
class LogEntry:
    """A line of a log."""

    time: datetime
    data: bytes
    """The line with its newline character, unless the container has ended without one."""

    @property
    def stamp(self) -> bytes:
        """The time of the line, in the format that a kubelet writes."""
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()


@final
@attrs.define(eq=False)
class ContainerLog:
    """The log of one instance of a container."""

    entries: list[LogEntry] = attrs.field(factory=list)
    dropped: int = 0
    """The number of earlier entries, in log files that the node has removed."""
    _begin: bytes = b""
    """The beginning of a line that is not complete yet."""
    _begun_at: datetime | None = None

    def write(self, data: bytes, time: datetime) -> None:
        """Add output of the container.  As with containerd, only complete lines are added to the log."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self.entries.append(LogEntry(self._begun_at or time, self._begin + end + b"\n"))
            self._begin, self._begun_at = b"", None
        if rest:
            self._begin, self._begun_at = self._begin + rest, self._begun_at or time

    def end(self) -> None:
        """Add the last line to the log, even if it is incomplete."""
        if self._begun_at is not None:
            self.entries.append(LogEntry(self._begun_at, self._begin))
            self._begin, self._begun_at = b"", None

    def rotate(self) -> None:
        """Discard the current entries, as a log rotation does."""
        self.dropped += len(self.entries)
        self.entries.clear()


def containers_of(pod: JSONObject) -> dict[str, list[str]]:
    """Return the names of a pod's containers, grouped by the field of the spec, such as ``initContainers``."""
    spec = pod.get("spec") or {}
    return {field: [each["name"] for each in spec.get(field) or ()] for field in STATUSES}


def status_of(pod: JSONObject, container: str) -> JSONObject:
    """Return the stored status of a container, or an empty dict if the container has no status."""
    status = pod.get("status") or {}
    found = (each for field in STATUSES.values() for each in status.get(field) or ())
    return next((each for each in found if each.get("name") == container), {})


def is_running(pod: JSONObject, container: str) -> bool:
    """Return whether a container is running."""
    return bool((status_of(pod, container).get("state") or {}).get("running"))


@final
@attrs.define(eq=False)
class PodScripts:
    """The logs of all containers, and the open requests that follow these logs."""

    _registry: Registry
    followers: Watches
    logs: defaultdict[LogKey, ContainerLog] = attrs.field(init=False, factory=lambda: defaultdict(ContainerLog))
    processes: defaultdict[str, ProcessScripts] = attrs.field(init=False, factory=lambda: defaultdict(ProcessScripts))
    """The process handlers, by the uid of the pod."""
    connections: defaultdict[str, dict[int, ConnectionHandler]] = attrs.field(
        init=False, factory=lambda: defaultdict(dict)
    )
    """The connection handlers by port, by the uid of the pod."""

    later: Callable[[float, Callable[[], None]], None] | None = attrs.field(init=False, default=None)
    """Calls a function after a delay in seconds, or None if no controllers run."""

    @property
    def served(self) -> ServedKind:
        """The served kind Pod."""
        served = self._registry.kinds.find(*PODS)
        assert served is not None
        return served

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""
        return self._registry.clock

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self._registry.storage.revision

    def pod(self, namespace: str, name: str) -> JSONObject:
        """Return the stored pod.

        Raises:
            APIStatusError: The pod does not exist.
        """
        return self._registry.get(self.served, namespace, name).decoded()

    def current(self, pod: JSONObject) -> JSONObject | None:
        """Return the stored state of a pod, or None if the pod no longer exists."""
        try:
            found = self.pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        except APIStatusError:
            return None
        return found if found["metadata"]["uid"] == pod["metadata"]["uid"] else None

    def running(self, pod: JSONObject, container: str, log: ContainerLog) -> JSONObject | None:
        """Return the stored state of a pod if the instance of its container that has the log is running, or None."""
        found = self.current(pod)
        is_same = found is not None and self.log_of(found, container) is log
        return found if found is not None and is_same and is_running(found, container) else None

    def log_of(self, pod: JSONObject, container: str, *, restarts_ago: int = 0) -> ContainerLog:
        """Return the log of an instance of a container."""
        restarts = status_of(pod, container).get("restartCount", 0)
        return self.logs[pod["metadata"]["uid"], container, restarts - restarts_ago]

    def update(self, namespace: str, name: str, change: Callable[[JSONObject], JSONObject]) -> None:
        """Change a stored pod, including its status."""
        self._registry.update(self.served, namespace, name, change, part="whole", writer=_KUBELET)

    def wake(self) -> None:
        """Wake the requests that follow logs, so that they read new entries."""
        self._registry.storage.wake("pods")

    async def wait(self) -> None:
        """Wait until any pod changes or :meth:`wake` is called."""
        await self._registry.storage.wait("pods")
