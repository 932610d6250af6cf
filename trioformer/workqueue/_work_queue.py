"""The work queue: pending keys, keys in progress, and waiting workers.

The states are client-go's (``util/workqueue``).  A key is *pending* from the time it is added until a worker takes it.
A pending key is *ready* if it is not in progress.  A pending key in progress becomes ready when its worker is done.  So
a key is ready at most once, has at most one worker, and is always processed after it was last added.

client-go uses goroutines; this queue has no tasks:

- Delayed keys.  The worker that has waited longest sleeps until the first delayed key is due.  When it receives a key
  or is cancelled, the next worker does that.  While no worker waits, there is no timer: each use of the queue first
  makes the due keys pending, in the order of their due times.
- Handing out.  A key that is added while workers wait goes to the first worker immediately.  If that worker is
  cancelled at the same time, it still receives the key, and puts it back.

State changes never span a checkpoint, so there are no locks.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType, TracebackType
from typing import Generic, TypeVar, final

import attrs
import trio

from .._suggestions import check_observer
from .._util import SLICE, SLICE_ITEMS
from ._delayed import DelayedKeys
from ._ready import ReadyKeys
from ._reports import Reports
from ._statistics import QueueObserver, QueueStatistics, Remaining
from ._wait_queue import WaitQueue

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger("trioformer.workqueue")


@final
@attrs.define(eq=False, repr=False)
class _Take(Generic[K]):
    """The context manager of ``take()``; a generator function would be much slower."""

    _queue: WorkQueue[K]
    _key: K = attrs.field(init=False)
    _is_used: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> K:
        if self._is_used:
            raise RuntimeError("this take() was already entered; call take() again for each `async with`")
        self._is_used = True
        self._key = await self._queue._next_key()
        return self._key

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._queue._finish(self._key, error)


@attrs.define(eq=False, repr=False)
class WorkQueue(Generic[K]):
    """Keys to process, each by one worker at a time.

    - A key that is added several times before a worker takes it is processed once.
    - A key has at most one worker.  If it is added while it is in progress, it is processed once more.
    - The highest priority comes first, and keys of one priority come in the order in which they were added.  A key that
      was added while it was in progress is placed last, so no key can block the others.
    - A delayed key becomes ready when it is due.  If it is added several times, the earliest time and the highest
      priority apply.
    - Workers receive keys in the order in which they began to wait.

    With strict priorities, a low priority can wait forever while higher ones arrive, as in controller-runtime's queue.
    With ``oldest_every=8``, every eighth key is the oldest one regardless of priority.

    The queue never has more entries than there are different keys.  Adding never waits.
    An exception that leaves a :meth:`take` block propagates, and the key is not retried;
    :class:`~trioformer.workqueue.RateLimitingQueue` retries it.

    Args:
        name: The name in the ``repr``, in log lines and in metrics.  A queue without a name logs nothing.
        oldest_every: When keys of several priorities are ready, every n-th take receives the oldest key; None for
            strict priorities.
        observer: Receives the queue's events; without an observer nothing is measured.

    Ownership: the queue has no tasks, and need not be closed.  It belongs to one ``trio.run``.  Another thread calls
    ``trio.from_thread.run_sync(queue.add, key)``.

    Source: client-go ``util/workqueue`` (``queue.go``, ``delaying_queue.go``); for priorities controller-runtime
    ``pkg/controller/priorityqueue``.
    """

    name: str = attrs.field(default="", kw_only=True)
    """The name in the ``repr``, in log lines and in metrics."""
    _oldest_every: int | None = attrs.field(default=None, kw_only=True, alias="oldest_every")
    _observer: QueueObserver[K] | None = attrs.field(default=None, kw_only=True, alias="observer")
    _reports: Reports[K] | None = attrs.field(init=False)
    _pending: dict[K, int] = attrs.field(factory=dict, init=False)  # each key's priority
    _ready: ReadyKeys[K] = attrs.field(init=False)
    _delayed: DelayedKeys[K] = attrs.field(factory=DelayedKeys, init=False)  # never pending
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
        """Add a key.

        A pending key keeps the higher of the two priorities.  If the new one is higher, the key is placed last in it.
        A delayed key becomes ready now.
        A key in progress is processed once more when its worker is done.

        Args:
            key: Any hashable value.
            priority: Higher comes first.

        Returns:
            Whether the queue accepted the key; False when it is shut down.
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
        """Add a key after a delay, or now if the delay is not positive.

        A delayed key keeps the earlier of the two times and the higher of the two priorities.
        A pending key keeps its place.
        To postpone a delayed key, call :meth:`cancel_delayed` first.

        Args:
            key: Any hashable value.
            delay: Seconds, on trio's clock.
            priority: Higher comes first.  None keeps the priority of a key in progress, and is 0 for others.

        Returns:
            Whether the queue accepted the key; False when it is shut down.

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
        """Remove a delayed key.

        Returns:
            Whether the key was delayed.  A key that is pending or in progress is not affected.
        """
        self._add_due()
        found = self._delayed.remove(key) is not None
        self._workers.update_deadline()
        return found

    def due_time(self, key: K) -> float | None:
        """Return the time when a delayed key becomes due, on trio's clock; None if the key is not delayed."""
        self._add_due()
        delay = self._delayed.get(key)
        return None if delay is None else delay.due

    def _make_pending(self, key: K, priority: int, since: float | None = None) -> None:
        """Make a key pending, and ready unless it is in progress; the caller hands it out."""
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
        """Return False.  A key in progress is recorded as unfinished, because its worker wanted to repeat it."""
        if key in self._processing and key not in self._pending:
            self._unfinished[key] = None
        return False

    def _add_due(self) -> None:
        """Make the due keys pending and hand them out, before the order is read or changed."""
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
        """Hand ready keys to waiting workers."""
        now = trio.current_time()
        while self._workers.waiters and self._ready.size:
            self._workers.hand_off(self._pop_ready(now))
        self._workers.update_deadline()

    # --- taking ---

    def take(self) -> AbstractAsyncContextManager[K, None]:
        """Take the next key, and wait for one if none is ready: ``async with queue.take() as key``.

        While the block runs, no other worker receives the key.
        When the block ends, the key is done, even after an exception.

        Raises:
            trio.EndOfChannel: On entering, if the queue is shut down and has no more keys.

        Cancellation: no key is lost.  The key of a cancelled block goes back to the queue with its priority.

        This is a checkpoint if no key is ready, and otherwise about once a millisecond, because a checkpoint for each
        key would be slow in a busy program.  A cancelled worker never receives a key.
        """
        return _Take(self)

    async def process(self, fn: Callable[[K], Awaitable[object]], *, workers: int = 1) -> None:
        """Call ``fn(key)`` for each key until the queue is shut down and empty.

        Args:
            fn: The function to call; it runs inside a :meth:`take` block.
            workers: The number of concurrent calls.

        Raises:
            ExceptionGroup: An exception of ``fn``; it cancels the other calls.
            ValueError: ``workers`` is less than 1.

        Cancellation: keys in progress go back to the queue, as for :meth:`take`.
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
        """Wait for a key."""
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
        """End a block of :meth:`take`."""
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
        """Add a key again that was not finished."""
        if not self._is_shut_down:
            self.add(key, priority=priority)
        elif key not in self._pending:
            self._unfinished[key] = None
            if self.name:
                logger.warning("queue %s: %r is unfinished and not added again after the shutdown", self.name, key)

    # --- shutting down ---

    @property
    def is_shut_down(self) -> bool:
        """Whether the queue rejects further keys."""
        return self._is_shut_down

    def shut_down(self, *, immediate: bool = False) -> None:
        """Reject new keys, and end the workers when the pending keys are processed.

        Delayed keys no longer become due.
        This does not wait; :meth:`drain` does.

        Args:
            immediate: Hand out no more keys, even after an earlier shutdown.  The pending keys become unfinished.
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
        """Shut the queue down, and wait until the workers have processed every pending key.

        To limit the time, use ``trio.move_on_after``; :meth:`remaining` then lists the other keys.
        Do not call this inside a :meth:`take` block, because it would wait for that block.

        Returns:
            The keys that will not be processed, in ``delayed`` and ``unfinished``.  ``processing`` and ``ready`` are
            empty.

        Cancellation: the queue stays shut down; the workers continue.
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
        """Return the keys in the queue, as :meth:`drain` does, without waiting."""
        self._add_due()
        return Remaining(
            processing=tuple(self._processing),
            ready=tuple(self._ready),
            delayed=tuple(self._delayed),
            unfinished=tuple(self._unfinished),
        )

    def statistics(self) -> QueueStatistics:
        """Return counts and times; the fields correspond to client-go's ``workqueue`` metrics."""
        self._add_due()
        now = trio.current_time()
        running = [now - began for began, _ in self._processing.values()]
        return QueueStatistics(
            depth=len(self._pending),
            depth_by_priority=MappingProxyType(dict(Counter(self._pending.values()))),
            delayed=len(self._delayed),
            processing=len(running),
            adds=self._adds,
            retries=self._retries,
            longest_running=max(running, default=0.0),
            unfinished_work=sum(running),
            tasks_waiting=len(self._workers.waiters),
            is_shut_down=self._is_shut_down,
        )
