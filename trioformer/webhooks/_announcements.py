"""Announcements of replicas: a Lease for each, with the fingerprint of the certificate that the replica serves.

The problem: the leader may drop the old CA only when no replica serves a certificate of it, and replicas come, go and
die at any time.  So a replica announces its certificate before it counts as ready, and then reads the Secret again:

- If the announcement was written before the leader lists the Leases, the leader waits for this replica.
- Otherwise, the replica reads the Secret after the leader has changed it, and serves the new certificate.

A Lease that is not renewed for its duration belongs to a dead replica.  The leader measures the duration on its own
clock from when it has seen the last renewal, as in a leader election, because the clocks of machines differ.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, log_failure
from .._surroundings import host_name, new_uuid, wall_time
from ..client import Api, Client
from ..errors import NotFoundError
from ..models import ObjectMeta
from ..models.coordination_v1 import Lease, LeaseSpec
from ._configurations import Place

logger = logging.getLogger("trioformer.webhooks")

SERVICE: Final = "webhooks.trioformer/service"
"""The label of a Lease with the name of the Service."""
FINGERPRINT: Final = "webhooks.trioformer/fingerprint"
"""The annotation of a Lease with the fingerprint of the certificate that the replica serves."""
DURATION: Final = 60
"""The seconds without a renewal after which a replica counts as dead."""
RENEW_PERIOD: Final = 15.0
"""The seconds between two renewals."""
RETRY_PERIOD: Final = 2.0
"""The seconds after a renewal that failed."""


@final
@attrs.define(eq=False)
class Announcer:
    """Announces the certificate of this replica."""

    _client: Client
    _place: Place
    _name: str = attrs.field(init=False)
    announced_at: float = attrs.field(default=-math.inf, init=False)
    """When the last announcement was sent, on trio's clock."""

    def __attrs_post_init__(self) -> None:
        self._name = f"{self._place.secret}-{new_uuid()[:8]}"

    @property
    def is_live(self) -> bool:
        """Whether the leader waits for this replica."""
        return trio.current_time() < self.announced_at + DURATION

    async def announce(self, fingerprint: str) -> bool:
        """Write the Lease, and return whether the server has stored it.  A failure is logged."""
        sent_at = trio.current_time()
        labels, annotations = {SERVICE: self._place.service}, {FINGERPRINT: fingerprint}
        metadata = ObjectMeta(name=self._name, namespace=self._place.namespace, labels=labels, annotations=annotations)
        renewed = datetime.fromtimestamp(wall_time(), UTC)
        spec = LeaseSpec(holder_identity=host_name(), lease_duration_seconds=DURATION, renew_time=renewed)
        try:
            await self._client.apply(Lease(metadata=metadata, spec=spec), field_manager=self._place.service, force=True)
        except REQUEST_ERRORS as exc:
            log_failure(logger, exc, "the certificate of this replica cannot be announced: ")
            return False
        self.announced_at = sent_at
        return True

    async def withdraw(self) -> None:
        """Delete the Lease, because this replica ends.  A failure does not matter, because the Lease expires."""
        try:
            await self._client.api(Lease, namespace=self._place.namespace).delete(self._name)
        except REQUEST_ERRORS as exc:
            logger.debug("lease %s/%s was not deleted: %s", self._place.namespace, self._name, exc)


@final
@attrs.frozen
class LiveReplica:
    """The announcement of a replica that may be alive."""

    fingerprint: str
    expires_at: float
    """When the replica counts as dead unless it renews its Lease, on trio's clock."""


@final
@attrs.define(eq=False)
class Announcements:
    """The announcements of all replicas, as the leader sees them."""

    _leases: Api[Lease]
    _service: str
    _seen: dict[str, tuple[str, float]] = attrs.field(factory=dict, init=False)
    """The resourceVersion of each Lease, and when it was seen first."""

    async def live(self) -> list[LiveReplica]:
        """List the Leases on the server, and delete those of dead replicas.

        Raises:
            ConflictError: A replica that seemed dead has come back at the same time.
        """
        found: list[LiveReplica] = []
        seen: dict[str, tuple[str, float]] = {}
        for lease in await self._leases.list(label_selector={SERVICE: self._service}):
            now = trio.current_time()
            version, seen_at = self._seen.get(lease.name, ("", now))
            seen[lease.name] = lease.resource_version, seen_at if version == lease.resource_version else now
            expires_at = seen[lease.name][1] + (lease.spec.lease_duration_seconds or DURATION)
            if now < expires_at:
                found.append(LiveReplica(lease.metadata.annotations.get(FINGERPRINT, ""), expires_at))
                continue
            with suppress(NotFoundError):
                await self._leases.delete(lease.name, resource_version=lease.resource_version)
        self._seen = seen
        return found
