"""The notifications of an informer: as values, as calls of a handler, and in batches that listeners share."""

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
    """The state that this listener received last."""
    new: T
    """The current state."""

    @property
    def is_resync(self) -> bool:
        """Whether nothing changed, and the object is repeated because the resync period has passed."""
        return self.old is self.new


@final
@attrs.frozen
class Deleted(Generic[T]):
    """The deletion of an object that this listener knows."""

    object: T
    """Its last known state."""
    is_stale: bool = False
    """Whether the watch missed the deletion and a relist found it; ``object`` may then be outdated.

    client-go calls this ``DeletedFinalStateUnknown``.
    """


Notification: TypeAlias = Added[T] | Updated[T] | Deleted[T]
"""An item of ``informer.subscribe()``; ``match`` over the three classes is exhaustive."""


class ResourceEventHandler(Generic[T]):
    """The callbacks of an informer: subclass it and override the methods you need (client-go ``ResourceEventHandler``).

    A handler is called for one notification at a time, and for each object in the order of its states.
    It may miss states, but always receives the newest one.
    There is no order between handlers.
    An exception ends the informer's run, unless the handler was registered with ``on_error=``.
    A `DecodeError`, raised by reading a field of a bad object, does not: the notification is skipped and logged.
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
            old: The state that this handler received last.
            new: The current state.
        """

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Handle a deletion.

        Args:
            obj: The last known state of the object.
            is_stale: Whether the watch missed the deletion and a relist found it; ``obj`` may then be outdated.
        """


@final
@attrs.define(eq=False, repr=False)
class FilteringHandler(ResourceEventHandler[T]):
    """Passes on the notifications of objects that a predicate accepts (client-go ``FilteringResourceEventHandler``).

    The wrapped handler does not see other objects.  An object that begins to match is added (not ``is_initial``), and
    an object that no longer matches is deleted (not ``is_stale``).

    The filter remembers the last state of each object that it passed on.
    So the handler receives a deletion exactly if it knows the object, and never receives a state that does not match,
    even if notifications were merged.
    ``old`` in an update is the state that the handler received last; so is the object of a deletion if its last state
    does not match.
    The predicate is called once for each new state, and its exceptions count as exceptions of the handler.

    Each registration has its own record, so the same filtering handler may be registered many times.
    """

    predicate: Callable[[T], bool]
    """Returns whether an object matches; must depend on the object only."""
    handler: ResourceEventHandler[T]
    """The wrapped handler."""
    _known: dict[str, T] = attrs.field(factory=dict, init=False)
    """The state that the handler received last, by key."""

    def __repr__(self) -> str:
        return f"<FilteringHandler for {self.handler!r}>"

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Pass on an object that matches."""
        if self.predicate(obj):
            # Recorded before the call: a handler that fails on an object has still seen it.
            self._known[key_of(obj)] = obj
            await self.handler.on_add(obj, is_initial=is_initial)

    async def on_update(self, old: T, new: T, /) -> None:
        """Pass on an update: as an addition if the object begins to match, as a deletion if it no longer matches."""
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
        finally:  # a handler that knows the object must receive its deletion, even if the predicate fails
            await self.handler.on_delete(last, is_stale=is_stale)


def check_handler(handler: object) -> None:
    """Check that an object is a handler whose methods can be called.

    Raises:
        TypeError: It is not; the text says what to write instead.
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
"""The definition of each method, and the arguments of its call."""


def handler_name(handler: ResourceEventHandler[T]) -> str:
    """Return a handler's class name, for messages; for a filter also the name of the wrapped handler."""
    wrapped = f"({handler_name(handler.handler)})" if isinstance(handler, FilteringHandler) else ""
    return f"{type(handler).__name__}{wrapped}"


def with_own_filters(handler: ResourceEventHandler[T]) -> ResourceEventHandler[T]:
    """Return a copy of a filter with a record of its own, for one registration; return any other handler unchanged."""
    if isinstance(handler, FilteringHandler):
        return FilteringHandler(handler.predicate, with_own_filters(handler.handler))
    return handler


def call_handler(handler: ResourceEventHandler[T], notification: Notification[T]) -> Awaitable[None]:
    """Return the awaitable of the method for ``notification``; not async, since that would cost a second coroutine."""
    # The most frequent notifications come first.
    if isinstance(notification, Updated):
        return handler.on_update(notification.old, notification.new)
    if isinstance(notification, Added):
        return handler.on_add(notification.object, is_initial=notification.is_initial)
    return handler.on_delete(notification.object, is_stale=notification.is_stale)


def object_of(notification: Notification[T]) -> T:
    """Return the object of a notification, in its newest state."""
    return notification.new if isinstance(notification, Updated) else notification.object


class BatchKind(enum.Enum):
    """The origin of a batch."""

    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


@final
@attrs.frozen
class SharedBatch(Generic[T]):
    """Notifications that all listeners share: objects of an initial list or a resync, or changes of a relist."""

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
    """The keys of objects with a later pending change.

    The resync omits these objects: the cache already has the changes, and the listener receives them next."""


Item: TypeAlias = Notification[T] | SharedBatch[T] | DueResync
"""The next item of a listener's queue."""
