"""Logs of one container: :func:`read_logs` and :func:`follow_logs`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from .._retry import WatchErrorHandler
from .._util import opened_by
from ..client import Api, ObjectRef
from ..client._internal import located, without_retries
from ..models import KubernetesObject
from ..models.core_v1 import Pod
from ._log_requests import LogTime, log_params, open_log, read_log
from ._logs import LogLines, open_log_lines


async def read_logs(
    pods: Api[Pod],
    name: str | ObjectRef | Pod,
    *,
    namespace: str | None = None,
    container: str | None = None,
    previous: bool = False,
    since: LogTime | None = None,
    tail_lines: int | None = None,
    timestamps: bool = False,
    limit_bytes: int | None = None,
) -> str:
    """Read the current log of a container (``kubectl logs``).

    The node keeps the newest part of a log, 10 MiB by default.
    Bytes that are not UTF-8 become U+FFFD.

    Args:
        pods: The API of pods.
        name: The name of the pod; an :class:`ObjectRef`, such as a controller's request; or the pod itself.
        namespace: The namespace of the pod; by default the one of ``name``, or of this API.
        container: The container or init container; by default the only one, or the one that the annotation
            ``kubectl.kubernetes.io/default-container`` names.
        previous: Whether to read the log of the previous instance of the container.
        since: Return only newer lines: seconds ago, a ``timedelta``, a ``datetime`` with a time zone, or RFC 3339 text.
            The API server rounds a time down to a second.
        tail_lines: The number of lines from the end.
        timestamps: Whether each line starts with its timestamp.
        limit_bytes: The maximum size of the log in bytes.

    Raises:
        NotFoundError: The pod does not exist.
        BadRequestError: The container does not exist, or the pod has several and none is named; the container has not
            started yet; the pod is not assigned to a node yet; or there is no previous instance.
        InternalServerError: The API server cannot reach the node.
        LimitExceededError: The log exceeds ``Limits.log_bytes``; pass ``tail_lines`` or ``limit_bytes``.
        ValueError: An argument is out of range.
    """
    pod = located(pods, "read_logs", name, namespace)
    params = log_params(
        container=container,
        since=since,
        tail_lines=tail_lines,
        limit_bytes=limit_bytes,
        previous=previous,
        timestamps=timestamps,
    )
    return await read_log(
        pod.transport,
        pod.path("log"),
        pod.operation("get", "log"),
        params,
        partial(pods.get, pod.name, namespace=pod.namespace),
    )


@opened_by("log", "async with follow_logs(pods, name) as lines:")
async def follow_logs(
    pods: Api[Pod],
    name: str | ObjectRef | Pod,
    *,
    namespace: str | None = None,
    container: str | None = None,
    since: LogTime | None = None,
    tail_lines: int | None = None,
    max_line_bytes: int = 1024 * 1024,
    on_retry: WatchErrorHandler | None = None,
) -> AsyncGenerator[LogLines, None]:
    """Follow the log of a container until the container ends (``kubectl logs --follow``).

    Yields an iterator of :class:`LogLine`::

        async with follow_logs(pods, "web-0", tail_lines=10) as lines:
            async for line in lines:
                print(line.timestamp, line)

    ``await lines.receive_batch()`` waits for lines and returns all that have arrived; the list is empty
    at the end of the log.
    A cancelled read loses no line.

    The first read requests the log.  A node responds only when there is a first line.
    When the response ends or the connection breaks, the log is requested again from the last line, until the status of
    the pod says that the container has ended, or the pod is deleted.
    Each line is returned once, unless the node removed it before it was sent.  After a repeated request, lines are held
    back for a second, until the status confirms that they belong to the same instance.
    To follow restarted containers or several pods, use :func:`follow_logs_of`.

    Args:
        pods: The API of pods.
        name: As for :func:`read_logs`.
        namespace: As for :func:`read_logs`.
        container: As for :func:`read_logs`.
        since: As for :func:`read_logs`.
        tail_lines: The number of existing lines to begin with; None for all, 0 for only the lines after the first read.
        max_line_bytes: The maximum size of a line with its timestamp; a longer line is returned in pieces.
        on_retry: Called with every failure that is retried, and with a :class:`NotFoundError` if the rest of the log is
            lost because the container was restarted more than once.  By default they are logged.

    Raises:
        NotFoundError: The pod does not exist; or ``name`` is a deleted pod, and another pod has its name.
            Errors of the log itself are raised by the first read.
        BadRequestError: The pod has several containers, and none is named.
        ValueError: An argument is out of range.

    Ownership:
        No task is started, so exceptions of the block are not wrapped.
        The end of the block closes the connection.
    """
    async with follow_instance(
        pods,
        name,
        namespace=namespace,
        container=container,
        since=since,
        tail_lines=tail_lines,
        max_line_bytes=max_line_bytes,
        on_retry=on_retry,
    ) as lines:
        yield lines


@asynccontextmanager
async def follow_instance(
    pods: Api[Pod],
    name: str | ObjectRef | Pod,
    *,
    namespace: str | None = None,
    container: str | None = None,
    since: LogTime | None = None,
    tail_lines: int | None = None,
    restart_count: int | None = None,
    max_line_bytes: int = 1024 * 1024,
    on_retry: WatchErrorHandler | None = None,
) -> AsyncGenerator[LogLines, None]:
    """Follow the log of an instance of a container, by default the current one."""
    uid = name.uid if isinstance(name, KubernetesObject) else ""
    pod = located(pods, "follow_logs", name, namespace)
    where = pod.operation("follow", "log")
    async with open_log_lines(
        where=where,
        open_log=partial(open_log, pod.transport, pod.path("log"), where),
        get=partial(pods.get, pod.name, namespace=pod.namespace),
        get_once=partial(without_retries(pods).get, pod.name, namespace=pod.namespace),
        wait_to_retry=pod.transport.health.wait_to_retry,
        params=log_params(container=container, since=since, tail_lines=tail_lines),
        name=pod.name,
        namespace=pod.namespace or "",
        uid=uid,
        restart_count=restart_count,
        max_line_bytes=max_line_bytes,
        on_retry=on_retry,
    ) as lines:
        yield lines
