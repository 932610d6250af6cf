"""The certificate of one replica, which follows the Secret that the leader writes."""

from __future__ import annotations

import logging
import ssl
from typing import final

import attrs
import trio

from .. import _secret
from .._certificates import CertificateRefusedError
from .._listeners import pem_context
from ..cache import SharedInformer, SharedInformerFactory
from ..client import Client
from ..models.core_v1 import Secret
from ._announcements import RENEW_PERIOD, RETRY_PERIOD, Announcer
from ._configurations import Place
from ._secret_states import CERTIFICATE, KEY, fingerprint

logger = logging.getLogger("trioformer.webhooks")

WITHDRAW_PERIOD = 2.0
"""How long the end of a replica may take to delete its Lease, in seconds."""


@final
@attrs.define(eq=False)
class ReplicaCertificate:
    """The certificate that this replica serves.

    The certificate in memory stays in use if the Secret is deleted or is not valid.
    """

    client: Client
    place: Place
    _context: ssl.SSLContext | None = attrs.field(default=None, init=False, repr=False)
    _fingerprint: str = attrs.field(default="", init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    _announcer: Announcer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._announcer = Announcer(self.client, self.place)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection."""
        assert self._context is not None  # run() has started
        return self._context

    def not_ready_reason(self) -> str:
        """Return the reason why this replica must not be called, or an empty string."""
        if self._context is None:
            return f"secret {self.place.namespace}/{self.place.secret} has no certificate yet; the leader makes it"
        # Otherwise the leader may drop the CA of the certificate that this replica serves.
        return "" if self._announcer.is_live else "the certificate of this replica is not announced by a lease"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the Secret until cancelled; ``nursery.start()`` returns when there is a certificate to serve."""
        factory = SharedInformerFactory(self.client, namespace=self.place.namespace)
        informer = factory.informer(Secret, field_selector={"metadata.name": self.place.secret})
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(factory.run)
                nursery.start_soon(self._follow, informer)
                await self._changed.wait()
                await nursery.start(self._announce)
                task_status.started()
        finally:
            with trio.move_on_after(WITHDRAW_PERIOD, shield=True):
                await self._announcer.withdraw()

    async def _follow(self, informer: SharedInformer[Secret]) -> None:
        with informer.subscribe() as changes:
            async for _ in changes:
                for secret in informer.lister.list():
                    self._take(secret)

    def _take(self, secret: Secret) -> None:
        """Serve the certificate of a Secret, if it is another one and valid."""
        certificate, key = secret.data.get(CERTIFICATE, b""), _secret.Secret(secret.data.get(KEY, b""))
        found = fingerprint(certificate)
        if found == self._fingerprint:
            return
        try:
            self._context = pem_context(_secret.Secret(certificate), key)
        except CertificateRefusedError as exc:
            text = "secret %s/%s: %s %s; keeping the previous certificate"
            logger.warning(text, self.place.namespace, secret.name, KEY if exc.is_key else CERTIFICATE, exc)
            return
        self._fingerprint = found
        self._changed.set()

    async def _announce(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Announce the certificate when it has changed, and renew the Lease."""
        has_started = False
        while True:
            self._changed = trio.Event()
            was_live = self._announcer.is_live
            is_announced = await self._announcer.announce(self._fingerprint)
            if is_announced and not was_live:
                # The leader may have changed the Secret since this replica has read it; see _announcements.py.
                secret = await self.client.api(Secret, namespace=self.place.namespace).get_or_none(self.place.secret)
                if secret is not None:
                    self._take(secret)
            if is_announced and not has_started:
                has_started = True
                task_status.started()
            with trio.move_on_after(RENEW_PERIOD if is_announced else RETRY_PERIOD):
                await self._changed.wait()
