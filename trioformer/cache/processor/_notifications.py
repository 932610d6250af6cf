"""The notifications of an informer, the handlers that receive them, and the batches that listeners share."""

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
    """A notification about an object that is new to this listener."""

    object: T
    """The object."""
    is_initial: bool = False
    """Whether the object was in the first list, or in the cache when the listener was added."""


@final
@attrs.frozen
class Updated(Generic[T]):
    """A notification about a newer state of an object, or about a resync, in which case ``old is new``."""

    old: T
    """The state that this listener received last."""
    new: T
    """The current state."""

    @property
    def is_resync(self) -> bool:
        """Whether the notification is a resync: the object has not changed."""
        return self.old is self.new


@final
@attrs.frozen
class Deleted(Generic[T]):
    """A notification about the deletion of an object that this listener knows."""

    object: T
    """The last known state of the object."""
    is_stale: bool = False
    """Whether the watch missed the deletion and a relist found it.  In this case, ``object`` may be outdated.

    client-go calls this ``DeletedFinalStateUnknown``.
    """


@final
@attrs.frozen
class Released(Generic[T]):
    """A notification that an object is no longer in the cache, because another process caches its range now.

    The object was not deleted.  Only the caches of `Shares` send it.
    """

    object: T
    """The last known state of the object."""


Notification: TypeAlias = Added[T] | Updated[T] | Deleted[T] | Released[T]
"""A notification from ``informer.subscribe()``; a ``match`` statement over the four classes is exhaustive."""


class ResourceEventHandler(Generic[T]):
    """The base class of handlers: override the methods that you need (client-go ``ResourceEventHandler``).

    A handler is called for one notification at a time, and receives the states of each object in order.
    A handler may miss intermediate states of an object, but always receives the newest state.
    Handlers are called independently of each other.
    An exception raised by a handler ends the informer's run, unless the handler was added with ``on_error=``.
    A `DecodeError` or a `QuarantinedError` never ends the run: the notification is skipped and logged.
    """

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Handle an object that this handler has not received before.

        Args:
            obj: The object, which is immutable and shared with the cache.
            is_initial: Whether the object was in the first list, or in the cache when the handler was added.
        """

    async def on_update(self, old: T, new: T, /) -> None:
        """Handle a newer state of an object, or a resync, in which case ``old is new``.

        Args:
            old: The state that this handler received last.
            new: The current state.
        """

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Handle the deletion of an object.

        Args:
            obj: The last known state of the object.
            is_stale: Whether the watch missed the deletion and a relist found it.  In this case, ``obj`` may be
                outdated.
        """

    async def on_release(self, obj: T, /) -> None:
        """Handle an object that was not deleted, but is in a range that another process caches now.

        Args:
            obj: The last known state of the object.
        """


@final
@attrs.define(eq=False, repr=False)
class FilteringHandler(ResourceEventHandler[T]):
    """A handler that passes on notifications of matching objects (client-go ``FilteringResourceEventHandler``).

    The wrapped handler receives only objects that match the predicate.  When an object begins to match, the wrapped
    handler's ``on_add()`` is called with ``is_initial=False``.  When an object no longer matches, ``on_delete()`` is
    called with ``is_stale=False``.

    The filter remembers the last state of each object that it passed on. So the wrapped handler receives deletions
    only of objects that it knows, and never receives a state that does not match.
    For an update, ``old`` is the state that the wrapped handler received last.  For a deletion, the wrapped handler
    also receives this state if the object's final state does not match.
    The predicate is called once for each new state.  An exception raised by the predicate counts as an exception
    raised by the handler.

    Each registration remembers its own objects, so the same filtering handler may be added several times.
    """

    predicate: Callable[[T], bool]
    """A function that returns whether an object matches.  Its result must depend only on the object."""
    handler: ResourceEventHandler[T]
    """The wrapped handler."""
    _known: dict[str, T] = attrs.field(factory=dict, init=False)
    """The states that the wrapped handler received last, by key."""

    def __repr__(self) -> str:
        return f"<FilteringHandler for {self.handler!r}>"

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Pass on the addition of an object that matches."""
        if self.predicate(obj):
            # Recorded before the call: a handler that fails on an object has still seen it.
            self._known[key_of(obj)] = obj
            await self.handler.on_add(obj, is_initial=is_initial)

    async def on_update(self, old: T, new: T, /) -> None:
        """Pass on an update, as an addition if the object begins to match, or as a deletion if it no longer matches."""
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
        """Pass on the deletion of an object that the wrapped handler knows."""
        last = self._known.pop(key_of(obj), None)
        if last is None:
            return
        try:
            if self.predicate(obj):
                last = obj
        finally:  # a handler that knows the object must receive its deletion, even if the predicate fails
            await self.handler.on_delete(last, is_stale=is_stale)

    async def on_release(self, obj: T, /) -> None:
        """Pass on the release of an object that the wrapped handler knows."""
        last = self._known.pop(key_of(obj), None)
        if last is not None:
            await self.handler.on_release(last)


def check_handler(handler: object) -> None:
    """Check that an object is a handler and that its methods accept the arguments they are called with.

    Raises:
        TypeError: The object is not a valid handler.  The message says what to write instead.
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
    "on_release": ("async def on_release(self, obj)", (None,), {}),
}
"""The definition of each handler method, and example arguments for a call."""


def handler_name(handler: ResourceEventHandler[T]) -> str:
    """Return the name of a handler for messages: its class name and, for a filter, the name of the wrapped handler."""
    wrapped = f"({handler_name(handler.handler)})" if isinstance(handler, FilteringHandler) else ""
    return f"{type(handler).__name__}{wrapped}"


def with_own_filters(handler: ResourceEventHandler[T]) -> ResourceEventHandler[T]:
    """Return a copy of a filtering handler that has passed on no objects yet; return other handlers unchanged."""
    if isinstance(handler, FilteringHandler):
        return FilteringHandler(handler.predicate, with_own_filters(handler.handler))
    return handler


def call_handler(handler: ResourceEventHandler[T], notification: Notification[T]) -> Awaitable[None]:
    """Call the handler's method for a notification, and return the awaitable."""
    # The most frequent notifications come first.
    if isinstance(notification, Updated):
        return handler.on_update(notification.old, notification.new)
    if isinstance(notification, Added):
        return handler.on_add(notification.object, is_initial=notification.is_initial)
    if isinstance(notification, Deleted):
        return handler.on_delete(notification.object, is_stale=notification.is_stale)
    return handler.on_release(notification.object)


def object_of(notification: Notification[T]) -> T:
    """Return the newest state of a notification's object."""
    return notification.new if isinstance(notification, Updated) else notification.object


class BatchKind(enum.Enum):
    """The operation that created a batch."""

    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


@final
@attrs.frozen
class SharedBatch(Generic[T]):
    """A batch of notifications that listeners share: an initial list, a resync, or the changes of a relist."""

    kind: BatchKind
    objects: Sequence[T] = ()
    changes: Sequence[Notification[T]] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.changes)

    def notifications(self) -> Iterator[Notification[T]]:
        """Return an iterator that creates the notifications when they are requested."""
        if self.kind is BatchKind.INITIAL:
            return (Added(obj, is_initial=True) for obj in self.objects)
        if self.kind is BatchKind.RESYNC:
            return (Updated(obj, obj) for obj in self.objects)
        return iter(self.changes)


@final
@attrs.frozen
class DueResync:
    """A placeholder for a resync, which is read from the cache when the listener reaches the placeholder."""

    changed: frozenset[str | None] = frozenset()
    """The keys of the objects that have a pending change after this resync. The resync skips these objects: the cache
    already contains the changes, and the listener receives them next."""


Item: TypeAlias = Notification[T] | SharedBatch[T] | DueResync
"""The next item of a listener's queue."""
