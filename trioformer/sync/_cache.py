"""Caches for threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, ParamSpec, TypeVar, final

import trio

from .._doors import DoorCache, Job, client_of_cache, with_parameters_of
from ..cache import Lister, Notification, ReflectorOptions, SharedInformer, SharedInformerFactory
from ..cache._internal import IndexFunc, ListenerBuffer, Overflow, Transform, share_with_threads
from ..client._internal import FieldSelectorLike, LabelSelectorLike
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject
from ._portal import Latch, Portal, portal_of_process
from ._proxies import Client

T = TypeVar("T", bound=KubernetesObject)
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")

BATCH: Final = 100
"""The number of notifications that a thread takes from trio at a time, because each time costs about 100 µs."""


@final
class Cache(DoorCache[T]):
    """An indexed cache of one kind, which is kept up to date, for threads.

    Any thread may read it, and each read returns the objects of one moment.  Reads do not wait for trio: they hold a
    lock while they copy, as the informer does while it changes the cache.
    """

    def __init__(
        self, informer: SharedInformer[T], job: Job[None], lister: Lister[T], ended: Latch, portal: Portal
    ) -> None:
        super().__init__(informer, job, lister)
        self._ended = ended
        self._portal = portal
        self._stack = ExitStack()

    def _check_readable(self) -> None:
        self._portal.check_process()
        super()._check_readable()

    def _ask(self, function: Callable[[], R]) -> R:
        async def ask() -> R:
            return function()

        self._portal.check_process()
        try:
            if not self._job.has_ended:
                return self._portal.call(ask)
        except trio.ClosedResourceError:
            self._ended.wait()
        return function()

    def wait_until_synced(self) -> None:
        """Wait until the cache contains the first list.

        While the server is away, the method waits, and :attr:`state` has the last error.

        Raises:
            CacheNotSyncedError: The informer has ended.  The cause of the error is the informer's exception.
        """
        self._call(self._informer.wait_until_synced)

    def _call(self, function: Callable[[], Awaitable[R]]) -> R:
        """Call a trio function, and raise CacheNotSyncedError if the informer has ended."""
        try:
            return self._portal.call(function)
        except trio.ClosedResourceError:
            self._ended.wait()
            self._check_readable()
            raise

    def subscribe(self, *, buffer_size: int = 1_024, overflow: Overflow = "coalesce") -> Iterator[Notification[T]]:
        """Return an iterator over the objects of the cache and all later changes, for one thread at a time.

        A subscription that falls behind misses intermediate states of an object, but never the newest one.  It ends
        when nothing refers to it any more, or with the cache.

        Args:
            buffer_size: The largest number of pending notifications before ``overflow`` applies.
            overflow: The overflow policy, as in :meth:`SharedInformer.add_event_handler
                <trioformer.cache.SharedInformer.add_event_handler>`.

        Raises:
            CacheNotSyncedError: The informer has ended; the iteration raises it too.
            trio.BrokenResourceError: The subscription has fallen behind, and ``overflow`` is ``"block"``.
            trio.BusyResourceError: Another thread is waiting for the next notification.
        """
        self._check_readable()
        return _Subscription(self, self._informer, buffer_size, overflow)

    def close(self) -> None:
        """Stop the informer, which ends the subscriptions of all threads; calling this again does nothing.

        A cache of :func:`open_cache` is closed by its block, and needs this method only in other threads.

        Raises:
            CacheNotSyncedError: :func:`start_cache` has started the cache, and its informer had failed.
        """
        with self._stack:
            self._portal.cancel(self._job)
            self._portal.finish(self._job, self._ended)


@final
class _Subscription(Iterator[Notification[T]]):
    """A reader of notifications, which takes them from trio in batches."""

    def __init__(self, cache: Cache[T], informer: SharedInformer[T], size: int, overflow: Overflow) -> None:
        self._cache = cache
        self._manager = informer.subscribe(buffer_size=size, overflow=overflow)
        self._stack = ExitStack()
        self._taken: deque[Notification[T]] = deque()
        self._reading = threading.Lock()
        self._buffer: ListenerBuffer[T] = cache._call(self._open)

    async def _open(self) -> ListenerBuffer[T]:
        try:
            return self._stack.enter_context(self._manager)._buffer
        except RuntimeError as error:
            raise trio.ClosedResourceError("the informer has ended") from error

    async def _take(self) -> None:
        # the batch is not the call's result, which an exception such as KeyboardInterrupt would drop
        self._taken.append(await self._buffer.take())
        while len(self._taken) < BATCH and (found := self._buffer.take_now(trio.current_time())) is not None:
            self._taken.append(found)

    def __next__(self) -> Notification[T]:
        cache = self._cache
        cache._portal.check_process()
        if not self._reading.acquire(blocking=False):
            raise trio.BusyResourceError(
                "another thread is reading this subscription; open one subscription for each thread, or let one thread "
                "read and pass the notifications on through a queue"
            )
        try:
            while not cache._job.has_ended:
                if self._taken:
                    return self._taken.popleft()
                try:
                    cache._portal.call(self._take)
                except (trio.EndOfChannel, trio.ClosedResourceError):
                    cache._ended.wait()
        finally:
            self._reading.release()
        cache._raise_failure()
        raise StopIteration

    def __del__(self) -> None:
        self._cache._portal.post(self._stack.close)  # the garbage collector runs in any thread


@contextmanager
def open_cache(
    kind: type[T],
    *,
    client: Client | None = None,
    config: ClusterConfig | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: str | Sequence[str] | None = None,
    label_selector: LabelSelectorLike | None = None,
    field_selector: FieldSelectorLike | None = None,
    query: Mapping[str, str] | None = None,
    resync_period: float = 0.0,
    transform: Transform[T] | None = None,
    indexers: Mapping[str, IndexFunc[T]] | None = None,
    options: ReflectorOptions | None = None,
) -> Generator[Cache[T], None, None]:
    """Open a cache of one kind for the duration of a ``with`` block.

    For example::

        with sync.open_cache(Pod, namespace="default") as pods:
            pods.wait_until_synced()
            ready = [pod for pod in pods.list(label_selector="app=web") if has_condition(pod, "Ready")]
            for notification in pods.subscribe():
                ...

    Args:
        kind: The class of the objects.
        client: The client of the cache.  The default, None, opens a client with ``config``, ``kubeconfig`` and
            ``context``, as :func:`open_client` does.
        config: The configuration of the cluster.
        kubeconfig: The path of the kubeconfig file.
        context: The name of the context in the kubeconfig.
        namespace: One namespace, several namespaces, or None for all namespaces.
        label_selector: A label selector, or None for all objects.
        field_selector: A field selector, or None for all objects.
        query: Further query parameters for each list and watch.
        resync_period: How often every object is delivered to the subscriptions again, in seconds.
        transform: A function that is applied to each object before it is stored.
        indexers: A mapping of names to index functions.
        options: The options for listing, watching and handling failures.

    Raises:
        ConfigError: No valid configuration is found.
        RuntimeError: The thread runs trio or an asyncio loop.
        CacheNotSyncedError: At the end of the block, if the informer has failed.
    """
    with ExitStack() as stack:
        portal = stack.enter_context(portal_of_process())
        manager = client_of_cache(client, Client, config, kubeconfig, context)
        if client is not None:
            client._door.portal.check_process()
        opened = stack.enter_context(portal.open(manager))
        factory = SharedInformerFactory(opened, resync_period=resync_period, options=options)
        informer = factory.informer(
            kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            query=query,
            transform=transform,
            indexers=indexers,
        )
        lister = share_with_threads(informer)
        job, ended = portal.job(factory.run)
        cache = Cache(informer, job, lister, ended, portal)
        try:
            portal.start(job)
            yield cache
        finally:
            portal.cancel(job)
            portal.finish(job, ended)
        cache._raise_failure()


def _with_parameters_of(
    open_it: Callable[P, AbstractContextManager[C, bool | None]],
) -> Callable[[Callable[..., Cache[Any]]], Callable[P, C]]:
    """Return a decorator that gives a function the parameters of the function that opens a cache, and its kind."""
    return with_parameters_of(open_it)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # no kinds of T


@_with_parameters_of(open_cache)
def start_cache(*args: Any, **kwargs: Any) -> Cache[Any]:
    """Start a cache that is closed by :meth:`Cache.close`, for applications and classes.

    Everywhere else, prefer :func:`open_cache`, which cannot be left open.  The arguments are the same.
    """
    manager = open_cache(*args, **kwargs)
    cache = manager.__enter__()
    cache._stack.push(manager)
    return cache
