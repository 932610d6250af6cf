"""What a reflector writes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ...models import KubernetesObject

T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)


class Sink(Protocol[T_contra]):
    """Where a reflector writes; it knows nothing else of what becomes of the objects."""

    def add(self, obj: T_contra) -> None:
        """Take an ADDED event."""

    def update(self, obj: T_contra) -> None:
        """Take a MODIFIED event."""

    def delete(self, obj: T_contra) -> None:
        """Take a DELETED event."""

    def bookmark(self, resource_version: str) -> None:
        """Take a BOOKMARK event's resourceVersion."""

    def replace(
        self, objects: Sequence[T_contra], resource_version: str, *, undecodable: frozenset[str] = frozenset()
    ) -> None:
        """Take a list's whole answer.

        Args:
            objects: What was listed.
            resource_version: The list's.
            undecodable: Keys of objects that exist and are not among ``objects``, because they do not decode.
        """

    @property
    def has_room(self) -> bool:
        """Whether the writer may go on without waiting."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until there is room again; a checkpoint only when there is none."""
