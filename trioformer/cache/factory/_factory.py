"""The shared informer factory (client-go ``informers/factory.go``)."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final

import attrs
import trio

from ..._suggestions import attribute_hints, describe
from ..._util import opened_by
from ...client import Client
from ...client._internal import FieldSelectorLike, LabelSelectorLike
from ...models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    PartialObjectMetadata,
    ResourceInfo,
    resource_of,
)
from ..informer._shared_informer import SharedInformer, check_resync_period
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
    sorted_namespaces,
)

_OPEN_CLIENT: Final = "`async with open_client() as client:`"
T = TypeVar("T", bound=KubernetesObject)

_RUN: Final = "write await nursery.start(factory.run), which returns when the caches have synced"
_INFORMER: Final = "an informer has it: factory.informer(Pod)"

_Entry: TypeAlias = FactoryEntry[Any]


@final
class SharedInformerFactory:
    """Shares informers, so that each kind is listed, watched and stored only once.

    There is one informer for each combination of kind, namespaces and selectors.
    Start the factory with ``await nursery.start(factory.run)``, which returns when every cache has synced.
    The caller's nursery owns all its tasks.

    Request an informer with :meth:`informer` to keep it for as long as the factory runs, or with :meth:`open_informer`
    to keep it until the last block that uses it ends.

    Args:
        client: The connection; must stay open while the factory runs.
        namespace: One namespace, several, or None for all namespaces.  Cluster-scoped kinds ignore it.
        label_selector: Only objects whose labels match.
        field_selector: Only objects whose fields match.
        resync_period: Seconds after which every object is repeated to a handler, by default; 0 is never.  A mapping
            sets it by kind (client-go's ``WithCustomResyncConfig``), and with the key None for all other kinds, such as
            ``{Pod: 30, None: 600}``; a kind's metadata has the period of the kind, unless it is a key too.
        transform: Applied to every object exactly once, before it is stored.
        drop_managed_fields: Remove ``metadata.managedFields`` from every object, which often halves the cache.
        supervise: When an informer fails, log the error, keep it in :attr:`failures`, and continue with the other
            informers.  By default the error ends :meth:`run`.
        options: How each reflector lists, watches and handles failures.

    ``namespace``, ``label_selector``, ``field_selector``, ``resync_period`` and ``transform`` are defaults: a request
    for an informer may override them.

    Raises:
        SelectorError: A selector does not parse.
        TypeError: A key of ``resync_period`` is not a kind.
        ValueError: A resync period is not a number of seconds, or is negative.
        ValueError: A namespace is empty.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        resync_period: float | Mapping[type[KubernetesObject] | None, float] = 0.0,
        transform: FactoryTransform | None = None,
        drop_managed_fields: bool = False,
        supervise: bool = False,
        options: ReflectorOptions | None = None,
    ) -> None:
        if not isinstance(client, Client):
            raise TypeError(f"a factory requires a Client from {_OPEN_CLIENT}, not {describe(client)}")
        periods = resync_period if isinstance(resync_period, Mapping) else {None: resync_period}
        found: dict[type[KubernetesObject] | ResourceInfo | None, float] = {}
        for kind, period in periods.items():
            check_resync_period(period)
            found[kind] = period
            if kind is not None:
                resource = resource_of(kind)
                if not issubclass(kind, PartialObjectMetadata):
                    found[resource] = period
        self._client = client
        self._defaults = InformerDefaults(
            namespaces=sorted_namespaces(namespace),
            label_selector=LabelSelector.of(label_selector),
            field_selector=FieldSelector.of(field_selector),
            resync_periods=found,
            transform=transform,
            drop_managed_fields=drop_managed_fields,
            options=options if options is not None else ReflectorOptions(),
        )
        self._supervise = supervise
        self._entries: dict[InformerKey, _Entry] = {}
        self._unstarted: list[_Entry] = []
        self._entry_added = trio.Event()
        self._has_run = False
        self._has_stopped = False

    if not TYPE_CHECKING:  # type checkers would accept every name
        __getattr__ = attribute_hints(
            start=_RUN, wait_for_cache_sync=_RUN, add_event_handler=_INFORMER, lister=_INFORMER, subscribe=_INFORMER
        )

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {'; '.join(map(str, self._entries)) or 'no informers'}>"

    # --- requests ---

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
        """Return the informer of a kind, and keep it for as long as the factory runs.

        Equal requests return the same informer.
        If the factory is running, a new informer starts immediately; wait for it with ``wait_until_synced``.
        By default a failure of any informer ends the factory.

        Args:
            kind: The kind's class; use :func:`~trioformer.models.metadata_kind` for metadata only.
            namespace: One namespace, several in one cache, or None for all namespaces.
            label_selector: Only objects whose labels match; None is all.
            field_selector: Only objects whose fields match; None is all.
            resync_period: Seconds after which every object is repeated to a handler, by default; 0 is never.
            transform: Applied to each object exactly once, before it is stored; None stores objects as they are.
            indexers: Index functions by name; further calls may add more.

        If an argument is omitted, an existing informer keeps its value, and a new informer gets the factory's default.

        Raises:
            IndexerError: An index of that name exists with another function; the informer is unchanged.
            RuntimeError: The factory has stopped, and has no informer for the request.
            SelectorError: A selector does not parse.
            TypeError: The class is not a kind.
            ValueError: The informer exists with another resync period or transform; or a namespace is empty, or given
                for a cluster-scoped kind.
        """
        request = InformerRequest(
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        entry = self._entry_for(request)
        entry.is_pinned = True
        return entry.informer

    @opened_by("informer", "async with factory.open_informer(kind) as informer:")
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
        """Use the informer of a kind for the duration of a block.

        The arguments and errors are the same as for :meth:`informer`.
        The informer stops at the end of the last block that uses it, unless :meth:`informer` was called for it too.
        A later request starts a new informer, with a new list.

        A handler that is added in the block is not removed at the end of the block.  If other blocks may use the
        informer, remove the handler in a ``finally`` clause.

        If an informer has failed (with ``supervise``), the next request starts a new one, unless :meth:`informer` was
        called for the failed one.

        Cancellation: the end of the last block waits until the informer's tasks have ended.
            This wait is shielded, as at the end of a nursery.  Inside a call of a handler, the block does not wait, to
            avoid a deadlock.
        """
        await trio.lowlevel.checkpoint()
        # no checkpoint between finding the informer and counting the user
        request = InformerRequest(
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resync_period=resync_period,
            transform=transform,
            indexers=indexers,
        )
        entry = self._entry_for(request)
        entry.users += 1
        try:
            yield entry.informer
        finally:
            entry.users -= 1
            if entry.is_unused:
                await self._stop(entry)

    def _entry_for(self, request: InformerRequest[T]) -> FactoryEntry[T]:
        key = self._defaults.key_for(request)
        existing: FactoryEntry[T] | None = self._entries.get(key)
        if existing is not None and (existing.failure is None or existing.is_pinned or self._has_stopped):
            existing.share(request)
            return existing
        if self._has_stopped:
            raise RuntimeError(f"cannot start an informer of {key}: this factory has stopped; create a new one")
        entry = FactoryEntry(
            key=key,
            informer=self._defaults.create_informer(self._client, key, request),
            resync_period=self._defaults.resync_period_for(request),
            transform=self._defaults.transform_for(request),
            is_supervised=self._supervise,
        )
        self._entries[key] = entry
        self._unstarted.append(entry)
        self._entry_added.set()
        return entry

    async def _stop(self, entry: FactoryEntry[T]) -> None:
        # no checkpoint since the last user left: a request from here on gets a new informer
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
        if entry in self._unstarted:
            self._unstarted.remove(entry)
            await entry.close_unstarted()
        else:
            await entry.stop()

    # --- state ---

    @property
    def informers(self) -> Mapping[InformerKey, SharedInformer[Any]]:
        """The informers that are kept or in use, by key; a new mapping."""
        return {key: entry.informer for key, entry in self._entries.items()}

    @property
    def failures(self) -> Mapping[InformerKey, Exception]:
        """The errors of the informers that have failed, by key; a new mapping."""
        return {key: entry.failure for key, entry in self._entries.items() if entry.failure is not None}

    @property
    def _is_running(self) -> bool:
        return self._has_run and not self._has_stopped

    @property
    def has_synced(self) -> bool:
        """Whether the factory runs, and every cache has synced and is up to date."""
        return self._is_running and all(entry.informer.has_synced for entry in self._entries.values())

    @property
    def is_healthy(self) -> bool:
        """Whether the factory runs, and every informer is healthy."""
        return self._is_running and all(entry.informer.is_healthy for entry in self._entries.values())

    def problems(self) -> Mapping[InformerKey, str]:
        """Describe the state of each informer that has not synced or is not healthy, by key; empty if there are none.

        Informers with objects in quarantine are included, with the name of each object, although they are healthy.
        The texts are for people, for example in ``/readyz``.
        """
        return {
            key: _describe(entry)
            for key, entry in self._entries.items()
            if entry.informer.state.quarantined or not (entry.informer.has_synced and entry.informer.is_healthy)
        }

    async def wait_for_cache_sync(
        self, *registrations: HandlerRegistration[KubernetesObject], deadline: float = math.inf
    ) -> None:
        """Wait until every informer requested so far, and each given handler, has synced.

        An informer that has synced once counts, even if its watch is broken now; see :attr:`is_healthy`.
        Informers that are no longer in use are ignored.

        Args:
            registrations: Handlers that must have handled their initial objects.
            deadline: The time to stop waiting, on trio's clock, as for ``trio.CancelScope``.

        Raises:
            CacheSyncError: At the deadline, or as soon as an informer fails or stops or a handler is removed; names
                each missing informer and handler with the reason.
            RuntimeError: The caller is inside a call of a handler of one of the informers.
        """
        await wait_until_synced(tuple(self._entries.values()), registrations, deadline=deadline)

    # --- running ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run every informer until cancelled; ``nursery.start`` returns when every cache has synced.

        This combines client-go's ``Start`` and ``WaitForCacheSync``.
        With ``supervise``, ``nursery.start`` returns when every informer has synced or failed.

        Raises:
            RuntimeError: The factory is already running, or has stopped.
            ExceptionGroup: With the errors of an informer; never with ``supervise``.

        Cancellation: when this has returned, every informer has stopped and its tasks have ended.
        """
        if self._has_run:
            raise RuntimeError("this factory is already running or has stopped; a factory can run only once")
        self._has_run = True
        try:
            async with trio.open_nursery() as nursery:
                requested = tuple(self._entries.values())
                nursery.start_soon(self._start_informers, nursery)
                for entry in requested:
                    await self._wait_for(entry)
                task_status.started()
        finally:
            self._has_stopped = True
            while self._unstarted:
                await self._unstarted.pop().close_unstarted()

    async def _wait_for(self, entry: _Entry) -> None:
        """Wait until an informer has synced, or has ended without ending the factory."""
        try:
            await entry.informer.wait_until_synced()
        except trio.ClosedResourceError:
            await entry.ended.wait()
            if entry.failure is not None and not entry.is_supervised:
                await trio.sleep_forever()  # the failure is about to cancel the nursery of run()

    async def _start_informers(self, nursery: trio.Nursery) -> None:
        """Start the task of each informer, now and whenever another is requested."""
        while True:
            # no checkpoint between emptying the list and creating the next event
            for entry in self._unstarted:
                nursery.start_soon(entry.run, name=f"informer of {entry.key}")
            self._unstarted.clear()
            self._entry_added = trio.Event()
            await self._entry_added.wait()


def _describe(entry: _Entry) -> str:
    state = entry.informer.state
    named = state.first_quarantined
    if state.quarantined > len(named) and entry.informer.has_synced:
        named = tuple(entry.informer.lister.quarantined().values())
    return str(attrs.evolve(state, first_quarantined=named))
