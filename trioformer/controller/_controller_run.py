"""One run of a controller: its queue, its handlers, its workers, and the order in which they begin and end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, final

import attrs
import trio

from .._util import first_leaf
from ..cache import HandlerRegistration
from ..errors import CacheSyncError, NotSynced
from ..workqueue import QueueObserver, RateLimiter, RateLimitingQueue, default_controller_rate_limiter
from ._reconciler import DroppedHandler, Reconciler, in_words, logger
from ._request import Request
from ._results import Reconcile, without_cancelled
from ._sources import EventSources, WatchedSource
from ._statistics import ControllerObserver, ControllerPhase, Counters

PATIENCE = 30.0
"""Seconds after which the log says what a controller waits for, to start or to end, again and again."""

OLDEST_EVERY = 8
"""Every how many-th request is the one that has waited longest, whatever its priority."""


@final
@attrs.define(eq=False, kw_only=True)
class ControllerRun:
    """What :meth:`Controller.run` owns; the arguments are the controller's own."""

    name: str
    reconcile: Reconcile
    workers: int
    max_retries: int | None
    on_dropped: DroppedHandler | None
    reconcile_deadline: float
    limiter: RateLimiter[Request] | None
    observer: ControllerObserver | None
    queue_observer: QueueObserver[Request] | None
    counters: Counters
    phase: ControllerPhase = attrs.field(default="waiting for handlers", init=False)
    queue: RateLimitingQueue[Request] = attrs.field(init=False)
    reconciler: Reconciler = attrs.field(init=False)
    sources: EventSources = attrs.field(init=False)
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set by whoever has called :meth:`run`, when that has returned."""
    _stopping: trio.Event = attrs.field(factory=trio.Event, init=False)
    _interrupted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)
    _began: float = attrs.field(factory=trio.current_time, init=False)

    def __attrs_post_init__(self) -> None:
        limiter = self.limiter if self.limiter is not None else default_controller_rate_limiter()
        # Without a name the queue logs nothing: the controller does.
        self.queue = RateLimitingQueue(limiter, oldest_every=OLDEST_EVERY, observer=self.queue_observer)
        self.reconciler = Reconciler(
            name=self.name,
            reconcile=self.reconcile,
            queue=self.queue,
            deadline=self.reconcile_deadline,
            max_retries=self.max_retries,
            on_dropped=self.on_dropped,
            observer=self.observer,
            counters=self.counters,
        )
        self.sources = EventSources(self.name, self.queue, self._fail)

    async def run(self, watches: Sequence[WatchedSource[Any]], task_status: trio.TaskStatus[None]) -> None:
        """Work until cancelled, stopped, or failed."""
        try:
            async with trio.open_nursery() as nursery:
                # no checkpoint before the last has joined: none may be missed that is added meanwhile
                for watch in watches:
                    self.sources.join(watch)
                nursery.start_soon(self._interrupt, nursery.cancel_scope, name=f"controller {self.name}: end")
                await self._wait_until_synced()
                if self.phase == "waiting for handlers":
                    self.phase = "running"
                    logger.info("controller %s: started, workers: %d", self.name, self.workers)
                task_status.started()
                ending = trio.CancelScope(shield=True)
                nursery.start_soon(self._tell_who_holds_up_the_end, ending, name=f"controller {self.name}: patience")
                try:
                    await self.queue.process(self.reconciler.handle, workers=self.workers)
                finally:
                    ending.cancel()
                nursery.cancel_scope.cancel()
        except BaseException as error:
            if (rest := without_cancelled(error)) is not None:
                logger.error("controller %s: fails with %s", self.name, "; ".join(_causes(rest)))
            raise
        finally:
            self._begin_to_stop()
            for request in self.reconciler.failures:
                self.queue.forget(request)  # a limiter of the user's own may serve the next run, too
            broken_off = ", ".join(map(str, self.reconciler.cancelled))
            logger.info(
                "controller %s: ended%s", self.name, f", in the middle of reconciles of {broken_off}" * bool(broken_off)
            )

    def join(self, watch: WatchedSource[Any]) -> None:
        """Register a handler late; nothing when it is too late."""
        if self.sources.is_open:
            self.sources.join(watch)

    # --- the end ---

    async def stop(self) -> None:
        """End the run in good order; at once when this is cancelled."""
        if self.reconciler.is_called_from_inside:
            raise RuntimeError(
                f"controller {self.name} is stopped inside of a reconcile, which it would wait for; call stop() in "
                "another task"
            )
        self._begin_to_stop()
        try:
            await self.ended.wait()
        except trio.Cancelled:
            if running := self._running():
                logger.warning("controller %s: cancelled as it stops: %s", self.name, running)
            self._interrupted.set()
            raise

    def _begin_to_stop(self) -> None:
        if self._stopping.is_set():
            return
        self.phase = "stopping"
        self._stopping.set()
        self.sources.close()
        self.reconciler.is_stopping = True
        counts = self.queue.statistics()
        logger.info(
            "controller %s: stopping; %d running, %d waiting and %d delayed requests are left",
            self.name,
            len(self.reconciler.busy),
            counts.depth,
            counts.delayed,
        )
        self.queue.shut_down()

    async def _tell_who_holds_up_the_end(self, ending: trio.CancelScope) -> None:
        """Say, from when the run is stopped or cancelled until ``ending`` is, which reconciles go on nevertheless."""
        try:
            await self._stopping.wait()
        finally:
            with ending:
                while True:
                    await trio.sleep(PATIENCE)
                    logger.warning("controller %s waits to end: %s", self.name, self._running())

    def _running(self) -> str:
        now = trio.current_time()
        return ", ".join(
            f"reconcile of {request}, which has run for {now - began:.1f} s"
            for request, began in self.reconciler.busy.values()
        )

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._interrupted.set()

    async def _interrupt(self, scope: trio.CancelScope) -> None:
        """End the run at once, with an error if there was one."""
        await self._interrupted.wait()
        if self._failure is not None:
            raise self._failure
        scope.cancel()

    # --- the start ---

    async def _wait_until_synced(self) -> None:
        """Wait until every handler has returned from what was there, or until the controller is stopped.

        Raises:
            ExceptionGroup: Of `CacheSyncError`: an informer has stopped before.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_on_stop, nursery.cancel_scope)
            nursery.start_soon(self._tell_what_is_missing)
            await self._for_each(lambda watch, _: watch.informer.wait_until_synced())
            self.sources.gate.set()
            await self._for_each(lambda _, registration: registration.wait_until_synced())
            nursery.cancel_scope.cancel()

    async def _for_each(self, wait: Callable[[WatchedSource[Any], HandlerRegistration[Any]], Awaitable[None]]) -> None:
        """Wait for something of every handler, of those too that join meanwhile."""

        async def wait_for(watch: WatchedSource[Any], registration: HandlerRegistration[Any]) -> None:
            try:
                await wait(watch, registration)
            except trio.ClosedResourceError as error:
                if self.sources.is_open:  # else it is this controller that has removed the handler
                    raise self._not_synced(watch, registration) from error

        joined, done = self.sources.joined, 0
        while done < len(joined):
            async with trio.open_nursery() as nursery:
                for watch, registration in joined[done:]:
                    nursery.start_soon(wait_for, watch, registration)
                    done += 1

    def _not_synced(self, watch: WatchedSource[Any], registration: HandlerRegistration[Any]) -> CacheSyncError:
        state = watch.informer.state
        error = first_leaf(state.error)
        late = NotSynced(name=registration.statistics().name, phase=state.phase, error=error, since=self._began)
        why = f"{late.name}: {late.phase}{f' after {error}' if error is not None else ''}"
        return CacheSyncError(f"controller {self.name} cannot start: {why}", not_synced=(late,))

    async def _end_on_stop(self, scope: trio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _tell_what_is_missing(self) -> None:
        while True:
            await trio.sleep(PATIENCE)
            logger.warning("controller %s waits to start: %s", self.name, "; ".join(self.waiting_for()))

    def waiting_for(self) -> tuple[str, ...]:
        """What is missing to begin: the caches, or, when all are filled, the handlers."""
        if self.phase != "waiting for handlers":
            return ()
        missing = [(watch.informer, each.statistics()) for watch, each in self.sources.joined if not each.has_synced]
        if any(not informer.has_synced for informer, _ in missing):
            return tuple([f"{each.name}: {informer.state}" for informer, each in missing if not informer.has_synced])
        return tuple([f"{each.name}: in its call number {each.calls}" for _, each in missing])


def _causes(error: BaseException) -> Iterator[str]:
    """The errors in a group of groups, in words, with the notes that say where they were raised."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
    else:
        yield " ".join([in_words(error), *getattr(error, "__notes__", ())])
