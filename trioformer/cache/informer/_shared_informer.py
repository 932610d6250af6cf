"""One cache of one kind, shared by everybody who asks: the plumbing of reflector, queue, store and readers.

Source: client-go ``tools/cache/shared_informer.go``.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar, final

import attrs
import trio

from ...errors import IndexerError
from ...models import KubernetesObject
from ..processor._listener_buffer import ListenerBuffer, Overflow
from ..processor._notifications import ResourceEventHandler, name_of
from ..processor._processor import (
    ErrorHandler,
    HandlerRegistration,
    HandlerTask,
    Listener,
    Processor,
    Subscription,
)
from ..reflector._list_watch import ListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._reflector import Reflector
from ..reflector._status import InformerPhase, InformerState, ReflectorStatistics
from ..reflector._transform import Transform, undecodable
from ..store._delta_fifo import DeltaFIFO, NamespacedSink
from ..store._indexer import Indexer, IndexFunc
from ..store._lister import Lister
from ..store._versions import Versions
from ._process_loop import ProcessLoop, ResyncTimer

T = TypeVar("T", bound=KubernetesObject)

MIN_RESYNC_PERIOD = 1.0

logger = logging.getLogger("trioformer.cache")


class _Phase(enum.Enum):
    NEW = "has not been started"
    RUNNING = "is running"
    STOPPED = "has stopped"


_WORST_FIRST: tuple[InformerPhase, ...] = (
    InformerPhase.NOT_STARTED,
    InformerPhase.BACKING_OFF,
    InformerPhase.CONNECTING,
    InformerPhase.LISTING,
    InformerPhase.WAITING_FOR_BOOKMARK,
    InformerPhase.READING_WATCH_LIST,
    InformerPhase.WATCHING,
)
"""What a reflector does, from worst to best; an informer of several is as well off as its worst."""


def _worst_of(reflectors: Iterable[ReflectorStatistics]) -> ReflectorStatistics:
    return min(reflectors, key=lambda each: (_WORST_FIRST.index(each.phase), each.up_to_date_at))


@final
@attrs.frozen
class InformerStatistics:
    """How an informer does."""

    has_synced: bool
    """Whether the cache is filled and kept in step."""
    objects: int
    """Objects in the cache."""
    pending: int
    """Changes between the reflector and the cache."""
    handlers_and_subscriptions: int
    """Readers."""
    reflectors: Mapping[str, ReflectorStatistics]
    """The state of each connection by namespace, where the cache is made of several; otherwise of one, under ``""``."""

    @property
    def reflector(self) -> ReflectorStatistics:
        """The reflector that is worst off; the only one, mostly."""
        return _worst_of(self.reflectors.values())


@final
class SharedInformer(Generic[T]):
    """A cache that follows the server, and tells its readers what changes.

    Every reader is told of each object in order: a subsequence of its states that ends with the newest.
    Calls to one handler come one at a time; between readers there is no order.
    A slow reader never holds up the cache or another reader (see ``overflow``).
    Objects are immutable and shared.

    The informer owns no task before :meth:`run` is called; ``run`` owns the reflector, the process loop and one task
    for each handler, and when it has returned, all of them are gone.

    Args:
        list_watch: Where to read from; or several sources by the namespace that each has to itself, for one cache of
            several namespaces.
        resync_period: Seconds after which a handler is told of every object again, by default; 0 is never.
        indexers: Index functions by name, beside the namespace index.
        transform: Applied to each object exactly once, before it is stored; must leave namespace, name and
            resourceVersion as they are.
        options: What the reflector does about failures.
    """

    _name: str
    _indexer: Indexer[T]
    _fifo: DeltaFIFO[T]
    _processor: Processor[T]
    _options: ReflectorOptions
    _reflectors: Mapping[str, Reflector[T]]
    _versions: Versions
    _loop: ProcessLoop[T]
    _lister: Lister[T]
    _synced: trio.Event
    _decided: trio.Event
    _phase: _Phase
    _ended: InformerState | None
    _resync_period: float
    _check_period: float
    _waiting: list[HandlerTask[T]]
    _added: trio.Event

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
        self._fifo = DeltaFIFO()
        self._processor = Processor()
        self._synced = trio.Event()
        self._decided = trio.Event()
        if isinstance(list_watch, Mapping):
            if not list_watch or "" in list_watch:
                raise ValueError("several sources need a namespace each, and there must be at least one")
            first = next(iter(list_watch.values()))
            kind = first.kind
            self._name = f"{kind.__name__} in namespaces {', '.join(list_watch)}"
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
        self._versions = Versions(dict.fromkeys(self._reflectors, ""))
        self._loop = ProcessLoop(
            self._fifo,
            self._indexer,
            self._processor,
            self._versions,
            on_synced=self._set_synced,
            on_listed=lambda namespace: self._reflectors[namespace].record_list_stored(),
            on_refused=self._refused,
            on_undecodable=lambda namespace, obj, error: self._reflectors[namespace].report_undecodable(
                undecodable(obj, error)
            ),
        )
        self._lister = Lister[T]._create(self._name, self._indexer, self._synced.is_set, kind)
        self._ended = None
        self._phase = _Phase.NEW
        self._resync_period = self._check_period = resync_period
        self._waiting = []
        self._added = trio.Event()

    def __repr__(self) -> str:
        return f"<SharedInformer of {self._name}: {len(self._indexer)} objects, {self.state}>"

    @property
    def lister(self) -> Lister[T]:
        """The read-only view of the cache."""
        return self._lister

    @property
    def has_synced(self) -> bool:
        """Whether the first list has filled the cache, and the informer still keeps it in step.

        False again when it has stopped, and while it has had no watch for ``ReflectorOptions.stale_after`` seconds.
        """
        return self._synced.is_set() and self._phase is _Phase.RUNNING and not self._is_stale

    @property
    def _is_stale(self) -> bool:
        return self.state.age > self._options.stale_after

    @property
    def is_healthy(self) -> bool:
        """Whether the informer runs and is in step, or is on its way to its first list without a failure so far."""
        if self._synced.is_set():
            return self.has_synced
        return self._phase is _Phase.RUNNING and self.state.error is None

    async def wait_until_synced(self) -> None:
        """Wait until the first list has filled the cache.

        Raises:
            trio.ClosedResourceError: The informer has stopped.
        """
        await self._decided.wait()
        if not self._synced.is_set():
            raise trio.ClosedResourceError(f"the informer of {self._name} stopped before it had synced")
        if self._phase is _Phase.STOPPED:
            raise trio.ClosedResourceError(f"the informer of {self._name} has stopped")

    async def wait_until_at_least(self, resource_version: str | KubernetesObject) -> None:
        """Wait until the cache is at least as new, to read one's own writes from it.

        Where nothing else happens, a watch learns of newer versions by bookmarks only, about once a minute; that
        concerns objects that this informer's selectors leave out.

        Args:
            resource_version: What a write has returned: the object, or its resourceVersion.

        Raises:
            ValueError: A resourceVersion is no number, as some aggregated servers have them; they have no order.
            trio.ClosedResourceError: The informer stopped before.
            RuntimeError: The caller is a handler with ``overflow="block"``, for which the cache would wait in turn.

        Cancellation: changes nothing.
        """
        self._processor.refuse_inside_handler("the cache", only_blocking=True)
        namespaces = self._versions.namespaces
        if not isinstance(resource_version, str):
            namespaces = tuple(each for each in namespaces if each in ("", resource_version.namespace))
            if not namespaces:
                raise ValueError(f"{resource_version!r} is of a namespace that {self._name} does not hold")
            resource_version = resource_version.resource_version
        await self._versions.wait_until_at_least(resource_version, namespaces)

    def _set_synced(self) -> None:
        self._synced.set()
        self._decided.set()

    def _refused(self, namespace: str, errors: Sequence[IndexerError]) -> None:
        """Have what the store could not take listed again; before the first sync, and by default, it is the end."""
        if not self._synced.is_set() and not self._options.retry_forever:
            raise errors[0]
        self._reflectors[namespace].relist(errors)

    @property
    def state(self) -> InformerState:
        """What the informer is doing, why, until when, and how old its data may be."""
        if self._phase is _Phase.NEW:
            return InformerState(InformerPhase.NOT_STARTED)
        if self._ended is not None:
            return self._ended
        reflectors = [each.statistics() for each in self._reflectors.values()]
        worst = _worst_of(reflectors)
        error = worst.last_error or next((each.last_error for each in reflectors if each.last_error is not None), None)
        age = trio.current_time() - min(each.up_to_date_at for each in reflectors)
        return InformerState(worst.phase, error, worst.retry_at, age)

    def statistics(self) -> InformerStatistics:
        """How the informer does."""
        return InformerStatistics(
            has_synced=self.has_synced,
            objects=len(self._indexer),
            pending=len(self._fifo),
            handlers_and_subscriptions=len(self._processor),
            reflectors={namespace: each.statistics() for namespace, each in self._reflectors.items()},
        )

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Add index functions, at any time before the informer has stopped.

        Raises:
            IndexerError: A name is taken or a function failed; nothing is added then.
            RuntimeError: The informer has stopped.
        """
        self._refuse_if_stopped("add an index")
        self._indexer.add_indexers(indexers)

    # --- readers ---

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
        """Have a handler told of every change, before the informer runs or while it does.

        A late handler is first told of all that the cache holds, as ``is_initial``.
        Each registration has a task and a buffer of its own; the same handler may be registered twice.

        Args:
            handler: What to call.
            resync_period: Seconds between repetitions of every object; None is the informer's own, 0 is never.
                Less than a second becomes a second; while the informer runs, less than its check period becomes that.
            buffer_size: How many notifications may wait before ``overflow`` decides.
            overflow: ``"coalesce"`` merges the notifications of one object, ``"block"`` lets the informer wait up to
                ``patience``, ``"raise"`` ends the informer.
            patience: Seconds that one notification may take under ``"block"``.
            on_error: Given what the handler raises; without it an exception ends the informer's run.
            name: For messages; default is the handler's class.

        Raises:
            RuntimeError: The informer has stopped.
            ValueError: ``overflow`` or ``buffer_size`` is none.

        Ownership: the informer's :meth:`run` owns the handler's task.
        """
        self._refuse_if_stopped("add a handler")
        name = f"handler {name or name_of(handler)} of informer {self._name}"
        period = self._effective_resync_period(self._resync_period if resync_period is None else resync_period, name)
        buffer = ListenerBuffer(self._indexer.snapshot, buffer_size=buffer_size, overflow=overflow, patience=patience)
        listener = Listener(buffer, name, period)
        task = HandlerTask(listener, handler, on_error)
        self._join(listener)
        self._waiting.append(task)
        self._added.set()
        return HandlerRegistration[T]._create(task, self._processor)

    @contextmanager
    def subscribe(
        self, *, buffer_size: int = 1_024, overflow: Overflow = "coalesce", patience: float = 60.0
    ) -> Iterator[Subscription[T]]:
        """Open the stream of notifications, for a reader in the caller's own task.

        It begins with all that the cache holds, or, before the informer has synced, with the first list.
        Leaving the block ends it.

        Args:
            buffer_size: How many notifications may wait before ``overflow`` decides.
            overflow: As for :meth:`add_event_handler`; with ``"raise"`` the reader gets ``trio.BrokenResourceError``.
            patience: Seconds that one notification may take under ``"block"``.

        Raises:
            RuntimeError: The informer has stopped.
        """
        self._refuse_if_stopped("subscribe")
        listener = Listener(
            ListenerBuffer(self._indexer.snapshot, buffer_size=buffer_size, overflow=overflow, patience=patience)
        )
        self._join(listener)
        try:
            yield Subscription[T]._create(listener.buffer)
        finally:
            self._processor.remove(listener)

    def _join(self, listener: Listener[T]) -> None:
        # no checkpoint: what the snapshot holds is told as initial, everything after it as a change
        if self._phase is _Phase.RUNNING:
            listener.schedule(trio.current_time())
        self._processor.add(listener, self._indexer.snapshot() if self._synced.is_set() else None)

    def _effective_resync_period(self, period: float, name: str) -> float:
        """client-go's ``determineResyncPeriod``: handlers are checked on one tick, and cannot be due between two."""
        if period <= 0:
            return 0.0
        if period < MIN_RESYNC_PERIOD:
            logger.warning("%s: a resync period of %g s is raised to %g s", name, period, MIN_RESYNC_PERIOD)
            period = MIN_RESYNC_PERIOD
        if self._check_period <= 0:
            logger.warning("%s: no resync, since the informer was made without a resync period", name)
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

    def _refuse_if_stopped(self, what: str) -> None:
        if self._phase is _Phase.STOPPED:
            raise RuntimeError(f"cannot {what}: the informer of {self._name} has stopped; make a new one")

    # --- running ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the server until cancelled; with ``nursery.start`` it has started when the cache is filled.

        An informer runs once.

        Raises:
            RuntimeError: It runs already, or has stopped.
            ExceptionGroup: Of what a handler raised, or, before the first list, an error that waiting does not mend.

        Cancellation: when this has returned, reflector, process loop and handler tasks are gone, and subscriptions end.
            A handler that is running is cancelled; what was not delivered is dropped.
        """
        if self._phase is not _Phase.NEW:
            raise RuntimeError(f"the informer of {self._name} {self._phase.value}; an informer runs once")
        self._phase = _Phase.RUNNING
        failure: Exception | None = None
        timer = ResyncTimer(self._fifo, self._processor, self._check_period)
        name = f"informer of {self._name}"
        try:
            async with trio.open_nursery() as nursery:
                for namespace, reflector in self._reflectors.items():
                    nursery.start_soon(reflector.run, name=f"{name}: reflector{namespace and f' of {namespace}'}")
                nursery.start_soon(self._loop.run, name=f"{name}: process loop")
                nursery.start_soon(self._start_listeners, nursery, name=f"{name}: listeners")
                await self._synced.wait()
                self._processor.schedule_all(trio.current_time())
                nursery.start_soon(timer.run, name=f"{name}: resync")
                task_status.started()
        except Exception as error:
            failure = error
            raise
        finally:
            self._ended = InformerState(
                InformerPhase.STOPPED if failure is None else InformerPhase.FAILED, failure, age=self.state.age
            )
            self._phase = _Phase.STOPPED
            self._versions.close()
            self._decided.set()
            self._processor.close()
            self._fifo.close()

    async def _start_listeners(self, nursery: trio.Nursery) -> None:
        """Give each registered handler its task, now and whenever another is added."""
        while True:
            # no checkpoint between emptying the list and making the next event
            for task in self._waiting:
                nursery.start_soon(task.run, name=task.listener.name)
            self._waiting.clear()
            self._added = trio.Event()
            await self._added.wait()
