"""What waits in a listener's buffer: notifications, and batches of them that all listeners share."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ...models import KubernetesObject
from ._notifications import Added, Notification, Updated

T = TypeVar("T", bound=KubernetesObject)


class BatchKind(enum.Enum):
    """The origin of a batch."""

    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


@final
@attrs.frozen
class SharedBatch(Generic[T]):
    """Notifications that all listeners share: the objects of an initial list or a resync, or a relist's differences."""

    kind: BatchKind
    objects: Sequence[T] = ()
    changes: Sequence[Notification[T]] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.changes)

    def notifications(self) -> Iterator[Notification[T]]:
        """Create the notifications one by one, as they are taken."""
        if self.kind is BatchKind.INITIAL:
            return (Added(obj, is_initial=True) for obj in self.objects)
        if self.kind is BatchKind.RESYNC:
            return (Updated(obj, obj) for obj in self.objects)
        return iter(self.changes)


@final
@attrs.frozen
class DueResync:
    """The place of a resync whose objects are read from the cache when the listener reaches it."""

    changed: frozenset[str | None] = frozenset()
    """The keys of which a later change is pending.

    The cache has these changes already, so the objects are left out: their change repeats them."""


Item: TypeAlias = Notification[T] | SharedBatch[T] | DueResync
"""What a listener reaches next."""
