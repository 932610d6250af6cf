"""A real control plane for tests: etcd, kube-apiserver and optional programs, as child processes on loopback ports.

::

    your test ─TLS, client certificate─▶ kube-apiserver ─TLS, client certificate─▶ etcd ─▶ directory/etcd
                                              ▲   ▲
                  kube-controller-manager ────┘   └──── kwok, for nodes and kubelets              (both optional)

The programs do not notify their parent process when they are ready, so this package polls them.

kube-apiserver is started when etcd responds to ``/health``.  If kube-apiserver were started earlier, every request to
it would hang.

If another process takes a port before the program can use it, the program is started again on new ports.  Every
control plane has its own certificate authority, so another server on the same port is not mistaken for kube-apiserver.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import final

import attrs
import trio
import yaml

from ..._files import write_private
from ..._secret import Secret
from ._certificates import Certificates, issue_certificates
from ._cluster import create_nodes, make_controller_manager, make_kwok
from ._process import ControlPlaneError as ControlPlaneError
from ._process import Program, make_program, start_on_free_ports

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
    """A control plane of etcd, kube-apiserver and optional programs, which are started on entry and stopped on exit.

    ::

        async with ControlPlane(assets="bin") as control_plane:
            async with open_client(kubeconfig=control_plane.kubeconfig) as client:
                ...
                await control_plane.kill_api_server()
                await control_plane.start_api_server()

    The binaries are searched for in `assets`, in the directory ``$KUBEBUILDER_ASSETS``, or in
    ``/usr/local/kubebuilder/bin``, as in other Kubernetes test tools.

    The API server uses RBAC, does not enforce service accounts, and has no scheduler.  The control plane only stores
    objects, unless kube-controller-manager and nodes are enabled::

        async with ControlPlane(controller_manager=True, nodes=["node-1"]) as control_plane:
            ...  # a Deployment with nodeName: node-1 in its template gets pods, and kwok sets them to running

    Real processes need the real clock, so do not use ``trio.testing.MockClock``, which would skip every wait.  A
    synchronous fixture may enter the context manager in one ``trio.run`` and exit it in another.

    Args:
        assets: The directory of the binaries ``etcd`` and ``kube-apiserver``.  The option ``controller_manager`` also
            needs ``kube-controller-manager``.  The option ``nodes`` also needs ``kwok``, and its stages in
            ``kwok.yaml``.
        directory: The directory for data, certificates, logs and the kubeconfig.  The directory is created if it does
            not exist, and is not removed.  Existing etcd data in the directory is used.  The default is a temporary
            directory. It is removed on exit, unless the control plane has failed or
            ``$TRIOFORMER_KEEP_CONTROL_PLANE`` is set.
        api_server_flags: Additional flags for kube-apiserver, such as ``--etcd-compaction-interval=10s``.  These flags
            override the default flags.
        controller_manager: Whether to start kube-controller-manager, which creates the pods of Deployments and
            collects garbage, for example.
        nodes: The names of the nodes to create, which kwok makes ready.  kwok also sets the status of pods on these
            nodes to running, but runs no containers.

    Ownership:
        The object owns the processes that it started, and no tasks.  On exit, the object sends SIGTERM to each
        process, and SIGKILL after 5 seconds, shielded from cancellation.  If this Python process is killed, watchdog
        shells kill the programs, but the directory is not removed.

    Errors:
        `TrioformerError` is raised if a program is missing, ends early, or is not ready after 60 seconds.
        ``RuntimeError`` is raised if the object is used outside its ``async with`` block or entered twice.
    """

    assets: Path = attrs.field(default=None, converter=_find_assets)
    """The directory of the binaries."""
    _wanted_directory: Path | None = attrs.field(default=None, converter=_absolute, alias="directory")
    _api_server_flags: tuple[str, ...] = attrs.field(default=(), converter=_strings, alias="api_server_flags")
    _controller_manager: bool = attrs.field(default=False, alias="controller_manager")
    _nodes: tuple[str, ...] = attrs.field(default=(), converter=_strings, alias="nodes")
    _directory: Path | None = attrs.field(init=False, default=None)
    _programs: dict[str, Program] = attrs.field(init=False, factory=dict)
    """The programs by name, in the order of their start."""

    def __repr__(self) -> str:
        where = self._directory or "no directory"
        return f"<ControlPlane of {self.assets} in {where}, running {self.process_ids or 'nothing'}>"

    @property
    def directory(self) -> Path:
        """The directory for data, certificates, logs and the kubeconfig."""
        if self._directory is None:
            raise RuntimeError("the control plane has not been started: use it in an async with statement")
        return self._directory

    @property
    def log_directory(self) -> Path:
        """The directory of the log files, such as ``etcd.log``.

        When a program is restarted, it appends to its existing log file.
        """
        return self.directory / "logs"

    @property
    def kubeconfig(self) -> Path:
        """The path of a kubeconfig for an administrator in the group ``system:masters``, with embedded certificates."""
        return self.directory / "kubeconfig"

    @property
    def url(self) -> str:
        """The URL of the API server, such as ``https://127.0.0.1:20443``.

        The URL does not change when the server is restarted.
        """
        return self._program("kube-apiserver").url

    @property
    def etcd_url(self) -> str:
        """The URL of etcd, which requires the same client certificate, ``client.crt`` and ``client.key``."""
        return self._program("etcd").url

    @property
    def process_ids(self) -> dict[str, int]:
        """The process ids of the running programs, by name."""
        return {name: program.pid for name, program in self._programs.items() if program.pid is not None}

    async def start_api_server(self) -> None:
        """Start kube-apiserver again on the same port, with the same data, and wait until it is ready.

        Cancellation:
            If cancelled, kube-apiserver is stopped again.

        Raises:
            ControlPlaneError: kube-apiserver did not become ready.
            RuntimeError: kube-apiserver is already running.
        """
        await self._program("kube-apiserver").start()

    async def stop_api_server(self) -> None:
        """Send SIGTERM to kube-apiserver if it is running, and wait until it ends.

        Open watches end cleanly, unlike with `kill_api_server`.  If the process has not ended after 5 seconds, it is
        killed.

        Cancellation:
            If this method is cancelled, the signal is still sent, but the process may end later.
        """
        await trio.lowlevel.checkpoint()
        await self._program("kube-apiserver").stop()

    async def kill_api_server(self) -> None:
        """Send SIGKILL to kube-apiserver if it is running, and wait until it ends."""
        await trio.lowlevel.checkpoint()
        await self._program("kube-apiserver").kill()

    async def start_etcd(self) -> None:
        """Start etcd again on the same ports, with the same data, and wait until it is ready.

        If kube-apiserver is running, wait until it is ready too.  Cancellation and exceptions are the same as for
        `start_api_server`, but kube-apiserver is not stopped.
        """
        api_server = self._program("kube-apiserver")
        await self._program("etcd").start()
        if api_server.pid is not None:
            await api_server.wait_ready()

    async def kill_etcd(self) -> None:
        """Send SIGKILL to etcd and wait until it ends.

        Requests to kube-apiserver hang or fail until `start_etcd` is called.
        """
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
            remedy = f"pass assets= or set {ASSETS_VARIABLE} to the directory that contains them"
            raise ControlPlaneError(f"cannot find {' or '.join(missing)} in {self.assets}: {remedy}")
        if self._nodes and not (self.assets / "kwok.yaml").is_file():
            text = f"no file kwok.yaml in {self.assets}: nodes need kwok's stages, joined in this file"
            raise ControlPlaneError(text)

    async def _start_programs(self, certificates: Certificates) -> None:
        where = self.assets, self.directory, certificates
        await self._start(partial(make_program, "etcd", *where, ["/health"]))
        # /readyz does not wait for the namespace "default", which is created a moment later.
        ready, more = ["/readyz", "/api/v1/namespaces/default"], self._api_server_flags
        make_server = partial(make_program, "kube-apiserver", *where, ready, *more, etcd_url=self.etcd_url)
        await self._start(make_server)
        kubeconfig = yaml.safe_dump(certificates.kubeconfig(self.url), sort_keys=False)
        write_private(self.kubeconfig, Secret(kubeconfig.encode()))
        if self._controller_manager:
            await self._start(partial(make_controller_manager, *where))
        if self._nodes:
            await self._start(partial(make_kwok, *where))
            await create_nodes(self.kubeconfig, self._nodes)

    async def _start(self, make: Callable[[], Program]) -> None:
        program = await start_on_free_ports(make)
        self._programs[program.name] = program

    async def _close(self, exc: BaseException | None) -> None:
        with trio.CancelScope(shield=True):
            # In reverse order: kube-apiserver needs etcd for a graceful shutdown.
            async with AsyncExitStack() as stack:
                for program in self._programs.values():
                    stack.push_async_callback(program.stop)
                self._programs = {}
            if not (self._wanted_directory or os.environ.get(KEEP_VARIABLE) or _holds_control_plane_error(exc)):
                await trio.to_thread.run_sync(shutil.rmtree, self.directory)

    def _program(self, name: str) -> Program:
        if name not in self._programs:
            raise RuntimeError("the control plane is not running: use it inside its async with statement")
        return self._programs[name]


def _holds_control_plane_error(exc: BaseException | None) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        return exc.subgroup(ControlPlaneError) is not None
    return isinstance(exc, ControlPlaneError)
