"""Processes in containers that a test scripts, and their input and output."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs
import trio

from ..._channels import ChannelSocket
from ..._util import NoPublicConstructor


@final
@attrs.define(eq=False)
class ScriptedInput(trio.abc.ReceiveStream, metaclass=NoPublicConstructor):
    """The standard input of a process, as sent by the client."""

    _pieces: trio.MemoryReceiveChannel[bytes]
    _rest: bytes = b""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes.  The result is ``b""`` at the end of the input."""
        try:
            data = self._rest or await self._pieces.receive()
        except trio.EndOfChannel:
            return b""
        most = len(data) if max_bytes is None else max_bytes
        self._rest = data[most:]
        return data[:most]

    async def receive_all(self) -> bytes:
        """Receive the whole input."""
        return b"".join([piece async for piece in self])

    async def aclose(self) -> None:
        """Stop reading."""
        self._pieces.close()
        await trio.lowlevel.checkpoint()


@final
@attrs.define(eq=False)
class ScriptedOutput(trio.abc.SendStream, metaclass=NoPublicConstructor):
    """An output stream of a process, which is sent to a client."""

    _socket: ChannelSocket
    _channel: int
    _is_wanted: bool

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes.  This method blocks while the client is not reading."""
        if self._is_wanted:
            await self._socket.send(self._channel, data)
        else:
            await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Do nothing, because the output ends when the process ends."""
        await trio.lowlevel.checkpoint()


@final
@attrs.define(eq=False)
class ScriptedProcess(metaclass=NoPublicConstructor):
    """A scripted process that a client has started with exec or has attached to."""

    command: tuple[str, ...]
    """The program and its arguments. The list is empty for attach."""
    container: str
    """The container."""
    tty: bool
    """Whether the process has a terminal."""
    stdin: ScriptedInput
    """The standard input. It ends immediately if the client does not send any input."""
    stdout: ScriptedOutput
    """The standard output."""
    stderr: ScriptedOutput
    """The standard error."""
    sizes: list[os.terminal_size] = attrs.field(factory=list)
    """The sizes of the terminal so far. The last is the current size."""
    _resized: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, repr=False)

    async def wait_resized(self) -> os.terminal_size:
        """Wait until the client changes the size of the terminal, and return the new size."""
        await self._resized.park()
        return self.sizes[-1]

    async def disconnect(self) -> None:
        """Close the connection to the client before the process has ended, as when the node fails."""
        await self.stdout._socket.aclose()


ProcessHandler: TypeAlias = Callable[[ScriptedProcess], Awaitable[int | None]]
"""Plays a process, and returns the exit code, where None stands for 0."""


@final
@attrs.frozen
class ScriptedCommand:
    """A scripted command with a fixed output and exit code."""

    stdout: bytes
    stderr: bytes
    exit_code: int

    async def run(self, process: ScriptedProcess) -> int:
        """Send the output and return the exit code."""
        await process.stdout.send_all(self.stdout)
        await process.stderr.send_all(self.stderr)
        return self.exit_code


@final
@attrs.define(eq=False)
class ProcessScripts:
    """The scripted processes of one pod, by container name.  The empty name means all containers."""

    commands: dict[tuple[str, tuple[str, ...]], ScriptedCommand] = attrs.field(factory=dict)
    on_exec: dict[str, ProcessHandler] = attrs.field(factory=dict)
    on_attach: dict[str, ProcessHandler] = attrs.field(factory=dict)

    def find(self, container: str, command: tuple[str, ...], *, is_attach: bool) -> ProcessHandler | None:
        """Return the handler of a process, or None if there is none."""
        for name in (container, ""):
            if not is_attach and (known := self.commands.get((name, command))) is not None:
                return known.run
            if (handler := (self.on_attach if is_attach else self.on_exec).get(name)) is not None:
                return handler
        return None
