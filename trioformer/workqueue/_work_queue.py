"""The work queue, with its pending keys, its keys in progress and its waiting workers.

The states of a key are the same as in client-go (``util/workqueue``).  A key is *pending* from the time it is added
until a worker takes it. A pending key is *ready* if it is not in progress.  A pending key in progress becomes ready
when its worker is done.  So at most one worker processes a key at a time, and each key is always processed after the
last time it was added.  A *parked* key was taken too early.  It becomes pending when the caller unparks it.

Unlike client-go's queue, which uses goroutines, this queue has no tasks:

- Delayed keys: the worker that has waited longest sleeps until the first delayed key is due.  When this worker
  receives a key or is cancelled, the next worker takes over.  If no worker waits, there is no timer.  In this case,
  each operation on the queue begins by making all due keys pending, in the order of their due times.
- Waiting workers: a key that is added while workers wait is given to the first worker immediately.  If this worker is
  cancelled at the same time, it still receives the key, and puts it back.  An addition before it runs changes nothing.

No change of the state contains a checkpoint, so no locks are necessary.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Generic, TypeVar

import attrs
import trio

from .._suggestions import check_observer
from .._util import SLICE, SLICE_ITEMS
from ._delayed import DelayedKeys
from ._ready import ReadyKeys
from ._reports import Reports
from ._statistics import QueueObserver, QueueStatistics, Remaining
from ._take import Take
from ._wait_queue import WaitQueue

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger("trioformer.workqueue")


@attrs.define(eq=False, repr=False)
class WorkQueue(Generic[K]):
    """A queue in which each key is processed by only one worker at a time.

    - A key that is added several times before a worker takes it is processed once.
    - A key that is added while it is in progress is processed again afterwards.
    - Keys with the highest priority are processed first, and keys of the same priority in the order in which they were
      added.  A key that was added while it was in progress is placed last, so that no key can block other keys.
    - A delayed key becomes ready when it is due.  If a delayed key is added several times, the earliest due time and
      the highest priority apply.
    - Workers receive keys in the order in which they began to wait.

    By default, a key with a low priority can wait forever while keys with higher priorities are added, as in
    controller-runtime's queue. With ``oldest_every=8``, every eighth key is the oldest key, regardless of its priority.

    The size of the queue is limited only by the number of different keys, so adding a key never waits. An exception in
    a :meth:`take` block propagates, and the key is not retried.  To retry failed keys, use
    :class:`~trioformer.workqueue.RateLimitingQueue`.

    Args:
        name: The name of the queue in its ``repr()``, in log messages and in metrics.  A queue without a name logs
            nothing.
        oldest_every: If set to *n*, every *n*-th key that workers receive is the oldest key, regardless of its
            priority.  The default, None, uses strict priorities.
        observer: An observer of the queue's events, for example for metrics.

    Ownership: the queue has no tasks, and does not have to be closed.  The queue must be used in only one
        ``trio.run()``.
        From another thread, add a key with ``trio.from_thread.run_sync(queue.add, key)``.

    Source: client-go ``util/workqueue`` (``queue.go``, ``delaying_queue.go``), and controller-runtime
        ``pkg/controller/priorityqueue`` for the priorities.
    """

    name: str = attrs.field(default="", kw_only=True)
    """The name of the queue in its ``repr()``, in log messages and in metrics."""
    _oldest_every: int | None = attrs.field(default=None, kw_only=True, alias="oldest_every")
    _observer: QueueObserver[K] | None = attrs.field(default=None, kw_only=True, alias="observer")
    _reports: Reports[K] | None = attrs.field(init=False)
    _pending: dict[K, int] = attrs.field(factory=dict, init=False)  # each key's priority
    _ready: ReadyKeys[K] = attrs.field(init=False)
    _delayed: DelayedKeys[K] = attrs.field(factory=DelayedKeys, init=False)  # never pending
    _parked: dict[K, int] = attrs.field(factory=dict, init=False)  # each key's priority; never pending
    _processing: dict[K, tuple[float, int]] = attrs.field(factory=dict, init=False)  # when it was taken, priority
    _workers: WaitQueue[K] = attrs.field(init=False)  # while a worker waits, no key is ready
    _unfinished: dict[K, None] = attrs.field(factory=dict, init=False)
    _is_shut_down: bool = attrs.field(default=False, init=False)
    _hands_out: bool = attrs.field(default=True, init=False)  # false after an immediate shutdown
    _drained: trio.Event | None = attrs.field(default=None, init=False)
    _adds: int = attrs.field(default=0, init=False)
    _retries: int = attrs.field(default=0, init=False)
    _slice_ends: float = attrs.field(default=-math.inf, init=False)
    _slice_left: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        if self._oldest_every is not None and self._oldest_every < 2:
            raise ValueError(f"oldest_every must be None or at least 2, not {self._oldest_every}")
        if self._observer is not None:
            check_observer(self._observer, QueueObserver)
        self._ready = ReadyKeys(self._oldest_every)
        self._workers = WaitQueue(self._delayed)
        self._reports = None if self._observer is None else Reports(self._observer)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        state = ", shut down" if self._is_shut_down else ""
        counts = f"{self._ready.size} ready, {len(self._delayed)} delayed, {len(self._processing)} processing"
        return f"<{type(self).__name__}{name}: {counts}{state}>"

    def __len__(self) -> int:
        """Return the number of ready keys."""
        self._add_due()
        return self._ready.size

    # `queue or default` must not replace an empty queue.
    def __bool__(self) -> bool:
        return True

    # --- adding: plain functions, atomic ---

    def add(self, key: K, *, priority: int = 0) -> bool:
        """Add a key, so that a worker processes it.

        If the key is already pending, the higher of the two priorities applies.  If the new priority is higher, the
        key is placed after all other keys with this priority. If the key is delayed, it becomes ready immediately. If
        the key is in progress, it is processed again when its worker is done.

        Args:
            key: The key, which may be any hashable value.
            priority: The priority of the key.  Keys with a higher priority are processed first.

        Returns:
            Whether the queue accepted the key.  The queue rejects keys after its shutdown.
        """
        if self._is_shut_down:
            return self._reject(key)
        if self._delayed.due < math.inf:
            self._add_due()
            if (delay := self._delayed.remove(key)) is not None:
                priority = max(priority, delay.priority)
        self._make_pending(key, priority)
        if self._workers.waiters:
            self._hand_out()
        if self._reports is not None:
            self._reports.report_added()
        return True

    def add_after(self, key: K, delay: float, *, priority: int | None = None) -> bool:
        """Add a key after a delay, or immediately if the delay is not positive.

        If the key is already delayed, the earlier of the two due times and the higher of the two priorities apply. If
        the key is already pending, the delay is ignored. To postpone a delayed key, call :meth:`cancel_delayed` first.

        Args:
            key: The key, which may be any hashable value.
            delay: The delay in seconds, on trio's clock.
            priority: The priority of the key.  Keys with a higher priority are processed first.  The default, None,
                keeps the priority of a key that is in progress, and uses 0 for other keys.

        Returns:
            Whether the queue accepted the key.  The queue rejects keys after its shutdown.

        Raises:
            ValueError: The delay is infinite or not a number.
        """
        if not math.isfinite(delay):
            raise ValueError(f"the delay must be a finite number of seconds, not {delay}")
        if self._is_shut_down:
            return self._reject(key)
        if priority is None:
            taken = self._processing.get(key)
            priority = 0 if taken is None else taken[1]
        if delay <= 0:
            return self.add(key, priority=priority)
        self._add_due()
        self._retries += 1
        if key in self._pending:
            self._make_pending(key, priority)  # the delay cannot make it earlier; its priority may rise
        else:
            self._delayed.add(key, trio.current_time() + delay, priority)
            self._workers.update_deadline()
        if self._reports is not None:
            self._reports.report_added()
            self._reports.observer.delayed(key, delay=delay)
        return True

    def cancel_delayed(self, key: K) -> bool:
        """Remove a delayed key, so that it does not become due.

        Returns:
            Whether the key was delayed.  Keys that are pending or in progress are not affected.
        """
        self._add_due()
        found = self._delayed.remove(key) is not None
        self._workers.update_deadline()
        return found

    def due_time(self, key: K) -> float | None:
        """Return the time when a key becomes due, on trio's clock, or None if the key is not delayed."""
        self._add_due()
        delay = self._delayed.get(key)
        return None if delay is None else delay.due

    def park(self, key: K) -> None:
        """Put a key in progress aside when its worker is done, until :meth:`unpark` is called.

        Until then, adding the key only raises its priority.
        """
        priority = self._processing[key][1]
        self._parked[key] = max(priority, self._pending.pop(key, priority))

    def unpark(self, key: K) -> None:
        """Add a parked key again, with its priority.  After a shutdown, the key stays parked."""
        if not self._is_shut_down and (priority := self._parked.pop(key, None)) is not None:
            self.add(key, priority=priority)

    def _make_pending(self, key: K, priority: int, since: float | None = None) -> None:
        """Make a key pending, and also ready unless it is in progress. The caller must then call :meth:`_hand_out`."""
        if self._parked and key in self._parked:
            self._parked[key] = max(priority, self._parked[key])
            return
        if key in self._workers.given:
            began, taken = self._processing[key]
            self._processing[key] = (began, max(priority, taken))
            return
        old = self._pending.get(key)
        if old is not None:
            if priority > old:
                self._pending[key] = priority
                if key not in self._processing:
                    self._ready.move(key, old, priority)
            return
        self._pending[key] = priority
        self._adds += 1
        if key not in self._processing:
            self._ready.push(key, priority)
        if self._reports is not None:
            self._reports.record_added(key, priority, trio.current_time() if since is None else since)

    def _reject(self, key: K) -> bool:
        """Reject a key after the shutdown; if the key is in progress, record it as unfinished."""
        if key in self._processing and key not in self._pending:
            self._unfinished[key] = None
        return False

    def _add_due(self) -> None:
        """Make all due keys pending, and give them to waiting workers."""
        if self._delayed.due < math.inf and self._make_due_pending() and self._workers.waiters:
            self._hand_out()

    def _make_due_pending(self) -> bool:
        if self._is_shut_down:
            return False
        due = self._delayed.pop_due(trio.current_time())
        for key, delay in due:
            self._make_pending(key, delay.priority, delay.due)
        return bool(due)

    def _hand_out(self) -> None:
        """Give ready keys to waiting workers."""
        now = trio.current_time()
        while self._workers.waiters and self._ready.size:
            self._workers.hand_off(self._pop_ready(now))
        self._workers.update_deadline()

    # --- taking ---

    def take(self) -> AbstractAsyncContextManager[K, None]:
        """Take the next key, and wait until a key is ready if necessary.  Use ``async with queue.take() as key:``.

        While the block runs, no other worker receives the same key. The key is done when the block ends, even if the
        block raises an exception.

        Raises:
            trio.EndOfChannel: The queue is shut down and has no more keys when the block is entered.

        Cancellation: no key is lost.  If the block is cancelled, the key is added again with the same priority.

        Entering the block is a checkpoint if no key is ready. Otherwise, it is a checkpoint only about once a
        millisecond, because a checkpoint for each key would slow down a busy program.  A cancelled worker never
        receives a key.
        """
        return Take(self._next_key, self._finish)

    async def process(self, fn: Callable[[K], Awaitable[object]], *, workers: int = 1) -> None:
        """Call ``fn(key)`` for each key until the queue is shut down and empty.

        Args:
            fn: The async function to call with each key, inside a :meth:`take` block.
            workers: The largest number of concurrent calls.

        Raises:
            ExceptionGroup: ``fn`` raised an exception.  The other calls are cancelled.
            ValueError: ``workers`` is less than 1.

        Cancellation: keys in progress are added again, as with :meth:`take`.
        """
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(self._work, fn)

    async def _work(self, fn: Callable[[K], Awaitable[object]]) -> None:
        while True:
            try:
                key = await self._next_key()
            except trio.EndOfChannel:
                return
            error: BaseException | None = None
            try:
                await fn(key)
            except BaseException as raised:
                error = raised
                raise
            finally:
                self._finish(key, error)
                error = None  # no reference cycle of the error and this frame

    async def _next_key(self) -> K:
        now = trio.current_time()
        if self._delayed.due <= now:
            self._add_due()
        # One checkpoint for many keys.  A checkpoint for each key made workers a hundred times slower when another task
        # used slices of a millisecond.
        self._slice_left -= 1
        if self._ready.size and (self._slice_left <= 0 or now >= self._slice_ends):
            await trio.lowlevel.checkpoint()
            now = self._begin_slice()
            self._add_due()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        if self._ready.size:
            key = self._pop_ready(now)
        else:
            key = await self._wait()
            self._begin_slice()
        if self._reports is not None:
            try:
                self._reports.report_taken(key)
            except BaseException:
                self._put_back(key, self._release(key))  # the block is not entered
                raise
        return key

    def _begin_slice(self) -> float:
        now = trio.current_time()
        self._slice_ends, self._slice_left = now + SLICE, SLICE_ITEMS
        return now

    def _pop_ready(self, now: float) -> K:
        key, priority = self._ready.pop()
        del self._pending[key]
        self._processing[key] = (now, priority)
        if self._reports is not None:
            self._reports.record_taken(key, now)
        return key

    async def _wait(self) -> K:
        """Wait for a key, and return it."""
        in_front = False
        while not self._is_shut_down:
            waiter = await self._workers.wait(in_front=in_front)
            if waiter.has_key:
                if self._hands_out:
                    return waiter.key
                self._put_back(waiter.key, self._release(waiter.key))  # after an immediate shutdown
                break
            self._make_due_pending()
            if self._ready.size:
                key = self._pop_ready(trio.current_time())
                self._hand_out()
                return key
            in_front = True  # another task has taken or removed the due key
        raise trio.EndOfChannel

    # --- done ---

    def _finish(self, key: K, error: BaseException | None) -> None:
        """Record the end of a :meth:`take` block."""
        began, priority = self._processing[key]
        self._release(key)
        if error is not None and not isinstance(error, Exception):
            self._put_back(key, priority)
        if self._reports is not None:
            self._reports.observer.finished(key, duration=trio.current_time() - began)

    def _release(self, key: K) -> int:
        """End the processing of a key, and return its priority."""
        _, priority = self._processing.pop(key)
        again = self._pending.get(key)
        if again is not None:
            self._ready.push(key, again)
            if self._workers.waiters:
                self._hand_out()
        elif self._drained is not None and not self._pending and not self._processing:
            self._drained.set()
        return priority

    def _put_back(self, key: K, priority: int) -> None:
        """Add a key again after its processing was cancelled."""
        if not self._is_shut_down:
            self.add(key, priority=priority)
        elif key not in self._pending:
            self._unfinished[key] = None
            if self.name:
                logger.warning("queue %s: %r is unfinished, and is not added again after the shutdown", self.name, key)

    # --- shutting down ---

    @property
    def is_shut_down(self) -> bool:
        """Whether the queue has been shut down and rejects new keys."""
        return self._is_shut_down

    def shut_down(self, *, immediate: bool = False) -> None:
        """Reject new keys, and stop the workers when all pending keys have been processed.

        Delayed keys no longer become due. Unlike :meth:`drain`, this method does not wait for the workers.

        Args:
            immediate: Whether to stop giving keys to workers. The pending keys then become unfinished.  This argument
                also has an effect after an earlier shutdown.
        """
        if not self._is_shut_down:
            self._add_due()
            self._is_shut_down = True
            if self.name and (self._pending or self._delayed or self._processing):
                counts = len(self._pending), len(self._processing), len(self._delayed)
                log = "queue %s: shut down; %d keys pending, %d processing, %d delayed dropped"
                logger.info(log, self.name, *counts)
            self._workers.wake_all()
        if immediate and self._hands_out:
            self._hands_out = False
            self._unfinished.update(dict.fromkeys((*self._ready, *self._pending)))
            self._pending.clear()
            self._ready = ReadyKeys(self._oldest_every)
            if self._drained is not None and not self._processing:
                self._drained.set()

    async def drain(self) -> Remaining[K]:
        """Shut the queue down, and wait until the workers have processed all pending keys.

        To limit the time, use ``trio.move_on_after()``.  After a timeout, :meth:`remaining` returns the keys that were
        not processed. Do not call this method inside a :meth:`take` block, because the method would wait for the block
        to end.

        Returns:
            The keys that will not be processed, in the fields ``delayed`` and ``unfinished``.  The fields
            ``processing`` and ``ready`` are empty.

        Cancellation: the queue stays shut down, and the workers continue.
        """
        self.shut_down()
        await trio.lowlevel.checkpoint()
        if self._pending or self._processing:
            if self._drained is None:
                self._drained = trio.Event()
            try:
                await self._drained.wait()
            except trio.Cancelled:
                if self.name:
                    counts = len(self._pending), len(self._processing)
                    logger.warning("queue %s: drain cancelled; %d keys pending, %d processing", self.name, *counts)
                raise
        return self.remaining()

    def remaining(self) -> Remaining[K]:
        """Return all keys in the queue, in the form that :meth:`drain` returns, without waiting."""
        self._add_due()
        return Remaining(
            processing=tuple(self._processing),
            ready=tuple(self._ready),
            delayed=tuple(dict.fromkeys((*self._delayed, *self._parked))),
            unfinished=tuple(self._unfinished),
        )

    def statistics(self) -> QueueStatistics:
        """Return statistics about the queue, which correspond to client-go's ``workqueue`` metrics."""
        self._add_due()
        now = trio.current_time()
        running = [now - began for began, _ in self._processing.values()]
        return QueueStatistics(
            depth=len(self._pending),
            depth_by_priority=MappingProxyType(dict(Counter(self._pending.values()))),
            delayed=len(self._delayed),
            parked=len(self._parked),
            processing=len(running),
            adds=self._adds,
            retries=self._retries,
            longest_running=max(running, default=0.0),
            unfinished_work=sum(running),
            tasks_waiting=len(self._workers.waiters),
            is_shut_down=self._is_shut_down,
        )
