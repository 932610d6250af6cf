"""The shared informer, which connects and runs the reflector, the queue, the indexer and the listeners.

Source: client-go ``tools/cache/shared_informer.go``.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Generic, TypeVar, final

import trio

from ..._util import first_leaf
from ...models import KubernetesObject, key_of
from ..processor._listener_buffer import ListenerBuffer
from ..processor._notifications import ResourceEventHandler, check_handler, handler_name
from ..processor._overflow import Overflow
from ..processor._processor import ErrorHandler, HandlerRegistration, HandlerTask, Listener, Processor, Subscription
from ..reflector._list_watch import ListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._status import InformerPhase, InformerState
from ..reflector._transform import Transform
from ..store._delta_fifo import DeltaFIFO
from ..store._indexer import Indexer, IndexFunc
from ..store._lister import Lister
from ..store._quarantine import Quarantine
from ..store._resource_versions import ResourceVersions
from ._process_loop import ProcessLoop, ResyncTimer
from ._reflectors import InformerStatistics, Reflectors
from ._shown_writes import showing_writes

T = TypeVar("T", bound=KubernetesObject)

MIN_RESYNC_PERIOD = 1.0  # client-go's minimumResyncPeriod

logger = logging.getLogger("trioformer.cache")


class _Phase(enum.Enum):
    NEW = "has not been started"
    RUNNING = "is running"
    STOPPED = "has stopped"


@final
class SharedInformer(Generic[T]):
    """An indexed cache of one kind, which is kept up to date and notifies listeners of changes.

    A listener is a handler (:meth:`add_event_handler`) or a subscription (:meth:`subscribe`).
    Each listener receives the states of an object in order.  A listener may miss intermediate states, but always
    receives the newest state.
    A handler is called for one notification at a time.  Listeners are notified independently of each other.
    A slow listener does not delay the cache or other listeners, with two exceptions: listeners with
    ``overflow="block"``, and controllers with slow predicates or enqueue functions.
    The objects are immutable and shared by all listeners.

    If an object cannot be decoded, transformed or indexed, its earlier state stays in the cache, and its key is in
    quarantine until the object changes.  Other objects are not affected.
    Objects in quarantine are reported by ``lister.quarantined()``, :attr:`state` and :meth:`statistics`.

    All tasks run inside :meth:`run`: the reflectors, the process loop, and one task for each handler.

    Args:
        list_watch: The source of the objects. For a cache of several namespaces, pass a mapping of namespaces to
            sources.
        resync_period: How often every object is delivered to the handlers again, in seconds.  The default, 0, disables
            resync.
        indexers: A mapping of names to index functions, in addition to the namespace index.
        transform: A function that is applied to each object exactly once, before the object is stored.  The function
            must not change the namespace, name, uid or resourceVersion.
        options: The options for listing, watching and handling failures.
    """

    def __init__(
        self,
        list_watch: ListWatch[T] | Mapping[str, ListWatch[T]],
        *,
        resync_period: float = 0.0,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        transform: Transform[T] | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self._options = options if options is not None else ReflectorOptions()
        self._indexer = Indexer(indexers)
        self._fifo: DeltaFIFO[T] = DeltaFIFO()
        self._processor: Processor[T] = Processor()
        self._synced = trio.Event()
        self._synced_or_stopped = trio.Event()
        self._stopped = trio.Event()
        self._reflectors = Reflectors(list_watch, self._fifo, self._options, transform)
        self._name = self._reflectors.name
        divided = self._reflectors.divided
        self._versions = ResourceVersions({} if divided else dict.fromkeys(self._reflectors.parts, ""))
        self._quarantine = Quarantine(self._name)
        self._loop = ProcessLoop(
            self._fifo,
            self._indexer,
            self._processor,
            self._versions,
            self._quarantine,
            self._reflectors.division,
            ends_on_mistakes=not self._options.retry_forever,
            on_synced=self._set_synced,
            on_undecodable=self._reflectors.report_undecodable,
        )
        listed = self._name, self._indexer, self._synced.is_set, self._reflectors.kind, self._quarantine
        if divided is not None:
            from ..store._division import DividedLister  # noqa: PLC0415  # most caches are not divided

            divided.division.read_with(self._indexer.get)
            if transform is None:
                divided.cached = self._indexer.get
            self._lister: Lister[T] = DividedLister[T]._create(*listed, share=divided.division)
        else:
            self._lister = Lister[T]._create(*listed)
        self._final_state: InformerState | None = None
        self._part_writes: dict[str, ExitStack] = {}
        """What lets writes wait for the parts of a divided cache; closed with the part or with the informer."""
        self._phase = _Phase.NEW
        check_resync_period(resync_period)
        self._resync_period = self._check_period = resync_period
        self._unstarted: list[HandlerTask[T]] = []
        self._handler_added = trio.Event()

    def __repr__(self) -> str:
        return f"<SharedInformer of {self._name}: {len(self._indexer)} objects, {self.state}>"

    @property
    def lister(self) -> Lister[T]:
        """The read-only view of the cache."""
        return self._lister

    @property
    def has_synced(self) -> bool:
        """Whether the cache contains the first list and is kept up to date.

        Bad objects may be missing from the cache: ``statistics().missing`` counts them, and the log names the first
        few.
        The value becomes false when the informer has stopped, or after ``ReflectorOptions.stale_after`` seconds
        without an open watch.
        """
        return self._synced.is_set() and self._phase is _Phase.RUNNING and not self._is_stale

    @property
    def _is_stale(self) -> bool:
        return self.state.age > self._options.stale_after

    @property
    def is_healthy(self) -> bool:
        """Whether the informer is running without problems.

        After the first list, this is the same as :attr:`has_synced`.  Before the first list, the value is true if the
        last request has not failed.
        """
        if self._synced.is_set():
            return self.has_synced
        return self._phase is _Phase.RUNNING and self.state.error is None

    async def wait_until_synced(self) -> None:
        """Wait until the cache contains the first list.

        Raises:
            trio.ClosedResourceError: The informer has stopped.
        """
        await self._synced_or_stopped.wait()
        if not self._synced.is_set():
            raise trio.ClosedResourceError(f"the informer of {self._name} stopped before it synced")
        if self._phase is _Phase.STOPPED:
            raise trio.ClosedResourceError(f"the informer of {self._name} has stopped")

    async def wait_until_stopped(self) -> None:
        """Wait until the informer has stopped; :attr:`state` then contains the reason.

        The method returns immediately if the informer has already stopped.
        """
        await self._stopped.wait()

    async def wait_until_at_least(self, resource_version: str | KubernetesObject) -> None:
        """Wait until the cache contains the result of a write, or a newer state.

        After this method has returned, a program can read its own write from the cache.  If the informer's selectors
        exclude the written object, the watch sends no event for this object.  The method then waits for an event of
        another
        object, or for a bookmark, which the server sends about once a minute.

        Args:
            resource_version: The object that the write returned, or its resourceVersion.

        Raises:
            DecodeError: A resourceVersion is not a number, which is possible on some aggregated API servers.  This
                error is also a ValueError.
            ValueError: The cache does not cover the object's namespace.
            trio.ClosedResourceError: The informer stopped before the cache contained the write.
            RuntimeError: The caller is inside a call to a handler with ``overflow="block"``. The cache might wait for
                this handler.

        Cancellation: the cache and the informer are not affected.
        """
        self._processor.raise_if_inside_handler("the cache", only_blocking=True)
        namespaces, division = self._versions.namespaces, self._reflectors.division
        if not isinstance(resource_version, str):
            part = "" if division is None else division.part_of(resource_version)
            if part not in namespaces:
                where = "range" if self._reflectors.divided else "namespace"
                problem = f"is in a {where} that the cache of {self._name} does not cover"
                raise ValueError(f"{resource_version!r} {problem}")
            namespaces = (part,)
            resource_version = resource_version.resource_version
        await self._versions.wait_until_at_least(resource_version, namespaces)

    def _showing_writes(self, sources: Mapping[str, ListWatch[T]]) -> AbstractContextManager[None]:
        return showing_writes(sources, self._reflectors.division, self._indexer, self._quarantine, self._versions)

    def _set_synced(self) -> None:
        self._synced.set()
        self._synced_or_stopped.set()
        self._quarantine.log_at_sync()

    @property
    def state(self) -> InformerState:
        """The phase of the informer, its last error, and the age of its data."""
        if self._phase is _Phase.NEW:
            return InformerState(InformerPhase.NOT_STARTED)
        if self._final_state is not None:
            return self._final_state
        return self._reflectors.state(self._quarantine)

    def statistics(self) -> InformerStatistics:
        """Return statistics about the cache and its reflectors.

        The result has the fields ``has_synced``, ``objects`` (the number of objects in the cache), ``encoded_bytes``
        (their size), ``pending`` (changes that are not in the cache yet), ``quarantined`` (objects in quarantine, by
        reason), ``missing`` (objects in quarantine that have no state in the cache), ``handlers_and_subscriptions``,
        and ``reflectors`` (the result of :meth:`Reflector.statistics`, by namespace).
        """
        return InformerStatistics(
            has_synced=self.has_synced,
            objects=len(self._indexer),
            encoded_bytes=self._indexer.encoded_bytes,
            pending=len(self._fifo),
            handlers_and_subscriptions=len(self._processor),
            quarantined=self._quarantine.by_reason(),
            missing=self._quarantine.missing,
            reflectors=self._reflectors.statistics(),
        )

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Add index functions, and add the cached objects to the new indices.

        An object on which a function fails stays in the cache, but is put into quarantine.
        Adding the same function under the same name again changes nothing.

        Raises:
            IndexerError: An index with this name exists with a different function, or a function failed on every
                cached object and the cache contains at least two objects.  After either error, no index is added.
            RuntimeError: The informer has stopped.
        """
        self._raise_if_stopped("add an index")
        for obj, error in self._indexer.add_indexers(indexers):
            if key_of(obj) not in self._quarantine.entries:
                self._loop.quarantine(obj, error)

    # --- listeners ---

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T],
        *,
        resync_period: float | None = None,
        buffer_size: int = 1_024,
        overflow: Overflow = "coalesce",
        patience: float = 60.0,
        on_error: ErrorHandler[T] | None = None,
        name: str | None = None,
    ) -> HandlerRegistration[T]:
        """Add a handler, which is called for each object in the cache and then for each change.

        For the objects that are already in the cache, it is called with additions that have ``is_initial=True``.
        Each registration has its own task and its own buffer.  The same handler may be added several times.

        Args:
            handler: The handler to call.
            resync_period: How often every object is delivered to the handler again, in seconds.  The default, None,
                uses the informer's resync period.  0 disables resync.  The period is at least one second.  If the
                informer is running, it is also at least the period at which the informer checks for resyncs.
            buffer_size: The largest number of pending notifications before ``overflow`` applies.
            overflow: The overflow policy, which applies when the buffer is full.  ``"coalesce"`` merges the
                notifications of each object.  ``"block"`` makes the informer wait for the handler.
            patience: With ``overflow="block"``, how long the informer waits for the handler before the informer fails,
                in seconds.
            on_error: An async function that is called with each exception from the handler, and with the notification
                that caused it.  Without ``on_error``, an exception from the handler ends the informer's run.  A
                `DecodeError` or a `QuarantinedError` never ends the run: the notification is skipped, and logged at
                most once a minute for each class.
            name: The name of the handler in messages.  The default is the name of its class.

        Raises:
            RuntimeError: The informer has stopped.
            TypeError: The handler is not a ResourceEventHandler, or one of its methods cannot be called.
            ValueError: ``overflow`` or ``buffer_size`` is not valid.

        Ownership: the handler's task runs inside :meth:`run`.
        """
        check_handler(handler)
        buffer = ListenerBuffer(self._indexer.snapshot, buffer_size=buffer_size, overflow=overflow, patience=patience)
        task = self._add_handler(handler, buffer, name, on_error, resync_period)
        return HandlerRegistration[T]._create(task, self._processor)

    def _add_handler(
        self,
        handler: ResourceEventHandler[T],
        buffer: ListenerBuffer[T],
        name: str | None,
        on_error: ErrorHandler[T] | None = None,
        resync_period: float | None = None,
    ) -> HandlerTask[T]:
        self._raise_if_stopped("add a handler")
        name = f"handler {name or handler_name(handler)} of informer {self._name}"
        if resync_period is not None:
            check_resync_period(resync_period)
        period = self._effective_resync_period(self._resync_period if resync_period is None else resync_period, name)
        task = HandlerTask(Listener(buffer, name, period), handler, on_error)
        self._add_listener(task.listener)
        self._unstarted.append(task)
        self._handler_added.set()
        return task

    @contextmanager
    def subscribe(
        self, *, buffer_size: int = 1_024, overflow: Overflow = "coalesce", patience: float = 60.0
    ) -> Iterator[Subscription[T]]:
        """Open a subscription to all notifications for the duration of a ``with`` block.

        The subscription is an async iterator for the caller's own task.  The iteration begins with the objects in the
        cache, or with the first list if the informer has not synced.

        Args:
            buffer_size: The largest number of pending notifications before ``overflow`` applies.
            overflow: The overflow policy, as in :meth:`add_event_handler`.
            patience: With ``overflow="block"``, how long the informer waits for the subscriber before the subscription
                breaks, in seconds.

        Raises:
            RuntimeError: The informer has stopped.
        """
        self._raise_if_stopped("subscribe")
        listener = Listener(
            ListenerBuffer(self._indexer.snapshot, buffer_size=buffer_size, overflow=overflow, patience=patience)
        )
        self._add_listener(listener)
        try:
            yield Subscription[T]._create(listener.buffer)
        finally:
            self._processor.remove(listener)

    def _add_listener(self, listener: Listener[T]) -> None:
        # no checkpoint: the objects of the snapshot are initial, and all later states are changes
        if self._phase is _Phase.RUNNING:
            listener.start_period(trio.current_time())
        self._processor.add(listener, self._initial_objects())

    def _initial_objects(self) -> Sequence[T] | None:
        return self._indexer.snapshot() if self._synced.is_set() else None

    def _effective_resync_period(self, period: float, name: str) -> float:
        """Return the resync period that the informer can provide (client-go's ``determineResyncPeriod``)."""
        if period <= 0:
            return 0.0
        if period < MIN_RESYNC_PERIOD:
            logger.warning("%s: the resync period of %g s is too short; using %g s", name, period, MIN_RESYNC_PERIOD)
            period = MIN_RESYNC_PERIOD
        if self._check_period <= 0:
            logger.warning("%s: no resync, because its informer has no resync period", name)
            return 0.0
        if period < self._check_period:
            if self._phase is _Phase.NEW:
                self._check_period = period
            else:
                logger.warning(
                    "%s: the resync period of %g s is too short; using the running informer's %g s",
                    name,
                    period,
                    self._check_period,
                )
                period = self._check_period
        return period

    def _raise_if_stopped(self, what: str) -> None:
        if self._phase is _Phase.STOPPED:
            raise RuntimeError(f"cannot {what}: the informer of {self._name} has stopped; create a new one")

    # --- running ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """List and watch until cancelled; ``nursery.start()`` returns when the cache has synced.

        An informer can be run only once.

        Raises:
            RuntimeError: The informer is already running, or has stopped.
            ExceptionGroup: A handler raised an exception, or a permanent error occurred before the first list.

        Cancellation: running handlers are cancelled, and pending notifications are dropped.  When this method returns,
            all tasks of the informer have ended.  The iteration over each subscription ends.
        """
        if self._phase is not _Phase.NEW:
            raise RuntimeError(f"the informer of {self._name} {self._phase.value}; an informer can run only once")
        self._phase = _Phase.RUNNING
        failure: Exception | None = None
        timer = ResyncTimer(self._fifo, self._processor, self._check_period)
        name = f"informer of {self._name}"
        try:
            with self._showing_writes(self._reflectors.sources):
                async with trio.open_nursery() as nursery:
                    for part, reflector in self._reflectors.parts.items():
                        nursery.start_soon(reflector.run, name=f"{name}: reflector{part and f' of {part}'}")
                    self._loop.begin()
                    nursery.start_soon(self._loop.run, name=f"{name}: process loop")
                    nursery.start_soon(self._start_handlers, nursery, name=f"{name}: listeners")
                    await self._synced.wait()
                    self._processor.schedule_all(trio.current_time())
                    nursery.start_soon(timer.run, name=f"{name}: resync")
                    task_status.started()
        except Exception as error:
            failure = first_leaf(error)
            raise
        finally:
            self._final_state = InformerState(
                InformerPhase.STOPPED if failure is None else InformerPhase.FAILED, failure, age=self.state.age
            )
            self._phase = _Phase.STOPPED
            self._versions.close()
            for each in self._part_writes.values():
                each.close()
            self._synced_or_stopped.set()
            self._stopped.set()
            self._processor.close()
            self._fifo.close()

    async def _start_handlers(self, nursery: trio.Nursery) -> None:
        """Start a task for each registered handler, and for each handler that is added later."""
        while True:
            # no checkpoint between emptying the list and creating the next event
            for task in self._unstarted:
                nursery.start_soon(task.run, name=task.listener.name)
            self._unstarted.clear()
            self._handler_added = trio.Event()
            await self._handler_added.wait()


def check_resync_period(period: object) -> None:
    """Raise ValueError if a resync period is negative or not a number."""
    if isinstance(period, bool) or not isinstance(period, int | float) or not period >= 0:
        raise ValueError(f"resync_period must be a number of seconds, at least 0, not {period!r}")


def add_paused_handler(
    informer: SharedInformer[T], handler: ResourceEventHandler[T], *, name: str, buffer_size: int
) -> tuple[HandlerRegistration[T], Callable[[], None]]:
    """Add a handler that receives no notifications until it is started.

    After its start, the handler is first called for each object in the cache, or for the first list if the cache has
    not synced. When the buffer of the handler is full, the process loop waits for as long as necessary.  So the
    handler must not wait for anything.

    Args:
        informer: The informer that notifies the handler.
        handler: The handler to add.
        name: The handler's name in messages.
        buffer_size: The largest number of pending notifications before the process loop waits.

    Returns:
        The registration of the handler, and a function that starts the handler.

    Raises:
        RuntimeError: The informer has stopped.
    """
    buffer = ListenerBuffer(
        informer._indexer.snapshot, buffer_size=buffer_size, overflow="block", patience=math.inf, is_paused=True
    )
    task = informer._add_handler(handler, buffer, name)

    def start() -> None:
        # no checkpoint: the objects of the snapshot are initial, and all later states are changes
        informer._processor.start(task.listener, informer._initial_objects())

    return HandlerRegistration[T]._create(task, informer._processor), start
