"""One informer for each selection of objects, one line that starts them all (client-go ``informers/factory.go``)."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar, final

import attrs
import trio

from ..._util import first_leaf
from ...client import Client, FieldSelectorLike, LabelSelectorLike
from ...models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    resource_of,
)
from ..informer._shared_informer import InformerStatistics, SharedInformer
from ..processor._processor import HandlerRegistration
from ..reflector._options import ReflectorOptions
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc
from ._cache_sync import wait_until_synced
from ._entry import FactoryEntry
from ._requests import (
    DEFAULT,
    FactoryTransform,
    FromFactory,
    InformerDefaults,
    InformerKey,
    InformerRequest,
    Namespaces,
    namespaces_of,
)

T = TypeVar("T", bound=KubernetesObject)

_Entry: TypeAlias = FactoryEntry[Any]


@final
@attrs.frozen
class FactoryStatistics:
    """How a factory's informers do."""

    has_synced: bool
    """Whether every cache is filled and kept in step."""
    is_healthy: bool
    """Whether nothing is wrong."""
    objects: int
    """Objects in all caches."""
    pending: int
    """Changes between the reflectors and the caches."""
    informers: Mapping[InformerKey, InformerStatistics]
    """Each informer's own."""


@final
class SharedInformerFactory:
    """Keeps one informer for each kind, namespace and selection, however many use it.

    So a kind is listed, watched and stored once.
    Start it with ``await nursery.start(factory.run)``, which returns when every cache is filled.
    The caller's nursery owns all its tasks.

    An informer is asked for with :meth:`informer`, and then stays for as long as the factory runs, or with
    :meth:`open_informer`, and then stays until the last block that uses it has been left.

    Args:
        client: The connection; must stay open while the factory runs.
        namespace: Only this namespace, or these; None is all of them.  Kinds without namespaces ignore it.
        label_selector: Only objects whose labels match.
        field_selector: Only objects whose fields match.
        resync_period: Seconds after which handlers are told of every object again, by default; 0 is never.
        resync_periods: The same for single kinds, and for their metadata (client-go's ``WithCustomResyncConfig``).
        transform: Applied to every object exactly once, before it is stored.
        drop_managed_fields: Cut ``metadata.managedFields`` out of every object, which often halves the cache.
        supervise: When an informer fails, log it, keep it in :attr:`failures`, and let the others go on; by default
            its error leaves :meth:`run`.
        options: What each reflector does about failures and silence.

    ``namespace``, ``label_selector``, ``field_selector``, ``resync_period`` and ``transform`` are what holds where a
    single informer is asked for without them.

    Raises:
        SelectorError: A selector does not parse.
        ValueError: A namespace is empty.
    """

    _client: Client
    _defaults: InformerDefaults
    _is_supervisor: bool
    _entries: dict[InformerKey, _Entry]
    _unstarted: list[_Entry]
    _asked: trio.Event
    _has_run: bool
    _has_stopped: bool

    def __init__(
        self,
        client: Client,
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        resync_period: float = 0.0,
        resync_periods: Mapping[type[KubernetesObject], float] | None = None,
        transform: FactoryTransform | None = None,
        drop_managed_fields: bool = False,
        supervise: bool = False,
        options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._defaults = InformerDefaults(
            namespaces=namespaces_of(namespace),
            label_selector=LabelSelector.of(label_selector),
            field_selector=FieldSelector.of(field_selector),
            resync_period=resync_period,
            resync_periods={resource_of(kind): period for kind, period in (resync_periods or {}).items()},
            transform=transform,
            drop_managed_fields=drop_managed_fields,
            options=options if options is not None else ReflectorOptions(),
        )
        self._is_supervisor = supervise
        self._entries = {}
        self._unstarted = []
        self._asked = trio.Event()
        self._has_run = False
        self._has_stopped = False

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {'; '.join(map(str, self._entries)) or 'nothing yet'}>"

    # --- asking ---

    def informer(
        self,
        kind: type[T],
        *,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelectorLike | FromFactory | None = DEFAULT,
        field_selector: FieldSelectorLike | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> SharedInformer[T]:
        """Return the informer of a kind, for as long as the factory runs; the same one each time.

        Asked for while the factory runs, it starts at once; ``wait_until_synced`` tells when it is filled.
        By default what ends one informer ends the factory, one that came late included.

        Args:
            kind: The kind's class; :func:`~trioformer.models.metadata_kind` makes one that holds metadata alone.
            namespace: Only this namespace, or these, in one cache; None is all of them.
            label_selector: Only objects whose labels match; None is all.
            field_selector: Only objects whose fields match; None is all.
            resync_period: Seconds after which handlers are told of every object again, by default; 0 is never.
            transform: Applied to each object exactly once, before it is stored; None is none.
            indexers: Index functions to add; those that a further call adds are added then.

        What is left out is as the factory has it, and where the informer exists, as that has it.

        Raises:
            IndexerError: An index of that name exists with another function; the informer is as it was.
            RuntimeError: The factory has stopped, and has no such informer.
            SelectorError: A selector does not parse.
            TypeError: The class is no kind.
            ValueError: The informer exists with another resync period or transform; or a namespace is empty, or given
                for a kind that belongs to none.
        """
        asked = self._defaults.request(
            kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        entry = self._entry_for(asked)
        entry.is_pinned = True
        return entry.informer

    @asynccontextmanager
    async def open_informer(
        self,
        kind: type[T],
        *,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelectorLike | FromFactory | None = DEFAULT,
        field_selector: FieldSelectorLike | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> AsyncGenerator[SharedInformer[T], None]:
        """Use the informer of a kind for the length of a block.

        The block is given what :meth:`informer` would return, with the same arguments and errors, but does not keep it:
        when the last block that uses an informer is left, the informer stops, unless :meth:`informer` has been asked
        for it too.  Who asks for it after that gets a fresh one, which lists anew.

        A handler that was added in the block goes with the informer only: where others still use that, it stays, so
        remove it in a ``finally``.

        Of an informer that has failed (with ``supervise``), whoever asks next gets a fresh one, too; one that
        :meth:`informer` has been asked for stays failed.

        Cancellation: the block is left like any other.
            When the last one has been left, all tasks of the informer are gone; waiting for that is not cut short, as
            at a nursery's end.  Only a block inside a handler's call does not wait, since it could be for itself.
        """
        await trio.lowlevel.checkpoint()
        # no checkpoint between finding the informer and counting the user
        asked = self._defaults.request(
            kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        entry = self._entry_for(asked)
        entry.users += 1
        try:
            yield entry.informer
        finally:
            entry.users -= 1
            if entry.is_unused:
                await self._stop(entry)

    def _entry_for(self, asked: InformerRequest[T]) -> FactoryEntry[T]:
        known: FactoryEntry[T] | None = self._entries.get(asked.key)
        if known is not None and (known.failure is None or known.is_pinned or self._has_stopped):
            known.agree(asked)
            return known
        if self._has_stopped:
            raise RuntimeError(f"this factory has stopped and starts no informer of {asked.key}; make a new one")
        entry = FactoryEntry(
            key=asked.key,
            informer=self._defaults.build(self._client, asked),
            resync_period=self._defaults.resync_period_of(asked),
            transform=self._defaults.transform_of(asked),
            indexers=dict(asked.indexers),
            is_supervised=self._is_supervisor,
        )
        self._entries[asked.key] = entry
        self._unstarted.append(entry)
        self._asked.set()
        return entry

    async def _stop(self, entry: FactoryEntry[T]) -> None:
        # no checkpoint since the last user left: who asks from here on gets a fresh informer
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
        if entry in self._unstarted:
            self._unstarted.remove(entry)
            await entry.close_unstarted()
        else:
            await entry.stop()

    # --- how it does ---

    @property
    def informers(self) -> Mapping[InformerKey, SharedInformer[Any]]:
        """The informers that somebody has asked for and not left, by what they hold; a new mapping."""
        return {key: entry.informer for key, entry in self._entries.items()}

    @property
    def failures(self) -> Mapping[InformerKey, Exception]:
        """What ended the informers that have failed, by what they hold; a new mapping."""
        return {key: entry.failure for key, entry in self._entries.items() if entry.failure is not None}

    @property
    def _is_running(self) -> bool:
        return self._has_run and not self._has_stopped

    @property
    def has_synced(self) -> bool:
        """Whether the factory runs, and every informer's cache is filled and kept in step."""
        return self._is_running and all(entry.informer.has_synced for entry in self._entries.values())

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, and every informer is in step, or on its way to its first list without a failure."""
        return self._is_running and all(entry.informer.is_healthy for entry in self._entries.values())

    def problems(self) -> Mapping[InformerKey, str]:
        """Say in words of each informer that has not synced, or is not healthy, what it is doing and why.

        For people, such as those who read ``/readyz``; empty when nothing is wrong.
        """
        return {
            key: _in_words(entry)
            for key, entry in self._entries.items()
            if not (entry.informer.has_synced and entry.informer.is_healthy)
        }

    def statistics(self) -> FactoryStatistics:
        """How the informers do."""
        informers = {key: entry.informer.statistics() for key, entry in self._entries.items()}
        return FactoryStatistics(
            has_synced=self.has_synced,
            is_healthy=self.is_healthy,
            objects=sum(each.objects for each in informers.values()),
            pending=sum(each.pending for each in informers.values()),
            informers=informers,
        )

    async def wait_for_cache_sync(
        self, *registrations: HandlerRegistration[KubernetesObject], deadline: float = math.inf
    ) -> None:
        """Wait until every cache has been filled, of the informers asked for so far, and every handler has caught up.

        A cache that was filled once counts, even if its watch is broken at the moment; see :attr:`is_healthy`.
        An informer whose users leave meanwhile is not waited for.

        Args:
            registrations: Handlers that must have returned from everything that was there when they joined.
            deadline: When to give up, on trio's clock, as ``trio.CancelScope`` has it.

        Raises:
            CacheSyncError: At the deadline, or as soon as one has failed or stopped; names what is missing, and why.
            RuntimeError: A handler of one of the informers waits inside a call.
        """
        await wait_until_synced(tuple(self._entries.values()), registrations, deadline=deadline)

    # --- running ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run every informer until cancelled; with ``nursery.start`` it has started when every cache is filled.

        That is client-go's ``Start`` and ``WaitForCacheSync`` in one causal line.
        A supervising factory has started when every informer has synced or failed.

        Raises:
            RuntimeError: It runs already, or has stopped.
            ExceptionGroup: Of what an informer raised; never if the factory supervises.

        Cancellation: when this has returned, every informer has stopped and its tasks are gone.
        """
        if self._has_run:
            raise RuntimeError("this factory runs already or has stopped; a factory runs once")
        self._has_run = True
        try:
            async with trio.open_nursery() as nursery:
                asked_for = tuple(self._entries.values())
                nursery.start_soon(self._start_informers, nursery)
                for entry in asked_for:
                    await self._wait_for(entry)
                task_status.started()
        finally:
            self._has_stopped = True
            while self._unstarted:
                await self._unstarted.pop().close_unstarted()

    async def _wait_for(self, entry: _Entry) -> None:
        """Wait until an informer has synced, or is not to be waited for any more."""
        try:
            await entry.informer.wait_until_synced()
        except trio.ClosedResourceError:
            await entry.gone.wait()
            if entry.failure is not None and not entry.is_supervised:
                await trio.sleep_forever()  # what ended it is on its way to the nursery of run()

    async def _start_informers(self, nursery: trio.Nursery) -> None:
        """Give each informer its task, now and whenever another is asked for."""
        while True:
            # no checkpoint between emptying the list and making the next event
            for entry in self._unstarted:
                nursery.start_soon(entry.run, name=f"informer of {entry.key}")
            self._unstarted.clear()
            self._asked = trio.Event()
            await self._asked.wait()


def _in_words(entry: _Entry) -> str:
    state = entry.informer.state
    return str(attrs.evolve(state, error=first_leaf(state.error)))
