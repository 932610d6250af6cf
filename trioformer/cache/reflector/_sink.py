"""The protocol that a reflector writes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ...models import KubernetesObject
from .._bad_objects import BadObject

T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)


class Sink(Protocol[T_contra]):
    """Receives the objects of a reflector; all methods except :meth:`wait_for_room` return without waiting."""

    def add(self, obj: T_contra) -> None:
        """Write the object of an ADDED event."""

    def update(self, obj: T_contra) -> None:
        """Write the object of a MODIFIED event."""

    def delete(self, obj: T_contra) -> None:
        """Write the object of a DELETED event."""

    def bookmark(self, resource_version: str) -> None:
        """Write the resourceVersion of a BOOKMARK event."""

    def quarantine(self, bad: BadObject) -> None:
        """Write an ADDED or MODIFIED event with a bad object."""

    def delete_key(self, key: str, resource_version: str) -> None:
        """Write a DELETED event with a bad object."""

    def replace(self, objects: Sequence[T_contra], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        """Write a whole list.

        Args:
            objects: The objects of the list.
            resource_version: The resourceVersion of the list.
            bad: The bad objects of the list, by key.
        """

    @property
    def has_room(self) -> bool:
        """Whether the writer may continue without waiting."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until there is room; not a checkpoint if there is room already."""
