"""A Lease as a lock: who holds it, since when, and for how long.

Source: client-go ``tools/leaderelection/resourcelock/leaselock.go`` and ``interface.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import final

import attrs

from ..client import Api
from ..errors import DecodeError, NotFoundError
from ..models import ObjectMeta
from ..models.coordination_v1 import Lease, LeaseSpec


@final
@attrs.frozen(kw_only=True)
class LeaseRecord:
    """What a Lease says of its holder; the times are the holder's own, and are only ever compared for change."""

    holder_identity: str = ""
    """Who holds it; empty for nobody."""
    lease_duration_seconds: int = 0
    """For how long after each change the others leave it alone; 0 when the Lease does not say."""
    acquire_time: datetime | None = None
    """When the holder got it, by the holder's clock."""
    renew_time: datetime | None = None
    """When the holder renewed it last, by the holder's clock."""
    lease_transitions: int = 0
    """How often it went to another holder."""

    @classmethod
    def of(cls, lease: Lease) -> LeaseRecord:
        """Read a Lease; what is absent, or cannot be, reads as nothing.

        Raises:
            DecodeError: A field is of a wrong type.
        """
        spec = lease.spec
        return cls(
            holder_identity=spec.holder_identity or "",
            lease_duration_seconds=max(spec.lease_duration_seconds or 0, 0),
            acquire_time=spec.acquire_time,
            renew_time=spec.renew_time,
            lease_transitions=max(spec.lease_transitions or 0, 0),
        )

    def written_to(self, spec: LeaseSpec) -> LeaseSpec:
        """Return the spec with these fields, and its others as they are."""
        return attrs.evolve(
            spec,
            holder_identity=self.holder_identity,
            lease_duration_seconds=self.lease_duration_seconds,
            acquire_time=self.acquire_time,
            renew_time=self.renew_time,
            lease_transitions=self.lease_transitions,
        )


@final
@attrs.define(eq=False, repr=False)
class LeaseLock:
    """One Lease, read and written under its resourceVersion: of two who write at once, one gets a conflict."""

    _api: Api[Lease]
    name: str
    _labels: Mapping[str, str]
    _lease: Lease | None = attrs.field(default=None, init=False)

    def __str__(self) -> str:
        return f"{self._api.namespace}/{self.name}"

    @property
    def is_known(self) -> bool:
        """Whether there was a Lease when it was last read or written, so that it can be updated without reading."""
        return self._lease is not None

    async def get(self) -> LeaseRecord | None:
        """Read the Lease; None if there is none."""
        try:
            lease = await self._api.get(self.name)
        except NotFoundError:
            self._lease = None
            return None
        try:
            record = LeaseRecord.of(lease)
        except DecodeError as exc:
            raise DecodeError(f"lease {self}: {exc}; correct it, or delete it") from exc
        self._lease = lease
        return record

    async def create(self, record: LeaseRecord) -> None:
        """Create the Lease; a conflict says that somebody else has."""
        metadata = ObjectMeta(name=self.name, namespace=self._api.namespace, labels=self._labels)
        self._lease = await self._api.create(Lease(metadata=metadata, spec=record.written_to(LeaseSpec())))

    async def update(self, record: LeaseRecord) -> None:
        """Write the Lease as it was last read or written, with another record.

        Whatever else is in it stays.
        """
        lease = self._lease
        if lease is None:
            raise RuntimeError(f"lease {self} was not read, so it cannot be updated; get() or create() it first")
        metadata = lease.metadata
        if any(metadata.labels.get(key) != value for key, value in self._labels.items()):
            metadata = attrs.evolve(metadata, labels={**metadata.labels, **self._labels})
        self._lease = await self._api.replace(
            attrs.evolve(lease, metadata=metadata, spec=record.written_to(lease.spec))
        )
