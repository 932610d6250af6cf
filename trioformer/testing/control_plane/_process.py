"""An external program of a control plane: how it is started, checked for readiness, and stopped."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import final

import attrs
import trio

from ...errors import TrioformerError
from ._certificates import Certificates
from ._watchdog import Watchdog, start_watchdog

__all__ = ["ControlPlaneError", "Program", "free_ports", "make_program", "start_on_free_ports"]

FLAGS = Path(__file__).with_name("flags")
PORTS = range(20_000, 32_768)
"""Ports below the ephemeral port ranges of Linux and macOS, which are used for outgoing connections."""
PORT_ATTEMPTS = 5
POLL_PERIOD = 0.05
"""Seconds between two readiness checks."""
POLL_DEADLINE = 5.0
"""The maximum duration of one readiness check, in seconds."""
START_DEADLINE = 60.0
"""Seconds within which a program must be ready.  kube-apiserver takes about 3 seconds."""
STOP_DEADLINE = 5.0
"""Seconds between SIGTERM and SIGKILL.  kube-apiserver takes 1 second to end, but more than 15 if etcd is not
running."""
KILL_DEADLINE = 5.0
"""Seconds within which a killed process must end."""
LOG_LINES = 15


class ControlPlaneError(TrioformerError):
    """An error of a control plane: a program is missing, did not become ready, or did not stop.

    The last lines of the program's log are attached as a note.

    Attributes:
        process: The program's name, such as ``kube-apiserver``, or None if the error is not about a single program.
        exit_code: The program's exit code, or None while the program runs.  The exit code is negative if a signal
            ended the program.
        log: The program's log file, which is kept, or None.
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
    """An external program, with its command, its log and its readiness check."""

    command: list[str]
    port: int
    ready_paths: list[str]
    """The paths of the readiness check.  The program is ready when each of them has responded with 200."""
    directory: Path
    _certificates: Certificates
    _process: trio.Process | None = attrs.field(init=False, default=None)
    _watchdog: Watchdog | None = attrs.field(init=False, default=None)
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
        """The process id, or None if the program is not running."""
        return self._process.pid if self._process is not None and self._poll() is None else None

    async def start(self) -> None:
        """Start the program and wait until it is ready.  If the start fails or is cancelled, the process is killed."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} is already running")
        await self._stop_watchdog()
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            # Without the caller's environment: ETCD_* and proxy variables would change the behavior of the programs.
            self._process = await trio.lowlevel.open_process(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={"PATH": os.defpath},
            )
        try:
            self._watchdog = await start_watchdog(self._process.pid)
            await self.wait_ready()
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Send SIGTERM, wait until the program ends, and send SIGKILL after the deadline."""
        if self._process is not None:
            self._process.terminate()
            with trio.move_on_after(STOP_DEADLINE):
                await self._process.wait()
            await self.kill()

    async def kill(self) -> None:
        """Send SIGKILL, and wait for a limited time until the program ends, shielded from cancellation."""
        if self._process is not None:
            self._process.kill()
            with trio.move_on_after(KILL_DEADLINE, shield=True):
                await self._process.wait()
            if self.pid is not None:
                raise self._error(f"process {self.pid} is still running after SIGKILL")
            await self._stop_watchdog()

    async def _stop_watchdog(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            await watchdog.aclose()

    def _poll(self) -> int | None:
        """Return the exit code, or None while the program runs.

        Polling a process that has ended frees its process id for reuse, so the watchdog is closed at the same time.
        """
        code = None if self._process is None else self._process.poll()
        if code is not None and self._watchdog is not None:
            self._watchdog.close()
        return code

    def port_was_taken(self) -> bool:
        """Return True if the last attempt to start the program failed because another process uses the port."""
        return self.pid is None and os.strerror(errno.EADDRINUSE).lower() in self._last_log().lower()

    async def wait_ready(self) -> None:
        """Wait until the program is ready.

        Raises:
            ControlPlaneError: The program ended, or was not ready after :data:`START_DEADLINE` seconds.
        """
        process = self._process
        assert process is not None
        tls = self._certificates.client_context()
        not_ready = list(self.ready_paths)
        with trio.move_on_after(START_DEADLINE) as deadline:
            while not_ready and self._poll() is None:
                if await self._responds_200(not_ready[0], tls):
                    del not_ready[0]
                else:
                    await trio.sleep(POLL_PERIOD)
        if self._poll() is not None:
            raise self._error(f"ended with exit code {process.returncode} before it was ready")
        if deadline.cancelled_caught:
            raise self._error(
                f"was not ready after {START_DEADLINE:g} seconds: {not_ready[0]} did not respond with 200"
            )

    async def _responds_200(self, path: str, tls: ssl.SSLContext) -> bool:
        # Do not use httpx here: its trio backend leaves the socket open when it is cancelled during the TLS handshake.
        with trio.move_on_after(POLL_DEADLINE), contextlib.suppress(OSError, trio.BrokenResourceError):
            tcp = await trio.open_tcp_stream("127.0.0.1", self.port)
            async with trio.SSLStream(tcp, tls, server_hostname="127.0.0.1", https_compatible=True) as stream:
                await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                received = bytearray()
                while b"\r\n" not in received and (more := await stream.receive_some()):
                    received += more
                return received.startswith(b"HTTP/1.1 200 ")
        return False

    def _error(self, what: str) -> ControlPlaneError:
        lines = self._last_log().splitlines()[-LOG_LINES:]
        exit_code = self._poll()
        message = f"{self.name} {what}, see {self.log}" + (f"; its last line: {lines[-1][:300]}" if lines else "")
        error = ControlPlaneError(message, process=self.name, exit_code=exit_code, log=self.log)
        error.add_note("\n".join([f"the last lines of {self.log}:", *lines]))
        return error

    def _last_log(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Return distinct ports that are free at the time of the call."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        # Do not use the global generator: test runners seed it, and parallel runs would all try the same ports.
        for port in random.SystemRandom().sample(PORTS, len(PORTS)):
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise ControlPlaneError(f"no {count} free ports between {PORTS.start} and {PORTS.stop - 1}")


def make_program(
    name: str, assets: Path, directory: Path, certificates: Certificates, ready: list[str], *more: str, **words: str
) -> Program:
    """Return a program on free ports, without starting it.

    Its flags are in ``flags``, in a file with its name or in ``component.txt``, with words in braces to be replaced.
    """
    port, peer_port = free_ports(2)
    file = FLAGS / f"{name}.txt"
    lines = (file if file.exists() else FLAGS / "component.txt").read_text(encoding="utf-8").splitlines()
    known = {"assets": assets, "directory": directory, "certificates": certificates, "port": port, **words}
    given = [line.format(peer_port=peer_port, **known) for line in lines if line.startswith("--")]
    return Program([str(assets / name), *given, *more], port, ready, directory, certificates)


async def start_on_free_ports(make: Callable[[], Program]) -> Program:
    """Create and start a program.  If another process has taken a port of the program, retry with new ports."""
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
