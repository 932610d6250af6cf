"""The log of one container: :func:`read_logs` and :func:`follow_logs`."""

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
    """Read the log of a container, as far as it is written (``kubectl logs``).

    The node keeps the newest part of a log, 10 MiB unless it is configured otherwise.
    Bytes that are not UTF-8 become U+FFFD.

    Args:
        pods: The API of pods.
        name: The name of the pod; an :class:`ObjectRef`, such as a controller's request; or the pod itself.
        namespace: The namespace of the pod; None for that of ``name``, or of this API.
        container: The container, also an init container; None for the only one, or for the one that the annotation
            ``kubectl.kubernetes.io/default-container`` names.
        previous: The log of the instance of the container that ran before this one.
        since: Only newer lines: seconds ago, a ``timedelta``, a ``datetime`` with a time zone, or RFC 3339 text.
            The API server rounds a time down to a second.
        tail_lines: Only so many lines from the end.
        timestamps: Whether each line begins with the time at which it was written.
        limit_bytes: End the log after so many bytes.

    Raises:
        NotFoundError: There is no pod of this name.
        BadRequestError: There is no such container, or there are several and none is named; the container has not
            started yet, or the pod has no node yet; or there is no ``previous`` instance.
        InternalServerError: The API server cannot reach the node.
        LimitExceededError: The log is longer than ``Limits.log_bytes``; pass ``tail_lines`` or ``limit_bytes``.
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
    """Follow the log of a container line by line, until the container has ended (``kubectl logs --follow``).

    Yields a :class:`LogLines`::

        async with follow_logs(pods, "web-0", tail_lines=10) as lines:
            async for line in lines:
                print(line.timestamp, line)

    The first read requests the log; a node responds to it with the first line, however long that takes.
    When the connection breaks, or the server ends it, the log is requested again from the last line, until the
    status of the pod says that the container has ended, or the pod is gone.
    Each line is returned once, unless the node has removed it before it was sent; after a request was repeated,
    lines are held back for a second, until it is known that they are those of the same instance.
    To follow the instances of a container that is started again, or several pods, use
    :func:`follow_logs_of`.

    Args:
        pods: The API of pods.
        name: As for :func:`read_logs`.
        namespace: As for :func:`read_logs`.
        container: As for :func:`read_logs`.
        since: As for :func:`read_logs`.
        tail_lines: Begin with so many lines from the end; None for all, 0 for those after the first read has begun.
        max_line_bytes: The largest number of bytes of a line, with its time; a longer line is returned in pieces.
        on_retry: Called with every failure that is retried, and with a :class:`NotFoundError` if the rest of the
            log is lost, because the container was started again more than once; None logs them.

    Raises:
        NotFoundError: There is no pod of this name; or ``name`` is a deleted pod, and another one has its name.
            The errors of the log itself are raised by the first read.
        BadRequestError: The pod has several containers, and none is named.
        ValueError: An argument is out of range.

    Ownership:
        No task is started: everything happens in the task that reads, and exceptions of the block are not wrapped.
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
