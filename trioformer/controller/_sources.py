"""The handlers of a running controller, which turn the events of informers into requests in its queue."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import attrs
import trio

from .._suggestions import describe
from .._surroundings import new_generator
from .._util import Slices
from ..cache import Added, Deleted, HandlerRegistration, Notification, ResourceEventHandler, SharedInformer, Updated
from ..cache._internal import add_paused_handler, share_of
from ..errors import DecodeError, NotOwnedError, QuarantinedError
from ..models import KubernetesObject, key_of
from ..workqueue import RateLimitingQueue
from ._enqueue import request_for_object
from ._journal import Journal
from ._parking import Pauses
from ._predicates import Predicate
from ._request import K

if TYPE_CHECKING:
    from ..cache._internal import Share

T = TypeVar("T", bound=KubernetesObject)

BUFFER_SIZE = 1_024
"""The largest number of buffered notifications of one watch before the process loop waits."""

LOW_PRIORITY = -100
"""The priority of requests for initial objects and resyncs, which usually need no work."""


_NO_LISTS = (str, bytes, tuple, Mapping, KubernetesObject)
"""The iterable types that are not accepted as sequences of requests.  A named tuple is a single request."""


@final
@attrs.frozen(eq=False)
class WatchedSource(Generic[T, K]):
    """The arguments of a call to :meth:`Controller.watch`."""

    informer: SharedInformer[T]
    enqueue: Callable[[T], Iterable[K]]
    predicates: Sequence[Predicate[T]]
    priority: int = 0

    @property
    def is_primary(self) -> bool:
        """Whether the requests are for the objects of the informer themselves."""
        return self.enqueue is request_for_object


def share_in(name: str, watches: Sequence[WatchedSource[Any, Any]]) -> Share | None:
    """Return the share of the objects that a controller reconciles, or None if its caches are not divided.

    Raises:
        ValueError: The caches are divided in a way in which the controller could not find its objects.
    """
    shares = [(watch, share) for watch in watches if (share := share_of(watch.informer)) is not None]
    if not shares:
        return None
    primary = [share for watch, share in shares if watch.is_primary]
    if len(primary) != 1 or primary[0].by == "label":
        raise ValueError(
            f"controller {name} must reconcile exactly one divided kind, which it watches without enqueue=; a kind in "
            "labels= of Shares cannot be reconciled"
        )
    others = [share for watch, share in shares if not watch.is_primary and share.by == "uid"]
    if primary[0].by == "uid" and others:
        raise ValueError(
            f"controller {name} watches {others[0].name}, whose uids are in other ranges than those that it "
            "reconciles; add the kind to labels= or whole= of Shares"
        )
    return primary[0]


class SourcesPhase(enum.Enum):
    """The state of the handlers of a run."""

    PAUSED = "paused"
    """The handlers are registered, but receive no notifications until all caches have synced."""
    STARTED = "started"
    """The handlers receive all states."""
    CLOSED = "closed"
    """The handlers no longer call functions of the controller."""


@final
@attrs.define(eq=False)
class EventSources(Generic[K]):
    """The handlers of a controller during one run.

    The handlers are called in tasks of the informers, which other users share.  So an exception from a predicate or an
    enqueue function must not propagate into the informer.  Instead, it ends the run of the controller.

    A controller must receive all states of an object.  For example, if an object moves from one owner to a second and
    then to a third, the second owner must also be reconciled.  So notifications are not coalesced, and the informer's
    process loop waits when a handler's buffer is full.  The queue merges equal requests.

    Args:
        name: The name of the controller.
        queue: The queue to which the handlers add requests.
        on_failure: A function that is called with the first exception from a predicate, an enqueue function or a queue
            observer.
        journal: The journal that records the events, if any.
        pauses: The paused objects, if an annotation pauses objects.
    """

    name: str
    queue: RateLimitingQueue[K]
    on_failure: Callable[[Exception], None]
    journal: Journal[K] | None
    pauses: Pauses[K] | None = None
    phase: SourcesPhase = attrs.field(default=SourcesPhase.PAUSED, init=False)
    handlers: list[tuple[WatchedSource[Any, K], HandlerRegistration[Any]]] = attrs.field(factory=list, init=False)
    """The watched informers and their handlers."""
    _paused: list[Callable[[], None]] = attrs.field(factory=list, init=False)
    """The functions that start the handlers."""

    @property
    def is_open(self) -> bool:
        """Whether the handlers accept events."""
        return self.phase is not SourcesPhase.CLOSED

    def register(self, watch: WatchedSource[T, K]) -> None:
        """Register a handler; it starts together with the other handlers, or immediately if they have started.

        Raises:
            RuntimeError: The informer has stopped.
        """
        registration, start = add_paused_handler(
            watch.informer, EnqueueingHandler(self, watch), name=self.name, buffer_size=BUFFER_SIZE
        )
        self.handlers.append((watch, registration))
        if self.pauses is not None and watch.is_primary:
            self.pauses.informers.append(watch.informer)
        if self.phase is SourcesPhase.STARTED:
            start()
        else:
            self._paused.append(start)

    def start(self) -> None:
        """Start the handlers, beginning with the objects in the caches."""
        if self.phase is SourcesPhase.PAUSED:
            self.phase = SourcesPhase.STARTED
            for start in self._paused:
                start()
            self._paused.clear()

    async def resync(self, period: float) -> None:
        """Add the requests for all objects after each period, with a low priority."""
        generator, slices = new_generator(), Slices()
        while True:
            await trio.sleep(period * generator.uniform(0.9, 1.1))  # controllers that start together drift apart
            for watch in [watch for watch, handler in self.handlers if watch.is_primary and handler.has_synced]:
                for obj in watch.informer.lister:
                    if slices.is_over():
                        await slices.checkpoint()
                    for request in watch.enqueue(obj):
                        if self.queue.add(request, priority=LOW_PRIORITY) and self.journal is not None:
                            self.journal.add_event(request, Updated(obj, obj), watch.enqueue, ())

    def close(self) -> None:
        """Remove the handlers; they do not call functions of the controller afterwards."""
        self.phase = SourcesPhase.CLOSED
        for _, registration in self.handlers:
            registration.remove()
        self._paused.clear()

    def fail(self, error: Exception) -> None:
        """Stop accepting events, and report an error to the controller."""
        if self.is_open:
            self.phase = SourcesPhase.CLOSED
            self.on_failure(error)


@final
@attrs.define(eq=False)
class EnqueueingHandler(ResourceEventHandler[T], Generic[T, K]):
    """A handler that adds the requests for an event to the queue, without waiting."""

    sources: EventSources[K]
    watch: WatchedSource[T, K]

    async def on_add(self, obj: T, /, *, is_initial: bool) -> None:
        """Add the requests for a new object, with a low priority if it is an initial object."""
        self._handle(Added(obj, is_initial), (obj,), is_low=is_initial)

    async def on_update(self, old: T, new: T, /) -> None:
        """Add the requests for the old and the new state, with a low priority for a resync."""
        self._handle(Updated(old, new), (new,) if old is new else (old, new), is_low=old is new)

    async def on_delete(self, obj: T, /, *, is_stale: bool) -> None:
        """Add the requests for a deleted object."""
        self._handle(Deleted(obj, is_stale), (obj,))

    async def on_release(self, obj: T, /) -> None:
        """Forget that an object is paused, because another process reconciles it now."""
        if self.sources.pauses is not None and self.watch.is_primary:
            for request in self.watch.enqueue(obj):
                self.sources.pauses.end(request)

    def _handle(self, event: Notification[T], states: Sequence[T], *, is_low: bool = False) -> None:
        sources, watch, seen, change = self.sources, self.watch, states, None
        if sources.phase is SourcesPhase.CLOSED:
            return
        priority = min(LOW_PRIORITY, watch.priority) if is_low else watch.priority
        undecodable: list[DecodeError | QuarantinedError] = []
        try:
            for predicate in watch.predicates:
                try:
                    if not predicate(event):
                        states = states[:0]
                        break
                except (DecodeError, QuarantinedError) as error:
                    undecodable.append(error)  # accept the event, so that no request is lost
                except NotOwnedError:
                    pass  # accept the event
            if (pauses := sources.pauses) is not None and watch.is_primary:
                try:
                    change = pauses.change_in(event, seen, *watch.enqueue(seen[-1]))
                except (DecodeError, QuarantinedError) as error:
                    undecodable.append(error)
                if change is not None:
                    states = seen
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
                except NotOwnedError:
                    pass  # the objects of the own ranges are added when their lists are complete
            for request in requests:
                sources.queue.add(request, priority=priority)
                if sources.journal is not None:
                    sources.journal.add_event(request, event, watch.enqueue, watch.predicates)
                if pauses is not None and change == "ends":
                    pauses.end(request)
        except Exception as error:  # noqa: BLE001  # the documented boundary to a user's functions
            what = f"{type(event).__name__} {states[-1].kind} {key_of(states[-1])}"
            error.add_note(f"in controller {sources.name}, on {what}")
            sources.fail(error)
        else:
            if undecodable:
                # The informer counts and logs this.
                raise next((each for each in undecodable if isinstance(each, DecodeError)), undecodable[0])
