"""Telling the readers: one listener task and one mailbox for each handler, one mailbox for each subscription."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar, final

import attrs
import trio

from .._util import NoPublicConstructor, Slices
from ..errors import HandlerOverflowError
from ..models import KubernetesObject, key_of
from ._events import Notification, ResourceEventHandler, call_of, object_of
from ._mailbox import BatchKind, Mailbox, MailboxStatistics, SharedBatch

T = TypeVar("T", bound=KubernetesObject)

ErrorHandler: TypeAlias = Callable[[Exception, Notification[T]], Awaitable[None]]
"""Given an exception that a handler raised, and the notification it was handling."""


@final
@attrs.define(eq=False)
class Listener(Generic[T]):
    """A reader as the processor sees it: its mailbox, and when it is next due a resync."""

    mailbox: Mailbox[T]
    name: str | None = None
    """The handler's and its informer's name; None for a subscription, whose reader sees its own errors."""
    resync_period: float = 0.0
    next_resync: float = 0.0
    is_due: bool = False

    def schedule(self, now: float) -> None:
        """Set the next resync one period from ``now``."""
        self.next_resync = now + self.resync_period


@final
@attrs.define(eq=False)
class HandlerListener(Generic[T]):
    """The task that reads a mailbox and calls a handler."""

    listener: Listener[T]
    handler: ResourceEventHandler[T]
    on_error: ErrorHandler[T] | None
    slowest_call: float = attrs.field(default=0.0, init=False)

    async def run(self) -> None:
        """Call the handler for each notification until the mailbox is closed.

        Raises:
            HandlerOverflowError: The handler fell behind and its policy forbids merging.
            Exception: What the handler raised, with a note that names handler and object, unless ``on_error`` took it.
        """
        mailbox, handler = self.listener.mailbox, self.handler
        while True:
            try:
                notification = await mailbox.take()
            except trio.EndOfChannel:
                return
            except trio.BrokenResourceError as error:
                raise HandlerOverflowError(f"{self.listener.name}: {error}") from error
            began = trio.current_time()
            try:
                await call_of(handler, notification)
            except Exception as error:  # noqa: BLE001  # the documented boundary to a user's handler
                await self._failed(error, notification)
            elapsed = trio.current_time() - began
            if elapsed > self.slowest_call:  # max() costs three times as much, for every event
                self.slowest_call = elapsed

    async def _failed(self, error: Exception, notification: Notification[T]) -> None:
        obj = object_of(notification)
        where = f"in {self.listener.name}, on {type(notification).__name__} {obj.kind} {key_of(obj)}"
        if self.on_error is None:
            error.add_note(where)
            raise error
        try:
            await self.on_error(error, notification)
        except Exception as raised:
            raised.add_note(where)
            raise


@final
@attrs.frozen
class HandlerStatistics:
    """How a handler keeps up."""

    mailbox: MailboxStatistics
    """How far it is behind."""
    slowest_call: float
    """The longest that one call took, seconds."""


@final
@attrs.define(eq=False, repr=False)
class HandlerRegistration(Generic[T], metaclass=NoPublicConstructor):
    """A handler's place in an informer (client-go ``ResourceEventHandlerRegistration``)."""

    _task: HandlerListener[T]
    _processor: Processor[T]

    def __repr__(self) -> str:
        return f"<HandlerRegistration of {self._task.listener.name}>"

    @property
    def has_synced(self) -> bool:
        """Whether the handler has returned from every object that was there when it joined.

        Later than the informer's own ``has_synced``, which only says that the cache is filled.
        """
        return self._task.listener.mailbox.has_synced

    async def wait_until_synced(self) -> None:
        """Wait for :attr:`has_synced`.

        Raises:
            trio.ClosedResourceError: The handler was removed, or the informer stopped, before.
        """
        await self._task.listener.mailbox.wait_until_synced()

    @property
    def resync_period(self) -> float:
        """The period in force, seconds; 0 for none."""
        return self._task.listener.resync_period

    def remove(self) -> None:
        """Take the handler out: a call that runs goes on to its end, nothing that waits is delivered.

        Removing twice, or from inside the handler, is fine.
        """
        self._processor.remove(self._task.listener)

    def statistics(self) -> HandlerStatistics:
        """How the handler keeps up."""
        return HandlerStatistics(self._task.listener.mailbox.statistics(), self._task.slowest_call)


@final
@attrs.define(eq=False, repr=False)
class Subscription(Generic[T], metaclass=NoPublicConstructor):
    """An informer's notifications as an async iterator; the reader's task is the reader's own.

    It ends when the informer stops.

    Raises:
        trio.BrokenResourceError: From iterating, when the reader fell behind and its policy forbids merging.
    """

    _mailbox: Mailbox[T]

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> Notification[T]:
        try:
            return await self._mailbox.take()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    @property
    def has_synced(self) -> bool:
        """Whether the reader has come back for more after the last initial object."""
        return self._mailbox.has_synced

    def statistics(self) -> MailboxStatistics:
        """How far the reader is behind."""
        return self._mailbox.statistics()


@final
@attrs.define(eq=False)
class Processor(Generic[T]):
    """The set of listeners, and the fan-out to them; only the process loop writes through it."""

    _listeners: list[Listener[T]] = attrs.field(factory=list, init=False)

    def add(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Take in a listener; one that joins a filled cache is told of what is there first.

        Args:
            listener: The listener.
            initial: What the cache holds, or None when it is not filled: then :meth:`announce` tells this listener too.
        """
        self._listeners.append(listener)
        if initial is not None:
            listener.mailbox.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def remove(self, listener: Listener[T]) -> None:
        """Take a listener out and close its mailbox; one that is not there is no error."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        listener.mailbox.close()

    def close(self) -> None:
        """Close every mailbox."""
        for listener in tuple(self._listeners):
            self.remove(listener)

    def announce(self, initial: Sequence[T]) -> None:
        """Tell every listener of the first list."""
        self._put_batch(SharedBatch(BatchKind.INITIAL, initial), self._listeners)

    def distribute(self, notifications: Sequence[Notification[T]]) -> None:
        """Tell every listener of live changes."""
        for listener in self._listeners:
            put = listener.mailbox.put
            for notification in notifications:
                put(notification)

    async def distribute_relist(self, changes: Sequence[Notification[T]]) -> None:
        """Tell every listener what a relist changed.

        Those that keep up share one batch, queued before the first checkpoint; for those that are behind, the changes
        are merged into what waits for them, in slices.
        """
        if not changes:
            return
        batch = SharedBatch(BatchKind.RELIST, changes=changes)
        behind = [listener.mailbox for listener in self._listeners if not listener.mailbox.put_batch(batch)]
        slices = Slices()
        for mailbox in behind:
            for change in changes:
                mailbox.put(change)
                if slices.is_over():
                    await slices.checkpoint()

    def __len__(self) -> int:
        return len(self._listeners)

    def schedule_all(self, now: float) -> None:
        """Begin every listener's resync period now."""
        for listener in self._listeners:
            listener.schedule(now)

    def mark_due(self, now: float) -> bool:
        """Mark the listeners whose resync period is over, and say whether there are any."""
        for listener in self._listeners:
            if listener.resync_period > 0 and listener.next_resync <= now:
                listener.is_due = True
                listener.schedule(now)
        return any(listener.is_due for listener in self._listeners)

    def distribute_resync(self, objects: Sequence[T]) -> None:
        """Repeat every object to the listeners that are due."""
        due = [listener for listener in self._listeners if listener.is_due]
        for listener in due:
            listener.is_due = False
        if objects:
            self._put_batch(SharedBatch(BatchKind.RESYNC, objects), due)

    @staticmethod
    def _put_batch(batch: SharedBatch[T], listeners: Sequence[Listener[T]]) -> None:
        for listener in listeners:
            listener.mailbox.put_batch(batch)

    async def settle(self) -> None:
        """Wait for the listeners with ``overflow="block"`` that have a backlog; no checkpoint when none has.

        Raises:
            HandlerOverflowError: A handler fell too far behind for its policy.
        """
        for listener in tuple(self._listeners):
            mailbox = listener.mailbox
            await mailbox.wait_for_room()
            # While another was waited for, this one may have been removed.
            if mailbox.is_broken and listener in self._listeners:
                self._listeners.remove(listener)
                if listener.name is not None:
                    raise HandlerOverflowError(f"{listener.name} fell behind: {mailbox.why_broken}")
