"""A Lease as a lock: its holder, its times and its duration.

Source: client-go ``tools/leaderelection/resourcelock/leaselock.go`` and ``interface.go``.
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
from ..models.coordination_v1 import Lease, LeaseSpec
from ..watchtools import resuming_watch
from ..watchtools._internal import ResumingWatch

MAX_INT32: Final = 2**31 - 1
"""The largest duration and number of transitions of a Lease."""


@final
@attrs.frozen(kw_only=True)
class LeaseRecord:
    """The holder's fields of a Lease.  Candidates compare its times for equality only, never with a clock."""

    holder_identity: str = ""
    """Identity of the holder; empty without one."""
    lease_duration_seconds: int = 0
    """Seconds after each change in which other candidates do not acquire it; 0 if the Lease has no duration."""
    acquire_time: datetime | None = None
    """When the holder acquired it, by the holder's clock."""
    renew_time: datetime | None = None
    """When the holder last renewed it, by the holder's clock."""
    lease_transitions: int = 0
    """How often the holder has changed."""

    @classmethod
    def of(cls, lease: Lease) -> LeaseRecord:
        """Read a Lease; absent and negative values become the defaults.

        Raises:
            DecodeError: A field has the wrong type.
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
        """Return a copy of the spec with these fields set."""
        return spec.evolve(
            holder_identity=self.holder_identity,
            lease_duration_seconds=self.lease_duration_seconds,
            acquire_time=self.acquire_time,
            renew_time=self.renew_time,
            lease_transitions=self.lease_transitions,
        )


def _int32(value: int | None) -> int:
    """Return a number that kube-apiserver accepts, also for one of 400 digits, which does not fit into a float."""
    return min(max(value or 0, 0), MAX_INT32)


@final
@attrs.define(eq=False, repr=False)
class LeaseLock:
    """Reads and writes one Lease; writes carry its resourceVersion, so one of two concurrent writes gets a conflict."""

    _api: Api[Lease]
    name: str
    _labels: Mapping[str, str]
    _lease: Lease | None = attrs.field(default=None, init=False)

    def __str__(self) -> str:
        return f"{self._api.namespace}/{self.name}"

    @property
    def is_known(self) -> bool:
        """Whether the Lease existed when it was last read or written; if so, it can be updated without a read."""
        return self._lease is not None

    @property
    def resource_version(self) -> str:
        """Version of the Lease that was last read or written; empty if it did not exist."""
        return "" if self._lease is None else self._lease.resource_version

    @property
    def plugin(self) -> str:
        """The command of the client's credential plugin; empty without one."""
        return plugin_of(self._api)

    async def obtain_credential(self) -> None:
        """Run the credential plugin if needed; otherwise this is not a checkpoint."""
        await obtain_credential(self._api)

    def watch(
        self, resource_version: str, *, on_retry: Callable[[Exception], None]
    ) -> AbstractAsyncContextManager[ResumingWatch[Lease]]:
        """Watch only this Lease, so a role may be limited to its name; skip objects that cannot be decoded."""
        return resuming_watch(
            self._api,
            resource_version=resource_version,
            field_selector={"metadata.name": self.name},
            on_retry=on_retry,
            on_undecodable=lambda _: None,
        )

    async def get(self) -> LeaseRecord | None:
        """Read the Lease; None if it does not exist."""
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
        """Create the Lease; a conflict means that it exists."""
        metadata = ObjectMeta(name=self.name, namespace=self._api.namespace, labels=self._labels)
        self._lease = await self._api.create(Lease(metadata=metadata, spec=record.written_to(LeaseSpec())))

    async def update(self, record: LeaseRecord) -> None:
        """Replace the record in the Lease that was last read or written; its other fields are kept."""
        lease = self._lease
        if lease is None:
            raise RuntimeError(f"lease {self} cannot be updated before it was read; call get() or create() first")
        metadata = lease.metadata
        if any(metadata.labels.get(key) != value for key, value in self._labels.items()):
            metadata = metadata.evolve(labels={**metadata.labels, **self._labels})
        self._lease = await self._api.replace(lease.evolve(metadata=metadata, spec=record.written_to(lease.spec)))
