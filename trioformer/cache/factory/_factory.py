"""One informer for each selection of objects, one line that starts them all (client-go ``informers/factory.go``)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, TypeVar, final, overload

import attrs
import trio

from ..._util import first_leaf
from ...client import Client, FieldSelector, LabelSelector
from ...models import (
    FieldMatcher,
    KubernetesObject,
    LabelMatcher,
    PartialObjectMetadata,
    resource_of,
)
from ..informer._shared_informer import InformerStatistics, SharedInformer
from ..reflector._options import ReflectorOptions, WatchErrorHandler
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc
from ._cache_sync import SyncingHandler, wait_until_synced
from ._entry import InformerSlot
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

# What stands behind the overloads of informer() and using(), which say how these belong together.
_Informer: TypeAlias = SharedInformer[Any]
_Transform: TypeAlias = Transform[Any]
_Indexers: TypeAlias = Mapping[str, IndexFunc[Any]]
_Slot: TypeAlias = InformerSlot[Any]


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
    :meth:`using`, and then stays until the last block that uses it has been left.

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
        grace_period: Before the first sync: seconds of nothing but 400, 401, 403, 404 or 405, after which an informer
            fails; 30 unless ``options`` says otherwise.
        retry_forever: Never fail for them (client-go's behaviour).
        watch_error_handler: Told of every failure that an informer goes on from; by default they are logged.
        options: What else a reflector may be told; the three before this one take precedence.

    ``namespace``, ``label_selector``, ``field_selector``, ``resync_period`` and ``transform`` are what holds where a
    single informer is asked for without them.

    Raises:
        SelectorError: A selector does not parse.
        ValueError: A namespace is empty.
    """

    _client: Client
    _defaults: InformerDefaults
    _is_supervisor: bool
    _slots: dict[InformerKey, _Slot]
    _unstarted: list[_Slot]
    _asked: trio.Event
    _has_run: bool
    _has_stopped: bool

    def __init__(
        self,
        client: Client,
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
        resync_period: float = 0.0,
        resync_periods: Mapping[type[KubernetesObject], float] | None = None,
        transform: FactoryTransform | None = None,
        drop_managed_fields: bool = False,
        supervise: bool = False,
        grace_period: float | None = None,
        retry_forever: bool | None = None,
        watch_error_handler: WatchErrorHandler | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        options = options if options is not None else ReflectorOptions()
        if grace_period is not None:
            options = attrs.evolve(options, grace_period=grace_period)
        if retry_forever is not None:
            options = attrs.evolve(options, retry_forever=retry_forever)
        if watch_error_handler is not None:
            options = attrs.evolve(options, watch_error_handler=watch_error_handler)
        self._client = client
        self._defaults = InformerDefaults(
            namespaces=namespaces_of(namespace),
            label_selector=LabelMatcher.of(label_selector),
            field_selector=FieldMatcher.of(field_selector),
            resync_period=resync_period,
            resync_periods={resource_of(kind): period for kind, period in (resync_periods or {}).items()},
            transform=transform,
            drop_managed_fields=drop_managed_fields,
            options=options,
        )
        self._is_supervisor = supervise
        self._slots = {}
        self._unstarted = []
        self._asked = trio.Event()
        self._has_run = False
        self._has_stopped = False

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {'; '.join(map(str, self._slots)) or 'nothing yet'}>"

    # --- asking ---

    @overload
    def informer(
        self,
        kind: type[T],
        *,
        metadata_only: Literal[False] = False,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> SharedInformer[T]: ...

    @overload
    def informer(
        self,
        kind: type[KubernetesObject],
        *,
        metadata_only: Literal[True],
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[PartialObjectMetadata] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[PartialObjectMetadata]] | None = None,
    ) -> SharedInformer[PartialObjectMetadata]: ...

    def informer(
        self,
        kind: type[KubernetesObject],
        *,
        metadata_only: bool = False,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: _Transform | FromFactory | None = DEFAULT,
        indexers: _Indexers | None = None,
    ) -> _Informer:
        """Return the informer of a kind, for as long as the factory runs; the same one each time.

        Asked for while the factory runs, it starts at once; ``wait_until_synced`` tells when it is filled.
        By default what ends one informer ends the factory, one that came late included.

        Args:
            kind: The kind's class.
            metadata_only: Hold nothing but the objects' metadata, in a small part of the memory.
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
            metadata_only=metadata_only,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        slot = self._slot_for(asked)
        slot.is_claimed = True
        return slot.informer

    @overload
    def using(
        self,
        kind: type[T],
        *,
        metadata_only: Literal[False] = False,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[SharedInformer[T]]: ...

    @overload
    def using(
        self,
        kind: type[KubernetesObject],
        *,
        metadata_only: Literal[True],
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[PartialObjectMetadata] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[PartialObjectMetadata]] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[SharedInformer[PartialObjectMetadata]]: ...

    @asynccontextmanager
    async def using(
        self,
        kind: type[KubernetesObject],
        *,
        metadata_only: bool = False,
        namespace: Namespaces | FromFactory = DEFAULT,
        label_selector: LabelSelector | FromFactory | None = DEFAULT,
        field_selector: FieldSelector | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: _Transform | FromFactory | None = DEFAULT,
        indexers: _Indexers | None = None,
    ) -> AsyncGenerator[_Informer, None]:
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
            metadata_only=metadata_only,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        slot = self._slot_for(asked)
        slot.users += 1
        try:
            yield slot.informer
        finally:
            slot.users -= 1
            if slot.is_abandoned:
                await self._stop(slot)

    def _slot_for(self, asked: InformerRequest[T]) -> InformerSlot[T]:
        known: InformerSlot[T] | None = self._slots.get(asked.key)
        if known is not None and (known.failure is None or known.is_claimed or self._has_stopped):
            known.agree(asked)
            return known
        if self._has_stopped:
            raise RuntimeError(f"this factory has stopped and starts no informer of {asked.key}; make a new one")
        slot = InformerSlot(
            key=asked.key,
            informer=self._defaults.build(self._client, asked),
            resync_period=self._defaults.resync_period_of(asked),
            transform=self._defaults.transform_of(asked),
            indexers=dict(asked.indexers),
            is_supervised=self._is_supervisor,
        )
        self._slots[asked.key] = slot
        self._unstarted.append(slot)
        self._asked.set()
        return slot

    async def _stop(self, slot: InformerSlot[T]) -> None:
        # no checkpoint since the last user left: who asks from here on gets a fresh informer
        if self._slots.get(slot.key) is slot:
            del self._slots[slot.key]
        if slot in self._unstarted:
            self._unstarted.remove(slot)
            await slot.close_unstarted()
        else:
            await slot.stop()

    # --- how it does ---

    @property
    def informers(self) -> Mapping[InformerKey, SharedInformer[Any]]:
        """The informers that somebody has asked for and not left, by what they hold; a new mapping."""
        return {key: slot.informer for key, slot in self._slots.items()}

    @property
    def failures(self) -> Mapping[InformerKey, Exception]:
        """What ended the informers that have failed, by what they hold; a new mapping."""
        return {key: slot.failure for key, slot in self._slots.items() if slot.failure is not None}

    @property
    def _is_running(self) -> bool:
        return self._has_run and not self._has_stopped

    @property
    def has_synced(self) -> bool:
        """Whether the factory runs, and every informer's cache is filled and kept in step."""
        return self._is_running and all(slot.informer.has_synced for slot in self._slots.values())

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, and every informer is in step, or on its way to its first list without a failure."""
        return self._is_running and all(slot.informer.is_healthy for slot in self._slots.values())

    def problems(self) -> Mapping[InformerKey, str]:
        """Say in words of each informer that has not synced, or is not healthy, what it is doing and why.

        For people, such as those who read ``/readyz``; empty when nothing is wrong.
        """
        return {
            key: _in_words(slot)
            for key, slot in self._slots.items()
            if not (slot.informer.has_synced and slot.informer.is_healthy)
        }

    def statistics(self) -> FactoryStatistics:
        """How the informers do."""
        informers = {key: slot.informer.statistics() for key, slot in self._slots.items()}
        return FactoryStatistics(
            has_synced=self.has_synced,
            is_healthy=self.is_healthy,
            objects=sum(each.objects for each in informers.values()),
            pending=sum(each.pending for each in informers.values()),
            informers=informers,
        )

    async def wait_for_cache_sync(self, *registrations: SyncingHandler, deadline: float = math.inf) -> None:
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
        await wait_until_synced(tuple(self._slots.values()), registrations, deadline=deadline)

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
                asked_for = tuple(self._slots.values())
                nursery.start_soon(self._start_informers, nursery)
                for slot in asked_for:
                    await self._wait_for(slot)
                task_status.started()
        finally:
            self._has_stopped = True
            while self._unstarted:
                await self._unstarted.pop().close_unstarted()

    async def _wait_for(self, slot: _Slot) -> None:
        """Wait until an informer has synced, or is not to be waited for any more."""
        try:
            await slot.informer.wait_until_synced()
        except trio.ClosedResourceError:
            await slot.gone.wait()
            if slot.failure is not None and not slot.is_supervised:
                await trio.sleep_forever()  # what ended it is on its way to the nursery of run()

    async def _start_informers(self, nursery: trio.Nursery) -> None:
        """Give each informer its task, now and whenever another is asked for."""
        while True:
            # no checkpoint between emptying the list and making the next event
            for slot in self._unstarted:
                nursery.start_soon(slot.run, name=f"informer of {slot.key}")
            self._unstarted.clear()
            self._asked = trio.Event()
            await self._asked.wait()


def _in_words(slot: _Slot) -> str:
    state = slot.informer.state
    return str(attrs.evolve(state, error=first_leaf(state.error)))
