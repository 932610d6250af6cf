"""The distribution of notifications: a buffer for each listener, and a task for each listener that is a handler."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar, final

import attrs
import trio

from ..._util import NoPublicConstructor, Slices, enclosing_tasks
from ...errors import DecodeError, HandlerOverflowError, QuarantinedError
from ...models import KubernetesObject, key_of
from .._bad_objects import UndecodableLog
from ._listener_buffer import BufferStatistics, ListenerBuffer
from ._notifications import (
    Added,
    BatchKind,
    Notification,
    ResourceEventHandler,
    SharedBatch,
    call_handler,
    object_of,
    with_own_filters,
)

T = TypeVar("T", bound=KubernetesObject)
T_co = TypeVar("T_co", bound=KubernetesObject, covariant=True)

ErrorHandler: TypeAlias = Callable[[Exception, Notification[T]], Awaitable[None]]
"""Called with an exception that a handler raised, and the notification that it was handling."""


@final
@attrs.frozen
class PeriodGrid:
    """The multiples of a period since a start.

    A sum of periods would collect rounding errors: three checks of 0.7 s end before 2.1 s have passed.
    """

    start: float
    """Seconds on trio's clock."""
    period: float
    """Seconds; more than 0."""

    def time_of(self, number: int) -> float:
        """Return the end of a period; the first one has number 1."""
        return self.start + number * self.period

    def passed(self, now: float) -> int:
        """Return how many periods have passed; a millionth of a period is a rounding error."""
        return math.floor((now - self.start) / self.period + 1e-6)


@final
@attrs.define(eq=False)
class Listener(Generic[T]):
    """A handler or a subscription: its buffer, and when its next resync is due."""

    buffer: ListenerBuffer[T]
    name: str | None = None
    """The handler's and its informer's name; None for a subscription, which raises its own errors."""
    resync_period: float = 0.0
    is_due: bool = False
    """Whether the resync period has passed and the next resync is for this listener."""
    _started_at: float = attrs.field(default=0.0, init=False)
    _periods: int = attrs.field(default=0, init=False)
    """How many periods had passed at the last resync."""

    def start_period(self, now: float) -> None:
        """Start the first resync period."""
        self._started_at, self._periods = now, 0

    def mark_due(self, now: float) -> None:
        """Note whether another resync period has passed; several that passed together are one."""
        if self.resync_period > 0:
            passed = PeriodGrid(self._started_at, self.resync_period).passed(now)
            if passed > self._periods:
                self.is_due, self._periods = True, passed


@final
@attrs.define(eq=False)
class HandlerTask(Generic[T]):
    """The task that takes notifications from a buffer and calls a handler."""

    listener: Listener[T]
    handler: ResourceEventHandler[T]
    on_error: ErrorHandler[T] | None
    calls: int = attrs.field(default=0, init=False)
    failed: int = attrs.field(default=0, init=False)
    failed_initial: int = attrs.field(default=0, init=False)
    slowest_call: float = attrs.field(default=0.0, init=False)
    call_started_at: float | None = attrs.field(default=None, init=False)
    task: trio.lowlevel.Task | None = attrs.field(default=None, init=False)
    _undecodable_log: UndecodableLog = attrs.field(init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _waiting_for: list[HandlerTask[Any]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._undecodable_log = UndecodableLog(str(self.listener.name))

    async def run(self) -> None:
        """Call the handler for each notification until the buffer is closed.

        Raises:
            HandlerOverflowError: The handler fell behind, and its ``overflow`` does not allow merging.
            Exception: An exception of the handler, with a note that names handler and object, unless there is an
                ``on_error``, or it is about an undecodable object.
        """
        self.task = trio.lowlevel.current_task()
        _CURRENT_HANDLER.set(self)
        try:
            await self._call_for_each()
        finally:
            self.task = self.call_started_at = None
            # A kept registration must not keep them alive.
            self.handler, self.on_error = ResourceEventHandler(), None
            self._ended.set()

    async def _call_for_each(self) -> None:
        buffer, handler = self.listener.buffer, with_own_filters(self.handler)
        while True:
            try:
                notification = await buffer.take()
            except trio.EndOfChannel:
                return
            except trio.BrokenResourceError as error:
                raise HandlerOverflowError(f"{self.listener.name}: {error}") from error
            self.call_started_at = started_at = trio.current_time()
            self.calls += 1
            try:
                await call_handler(handler, notification)
            except Exception as error:  # noqa: BLE001  # the documented boundary to a user's handler
                await self._handle_error(error, notification)
            self.call_started_at = None
            elapsed = trio.current_time() - started_at
            if elapsed > self.slowest_call:  # max() costs three times as much, for every event
                self.slowest_call = elapsed

    async def _handle_error(self, error: Exception, notification: Notification[T]) -> None:
        obj = object_of(notification)
        where = f"in {self.listener.name}, on {type(notification).__name__} {obj.kind} {key_of(obj)}"
        undecodable = decoding_error(error)
        if undecodable is not None:
            self._undecodable_log.warn(obj, undecodable)
        elif self.on_error is None:
            error.add_note(where)
            raise error
        self.failed += 1
        self.failed_initial += isinstance(notification, Added) and notification.is_initial
        if self.on_error is None:
            return
        try:
            await self.on_error(error, notification)
        except Exception as raised:
            raised.add_note(where)
            raise

    async def wait_until_ended(self) -> None:
        """Wait until the task has ended; only a checkpoint if it is not running, or if it waits for the caller.

        The buffer must have been closed.
        """
        enclosing = tuple(enclosing_handlers())
        if self.task is None or any(self._is_waiting_for(each) for each in enclosing):
            await trio.lowlevel.checkpoint()
            return
        for each in enclosing:
            each._waiting_for.append(self)
        try:
            await self._ended.wait()
        finally:
            for each in enclosing:
                each._waiting_for.remove(self)

    def _is_waiting_for(self, other: HandlerTask[Any]) -> bool:
        """Whether this handler's running call cannot end before the other's does."""
        return self is other or any(each._is_waiting_for(other) for each in self._waiting_for)


def decoding_error(error: Exception) -> DecodeError | QuarantinedError | None:
    """Return the error of reading an undecodable object, also if it is the only one in groups; None for all others."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, DecodeError | QuarantinedError) else None


_CURRENT_HANDLER: ContextVar[HandlerTask[Any]] = ContextVar("trioformer.cache.current_handler")


def enclosing_handlers() -> Iterator[HandlerTask[Any]]:
    """Yield the handlers whose calls enclose the current task, the innermost first.

    A task in a nursery that the handler's call opened is enclosed.  A task that the call started in another nursery is
    not, although it inherits the context: the call does not wait for it.
    """
    for task in enclosing_tasks():
        handler = task.context.get(_CURRENT_HANDLER)
        if handler is not None and handler.task is task:
            yield handler


@final
@attrs.frozen
class HandlerStatistics:
    """The calls of a handler, and how far it is behind."""

    buffer: BufferStatistics
    """How far it is behind."""
    slowest_call: float
    """The duration of the longest call that has returned, seconds."""
    running_call: float
    """Seconds since the running call started; 0 if no call is running."""
    name: str
    """The handler's and its informer's name."""
    calls: int
    """How many calls have started."""
    failed: int
    """How many calls raised an exception that went to ``on_error``, or a `DecodeError` or `QuarantinedError`."""
    failed_initial: int
    """How many of these calls were about initial objects.

    Such objects count as handled for ``has_synced``, so a handler may have synced although it failed on some objects.
    """


@final
@attrs.define(eq=False, repr=False)
class HandlerRegistration(Generic[T_co], metaclass=NoPublicConstructor):
    """The registration of a handler with an informer (client-go ``ResourceEventHandlerRegistration``)."""

    _task: HandlerTask[T_co]
    _processor: Processor[T_co]

    def __repr__(self) -> str:
        return f"<HandlerRegistration of {self._task.listener.name}>"

    @property
    def has_synced(self) -> bool:
        """Whether the handler has processed every initial object: the first list, or the cache when it was added.

        This is later than the informer's own ``has_synced``, which is about the cache only.
        """
        return self._task.listener.buffer.has_synced

    async def wait_until_synced(self) -> None:
        """Wait for :attr:`has_synced`.

        Raises:
            RuntimeError: The handler itself waits, inside a call that must return before the handler has synced.
            trio.ClosedResourceError: The handler was removed, or the informer stopped, before.
        """
        if not self.has_synced and self._task in enclosing_handlers():
            raise RuntimeError(
                f"{self._task.listener.name} cannot wait for its own sync inside a call, which has to return first; "
                "wait in another task"
            )
        await self._task.listener.buffer.wait_until_synced()

    @property
    def resync_period(self) -> float:
        """The effective resync period, seconds; 0 is never."""
        return self._task.listener.resync_period

    def remove(self) -> None:
        """Remove the handler: a running call continues to its end, pending notifications are dropped.

        Removing twice, inside the handler, or after the informer has stopped is allowed.
        """
        self._processor.remove(self._task.listener)

    async def aclose(self) -> None:
        """Remove the handler, and wait until a running call has returned (client-go ``ShutDownEventHandler``).

        When this returns, the handler is not running and is not called again.
        There is one exception, to avoid a deadlock: inside a call of the handler itself, or of another handler whose
        end the handler's call is waiting for, this only removes the handler.
        Closing twice, before the informer runs, or after it has stopped is allowed, and does not wait.

        Cancellation: the handler is removed all the same; a running call continues to its end.
        """
        self.remove()
        await self._task.wait_until_ended()

    def statistics(self) -> HandlerStatistics:
        """The calls of the handler, and how far it is behind."""
        task = self._task
        return HandlerStatistics(
            buffer=task.listener.buffer.statistics(),
            slowest_call=task.slowest_call,
            running_call=trio.current_time() - task.call_started_at if task.call_started_at is not None else 0.0,
            name=task.listener.name or "",
            calls=task.calls,
            failed=task.failed,
            failed_initial=task.failed_initial,
        )


@final
@attrs.define(eq=False, repr=False)
class Subscription(Generic[T], metaclass=NoPublicConstructor):
    """The notifications of an informer as an async iterator, for the caller's own task.

    It ends when the informer stops.

    Raises:
        trio.BrokenResourceError: From iterating: the subscription fell behind, with ``overflow="block"``.
        trio.BusyResourceError: From iterating: another task is iterating.
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
        """Whether the iterator was advanced beyond the last initial object."""
        return self._buffer.has_synced

    def statistics(self) -> BufferStatistics:
        """How far the subscription is behind."""
        return self._buffer.statistics()


@final
@attrs.define(eq=False)
class Processor(Generic[T]):
    """The listeners of an informer; only the process loop sends notifications through it."""

    _listeners: list[Listener[T]] = attrs.field(factory=list, init=False)

    def add(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Add a listener; if the cache has synced, its objects are queued first, as initial.

        Args:
            listener: The listener.
            initial: The objects of the cache; None if the cache has not synced: :meth:`distribute_initial` will then
                notify this listener too.
        """
        self._listeners.append(listener)
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def start(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Start a paused listener; the objects of the cache are queued first, as for :meth:`add`."""
        listener.buffer.start()
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def remove(self, listener: Listener[T]) -> None:
        """Remove a listener if it is there, and close its buffer."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        listener.buffer.close()

    def close(self) -> None:
        """Remove every listener."""
        for listener in tuple(self._listeners):
            self.remove(listener)

    def distribute_initial(self, initial: Sequence[T]) -> None:
        """Notify every listener of the first list."""
        self._put_batch(SharedBatch(BatchKind.INITIAL, initial), self._listeners)

    def distribute(self, notifications: Sequence[Notification[T]]) -> None:
        """Notify every listener of changes from a watch."""
        for listener in self._listeners:
            listener.buffer.put_all(notifications)

    async def distribute_relist(self, changes: Sequence[Notification[T]]) -> None:
        """Notify every listener of the changes that a relist found.

        Listeners that keep up share one batch, queued before the first checkpoint.  For listeners that are behind, the
        changes are merged into their pending notifications, in slices.
        """
        if not changes:
            return
        batch = SharedBatch(BatchKind.RELIST, changes=changes)
        behind = [listener.buffer for listener in self._listeners if not listener.buffer.put_batch(batch)]
        for buffer in behind:
            buffer.begin_merging()
        slices = Slices()
        for buffer in behind:
            for change in changes:
                buffer.put(change)
                if slices.is_over():
                    await slices.checkpoint()
            buffer.end_merging()

    def __len__(self) -> int:
        return len(self._listeners)

    def schedule_all(self, now: float) -> None:
        """Start the resync period of every listener now."""
        for listener in self._listeners:
            listener.start_period(now)

    def mark_due(self, now: float) -> bool:
        """Mark the listeners whose resync period has passed; return whether any listener is due."""
        for listener in self._listeners:
            listener.mark_due(now)
        return any(listener.is_due for listener in self._listeners)

    def distribute_resync(self, objects: Sequence[T]) -> None:
        """Repeat every object to the listeners whose resync is due."""
        due = [listener for listener in self._listeners if listener.is_due]
        for listener in due:
            listener.is_due = False
        if objects:
            self._put_batch(SharedBatch(BatchKind.RESYNC, objects), due)

    @staticmethod
    def _put_batch(batch: SharedBatch[T], listeners: Sequence[Listener[T]]) -> None:
        for listener in listeners:
            listener.buffer.put_batch(batch)

    def raise_if_inside_handler(self, awaited: str, *, only_blocking: bool = False) -> None:
        """Check that the current task may wait for ``awaited``: it must not be inside a call of one of these handlers.

        Args:
            awaited: What the task would wait for, for the error.
            only_blocking: Check only handlers with ``overflow="block"``, for which the process loop waits.

        Raises:
            RuntimeError: It is inside a call, so the wait could be a deadlock.
        """
        for handler in enclosing_handlers():
            listener = handler.listener
            if listener in self._listeners and (not only_blocking or listener.buffer.overflow == "block"):
                raise RuntimeError(
                    f"{listener.name} cannot wait for {awaited} inside a call, which may have to return first; "
                    "wait in another task"
                )

    async def wait_for_backlogs(self) -> None:
        """Wait for the listeners with ``overflow="block"`` that have a backlog; not a checkpoint if none has one.

        Raises:
            HandlerOverflowError: A handler fell too far behind for its ``overflow``.
        """
        for listener in tuple(self._listeners):
            buffer = listener.buffer
            if buffer.overflow == "block":
                await buffer.wait_for_room()
            # While this method waited for another listener, this one may have been removed.
            if buffer.broken_because is not None and listener in self._listeners:
                self._listeners.remove(listener)
                if listener.name is not None:
                    raise HandlerOverflowError(f"{listener.name} fell behind: {buffer.broken_because}")
