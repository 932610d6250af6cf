"""The server of webhooks, which :func:`~trioformer.manager.run_controllers` starts on each replica."""

from __future__ import annotations

from os import PathLike
from typing import Final, final

import attrs
import trio

from .._listeners import TLSContexts, listen, server_contexts, split_address
from .._serving import GracefulEnd, ServerLimits, serve_app
from ._webhooks import Webhooks, body_limit

CONNECTIONS: Final = 1_000
"""The maximum number of connections.  An API server uses one for each concurrent call, and has at most 600 requests."""
IDLE_PERIOD: Final = 180.0
"""Seconds until an idle connection is closed: twice as many as Go's clients wait, because a client that sends a request
while the server closes its connection does not repeat the request."""


@final
@attrs.define(eq=False)
class WebhookServer:
    """Serves :class:`Webhooks` over TLS.  Pass it to :func:`~trioformer.manager.run_controllers`.

    Raises:
        ValueError: ``bind`` is not of the form ``host:port``.
    """

    webhooks: Webhooks
    """The webhooks."""
    bind: str = ":9443"
    """The address to listen on, as ``host:port``.  Use ``:port`` to listen on all interfaces."""
    certificate: str | PathLike[str] = attrs.field(kw_only=True)
    """A PEM file with the certificate chain of the server.

    New connections use a rotated certificate, for example from cert-manager.  Until the certificate and the key belong
    together, the previous certificate stays in use."""
    key: str | PathLike[str] = attrs.field(kw_only=True)
    """A PEM file with the private key of the certificate."""
    shutdown_delay: float = attrs.field(default=3.0, kw_only=True, validator=attrs.validators.ge(0))
    """Seconds for which the server accepts calls after ``stop`` is set, until the cluster no longer sends calls to this
    replica."""
    _is_serving: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        split_address(self.bind)

    def not_ready_reason(self) -> str:
        """Return the reason why webhooks cannot be called, or an empty string if they can; a check for ``/readyz``."""
        return "" if self._is_serving else "the webhooks are not served yet"

    async def run(
        self,
        *,
        stop: trio.Event | None = None,
        shutdown_grace: float = 30.0,
        task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the webhooks until stopped or cancelled.

        Args:
            stop: An event that ends the server gracefully when it is set.  Calls under way are finished.
            shutdown_grace: How long they may take before they are cancelled, in seconds.
            task_status: Used by ``nursery.start()``, which returns the URL of the server.

        Raises:
            ConfigError: The certificate or the key cannot be read or is not valid.
            ListenError: The server cannot listen on the address.

        Cancellation:
            Calls end immediately.
        """
        tls = self._contexts()
        listener = await listen(self.bind)
        end = GracefulEnd(trio.Event() if stop is None else stop, delay=self.shutdown_delay, grace=shutdown_grace)
        limits = ServerLimits(connections=CONNECTIONS, body_size=body_limit(self.webhooks), idle_period=IDLE_PERIOD)
        self._is_serving = True
        try:
            await serve_app(self.webhooks, listener, limits=limits, tls=tls, end=end, task_status=task_status)
        finally:
            self._is_serving = False

    def _contexts(self) -> TLSContexts:
        """Return the function that gives the TLS context for a new connection."""
        return server_contexts(self.certificate, self.key, names=("WebhookServer.certificate", "WebhookServer.key"))
