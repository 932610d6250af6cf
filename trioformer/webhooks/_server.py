"""The server of webhooks, which is started by :func:`~trioformer.manager.run_controllers`."""

from __future__ import annotations

from os import PathLike
from typing import final

import attrs

from .._listeners import split_address
from ._webhooks import Webhooks


@final
@attrs.frozen
class WebhookServer:
    """Serves :class:`Webhooks` over TLS, on each replica.

    Raises:
        ValueError: ``bind`` is not of the form ``host:port``.
    """

    webhooks: Webhooks
    """The webhooks."""
    bind: str = "0.0.0.0:9443"
    """The address to listen on, as ``host:port``."""
    certificate: str | PathLike[str] = attrs.field(kw_only=True)
    """A PEM file with the certificate chain of the server.  The file is read again when it changes, as cert-manager and
    a mounted Secret do."""
    key: str | PathLike[str] = attrs.field(kw_only=True)
    """A PEM file with the private key of the certificate."""

    def __attrs_post_init__(self) -> None:
        split_address(self.bind)
