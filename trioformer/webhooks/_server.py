"""The server of webhooks, which :func:`~trioformer.manager.run_controllers` starts on each replica."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from .._listeners import TLSContexts, listen, server_contexts, split_address, url_of
from .._serving import GracefulEnd, ServerLimits, serve_app
from ..client import Client
from ..models import KubernetesObject, from_dict, resource_of, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition
from ._configurations import Place
from ._install import Installer, release_key
from ._webhooks import MAX_ADMISSION, MAX_CONVERSION, Webhooks

if TYPE_CHECKING:
    from ..cache import SharedInformerFactory
    from ._replica import ReplicaCertificate
    from ._rotation import Rotation

CONNECTIONS: Final = 1_000
"""The maximum number of connections.  An API server uses one for each concurrent call, and has at most 600 requests."""
IDLE_PERIOD: Final = 180.0
"""Seconds until an idle connection is closed: twice as many as Go's clients wait, because a client that sends a request
while the server closes its connection does not repeat the request."""


@final
@attrs.define(eq=False)
class WebhookServer:
    """Serves :class:`Webhooks` over TLS.  Pass it to :func:`~trioformer.manager.run_controllers`.

    With ``certificate`` and ``key``, the certificate comes from files, for example from cert-manager, and the
    configurations from manifests.  With ``service`` and ``namespace``, the leader makes and rotates the certificate,
    and installs the webhooks.

    Raises:
        ValueError: ``bind`` is not of the form ``host:port``, ``release`` does not consist of numbers, the arguments
            name neither the files nor the Service, or kube-apiserver would not accept the Service or the URL.
        ModuleNotFoundError: ``service`` is given, and the extra ``trioformer[webhooks]`` is not installed.
    """

    webhooks: Webhooks
    """The webhooks."""
    bind: str = ":9443"
    """The address to listen on, as ``host:port``.  Use ``:port`` to listen on all interfaces."""
    certificate: str | os.PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the certificate chain of the server.

    New connections use a rotated certificate, for example from cert-manager.  Until the certificate and the key belong
    together, the previous certificate stays in use."""
    key: str | os.PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the private key of the certificate."""
    service: str | None = attrs.field(default=None, kw_only=True)
    """The name of the Service of the webhooks.  The certificate is in the Secret ``<service>-webhook``."""
    namespace: str | None = attrs.field(default=None, kw_only=True)
    """The namespace of the operator, its Service, the Secret and the Leases of the replicas."""
    port: int = attrs.field(default=443, kw_only=True)
    """The port of the Service."""
    url: str | None = attrs.field(default=None, kw_only=True)
    """The base URL that kube-apiserver uses instead of the Service, such as ``https://127.0.0.1:9443``."""
    release: str = attrs.field(default="0", kw_only=True)
    """The release of the program, such as ``1.4.2``.  A leader keeps the rules of a newer release."""
    shutdown_delay: float = attrs.field(default=3.0, kw_only=True, validator=attrs.validators.ge(0))
    """Seconds for which the server accepts calls after ``stop`` is set, until the cluster no longer sends calls to this
    replica."""
    _place: Place | None = attrs.field(default=None, init=False)
    _is_serving: bool = attrs.field(default=False, init=False)
    _replica: ReplicaCertificate | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        split_address(self.bind)
        release_key(self.release)
        has_files, has_service = (self.certificate, self.key).count(None), (self.service, self.namespace).count(None)
        if {has_files, has_service} != {0, 2}:
            raise ValueError("pass either certificate= and key=, or service= and namespace=, to WebhookServer")
        if self.service is not None:  # what only the leader would notice
            self._place = Place(service=self.service, namespace=self.namespace or "", port=self.port, url=self.url)
            import_module("._rotation", __package__)  # needs an extra

    def not_ready_reason(self) -> str:
        """Return the reason why webhooks cannot be called, or an empty string if they can; a check for ``/readyz``."""
        reason = "" if self._replica is None else self._replica.not_ready_reason()
        return reason or ("" if self._is_serving else "the webhooks are not served yet")

    async def run(
        self,
        client: Client | None = None,
        *,
        stop: trio.Event | None = None,
        shutdown_grace: float = 30.0,
        task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the webhooks until stopped or cancelled.

        Args:
            client: The client that reads the Secret.  With files, no client is needed.
            stop: An event that ends the server gracefully when it is set.  Calls under way are finished.
            shutdown_grace: How long they may take before they are cancelled, in seconds.
            task_status: Used by ``nursery.start()``, which returns the URL of the server, even if the leader has not
                made a certificate yet.

        Raises:
            ConfigError: The certificate or the key cannot be read or is not valid.
            ListenError: The server cannot listen on the address.

        Cancellation:
            Calls end immediately.
        """
        stop = trio.Event() if stop is None else stop
        end = GracefulEnd(stop, delay=self.shutdown_delay, grace=shutdown_grace)
        if self.certificate is not None and self.key is not None:
            tls = server_contexts(self.certificate, self.key, names=("WebhookServer.certificate", "WebhookServer.key"))
            await self._serve(await listen(self.bind), tls, end, task_status)
            return
        from ._replica import ReplicaCertificate  # noqa: PLC0415  # needs an extra

        listener = await listen(self.bind)
        task_status.started(url_of(listener, "https"))
        assert client is not None
        assert self._place is not None
        self._replica = ReplicaCertificate(client, self._place)
        with listener:
            async with trio.open_nursery() as nursery:
                # The announcement ends after the server, because the leader must wait for this replica until then.
                nursery.start_soon(self._stop_waiting, stop, nursery.cancel_scope)
                await nursery.start(self._replica.run)
                await self._serve(listener, self._replica.context, end, trio.TASK_STATUS_IGNORED)
                nursery.cancel_scope.cancel()

    async def _stop_waiting(self, stop: trio.Event, scope: trio.CancelScope) -> None:
        await stop.wait()
        if not self._is_serving:
            scope.cancel()

    async def _serve(
        self, listener: socket.socket, tls: TLSContexts, end: GracefulEnd, task_status: trio.TaskStatus[str]
    ) -> None:
        size = MAX_CONVERSION if self.webhooks.convert else MAX_ADMISSION
        limits = ServerLimits(connections=CONNECTIONS, body_size=size, idle_period=IDLE_PERIOD)
        self._is_serving = True
        try:
            await serve_app(self.webhooks, listener, limits=limits, tls=tls, end=end, task_status=task_status)
        finally:
            self._is_serving = False

    # --- the leader ---------------------------------------------------------------------------------------------------

    def rotation(self, client: Client, factory: SharedInformerFactory, check_leader: Callable[[], None]) -> Rotation:
        """Return what only the leader runs if the certificate is not in files."""
        from ._rotation import Rotation  # noqa: PLC0415  # needs an extra

        assert self._place is not None
        where: dict[str, Any] = attrs.asdict(self._place)
        wanted: list[KubernetesObject] = [*self.webhooks.configurations(**where)]
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        for hub in self.webhooks.convert:
            conversion = to_dict(self.webhooks.conversion(hub, **where))
            members = {**head, "metadata": {"name": str(resource_of(hub))}, "spec": {"conversion": conversion}}
            wanted.append(from_dict(CustomResourceDefinition, members))
        installer = Installer(client, self._place, self.release, wanted, check_leader)
        found = Rotation(client, self._place, installer)
        found.watch(factory)
        return found
