"""The shared informer factory (client-go ``informers/factory.go``)."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
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
from ..reflector._list_watch import checked_query
from ..reflector._options import ReflectorOptions
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc
from ._cache_sync import wait_until_synced
from ._entry import FactoryEntry
from ._requests import (
    DEFAULT,
    Divider,
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
    """A set of shared informers: each kind is listed, watched and stored only once.

    The factory has one informer for each combination of kind, namespaces, selectors and query.
    Start the factory with ``await nursery.start(factory.run)``, which returns when every cache has synced.
    All tasks of the factory run in the caller's nursery.

    An informer that was requested with :meth:`informer` runs for as long as the factory.  An informer that was
    requested with :meth:`open_informer` runs until the last block that uses it ends.

    Args:
        client: The client for all requests.  The client must stay open while the factory runs.
        namespace: One namespace or several namespaces.  The default, None, selects all namespaces.  Cluster-scoped
            kinds ignore this argument.
        label_selector: A label selector.  The default, None, selects all objects.
        field_selector: A field selector.  The default, None, selects all objects.
        query: Further query parameters for each list and watch (client-go's ``WithTweakListOptions``).
        resync_period: How often every object is delivered to the handlers again, in seconds.  The default, 0, disables
            resync.  A mapping such as ``{Pod: 30, None: 600}`` sets the period of each listed kind. The key None sets
            the period of all other kinds (client-go's ``WithCustomResyncConfig``).  The period of a kind also applies
            to informers of its metadata, unless the mapping contains the metadata class as well.
        transform: A function that is applied to each object exactly once, before the object is stored.
        drop_managed_fields: Whether to remove ``metadata.managedFields`` from all objects, which often halves the
            memory of the cache.
        supervise: Whether the other informers continue after an informer has failed.  The error is then logged, and is
            available in :attr:`failures`.  By default, :meth:`run` raises the error.
        options: The options for listing, watching and handling failures.

    A request for an informer may override ``namespace``, ``label_selector``, ``field_selector``, ``query``,
    ``resync_period`` and ``transform``.

    Raises:
        SelectorError: A selector is not valid.
        TypeError: A key of ``resync_period`` is neither None nor the class of a Kubernetes kind, or ``query`` does not
            map strings to strings.
        ValueError: A resync period is negative or not a number.
        ValueError: A namespace is an empty string, or the sequence of namespaces is empty.
        ValueError: ``query`` contains a parameter that the informer sets itself.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        query: Mapping[str, str] | None = None,
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
            query=checked_query(query),
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
        query: Mapping[str, str] | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> SharedInformer[T]:
        """Return the shared informer for a kind, which runs for as long as the factory.

        Calls with the same kind, namespaces, selectors and query return the same informer.
        If the factory is running, a new informer starts immediately.  To wait for the informer, call its
        ``wait_until_synced()`` method.
        By default, the failure of one informer ends the factory.

        Args:
            kind: The class of the objects.  To cache only metadata, use :func:`~trioformer.models.metadata_kind`.
            namespace: One namespace, several namespaces that share one cache, or None for all namespaces.
            label_selector: A label selector, or None for all objects.
            field_selector: A field selector, or None for all objects.
            query: Further query parameters for each list and watch, such as ``{"shardSelector": "…"}``.  Only the
                server knows which objects they select.  If None, there are none.
            resync_period: How often every object is delivered to the handlers again, in seconds.  0 disables resync.
            transform: A function that is applied to each object exactly once, before the object is stored.  If None,
                objects are stored unchanged.
            indexers: A mapping of names to index functions, such as ``{"by-node": field_index("spec.node_name")}``.
                Later calls may add more index functions.

        For an omitted argument, the factory's default is used.  If the informer already exists, it keeps its resync
        period and its transform.

        Raises:
            IndexerError: An index with the same name exists with another function.  The informer is unchanged.
            RuntimeError: The factory has stopped and has no informer for these arguments.
            SelectorError: A selector is not valid.
            TypeError: The class is not the class of a Kubernetes kind, or ``query`` does not map strings to strings.
            ValueError: The informer exists with a different resync period or transform, a namespace is an empty
                string, a namespace is given for a cluster-scoped kind, or ``query`` contains a parameter that the
                informer sets itself.
        """
        request = InformerRequest(
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            query=query,
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
        query: Mapping[str, str] | FromFactory | None = DEFAULT,
        resync_period: float | None = None,
        transform: Transform[T] | FromFactory | None = DEFAULT,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
    ) -> AsyncGenerator[SharedInformer[T], None]:
        """Open a shared informer for a kind for the duration of an ``async with`` block.

        The arguments and exceptions are the same as for :meth:`informer`.
        The informer stops when the last block that uses it ends, unless :meth:`informer` has returned the same
        informer.
        A later call starts a new informer, which lists the objects again.

        The end of the block does not remove handlers that were added in the block.  If other blocks may use the
        informer, remove these handlers in a ``finally`` clause.

        If ``supervise`` is set and the informer has failed, the next call starts a new informer. This does not apply
        if :meth:`informer` has returned the failed informer.

        Cancellation: at its end, the last block waits until the informer's tasks have ended. This wait is shielded
            from cancellation.  Inside a call of a handler, the block does not wait, to avoid a deadlock.
        """
        await trio.lowlevel.checkpoint()
        # no checkpoint between finding the informer and counting the user
        request = InformerRequest(
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            query=query,
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
        """A new mapping from keys to the informers of this factory."""
        return {key: entry.informer for key, entry in self._entries.items()}

    @property
    def failures(self) -> Mapping[InformerKey, Exception]:
        """A new mapping from keys to the errors of failed informers."""
        return {key: entry.failure for key, entry in self._entries.items() if entry.failure is not None}

    @property
    def _is_running(self) -> bool:
        return self._has_run and not self._has_stopped

    @property
    def has_synced(self) -> bool:
        """Whether the factory is running, and all caches have synced and are up to date."""
        return self._is_running and all(entry.informer.has_synced for entry in self._entries.values())

    @property
    def is_healthy(self) -> bool:
        """Whether the factory is running and all informers are healthy."""
        return self._is_running and all(entry.informer.is_healthy for entry in self._entries.values())

    def problems(self) -> Mapping[InformerKey, str]:
        """Return a description of each informer that has not synced or is not healthy, by key.

        A healthy informer is included if it has objects in quarantine.  The description names the objects in
        quarantine.
        The descriptions are for humans, for example in the response of ``/readyz``.
        """
        return {
            key: _describe(entry)
            for key, entry in self._entries.items()
            if entry.informer.state.quarantined or not (entry.informer.has_synced and entry.informer.is_healthy)
        }

    async def wait_for_cache_sync(
        self, *registrations: HandlerRegistration[KubernetesObject], deadline: float = math.inf
    ) -> None:
        """Wait until all informers that have been requested, and the given handlers, have synced.

        An informer counts as synced after its first list, even if its watch has failed since then; see
        :attr:`is_healthy`.
        Informers that are no longer in use are ignored.

        Args:
            registrations: The handlers to wait for; a handler has synced when it has handled its initial objects.
            deadline: The time at which to stop waiting, on trio's clock, as for ``trio.CancelScope``.

        Raises:
            CacheSyncError: The deadline passed, an informer failed or stopped, or a handler was removed.  The message
                says why each of the remaining informers and handlers has not synced.
            RuntimeError: The caller is inside a call to a handler of one of these informers.
        """
        await wait_until_synced(tuple(self._entries.values()), registrations, deadline=deadline)

    # --- running ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run all informers until cancelled; ``nursery.start()`` returns when all caches have synced.

        This method combines ``Start`` and ``WaitForCacheSync`` of client-go's factory.
        With ``supervise``, ``nursery.start()`` returns when each informer has synced or failed.

        Raises:
            RuntimeError: The factory is already running, or has stopped.
            ExceptionGroup: An informer failed and ``supervise`` is not set.  The group contains the informer's errors.

        Cancellation: all informers and their tasks have ended when this method returns.
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
        """Wait until an informer has synced. Also return if the informer has ended while the factory continues."""
        try:
            await entry.informer.wait_until_synced()
        except trio.ClosedResourceError:
            await entry.ended.wait()
            if entry.failure is not None and not entry.is_supervised:
                await trio.sleep_forever()  # the failure is about to cancel the nursery of run()

    async def _start_informers(self, nursery: trio.Nursery) -> None:
        """Start a task for each requested informer, and for each informer that is requested later."""
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


def attach_shares(factory: SharedInformerFactory, divider: Divider) -> None:
    """Divide all informers of a factory, which has none yet.

    Raises:
        RuntimeError: The factory already has informers, or is divided already.
    """
    if factory._entries or factory._defaults.divider is not None:
        raise RuntimeError("shares require a factory of their own, without informers; open them before informer()")
    factory._defaults = attrs.evolve(factory._defaults, divider=divider)


@contextmanager
def undivided(factory: SharedInformerFactory) -> Iterator[None]:
    """Let the informers that are requested in the block cache all objects, even if the factory is divided."""
    defaults = factory._defaults
    factory._defaults = attrs.evolve(defaults, divider=None)
    try:
        yield
    finally:
        factory._defaults = defaults
