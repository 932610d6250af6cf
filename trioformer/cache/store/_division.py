"""The division of a cache into parts, each of which has a reflector of its own, and the lister of such a cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar, final

import attrs
import trio

from ...client._internal import WrittenObject
from ...models import KubernetesObject, LabelSelector
from ._lister import Lister

T = TypeVar("T", bound=KubernetesObject)


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

    is_filtered: bool | None
    """Whether the server sends only the parts that are asked for; None before the first list, or by label."""

    @property
    def name(self) -> str:
        """The name of the kind, for messages."""
        ...

    @property
    def by(self) -> Literal["namespace", "uid", "label"]:
        """What decides on the part of an object."""
        ...

    def part_of_received(self, obj: KubernetesObject) -> str:
        """Return the part of an object that the server has sent, and check the label of an owned object."""
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
            again: A function to call when the part is complete, if it is owned but not complete yet.  Of equal
                functions, only one is called.

        Yields:
            The scope, or None if the call must not begin.
        """
        ...


@final
@attrs.frozen(eq=False, repr=False)
class DividedLister(Lister[T]):
    """A lister that raises `NotOwnedError` for the keys of other processes, which it must not report as missing.

    The methods that return several objects return those that this process owns.
    """

    _share: Share = attrs.field(kw_only=True, alias="share")

    def _read(self, key: str, *, allow_stale: bool = False) -> T | None:
        obj = super()._read(key, allow_stale=allow_stale)
        self._share.check_key(key)
        return obj

    def __contains__(self, key: object) -> bool:
        is_found = super().__contains__(key)
        if isinstance(key, str) and key:
            self._share.check_key(key)
        return is_found

    def _candidates(self, labels: LabelSelector, namespace: str | None, name: str | None = None) -> tuple[T, ...]:
        if namespace is not None:
            self._share.check_namespace(namespace)
        return super()._candidates(labels, namespace, name)
