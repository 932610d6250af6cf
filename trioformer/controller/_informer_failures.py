"""A log of the informers that fail while a controller is running.

After an informer has failed, the controller continues with its other informers, but receives no events from the failed
informer.  A reflector logs its failed requests.  In addition, this module logs which controller is affected, and why.
"""

from __future__ import annotations

from typing import Any, Final, final

import attrs
import trio

from ..cache import HandlerRegistration, InformerPhase, InformerState, SharedInformer
from ._reconciler import logger
from ._sources import EventSources, WatchedSource

LOG_PERIOD: Final = 30.0
"""The time between two checks, in seconds.  Shorter failures are not logged, because they are frequent."""


def is_failing(informer: SharedInformer[Any]) -> bool:
    """Return whether an informer that has synced no longer receives events."""
    state = informer.state
    return _has_stopped(state) or not informer.is_healthy or _cannot_watch(state)


def _has_stopped(state: InformerState) -> bool:
    return state.phase in (InformerPhase.STOPPED, InformerPhase.FAILED)


def _cannot_watch(state: InformerState) -> bool:
    return state.error is not None and state.phase is not InformerPhase.WATCHING


@final
@attrs.define(eq=False)
class InformerFailures:
    """A log of the informer failures during a run.

    Args:
        name: The name of the controller.
        sources: The handlers of the run, with their informers.  Handlers may be added during the run.
    """

    name: str
    sources: EventSources[Any]
    _registered: trio.Event = attrs.field(factory=trio.Event, init=False)

    def record_registration(self) -> None:
        """Record that a handler was added to the sources."""
        self._registered.set()

    def describe(self) -> tuple[str, ...]:
        """Return a description of each informer that is failing."""
        return tuple([_describe(*each) for each in self.sources.handlers if is_failing(each[0].informer)])

    async def log(self) -> None:
        """Log each informer that fails, until cancelled."""
        seen = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._log_delays)
            while True:
                # no checkpoint between reading the list and creating the event
                for watch, registration in self.sources.handlers[seen:]:
                    seen += 1
                    nursery.start_soon(self._log_end, watch, registration)
                self._registered = trio.Event()
                await self._registered.wait()

    async def _log_end(self, watch: WatchedSource[Any, Any], registration: HandlerRegistration[Any]) -> None:
        await watch.informer.wait_until_stopped()
        if self.sources.is_open:
            log = logger.error if watch.informer.state.phase is InformerPhase.FAILED else logger.warning
            log("controller %s: no more events: %s", self.name, _describe(watch, registration))

    async def _log_delays(self) -> None:
        logged: set[HandlerRegistration[Any]] = set()
        while True:
            await trio.sleep(LOG_PERIOD)
            if not self.sources.is_open:
                continue
            delayed: list[str] = []
            for watch, registration in self.sources.handlers:
                informer = watch.informer
                if _has_stopped(informer.state):
                    continue
                if not is_failing(informer):
                    if registration in logged:
                        name = registration.statistics().name
                        logger.info("controller %s: events are received again: %s", self.name, name)
                        logged.discard(registration)
                elif informer.state.age >= LOG_PERIOD and registration not in logged:
                    delayed.append(_describe(watch, registration))
                    logged.add(registration)
            if delayed:
                logger.warning("controller %s: events are delayed: %s", self.name, "; ".join(delayed))


def _describe(watch: WatchedSource[Any, Any], registration: HandlerRegistration[Any]) -> str:
    return f"{registration.statistics().name}: {watch.informer.state}"
