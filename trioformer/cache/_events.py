"""What a reader of an informer is told: three kinds of notification, as values or as a handler's methods."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..models import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen
class Added(Generic[T]):
    """An object that this reader had not been told of."""

    object: T
    """The object."""
    is_initial: bool = False
    """Whether it is part of what the cache held when the reader joined, or of the first list."""


@final
@attrs.frozen
class Updated(Generic[T]):
    """A newer state of an object that this reader knows, or (``old is new``) a resync of it."""

    old: T
    """The state that this reader was told last."""
    new: T
    """The state now."""

    @property
    def is_resync(self) -> bool:
        """Whether nothing changed: the informer repeats the object because its resync period is over."""
        return self.old is self.new


@final
@attrs.frozen
class Deleted(Generic[T]):
    """An object that this reader knows is gone."""

    object: T
    """Its last known state."""
    is_stale: bool = False
    """Whether the deletion itself was missed: a relist found the object gone, and the state may be older than its last.

    client-go calls such an object ``DeletedFinalStateUnknown``.
    """


Notification: TypeAlias = Added[T] | Updated[T] | Deleted[T]
"""What ``informer.subscribe()`` yields; a closed union, so ``match`` can be exhaustive."""


class ResourceEventHandler(Generic[T]):
    """What an informer calls: subclass it and override what you need (client-go ``ResourceEventHandler``).

    For one object the calls come in order, one at a time, and each handler sees a subsequence of the object's states
    that ends with the last.
    Between two handlers there is no order.
    An exception ends the informer's run unless the handler was registered with ``on_error=``.
    """

    async def on_add(self, obj: T, *, is_initial: bool) -> None:
        """Handle an object that this handler had not been told of.

        Args:
            obj: The object; immutable, shared with the cache.
            is_initial: Whether it belongs to what was there when the handler joined.
        """

    async def on_update(self, old: T, new: T) -> None:
        """Handle a newer state, or a resync (``old is new``).

        Args:
            old: What this handler was told last.
            new: The state now.
        """

    async def on_delete(self, obj: T, *, is_stale: bool) -> None:
        """Handle an object that is gone.

        Args:
            obj: Its last known state.
            is_stale: Whether a relist found it gone, so that the state may be older than its last.
        """


def call_of(handler: ResourceEventHandler[T], notification: Notification[T]) -> Awaitable[None]:
    """Begin the call of the method that fits ``notification``; not a coroutine itself, which would cost another one."""
    # Asked in the order of how often they come.
    if isinstance(notification, Updated):
        return handler.on_update(notification.old, notification.new)
    if isinstance(notification, Added):
        return handler.on_add(notification.object, is_initial=notification.is_initial)
    return handler.on_delete(notification.object, is_stale=notification.is_stale)


def object_of(notification: Notification[T]) -> T:
    """The object that a notification is about, in its newest state."""
    return notification.new if isinstance(notification, Updated) else notification.object
