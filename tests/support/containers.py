"""Containers of the embedded server whose commands are executed on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import trio

from trioformer.testing import ScriptedProcess


@attrs.define(eq=False)
class LocalContainer:
    """Executes commands in a directory of this machine; pass :meth:`execute` to ``ScriptedPod.on_exec``.

    As a node does, it does not kill a command whose client has gone: it ends its input.
    """

    directory: Path
    """The working directory."""
    path: str = attrs.field(factory=lambda: os.environ["PATH"])
    """Where programs are looked for."""
    commands: list[tuple[str, ...]] = attrs.field(factory=list)
    """What was executed."""
    _running: int = 0
    _ended: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    async def wait_idle(self) -> None:
        """Wait until all commands have ended."""
        while self._running:
            await self._ended.park()

    async def execute(self, process: ScriptedProcess) -> int:
        """Execute a command, to its end."""
        self.commands.append(process.command)
        self._running += 1
        run = await trio.lowlevel.open_process(
            process.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.directory,
            env={**os.environ, "PATH": self.path, "LC_ALL": "C"},
        )
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._copy, process.stdin, run.stdin)
                async with trio.open_nursery() as outputs:
                    outputs.start_soon(self._copy, run.stdout, process.stdout)
                    outputs.start_soon(self._copy, run.stderr, process.stderr)
                code = await run.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                for stream in (run.stdin, run.stdout, run.stderr):
                    await stream.aclose()
                await run.wait()
            self._running -= 1
            self._ended.unpark_all()
        return code if code >= 0 else 128 - code

    @staticmethod
    async def _copy(source: trio.abc.ReceiveStream, target: trio.abc.SendStream) -> None:
        try:
            async for data in source:
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await target.aclose()
