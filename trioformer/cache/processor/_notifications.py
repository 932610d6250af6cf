"""The notifications of an informer: as values, as the methods of a handler, and in batches that listeners share."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

import attrs

from ..._suggestions import check_async, describe, suggest
from ...models import KubernetesObject, key_of

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen
class Added(Generic[T]):
    """An object that is new to this listener."""

    object: T
    """The object."""
    is_initial: bool = False
    """Whether the object is part of the first list, or was in the cache when the listener was added."""


@final
@attrs.frozen
class Updated(Generic[T]):
    """A newer state of an object that this listener knows, or (``old is new``) a resync of it."""

    old: T
    """The state of which this listener was last notified."""
    new: T
    """The current state."""

    @property
    def is_resync(self) -> bool:
        """Whether nothing changed: the informer repeats the object because the resync period has passed."""
        return self.old is self.new


@final
@attrs.frozen
class Deleted(Generic[T]):
    """The deletion of an object that this listener knows."""

    object: T
    """Its last known state."""
    is_stale: bool = False
    """Whether the deletion itself was missed: a relist did not contain the object, and ``object`` may be outdated.

    client-go calls such an object ``DeletedFinalStateUnknown``.
    """


Notification: TypeAlias = Added[T] | Updated[T] | Deleted[T]
"""An item of ``informer.subscribe()``; a closed union, so ``match`` can be exhaustive."""


class ResourceEventHandler(Generic[T]):
    """The callbacks of an informer: subclass it and override what you need (client-go ``ResourceEventHandler``).

    The calls for one object come in order and one at a time; each handler receives a subsequence of the object's states
    that ends with the newest.
    There is no order between handlers.
    An exception ends the informer's run unless the handler was registered with ``on_error=``.
    A `DecodeError`, which reading a field of a bad object raises, does not: that notification is skipped and logged.
    """

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Handle an object that is new to this handler.

        Args:
            obj: The object; immutable, shared with the cache.
            is_initial: Whether the object is part of the first list, or was in the cache when the handler was added.
        """

    async def on_update(self, old: T, new: T, /) -> None:
        """Handle a newer state, or a resync (``old is new``).

        Args:
            old: The state of which this handler was last notified.
            new: The current state.
        """

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Handle a deletion.

        Args:
            obj: The last known state of the object.
            is_stale: Whether a relist found the deletion, so that ``obj`` may be outdated.
        """


@final
@attrs.define(eq=False, repr=False)
class FilteringHandler(ResourceEventHandler[T]):
    """Passes on the notifications of objects that a predicate accepts (client-go ``FilteringResourceEventHandler``).

    For the wrapped handler, other objects do not exist: an object that begins to match is added (never
    ``is_initial``), an object that no longer matches is deleted (not ``is_stale``).

    The filter remembers the state of each object that it has passed on last.
    So the handler receives a deletion if and only if it knows the object, and never a state that does not match,
    however many notifications have been merged.
    ``old`` in an update, and the object of a deletion whose last state does not match, are the state that the handler
    received last.
    The predicate is called once for each new state.
    An exception of the predicate counts as the handler's own.

    Each registration keeps its own record; the same filtering handler may be registered many times.
    """

    predicate: Callable[[T], bool]
    """Whether an object matches; must depend on nothing but the object."""
    handler: ResourceEventHandler[T]
    """The wrapped handler."""
    _known: dict[str, T] = attrs.field(factory=dict, init=False)
    """By key, the state that the handler received last."""

    def __repr__(self) -> str:
        return f"<FilteringHandler for {self.handler!r}>"

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Pass on an object that matches."""
        if self.predicate(obj):
            # Before the call: a handler that fails on an object knows it all the same.
            self._known[key_of(obj)] = obj
            await self.handler.on_add(obj, is_initial=is_initial)

    async def on_update(self, old: T, new: T, /) -> None:
        """Pass on a change; as an addition if the object begins to match, as a deletion if it no longer matches."""
        key = key_of(new)
        matches, known = self.predicate(new), self._known.get(key)
        if matches:
            self._known[key] = new
            if known is None:
                await self.handler.on_add(new, is_initial=False)
            else:
                await self.handler.on_update(known, new)
        elif known is not None:
            del self._known[key]
            await self.handler.on_delete(known, is_stale=False)

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Pass on the deletion of an object that the handler knows."""
        last = self._known.pop(key_of(obj), None)
        if last is None:
            return
        try:
            if self.predicate(obj):
                last = obj
        finally:  # a predicate that fails must not keep the deletion from a handler that knows the object
            await self.handler.on_delete(last, is_stale=is_stale)


def check_handler(handler: object) -> None:
    """Check that something is a handler whose methods can be called.

    Raises:
        TypeError: It is not; says what to write.
    """
    if isinstance(handler, type):
        what = "an object of the class" if issubclass(handler, ResourceEventHandler) else "one"
        raise TypeError(f"a handler must be a ResourceEventHandler, not {describe(handler)}; pass {what}")
    if not isinstance(handler, ResourceEventHandler):
        raise TypeError(
            f"a handler must be a ResourceEventHandler, not {describe(handler)}; write a subclass of it with "
            "on_add, on_update and on_delete, or use informer.subscribe()"
        )
    if isinstance(handler, FilteringHandler):
        check_handler(handler.handler)
        return
    cls = type(handler)
    overridden = [name for name in _METHODS if getattr(cls, name, None) is not getattr(ResourceEventHandler, name)]
    for name in overridden:
        definition, args, named = _METHODS[name]
        check_async(getattr(handler, name), f"{cls.__name__}.{name}", definition, *args, **named)
    if overridden:
        return
    for name in dir(cls):
        meant = suggest(name, _METHODS) if name.startswith("on") and name not in _METHODS else ""
        if meant:
            raise TypeError(f"{cls.__name__} has the method {name}, which is never called; did you mean {meant}?")


_METHODS: Final[dict[str, tuple[str, tuple[object, ...], dict[str, object]]]] = {
    "on_add": ("async def on_add(self, obj, *, is_initial)", (None,), {"is_initial": False}),
    "on_update": ("async def on_update(self, old, new)", (None, None), {}),
    "on_delete": ("async def on_delete(self, obj, *, is_stale)", (None,), {"is_stale": False}),
}
"""How each method is defined, and what it is called with."""


def handler_name(handler: ResourceEventHandler[T]) -> str:
    """Return a handler's name for messages: its class, and for a filter also the name of the wrapped handler."""
    wrapped = f"({handler_name(handler.handler)})" if isinstance(handler, FilteringHandler) else ""
    return f"{type(handler).__name__}{wrapped}"


def with_own_filters(handler: ResourceEventHandler[T]) -> ResourceEventHandler[T]:
    """Return a handler whose filters have their own record for one registration; other handlers are returned as is."""
    if isinstance(handler, FilteringHandler):
        return FilteringHandler(handler.predicate, with_own_filters(handler.handler))
    return handler


def call_handler(handler: ResourceEventHandler[T], notification: Notification[T]) -> Awaitable[None]:
    """Return the call of the method for ``notification``; not a coroutine itself, which would cost a second one."""
    # The most frequent notifications come first.
    if isinstance(notification, Updated):
        return handler.on_update(notification.old, notification.new)
    if isinstance(notification, Added):
        return handler.on_add(notification.object, is_initial=notification.is_initial)
    return handler.on_delete(notification.object, is_stale=notification.is_stale)


def object_of(notification: Notification[T]) -> T:
    """Return the object that a notification is about, in its newest state."""
    return notification.new if isinstance(notification, Updated) else notification.object


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
