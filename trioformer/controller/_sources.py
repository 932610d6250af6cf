"""From informers to the queue of a running controller: one handler for each informer that is watched."""

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
"""The priority of what probably needs no work: what was there at the beginning, and what a resync repeats."""


@final
@attrs.frozen(eq=False)
class WatchedSource(Generic[T]):
    """What a controller was told to watch."""

    informer: SharedInformer[T]
    enqueue: Enqueue[T]
    predicates: Sequence[Predicate[T]]


@final
@attrs.define(eq=False)
class EventSources:
    """The handlers of one run.

    They run in the informers' tasks, so nothing that they raise may leave them: it would end an informer that others
    use, too.  It is kept for the controller, whose run it ends.

    Args:
        name: The controller's name.
        queue: Where requests go.
        on_failure: Called with the first error of a predicate, an enqueue function, or a queue's observer.
    """

    name: str
    queue: RateLimitingQueue[Request]
    on_failure: Callable[[Exception], None]
    is_open: bool = attrs.field(default=True, init=False)
    # Before all caches are filled no enqueue function is called, so that each may look into all of them.
    gate: trio.Event = attrs.field(factory=trio.Event, init=False)
    joined: list[tuple[WatchedSource[Any], HandlerRegistration[Any]]] = attrs.field(factory=list, init=False)
    """What is watched, and the handler for it."""

    def join(self, watch: WatchedSource[T]) -> None:
        """Register a handler.

        Raises:
            RuntimeError: The informer has stopped.
        """
        registration = watch.informer.add_event_handler(EnqueueingHandler(self, watch), name=self.name)
        self.joined.append((watch, registration))

    def close(self) -> None:
        """Take the handlers out; when this returns, nothing of the controller will be called by them."""
        self.is_open = False
        for _, registration in self.joined:
            registration.remove()
        self.gate.set()  # a call that waits there returns

    def fail(self, error: Exception) -> None:
        """Take no more events, and hand an error to the controller."""
        if self.is_open:
            self.is_open = False
            self.on_failure(error)


@final
@attrs.define(eq=False)
class EnqueueingHandler(ResourceEventHandler[T]):
    """Makes requests of events."""

    sources: EventSources
    watch: WatchedSource[T]

    async def on_add(self, obj: T, *, is_initial: bool) -> None:
        """Enqueue for a new object; low if it was there before."""
        await self._handle(Added(obj, is_initial), (obj,), LOW_PRIORITY if is_initial else 0)

    async def on_update(self, old: T, new: T) -> None:
        """Enqueue for the old state and for the new one; low if they are the same."""
        if old.resource_version == new.resource_version:
            await self._handle(Updated(old, new), (new,), LOW_PRIORITY)
        else:
            await self._handle(Updated(old, new), (old, new), 0)

    async def on_delete(self, obj: T, *, is_stale: bool) -> None:
        """Enqueue for an object that is gone."""
        await self._handle(Deleted(obj, is_stale), (obj,), 0)

    async def _handle(self, event: Notification[T], states: Sequence[T], priority: int) -> None:
        sources, watch = self.sources, self.watch
        if not sources.gate.is_set():
            await sources.gate.wait()
        if not sources.is_open:
            return
        try:
            for predicate in watch.predicates:
                if not predicate(event):
                    return
            # All of them before the first is added: an event counts wholly, or not at all.
            requests = {request: None for state in states for request in watch.enqueue(state)}
            for request in requests:
                sources.queue.add(request, priority=priority)
        except Exception as error:  # noqa: BLE001  # the documented boundary to a user's functions
            what = f"{type(event).__name__} {states[-1].kind} {key_of(states[-1])}"
            error.add_note(f"in controller {sources.name}, on {what}")
            sources.fail(error)
