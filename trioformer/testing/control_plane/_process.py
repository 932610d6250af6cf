"""One external program of a control plane: started, asked whether it is ready, stopped, killed."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import final

import attrs
import trio

from ...errors import TrioformerError
from ._certificates import Certificates
from ._watchdog import Guard, start_watchdog

__all__ = ["ControlPlaneError", "Program", "flags", "free_ports", "start_on_free_ports"]

PORTS = range(20_000, 32_768)
"""Below the ephemeral ranges of Linux and macOS, so that no outgoing connection sits on one of these."""
PORT_ATTEMPTS = 5
POLL_PERIOD = 0.05
"""Seconds between two questions whether a program is ready."""
POLL_DEADLINE = 5.0
"""Seconds that one such question may take."""
START_DEADLINE = 60.0
"""Seconds until a program must be ready; kube-apiserver takes about three."""
STOP_DEADLINE = 5.0
"""Seconds between SIGTERM and SIGKILL; kube-apiserver takes one, but more than 15 when etcd is gone."""
KILL_DEADLINE = 5.0
"""Seconds that the kernel has for removing a killed process."""
LOG_LINES = 15


class ControlPlaneError(TrioformerError):
    """A program of a control plane is missing, did not become ready, or did not stop.

    The end of its log is attached as a note.

    Attributes:
        process: The program's name, such as ``kube-apiserver``, or None when no single program is at fault.
        exit_code: Its exit code, negative for a signal; None while it runs.
        log: Its log file, which is kept, or None.
    """

    def __init__(
        self, message: str, *, process: str | None = None, exit_code: int | None = None, log: Path | None = None
    ) -> None:
        super().__init__(message)
        self.process = process
        self.exit_code = exit_code
        self.log = log


@final
@attrs.define(eq=False)
class Program:
    """One program: how it is started, where it logs, what it answers when it is ready."""

    command: list[str]
    port: int
    ready_paths: list[str]
    """The program is ready when each has answered 200."""
    directory: Path
    _certificates: Certificates
    _process: trio.Process | None = attrs.field(init=False, default=None)
    _guard: Guard | None = attrs.field(init=False, default=None)
    _log_start: int = attrs.field(init=False, default=0)

    @property
    def name(self) -> str:
        return Path(self.command[0]).name

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "logs" / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self._poll() is None else None

    async def start(self) -> None:
        """Start the program and wait until it is ready; a start that fails or is cancelled leaves no process."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} is running already")
        await self._dismiss_guard()
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            # Without the caller's environment: ETCD_* variables and proxies would change what the programs do.
            self._process = await trio.lowlevel.open_process(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={"PATH": os.defpath},
            )
        try:
            self._guard = await start_watchdog(self._process.pid)
            await self.wait_ready()
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Send SIGTERM, wait, and kill what is left after the deadline."""
        if self._process is not None:
            self._process.terminate()
            with trio.move_on_after(STOP_DEADLINE):
                await self._process.wait()
            await self.kill()

    async def kill(self) -> None:
        """Send SIGKILL and wait; not cancellable, but bounded."""
        if self._process is not None:
            self._process.kill()
            with trio.move_on_after(KILL_DEADLINE, shield=True):
                await self._process.wait()
            if self.pid is not None:
                raise self._error(f"process {self.pid} is still there after SIGKILL")
            await self._dismiss_guard()

    async def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            await guard.dismiss()

    def _poll(self) -> int | None:
        """Ask for the exit code.

        Who has asked has freed the pid, if the process has ended; so the guard must not keep it any longer.
        """
        code = None if self._process is None else self._process.poll()
        if code is not None and self._guard is not None:
            self._guard.release()
        return code

    def port_was_taken(self) -> bool:
        """Whether the last start failed because another process has the port."""
        return self.pid is None and os.strerror(errno.EADDRINUSE).lower() in self._last_log().lower()

    async def wait_ready(self) -> None:
        """Ask until the program is ready; raises when it ends before that, or takes too long."""
        process = self._process
        assert process is not None
        tls = self._certificates.client_context()
        waiting_for = list(self.ready_paths)
        with trio.move_on_after(START_DEADLINE) as deadline:
            while waiting_for and self._poll() is None:
                if await self._answers_200(waiting_for[0], tls):
                    del waiting_for[0]
                else:
                    await trio.sleep(POLL_PERIOD)
        if self._poll() is not None:
            raise self._error(f"ended with exit code {process.returncode} before it was ready")
        if deadline.cancelled_caught:
            raise self._error(f"was not ready after {START_DEADLINE:g} seconds: {waiting_for[0]} did not answer 200")

    async def _answers_200(self, path: str, tls: ssl.SSLContext) -> bool:
        # Not httpx, whose trio backend leaves the socket open when it is cancelled in the TLS handshake.
        with trio.move_on_after(POLL_DEADLINE), contextlib.suppress(OSError, trio.BrokenResourceError):
            tcp = await trio.open_tcp_stream("127.0.0.1", self.port)
            async with trio.SSLStream(tcp, tls, server_hostname="127.0.0.1", https_compatible=True) as stream:
                await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                answer = bytearray()
                while b"\r\n" not in answer and (more := await stream.receive_some()):
                    answer += more
                return answer.startswith(b"HTTP/1.1 200 ")
        return False

    def _error(self, what: str) -> ControlPlaneError:
        lines = self._last_log().splitlines()[-LOG_LINES:]
        exit_code = self._poll()
        message = f"{self.name} {what}, see {self.log}" + (f"; its last line: {lines[-1][:300]}" if lines else "")
        error = ControlPlaneError(message, process=self.name, exit_code=exit_code, log=self.log)
        error.add_note("\n".join([f"the end of {self.log}:", *lines]))
        return error

    def _last_log(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listened on a moment ago, all different."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        # Not the global generator, whose seed test runners fix: parallel runs would all try the same ports.
        for port in random.SystemRandom().sample(PORTS, len(PORTS)):
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise ControlPlaneError(f"no {count} free ports between {PORTS.start} and {PORTS.stop - 1}")


def flags(command: Path, values: dict[str, object], more: Iterable[str] = ()) -> list[str]:
    return [str(command), *(f"--{name}={value}" for name, value in values.items()), *more]


async def start_on_free_ports(make: Callable[[], Program]) -> Program:
    attempts_left = PORT_ATTEMPTS
    while True:
        program = make()
        attempts_left -= 1
        try:
            await program.start()
        except ControlPlaneError:
            if not attempts_left or not program.port_was_taken():
                raise
        else:
            return program
