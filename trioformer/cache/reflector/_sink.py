"""The protocol that a reflector writes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ...models import KubernetesObject
from .._bad_objects import BadObject

T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)


class Sink(Protocol[T_contra]):
    """Receives what a reflector reads; its methods return without waiting, except :meth:`wait_for_room`."""

    def add(self, obj: T_contra) -> None:
        """Write the object of an ADDED event."""

    def update(self, obj: T_contra) -> None:
        """Write the object of a MODIFIED event."""

    def delete(self, obj: T_contra) -> None:
        """Write the object of a DELETED event."""

    def bookmark(self, resource_version: str) -> None:
        """Write the resourceVersion of a BOOKMARK event."""

    def quarantine(self, bad: BadObject) -> None:
        """Write an event whose object cannot be taken."""

    def delete_key(self, key: str, resource_version: str) -> None:
        """Write a DELETED event whose object cannot be taken."""

    def replace(self, objects: Sequence[T_contra], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        """Write a whole list.

        Args:
            objects: The objects of the list.
            resource_version: The resourceVersion of the list.
            bad: The objects of the list that cannot be taken, by key.
        """

    @property
    def has_room(self) -> bool:
        """Whether the writer may continue without waiting."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until there is room; a checkpoint only if it has to wait."""
