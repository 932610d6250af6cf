"""The protocol of a sink, to which a reflector writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ...models import KubernetesObject
from .._bad_objects import BadObject

T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)


class Sink(Protocol[T_contra]):
    """A receiver of objects from a reflector; no method except :meth:`wait_for_room` may wait."""

    def hold(self) -> None:
        """Begin a batch of events."""

    def release(self) -> None:
        """End a batch of events."""

    def add(self, obj: T_contra) -> None:
        """Write the object of an ADDED event."""

    def update(self, obj: T_contra) -> None:
        """Write the object of a MODIFIED event."""

    def delete(self, obj: T_contra) -> None:
        """Write the object of a DELETED event."""

    def bookmark(self, resource_version: str) -> None:
        """Advance the resourceVersion after a BOOKMARK event."""

    def quarantine(self, bad: BadObject) -> None:
        """Write the key of a bad object from an ADDED or MODIFIED event."""

    def delete_key(self, key: str, resource_version: str) -> None:
        """Write the key of a bad object from a DELETED event."""

    def replace(self, objects: Sequence[T_contra], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        """Replace all objects with the objects of a list.

        Args:
            objects: The objects of the list.
            resource_version: The resourceVersion of the list.
            bad: The bad objects of the list, by key.
        """

    @property
    def has_room(self) -> bool:
        """Whether the sink accepts more events without waiting."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until :attr:`has_room` is true; return without a checkpoint if it is already true."""
