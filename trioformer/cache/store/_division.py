"""The division of a cache into parts, each of which has a reflector of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, final

import attrs
import trio

from ...client._internal import WrittenObject
from ...models import KubernetesObject


class Division(Protocol):
    """The part to which each object belongs.  An object always stays in its part."""

    def part_of(self, obj: KubernetesObject) -> str:
        """Return the part to which an object belongs."""
        ...

    def part_of_key(self, key: str) -> str:
        """Return the part to which the object with this key belongs, or an empty string if the key does not tell."""
        ...

    def record_deletion(self, obj: KubernetesObject) -> None:
        """Record that an object was removed from the cache because it was deleted."""

    def part_of_write(self, written: WrittenObject) -> str | None:
        """Return the part to which a written object belongs, or None if no cache can show it."""
        ...


@final
@attrs.frozen
class ByNamespace:
    """The division of a cache of several namespaces."""

    def part_of(self, obj: KubernetesObject) -> str:
        """Return the namespace of an object."""
        return obj.namespace or ""

    def part_of_key(self, key: str) -> str:
        """Return the namespace in a key."""
        return key.partition("/")[0]

    def record_deletion(self, obj: KubernetesObject) -> None:
        """Do nothing."""

    def part_of_write(self, written: WrittenObject) -> str | None:
        """Return the namespace of a written object."""
        return written.namespace


class Share(Division, Protocol):
    """The division of a cache of which this process caches only some parts, which it owns.

    Controllers ask it before they reconcile an object.
    """

    @property
    def by(self) -> Literal["namespace", "uid", "label"]:
        """What decides on the part of an object."""
        ...

    def read_with(self, cached: Callable[[str], KubernetesObject | None]) -> None:
        """Use a function that returns the cached object with a key."""

    def check_key(self, key: str) -> None:
        """Raise `NotOwnedError` unless this process caches the part of the object with this key.

        With ``by="uid"``, the key of an object that does not exist belongs to no part, unless the object was deleted
        while this process cached it.
        """

    def check_namespace(self, namespace: str) -> None:
        """Raise `NotOwnedError` unless this process caches the objects of a namespace, or a part of them."""

    def open_call(self, key: str, again: Callable[[], object]) -> AbstractContextManager[trio.CancelScope | None]:
        """Open a scope for a call that reconciles an object, which is cancelled when the part is lost.

        Args:
            key: The key of the object.
            again: A function to call when the part is complete, if it is owned but not complete yet.

        Yields:
            The scope, or None if the call must not begin.
        """
        ...
