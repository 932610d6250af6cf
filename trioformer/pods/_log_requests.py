"""Requests for logs: query parameters, the default container, and the state of container instances."""

from __future__ import annotations

import enum
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs

from .._suggestions import describe
from ..client._internal import JSON, check, streamed_status_error
from ..errors import BadRequestError, NotFoundError, TrioformerError
from ..errors._internal import StatusDetails
from ..transport._internal import ByteStream, Transport
from ._log_lines import MIN_LINE

if TYPE_CHECKING:
    from ..models.core_v1 import ContainerStatus, Pod

LogTime: TypeAlias = float | timedelta | datetime | str
"""The time of the first line, as the number of seconds ago, a ``timedelta``, a ``datetime``, or an RFC 3339 string."""

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""The annotation with the name of a pod's default container."""

NO_CONTENT: Final = 204
"""The HTTP status for the log of a pod that is not assigned to a node."""
_ANY: Final = f"{JSON}, */*"


def since_params(since: LogTime | None) -> dict[str, str]:
    """Return the query parameters for the time of the first line.

    Raises:
        TypeError: ``since`` has any other type.
        ValueError: ``since`` is in the future, is a ``datetime`` without a time zone, or is not a valid time.
    """
    if since is None:
        return {}
    if isinstance(since, str):
        hint = "since must be seconds, a timedelta, a datetime, or a string such as 2026-01-31T12:00:00Z"
        try:
            since = datetime.fromisoformat(since)
        except ValueError:
            raise ValueError(f"{hint}, not {since!r}") from None
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError("since must have a time zone: write datetime(..., tzinfo=UTC)")
        text = since.astimezone(UTC).replace(tzinfo=None).isoformat()
        return {"sinceTime": f"{text}Z"}
    seconds = since.total_seconds() if isinstance(since, timedelta) else since
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"since must be seconds, a timedelta, a datetime or a string, not {describe(since)}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"since must be a positive number of seconds ago, not {seconds:g}")
    return {"sinceSeconds": str(math.ceil(seconds))}


def log_params(
    *,
    container: str | None,
    since: LogTime | None,
    tail_lines: int | None,
    limit_bytes: int | None = None,
    previous: bool = False,
    timestamps: bool = False,
) -> dict[str, str]:
    """Return the query parameters for a log request.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.
    """
    params = since_params(since)
    for name, key, value, least in (
        ("tail_lines", "tailLines", tail_lines, 0),
        ("limit_bytes", "limitBytes", limit_bytes, 1),
    ):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {describe(value)}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
        params[key] = str(value)
    check_container(container)
    if container is not None:
        params["container"] = container
    for key, flag in (("previous", previous), ("timestamps", timestamps)):
        if flag:
            params[key] = "true"
    return params


def check_container(container: str | None) -> None:
    """Raise TypeError unless the argument is a string or None."""
    if not isinstance(container, str | None):
        raise TypeError(f"container must be the name of a container, not {describe(container)}")


def check_max_line_bytes(max_line_bytes: int) -> None:
    """Raise ValueError unless the argument is an int of at least 256."""
    if type(max_line_bytes) is not int or max_line_bytes < MIN_LINE:
        raise ValueError(f"max_line_bytes must be an int of at least {MIN_LINE}, not {max_line_bytes!r}")


def default_container(pod: Pod) -> str | None:
    """Return the pod's only container or the container that the annotation names, or None if there is no default."""
    spec = pod.spec
    named = pod.metadata.annotations.get(DEFAULT_CONTAINER)
    if named and any(each.name == named for each in (*spec.containers, *spec.init_containers)):
        return named
    return spec.containers[0].name if len(spec.containers) == 1 else None


def wants_container(error: TrioformerError) -> bool:
    """Return whether a request failed because the pod has several containers and the request did not name one."""
    return isinstance(error, BadRequestError) and "a container name must be specified" in error.status_message


def several_containers(where: str, pod: Pod) -> BadRequestError:
    """Return the error for a pod with several containers and no default, with the same text as in kube-apiserver."""
    names = " ".join(each.name for each in pod.spec.containers)
    problem = f"a container name must be specified for pod {pod.name}, choose one of: [{names}]"
    return BadRequestError(problem, code=400, reason="BadRequest", where=where)


def not_scheduled(where: str) -> BadRequestError:
    """Return the error for a pod that is not assigned to a node; the server itself sends only an empty response."""
    problem = "the pod is not assigned to a node yet, so it has no log"
    return BadRequestError(problem, code=400, reason="BadRequest", where=where)


async def read_log(
    transport: Transport, path: str, where: str, params: dict[str, str], get: Callable[[], Awaitable[Pod]]
) -> str:
    """Read a complete log; see :func:`read_logs`."""
    while True:
        response = await transport.request("GET", path, params=params, accept=_ANY, limit="log_bytes", where=where)
        try:
            check(response, method="GET", where=where)
        except BadRequestError as error:
            if not wants_container(error) or "container" in params or (found := default_container(await get())) is None:
                raise
            params = params | {"container": found}
            continue
        if response.code == NO_CONTENT:
            raise not_scheduled(where)
        return response.body.decode(errors="replace")


@asynccontextmanager
async def open_log(
    transport: Transport, path: str, where: str, params: Mapping[str, str]
) -> AsyncGenerator[ByteStream, None]:
    """Send one log request, and yield the body of a successful response."""
    async with transport.stream(path, params=params, accept=_ANY, for_watch=True, resumable=True, where=where) as body:
        if body.code == NO_CONTENT:
            raise not_scheduled(where)
        if not 200 <= body.code <= 206:
            raise await streamed_status_error(body, method="GET", where=where)
        yield body


def replaced(where: str, name: str) -> NotFoundError:
    """Return the error for a deleted pod whose name now belongs to another pod."""
    problem = "the pod was deleted, and a new pod has the same name"
    details = StatusDetails(name=name, kind="pods")
    return NotFoundError(problem, code=404, reason="NotFound", details=details, where=where)


def lost(where: str, name: str) -> NotFoundError:
    """Return the error for an instance whose log the node has already removed."""
    problem = "the rest of the log is lost: the container was restarted more than once"
    details = StatusDetails(name=name, kind="pods")
    return NotFoundError(problem, code=404, reason="NotFound", details=details, where=where)


class Instance(enum.Enum):
    """The state of the container instance whose log is followed."""

    RUNNING = "it runs or is about to start"
    ENDED = "it has ended, and the container may be restarted"
    FINISHED = "it has ended, and so has the pod"
    REPLACED = "it has ended, and the container was restarted"
    LOST = "it has ended, and the container was restarted more than once: a node keeps one previous log"
    GONE = "the pod was deleted"
    ANOTHER = "the pod was deleted, and another pod has its name"


@final
@attrs.frozen
class LogTarget:
    """A container instance, identified by its number of restarts."""

    uid: str
    container: str
    restarts: int

    @classmethod
    def of(cls, pod: Pod, container: str) -> LogTarget:
        """Return the current instance in a pod's status: the instance that is running or will start next."""
        status = status_of(pod, container)
        return cls(pod.uid, container, 0 if status is None else status.restart_count)

    def find_in(self, pod: Pod) -> Instance:
        """Return the state of the instance in the status of a pod."""
        if pod.uid != self.uid:
            return Instance.ANOTHER
        status = status_of(pod, self.container)
        has_finished = pod.status.phase in ("Succeeded", "Failed")
        if status is None:
            return Instance.FINISHED if has_finished else Instance.RUNNING
        if status.restart_count > self.restarts:
            return Instance.REPLACED if status.restart_count == self.restarts + 1 else Instance.LOST
        # The restart of a waiting container is not counted yet.
        if status.state.terminated or (status.state.waiting and status.last_state.terminated):
            return Instance.FINISHED if has_finished else Instance.ENDED
        return Instance.RUNNING


def status_of(pod: Pod, container: str) -> ContainerStatus | None:
    """Return the status of a container of any type (regular, init or ephemeral).

    Return None if the kubelet has not written the status yet.
    """
    status = pod.status
    found = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
    return next((each for each in found if each.name == container), None)
