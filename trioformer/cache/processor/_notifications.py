"""What a reader of an informer is told: three kinds of notification, as values or as a handler's methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ...models import KubernetesObject, key_of

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


@final
@attrs.define(eq=False, repr=False)
class FilteringHandler(ResourceEventHandler[T]):
    """Passes on what concerns the objects that a predicate accepts (client-go ``FilteringResourceEventHandler``).

    To the handler behind it, the objects outside the filter do not exist: one that changes into the filter is added
    (never ``is_initial``), one that changes out of it is deleted in the last state that the handler knows, and not
    ``is_stale``.

    The predicate is asked about each new state once; what it said of the last is remembered.
    So a deletion reaches the handler exactly when it knows the object, whatever the last state of the object is like
    and however many notifications have been merged on the way.
    An exception of the predicate counts as the handler's own.

    Each registration remembers for itself, and the same filtering handler may be registered many times.
    """

    predicate: Callable[[T], bool]
    """Whether an object is inside the filter; should depend on nothing but the object."""
    handler: ResourceEventHandler[T]
    """What is called."""
    _inside: set[str] = attrs.field(factory=set, init=False)

    def __repr__(self) -> str:
        return f"<FilteringHandler before {self.handler!r}>"

    async def on_add(self, obj: T, *, is_initial: bool) -> None:
        """Pass on an object that is inside the filter."""
        if self.predicate(obj):
            # Before the call: a handler that fails has been told all the same.
            self._inside.add(key_of(obj))
            await self.handler.on_add(obj, is_initial=is_initial)

    async def on_update(self, old: T, new: T) -> None:
        """Pass on a change inside the filter; a change into it is an addition, one out of it a deletion."""
        key = key_of(new)
        is_inside, was_inside = self.predicate(new), key in self._inside
        if is_inside and was_inside:
            await self.handler.on_update(old, new)
        elif is_inside:
            self._inside.add(key)
            await self.handler.on_add(new, is_initial=False)
        elif was_inside:
            self._inside.remove(key)
            await self.handler.on_delete(old, is_stale=False)

    async def on_delete(self, obj: T, *, is_stale: bool) -> None:
        """Pass on the deletion of an object that the handler knows."""
        key = key_of(obj)
        if key in self._inside:
            self._inside.remove(key)
            await self.handler.on_delete(obj, is_stale=is_stale)


def name_of(handler: ResourceEventHandler[T]) -> str:
    """A handler's name for messages: its class, and for a filter also that of the handler behind it."""
    inner = f"({name_of(handler.handler)})" if isinstance(handler, FilteringHandler) else ""
    return f"{type(handler).__name__}{inner}"


def for_one_reader(handler: ResourceEventHandler[T]) -> ResourceEventHandler[T]:
    """Give a registration its own memory of what passed the filters; other handlers are returned as they are."""
    if isinstance(handler, FilteringHandler):
        return FilteringHandler(handler.predicate, for_one_reader(handler.handler))
    return handler


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
