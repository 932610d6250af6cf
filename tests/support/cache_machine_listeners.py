"""Listeners of an informer that can be slow, stuck or failing, and check every notification."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from tests.support.scripted_list_watch import words
from trioformer.cache import (
    Added,
    Deleted,
    FilteringHandler,
    HandlerRegistration,
    Notification,
    ResourceEventHandler,
    SharedInformer,
    Subscription,
    Updated,
)
from trioformer.cache.processor._overflow import Overflow
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod

BATCH = 202
"""The most notifications that the process loop distributes before the listeners get a turn."""


class RequestedError(Exception):
    """The exception of a failing listener."""


@attrs.define(eq=False, kw_only=True)
class CheckingListener(ResourceEventHandler[Pod]):
    """A listener with its own copy of the objects, made from its notifications.

    Every notification must be consistent with the ones before: an update is of a known object and from the state that
    was received last, no object is added or deleted twice, and the states of an object become newer and newer.
    """

    name: str
    overflow: Overflow
    buffer_size: int = 1_024
    accepts: Callable[[Pod], bool] | None = None
    """The predicate of this listener's filter, if it has one."""
    marked: bool = False
    """Whether every object must have been transformed, exactly once."""
    view: dict[str, Pod] = attrs.field(factory=dict)
    newest: dict[str, int] = attrs.field(factory=dict)
    log: list[str] = attrs.field(factory=list)
    changes: list[tuple[str | None, int]] = attrs.field(factory=list)
    """The namespace and version of each change since the last check, in the order in which they arrived."""
    on_notification: Callable[[], None] = lambda: None
    """Called with each notification."""
    delay: float = 0.0
    was_slow: bool = False
    fails: int = 0
    errors: int = 0
    leaves_inside: str = ""
    is_gone: bool = False
    is_broken: bool = False
    registration: HandlerRegistration[Pod] | None = None
    subscription: Subscription[Pod] | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    gate: trio.Event | None = None

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        await self._handle(Added(obj, is_initial))

    async def on_update(self, old: Pod, new: Pod) -> None:
        await self._handle(Updated(old, new))

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        await self._handle(Deleted(obj, is_stale))

    async def _handle(self, notification: Notification[Pod]) -> None:
        # A subscription whose scope is cancelled may still take pending notifications, up to its next checkpoint.
        assert not self.is_gone or self.registration is None, f"{self.name} got {words(notification)} after its removal"
        self.take(notification)
        if self.leaves_inside and self.registration is not None:
            how, self.leaves_inside = self.leaves_inside, ""
            self.is_gone = True
            if how == "aclose":
                await self.registration.aclose()
            else:
                self.registration.remove()
        if self.gate is not None:
            await self.gate.wait()
        if self.delay:
            await trio.sleep(self.delay)
        if self.fails:
            self.fails -= 1
            raise RequestedError

    def take(self, notification: Notification[Pod]) -> None:
        """Check a notification, and apply it to the view."""
        self.log.append(words(notification))
        self.on_notification()
        obj = notification.new if isinstance(notification, Updated) else notification.object
        key, version = key_of(obj), int(obj.resource_version)
        known, newest = self.view.get(key), self.newest.get(key, 0)
        last = f"{self.name}: {', '.join(self.log[-8:])}"
        if isinstance(notification, Added):
            assert known is None, f"added twice: {last}"
            assert version > newest, f"an older state: {last}"
            self.view[key] = obj
        elif isinstance(notification, Updated):
            assert known is not None, f"updated before it was added: {last}"
            assert known is notification.old, f"the old state is not the last received one: {last}"
            assert notification.is_resync or version > newest, f"an older state: {last}"
            assert notification.old.uid == notification.new.uid, f"another object: {last}"
            self.view[key] = obj
        else:
            assert known is not None, f"deleted twice, or before it was added: {last}"
            assert version >= newest, f"an older state: {last}"
            assert known.uid == obj.uid, f"another object: {last}"
            del self.view[key]
        self.newest[key] = version
        if not any(getattr(notification, name, False) for name in ("is_initial", "is_resync", "is_stale")):
            self.changes.append((obj.namespace, version))
        if self.marked:
            assert obj.metadata.annotations["passes"] == "1", f"not transformed once: {last}"

    async def on_error(self, error: Exception, notification: Notification[Pod]) -> None:
        """Accept the exception that was requested, and no other."""
        if not isinstance(error, RequestedError):
            raise error
        self.errors += 1

    async def run_subscription(self, informer: SharedInformer[Pod], patience: float) -> None:
        """Read from a subscription, in this task, until it breaks or ends."""
        with (
            self.scope,
            informer.subscribe(
                overflow=self.overflow, buffer_size=self.buffer_size, patience=patience
            ) as notifications,
        ):
            self.subscription = notifications
            try:
                async for notification in notifications:
                    await self._handle(notification)
            except trio.BrokenResourceError:
                assert self.overflow != "coalesce"
                assert self.was_slow
                self.is_broken = True
            except RequestedError:
                self.is_broken = True
        self.is_gone = True
        self.subscription = None

    def add_handler(self, informer: SharedInformer[Pod], patience: float, resync_period: float | None) -> None:
        """Add this listener as a handler."""
        handler: ResourceEventHandler[Pod] = self
        if self.accepts is not None:
            handler = FilteringHandler(self.accepts, self)
        self.registration = informer.add_event_handler(
            handler,
            overflow=self.overflow,
            buffer_size=self.buffer_size,
            patience=patience,
            resync_period=resync_period,
            on_error=self.on_error,
            name=self.name,
        )

    def block(self) -> None:
        """Do not return from the next notification."""
        self.was_slow = True
        if self.gate is None:
            self.gate = trio.Event()

    def unblock(self) -> None:
        """Return from the notification, and handle the next."""
        if self.gate is not None:
            self.gate.set()
            self.gate = None

    @property
    def is_active(self) -> bool:
        return not (self.is_gone or self.is_broken)

    def check_order(self, *, was_listed: bool) -> None:
        """Check that the changes of a namespace came in the order of its watch, unless some were found by a list."""
        changes, self.changes = self.changes, []
        if was_listed or self.overflow != "block" or self.accepts is not None:
            return
        for namespace in {namespace for namespace, _ in changes}:
            versions = [version for each, version in changes if each == namespace]
            assert versions == sorted(versions), f"{self.name}: {', '.join(self.log[-40:])}"

    def check_bounds(self, objects: int) -> None:
        """Check that it has caught up, and was never behind by more than its overflow policy allows."""
        source = self.registration if self.registration is not None else self.subscription
        assert source is not None
        statistics = source.statistics()
        buffer = getattr(statistics, "buffer", statistics)
        assert (buffer.buffered, buffer.pending_objects) == (0, 0), self.log[-8:]
        spare = objects if self.overflow == "coalesce" else BATCH
        assert buffer.high_water <= self.buffer_size + spare
        assert self.overflow == "coalesce" or buffer.coalesced == 0
