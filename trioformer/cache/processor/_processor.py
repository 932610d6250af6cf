"""The distribution of notifications: a buffer for each listener, and a task for each handler."""

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

    Adding up periods would accumulate rounding errors: 0.7 + 0.7 + 0.7 is less than 2.1.
    """

    start: float
    """Seconds on trio's clock."""
    period: float
    """Seconds; more than 0."""

    def time_of(self, number: int) -> float:
        """Return the end of a period; the first period has number 1."""
        return self.start + number * self.period

    def passed(self, now: float) -> int:
        """Return the number of periods that have passed; ignore an error of a millionth of a period."""
        return math.floor((now - self.start) / self.period + 1e-6)


@final
@attrs.define(eq=False)
class Listener(Generic[T]):
    """A handler or a subscription: its buffer, and when its next resync is due."""

    buffer: ListenerBuffer[T]
    name: str | None = None
    """The names of the handler and its informer; None for a subscription, which raises its own errors."""
    resync_period: float = 0.0
    is_due: bool = False
    """Whether the resync period has passed, so that the next resync is for this listener too."""
    _started_at: float = attrs.field(default=0.0, init=False)
    _periods: int = attrs.field(default=0, init=False)
    """The number of periods that had passed at the last resync."""

    def start_period(self, now: float) -> None:
        """Start the first resync period."""
        self._started_at, self._periods = now, 0

    def mark_due(self, now: float) -> None:
        """Mark the listener due if another resync period has passed; several periods count as one."""
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
            Exception: An exception of the handler, with a note that names handler and object; unless there is an
                ``on_error``, or the exception is about an undecodable object.
        """
        self.task = trio.lowlevel.current_task()
        _CURRENT_HANDLER.set(self)
        try:
            await self._call_for_each()
        finally:
            self.task = self.call_started_at = None
            # A program may keep the registration; that must not keep these alive.
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
            except Exception as error:  # noqa: BLE001  # the documented boundary to the user's handler
                await self._handle_error(error, notification)
            self.call_started_at = None
            elapsed = trio.current_time() - started_at
            if elapsed > self.slowest_call:  # max() would cost three times as much for every event
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
        """Wait until the task has ended; only a checkpoint if it is not running, or if it is waiting for the caller.

        The buffer must be closed.
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
        """Whether the running call of this handler waits for the end of the other handler's call."""
        return self is other or any(each._is_waiting_for(other) for each in self._waiting_for)


def decoding_error(error: Exception) -> DecodeError | QuarantinedError | None:
    """Return the error of an undecodable object, unwrapped from groups of one exception; None for other errors."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, DecodeError | QuarantinedError) else None


_CURRENT_HANDLER: ContextVar[HandlerTask[Any]] = ContextVar("trioformer.cache.current_handler")


def enclosing_handlers() -> Iterator[HandlerTask[Any]]:
    """Yield the handlers whose calls enclose the current task, the innermost first.

    A task in a nursery that the call opened is enclosed.  A task that the call started in another nursery is not,
    although it inherits the context: the call does not wait for that task.
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
    """How far the handler is behind."""
    slowest_call: float
    """The duration of the longest call that has returned, seconds."""
    running_call: float
    """Seconds since the running call started; 0 if no call is running."""
    name: str
    """The names of the handler and its informer."""
    calls: int
    """The number of calls that have started."""
    failed: int
    """The number of calls that raised a `DecodeError`, a `QuarantinedError`, or an exception for ``on_error``."""
    failed_initial: int
    """The number of failed calls for initial objects.

    These objects count as handled, so ``has_synced`` may be true for a handler that failed on some of them.
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
        """Whether the handler has handled every initial object: the first list, or the cache when it was added.

        The informer's own ``has_synced`` is about the cache only, and becomes true earlier.
        """
        return self._task.listener.buffer.has_synced

    async def wait_until_synced(self) -> None:
        """Wait for :attr:`has_synced`.

        Raises:
            RuntimeError: The caller is a call of the handler, which must return before the handler can sync.
            trio.ClosedResourceError: The handler was removed, or the informer stopped, before the handler synced.
        """
        if not self.has_synced and self._task in enclosing_handlers():
            raise RuntimeError(
                f"{self._task.listener.name} cannot wait for its own sync inside a call, which must return first; "
                "wait in another task"
            )
        await self._task.listener.buffer.wait_until_synced()

    @property
    def resync_period(self) -> float:
        """The effective resync period, seconds; 0 for no resync."""
        return self._task.listener.resync_period

    def remove(self) -> None:
        """Remove the handler: pending notifications are dropped, and a running call continues to its end.

        A handler may be removed twice, inside its own call, or after the informer has stopped.
        """
        self._processor.remove(self._task.listener)

    async def aclose(self) -> None:
        """Remove the handler, and wait until a running call has returned (client-go ``ShutDownEventHandler``).

        When this returns, the handler is not running and is not called again.
        To avoid a deadlock, there is one exception: inside a call of the handler itself, or of another handler that the
        running call waits for, this method only removes the handler.
        It returns without waiting if the handler was closed before, or if the informer is not running.

        Cancellation: the handler is removed anyway; a running call continues to its end.
        """
        self.remove()
        await self._task.wait_until_ended()

    def statistics(self) -> HandlerStatistics:
        """Return the counts and durations of the calls, and how far the handler is behind.

        The fields are ``name``, ``calls``, ``failed``, ``failed_initial`` (failed calls for initial objects),
        ``slowest_call`` and ``running_call`` (seconds), and ``buffer`` (as for :meth:`Subscription.statistics`).
        """
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
        trio.BrokenResourceError: While iterating: with ``overflow="block"``, the subscription fell behind.
        trio.BusyResourceError: While iterating: another task is iterating.
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
        """Whether the iterator has advanced beyond the last initial object."""
        return self._buffer.has_synced

    def statistics(self) -> BufferStatistics:
        """Return how far the subscription is behind.

        The fields are ``buffered`` and ``pending_objects`` (notifications and changed objects that wait), ``coalesced``
        and ``delivered`` (notifications so far that were merged or taken), and ``high_water`` (the largest backlog).
        """
        return self._buffer.statistics()


@final
@attrs.define(eq=False)
class Processor(Generic[T]):
    """The listeners of an informer; only the process loop sends notifications through it."""

    _listeners: list[Listener[T]] = attrs.field(factory=list, init=False)

    def add(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Add a listener; if the cache has synced, queue its objects first, as initial.

        Args:
            listener: The listener.
            initial: The objects of the cache; None if the cache has not synced, so that :meth:`distribute_initial`
                will notify this listener too.
        """
        self._listeners.append(listener)
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def start(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Start a paused listener; queue the objects of the cache first, as :meth:`add` does."""
        listener.buffer.start()
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def remove(self, listener: Listener[T]) -> None:
        """Remove a listener, if it was not removed before, and close its buffer."""
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

        Listeners that keep up share one batch, which is queued before the first checkpoint.  For listeners that are
        behind, the changes are merged into their pending notifications, in slices.
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
        """Check that the current task is not inside a call of one of these handlers, where waiting could be a deadlock.

        Args:
            awaited: The thing to wait for, for the error.
            only_blocking: Check only handlers with ``overflow="block"``, for which the process loop waits.

        Raises:
            RuntimeError: The task is inside such a call.
        """
        for handler in enclosing_handlers():
            listener = handler.listener
            if listener in self._listeners and (not only_blocking or listener.buffer.overflow == "block"):
                raise RuntimeError(
                    f"{listener.name} cannot wait for {awaited} inside a call, which may have to return first; "
                    "wait in another task"
                )

    async def wait_for_backlogs(self) -> None:
        """Wait for the listeners with ``overflow="block"`` that have a backlog; not a checkpoint if there are none.

        Raises:
            HandlerOverflowError: A handler fell too far behind for its ``overflow``.
        """
        for listener in tuple(self._listeners):
            buffer = listener.buffer
            if buffer.overflow == "block":
                await buffer.wait_for_room()
            # This listener may have been removed while the method waited for another one.
            if buffer.broken_because is not None and listener in self._listeners:
                self._listeners.remove(listener)
                if listener.name is not None:
                    raise HandlerOverflowError(f"{listener.name} fell behind: {buffer.broken_because}")
