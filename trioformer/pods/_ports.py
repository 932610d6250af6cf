"""Ports of pods: :func:`forward_port` and :func:`connect_port`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

import trio

from .._util import opened_by
from ..client import Api, ObjectRef
from ..client._internal import located, pods_beside
from ..models import KubernetesObject
from ._port_forward import ConnectionErrorHandler, PortForward, open_port_forward
from ._port_targets import PortSource, check_port, check_resource

T = TypeVar("T", bound=KubernetesObject)


@opened_by("port", "async with forward_port(api, name, port) as forward:")
async def forward_port(
    api: Api[T],
    name: str | ObjectRef | T,
    port: int | str,
    *,
    namespace: str | None = None,
    local_port: int | None = 0,
    address: str | Sequence[str] = "127.0.0.1",
    max_connections: int = 1_000,
    on_error: ConnectionErrorHandler | None = None,
) -> AsyncGenerator[PortForward, None]:
    """Forward a local port to a port of a pod (``kubectl port-forward``).

    Yields a :class:`PortForward`, for any program on this machine::

        async with forward_port(services, "web", 80) as forward:
            await open_tcp_stream("127.0.0.1", forward.port)

    The API is that of pods, Services, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and
    ReplicationControllers.  Of their pods, one that runs is chosen, a ready one first, and another one when it is
    gone.  The port of a Service is that of the Service, as for kubectl, and that of others the one of the pod.

    It needs the permission to ``create`` and to ``get`` ``pods/portforward`` and to ``get`` pods; for other kinds
    also to ``get`` these, and to ``list`` pods.

    Args:
        api: The API of a kind that has pods.
        name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
        port: The port, or its name.
        namespace: The namespace of the object; None for that of ``name``, or of this API.
        local_port: The local port; 0 for any that is free, None for the same number as ``port`` has.
        address: The IP addresses to listen on, one or several; ``localhost`` is 127.0.0.1 and ::1, or one of them.
            Everybody who can connect to them can connect to the pod.
        max_connections: How many connections are forwarded at a time; others wait.
        on_error: Called with why a connection was not forwarded, or was broken off; None to log a warning.

    Raises:
        NotFoundError: There is no object of this name.
        PortForwardError: No pod runs, or there is no such port.
        ListenError: The local port cannot be listened on.
        TypeError: The kind has no ports.

    Error handling:
        What a connection fails with ends this connection only, so that the program sees a reset.
        When the pod closes a connection, it is closed; what a handler raises leaves the block in an
        ``ExceptionGroup``.

    Cancellation:
        Closes the port and all connections, as does the end of the block.

    Ownership:
        The block has a nursery with a task for each connection; what the block raises is not wrapped.
    """
    source = _port_source("forward_port", api, name, port, namespace)
    async with open_port_forward(
        source,
        local_port=local_port,
        address=address,
        max_connections=max_connections,
        on_error=on_error,
    ) as forward:
        yield forward


@opened_by("connection", "async with connect_port(api, name, port) as stream:")
async def connect_port(
    api: Api[T], name: str | ObjectRef | T, port: int | str, *, namespace: str | None = None
) -> AsyncGenerator[trio.abc.HalfCloseableStream, None]:
    r"""Open one connection to a port of a pod, as a stream of trio; nothing listens on this machine.

    Yields a ``trio.abc.HalfCloseableStream``::

        async with connect_port(pods, "redis-0", 6379) as stream:
            await stream.send_all(b"PING\r\n")
            assert await stream.receive_some() == b"+PONG\r\n"

    Args:
        api: The API of a kind that has pods.
        name: As for :func:`forward_port`.
        port: As for :func:`forward_port`.
        namespace: As for :func:`forward_port`.

    Raises:
        NotFoundError: There is no object of this name.
        BadRequestError: The pod has no node yet, or has ended.
        PortForwardError: No pod runs, there is no such port, or the node has refused.
            That nothing listens on the port is an error of the stream.
        ForbiddenError: The permission is missing.
        UnexpectedResponseError: The server, or a proxy before it, has no WebSockets; or it is older than
            Kubernetes 1.31, or its feature gate ``PortForwardWebsockets`` is off.
        ConnectionFailedError: No response arrived, or the node has not accepted the connection within 30 s.

    Cancellation:
        Closes the connection, as does the end of the block.

    Ownership:
        No task is started, so exceptions of the block are not wrapped.
    """
    stream = await _port_source("connect_port", api, name, port, namespace).connect()
    try:
        yield stream
    finally:
        await stream.aclose()


def _port_source(
    caller: str, api: Api[T], name: str | ObjectRef | T, port: int | str, namespace: str | None
) -> PortSource:
    check_resource(caller, str(api.resource))
    found = located(api, caller, name, namespace, resource=None)
    number = check_port(port)
    where = found.operation(f"forward port {number} of")
    found.path("")  # checks the name and the namespace
    return PortSource(api, pods_beside(api, found.namespace), found.name, number, where)
