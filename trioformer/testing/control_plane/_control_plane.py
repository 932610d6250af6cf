"""A real control plane for tests: etcd, kube-apiserver and more as child processes on loopback.

::

    your test ─TLS, client certificate─▶ kube-apiserver ─TLS, client certificate─▶ etcd ─▶ directory/etcd
                                              ▲   ▲
                  kube-controller-manager ────┘   └──── kwok, for nodes and kubelets              (both if asked for)

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
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import final

import attrs
import trio
import yaml

from ._certificates import Certificates, issue_certificates
from ._cluster import create_nodes, make_controller_manager, make_kwok
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
    """etcd and kube-apiserver, and more if asked for, started from binaries on entry and stopped on exit.

    ::

        async with ControlPlane(assets="bin") as control_plane:
            async with open_client(kubeconfig=control_plane.kubeconfig) as client:
                ...
                await control_plane.kill_api_server()
                await control_plane.start_api_server()

    The programs are found as other Kubernetes test kits find them: in `assets`, else in the directory that the
    environment variable ``KUBEBUILDER_ASSETS`` names, else in ``/usr/local/kubebuilder/bin``.
    Authorization is RBAC, service account admission is off; no scheduler runs.
    Objects are stored and nothing acts on them, unless kube-controller-manager and nodes are asked for::

        async with ControlPlane(controller_manager=True, nodes=["node-1"]) as control_plane:
            ...  # a Deployment with nodeName: node-1 in its template gets pods that run, as kwok has it

    Real processes need the real clock: not under ``trio.testing.MockClock``, whose jumps would end every wait.
    Nothing here is bound to one ``trio.run``, so a synchronous fixture may enter in one and leave in another.

    Args:
        assets: The directory that holds ``etcd`` and ``kube-apiserver``; also ``kube-controller-manager``, and ``kwok``
            with its stages in ``kwok.yaml``, when these are asked for.
        directory: Where data, certificates, logs and the kubeconfig go; made if need be, never removed, and an etcd
            found there is continued. Default: a temporary directory, removed on exit, but kept after a
            `ControlPlaneError` or when the environment variable ``TRIOFORMER_KEEP_CONTROL_PLANE`` is set.
        api_server_flags: More flags for kube-apiserver, such as ``--etcd-compaction-interval=10s``; they win over ours.
        controller_manager: Whether to start kube-controller-manager, which makes pods of Deployments, deletes what the
            deleted owned, and so on.
        nodes: The names of nodes, to be created and made ready by kwok, which then also says that the pods bound to
            them run; nothing of a pod really does.

    Ownership:
        The object owns exactly the processes that it started, by their process ids, and no tasks.
        Leaving stops them (SIGTERM, then SIGKILL after 5 seconds each), shielded from cancellation.
        When this Python is itself killed, a shell beside each of them kills it; the directory stays.

    Errors:
        `ControlPlaneError` when a program is missing, ends early, or is not ready after 60 seconds.
        ``RuntimeError`` when it is used outside its ``async with``, or entered twice.
    """

    assets: Path = attrs.field(default=None, converter=_find_assets)
    """The directory of the binaries."""
    _wanted_directory: Path | None = attrs.field(default=None, converter=_absolute, alias="directory")
    _api_server_flags: tuple[str, ...] = attrs.field(default=(), converter=_strings, alias="api_server_flags")
    _controller_manager: bool = attrs.field(default=False, alias="controller_manager")
    _nodes: tuple[str, ...] = attrs.field(default=(), converter=_strings, alias="nodes")
    _directory: Path | None = attrs.field(init=False, default=None)
    _programs: dict[str, Program] = attrs.field(init=False, factory=dict)
    """By name, in the order of their start."""

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
        """The directory of ``etcd.log``, ``kube-apiserver.log`` and so on; a restart appends."""
        return self.directory / "logs"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file for an administrator (client certificate, group ``system:masters``), its data inside."""
        return self.directory / "kubeconfig"

    @property
    def url(self) -> str:
        """The API server's address, such as ``https://127.0.0.1:20443``; a restart keeps it."""
        return self._program("kube-apiserver").url

    @property
    def etcd_url(self) -> str:
        """The address of etcd, which wants the same client certificate: ``client.crt``, ``client.key``."""
        return self._program("etcd").url

    @property
    def process_ids(self) -> dict[str, int]:
        """The process id of each program that runs now, by name."""
        return {name: program.pid for name, program in self._programs.items() if program.pid is not None}

    async def start_api_server(self) -> None:
        """Start kube-apiserver again on the same port over the same data, and wait until it is ready.

        Cancellation: leaves it not running.

        Raises:
            ControlPlaneError: It did not become ready.
            RuntimeError: It runs already.
        """
        await self._program("kube-apiserver").start()

    async def stop_api_server(self) -> None:
        """Send SIGTERM to kube-apiserver and wait until it has ended; nothing to do when it does not run.

        Open watches end cleanly, where `kill_api_server` tears them; what still runs after 5 seconds is killed.

        Cancellation: the signal is sent all the same, and the process may end later.
        """
        await trio.lowlevel.checkpoint()
        await self._program("kube-apiserver").stop()

    async def kill_api_server(self) -> None:
        """Send SIGKILL to kube-apiserver and wait until it has ended; nothing to do when it does not run."""
        await trio.lowlevel.checkpoint()
        await self._program("kube-apiserver").kill()

    async def start_etcd(self) -> None:
        """Start etcd again on the same ports over the same data, and wait until it and the API server are ready.

        Cancellation, Raises: as of `start_api_server`; a kube-apiserver that runs is left running.
        """
        api_server = self._program("kube-apiserver")
        await self._program("etcd").start()
        if api_server.pid is not None:
            await api_server.wait_ready()

    async def kill_etcd(self) -> None:
        """Send SIGKILL to etcd and wait until it has ended; kube-apiserver then hangs or fails until `start_etcd`."""
        await trio.lowlevel.checkpoint()
        await self._program("etcd").kill()

    async def __aenter__(self) -> ControlPlane:
        if self._directory is not None:
            raise RuntimeError("a ControlPlane can be entered only once")
        self._check_assets()
        self._directory = self._wanted_directory or Path(tempfile.mkdtemp(prefix="trioformer-control-plane-"))
        try:
            self.log_directory.mkdir(parents=True, exist_ok=True)
            await self._start_programs(issue_certificates(self._directory))
        except BaseException as exc:
            await self._close(exc)
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(exc)

    def _check_assets(self) -> None:
        wanted = ["etcd", "kube-apiserver"]
        if self._controller_manager:
            wanted.append("kube-controller-manager")
        if self._nodes:
            wanted.append("kwok")
        if missing := [name for name in wanted if not os.access(self.assets / name, os.X_OK)]:
            remedy = f"give assets= or set {ASSETS_VARIABLE} to the directory that holds them"
            raise ControlPlaneError(f"no program {' or '.join(missing)} in {self.assets}: {remedy}")

    async def _start_programs(self, certificates: Certificates) -> None:
        await self._start(lambda: self._make_etcd(certificates))
        await self._start(lambda: self._make_api_server(certificates))
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(certificates.kubeconfig(self.url), sort_keys=False))
        if self._controller_manager:
            await self._start(lambda: make_controller_manager(self.assets, self.directory, certificates))
        if self._nodes:
            await self._start(lambda: make_kwok(self.assets, self.directory, certificates))
            await create_nodes(self.kubeconfig, self._nodes)

    async def _start(self, make: Callable[[], Program]) -> None:
        program = await start_on_free_ports(make)
        self._programs[program.name] = program

    async def _close(self, exc: BaseException | None) -> None:
        with trio.CancelScope(shield=True):
            # The last one first: an orderly end of kube-apiserver needs etcd.
            async with AsyncExitStack() as stack:
                for program in self._programs.values():
                    stack.push_async_callback(program.stop)
                self._programs = {}
            if not (self._wanted_directory or os.environ.get(KEEP_VARIABLE) or _holds_control_plane_error(exc)):
                await trio.to_thread.run_sync(shutil.rmtree, self.directory)

    def _program(self, name: str) -> Program:
        if name not in self._programs:
            raise RuntimeError("the control plane is not started, or stopped: use it inside its async with statement")
        return self._programs[name]

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
