"""One reflector's place at a queue that several write to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, final

import attrs

from ..models import KubernetesObject
from ._delta_fifo import DeltaFIFO

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(eq=False)
class ScopedSink(Generic[T]):
    """The queue as the reflector of one namespace sees it: its lists and bookmarks speak for this namespace only."""

    _fifo: DeltaFIFO[T]
    _scope: str

    def add(self, obj: T) -> None:
        """Take an ADDED event."""
        self._fifo.add(obj)
        self._fifo.bookmark(obj.resource_version, scope=self._scope)

    def update(self, obj: T) -> None:
        """Take a MODIFIED event."""
        self._fifo.update(obj)
        self._fifo.bookmark(obj.resource_version, scope=self._scope)

    def delete(self, obj: T) -> None:
        """Take a DELETED event."""
        self._fifo.delete(obj)
        self._fifo.bookmark(obj.resource_version, scope=self._scope)

    def bookmark(self, resource_version: str) -> None:
        """Take a bookmark of this namespace's watch."""
        self._fifo.bookmark(resource_version, scope=self._scope)

    def replace(self, objects: Sequence[T], resource_version: str, *, unreadable: frozenset[str] = frozenset()) -> None:
        """Take everything that there is in this namespace."""
        self._fifo.replace(objects, resource_version, unreadable=unreadable, scope=self._scope)

    @property
    def has_room(self) -> bool:
        """Whether the writer may go on without waiting."""
        return self._fifo.has_room

    async def wait_for_room(self) -> None:
        """Wait until there is room again."""
        await self._fifo.wait_for_room()
