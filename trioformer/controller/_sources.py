"""The handlers of a running controller: they add requests to the queue for the events of informers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, final

import attrs

from .._suggestions import describe
from ..cache import (
    Added,
    Deleted,
    HandlerRegistration,
    Notification,
    ResourceEventHandler,
    SharedInformer,
    Updated,
)
from ..cache._internal import add_paused_handler
from ..errors import DecodeError, QuarantinedError
from ..models import KubernetesObject, key_of
from ..workqueue import RateLimitingQueue
from ._predicates import Predicate
from ._request import K

T = TypeVar("T", bound=KubernetesObject)

BUFFER_SIZE = 1_024
"""The number of buffered notifications of one watch before the process loop waits."""

LOW_PRIORITY = -100
"""The priority of requests for initial objects and resyncs, which usually need no work."""


_NO_LISTS = (str, bytes, tuple, Mapping, KubernetesObject)
"""Iterable types that are not sequences of requests.  A named tuple is one request."""


@final
@attrs.frozen(eq=False)
class WatchedSource(Generic[T, K]):
    """The arguments of :meth:`Controller.watch`."""

    informer: SharedInformer[T]
    enqueue: Callable[[T], Iterable[K]]
    predicates: Sequence[Predicate[T]]


class SourcesPhase(enum.Enum):
    """The state of a run's handlers."""

    PAUSED = "paused"
    """Registered, but without notifications until all caches have synced, because the functions may read any cache."""
    STARTED = "started"
    """Every state is received."""
    CLOSED = "closed"
    """The controller's functions are no longer called."""


@final
@attrs.define(eq=False)
class EventSources(Generic[K]):
    """The handlers of one run.

    They run in the informers' tasks, so an exception must not propagate: it would end an informer that others share.
    Instead, it ends the controller's run.

    A controller must receive every state: if an object moves from one owner to a second and on to a third, the second
    owner must be reconciled too.  So notifications are not coalesced.  When a handler's buffer is full, the informer's
    process loop waits for the functions.  The queue merges equal requests.

    Args:
        name: The controller's name.
        queue: Receives the requests.
        on_failure: Called with the first exception of a predicate, an enqueue function or a queue observer.
    """

    name: str
    queue: RateLimitingQueue[K]
    on_failure: Callable[[Exception], None]
    phase: SourcesPhase = attrs.field(default=SourcesPhase.PAUSED, init=False)
    handlers: list[tuple[WatchedSource[Any, K], HandlerRegistration[Any]]] = attrs.field(factory=list, init=False)
    """The watched informers and their handlers."""
    _paused: list[Callable[[], None]] = attrs.field(factory=list, init=False)
    """The functions that start the handlers."""

    @property
    def is_open(self) -> bool:
        """Whether the handlers have not been closed."""
        return self.phase is not SourcesPhase.CLOSED

    def register(self, watch: WatchedSource[T, K]) -> None:
        """Register a handler; it starts when the others start, or now if they have started.

        Raises:
            RuntimeError: The informer has stopped.
        """
        registration, start = add_paused_handler(
            watch.informer, EnqueueingHandler(self, watch), name=self.name, buffer_size=BUFFER_SIZE
        )
        self.handlers.append((watch, registration))
        if self.phase is SourcesPhase.STARTED:
            start()
        else:
            self._paused.append(start)

    def start(self) -> None:
        """Start the handlers, with the objects in the caches."""
        if self.phase is SourcesPhase.PAUSED:
            self.phase = SourcesPhase.STARTED
            for start in self._paused:
                start()
            self._paused.clear()

    def close(self) -> None:
        """Remove the handlers; after this they call no function of the controller."""
        self.phase = SourcesPhase.CLOSED
        for _, registration in self.handlers:
            registration.remove()
        self._paused.clear()

    def fail(self, error: Exception) -> None:
        """Accept no more events, and pass an error to the controller."""
        if self.is_open:
            self.phase = SourcesPhase.CLOSED
            self.on_failure(error)


@final
@attrs.define(eq=False)
class EnqueueingHandler(ResourceEventHandler[T], Generic[T, K]):
    """Adds the requests for events to the queue.  The methods never wait."""

    sources: EventSources[K]
    watch: WatchedSource[T, K]

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Add the requests for a new object, with a low priority for an initial object."""
        self._handle(Added(obj, is_initial), (obj,), LOW_PRIORITY if is_initial else 0)

    async def on_update(self, old: T, new: T, /) -> None:
        """Add the requests for both states, or for a resync with a low priority."""
        if old is new:
            self._handle(Updated(old, new), (new,), LOW_PRIORITY)
        else:
            self._handle(Updated(old, new), (old, new), 0)

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Add the requests for a deleted object."""
        self._handle(Deleted(obj, is_stale), (obj,), 0)

    def _handle(self, event: Notification[T], states: Sequence[T], priority: int) -> None:
        sources, watch = self.sources, self.watch
        if not sources.is_open:
            return
        undecodable: list[DecodeError | QuarantinedError] = []
        try:
            for predicate in watch.predicates:
                try:
                    if not predicate(event):
                        states = states[:0]
                        break
                except (DecodeError, QuarantinedError) as error:
                    undecodable.append(error)  # accept the event, so that no request is lost
            # Collect all requests before adding the first, so that an error adds none.
            requests: dict[K, None] = {}
            for state in states:
                try:
                    found = watch.enqueue(state)
                    if type(found) is not tuple and (isinstance(found, _NO_LISTS) or not isinstance(found, Iterable)):
                        raise TypeError(
                            "enqueue must return requests in a list or tuple, such as [Request.of(obj)], "
                            f"not {describe(found)}"
                        )
                    for request in found:  # when a generator fails, its earlier requests are kept
                        requests[request] = None
                except (DecodeError, QuarantinedError) as error:
                    undecodable.append(error)
            for request in requests:
                sources.queue.add(request, priority=priority)
        except Exception as error:  # noqa: BLE001  # the documented boundary to a user's functions
            what = f"{type(event).__name__} {states[-1].kind} {key_of(states[-1])}"
            error.add_note(f"in controller {sources.name}, on {what}")
            sources.fail(error)
        else:
            if undecodable:
                # The informer counts and logs this.
                raise next((each for each in undecodable if isinstance(each, DecodeError)), undecodable[0])
