"""Connect to ports of pods: :func:`forward_port` and :func:`connect_port`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

import trio

from .._util import opened_by
from ..client import Api, ObjectRef
from ..client._internal import located, pods_beside
from ..models import KubernetesObject
from ._port_forward import ConnectionErrorHandler, PortForward, open_port_forward
from ._port_targets import FORWARDABLE, PortSource, check_port

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

    Yields an object with ``port`` and ``url``.  Any program on this machine can connect to the local port::

        async with forward_port(services, "web", 80) as forward:
            await open_tcp_stream("127.0.0.1", forward.port)

    The object can be a pod, Service, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or ReplicationController.
    The function chooses one running pod of the object, preferably a ready pod.  When this pod is gone, another pod is
    chosen.
    For a Service, ``port`` is a port of the Service, as in kubectl.  For all other kinds, it is a port of the pod.

    The function requires permission to ``get`` pods, and to ``create`` and ``get`` ``pods/portforward``.  For all
    kinds except pods, the function also requires permission to ``get`` the object and to ``list`` pods.

    Args:
        api: The API of a kind that has pods.
        name: The object, as a name, an :class:`ObjectRef` (such as a controller's request) or an object.
        port: The number or name of the port.
        namespace: The namespace of the object.  The default, None, uses the namespace in ``name``, or otherwise the
            namespace of the API.
        local_port: The local port. The default, 0, selects a free port, and None uses the number of ``port``.
        address: One or several IP addresses to listen on. ``localhost`` means 127.0.0.1 and ::1, if they are
            available.  Every program that can connect to one of these addresses can connect to the pod.
        max_connections: The maximum number of connections that are forwarded at the same time. Further connections
            wait.
        on_error: A function that is called with the error of each connection that fails. By default, the error is
            logged as a warning.

    Raises:
        NotFoundError: The object does not exist.
        PortForwardError: No pod is running, or the port does not exist.
        ListenError: The local port is not available.
        TypeError: Ports of this kind cannot be forwarded.

    Error handling:
        An error ends only one connection, which the program sees as a connection reset.  An exception from
        ``on_error`` ends the block and is raised in an ``ExceptionGroup``.

    Cancellation:
        Closes the port and all connections, as does the end of the block.

    Ownership:
        The block runs a task for each connection.  Exceptions in the block are not wrapped in groups.
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
    r"""Open one connection to a port of a pod without a local port.

    Yields a ``trio.abc.HalfCloseableStream``::

        async with connect_port(pods, "redis-0", 6379) as stream:
            await stream.send_all(b"PING\r\n")
            assert await stream.receive_some() == b"+PONG\r\n"

    Args:
        api: The API of a kind that has pods.
        name: The object; see :func:`forward_port`.
        port: The number or name of the port; see :func:`forward_port`.
        namespace: The namespace of the object; see :func:`forward_port`.

    Raises:
        NotFoundError: The object does not exist.
        BadRequestError: The pod is not assigned to a node yet, or has ended.
        PortForwardError: No pod is running, the port does not exist, or the node refused the connection.  If nothing
            listens on the port, reading from the stream raises ``trio.BrokenResourceError``, whose cause is this error.
        ForbiddenError: The permission is missing.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.  Port forwarding requires
            Kubernetes 1.31 or later, and its feature gate ``PortForwardWebsockets`` must be enabled.
        ConnectionFailedError: No response arrived, or the node did not accept the connection within 30 seconds.

    Cancellation:
        Closes the connection, as does the end of the block.

    Ownership:
        No task is started, so exceptions in the block are not wrapped in groups.
    """
    stream = await _port_source("connect_port", api, name, port, namespace).connect()
    try:
        yield stream
    finally:
        await stream.aclose()


def _port_source(
    caller: str, api: Api[T], name: str | ObjectRef | T, port: int | str, namespace: str | None
) -> PortSource:
    found = located(api, caller, name, namespace, "pods, services and workloads", FORWARDABLE)
    number = check_port(port)
    where = found.operation(f"forward port {number} of")
    found.path("")  # checks the name and the namespace
    return PortSource(api, pods_beside(api, found.namespace), found.name, number, where)
