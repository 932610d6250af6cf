"""A Lease that is used as a lock: its holder, its times and its duration.

Source: client-go's ``leaselock.go`` and ``interface.go`` in ``tools/leaderelection/resourcelock``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, final

import attrs

from ..client import Api
from ..client._internal import obtain_credential, plugin_of
from ..errors import DecodeError, NotFoundError
from ..models import ObjectMeta
from ..models._internal import EMPTY_MAP
from ..models.coordination_v1 import Lease, LeaseSpec
from ..watchtools import resuming_watch
from ..watchtools._internal import ResumingWatch

MAX_INT32: Final = 2**31 - 1
"""The largest value that the duration and the number of transitions of a Lease can have."""


@final
@attrs.frozen(kw_only=True)
class LeaseRecord:
    """The fields of a Lease that its holder writes.

    Candidates compare the times only for equality, never with a clock.
    """

    holder_identity: str = ""
    """The identity of the holder, or an empty string if the Lease has no holder."""
    lease_duration_seconds: int = 0
    """Seconds that other candidates wait after each change before they acquire the Lease; 0 if the Lease has no
    duration."""
    acquire_time: datetime | None = None
    """The time when the holder acquired the Lease, by the holder's clock."""
    renew_time: datetime | None = None
    """The time when the holder last renewed the Lease, by the holder's clock."""
    lease_transitions: int = 0
    """How often the holder has changed."""

    @classmethod
    def of(cls, lease: Lease) -> LeaseRecord:
        """Return the record of a Lease.  Absent and negative values are replaced by the defaults.

        Raises:
            DecodeError: A field of the Lease has the wrong type.
        """
        spec = lease.spec
        return cls(
            holder_identity=spec.holder_identity or "",
            lease_duration_seconds=_int32(spec.lease_duration_seconds),
            acquire_time=spec.acquire_time,
            renew_time=spec.renew_time,
            lease_transitions=_int32(spec.lease_transitions),
        )

    def written_to(self, spec: LeaseSpec) -> LeaseSpec:
        """Return a copy of ``spec`` with the fields of this record."""
        return spec.evolve(
            holder_identity=self.holder_identity,
            lease_duration_seconds=self.lease_duration_seconds,
            acquire_time=self.acquire_time,
            renew_time=self.renew_time,
            lease_transitions=self.lease_transitions,
        )


def _int32(value: int | None) -> int:
    """Limit a number to the range that kube-apiserver accepts, from 0 to ``MAX_INT32``."""
    return min(max(value or 0, 0), MAX_INT32)


@final
@attrs.define(eq=False, repr=False)
class LeaseLock:
    """A lock that reads and writes one Lease.

    Each update sends the Lease's resourceVersion, so one of two concurrent updates fails with a conflict.
    """

    _api: Api[Lease]
    name: str
    _labels: Mapping[str, str]
    annotations: Mapping[str, str] = attrs.field(default=EMPTY_MAP, init=False)
    """Annotations to set with the next write.  Other annotations of the Lease are kept."""
    _lease: Lease | None = attrs.field(default=None, init=False)

    def __str__(self) -> str:
        return f"{self._api.namespace}/{self.name}"

    @property
    def is_known(self) -> bool:
        """Whether the Lease existed when it was last read or written, and can be updated without another read."""
        return self._lease is not None

    @property
    def resource_version(self) -> str:
        """The resourceVersion of the Lease when it was last read or written, or an empty string if it did not exist."""
        return "" if self._lease is None else self._lease.resource_version

    @property
    def plugin(self) -> str:
        """The command of the client's credential plugin, or an empty string if the client has none."""
        return plugin_of(self._api)

    async def obtain_credential(self) -> None:
        """Run the client's credential plugin if a new credential is needed.

        If no credential is needed, this method is not a checkpoint.
        """
        await obtain_credential(self._api)

    def watch(
        self, resource_version: str, *, on_retry: Callable[[Exception], None]
    ) -> AbstractAsyncContextManager[ResumingWatch[Lease]]:
        """Watch this Lease by name, so that a role can restrict access to this one Lease.

        Objects that cannot be decoded are skipped.
        """
        return resuming_watch(
            self._api,
            resource_version=resource_version,
            field_selector={"metadata.name": self.name},
            on_retry=on_retry,
            on_undecodable=lambda _: None,
        )

    async def get(self) -> LeaseRecord | None:
        """Read the Lease, and return its record, or None if the Lease does not exist."""
        try:
            lease = await self._api.get(self.name)
        except NotFoundError as error:
            if error.is_unexpected_server_error:
                raise  # a proxy's page; the Lease may exist and be held
            self._lease = None
            return None
        try:
            record = LeaseRecord.of(lease)
        except DecodeError as exc:
            raise DecodeError(f"lease {self}: {exc}; correct or delete the lease") from exc
        self._lease = lease
        return record

    async def create(self, record: LeaseRecord) -> None:
        """Create the Lease.  If the Lease already exists, the server responds with a conflict."""
        metadata = ObjectMeta(
            name=self.name, namespace=self._api.namespace, labels=self._labels, annotations=self.annotations
        )
        self._lease = await self._api.create(Lease(metadata=metadata, spec=record.written_to(LeaseSpec())))

    async def update(self, record: LeaseRecord) -> None:
        """Write this record to the Lease that was last read or written.  The other fields of the Lease are kept."""
        lease = self._lease
        if lease is None:
            raise RuntimeError(f"lease {self} cannot be updated before it has been read; call get() or create() first")
        metadata = lease.metadata
        if any(metadata.labels.get(key) != value for key, value in self._labels.items()):
            metadata = metadata.evolve(labels={**metadata.labels, **self._labels})
        if any(metadata.annotations.get(key) != value for key, value in self.annotations.items()):
            metadata = metadata.evolve(annotations={**metadata.annotations, **self.annotations})
        self._lease = await self._api.replace(lease.evolve(metadata=metadata, spec=record.written_to(lease.spec)))
