"""The shared informer: connects reflector, queue, indexer and listeners, and runs them.

Source: client-go ``tools/cache/shared_informer.go``.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar, final

import trio

from ..._text import some_of
from ..._util import first_leaf
from ...models import KubernetesObject, key_of
from ..processor._listener_buffer import ListenerBuffer
from ..processor._notifications import ResourceEventHandler, check_handler, handler_name
from ..processor._overflow import Overflow
from ..processor._processor import ErrorHandler, HandlerRegistration, HandlerTask, Listener, Processor, Subscription
from ..reflector._list_watch import ListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._reflector import Reflector
from ..reflector._status import InformerPhase, InformerState
from ..reflector._transform import Transform, undecodable
from ..store._delta_fifo import DeltaFIFO, NamespacedSink
from ..store._indexer import Indexer, IndexFunc
from ..store._lister import Lister
from ..store._quarantine import Quarantine
from ..store._resource_versions import ResourceVersions
from ._process_loop import ProcessLoop, ResyncTimer
from ._statistics import InformerStatistics, worst_of

T = TypeVar("T", bound=KubernetesObject)

MIN_RESYNC_PERIOD = 1.0  # client-go's minimumResyncPeriod

logger = logging.getLogger("trioformer.cache")


class _Phase(enum.Enum):
    NEW = "has not been started"
    RUNNING = "is running"
    STOPPED = "has stopped"


@final
class SharedInformer(Generic[T]):
    """An indexed cache of one kind that follows the server, and notifies its listeners of changes.

    A listener is a handler (:meth:`add_event_handler`) or a subscription (:meth:`subscribe`).
    Each listener receives the states of an object in order: a subsequence that ends with the newest.
    A handler is called once at a time; there is no order between listeners.
    A slow listener never delays the cache or another listener, unless its ``overflow`` is ``"block"``, or it is a
    controller whose functions are slow.
    Objects are immutable and shared.

    An object that cannot be decoded, transformed or indexed ends nothing: its earlier state stays in the cache, its key
    is in quarantine until the object changes, and all other objects are handled.
    ``lister.quarantined()``, :attr:`state` and :meth:`statistics` name and count such objects.

    The informer owns no task before :meth:`run` is called; ``run`` owns the reflector, the process loop and one task
    for each handler, and when it has returned, all of them have ended.

    Args:
        list_watch: The source; or several sources by the namespace that each of them reads, for one cache of several
            namespaces.
        resync_period: Seconds after which every object is repeated to a handler, by default; 0 is never.
        indexers: Index functions by name, in addition to the namespace index.
        transform: Applied to each object exactly once, before it is stored; must not change namespace, name and
            resourceVersion.
        options: What the reflector does after failures.
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
        if isinstance(list_watch, Mapping):
            if not list_watch or "" in list_watch:
                raise ValueError("a mapping of sources must not be empty, and each key must be a namespace")
            first = next(iter(list_watch.values()))
            kind = first.kind
            self._name = f"{kind.__name__ if kind else first.name} in namespaces {some_of(list_watch)}"
            self._reflectors = {
                namespace: Reflector(
                    source,
                    NamespacedSink(self._fifo, namespace),
                    self._options,
                    transform=transform,
                    namespace=namespace,
                )
                for namespace, source in list_watch.items()
            }
        else:
            kind = list_watch.kind
            self._name = list_watch.name
            self._reflectors = {"": Reflector(list_watch, self._fifo, self._options, transform=transform)}
        self._versions = ResourceVersions(dict.fromkeys(self._reflectors, ""))
        self._quarantine = Quarantine(self._name)
        self._loop = ProcessLoop(
            self._fifo,
            self._indexer,
            self._processor,
            self._versions,
            self._quarantine,
            ends_on_mistakes=not self._options.retry_forever,
            on_synced=self._set_synced,
            on_undecodable=lambda namespace, obj, error: self._reflectors[namespace].report_undecodable(
                undecodable(obj, error)
            ),
        )
        self._lister = Lister[T]._create(self._name, self._indexer, self._synced.is_set, kind, self._quarantine)
        self._final_state: InformerState | None = None
        self._phase = _Phase.NEW
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
        """Whether the cache holds the first list, and the informer still keeps it up to date.

        Objects that could not be taken may be missing: ``statistics().missing`` counts them, and a warning names them.
        False again after the informer has stopped, or after ``ReflectorOptions.stale_after`` seconds without a watch.
        """
        return self._synced.is_set() and self._phase is _Phase.RUNNING and not self._is_stale

    @property
    def _is_stale(self) -> bool:
        return self.state.age > self._options.stale_after

    @property
    def is_healthy(self) -> bool:
        """Whether :attr:`has_synced`; before the first list, whether it runs and its last request has not failed."""
        if self._synced.is_set():
            return self.has_synced
        return self._phase is _Phase.RUNNING and self.state.error is None

    async def wait_until_synced(self) -> None:
        """Wait until the cache holds the first list.

        Raises:
            trio.ClosedResourceError: The informer has stopped.
        """
        await self._synced_or_stopped.wait()
        if not self._synced.is_set():
            raise trio.ClosedResourceError(f"the informer of {self._name} stopped before it had synced")
        if self._phase is _Phase.STOPPED:
            raise trio.ClosedResourceError(f"the informer of {self._name} has stopped")

    async def wait_until_stopped(self) -> None:
        """Wait until the informer has stopped; :attr:`state` then says why.

        Returns immediately if it has stopped already.
        """
        await self._stopped.wait()

    async def wait_until_at_least(self, resource_version: str | KubernetesObject) -> None:
        """Wait until the cache is at least as new, to read your own writes from it.

        For an object that this informer's selectors exclude there is no event, so this waits for the next event of
        another object, or for a bookmark, which comes about once a minute.

        Args:
            resource_version: The result of a write: the object, or its resourceVersion.

        Raises:
            DecodeError: A resourceVersion is not a number, as on some aggregated API servers; it is a ValueError.
            ValueError: The cache does not hold the object's namespace.
            trio.ClosedResourceError: The informer stopped before.
            RuntimeError: The caller is a handler with ``overflow="block"``, for which the cache would wait.

        Cancellation: changes nothing.
        """
        self._processor.raise_if_inside_handler("the cache", only_blocking=True)
        namespaces = self._versions.namespaces
        if not isinstance(resource_version, str):
            namespaces = tuple(each for each in namespaces if each in ("", resource_version.namespace))
            if not namespaces:
                raise ValueError(f"{resource_version!r} is in a namespace that the cache of {self._name} does not hold")
            resource_version = resource_version.resource_version
        await self._versions.wait_until_at_least(resource_version, namespaces)

    def _set_synced(self) -> None:
        self._synced.set()
        self._synced_or_stopped.set()
        self._quarantine.log_at_sync()

    @property
    def state(self) -> InformerState:
        """What the informer is doing, why, until when, and how old its data may be."""
        if self._phase is _Phase.NEW:
            return InformerState(InformerPhase.NOT_STARTED)
        if self._final_state is not None:
            return self._final_state
        reflectors = [each.statistics() for each in self._reflectors.values()]
        worst = worst_of(reflectors)
        error = worst.last_error or next((each.last_error for each in reflectors if each.last_error is not None), None)
        age = trio.current_time() - min(each.up_to_date_at for each in reflectors)
        quarantine = self._quarantine
        return InformerState(worst.phase, error, worst.retry_at, age, len(quarantine), quarantine.first())

    def statistics(self) -> InformerStatistics:
        """Return the state of the informer, and what it holds."""
        return InformerStatistics(
            has_synced=self.has_synced,
            objects=len(self._indexer),
            pending=len(self._fifo),
            handlers_and_subscriptions=len(self._processor),
            quarantined=self._quarantine.by_reason(),
            missing=self._quarantine.missing,
            reflectors={namespace: each.statistics() for namespace, each in self._reflectors.items()},
        )

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Add index functions; an object that one fails on stays in the cache, and is in quarantine.

        The same function under the same name again changes nothing, as for ``indexers`` of a factory.

        Raises:
            IndexerError: Another function has the name, or a function failed on all of at least two objects; no index
                is added then.
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
        """Add a handler that is called for every change; allowed until the informer has stopped.

        A handler that is added later is first called for every object in the cache, with ``is_initial``.
        Each registration has its own task and its own buffer; the same handler may be registered twice.

        Args:
            handler: The handler to call.
            resync_period: Seconds after which every object is repeated; None is the informer's default, 0 is never.
                Less than a second becomes a second; less than the check period of a running informer becomes that.
            buffer_size: How many notifications may wait before ``overflow`` applies.
            overflow: ``"coalesce"`` merges the notifications of one object, ``"block"`` makes the informer wait.
            patience: Seconds that one notification may take under ``"block"``; more ends the informer.
            on_error: Called with an exception of the handler; without it an exception ends the informer's run.
                A `DecodeError` or a `QuarantinedError` never does: the notification is skipped, and logged at most once
                in ten minutes.
            name: For messages; the default is the name of the handler's class.

        Raises:
            RuntimeError: The informer has stopped.
            TypeError: The handler is not a ResourceEventHandler, or a method of it cannot be called.
            ValueError: ``overflow`` or ``buffer_size`` is invalid.

        Ownership: the informer's :meth:`run` owns the handler's task.
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
        """Open a stream of notifications, for the caller's own task.

        It begins with every object in the cache, or, if the informer has not synced, with the first list.
        The end of the block closes it.

        Args:
            buffer_size: How many notifications may wait before ``overflow`` applies.
            overflow: As for :meth:`add_event_handler`.
            patience: Seconds that one notification may take under ``"block"``; more breaks the subscription.

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
        # no checkpoint: the objects of the snapshot are initial, everything later is a change
        if self._phase is _Phase.RUNNING:
            listener.start_period(trio.current_time())
        self._processor.add(listener, self._initial_objects())

    def _initial_objects(self) -> Sequence[T] | None:
        return self._indexer.snapshot() if self._synced.is_set() else None

    def _effective_resync_period(self, period: float, name: str) -> float:
        """Return the period that the check period allows (client-go's ``determineResyncPeriod``)."""
        if period <= 0:
            return 0.0
        if period < MIN_RESYNC_PERIOD:
            logger.warning("%s: a resync period of %g s is raised to %g s", name, period, MIN_RESYNC_PERIOD)
            period = MIN_RESYNC_PERIOD
        if self._check_period <= 0:
            logger.warning("%s: no resync, because its informer has no resync period", name)
            return 0.0
        if period < self._check_period:
            if self._phase is _Phase.NEW:
                self._check_period = period
            else:
                logger.warning(
                    "%s: a resync period of %g s is raised to the running informer's %g s",
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
        """List and watch until cancelled; ``nursery.start`` returns when the cache has synced.

        An informer can run only once.

        Raises:
            RuntimeError: It is already running, or has stopped.
            ExceptionGroup: Of an exception of a handler; before the first list also of a permanent error.

        Cancellation: when this has returned, reflector, process loop and handler tasks have ended, and subscriptions
            end.  A running handler is cancelled; pending notifications are dropped.
        """
        if self._phase is not _Phase.NEW:
            raise RuntimeError(f"the informer of {self._name} {self._phase.value}; an informer can run only once")
        self._phase = _Phase.RUNNING
        failure: Exception | None = None
        timer = ResyncTimer(self._fifo, self._processor, self._check_period)
        name = f"informer of {self._name}"
        try:
            async with trio.open_nursery() as nursery:
                for namespace, reflector in self._reflectors.items():
                    nursery.start_soon(reflector.run, name=f"{name}: reflector{namespace and f' of {namespace}'}")
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
            self._synced_or_stopped.set()
            self._stopped.set()
            self._processor.close()
            self._fifo.close()

    async def _start_handlers(self, nursery: trio.Nursery) -> None:
        """Start the task of each registered handler, now and whenever another is added."""
        while True:
            # no checkpoint between emptying the list and creating the next event
            for task in self._unstarted:
                nursery.start_soon(task.run, name=task.listener.name)
            self._unstarted.clear()
            self._handler_added = trio.Event()
            await self._handler_added.wait()


def add_paused_handler(
    informer: SharedInformer[T], handler: ResourceEventHandler[T], *, name: str, buffer_size: int
) -> tuple[HandlerRegistration[T], Callable[[], None]]:
    """Add a handler that receives every state from the moment it is started, and nothing before.

    When it is started, it is first called for every object in the cache; if that has not synced, for the first list.
    From then on the process loop waits for it without a limit when its buffer is full.  So its calls must never
    wait for anything.

    Args:
        informer: The informer.
        handler: The handler.
        name: For messages.
        buffer_size: How many notifications may wait before the process loop waits.

    Returns:
        The registration, and the function that starts the handler.

    Raises:
        RuntimeError: The informer has stopped.
    """
    buffer = ListenerBuffer(
        informer._indexer.snapshot, buffer_size=buffer_size, overflow="block", patience=math.inf, is_paused=True
    )
    task = informer._add_handler(handler, buffer, name)

    def start() -> None:
        # no checkpoint: the objects of the snapshot are initial, everything later is a change
        informer._processor.start(task.listener, informer._initial_objects())

    return HandlerRegistration[T]._create(task, informer._processor), start
