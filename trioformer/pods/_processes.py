"""Processes in containers: executed commands and attached main processes.

::

    exec_in_pod ── GET …/exec?command=… ─▶ ChannelSocket (v5.channel.k8s.io with an input, v4 without)
      process.stdin.send_all ──── channel 0 ───▶
      process.stdout          ◀── channel 1 ───
      process.stderr          ◀── channel 2 ───   each with a buffer of 1 MiB
      process.wait            ◀── channel 3 ───   a Status, the last message
      process.resize ──────────── channel 4 ───▶

There is no background task.  A task that reads one stream receives the data of all streams, and only one task receives
at a time.
While the buffer of any stream is full, no data is received, so a process that writes is blocked, as with a pipe.

Sources: ``pkg/kubelet/server/remotecommand`` in kubernetes, and ``tools/remotecommand`` in client-go.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final
from urllib.parse import urlencode

import attrs
import trio

from .._channels import ChannelSocket
from .._suggestions import describe
from .._util import NoPublicConstructor
from ..errors import BadRequestError, ConnectionFailedError, DecodeError, StatusError
from ..errors._internal import details_in
from ..models._internal import decode, dumps
from ..transport._internal import Transport
from ._log_requests import check_container, default_container, wants_container
from ._websocket import OUTPUT_PROTOCOLS, PROTOCOLS, open_channels

if TYPE_CHECKING:
    from ..models.core_v1 import Pod

Stream = TypeVar("Stream", bound="ProcessInput | ProcessOutput")

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4

MAX_BUFFERED: Final = 1024 * 1024
"""The buffer size of each stream in bytes."""
_MAX_STATUS: Final = 64 * 1024
_MAX_STATUS_PIECES: Final = 64
"""The maximum number of messages for one Status, which is decoded again after each message."""
_END_PATIENCE: Final = 1.0
"""The number of seconds after the Status during which the last output may still arrive."""
_LAST_PATIENCE: Final = 0.1
"""The minimum number of seconds to wait for output that arrived while no task was receiving."""
_NAMES: Final = {STDIN: "standard input", STDOUT: "standard output", STDERR: "standard error"}


@final
@attrs.define(eq=False, repr=False)
class PodProcess(metaclass=NoPublicConstructor):
    """A process in a container, opened and closed by :func:`exec_in_pod` and :func:`attach_to_pod`.

    ``stdin``, ``stdout`` and ``stderr`` are trio streams, which different tasks may use at the same time.
    Accessing a stream that was not requested raises ``RuntimeError``.  A process with a terminal has no ``stderr``.
    If the connection fails, the streams raise ``trio.BrokenResourceError``.  The cause of this exception is the
    :class:`~trioformer.errors.ConnectionFailedError` that :meth:`wait` raises.

    Backpressure:
        If the buffers are full of unread output, the process is blocked, as with pipes.  Read ``stdout`` and
        ``stderr`` in two tasks, or request only one of them.  :func:`run_in_pod` reads both outputs for you.
    """

    _socket: ChannelSocket
    _where: str
    _server: str
    tty: bool
    """Whether the process has a terminal."""
    _stdin: ProcessInput | None = attrs.field(default=None, init=False)
    _stdout: ProcessOutput | None = attrs.field(default=None, init=False)
    _stderr: ProcessOutput | None = attrs.field(default=None, init=False)
    exit_code: int | None = attrs.field(default=None, init=False)
    """The exit code of the process, or None until it is known."""
    _status: bytearray = attrs.field(factory=bytearray, init=False)
    _status_pieces: int = attrs.field(default=0, init=False)
    _status_deadline: float = attrs.field(default=math.inf, init=False)
    _error: Exception | None = attrs.field(default=None, init=False)
    """The error that :meth:`wait` raises."""
    _has_ended: bool = attrs.field(default=False, init=False)
    """Whether the connection has ended."""
    _is_closed: bool = attrs.field(default=False, init=False)
    _is_receiving: bool = attrs.field(default=False, init=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    """The tasks that are waiting while another task receives."""

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "running" if self.exit_code is None else f"exit code {self.exit_code}"
        return f"<{type(self).__name__} of {self._where}: {'failed' if self._error else state}>"

    @property
    def stdin(self) -> trio.abc.SendStream:
        """The standard input; call its ``aclose()`` method to close it."""
        return self._requested(self._stdin, "stdin")

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """The standard output, which includes the standard error if the process has a terminal."""
        return self._requested(self._stdout, "stdout")

    @property
    def stderr(self) -> trio.abc.ReceiveStream:
        """The standard error."""
        return self._requested(self._stderr, "stderr")

    def _requested(self, stream: Stream | None, name: str) -> Stream:
        if stream is None:
            in_terminal = self.tty and name == "stderr"
            hint = "with a terminal, stdout contains both outputs" if in_terminal else f"pass {name}=True"
            raise RuntimeError(f"this process has no {name}: {hint}")
        return stream

    @property
    def can_close_stdin(self) -> bool:
        """Whether the standard input can be closed, which requires Kubernetes 1.30 or later."""
        return self._socket.can_close_channels

    async def wait(self) -> int:
        """Wait until the process ends, and return its exit code.

        For a process from :func:`attach_to_pod`, the method returns 0 when the process or the connection to the
        process ends.

        Raises:
            StatusError: The node could not execute the command, for example because the program does not exist.
            ConnectionFailedError: The connection ended before the process did.
            trio.ClosedResourceError: The block has ended.

        Cancellation:
            No data is lost.
        """
        await self._receive_until(lambda: self.exit_code is not None or self._error is not None)
        if self._error is not None:
            raise self._error
        assert self.exit_code is not None
        return self.exit_code

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal.

        Raises:
            RuntimeError: The process has no terminal.
            trio.BrokenResourceError: The process or the connection has ended.
        """
        if not self.tty:
            raise RuntimeError("only a terminal has a size; to allocate one, pass tty=True")
        await self._send(RESIZE, dumps({"Width": columns, "Height": rows}))

    # --- for the streams ---

    async def _send(self, channel: int, data: bytes | bytearray | memoryview) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("the `async with` block that opened this process has ended")
        if self.exit_code is not None or self._error is not None:
            await trio.lowlevel.checkpoint()
            raise trio.BrokenResourceError("the process has ended") from self._error
        await self._socket.send(channel, data)

    async def _receive_until(self, is_done: Callable[[], bool]) -> None:
        """Receive data until a condition is true; if another task is receiving, wait for that task."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not is_done():
            if self._is_closed:
                raise trio.ClosedResourceError("the `async with` block that opened this process has ended")
            if self._has_ended:
                return
            if self._is_receiving or any(each is not None and each._is_full for each in (self._stdout, self._stderr)):
                await self._changed.park()
                continue
            self._is_receiving = True
            try:
                await self._receive()
            finally:
                self._is_receiving = False
                self._changed.unpark_all()

    async def _receive(self) -> None:
        received: list[tuple[int, bytes]] = []
        try:
            if self._status_deadline == math.inf:
                received = await self._socket.receive_batch()
            else:
                # Data that arrived while no task was receiving is received first.
                with trio.move_on_at(max(self._status_deadline, trio.current_time() + _LAST_PATIENCE)):
                    received = await self._socket.receive_batch()
        except trio.BrokenResourceError as exc:
            self._end(exc)
            return
        # no checkpoint between receiving something and remembering it
        if not received:
            self._end(None)
        for channel, data in received:
            output = self._stdout if channel == STDOUT else self._stderr if channel == STDERR else None
            if output is not None:
                output._feed(data)
            elif channel == ERROR:
                self._take_status(data)
            elif data or channel > RESIZE:  # some servers start each channel with an empty message
                self._end(trio.BrokenResourceError(f"received data on channel {channel}, which was not requested"))

    def _take_status(self, data: bytes) -> None:
        self._status += data
        self._status_pieces += 1
        if not data or self.exit_code is not None or self._error is not None:
            return
        try:
            status: object = decode(bytes(self._status))
        except (DecodeError, RecursionError):
            if len(self._status) > _MAX_STATUS or self._status_pieces > _MAX_STATUS_PIECES:
                self._end(trio.BrokenResourceError("the Status of the process is too large"))
            return  # the rest of it may follow
        self._status_deadline = trio.current_time() + _END_PATIENCE
        if not isinstance(status, dict):
            self._end(trio.BrokenResourceError("the node sent an invalid Status"))
            return
        members = cast("dict[str, Any]", status)
        code = exit_code_in(members)
        if code is None:
            self._error = StatusError.from_status(members, code=500, where=self._where)
        self.exit_code = code

    def _end(self, cause: trio.BrokenResourceError | None) -> None:
        """Record the end of the connection and its cause."""
        self._has_ended = True
        if self.exit_code is None and self._error is None:
            what = str(cause or self._socket.close_text) or "the connection has ended"
            if self._status:
                shown = bytes(self._status[:200]).decode(errors="replace")
                what = f"{what}; received {shown!r} instead of a Status"
            problem = f"before the process did, so its exit code is not known: {what}"
            self._error = ConnectionFailedError(f"{self._where}: {self._server}: the connection ended {problem}")
            self._error.__cause__ = cause

    async def _close(self) -> None:
        self._is_closed = True
        self._changed.unpark_all()
        await self._socket.aclose()


def exit_code_in(status: Mapping[str, Any]) -> int | None:
    """Return the exit code in a Status, or None if the Status reports a different failure."""
    if status.get("status") == "Success":
        return 0
    if status.get("reason") != "NonZeroExitCode":
        return None
    for cause in details_in(status).causes:
        if cause.reason == "ExitCode":
            try:
                return int(cause.message)
            except ValueError:
                return None
    return None


@final
@attrs.define(eq=False, repr=False)
class ProcessInput(trio.abc.SendStream, metaclass=NoPublicConstructor):
    """The standard input of a process."""

    _process: PodProcess
    _is_closed: bool = attrs.field(default=False, init=False)
    _is_sending: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._process._where}>"

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes to the process.

        Raises:
            trio.BrokenResourceError: The process or the connection has ended, or an earlier call was cancelled.
            trio.ClosedResourceError: This stream is closed, or the block of the process has ended.
            trio.BusyResourceError: Another task is sending.

        Cancellation:
            The process may have received part of the data, and no more data can be sent.
        """
        if self._is_sending:
            raise trio.BusyResourceError("another task is already sending to this process")
        if self._is_closed:
            raise trio.ClosedResourceError("this input is closed")
        self._is_sending = True
        try:
            await self._process._send(STDIN, data)
        finally:
            self._is_sending = False

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately, because it is not known whether the process is reading its input."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close the standard input of the process.  Servers older than Kubernetes 1.30 ignore this."""
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        process = self._process
        if not process.can_close_stdin or process._is_closed or process.exit_code is not None:
            await trio.lowlevel.checkpoint()
            return
        with suppress(trio.BrokenResourceError):
            await process._socket.close_channel(STDIN)


@final
@attrs.define(eq=False, repr=False)
class ProcessOutput(trio.abc.ReceiveStream, metaclass=NoPublicConstructor):
    """The standard output or standard error of a process."""

    _process: PodProcess
    _channel: int
    _pieces: deque[bytes] = attrs.field(factory=deque, init=False)
    _size: int = attrs.field(default=0, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _is_receiving: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {_NAMES[self._channel]} of {self._process._where}>"

    @property
    def _is_full(self) -> bool:
        return self._size >= MAX_BUFFERED

    def _feed(self, data: bytes) -> None:
        if data and not self._is_closed:
            self._pieces.append(data)
            self._size += len(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes, or ``b""`` if the process has ended and all output was read.

        Raises:
            trio.BrokenResourceError: The connection ended before the process did, or the command was not executed.
            trio.ClosedResourceError: This stream is closed, or the block of the process has ended.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            No data is lost.
        """
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be at least 1")
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this process")
        process = self._process
        self._is_receiving = True
        try:
            if self._pieces:
                await trio.lowlevel.checkpoint()
            else:
                await process._receive_until(lambda: bool(self._pieces) or self._is_closed)
        finally:
            self._is_receiving = False
        if self._is_closed or process._is_closed:
            raise trio.ClosedResourceError("this output is closed")
        if not self._pieces:
            if process._error is not None:
                raise trio.BrokenResourceError(str(process._error)) from process._error
            return b""
        was_full = self._is_full
        if max_bytes is None:
            piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
        else:
            piece = self._pieces.popleft()
        if max_bytes is not None and len(piece) > max_bytes:
            self._pieces.appendleft(piece[max_bytes:])
            piece = piece[:max_bytes]
        self._size -= len(piece)
        if was_full and not self._is_full:
            process._changed.unpark_all()
        return piece

    async def aclose(self) -> None:
        """Discard all further output; the process is not affected."""
        self._is_closed = True
        self._pieces.clear()
        self._size = 0
        self._process._changed.unpark_all()
        await trio.lowlevel.checkpoint()


def check_command(command: Sequence[str]) -> list[str]:
    """Check that a command is a list of strings, and return it.

    Raises:
        TypeError: The command is not a list of strings.
        ValueError: The command is empty or contains a NUL character.
    """
    if isinstance(command, str):
        raise TypeError(f"a command must be a list of strings; for a shell, write ['sh', '-c', {command!r}]")
    if not isinstance(command, Sequence):
        raise TypeError(f"a command must be a list of strings, not {describe(command)}")
    if not command:
        raise ValueError("a command must not be empty")
    for each in command:
        if not isinstance(each, str):
            raise TypeError(f"a command must be a list of strings, but it contains {describe(each)}")
        if "\0" in each:
            raise ValueError(f"a command must not contain a NUL character: {each!r}")
    return list(command)


@asynccontextmanager
async def open_process(
    transport: Transport,
    path: str,
    where: str,
    get: Callable[[], Awaitable[Pod]],
    *,
    command: Sequence[str],
    container: str | None,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
    terminal_size: tuple[int, int] | None,
) -> AsyncGenerator[PodProcess, None]:
    """Open a process; see :func:`exec_in_pod`."""
    check_container(container)
    stderr = stderr and not tty
    if not (stdin or stdout or stderr):
        raise ValueError("at least one of stdin, stdout and stderr must be true")
    if terminal_size is not None and not tty:
        raise ValueError("only a terminal has a size; to allocate one, pass tty=True")
    flags = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "tty": tty}
    query = [("command", each) for each in command] + [(name, "true") for name, flag in flags.items() if flag]
    if container is None:
        try:
            async with _open(transport, path, where, query, flags, terminal_size) as process:
                container = ""  # errors of the block are not retried
                yield process
                return
        except BadRequestError as error:
            # The pod has several containers: use the one that the annotation names.
            if container is not None or not wants_container(error) or (named := default_container(await get())) is None:
                raise
        container = named
    query.append(("container", container))
    async with _open(transport, path, where, query, flags, terminal_size) as process:
        yield process


@asynccontextmanager
async def _open(
    transport: Transport,
    path: str,
    where: str,
    query: list[tuple[str, str]],
    flags: Mapping[str, bool],
    terminal_size: tuple[int, int] | None,
) -> AsyncGenerator[PodProcess, None]:
    # Arguments that are not UTF-8 are sent byte for byte.
    path = f"{path}?{urlencode(query, errors='surrogateescape')}"
    protocols = PROTOCOLS if flags["stdin"] else OUTPUT_PROTOCOLS  # only with an input, its end must be sent
    async with open_channels(transport, path, where=where, protocols=protocols) as (socket, server):
        process = PodProcess._create(socket, where, server, flags["tty"])
        if flags["stdin"]:
            process._stdin = ProcessInput._create(process)
        if flags["stdout"]:
            process._stdout = ProcessOutput._create(process, STDOUT)
        if flags["stderr"]:
            process._stderr = ProcessOutput._create(process, STDERR)
        try:
            if terminal_size is not None:
                with suppress(trio.BrokenResourceError):  # the process has already ended
                    await process.resize(*terminal_size)
            yield process
        finally:
            await process._close()
