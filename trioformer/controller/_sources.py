"""From informers to the queue of a running controller: one handler for each watched informer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, final

import attrs
import trio

from ..cache import (
    Added,
    Deleted,
    HandlerRegistration,
    Notification,
    ResourceEventHandler,
    SharedInformer,
    Updated,
)
from ..models import KubernetesObject, key_of
from ..workqueue import RateLimitingQueue
from ._enqueue import Enqueue
from ._predicates import Predicate
from ._request import Request

T = TypeVar("T", bound=KubernetesObject)

LOW_PRIORITY = -100
"""The priority of requests that probably need no work: those for initial objects and for resyncs."""


@final
@attrs.frozen(eq=False)
class WatchedSource(Generic[T]):
    """The arguments of :meth:`Controller.watch`."""

    informer: SharedInformer[T]
    enqueue: Enqueue[T]
    predicates: Sequence[Predicate[T]]


@final
@attrs.define(eq=False)
class EventSources:
    """The handlers of one run.

    They run in the informers' tasks, so none of their exceptions may leave them: it would end an informer that others
    use, too.  The exception goes to the controller instead, and ends its run.

    Args:
        name: The controller's name.
        queue: Receives the requests.
        on_failure: Called with the first exception of a predicate, an enqueue function, or a queue's observer.
    """

    name: str
    queue: RateLimitingQueue[Request]
    on_failure: Callable[[Exception], None]
    is_open: bool = attrs.field(default=True, init=False)
    # The handlers wait for this before their first event, so that enqueue functions may read any of the caches.
    caches_synced: trio.Event = attrs.field(factory=trio.Event, init=False)
    handlers: list[tuple[WatchedSource[Any], HandlerRegistration[Any]]] = attrs.field(factory=list, init=False)
    """The watched informers and their handlers."""

    def register(self, watch: WatchedSource[T]) -> None:
        """Register a handler.

        Raises:
            RuntimeError: The informer has stopped.
        """
        registration = watch.informer.add_event_handler(EnqueueingHandler(self, watch), name=self.name)
        self.handlers.append((watch, registration))

    def close(self) -> None:
        """Remove the handlers; after this they call no function of the controller."""
        self.is_open = False
        for _, registration in self.handlers:
            registration.remove()
        self.caches_synced.set()  # ends the calls that wait for it

    def fail(self, error: Exception) -> None:
        """Accept no more events, and pass an error to the controller."""
        if self.is_open:
            self.is_open = False
            self.on_failure(error)


@final
@attrs.define(eq=False)
class EnqueueingHandler(ResourceEventHandler[T]):
    """Adds the requests of events to the queue."""

    sources: EventSources
    watch: WatchedSource[T]

    async def on_add(self, obj: T, *, is_initial: bool) -> None:
        """Add the requests for a new object, with a low priority if it is an initial one."""
        await self._handle(Added(obj, is_initial), (obj,), LOW_PRIORITY if is_initial else 0)

    async def on_update(self, old: T, new: T) -> None:
        """Add the requests for both states, or those of a resync with a low priority."""
        if old.resource_version == new.resource_version:
            await self._handle(Updated(old, new), (new,), LOW_PRIORITY)
        else:
            await self._handle(Updated(old, new), (old, new), 0)

    async def on_delete(self, obj: T, *, is_stale: bool) -> None:
        """Add the requests for a deleted object."""
        await self._handle(Deleted(obj, is_stale), (obj,), 0)

    async def _handle(self, event: Notification[T], states: Sequence[T], priority: int) -> None:
        sources, watch = self.sources, self.watch
        if not sources.caches_synced.is_set():
            await sources.caches_synced.wait()
        if not sources.is_open:
            return
        try:
            for predicate in watch.predicates:
                if not predicate(event):
                    return
            # All requests are made before the first is added: an error adds none of them.
            requests = {request: None for state in states for request in watch.enqueue(state)}
            for request in requests:
                sources.queue.add(request, priority=priority)
        except Exception as error:  # noqa: BLE001  # the documented boundary to a user's functions
            what = f"{type(event).__name__} {states[-1].kind} {key_of(states[-1])}"
            error.add_note(f"in controller {sources.name}, on {what}")
            sources.fail(error)
