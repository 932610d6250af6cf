"""What both kinds of queue have in common: keys that wait, keys in work, and workers that wait.

The problem: events come in any number and any order, work is slow, and two workers must never have the same key.
client-go's answer (``util/workqueue``) holds few states and is kept here.  A key is *pending* when somebody wants it
handled.  It is *ready* when it is pending and nobody has it: then it has a place in the line.  When it is pending and
in work, it gets its place when that work is done.  So a key is in the line once at most, has one worker at most, and
no wish is forgotten, however many there were meanwhile.

What client-go does with tasks is done here without any:

- Delayed keys.  client-go has a goroutine with a timer.  Here the worker that has waited longest sleeps until the
  first delayed key is due; when that one is handed a key or leaves, the next in line watches the clock.  When no worker
  waits, nobody has to watch: whoever looks at the queue next finds what has become due, in the order of the due times.
- Handing out.  A key that is added while workers wait goes to the first of them at once, and is in work from then on.
  Nobody who comes later can snatch it, and a worker that is cancelled at that moment has it, and gives it back as it
  leaves its block.

Everything but waiting happens between two checkpoints, so there are no locks.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType, TracebackType
from typing import Generic, TypeVar, final

import attrs
import trio

from .._util import SLICE, SLICE_ITEMS
from ._delayed import DelayedKeys
from ._ready import ReadyKeys
from ._statistics import QueueObserver, QueueStatistics, Remaining
from ._wait_queue import WaitQueue

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger("trioformer.workqueue")


@final
@attrs.define(eq=False, repr=False)
class _Take(Generic[K]):
    """What ``take()`` returns.  A class, since a generator's context manager would cost as much as all the rest."""

    _queue: BaseQueue[K]
    _key: K = attrs.field(init=False)
    _is_used: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> K:
        if self._is_used:
            raise RuntimeError("a take() is for one `async with`; call take() for each")
        self._is_used = True
        self._key = await self._queue._claim()
        return self._key

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._queue._finish(self._key, error)


@attrs.define(eq=False, repr=False)
class BaseQueue(Generic[K]):
    """The common part of :class:`WorkQueue` and :class:`RateLimitingQueue`; they say what it promises."""

    name: str = attrs.field(default="", kw_only=True)
    """What the queue is for, in its ``repr``, its log lines and in metrics."""
    _oldest_every: int | None = attrs.field(default=None, kw_only=True, alias="oldest_every")
    _observer: QueueObserver[K] | None = attrs.field(default=None, kw_only=True, alias="observer")
    _pending: dict[K, int] = attrs.field(factory=dict, init=False)  # ready, or to be once it is done; by priority
    _ready: ReadyKeys[K] = attrs.field(init=False)
    _delayed: DelayedKeys[K] = attrs.field(factory=DelayedKeys, init=False)  # none of them is pending
    _processing: dict[K, tuple[float, int]] = attrs.field(factory=dict, init=False)  # since when, which priority
    _line: WaitQueue[K] = attrs.field(init=False)  # while somebody is in it, nothing is ready
    _unfinished: dict[K, None] = attrs.field(factory=dict, init=False)
    # For the observer, and empty without one: since when keys are pending; how long those had waited whose worker has
    # not run yet; and which keys became pending that it has not been told of.
    _pending_since: dict[K, float] = attrs.field(factory=dict, init=False)
    _waited: dict[K, float] = attrs.field(factory=dict, init=False)
    _news: deque[tuple[K, int]] = attrs.field(factory=deque, init=False)
    _is_shut_down: bool = attrs.field(default=False, init=False)
    _drained: trio.Event | None = attrs.field(default=None, init=False)
    _adds: int = attrs.field(default=0, init=False)
    _retries: int = attrs.field(default=0, init=False)
    _slice_ends: float = attrs.field(default=-math.inf, init=False)
    _slice_left: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        if self._oldest_every is not None and self._oldest_every < 2:
            raise ValueError(f"oldest_every must be at least 2, or None, not {self._oldest_every}")
        self._ready = ReadyKeys(self._oldest_every)
        self._line = WaitQueue(self._delayed)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        state = ", shut down" if self._is_shut_down else ""
        counts = f"{self._ready.size} ready, {len(self._delayed)} delayed, {len(self._processing)} processing"
        return f"<{type(self).__name__}{name}: {counts}{state}>"

    def __len__(self) -> int:
        """How many keys could be taken now."""
        self._look_at_the_clock()
        return self._ready.size

    # An empty queue is still a queue: `queue or default` must not drop it.
    def __bool__(self) -> bool:
        return True

    # --- adding: plain functions, atomic ---

    def add(self, key: K, *, priority: int = 0) -> bool:
        """Ask for a key to be handled.

        A key that waits already is not added twice; it takes the higher of the two priorities, and if that is the new
        one, a place behind the others that have it.
        A delayed key is handed out now instead of later.
        One that is being processed is handed out once more, as soon as that is done.

        Args:
            key: Anything hashable.
            priority: Higher is earlier.

        Returns:
            Whether the queue took it; False when it is shut down.
        """
        if self._is_shut_down:
            return self._refuse(key)
        if self._delayed.due < math.inf:
            self._look_at_the_clock()
            if (delay := self._delayed.remove(key)) is not None:
                priority = max(priority, delay.priority)
        self._request(key, priority)
        if self._line.waiters:
            self._hand_out()
        if self._news:
            self._tell_added()
        return True

    def add_after(self, key: K, delay: float, *, priority: int | None = None) -> bool:
        """Ask for a key to be handled in so many seconds, or now if it is none.

        A key that is delayed already comes at the earlier of the two times, with the higher of the two priorities.
        One that waits already keeps its place.
        To put a delay off, call :meth:`cancel_delayed` first.

        Args:
            key: Anything hashable.
            delay: Seconds, on trio's clock.
            priority: Higher is earlier; unless given, that with which the key was taken, when it is being processed,
                else 0.

        Returns:
            Whether the queue took it; False when it is shut down.

        Raises:
            ValueError: The delay is infinite or not a number.
        """
        if not math.isfinite(delay):
            raise ValueError(f"the delay must be a finite number of seconds, not {delay}")
        if self._is_shut_down:
            return self._refuse(key)
        if priority is None:
            taken = self._processing.get(key)
            priority = 0 if taken is None else taken[1]
        if delay <= 0:
            return self.add(key, priority=priority)
        self._look_at_the_clock()
        self._retries += 1
        if key in self._pending:
            self._request(key, priority)  # it is as early as can be; its priority may rise
        else:
            self._delayed.add(key, trio.current_time() + delay, priority)
            self._line.set_alarm()
        if self._observer is not None:
            self._tell_added()
            self._observer.delayed(key, delay=delay)
        return True

    def cancel_delayed(self, key: K) -> bool:
        """Drop a key that is not due yet.

        Returns:
            Whether there was one.  A key that has come due, waits or is being processed is left as it is.
        """
        self._look_at_the_clock()
        found = self._delayed.remove(key) is not None
        self._line.set_alarm()
        return found

    def due_time(self, key: K) -> float | None:
        """When a delayed key comes due, on trio's clock; None for a key that is not delayed."""
        self._look_at_the_clock()
        delay = self._delayed.get(key)
        return None if delay is None else delay.due

    def _request(self, key: K, priority: int, since: float | None = None) -> None:
        """Make a key pending, and ready unless it is being processed; to be handed out by the caller."""
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
        if self._observer is not None:
            self._pending_since[key] = trio.current_time() if since is None else since
            self._news.append((key, priority))

    def _refuse(self, key: K) -> bool:
        """Remember of the keys that come too late those that a worker has: their work is not over with this."""
        if key in self._processing and key not in self._pending:
            self._unfinished[key] = None
        return False

    def _look_at_the_clock(self) -> None:
        """Make pending what has come due.

        Everything that asks for the order or changes it does this first, so that it does not depend on who was awake.
        """
        if self._delayed.due < math.inf and self._promote() and self._line.waiters:
            self._hand_out()

    def _promote(self) -> bool:
        if self._is_shut_down:
            return False
        due = self._delayed.pop_due(trio.current_time())
        for key, delay in due:
            self._request(key, delay.priority, delay.due)
        return bool(due)

    def _hand_out(self) -> None:
        """Give the ready keys to those who wait in line."""
        now = trio.current_time()
        while self._line.waiters and self._ready.size:
            self._line.give(self._pop(now))
        self._line.set_alarm()

    # --- taking ---

    def take(self) -> AbstractAsyncContextManager[K, None]:
        """Take the key whose turn it is, waiting for one if there is none: ``async with queue.take() as key``.

        While the block runs, nobody else gets that key.
        When it is left, in whatever way, the key is done.

        Raises:
            trio.EndOfChannel: When entered: the queue is shut down, and no key is left to be handed out.

        Cancellation: while it waits, nothing is lost.
            A block that is left by cancellation has not done its work, so the key goes back to the queue, with the
            priority that it had.

        A checkpoint whenever no key is ready, and else about once a millisecond, as everything in this library that
        goes through ready work: a worker that had to let all others run first for each key would get nowhere beside
        them.
        """
        return _Take(self)

    async def process(self, fn: Callable[[K], Awaitable[object]], *, workers: int = 1) -> None:
        """Call ``fn(key)`` for one key after the other, in so many tasks, until the queue is shut down and empty.

        Args:
            fn: The work.  It runs inside :meth:`take`'s block.
            workers: How many keys are worked on at once.

        Raises:
            ExceptionGroup: What ``fn`` raised; the other workers have been cancelled.

        Cancellation: keys that were being processed go back to the queue, see :meth:`take`.
        """
        if workers < 1:
            raise ValueError(f"there must be at least one worker, not {workers}")
        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(self._work, fn)

    async def _work(self, fn: Callable[[K], Awaitable[object]]) -> None:
        while True:
            try:
                key = await self._claim()
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
                error = None  # no cycle of the error and this frame

    async def _claim(self) -> K:
        now = trio.current_time()
        if self._delayed.due <= now:
            self._look_at_the_clock()
        # One checkpoint for many keys: beside a single task that works in slices of a millisecond, one for each key let
        # four workers take 4,300 keys a second, and this a hundred times as many.
        self._slice_left -= 1
        if self._ready.size and (self._slice_left <= 0 or now >= self._slice_ends):
            await trio.lowlevel.checkpoint()
            now = self._begin_slice()
            self._look_at_the_clock()
        if self._ready.size:
            key = self._pop(now)
        else:
            key = await self._wait()
            self._begin_slice()
        if self._observer is not None:
            self._tell_taken(key)
        return key

    def _begin_slice(self) -> float:
        now = trio.current_time()
        self._slice_ends, self._slice_left = now + SLICE, SLICE_ITEMS
        return now

    def _pop(self, now: float) -> K:
        key, priority = self._ready.pop()
        del self._pending[key]
        self._processing[key] = (now, priority)
        if self._observer is not None:
            self._waited[key] = now - self._pending_since.pop(key)
        return key

    def _tell_taken(self, key: K) -> None:
        assert self._observer is not None
        try:
            self._tell_added()
            self._observer.taken(key, waited=self._waited.pop(key))
        except BaseException:
            # The block is not entered, so nobody else would give the key back.
            self._waited.pop(key, None)
            self._give_back(key, self._done(key))
            raise

    def _tell_added(self) -> None:
        """Tell the observer of keys that became pending; only when all else is done, since it might raise."""
        while self._news and self._observer is not None:
            key, priority = self._news.popleft()
            self._observer.added(key, priority=priority)

    async def _wait(self) -> K:
        """Wait in line until there is a key for this task."""
        was_there = False
        while not self._is_shut_down:
            waiter = await self._line.wait(in_front=was_there)
            if waiter.has_key:
                return waiter.key
            self._promote()
            if self._ready.size:
                key = self._pop(trio.current_time())
                self._hand_out()
                return key
            was_there = True  # somebody who was awake was quicker
        raise trio.EndOfChannel

    # --- done ---

    def _finish(self, key: K, error: BaseException | None) -> None:
        """Leave a take's block."""
        began, priority = self._processing[key]
        self._done(key)
        if error is not None and not isinstance(error, Exception):
            self._give_back(key, priority)
        if self._observer is not None:
            self._observer.finished(key, lasted=trio.current_time() - began)

    def _done(self, key: K) -> int:
        """Let others have the key; return the priority with which it was taken."""
        _, priority = self._processing.pop(key)
        again = self._pending.get(key)
        if again is not None:
            self._ready.push(key, again)
            if self._line.waiters:
                self._hand_out()
        elif self._drained is not None and not self._pending and not self._processing:
            self._drained.set()
        return priority

    def _give_back(self, key: K, priority: int) -> None:
        """Have a key handled once more whose work was broken off."""
        if not self._is_shut_down:
            self.add(key, priority=priority)
        elif key not in self._pending:
            self._unfinished[key] = None
            if self.name:
                logger.warning(
                    "queue %s: %r is not done, nor taken again, since the queue is shut down", self.name, key
                )

    # --- the end ---

    @property
    def is_shut_down(self) -> bool:
        """Whether the queue refuses further keys."""
        return self._is_shut_down

    def shut_down(self) -> None:
        """Take no more keys; hand out those that wait, then end :meth:`take` for everybody.

        Delayed keys never come due any more.
        A key that is being processed and waits to be handed out once more is.
        Nothing is waited for: see :meth:`drain`.
        """
        if self._is_shut_down:
            return
        self._look_at_the_clock()
        self._is_shut_down = True
        if self.name and (self._pending or self._delayed or self._processing):
            logger.info(
                "queue %s: shut down; %d keys that wait are handed out, %d are in work, %d delayed ones never come",
                self.name,
                len(self._pending),
                len(self._processing),
                len(self._delayed),
            )
        self._line.dismiss()

    async def drain(self) -> Remaining[K]:
        """Shut the queue down and wait until the workers have taken every key that waits, and are done.

        How long that may take is for the caller to say, with ``trio.move_on_after``; :meth:`remaining` tells what was
        left then.
        Not to be called by a worker inside of a take's block, which it would wait for.

        Returns:
            The keys that will not be handled, since they were still delayed, or since their work was broken off.

        Cancellation: the queue stays shut down; the workers go on.
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
                    logger.warning("queue %s: not drained; %d keys wait, %d are in work", self.name, *counts)
                raise
        return self.remaining()

    def remaining(self) -> Remaining[K]:
        """List the keys that the queue holds."""
        self._look_at_the_clock()
        return Remaining(
            processing=tuple(self._processing),
            ready=tuple(self._ready),
            delayed=tuple(self._delayed),
            unfinished=tuple(self._unfinished),
        )

    def statistics(self) -> QueueStatistics:
        """Count and measure."""
        self._look_at_the_clock()
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
            tasks_waiting=len(self._line.waiters),
            is_shut_down=self._is_shut_down,
        )
