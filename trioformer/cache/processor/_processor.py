"""The processor, which sends notifications to the buffer of each listener, and the tasks that call handlers."""

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
"""An async function that is called with each exception from a handler, and with the notification that caused it."""


@final
@attrs.frozen
class PeriodGrid:
    """A schedule of equal periods that begin at a start time.

    Times are computed by multiplication, because repeated addition accumulates rounding errors: 0.7 + 0.7 + 0.7 is
    less than 2.1.
    """

    start: float
    """The start time on trio's clock."""
    period: float
    """The length of a period in seconds, which must be positive."""

    def time_of(self, number: int) -> float:
        """Return the time when the period with this number ends; the first period has the number 1."""
        return self.start + number * self.period

    def passed(self, now: float) -> int:
        """Return the number of periods that have passed, with a tolerance of a millionth of a period."""
        return math.floor((now - self.start) / self.period + 1e-6)


@final
@attrs.define(eq=False)
class Listener(Generic[T]):
    """A handler or a subscription, with its buffer and its resync schedule."""

    buffer: ListenerBuffer[T]
    name: str | None = None
    """A name for messages that contains the handler and its informer; None for a subscription, which raises its own
    errors."""
    resync_period: float = 0.0
    is_due: bool = False
    """Whether the resync period has passed, so that the listener receives the next resync."""
    _started_at: float = attrs.field(default=0.0, init=False)
    _periods: int = attrs.field(default=0, init=False)
    """The number of periods that had passed at the last resync."""

    def start_period(self, now: float) -> None:
        """Start the first resync period of the listener."""
        self._started_at, self._periods = now, 0

    def mark_due(self, now: float) -> None:
        """Mark the listener as due if at least one resync period has passed since the last resync."""
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
            HandlerOverflowError: The handler fell behind, and its ``overflow`` is ``"block"``.
            Exception: The handler raised an exception and has no ``on_error``, or ``on_error`` raised an exception.  A
                note names the handler and the object.  Errors about undecodable objects are only logged.
        """
        self.task = trio.lowlevel.current_task()
        _CURRENT_HANDLER.set(self)
        try:
            await self._call_for_each()
        finally:
            self.task = self.call_started_at = None
            self._undecodable_log.log_rest()
            # A program may keep the registration, which must not keep the handler alive.
            self.handler, self.on_error = ResourceEventHandler(), None
            self._ended.set()

    async def _call_for_each(self) -> None:
        buffer, handler = self.listener.buffer, with_own_filters(self.handler)
        now = trio.current_time()
        while True:
            notification = buffer.take_now(now)
            if notification is None:
                try:
                    notification = await buffer.take()
                except trio.EndOfChannel:
                    return
                except trio.BrokenResourceError as error:
                    raise HandlerOverflowError(f"{self.listener.name}: {error}") from error
                now = trio.current_time()
            self.call_started_at = started_at = now
            self.calls += 1
            try:
                await call_handler(handler, notification)
            except Exception as error:  # noqa: BLE001  # the documented boundary to the user's handler
                await self._handle_error(error, notification)
            self.call_started_at = None
            now = trio.current_time()
            if now - started_at > self.slowest_call:  # max() would cost three times as much for every event
                self.slowest_call = now - started_at

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
        """Wait until the task has ended; do not wait if the task is not running, or is waiting for the caller.

        The listener's buffer must already be closed.
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
        """Return whether the running call to this handler waits until the other handler's call has ended."""
        return self is other or any(each._is_waiting_for(other) for each in self._waiting_for)


def decoding_error(error: Exception) -> DecodeError | QuarantinedError | None:
    """Return the exception if it is about an undecodable object, and otherwise None."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, DecodeError | QuarantinedError) else None


_CURRENT_HANDLER: ContextVar[HandlerTask[Any]] = ContextVar("trioformer.cache.current_handler")


def enclosing_handlers() -> Iterator[HandlerTask[Any]]:
    """Yield the handlers whose calls enclose the current task, beginning with the innermost one.

    A call encloses the tasks in the nurseries that it opened.  If a call starts tasks in other nurseries, it does not
    enclose these tasks, because it does not wait for them.
    """
    for task in enclosing_tasks():
        handler = task.context.get(_CURRENT_HANDLER)
        if handler is not None and handler.task is task:
            yield handler


@final
@attrs.frozen
class HandlerStatistics:
    """Statistics about the calls to a handler and its backlog."""

    buffer: BufferStatistics
    """The statistics of the handler's buffer."""
    slowest_call: float
    """The duration of the longest completed call, in seconds."""
    running_call: float
    """The time since the running call started, in seconds; 0 if no call is running."""
    name: str
    """A name for messages that contains the handler and its informer."""
    calls: int
    """The number of calls that have started."""
    failed: int
    """The number of calls with an exception that was skipped or passed to ``on_error``."""
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
        """Whether the handler has handled its initial objects.

        These are the first list, or all objects that were in the cache when the handler was added.

        The informer's ``has_synced`` describes only the cache, and becomes true earlier.
        """
        return self._task.listener.buffer.has_synced

    async def wait_until_synced(self) -> None:
        """Wait until :attr:`has_synced` is true.

        Raises:
            RuntimeError: The caller is inside a call to this handler, which must return before the handler can sync.
            trio.ClosedResourceError: The handler was removed, or the informer stopped, before the handler had synced.
        """
        if not self.has_synced and self._task in enclosing_handlers():
            raise RuntimeError(
                f"{self._task.listener.name} must not wait for its own sync while it is being called, because it "
                "cannot sync until the call returns; wait in another task"
            )
        await self._task.listener.buffer.wait_until_synced()

    @property
    def resync_period(self) -> float:
        """The effective resync period in seconds; 0 if resync is disabled."""
        return self._task.listener.resync_period

    def remove(self) -> None:
        """Remove the handler: drop its pending notifications, but let a running call finish.

        A handler may be removed repeatedly, inside one of its calls, and after the informer has stopped.
        """
        self._processor.remove(self._task.listener)

    async def aclose(self) -> None:
        """Remove the handler, and wait until its running call has returned (client-go ``ShutDownEventHandler``).

        After this method has returned, the handler is not running and is never called again.
        To avoid a deadlock, the method does not wait if the caller is inside a call to the same handler, or inside a
        call for which this handler's running call is waiting.
        If the handler's task is not running, the method returns without waiting.

        Cancellation: the handler is removed in any case, and a running call finishes.
        """
        self.remove()
        await self._task.wait_until_ended()

    def statistics(self) -> HandlerStatistics:
        """Return statistics about the calls to the handler and its backlog.

        The result has the fields ``name``, ``calls``, ``failed``, ``failed_initial`` (failed calls for initial
        objects), ``slowest_call`` and ``running_call`` (in seconds), and ``buffer`` (with the fields of
        :meth:`Subscription.statistics`).
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
    """An async iterator over the notifications of an informer.

    The iteration ends when the informer stops.

    Raises:
        trio.BrokenResourceError: The subscription has fallen behind during the iteration, and its ``overflow`` is
            ``"block"``.
        trio.BusyResourceError: Another task is already iterating over the subscription.
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
        """Whether the caller has handled the initial objects and has requested the next notification."""
        return self._buffer.has_synced

    def statistics(self) -> BufferStatistics:
        """Return statistics about the subscription's backlog.

        The result has the fields ``buffered`` (pending notifications), ``pending_objects`` (objects with merged
        notifications), ``coalesced`` (notifications that were merged), ``delivered`` (notifications that were
        delivered), and ``high_water`` (the largest backlog so far).
        """
        return self._buffer.statistics()


@final
@attrs.define(eq=False)
class Processor(Generic[T]):
    """The listeners of an informer; only the process loop sends notifications to them."""

    _listeners: list[Listener[T]] = attrs.field(factory=list, init=False)

    def add(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Add a listener; if the cache has synced, queue its objects first, as initial objects.

        Args:
            listener: The listener.
            initial: The objects of the cache, or None if the cache has not synced and :meth:`distribute_initial` will
                be called.
        """
        self._listeners.append(listener)
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def start(self, listener: Listener[T], initial: Sequence[T] | None) -> None:
        """Start a paused listener; first queue the objects of the cache, as :meth:`add` does."""
        listener.buffer.start()
        if initial is not None:
            listener.buffer.put_batch(SharedBatch(BatchKind.INITIAL, initial))

    def remove(self, listener: Listener[T]) -> None:
        """Remove a listener and close its buffer; a listener may be removed repeatedly."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        listener.buffer.close()

    def close(self) -> None:
        """Remove every listener."""
        for listener in tuple(self._listeners):
            self.remove(listener)

    def distribute_initial(self, initial: Sequence[T]) -> None:
        """Notify all listeners about the first list."""
        self._put_batch(SharedBatch(BatchKind.INITIAL, initial), self._listeners)

    def has_room(self, count: int) -> bool:
        """Return whether ``count`` notifications fit into the buffers of all listeners with ``overflow="block"``."""
        for listener in self._listeners:  # noqa: SIM110  # all() would take three times as long for every batch
            if not listener.buffer.has_room(count):
                return False
        return True

    def distribute(self, notifications: Sequence[Notification[T]]) -> None:
        """Notify all listeners about changes from a watch."""
        for listener in self._listeners:
            listener.buffer.put_all(notifications)

    async def distribute_relist(self, changes: Sequence[Notification[T]]) -> None:
        """Notify all listeners about the changes that a relist found.

        All listeners that are not behind share one batch, which is queued before the first checkpoint.  For the other
        listeners, the changes are merged into the pending notifications, with a checkpoint about once a millisecond.
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
        """Start the first resync period of all listeners."""
        for listener in self._listeners:
            listener.start_period(now)

    def mark_due(self, now: float) -> bool:
        """Mark each listener that is due for a resync; return whether there is at least one."""
        for listener in self._listeners:
            listener.mark_due(now)
        return any(listener.is_due for listener in self._listeners)

    def distribute_resync(self, objects: Sequence[T]) -> None:
        """Deliver all objects again to the listeners that are due for a resync."""
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
        """Raise an error if the current task is inside a call to a handler, where waiting could cause a deadlock.

        Args:
            awaited: What the caller wants to wait for, for the error message.
            only_blocking: Whether to consider only handlers with ``overflow="block"``, because the process loop never
                waits for other handlers.

        Raises:
            RuntimeError: The current task is inside a call to one of these handlers.
        """
        for handler in enclosing_handlers():
            listener = handler.listener
            if listener in self._listeners and (not only_blocking or listener.buffer.overflow == "block"):
                raise RuntimeError(
                    f"{listener.name} must not wait for {awaited} while it is being called, because the wait may not "
                    "end until the call returns; wait in another task"
                )

    async def wait_for_backlogs(self) -> None:
        """Wait until the backlogs of all listeners with ``overflow="block"`` fit into their buffers.

        Raises:
            HandlerOverflowError: A handler with ``overflow="block"`` handled no notification during its ``patience``.
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
