"""Caches for asyncio programs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, ParamSpec, TypeVar, final

import trio

from .._doors import DoorCache, Job, client_of_cache, with_parameters_of
from .._util import SLICE, UnopenedContext
from ..cache import Notification, ReflectorOptions, SharedInformer, SharedInformerFactory
from ..cache._internal import IndexFunc, ListenerBuffer, Overflow, Transform
from ..client._internal import FieldSelectorLike, LabelSelectorLike
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject
from ._guest import Guest, Opening, finish, guest_of_loop
from ._proxies import Client

T = TypeVar("T", bound=KubernetesObject)
C = TypeVar("C")
P = ParamSpec("P")


@final
class Cache(DoorCache[T]):
    """An indexed cache of one kind, which is kept up to date, for an asyncio program.

    The reads are plain calls in the loop's thread, and return the objects of one moment.
    """

    def __init__(self, informer: SharedInformer[T], job: Job[None], ended: asyncio.Future[None], guest: Guest) -> None:
        super().__init__(informer, job)
        self._ended = ended
        self._guest = guest
        self._stack = AsyncExitStack()

    def _check_readable(self) -> None:
        if threading.get_ident() != self._guest.thread:
            raise RuntimeError(
                "a cache of trioformer.aio is read in the thread of its loop, such as in an `async def` endpoint; use "
                "trioformer.sync in other threads"
            )
        super()._check_readable()

    async def wait_until_synced(self) -> None:
        """Wait until the cache contains the first list.

        While the server is away, the method waits, and :attr:`state` has the last error.

        Raises:
            CacheNotSyncedError: The informer has ended.  The cause of the error is the informer's exception.
        """
        try:
            await self._guest.call(self._informer.wait_until_synced)
        except trio.ClosedResourceError:
            await finish(self._ended)
            self._check_readable()

    def subscribe(self, *, buffer_size: int = 1_024, overflow: Overflow = "coalesce") -> AsyncIterator[Notification[T]]:
        """Return an asynchronous iterator over the objects of the cache and all later changes.

        A subscription that falls behind misses intermediate states of an object, but never the newest one.  It ends
        when nothing refers to it any more, or with the cache.

        Args:
            buffer_size: The largest number of pending notifications before ``overflow`` applies.
            overflow: The overflow policy, as in :meth:`SharedInformer.add_event_handler
                <trioformer.cache.SharedInformer.add_event_handler>`.

        Raises:
            CacheNotSyncedError: The informer has ended; the iteration raises it too.
            trio.BrokenResourceError: The subscription has fallen behind, and ``overflow`` is ``"block"``.
            trio.BusyResourceError: Another task is waiting for the next notification.
        """
        self._check_readable()
        return _Subscription(self, self._informer, buffer_size, overflow)

    async def aclose(self) -> None:
        """Close a cache that :func:`start_cache` has started; calling this again does nothing.

        Raises:
            CacheNotSyncedError: The informer had failed.
        """
        await self._stack.aclose()


@final
class _Subscription(AsyncIterator[Notification[T]]):
    """A reader of notifications in the host, which gives the other tasks a turn about once a millisecond."""

    def __init__(self, cache: Cache[T], informer: SharedInformer[T], size: int, overflow: Overflow) -> None:
        self._cache = cache
        self._manager = informer.subscribe(buffer_size=size, overflow=overflow)
        self._buffer: ListenerBuffer[T] = self._manager.__enter__()._buffer
        self._slice_ends = 0.0

    async def __anext__(self) -> Notification[T]:
        cache, loop = self._cache, self._cache._guest.loop
        while not cache._job.has_ended:
            if loop.time() < self._slice_ends:
                notification = self._buffer.take_nowait()
                if notification is not None:
                    return notification
                try:
                    await self._buffer.wait_for_arrival(asyncio.Event())
                except trio.EndOfChannel:
                    await finish(cache._ended)
            else:
                await asyncio.sleep(0)
            self._slice_ends = loop.time() + SLICE
        cache._raise_failure()
        raise StopAsyncIteration

    def __del__(self) -> None:
        self._manager.__exit__(None, None, None)


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
) -> AbstractAsyncContextManager[Cache[T], bool | None]:
    """Open a cache of one kind for the duration of an ``async with`` block.

    For example::

        async with aio.open_cache(Pod, namespace="default") as pods:
            await pods.wait_until_synced()
            ready = [pod for pod in pods.list(label_selector="app=web") if has_condition(pod, "Ready")]
            async for notification in pods.subscribe():
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
        RuntimeError: No asyncio loop is running, or trio already runs in this thread.
        CacheNotSyncedError: At the end of the block, if the informer has failed.
    """

    async def enter(stack: AsyncExitStack) -> Cache[T]:
        guest = await stack.enter_async_context(guest_of_loop())
        manager = client_of_cache(client, Client, config, kubeconfig, context)
        if client is not None:
            guest = client._door.guest  # which refuses a client of another loop
        opened = await guest.open(manager, stack)
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
        job, ended = guest.start(factory.run)
        cache = Cache(informer, job, ended, guest)

        async def close(_: object, error: BaseException | None, traceback: object) -> None:
            job.cancel()
            await finish(ended)
            if error is None:
                cache._raise_failure()

        stack.push_async_exit(close)
        return cache

    return UnopenedContext(Opening(enter), "cache", "async with aio.open_cache(Pod) as pods:")


def _with_parameters_of(
    open_it: Callable[P, AbstractAsyncContextManager[C, bool | None]],
) -> Callable[[Callable[..., Coroutine[Any, Any, Cache[Any]]]], Callable[P, Coroutine[Any, Any, C]]]:
    """Return a decorator that gives a function the parameters of the function that opens a cache, and its kind."""
    return with_parameters_of(open_it)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # no kinds of T


@_with_parameters_of(open_cache)
async def start_cache(*args: Any, **kwargs: Any) -> Cache[Any]:
    """Start a cache that is closed by :meth:`Cache.aclose`, for notebooks and classes.

    Everywhere else, prefer :func:`open_cache`, which cannot be left open.  The arguments are the same.
    """
    manager = open_cache(*args, **kwargs)
    cache = await manager.__aenter__()
    cache._stack.push_async_exit(manager)
    return cache
