"""The API of one kind: read, write, list and watch objects."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar, final

from .._suggestions import describe
from .._util import opened_by
from ..models import KubernetesObject
from ..models._internal import scan_whole
from ._api_changes import ApiChanges
from ._api_subresources import ApiSubresources
from ._object_ref import ObjectRef

if TYPE_CHECKING:
    import ssl

    import httpx

    from ..models.core_v1 import Pod
    from ._port_forward import AcceptHandler, ConnectionErrorHandler, PortForward
    from ._port_streams import PodConnection
    from ._port_targets import PortSource
    from ._processes import PodProcess, TerminalSize

T = TypeVar("T", bound=KubernetesObject)


@final
class Api(ApiChanges[T], ApiSubresources[T]):
    """The API of one kind, in one namespace or in all; made by :meth:`Client.api`.

    A request is sent again where that does no harm: when the server asks for it with ``Retry-After``, and when the
    connection fails, if it is a read or if nothing of it was sent; ``open_client(retries=0)`` turns that off.
    "Retries" in docs/howto/connect.rst has the table.
    The server may have executed a request that was cancelled, or that raised
    :class:`~trioformer.errors.ConnectionFailedError`.

    Every method that sends a request raises:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass is the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: no API server sends such a response
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded, or has too many levels
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing or not valid, or is not that of the object

    Attributes:
        kind: The model.
        resource: The resource of the kind.
        namespace: The namespace; None for all namespaces.
    """

    __slots__ = ()

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be sent again after a :class:`~trioformer.errors.ConnectionFailedError`.

        First until the given time, or until a request of this client has a response, and then for a turn: all users of
        the client go one after another, five a second while connections fail and 46 a second otherwise.

        Args:
            until: A time of trio's clock.
        """
        await self._transport.health.wait_to_retry(until)

    # --- processes in pods ---

    @opened_by("process", "async with api.exec(name, command) as process:")
    async def exec(
        self: Api[Pod],
        name: str | ObjectRef | Pod,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bool = False,
        stdout: bool = True,
        stderr: bool = True,
        tty: bool = False,
        terminal_size: TerminalSize | None = None,
    ) -> AsyncGenerator[PodProcess, None]:
        """Execute a command in a container that runs (``kubectl exec``).

        Yields a :class:`PodProcess`::

            async with pods.exec("web-0", ["cat"], stdin=True) as process:
                await process.stdin.send_all(b"hello")
                await process.stdin.aclose()
                assert await process.stdout.receive_some() == b"hello"
                exit_code = await process.wait()

        For the output of a command, call :func:`run_in_pod`.
        The request is a WebSocket on the connections of this client, and needs the permission to ``create`` and to
        ``get`` ``pods/exec``.  It is not sent again, because the command could be executed twice.

        Args:
            name: The name of the pod; an :class:`ObjectRef`, such as a controller's request; or the pod itself.
            command: The program and its arguments; no shell is involved.
            namespace: The namespace of the pod; None for that of ``name``, or of this API.
            container: The container; None for the only one, or for the one that the annotation
                ``kubectl.kubernetes.io/default-container`` names.
            stdin: Whether the process has an input.
            stdout: Whether to receive its output.
            stderr: Whether to receive what it writes to its standard error; a terminal has none.
            tty: Whether the process has a terminal.
            terminal_size: The size of the terminal at first.

        Raises:
            NotFoundError: There is no pod of this name.
            BadRequestError: There is no such container, or there are several and none is named; or the pod has no node
                yet, or has ended.
            ForbiddenError: The permission is missing.
            UnexpectedResponseError: The server, or a proxy before it, has no WebSockets.
            ConnectionFailedError: No response arrived.  The command may have been executed.
            TypeError: The command is not a list of texts.

        Cancellation:
            Ends the connection.  The process loses its input and output, but the node does not kill it.

        Ownership:
            No task is started, so exceptions of the block are not wrapped.
            The end of the block closes the connection, whether the process has ended or not.
        """
        from . import _processes  # noqa: PLC0415  # imported by who executes commands

        self._check_kind("exec", "pods")
        command = _processes.check_command(command)
        name, namespace = self._locate(name, namespace)
        async with _processes.open_process(
            self._transport,
            self._paths.object(name, namespace=namespace, subresource="exec"),
            self._paths.operation("exec in", name=name, namespace=namespace),
            partial(self.get, name, namespace=namespace),
            command=command,
            container=container,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            tty=tty,
            terminal_size=terminal_size,
        ) as process:
            yield process

    @opened_by("process", "async with api.attach(name) as process:")
    async def attach(
        self: Api[Pod],
        name: str | ObjectRef | Pod,
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bool = False,
        stdout: bool = True,
        stderr: bool = True,
        tty: bool = False,
        terminal_size: TerminalSize | None = None,
    ) -> AsyncGenerator[PodProcess, None]:
        """Connect to the process that a container runs (``kubectl attach``).

        Yields a :class:`PodProcess`, whose output begins now; what was written before is in the log.
        Its ``wait`` returns 0 when the process has ended; the status of the pod has the exit code.

        Args:
            name: As for :meth:`exec`.
            namespace: As for :meth:`exec`.
            container: As for :meth:`exec`.
            stdin: Whether to send to its input; the container must have one (``stdin: true``).
            stdout: As for :meth:`exec`.
            stderr: As for :meth:`exec`.
            tty: Whether the container has a terminal (``tty: true``).
            terminal_size: As for :meth:`exec`.

        Raises:
            StatusError: As for :meth:`exec`.
            UnexpectedResponseError: As for :meth:`exec`.
            ConnectionFailedError: No response arrived.

        Cancellation:
            Ends the connection; the process goes on.

        Ownership:
            As for :meth:`exec`.
        """
        from . import _processes  # noqa: PLC0415  # as in exec()

        self._check_kind("attach", "pods")
        name, namespace = self._locate(name, namespace)
        async with _processes.open_process(
            self._transport,
            self._paths.object(name, namespace=namespace, subresource="attach"),
            self._paths.operation("attach to", name=name, namespace=namespace),
            partial(self.get, name, namespace=namespace),
            command=(),
            container=container,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            tty=tty,
            terminal_size=terminal_size,
        ) as process:
            yield process

    # --- ports of pods ---

    @opened_by("port", "async with api.port_forward(name, port) as forward:")
    async def port_forward(
        self,
        name: str | ObjectRef | T,
        port: int | str,
        *,
        namespace: str | None = None,
        local_port: int | None = 0,
        address: str | Sequence[str] = "127.0.0.1",
        max_connections: int = 1_000,
        on_error: ConnectionErrorHandler | None = None,
        on_accept: AcceptHandler | None = None,
    ) -> AsyncGenerator[PortForward, None]:
        """Forward a local port to a port of a pod (``kubectl port-forward``).

        Yields a :class:`PortForward`, for any program on this machine::

            async with services.port_forward("web", 80) as forward:
                await open_tcp_stream("127.0.0.1", forward.port)

        This is a method of the APIs of pods, Services, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and
        ReplicationControllers.  Of their pods, one that runs is chosen, a ready one first, and another one when it is
        gone.  The port of a Service is that of the Service, as for kubectl, and that of others the one of the pod.

        It needs the permission to ``create`` and to ``get`` ``pods/portforward`` and to ``get`` pods; for other kinds
        also to ``get`` these, and to ``list`` pods.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            port: The port, or its name.
            namespace: The namespace of the object; None for that of ``name``, or of this API.
            local_port: The local port; 0 for any that is free, None for the same number as ``port`` has.
            address: The IP addresses to listen on, one or several; ``localhost`` is 127.0.0.1 and ::1, or one of them.
                Everybody who can connect to them can connect to the pod.
            max_connections: How many connections are forwarded at a time; others wait.
            on_error: Called with why a connection was not forwarded, or was broken off; None to log a warning.
            on_accept: Called with the address of a program that connects.

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
        from . import _port_forward  # noqa: PLC0415  # imported by who forwards ports

        source = self._port_source("port_forward", name, port, namespace)
        async with _port_forward.open_port_forward(
            source,
            local_port=local_port,
            address=address,
            max_connections=max_connections,
            on_error=on_error,
            on_accept=on_accept,
        ) as forward:
            yield forward

    @opened_by("connection", "async with api.connect_port(name, port) as stream:")
    async def connect_port(
        self, name: str | ObjectRef | T, port: int | str, *, namespace: str | None = None
    ) -> AsyncGenerator[PodConnection, None]:
        r"""Open one connection to a port of a pod, as a stream of trio; nothing listens on this machine.

        Yields a :class:`PodConnection`::

            async with pods.connect_port("redis-0", 6379) as stream:
                await stream.send_all(b"PING\r\n")
                assert await stream.receive_some() == b"+PONG\r\n"

        Args:
            name: As for :meth:`port_forward`.
            port: As for :meth:`port_forward`.
            namespace: As for :meth:`port_forward`.

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
        stream = await self._port_source("connect_port", name, port, namespace).connect()
        try:
            yield stream
        finally:
            await stream.aclose()

    def port_transport(
        self,
        name: str | ObjectRef | T,
        port: int | str,
        *,
        namespace: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> httpx.AsyncBaseTransport:
        """Return a transport of httpx whose connections go to a port of a pod; sends no request.

        ::

            async with httpx.AsyncClient(transport=pods.port_transport("web-0", 8080)) as http:
                response = await http.get("http://web-0/healthz")

        The host and port of a URL are not connected to: they are the ``Host`` of the request, and the name that the
        certificate must have.
        Connections are kept for other requests for five seconds; nothing listens on this machine.
        Errors are those of httpx; the cause of an ``httpx.ConnectError`` is what :meth:`connect_port` raises.
        That nothing listens on the port is an ``httpx.ReadError``, as the node says it after the request was sent.

        Args:
            name: As for :meth:`port_forward`.
            port: As for :meth:`port_forward`.
            namespace: As for :meth:`port_forward`.
            tls: The settings for ``https``; None for those of httpcore, which trust the authorities of certifi.
        """
        from ._port_transport import PortTransport  # noqa: PLC0415  # imported by who sends requests to pods

        return PortTransport(self._port_source("port_transport", name, port, namespace), tls)

    def _port_source(
        self, method: str, name: str | ObjectRef | T, port: int | str, namespace: str | None
    ) -> PortSource:
        from ..models.core_v1 import Pod  # noqa: PLC0415
        from . import _port_targets  # noqa: PLC0415  # imported by who connects to ports of pods

        _port_targets.check_resource(method, str(self.resource))
        name, namespace = self._locate(name, namespace)
        number = _port_targets.check_port(port)
        where = self._paths.operation(f"forward port {number} of", name=name, namespace=namespace)
        self._paths.object(name, namespace=namespace)  # checks both
        pods = Api[Pod]._create(self._transport, Pod, namespace or self.namespace, scan_whole)
        return _port_targets.PortSource(self, pods, name, number, where)


def check_api(given: object, argument: str) -> None:
    """Check that an argument is an API; a client, or the name of a pod, is often in its place.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(given, Api):
        raise TypeError(f"{argument} must be an Api, such as client.api(Pod, namespace=...), not {describe(given)}")
