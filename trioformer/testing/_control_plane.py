"""A real control plane for tests: etcd and kube-apiserver as child processes on loopback.

::

    your test ─TLS, client certificate─▶ kube-apiserver ─TLS, client certificate─▶ etcd ─▶ directory/etcd

An external process gives nothing to wait on when it becomes ready, so this is the one room that polls.
Two facts about the programs shape the start.
etcd ends at once when one of its ports is taken, and kube-apiserver without etcd does not fail but hangs in every
request: so etcd must be alive and answer ``/health`` before kube-apiserver is started.
And a free port is only known to have been free a moment ago: a program that finds its port taken is started again on
fresh ones, and because every control plane has an authority of its own, a stranger on the port is never taken for ours.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import final

import attrs
import trio
import yaml

from ._certificates import Certificates, issue_certificates
from ._process import ControlPlaneError as ControlPlaneError
from ._process import Program, flags, free_ports, start_on_free_ports

__all__ = ["ControlPlane", "ControlPlaneError"]

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
DEFAULT_ASSETS = "/usr/local/kubebuilder/bin"
KEEP_VARIABLE = "TRIOFORMER_KEEP_CONTROL_PLANE"


def _find_assets(given: str | os.PathLike[str] | None) -> Path:
    return Path(given or os.environ.get(ASSETS_VARIABLE) or DEFAULT_ASSETS).absolute()


def _absolute(given: str | os.PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given).absolute()


def _strings(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(given)


@final
@attrs.define(eq=False, kw_only=True)
class ControlPlane:
    """etcd and kube-apiserver, started from binaries on entry and stopped on exit.

    ::

        async with ControlPlane(assets="bin") as control_plane:
            async with open_client(load_config(control_plane.kubeconfig)) as client:
                ...
                await control_plane.kill_api_server()
                await control_plane.start_api_server()

    The programs are found as other Kubernetes test kits find them: in `assets`, else in the directory that the
    environment variable ``KUBEBUILDER_ASSETS`` names, else in ``/usr/local/kubebuilder/bin``.
    Authorization is RBAC, service account admission is off; no controller manager, scheduler or kubelet runs.

    Real processes need the real clock: not under ``trio.testing.MockClock``, whose jumps would end every wait.
    Nothing here is bound to one ``trio.run``, so a synchronous fixture may enter in one and leave in another.

    Args:
        assets: The directory that holds ``etcd`` and ``kube-apiserver``.
        directory: Where data, certificates, logs and the kubeconfig go; made if need be, never removed, and an etcd
            found there is continued. Default: a temporary directory, removed on exit, but kept after a
            `ControlPlaneError` or when the environment variable ``TRIOFORMER_KEEP_CONTROL_PLANE`` is set.
        api_server_flags: More flags for kube-apiserver, such as ``--etcd-compaction-interval=10s``; they win over ours.

    Ownership:
        The object owns exactly the processes that it started, by their process ids, and no tasks.
        Leaving stops them (SIGTERM, then SIGKILL after 5 seconds each), shielded from cancellation.
        Processes die with nobody: if this Python is itself killed with SIGKILL, they stay.

    Errors:
        `ControlPlaneError` when a program is missing, ends early, or is not ready after 60 seconds.
        ``RuntimeError`` when it is used outside its ``async with``, or entered twice.
    """

    assets: Path = attrs.field(default=None, converter=_find_assets)
    """The directory of the binaries."""
    _wanted_directory: Path | None = attrs.field(default=None, converter=_absolute, alias="directory")
    _api_server_flags: tuple[str, ...] = attrs.field(default=(), converter=_strings)
    _directory: Path | None = attrs.field(init=False, default=None)
    _etcd: Program | None = attrs.field(init=False, default=None)
    _api_server: Program | None = attrs.field(init=False, default=None)

    def __repr__(self) -> str:
        where = self._directory or "nowhere yet"
        return f"<ControlPlane of {self.assets} in {where}, running {self.process_ids or 'nothing'}>"

    @property
    def directory(self) -> Path:
        """The directory of data, certificates, logs and kubeconfig."""
        if self._directory is None:
            raise RuntimeError("the control plane is not started: use it in an async with statement")
        return self._directory

    @property
    def log_directory(self) -> Path:
        """The directory of ``etcd.log`` and ``kube-apiserver.log``; a restart appends."""
        return self.directory / "logs"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file for an administrator (client certificate, group ``system:masters``), its data inside."""
        return self.directory / "kubeconfig"

    @property
    def url(self) -> str:
        """The API server's address, such as ``https://127.0.0.1:20443``; a restart keeps it."""
        return self._running(self._api_server).url

    @property
    def etcd_url(self) -> str:
        """The address of etcd, which wants the same client certificate: ``client.crt``, ``client.key``."""
        return self._running(self._etcd).url

    @property
    def process_ids(self) -> dict[str, int]:
        """The process id of each program that runs now, by name."""
        programs = (self._etcd, self._api_server)
        return {program.name: program.pid for program in programs if program is not None and program.pid is not None}

    async def start_api_server(self) -> None:
        """Start kube-apiserver again on the same port over the same data, and wait until it is ready.

        Cancellation: leaves it not running.

        Raises:
            ControlPlaneError: It did not become ready.
            RuntimeError: It runs already.
        """
        await self._running(self._api_server).start()

    async def stop_api_server(self) -> None:
        """Send SIGTERM to kube-apiserver and wait until it has ended; nothing to do when it does not run.

        Open watches end cleanly, where `kill_api_server` tears them; what still runs after 5 seconds is killed.

        Cancellation: the signal is sent all the same, and the process may end later.
        """
        await trio.lowlevel.checkpoint()
        await self._running(self._api_server).stop()

    async def kill_api_server(self) -> None:
        """Send SIGKILL to kube-apiserver and wait until it has ended; nothing to do when it does not run."""
        await trio.lowlevel.checkpoint()
        await self._running(self._api_server).kill()

    async def start_etcd(self) -> None:
        """Start etcd again on the same ports over the same data, and wait until it and the API server are ready.

        Cancellation, Raises: as of `start_api_server`; a kube-apiserver that runs is left running.
        """
        api_server = self._running(self._api_server)
        await self._running(self._etcd).start()
        if api_server.pid is not None:
            await api_server.wait_ready()

    async def kill_etcd(self) -> None:
        """Send SIGKILL to etcd and wait until it has ended; kube-apiserver then hangs or fails until `start_etcd`."""
        await trio.lowlevel.checkpoint()
        await self._running(self._etcd).kill()

    async def __aenter__(self) -> ControlPlane:
        if self._directory is not None:
            raise RuntimeError("a ControlPlane can be entered only once")
        if missing := [name for name in ("etcd", "kube-apiserver") if not os.access(self.assets / name, os.X_OK)]:
            remedy = f"give assets= or set {ASSETS_VARIABLE} to the directory that holds them"
            raise ControlPlaneError(f"no program {' or '.join(missing)} in {self.assets}: {remedy}")
        self._directory = self._wanted_directory or Path(tempfile.mkdtemp(prefix="trioformer-control-plane-"))
        try:
            self.log_directory.mkdir(parents=True, exist_ok=True)
            certificates = issue_certificates(self._directory)
            self._etcd = await start_on_free_ports(lambda: self._make_etcd(certificates))
            self._api_server = await start_on_free_ports(lambda: self._make_api_server(certificates))
            self.kubeconfig.touch(mode=0o600)
            self.kubeconfig.write_text(yaml.safe_dump(certificates.kubeconfig(self.url), sort_keys=False))
        except BaseException as exc:
            await self._close(exc)
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(exc)

    async def _close(self, exc: BaseException | None) -> None:
        api_server, etcd = self._api_server, self._etcd
        self._api_server = self._etcd = None
        with trio.CancelScope(shield=True):
            # kube-apiserver first, since its orderly end needs etcd.
            try:
                if api_server is not None:
                    await api_server.stop()
            finally:
                if etcd is not None:
                    await etcd.stop()
            if not (self._wanted_directory or os.environ.get(KEEP_VARIABLE) or _holds_control_plane_error(exc)):
                await trio.to_thread.run_sync(shutil.rmtree, self.directory)

    def _running(self, program: Program | None) -> Program:
        if program is None:
            raise RuntimeError("the control plane is not started, or stopped: use it inside its async with statement")
        return program

    def _make_etcd(self, certificates: Certificates) -> Program:
        client_port, peer_port = free_ports(2)
        client, peer = f"https://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        values: dict[str, object] = {
            "data-dir": self.directory / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "cert-file": certificates.server_certificate,
            "key-file": certificates.server_key,
            "trusted-ca-file": certificates.authority,
            "client-cert-auth": "true",
            "unsafe-no-fsync": "true",
        }
        command = flags(self.assets / "etcd", values)
        return Program(command, client_port, ["/health"], self.directory, certificates)

    def _make_api_server(self, certificates: Certificates) -> Program:
        (port,) = free_ports(1)
        values: dict[str, object] = {
            "etcd-servers": self.etcd_url,
            "etcd-cafile": certificates.authority,
            "etcd-certfile": certificates.client_certificate,
            "etcd-keyfile": certificates.client_key,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self.directory,
            "tls-cert-file": certificates.server_certificate,
            "tls-private-key-file": certificates.server_key,
            "client-ca-file": certificates.authority,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": certificates.service_account_key,
            "service-account-signing-key-file": certificates.service_account_key,
            "service-cluster-ip-range": "10.0.0.0/24",
            "authorization-mode": "RBAC",
            "disable-admission-plugins": "ServiceAccount",
            "allow-privileged": "true",
            # Without it a single open HTTP/1.1 watch holds up SIGTERM for more than 15 seconds; so it ends at once.
            "shutdown-watch-termination-grace-period": "1s",
        }
        # /readyz does not wait for the namespace "default", which is made a moment later.
        ready = ["/readyz", "/api/v1/namespaces/default"]
        command = flags(self.assets / "kube-apiserver", values, self._api_server_flags)
        return Program(command, port, ready, self.directory, certificates)


def _holds_control_plane_error(exc: BaseException | None) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        return exc.subgroup(ControlPlaneError) is not None
    return isinstance(exc, ControlPlaneError)
