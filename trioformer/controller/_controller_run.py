"""One run of a controller, which starts and ends its queue, handlers and workers."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Generic, final

import attrs
import trio

from .._text import describe_error, one_line
from ..cache import HandlerRegistration
from ..client._internal import write_observer
from ..errors import CacheSyncError
from ..errors._internal import NotSynced
from ..workqueue import RateLimitingQueue
from ..workqueue._internal import default_priority_queue_rate_limiter
from ._delays import RetryDelays, external_limiter
from ._informer_failures import InformerFailures
from ._journal import Journal
from ._observers import Observers
from ._options import ControllerOptions
from ._own_writes import OwnWrites
from ._parking import Pace, Pauses
from ._reconciler import Reconciler, logger
from ._request import K
from ._results import Reconcile, without_cancelled
from ._sources import EventSources, WatchedSource, share_in
from ._statistics import ControllerPhase, Counters

START_LOG_PERIOD = 60.0
"""The time between two log messages while the start waits, in seconds."""
LOG_PERIOD = 30.0
"""The time between two log messages while the stop waits, in seconds."""

OLDEST_EVERY = 8
"""The interval at which a worker takes the oldest request regardless of its priority, in requests."""


@final
@attrs.define(eq=False, kw_only=True)
class ControllerRun(Generic[K]):
    """The state of one call to :meth:`Controller.run`."""

    name: str
    reconcile: Reconcile[K]
    options: ControllerOptions[K]
    observers: Observers[K]
    counters: Counters
    journal: Journal[K] | None
    own_writes: OwnWrites[K] | None
    phase: ControllerPhase = attrs.field(default="waiting for handlers", init=False)
    queue: RateLimitingQueue[K] = attrs.field(init=False)
    pauses: Pauses[K] | None = attrs.field(default=None, init=False)
    pace: Pace[K] | None = attrs.field(default=None, init=False)
    reconciler: Reconciler[K] = attrs.field(init=False)
    sources: EventSources[K] = attrs.field(init=False)
    informer_failures: InformerFailures = attrs.field(init=False)
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    """An event that the caller of :meth:`run` sets after :meth:`run` has returned."""
    _stopping: trio.Event = attrs.field(factory=trio.Event, init=False)
    _interrupted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)
    _began: float = attrs.field(factory=trio.current_time, init=False)

    def __attrs_post_init__(self) -> None:
        options = self.options
        limiter = options.limiter
        external = external_limiter() if limiter is None else None
        if limiter is None:
            limiter = default_priority_queue_rate_limiter()
        # The queue has no name, so it logs nothing; the controller does.
        self.queue = RateLimitingQueue(limiter, oldest_every=OLDEST_EVERY, observer=self.observers.for_queue())
        if self.own_writes is not None:
            self.own_writes.begin_run(self.queue)
        if options.paused_by:
            self.pauses = Pauses(self.name, self.queue, options.paused_by, options.on_paused)
        if options.min_interval:
            self.pace = Pace(self.queue, options.min_interval)
        self.reconciler = Reconciler(
            name=self.name,
            reconcile=self.reconcile,
            options=options,
            observers=tuple(self.observers.of_reconciles),
            queue=self.queue,
            delays=RetryDelays(self.queue, external),
            counters=self.counters,
            journal=self.journal,
            own_writes=self.own_writes,
            pauses=self.pauses,
            pace=self.pace,
        )
        self.sources = EventSources(self.name, self.queue, self._fail, self.journal, self.pauses)
        self.informer_failures = InformerFailures(self.name, self.sources)

    async def run(self, watches: Sequence[WatchedSource[Any, K]], task_status: trio.TaskStatus[None]) -> None:
        """Run until the controller is cancelled or stopped, or until it fails."""
        token = write_observer.set(self.reconciler.observe_write)  # of the workers, which are started below
        try:
            async with trio.open_nursery() as nursery:
                # no checkpoint in this loop: a watch that is added during it would be missed
                self.reconciler.share = share_in(self.name, watches)
                for watch in watches:
                    self.sources.register(watch)
                nursery.start_soon(self._interrupt, nursery.cancel_scope, name=f"controller {self.name}: interrupt")
                await self._wait_until_synced()
                if self.phase == "waiting for handlers":
                    self.phase = "running"
                    logger.info("controller %s: started, workers: %d", self.name, self.options.workers)
                task_status.started()
                log_scope = trio.CancelScope(shield=True)
                nursery.start_soon(self._log_running_at_the_end, log_scope, name=f"controller {self.name}: log")
                nursery.start_soon(self.informer_failures.log, name=f"controller {self.name}: informers")
                if self.own_writes is not None:
                    nursery.start_soon(self.own_writes.run, name=f"controller {self.name}: own writes")
                if self.pace is not None:
                    nursery.start_soon(self.pace.run, name=f"controller {self.name}: pace")
                if (period := self.options.resync_every) < math.inf:
                    nursery.start_soon(self.sources.resync, period, name=f"controller {self.name}: resync")
                try:
                    await self.queue.process(self.reconciler.handle, workers=self.options.workers)
                finally:
                    log_scope.cancel()
                nursery.cancel_scope.cancel()
        except BaseException as error:
            if (rest := without_cancelled(error)) is not None:
                logger.error("controller %s: failed: %s", self.name, "; ".join(_describe_causes(rest)))
            raise
        finally:
            write_observer.reset(token)
            self._begin_to_stop()
            self.reconciler.log_rest()
            for request in self.reconciler.failures:
                self.queue.forget(request)  # the next run uses the same limiter if it was passed in
            cancelled = one_line(", ".join(map(str, self.reconciler.cancelled)))
            logger.info("controller %s: ended%s", self.name, f"; cancelled reconciles of {cancelled}" * bool(cancelled))

    def register(self, watch: WatchedSource[Any, K]) -> None:
        """Register a handler during the run, unless the run is stopping."""
        if self.sources.is_open:
            self.sources.register(watch)
            self.informer_failures.record_registration()

    # --- the end ---

    async def stop(self) -> None:
        """End the run when the running calls to ``reconcile`` have returned, or immediately if cancelled."""
        if self.reconciler.is_called_from_inside:
            raise RuntimeError(
                f"stop() of controller {self.name} was called inside a reconcile; call it in another task"
            )
        self._begin_to_stop()
        try:
            await self.ended.wait()
        except trio.Cancelled:
            if running := self._describe_running():
                logger.warning("controller %s: stop cancelled; cancelling %s", self.name, running)
            self._interrupted.set()
            raise

    def _begin_to_stop(self) -> None:
        if self._stopping.is_set():
            return
        self.phase = "stopping"
        self._stopping.set()
        self.sources.close()
        counts = self.queue.statistics()
        logger.info(
            "controller %s: stopping; %d requests running, %d pending, %d delayed",
            self.name,
            len(self.reconciler.running),
            counts.depth,
            counts.delayed,
        )
        if self.journal is not None:
            self.journal.drop_waiting()
        self.queue.shut_down(immediate=True)  # the next run finds their objects in its initial lists

    async def _log_running_at_the_end(self, log_scope: trio.CancelScope) -> None:
        """After a stop or a cancellation, log the calls to ``reconcile`` that are still running."""
        try:
            await self._stopping.wait()
        finally:
            with log_scope:
                while True:
                    await trio.sleep(LOG_PERIOD)
                    logger.warning("controller %s: waiting to end: %s", self.name, self._describe_running())

    def _describe_running(self) -> str:
        now = trio.current_time()
        running = self.reconciler.running.values()
        return one_line(", ".join(f"reconcile of {each}, running for {now - began:.1f} s" for each, began in running))

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._interrupted.set()

    async def _interrupt(self, scope: trio.CancelScope) -> None:
        """Wait for an interruption, then end the run immediately, with the error if the run has failed."""
        await self._interrupted.wait()
        if self._failure is not None:
            raise self._failure
        scope.cancel()

    # --- the start ---

    async def _wait_until_synced(self) -> None:
        """Wait until all handlers have processed their initial objects, or the controller is stopped.

        Raises:
            ExceptionGroup: An informer stopped before its handler had synced.  The group contains a `CacheSyncError`.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_on_stop, nursery.cancel_scope)
            nursery.start_soon(self._log_what_is_missing)
            await self._for_each(lambda watch, _: watch.informer.wait_until_synced())
            self.sources.start()
            await self._for_each(lambda _, registration: registration.wait_until_synced())
            nursery.cancel_scope.cancel()

    async def _for_each(
        self, wait: Callable[[WatchedSource[Any, K], HandlerRegistration[Any]], Awaitable[None]]
    ) -> None:
        """Await ``wait`` for all handlers, including handlers that are registered in the meantime."""

        async def wait_for(watch: WatchedSource[Any, K], registration: HandlerRegistration[Any]) -> None:
            try:
                await wait(watch, registration)
            except trio.ClosedResourceError as error:
                if self.sources.is_open:  # otherwise this controller has removed the handler
                    raise self._not_synced(watch, registration) from error

        handlers, done = self.sources.handlers, 0
        while done < len(handlers):
            async with trio.open_nursery() as nursery:
                for watch, registration in handlers[done:]:
                    nursery.start_soon(wait_for, watch, registration)
                    done += 1

    def _not_synced(self, watch: WatchedSource[Any, K], registration: HandlerRegistration[Any]) -> CacheSyncError:
        state = watch.informer.state
        error = state.error
        missing = NotSynced(name=registration.statistics().name, phase=state.phase, error=error, since=self._began)
        why = f"{missing.name}: {missing.phase}{f' after {error}' if error is not None else ''}"
        return CacheSyncError(f"controller {self.name} cannot start: {why}", not_synced=(missing,))

    async def _cancel_on_stop(self, scope: trio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _log_what_is_missing(self) -> None:
        while True:
            await trio.sleep(START_LOG_PERIOD)
            if missing := self.waiting_for(with_failures=False):
                logger.warning("controller %s: waiting to start: %s", self.name, "; ".join(missing))

    def waiting_for(self, *, with_failures: bool = True) -> tuple[str, ...]:
        """Return descriptions of the caches or handlers that the controller is waiting for before it starts.

        If the controller is running, the descriptions of failing informers are returned instead. Without
        ``with_failures``, informers whose last request failed are omitted, because the reflector logs these failures.
        """
        if self.phase == "running":
            return self.informer_failures.describe()
        if self.phase != "waiting for handlers":
            return ()
        missing = [(watch.informer, each.statistics()) for watch, each in self.sources.handlers if not each.has_synced]
        if unsynced := [(each.name, informer.state) for informer, each in missing if not informer.has_synced]:
            return tuple([f"{name}: {state}" for name, state in unsynced if with_failures or state.error is None])
        return tuple([f"{each.name}: in call number {each.calls}" for _, each in missing])


def _describe_causes(error: BaseException) -> Iterator[str]:
    """Yield a description of each error in nested groups, with its notes."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _describe_causes(each)
    else:
        yield " ".join([describe_error(error), *getattr(error, "__notes__", ())])
