"""Telling the readers: one listener task and one buffer for each handler, one buffer for each subscription."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar, final

import attrs
import trio

from ..._util import NoPublicConstructor, Slices, enclosing_tasks
from ...errors import HandlerOverflowError
from ...models import KubernetesObject, key_of
from ._listener_buffer import BatchKind, BufferStatistics, ListenerBuffer, SharedBatch
from ._notifications import Added, Notification, ResourceEventHandler, call_of, for_one_reader, object_of

T = TypeVar("T", bound=KubernetesObject)
T_co = TypeVar("T_co", bound=KubernetesObject, covariant=True)

ErrorHandler: TypeAlias = Callable[[Exception, Notification[T]], Awaitable[None]]
"""Given an exception that a handler raised, and the notification it was handling."""


@final
@attrs.define(eq=False)
class Listener(Generic[T]):
    """A reader as the processor sees it: its buffer, and when it is next due a resync."""

    buffer: ListenerBuffer[T]
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
class HandlerTask(Generic[T]):
    """The task that reads a buffer and calls a handler."""

    listener: Listener[T]
    handler: ResourceEventHandler[T]
    on_error: ErrorHandler[T] | None
    calls: int = attrs.field(default=0, init=False)
    failed: int = attrs.field(default=0, init=False)
    failed_initial: int = attrs.field(default=0, init=False)
    slowest_call: float = attrs.field(default=0.0, init=False)
    call_began: float | None = attrs.field(default=None, init=False)
    task: trio.lowlevel.Task | None = attrs.field(default=None, init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _waits_for: list[HandlerTask[Any]] = attrs.field(factory=list, init=False)

    async def run(self) -> None:
        """Call the handler for each notification until the buffer is closed.

        Raises:
            HandlerOverflowError: The handler fell behind and its policy forbids merging.
            Exception: What the handler raised, with a note that names handler and object, unless ``on_error`` took it.
        """
        self.task = trio.lowlevel.current_task()
        _LISTENER.set(self)
        try:
            await self._call_for_each()
        finally:
            self.task = self.call_began = None
            self.handler, self.on_error = ResourceEventHandler(), None  # a registration that is kept does not keep them
            self._ended.set()

    async def _call_for_each(self) -> None:
        buffer, handler = self.listener.buffer, for_one_reader(self.handler)
        while True:
            try:
                notification = await buffer.take()
            except trio.EndOfChannel:
                return
            except trio.BrokenResourceError as error:
                raise HandlerOverflowError(f"{self.listener.name}: {error}") from error
            self.call_began = began = trio.current_time()
            self.calls += 1
            try:
                await call_of(handler, notification)
            except Exception as error:  # noqa: BLE001  # the documented boundary to a user's handler
                await self._failed(error, notification)
            self.call_began = None
            elapsed = trio.current_time() - began
            if elapsed > self.slowest_call:  # max() costs three times as much, for every event
                self.slowest_call = elapsed

    async def _failed(self, error: Exception, notification: Notification[T]) -> None:
        obj = object_of(notification)
        where = f"in {self.listener.name}, on {type(notification).__name__} {obj.kind} {key_of(obj)}"
        if self.on_error is None:
            error.add_note(where)
            raise error
        self.failed += 1
        self.failed_initial += isinstance(notification, Added) and notification.is_initial
        try:
            await self.on_error(error, notification)
        except Exception as raised:
            raised.add_note(where)
            raise

    async def wait_until_ended(self) -> None:
        """Wait until the task calls no more; a checkpoint only if it does not run, or waits for the caller.

        The buffer must have been closed.
        """
        around = tuple(enclosing_handlers())
        if self.task is None or any(self._is_waiting_for(one) for one in around):
            await trio.lowlevel.checkpoint()
            return
        for one in around:
            one._waits_for.append(self)
        try:
            await self._ended.wait()
        finally:
            for one in around:
                one._waits_for.remove(self)

    def _is_waiting_for(self, other: HandlerTask[Any]) -> bool:
        """Whether this handler's running call cannot end before the other's does."""
        return self is other or any(one._is_waiting_for(other) for one in self._waits_for)


_LISTENER: ContextVar[HandlerTask[Any]] = ContextVar("trioformer.cache.listener")


def enclosing_handlers() -> Iterator[HandlerTask[Any]]:
    """The listeners in whose handlers' calls the current task is, the nearest first.

    A task that a handler starts in a nursery of its own counts, one that it starts in somebody else's does not, though
    it inherits the context: the call does not wait for it.
    """
    for task in enclosing_tasks():
        listener = task.context.get(_LISTENER)
        if listener is not None and listener.task is task:
            yield listener


@final
@attrs.frozen
class HandlerStatistics:
    """How a handler keeps up."""

    buffer: BufferStatistics
    """How far it is behind."""
    slowest_call: float
    """The longest that one call took, seconds; a call counts when it has returned."""
    running_call: float
    """Seconds since the call that is running began; 0 when none is."""
    name: str
    """The handler's and its informer's name."""
    calls: int
    """How many calls have begun."""
    failed: int
    """How many of them raised what ``on_error`` took."""
    failed_initial: int
    """How many of these were about objects that were there when the handler joined.

    They count as handled for ``has_synced``, so a handler can be synced without having succeeded on every object.
    """


@final
@attrs.define(eq=False, repr=False)
class HandlerRegistration(Generic[T_co], metaclass=NoPublicConstructor):
    """A handler's place in an informer (client-go ``ResourceEventHandlerRegistration``)."""

    _task: HandlerTask[T_co]
    _processor: Processor[T_co]

    def __repr__(self) -> str:
        return f"<HandlerRegistration of {self._task.listener.name}>"

    @property
    def has_synced(self) -> bool:
        """Whether the handler has returned from every object that was there when it joined.

        Later than the informer's own ``has_synced``, which only says that the cache is filled.
        """
        return self._task.listener.buffer.has_synced

    async def wait_until_synced(self) -> None:
        """Wait for :attr:`has_synced`.

        Raises:
            RuntimeError: It is the handler itself that waits: it has not synced before the call has returned.
            trio.ClosedResourceError: The handler was removed, or the informer stopped, before.
        """
        if not self.has_synced and self._task in enclosing_handlers():
            raise RuntimeError(
                f"{self._task.listener.name} waits for its own sync inside a call, and has synced only after the call "
                "has returned; wait in another task"
            )
        await self._task.listener.buffer.wait_until_synced()

    @property
    def resync_period(self) -> float:
        """The period in force, seconds; 0 for none."""
        return self._task.listener.resync_period

    def remove(self) -> None:
        """Take the handler out: a call that runs goes on to its end, nothing that waits is delivered.

        Removing twice, from inside the handler, or after the informer has stopped, is fine.
        """
        self._processor.remove(self._task.listener)

    async def aclose(self) -> None:
        """Take the handler out, and wait until a call that runs has returned (client-go ``ShutDownEventHandler``).

        When this returns, the handler is not running and will not be called again.
        There is one exception, since waiting would never end: from inside a call of the handler itself, or of one that
        the handler's call is waiting for in the same way, it only removes.
        Closing twice, before the informer runs or after it has stopped is fine, and waits for nothing.

        Cancellation: the handler is removed all the same; a call that runs goes on to its end.
        """
        self.remove()
        await self._task.wait_until_ended()

    def statistics(self) -> HandlerStatistics:
        """How the handler keeps up."""
        task = self._task
        return HandlerStatistics(
            buffer=task.listener.buffer.statistics(),
            slowest_call=task.slowest_call,
            running_call=trio.current_time() - task.call_began if task.call_began is not None else 0.0,
            name=task.listener.name or "",
            calls=task.calls,
            failed=task.failed,
            failed_initial=task.failed_initial,
        )


@final
@attrs.define(eq=False, repr=False)
class Subscription(Generic[T], metaclass=NoPublicConstructor):
    """An informer's notifications as an async iterator; the reader's task is the reader's own.

    It ends when the informer stops.

    Raises:
        trio.BrokenResourceError: From iterating, when the reader fell behind and its policy forbids merging.
    """

    _buffer: ListenerBuffer[T]

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> Notification[T]:
        try:
            return await self._buffer.take()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    @property
    def has_synced(self) -> bool:
        """Whether the reader has come back for more after the last initial object."""
        return self._buffer.has_synced

    def statistics(self) -> BufferStatistics:
        """How far the reader is behind."""
        return self._buffer.statistics()


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
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def remove(self, listener: Listener[T]) -> None:
        """Take a listener out and close its buffer; one that is not there is no error."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        listener.buffer.close()

    def close(self) -> None:
        """Close every buffer."""
        for listener in tuple(self._listeners):
            self.remove(listener)

    def announce(self, initial: Sequence[T]) -> None:
        """Tell every listener of the first list."""
        self._put_batch(SharedBatch(BatchKind.INITIAL, initial), self._listeners)

    def distribute(self, notifications: Sequence[Notification[T]]) -> None:
        """Tell every listener of live changes."""
        for listener in self._listeners:
            put = listener.buffer.put
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
        behind = [listener.buffer for listener in self._listeners if not listener.buffer.put_batch(batch)]
        for buffer in behind:
            buffer.hold_resync()
        slices = Slices()
        for buffer in behind:
            for change in changes:
                buffer.put(change)
                if slices.is_over():
                    await slices.checkpoint()
            buffer.release_resync()

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
            listener.buffer.put_batch(batch)

    def refuse_inside_handler(self, what: str, *, only_blocking: bool = False) -> None:
        """Make sure that the current task is in no call of one of these handlers, to wait for ``what``.

        Args:
            what: What would be waited for.
            only_blocking: Only handlers with ``overflow="block"`` matter, those that the process loop waits for.

        Raises:
            RuntimeError: It is, and what it waits for may not come before the call has returned.
        """
        for around in enclosing_handlers():
            listener = around.listener
            if listener in self._listeners and (not only_blocking or listener.buffer.overflow == "block"):
                raise RuntimeError(
                    f"{listener.name} waits for {what} inside a call, and it may not come before the call has "
                    "returned; wait in another task"
                )

    async def settle(self) -> None:
        """Wait for the listeners with ``overflow="block"`` that have a backlog; no checkpoint when none has.

        Raises:
            HandlerOverflowError: A handler fell too far behind for its policy.
        """
        for listener in tuple(self._listeners):
            buffer = listener.buffer
            await buffer.wait_for_room()
            # While another was waited for, this one may have been removed.
            if buffer.is_broken and listener in self._listeners:
                self._listeners.remove(listener)
                if listener.name is not None:
                    raise HandlerOverflowError(f"{listener.name} fell behind: {buffer.why_broken}")
