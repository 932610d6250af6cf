"""One informer for each kind, and one line that starts them all (client-go ``informers/factory.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, final

import trio

from ..client import Client
from ..models import KubernetesObject
from ._indexer import IndexFunc
from ._list_watch import ApiListWatch
from ._reflector import ReflectorOptions, WatchErrorHandler
from ._shared_informer import SharedInformer

T = TypeVar("T", bound=KubernetesObject)


@final
class SharedInformerFactory:
    """Keeps one informer for each kind, so that a kind is listed, watched and stored once however many use it.

    Start it with ``await nursery.start(factory.run)``, which returns when every cache is filled.
    The caller's nursery owns all its tasks.

    Args:
        client: The connection; must stay open while the factory runs.
        namespace: Only this namespace; None is all of them.  Kinds without namespaces ignore it.
        label_selector: Only objects whose labels match, for every informer.
        field_selector: Only objects whose fields match, for every informer.
        resync_period: Seconds after which handlers are told of every object again, by default; 0 is never.
        grace_period: Before the first sync: seconds of nothing but 400, 401, 403, 404 or 405, after which :meth:`run`
            raises.
        retry_forever: Never raise them (client-go's behaviour).
        drop_managed_fields: Cut ``metadata.managedFields`` out of every object, which often halves the cache.
        watch_error_handler: Told of every failure that an informer goes on from; by default they are logged.
    """

    _client: Client
    _namespace: str | None
    _label_selector: str | None
    _field_selector: str | None
    _resync_period: float
    _drop_managed_fields: bool
    _options: ReflectorOptions
    _informers: dict[type[KubernetesObject], SharedInformer[Any]]
    _unstarted: list[SharedInformer[Any]]
    _asked: trio.Event
    _has_run: bool
    _has_stopped: bool

    def __init__(
        self,
        client: Client,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resync_period: float = 0.0,
        grace_period: float = 30.0,
        retry_forever: bool = False,
        drop_managed_fields: bool = False,
        watch_error_handler: WatchErrorHandler | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._resync_period = resync_period
        self._drop_managed_fields = drop_managed_fields
        self._options = ReflectorOptions(
            grace_period=grace_period, retry_forever=retry_forever, watch_error_handler=watch_error_handler
        )
        self._informers = {}
        self._unstarted = []
        self._asked = trio.Event()
        self._has_run = False
        self._has_stopped = False

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {', '.join(kind.__name__ for kind in self._informers) or 'nothing yet'}>"

    @property
    def informers(self) -> Mapping[type[KubernetesObject], SharedInformer[Any]]:
        """The informers asked for so far, by kind; a new mapping."""
        return dict(self._informers)

    def informer(self, kind: type[T], *, indexers: Mapping[str, IndexFunc[T]] | None = None) -> SharedInformer[T]:
        """The informer of a kind; the same one each time.

        Asked for while the factory runs, it starts at once; ``wait_until_synced`` tells when it is filled.
        What ends one informer ends the factory, one that came late included.

        Args:
            kind: The kind's class.
            indexers: Index functions to add.

        Raises:
            IndexerError: An index of that name exists; the informer is as it was.
            RuntimeError: The factory has stopped, and has no informer of this kind.
            TypeError: The class is no kind.
        """
        informer: SharedInformer[T] | None = self._informers.get(kind)
        if informer is not None:
            if indexers:
                informer.add_indexers(indexers)
            return informer
        if self._has_stopped:
            raise RuntimeError(f"this factory has stopped and starts no informer of {kind.__name__}; make a new one")
        api = self._client.api(
            kind,
            namespace=self._namespace if kind.__resource__.namespaced else None,
            drop_managed_fields=self._drop_managed_fields,
        )
        informer = SharedInformer(
            ApiListWatch(api, self._label_selector, self._field_selector),
            resync_period=self._resync_period,
            indexers=indexers,
            options=self._options,
        )
        self._informers[kind] = informer
        self._unstarted.append(informer)
        self._asked.set()
        return informer

    @property
    def has_synced(self) -> bool:
        """Whether every informer's cache is filled and kept in step."""
        return self._has_run and all(informer.has_synced for informer in self._informers.values())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run every informer until cancelled; with ``nursery.start`` it has started when every cache is filled.

        That is client-go's ``Start`` and ``WaitForCacheSync`` in one causal line.

        Raises:
            RuntimeError: It runs already, or has stopped.
            ExceptionGroup: Of what an informer raised.

        Cancellation: when this has returned, every informer has stopped and its tasks are gone.
        """
        if self._has_run:
            raise RuntimeError("this factory runs already or has stopped; a factory runs once")
        self._has_run = True
        try:
            async with trio.open_nursery() as nursery:
                asked_for = tuple(self._informers.values())
                nursery.start_soon(self._start_informers, nursery)
                for informer in asked_for:
                    try:
                        await informer.wait_until_synced()
                    except trio.ClosedResourceError:
                        await trio.sleep_forever()  # what ended it is on its way to this nursery
                task_status.started()
        finally:
            self._has_stopped = True

    async def _start_informers(self, nursery: trio.Nursery) -> None:
        """Give each informer its task, now and whenever another is asked for."""
        while True:
            # no checkpoint between emptying the list and making the next event
            for informer in self._unstarted:
                nursery.start_soon(informer.run)
            self._unstarted.clear()
            self._asked = trio.Event()
            await self._asked.wait()
