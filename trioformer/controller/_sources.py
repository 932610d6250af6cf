"""From informers to the queue of a running controller: one handler for each watched informer."""

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
"""How many notifications may wait for the functions of one watch before the process loop waits for them."""

LOW_PRIORITY = -100
"""The priority of requests that probably need no work: those for initial objects and for resyncs."""


_NO_LISTS = (str, bytes, tuple, Mapping, KubernetesObject)
"""What can be iterated over and is one request, or none; a tuple is one if it is a named one."""


@final
@attrs.frozen(eq=False)
class WatchedSource(Generic[T, K]):
    """The arguments of :meth:`Controller.watch`."""

    informer: SharedInformer[T]
    enqueue: Callable[[T], Iterable[K]]
    predicates: Sequence[Predicate[T]]


class SourcesPhase(enum.Enum):
    """What the handlers of a run do."""

    PAUSED = "paused"
    """They are registered and receive nothing: the caches have not all synced, and functions may read any of them."""
    STARTED = "started"
    """They receive every state."""
    CLOSED = "closed"
    """They call no function of the controller."""


@final
@attrs.define(eq=False)
class EventSources(Generic[K]):
    """The handlers of one run.

    They run in the informers' tasks, so none of their exceptions may leave them: it would end an informer that others
    use, too.  The exception goes to the controller instead, and ends its run.

    A controller must see every state: when an object moves from one owner to a second and on to a third, the second
    must be reconciled too, although neither the first nor the last state names it.  So no notification is merged.  When
    a handler's buffer is full, the process loop of its informer waits; the handler never waits itself, so this takes as
    long as the functions take.  The queue merges equal requests.

    Before the handlers are started, they keep nothing: the objects in the caches are then their initial objects.

    Args:
        name: The controller's name.
        queue: Receives the requests.
        on_failure: Called with the first exception of a predicate, an enqueue function, or a queue's observer.
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
    """Adds the requests of events to the queue.

    The methods must not wait: the process loop waits for them.
    """

    sources: EventSources[K]
    watch: WatchedSource[T, K]

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Add the requests for a new object, with a low priority if it is an initial one."""
        self._handle(Added(obj, is_initial), (obj,), LOW_PRIORITY if is_initial else 0)

    async def on_update(self, old: T, new: T, /) -> None:
        """Add the requests for both states, or those of a resync with a low priority."""
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
                    undecodable.append(error)  # and accepted: no request is lost
            # All requests are made before the first is added: an error adds none of them.
            requests: dict[K, None] = {}
            for state in states:
                try:
                    found = watch.enqueue(state)
                    if type(found) is not tuple and (isinstance(found, _NO_LISTS) or not isinstance(found, Iterable)):
                        raise TypeError(
                            "enqueue must return requests in a list or tuple, such as [Request.of(obj)], "
                            f"not {describe(found)}"
                        )
                    for request in found:  # what a generator returned before it failed is added
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
                # The informer counts the call, and logs it.
                raise next((each for each in undecodable if isinstance(each, DecodeError)), undecodable[0])
