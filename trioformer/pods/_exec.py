"""Execute commands in containers: :func:`exec_in_pod`, :func:`attach_to_pod` and :func:`run_in_pod`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final, final

import attrs
import trio

from .._suggestions import describe
from .._util import opened_by, raise_ungrouped
from ..client import Api, ObjectRef
from ..client._internal import check_api, located
from ..errors import CommandFailedError, LimitExceededError, TrioformerError
from ..models.core_v1 import Pod
from ._processes import PodProcess, ProcessOutput, check_command, open_process


@opened_by("process", "async with exec_in_pod(pods, name, command) as process:")
async def exec_in_pod(
    pods: Api[Pod],
    name: str | ObjectRef | Pod,
    command: Sequence[str],
    *,
    namespace: str | None = None,
    container: str | None = None,
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
    terminal_size: tuple[int, int] | None = None,
) -> AsyncGenerator[PodProcess, None]:
    """Execute a command in a running container (``kubectl exec``).

    Yields a :class:`PodProcess`::

        async with exec_in_pod(pods, "web-0", ["cat"], stdin=True) as process:
            await process.stdin.send_all(b"hello")
            await process.stdin.aclose()
            assert await process.stdout.receive_some() == b"hello"
            exit_code = await process.wait()

    To execute a command and get its output, call :func:`run_in_pod` instead.
    The request opens a WebSocket, and requires permission to ``create`` and ``get`` ``pods/exec``.
    The request is never retried, because the command could be executed twice.

    Args:
        pods: The API of pods.
        name: The pod, as a name, an :class:`ObjectRef` (such as a controller's request) or an object.
        command: The program and its arguments; no shell is involved.
        namespace: The namespace of the pod.  The default, None, uses the namespace in ``name``, or otherwise the
            namespace of the API.
        container: The name of the container. The default, None, selects the only container, or the container named by
            the annotation ``kubectl.kubernetes.io/default-container``.
        stdin: Whether to connect standard input.
        stdout: Whether to connect standard output.
        stderr: Whether to connect standard error. This argument is ignored if ``tty`` is true.
        tty: Whether to allocate a terminal.
        terminal_size: The initial size of the terminal in columns and rows, as ``os.get_terminal_size()`` returns it.

    Raises:
        NotFoundError: The pod does not exist.
        BadRequestError: The container does not exist, the pod has several containers and no default container, or the
            pod is not assigned to a node yet or has ended.
        ForbiddenError: The permission is missing.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.
        ConnectionFailedError: No response arrived.  The server may have executed the command.
        TypeError: An argument has the wrong type, for example because the command is a string.
        ValueError: The command is empty or contains a NUL character.

    Cancellation:
        Closes the connection.  The process loses its input and output, but the node does not kill it.

    Ownership:
        No task is started, so exceptions in the block are not wrapped in groups.  The end of the block closes the
        connection, even if the process is still running.
    """
    command = check_command(command)
    pod = located(pods, "exec_in_pod", name, namespace)
    async with open_process(
        pod.transport,
        pod.path("exec"),
        pod.operation("exec in"),
        partial(pods.get, pod.name, namespace=pod.namespace),
        command=command,
        container=container,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        tty=tty,
        terminal_size=terminal_size,
    ) as process:
        yield process


@opened_by("process", "async with attach_to_pod(pods, name) as process:")
async def attach_to_pod(
    pods: Api[Pod],
    name: str | ObjectRef | Pod,
    *,
    namespace: str | None = None,
    container: str | None = None,
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
    terminal_size: tuple[int, int] | None = None,
) -> AsyncGenerator[PodProcess, None]:
    """Attach to the main process of a container (``kubectl attach``).

    Yields a :class:`PodProcess`, which receives only new output.  Earlier output is in the log.
    When the process has ended, its ``wait`` method returns 0, because only the pod's status contains the real exit
    code.

    Args:
        pods: The API of pods.
        name: The pod; see :func:`exec_in_pod`.
        namespace: The namespace of the pod; see :func:`exec_in_pod`.
        container: The name of the container; see :func:`exec_in_pod`.
        stdin: Whether to connect standard input.  The container must be defined with ``stdin: true``.
        stdout: Whether to connect standard output.
        stderr: Whether to connect standard error. This argument is ignored if ``tty`` is true.
        tty: Whether the container has a terminal, which means that it is defined with ``tty: true``.
        terminal_size: The initial size of the terminal; see :func:`exec_in_pod`.

    Raises:
        StatusError: The server rejected the request; see :func:`exec_in_pod`.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.
        ConnectionFailedError: No response arrived.

    Cancellation:
        Closes the connection; the process continues.

    Ownership:
        No task is started, and the end of the block closes the connection; see :func:`exec_in_pod`.
    """
    pod = located(pods, "attach_to_pod", name, namespace)
    async with open_process(
        pod.transport,
        pod.path("attach"),
        pod.operation("attach to"),
        partial(pods.get, pod.name, namespace=pod.namespace),
        command=(),
        container=container,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        tty=tty,
        terminal_size=terminal_size,
    ) as process:
        yield process


MAX_OUTPUT: Final = 64 * 1024 * 1024
_SHOWN: Final = 500
"""The maximum number of bytes of standard error in an error message."""


@final
@attrs.frozen
class CompletedCommand:
    """The result of a command."""

    command: tuple[str, ...]
    """The program and its arguments."""
    exit_code: int
    """The exit code of the command."""
    stdout: bytes = attrs.field(repr=False)
    """The standard output of the command."""
    stderr: bytes = attrs.field(repr=False)
    """The standard error of the command."""

    @property
    def text(self) -> str:
        """The standard output as text, in which bytes that are not UTF-8 are replaced with U+FFFD."""
        return self.stdout.decode(errors="replace")


async def run_in_pod(
    api: Api[Pod],
    name: str | ObjectRef | Pod,
    command: Sequence[str],
    *,
    namespace: str | None = None,
    container: str | None = None,
    input: bytes | str | None = None,  # noqa: A002  # as for subprocess.run
    check: bool = True,
    max_output_bytes: int = MAX_OUTPUT,
) -> CompletedCommand:
    """Execute a command in a container, wait until it ends, and return its output.

    ::

        done = await run_in_pod(client.api(Pod, namespace="default"), "web-0", ["ls", "/"])
        print(done.text)

    Args:
        api: The API of pods.
        name: The pod; see :func:`exec_in_pod`.
        command: The program and its arguments; no shell is involved.
        namespace: The namespace of the pod; see :func:`exec_in_pod`.
        container: The name of the container; see :func:`exec_in_pod`.
        input: The standard input of the command. A string is sent as UTF-8. The default, None, connects no input.
        check: Whether to raise :exc:`CommandFailedError` if the exit code is not 0.
        max_output_bytes: The maximum total size of standard output and standard error, which are kept in memory.

    Returns:
        The ``command``, the ``exit_code``, the bytes of ``stdout`` and ``stderr``, and ``text``, the standard output
        as a string.

    Raises:
        CommandFailedError: The exit code is not 0, and ``check`` is true.
        LimitExceededError: The output is larger than ``max_output_bytes``.
        StatusError: The server rejected the request, or the node could not execute the command, for example because
            the program does not exist.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.
        TypeError: An argument has the wrong type, for example because the command is a string.
        ValueError: The command is empty, or ``max_output_bytes`` is negative.
        ConnectionFailedError: No response arrived, or the connection ended before the command did.
        TrioformerError: ``input`` is given, but the server is older than Kubernetes 1.30 and cannot close the stdin of
            the command.

    Cancellation:
        Closes the connection.  The command loses its input and output, but the node does not kill it.
    """
    check_api(api, "api")
    command = check_command(command)
    if not isinstance(input, bytes | bytearray | memoryview | str | None):
        raise TypeError(f"input must be bytes or a string, not {describe(input)}")
    data = input.encode() if isinstance(input, str) else input
    if isinstance(max_output_bytes, bool) or not isinstance(max_output_bytes, int):
        raise TypeError(f"max_output_bytes must be an int, not {describe(max_output_bytes)}")
    if max_output_bytes < 0:
        raise ValueError(f"max_output_bytes must be at least 0, not {max_output_bytes}")
    async with exec_in_pod(
        api, name, command, namespace=namespace, container=container, stdin=data is not None
    ) as process:
        outputs = _Outputs(process, max_output_bytes)
        if process._stdin is None or data is None:
            await outputs.collect()
        else:
            if not process.can_close_stdin:
                problem = "the server cannot close the stdin of a command; this requires Kubernetes 1.30 or later"
                raise TrioformerError(f"{process._where}: {process._server}: {problem}")
            await _communicate(process.stdin, data, outputs)
        exit_code = await process.wait()
    done = CompletedCommand(tuple(command), exit_code, bytes(outputs.stdout), bytes(outputs.stderr))
    if check and exit_code:
        end = done.stderr[-_SHOWN:].decode(errors="replace").strip()
        text = f"{process._where}: the command {done.command[0]} ended with exit code {exit_code}"
        raise CommandFailedError(
            f"{text}: {end}" if end else text, exit_code=exit_code, stdout=done.stdout, stderr=done.stderr
        )
    return done


@final
class _Outputs:
    """A collector that receives both outputs of a process in one task."""

    def __init__(self, process: PodProcess, most: int) -> None:
        self._process = process
        self._most = most
        self._streams = process._stdout, process._stderr
        self.stdout = bytearray()
        self.stderr = bytearray()

    async def collect(self) -> None:
        process = self._process
        outputs = [(each, kept) for each, kept in zip(self._streams, (self.stdout, self.stderr), strict=True) if each]
        while not process._has_ended:
            await process._receive_until(lambda: process._has_ended or any(each._pieces for each, _ in outputs))
            for each, kept in outputs:
                self._take(each, kept)
        await trio.lowlevel.checkpoint()

    def _take(self, output: ProcessOutput, kept: bytearray) -> None:
        for piece in output._pieces:
            kept += piece
        output._pieces.clear()
        output._size = 0
        if len(self.stdout) + len(self.stderr) > self._most:
            problem = f"more output than max_output_bytes ({self._most}); increase it, or use exec_in_pod()"
            raise LimitExceededError(f"{self._process._where}: {problem}", limit="max_output_bytes")


async def _communicate(stdin: trio.abc.SendStream, data: bytes, outputs: _Outputs) -> None:
    """Send the input and collect the outputs; the command may end before it has read all its input."""
    error: Exception | None = None

    async def send() -> None:
        try:
            await stdin.send_all(data)
            await stdin.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # wait() raises the reason

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            try:
                await outputs.collect()
            except Exception as exc:  # noqa: BLE001  # raised below
                error = exc
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        await raise_ungrouped(group)
    if error is not None:
        raise error
