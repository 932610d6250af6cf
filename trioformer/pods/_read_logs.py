"""Read the log of one container: :func:`read_logs` and :func:`follow_logs`."""

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
    """Return the current log of a container (``kubectl logs``).

    The node keeps only the newest part of a log, which is 10 MiB by default.
    Bytes that are not UTF-8 are replaced with U+FFFD.

    Args:
        pods: The API of pods.
        name: The pod, as a name, an :class:`ObjectRef` (such as a controller's request) or an object.
        namespace: The namespace of the pod.  The default, None, uses the namespace in ``name``, or otherwise the
            namespace of the API.
        container: The name of the container or init container. The default, None, selects the only container, or the
            container named by the annotation ``kubectl.kubernetes.io/default-container``.
        previous: Whether to read the log of the previous instance of the container.
        since: The time of the oldest line to return, as the number of seconds ago, a ``timedelta``, a ``datetime``
            with a time zone, or an RFC 3339 string.  The API server rounds the time down to a second. The default,
            None, does not limit the age of lines.
        tail_lines: The number of lines to return from the end of the log. The default, None, returns all lines.
        timestamps: Whether each line starts with its timestamp.
        limit_bytes: The maximum number of bytes to return. The default, None, sets no limit.

    Raises:
        NotFoundError: The pod does not exist.
        BadRequestError: The container does not exist or has not started yet, the pod has several containers and no
            default container, the pod is not assigned to a node yet, or there is no previous instance.
        InternalServerError: The API server cannot connect to the node.
        LimitExceededError: The log is larger than ``Limits.log_bytes``.  Pass ``tail_lines`` or ``limit_bytes``.
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

    Yields an iterator of lines with the fields ``data``, ``text`` and ``time``::

        async with follow_logs(pods, "web-0", tail_lines=10) as lines:
            async for line in lines:
                print(line.timestamp, line)

    To get several lines at once, call ``await lines.receive_batch()``, which waits for lines and returns all received
    lines.  At the end of the log, the list is empty.
    If a read is cancelled, no line is lost.

    The first read sends the request for the log.  A node does not respond until the log has a first line.
    If the response ends or the connection breaks, the log is requested again from the last line.  The requests are
    repeated until the container has ended according to the pod's status, or the pod is deleted.
    Each line is returned exactly once, unless the node removes the line before it is sent.  After a repeated request,
    the lines are delayed by one second, until the pod's status confirms that they are from the same container instance.
    To follow restarted containers or several pods, use :func:`follow_logs_of`.

    Args:
        pods: The API of pods.
        name: The pod; see :func:`read_logs`.
        namespace: The namespace of the pod; see :func:`read_logs`.
        container: The name of the container; see :func:`read_logs`.
        since: The time of the oldest line to return; see :func:`read_logs`.
        tail_lines: The number of existing lines to return first. The default, None, returns all existing lines, and 0
            returns only lines that are written after the first read.
        max_line_bytes: The maximum size of a line including its timestamp. A longer line is returned in pieces.
        on_retry: A function that is called with every failure before a retry. If the rest of the log is lost because
            the container was restarted more than once, the function is called with a :class:`NotFoundError`.
            By default, these errors are logged.

    Raises:
        NotFoundError: The pod does not exist, or ``name`` is the object of a deleted pod whose name now belongs to
            another pod.  Errors from the log request itself are raised by the first read.
        BadRequestError: The pod has several containers and no default container.
        ValueError: An argument is out of range.

    Ownership:
        No task is started, so exceptions in the block are not wrapped in groups.  The end of the block closes the
        connection.
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
    """Follow the log of one container instance, by default the current instance."""
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
