"""Scripted pods: a test controls the logs, commands, restarts and exits of their containers.

A :class:`ScriptedPod` has no state of its own.  Its methods only change the stored status and the logs of its pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, final

import attrs

from ..models import from_dict
from ..models.core_v1 import Pod
from ._convert import as_status_errors
from ._serving._pod_scripts import STATUSES, PodScripts, containers_of
from ._serving._scripted_connections import ConnectionHandler
from ._serving._scripted_processes import ProcessHandler, ProcessScripts, ScriptedCommand
from ._serving._watching import WatchEnd
from ._storage._clock import timestamp
from ._storage._storage import JSONObject

_HOST: Final = "192.0.2.10"
"""The address of each node."""


@final
@attrs.define(eq=False)
class ScriptedPod:
    """A pod of the embedded server whose containers a test controls, returned by :meth:`APIServer.script_pod`.

    All methods take effect immediately.
    The argument ``container`` may be omitted if the pod has only one container.
    The methods raise :class:`~trioformer.errors.NotFoundError` if the pod no longer exists, and ``ValueError`` if the
    pod does not have the container.
    """

    name: str
    """The name of the pod."""
    namespace: str
    """The namespace of the pod."""
    _scripts: PodScripts = attrs.field(repr=False)

    def write_log(self, *lines: str | bytes, container: str | None = None, time: datetime | None = None) -> None:
        """Add lines to the log of a container.

        Args:
            lines: The lines, without newline characters.
            container: The name of the container.
            time: The timestamp of the lines.  The default, None, is the current time.
        """
        data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        self.write(data, container=container, time=time)

    def write(self, data: str | bytes, *, container: str | None = None, time: datetime | None = None) -> None:
        """Write to the standard output of a container.

        A line appears in the log when its newline character is written.

        Args:
            data: The output, with newline characters.
            container: The name of the container.
            time: The timestamp of the output.  The default, None, is the current time.
        """
        pod, container = self._find(container)
        encoded = data.encode() if isinstance(data, str) else data
        when = (self._scripts.clock() if time is None else time).astimezone(UTC)
        self._scripts.log_of(pod, container).write(encoded, when)
        self._scripts.wake()

    def rotate_log(self, *, container: str | None = None) -> None:
        """Start a new log file for a container.  The old content can no longer be read."""
        pod, container = self._find(container)
        self._scripts.log_of(pod, container).rotate()

    def end(self, *, container: str | None = None, exit_code: int = 0) -> None:
        """Terminate a container.

        When the last container has terminated, the phase of the pod is Succeeded or Failed.
        """
        pod, container = self._find(container)
        self._scripts.log_of(pod, container).end()
        state = {"terminated": self._terminated(exit_code)}
        self._set_status(container, lambda status: {**status, "state": state, "ready": False, "started": False})

    def restart(self, *, container: str | None = None, exit_code: int = 1) -> None:
        """Terminate a container and start it again with an empty log.  The old log can be read with ``previous``."""
        pod, container = self._find(container)
        self._scripts.log_of(pod, container).end()

        def restarted(status: JSONObject) -> JSONObject:
            last = status["state"] if "terminated" in status["state"] else {"terminated": self._terminated(exit_code)}
            count = status.get("restartCount", 0) + 1
            return {**status, "lastState": last, "state": self._running(), "restartCount": count, "ready": True}

        self._set_status(container, restarted)

    def script_command(
        self,
        command: Sequence[str],
        *,
        stdout: str | bytes = b"",
        stderr: str | bytes = b"",
        exit_code: int = 0,
        container: str | None = None,
    ) -> None:
        """Set the output and the exit code of a command.

        To the container, a command that has not been scripted does not exist, unless ``on_exec`` is set.

        Args:
            command: The program and all of its arguments.
            stdout: The standard output of the command.
            stderr: The standard error of the command.
            exit_code: The exit code of the command.
            container: The name of the container.  The default, None, means all containers of the pod.

        Raises:
            TypeError: ``command`` is a string instead of a sequence of strings.
        """
        if isinstance(command, str):
            raise TypeError(f"a command must be a list of arguments, such as {command.split()!r}, not a str")
        output, errors = (each.encode() if isinstance(each, str) else each for each in (stdout, stderr))
        self._processes().commands[container or "", tuple(command)] = ScriptedCommand(output, errors, exit_code)

    def on_exec(self, handler: ProcessHandler, *, container: str | None = None) -> None:
        """Set a handler for the commands that clients execute.

        ::

            async def echo(process: ScriptedProcess) -> int:
                await process.stdout.send_all(" ".join(process.command[1:]).encode())
                return 0

            web.on_exec(echo)

        The handler runs in a task of the server.  It is cancelled when the client disconnects or when the container
        terminates.  In the latter case, the exit code is 137, as for a killed process.  Exceptions that the handler
        raises propagate from :meth:`APIServer.run`.

        Args:
            handler: An async function that takes a :class:`ScriptedProcess` and returns its exit code, or None for 0.
            container: The name of the container.  The default, None, means all containers of the pod.
        """
        self._processes().on_exec[container or ""] = handler

    def on_attach(self, handler: ProcessHandler, *, container: str | None = None) -> None:
        """Set a handler for clients that attach to a container.

        Without a handler, clients receive the log of the container until the container terminates.

        Args:
            handler: An async function as for :meth:`on_exec`.  The exit code is ignored.
            container: The name of the container.  The default, None, means all containers of the pod.
        """
        self._processes().on_attach[container or ""] = handler

    def on_connect(self, port: int, handler: ConnectionHandler) -> None:
        """Set a handler for the connections that clients open to a port with port-forward.

        ::

            async def echo(connection: ScriptedConnection) -> None:
                async for data in connection:
                    await connection.send_all(data)

            web.on_connect(8080, echo)

        The handler runs in a task of the server for each connection.  It is cancelled when the client disconnects, the
        pod is deleted, or its containers have terminated.  When the handler returns, the connection is closed.
        Exceptions that the handler raises propagate from :meth:`APIServer.run`, except for errors from the connection.
        Connections to a port without a handler are refused.

        Args:
            port: The port.
            handler: An async function that takes a :class:`ScriptedConnection`.
        """
        self._scripts.connections[self._pod()["metadata"]["uid"]][port] = handler

    def _pod(self) -> JSONObject:
        with as_status_errors(f"script pod {self.name}"):
            return self._scripts.pod(self.namespace, self.name)

    def _processes(self) -> ProcessScripts:
        return self._scripts.processes[self._pod()["metadata"]["uid"]]

    def disconnect(self, how: WatchEnd = "reset") -> int:
        """End the requests that follow logs of this pod, as when the API server loses the connection to the node.

        Args:
            how: The way in which the requests end.  ``"clean"`` completes the responses, as kube-apiserver does.
                ``"reset"`` breaks the connections to the clients.  ``"stall"`` keeps the connections open but sends
                nothing more.

        Returns:
            The number of requests that were ended.
        """
        return self._scripts.followers.end(how, resource=f"{self.namespace}/{self.name}", status=None)

    def after(self, seconds: float, change: Callable[[], object]) -> None:
        """Call a function after a delay, unless the pod is deleted earlier.

        ::

            pod.after(5, pod.start)
            pod.after(60, lambda: pod.end(exit_code=1))

        Delays follow the clock of the server, and functions are called only while :meth:`APIServer.run` is running.

        Args:
            seconds: The delay.
            change: A function without arguments, such as a method of this object.

        Raises:
            RuntimeError: The server has no controllers.
        """
        if self._scripts.later is None:
            raise RuntimeError(f"pod {self.name} cannot change after a delay: pass controllers=True to APIServer")
        pod = self._pod()

        def call() -> None:
            if self._scripts.current(pod) is not None:
                change()

        self._scripts.later(seconds, call)

    def start(self, *, ip: str | None = None) -> None:
        """Start all containers that have no status.  A pending pod becomes ready.

        Args:
            ip: The IP address of a pod without an address.  The default, None, means an address in 10.244.0.0/16 that
                no pod got recently.
        """
        now = timestamp(self._scripts.clock)
        self._pod()

        def started(pod: JSONObject) -> JSONObject:
            spec, status = pod["spec"], dict(pod.get("status") or {})
            for field in ("initContainers", "containers"):
                if spec.get(field) and not status.get(STATUSES[field]):
                    is_init = field == "initContainers"
                    state = {"terminated": self._terminated(0)} if is_init else self._running()
                    made = {"state": state, "lastState": {}, "restartCount": 0, "ready": True, "started": not is_init}
                    status[STATUSES[field]] = [
                        {"name": one["name"], "image": one.get("image", ""), **made} for one in spec[field]
                    ]
            if status.get("phase") in (None, "Pending"):
                kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
                status["conditions"] = [{"type": each, "status": "True", "lastTransitionTime": now} for each in kinds]
                status |= {"phase": "Running", "startTime": now}
            if not status.get("podIP"):
                number = self._scripts.revision  # each write has another
                status["podIP"] = ip or f"10.244.{number // 250 % 250}.{number % 250 + 1}"
                status["podIPs"] = [{"ip": status["podIP"]}]
            status |= {"hostIP": _HOST, "hostIPs": [{"ip": _HOST}]}
            return {**pod, "status": status}

        self._scripts.update(self.namespace, self.name, started)

    def _running(self) -> JSONObject:
        return {"running": {"startedAt": timestamp(self._scripts.clock)}}

    def _terminated(self, exit_code: int) -> JSONObject:
        reason = "Error" if exit_code else "Completed"
        return {"exitCode": exit_code, "reason": reason, "finishedAt": timestamp(self._scripts.clock)}

    def _find(self, container: str | None) -> tuple[JSONObject, str]:
        """Return the pod and the name of the selected container."""
        pod = self._pod()
        names = [name for found in containers_of(pod).values() for name in found]
        if container is None and len(names) == 1:
            return pod, names[0]
        if container not in names:
            problem = f"has no container {container}" if container else "has several containers; pass container="
            raise ValueError(f"pod {self.name} {problem}: {', '.join(names)}")
        assert container is not None
        return pod, container

    def _set_status(self, container: str, change: Callable[[JSONObject], JSONObject]) -> None:
        def changed(pod: JSONObject) -> JSONObject:
            status: dict[str, Any] = dict(pod.get("status") or {})
            for field in STATUSES.values():
                if field in status:
                    status[field] = [change(one) if one["name"] == container else one for one in status[field]]
            ended = [one["state"].get("terminated") for one in status.get("containerStatuses") or ()]
            if ended and all(ended):
                status["phase"] = "Failed" if any(one["exitCode"] for one in ended) else "Succeeded"
            is_ready = str(all(one.get("ready") for one in status.get("containerStatuses") or ()))
            status["conditions"] = [
                {**one, "status": is_ready, "lastTransitionTime": timestamp(self._scripts.clock)}
                if one["type"] in ("Ready", "ContainersReady") and one["status"] != is_ready
                else one
                for one in status.get("conditions") or ()
            ]
            return {**pod, "status": status}

        self._scripts.update(self.namespace, self.name, changed)


PodRunner: TypeAlias = Callable[[Pod, ScriptedPod], None]
"""Runs a pod, which is given as an object and as a script."""


def run_pod(pod: Pod, script: ScriptedPod) -> None:
    """Start a pod, and end the pod of a Job successfully."""
    script.start()
    if any(owner.kind == "Job" and owner.controller for owner in pod.metadata.owner_references):
        for container in pod.spec.containers:
            script.end(container=container.name)


def start_run(scripts: PodScripts, run: PodRunner, pod: JSONObject) -> None:
    """Run a stored pod."""
    run(from_dict(Pod, pod), ScriptedPod(pod["metadata"]["name"], pod["metadata"]["namespace"], scripts))
