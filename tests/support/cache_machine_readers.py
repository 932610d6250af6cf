"""Readers of an informer that can be made slow, stuck or faulty, and check everything that they are told."""

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
    Overflow,
    ResourceEventHandler,
    SharedInformer,
    Subscription,
    Updated,
)
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod

BATCH = 202
"""Notifications that may come to a reader between two turns of its own: what the process loop tells at once."""


class OuchError(Exception):
    """What a faulty handler raises."""


@attrs.define(eq=False, kw_only=True)
class Reader(ResourceEventHandler[Pod]):
    """The world as one reader was told of it.

    Every notification must make sense after the ones before: no update of what it does not know, nothing added or
    deleted twice, for each object ever newer states, and the old state of an update is the one it was told last.
    """

    name: str
    overflow: Overflow
    buffer_size: int = 1_024
    accepts: Callable[[Pod], bool] | None = None
    """Whether an object is inside this reader's filter, when it has one."""
    marked: bool = False
    """Whether every object must have been through the transform, once."""
    view: dict[str, Pod] = attrs.field(factory=dict)
    newest: dict[str, int] = attrs.field(factory=dict)
    log: list[str] = attrs.field(factory=list)
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

    async def _handle(self, told: Notification[Pod]) -> None:
        # A subscription whose scope is cancelled may still take what is ready, up to its next checkpoint.
        assert not self.is_gone or self.registration is None, f"{self.name} was told of {words(told)} after its removal"
        self.take(told)
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
            raise OuchError

    def take(self, told: Notification[Pod]) -> None:
        """Check a notification, and replay it."""
        self.log.append(words(told))
        obj = told.new if isinstance(told, Updated) else told.object
        key, version = key_of(obj), int(obj.resource_version)
        known, newest = self.view.get(key), self.newest.get(key, 0)
        story = f"{self.name}: {', '.join(self.log[-8:])}"
        if isinstance(told, Added):
            assert known is None, f"added twice: {story}"
            assert version > newest, f"an older state: {story}"
            self.view[key] = obj
        elif isinstance(told, Updated):
            assert known is not None, f"updated before it was added: {story}"
            assert known is told.old, f"the old state is not what was told last: {story}"
            assert told.is_resync or version > newest, f"an older state: {story}"
            assert told.old.uid == told.new.uid, f"another object: {story}"
            self.view[key] = obj
        else:
            assert known is not None, f"deleted twice, or before it was added: {story}"
            assert version >= newest, f"an older state: {story}"
            assert known.uid == obj.uid, f"another object: {story}"
            del self.view[key]
        self.newest[key] = version
        if self.marked:
            assert obj.metadata.annotations["passes"] == "1", f"not transformed once: {story}"

    async def on_error(self, error: Exception, told: Notification[Pod]) -> None:
        """Let pass what was ordered, and nothing else."""
        if not isinstance(error, OuchError):
            raise error
        self.errors += 1

    async def read(self, informer: SharedInformer[Pod], patience: float) -> None:
        """Be a subscription, in this task, until it breaks or ends."""
        with (
            self.scope,
            informer.subscribe(overflow=self.overflow, buffer_size=self.buffer_size, patience=patience) as told,
        ):
            self.subscription = told
            try:
                async for notification in told:
                    await self._handle(notification)
            except trio.BrokenResourceError:
                assert self.overflow != "coalesce"
                # One burst may be more than a small buffer holds, however quick its reader.
                assert self.was_slow or (self.overflow == "raise" and self.buffer_size < BATCH)
                self.is_broken = True
            except OuchError:
                self.is_broken = True
        self.is_gone = True
        self.subscription = None

    def join(self, informer: SharedInformer[Pod], patience: float, resync_period: float | None) -> None:
        """Be a handler."""
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
        """Get stuck in the next notification."""
        self.was_slow = True
        if self.gate is None:
            self.gate = trio.Event()

    def unblock(self) -> None:
        """Go on."""
        if self.gate is not None:
            self.gate.set()
            self.gate = None

    @property
    def is_reading(self) -> bool:
        return not (self.is_gone or self.is_broken)

    def check_bounds(self, objects: int) -> None:
        """Whether it has caught up, and was never behind by more than its policy allows."""
        source = self.registration if self.registration is not None else self.subscription
        assert source is not None
        statistics = source.statistics()
        buffer = getattr(statistics, "buffer", statistics)
        assert (buffer.buffered, buffer.pending_objects) == (0, 0), self.log[-8:]
        spare = objects if self.overflow == "coalesce" else BATCH if self.overflow == "block" else 0
        assert buffer.high_water <= self.buffer_size + spare
        assert self.overflow == "coalesce" or buffer.coalesced == 0
