"""The embedded API server, put together."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import final, overload

import attrs
import httpx
import trio

from ..client import Client, open_client
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject, ResourceInfo, resource_of
from ..models._internal import decode, dumps
from ._convert import K, Kind, as_status_errors, find, like, place_of, read
from ._in_memory import Exchange, InMemoryTransport, connection_refused
from ._serving._app import Application
from ._serving._faults import Faults, StatusChooser
from ._serving._requests import RequestRecord
from ._serving._resources import Resources
from ._serving._watching import End, Watches, WatchSettings
from ._statistics import APIServerStatistics
from ._storage._clock import Clock, wall_clock
from ._storage._kinds import Kinds
from ._storage._patching import merge
from ._storage._registry import Registry
from ._storage._selection import Selection
from ._storage._storage import JSONObject, Storage

URL = "http://embedded.invalid"
"""The server's address in memory; the domain is one that never resolves."""


@final
@attrs.define(eq=False, kw_only=True, repr=False)
class APIServer:
    """A Kubernetes API server in this process.

    It serves every built-in kind, and custom ones, with the manners of kube-apiserver v1.36 over etcd: one revision
    counter, conflicts, generations, finalizers, consistent pages, watches that resume, bookmarks, watch-lists,
    compaction and 410, selectors, the status and scale subresources, three kinds of patch, Tables and discovery for
    kubectl.  What it does not do: validate or default anything below ``metadata``, authenticate, run controllers (a
    deleted pod is gone at once, owner references are not followed), server-side apply, bodies other than JSON.

    Clients reach it without sockets, by :meth:`open_client` or :meth:`http_transport`, while a task runs :meth:`run`::

        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                ...

    The test's own hand is :meth:`create`, :meth:`replace`, :meth:`patch`, :meth:`delete`, :meth:`get` and :meth:`list`:
    plain functions that act at once, before, during and after :meth:`run`.
    They take and return classes or plain dicts, write the status together with the rest, use the namespace
    ``default`` where none is given, and raise the errors that a client would raise.

    Nothing is polled, and time is trio's, so that it works under ``trio.testing.MockClock(autojump_threshold=0)``.
    Names and uids that it makes up are the same in every run.
    """

    clock: Clock = wall_clock
    """Returns the time for the stamps in objects; by default real time, or virtual time under a mock clock."""
    bookmark_period: float = 60.0
    """Seconds between the bookmarks of a watch that allows them."""
    watch_timeout: float = 1_800.0
    """Seconds after which a watch without ``timeoutSeconds`` ends; a real server takes 1,800 to 3,600."""
    expired_as_status: bool = False
    """Whether a watch from a forgotten revision is answered with HTTP 410, as by a server without watch cache; if not,
    it is a stream with one ERROR event, as by most."""
    first_revision: int = 1
    """Where the revisions begin.  A server that takes the place of one that forgot everything must begin higher than
    that ended, or clients would resume watches across the gap and miss it; lower ones are answered with 410."""
    history_limit: int = 10_000
    """How many changes of each kind are remembered at least."""
    seed: int = 0
    """Begins the random numbers behind uids and generated names."""
    request_log_size: int = 1_000
    """How many requests :attr:`requests` keeps."""
    requests: deque[RequestRecord] = attrs.field(init=False)
    """The last requests, oldest first, discovery and failed ones included; clear it at will."""
    _storage: Storage = attrs.field(init=False)
    _kinds: Kinds = attrs.field(init=False, factory=Kinds.builtin)
    _registry: Registry = attrs.field(init=False)
    _watches: Watches = attrs.field(init=False)
    _faults: Faults = attrs.field(init=False, factory=Faults)
    _app: Application = attrs.field(init=False)
    _inbox: trio.MemorySendChannel[Exchange] | None = attrs.field(init=False, default=None)
    _is_unreachable: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.requests = deque(maxlen=self.request_log_size)
        self._storage = Storage(self.history_limit, self.first_revision)
        self._watches = Watches(self._storage)
        self._registry = Registry(self._storage, self._kinds, self.clock, random.Random(self.seed))
        settings = WatchSettings(self.bookmark_period, self.watch_timeout, self.expired_as_status)
        resources = Resources(self._registry, settings)
        self._app = Application(self._kinds, resources, self._watches, self._faults, self.requests)
        self._registry.create_system_namespaces()

    def __repr__(self) -> str:
        state = "running" if self._inbox is not None else "not running"
        return f"<{type(self).__name__}, {state}, {self._storage.count()} objects at revision {self._storage.revision}>"

    # --- serving ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the in-memory transport until cancelled.

        Raises:
            RuntimeError: It is running already.

        Cancellation:
            Ends every request: a response that is being read breaks off. When this returns, nothing is left.

        Ownership:
            Every request's task belongs to a nursery in here, so an error in the server leaves it in an
            ``ExceptionGroup``.
        """
        if self._inbox is not None:
            raise RuntimeError("this API server is running already")
        self._inbox, exchanges = trio.open_memory_channel[Exchange](0)
        try:
            with exchanges:
                async with trio.open_nursery() as nursery:
                    task_status.started()
                    async for exchange in exchanges:
                        nursery.start_soon(exchange.serve, self._app)
        finally:
            self._inbox = None

    @property
    def asgi_app(self) -> Application:
        """The server as an ASGI application, for a server with sockets; it needs no :meth:`run`."""
        return self._app

    @property
    def config(self) -> ClusterConfig:
        """The configuration for clients that use :meth:`http_transport`."""
        return ClusterConfig(server=URL, source="embedded")

    def http_transport(self) -> httpx.AsyncBaseTransport:
        """Return an httpx transport that reaches this server in memory, and streams.

        Its requests raise ``RuntimeError`` while :meth:`run` is not running.
        """
        return InMemoryTransport(self._accepting)

    def open_client(self) -> AbstractAsyncContextManager[Client]:
        """Open a client of this server."""
        return open_client(self.config, http_transport=self.http_transport())

    def _accepting(self) -> trio.MemorySendChannel[Exchange]:
        if self._inbox is None:
            raise RuntimeError("the embedded API server is not running: await nursery.start(server.run) first")
        if self._is_unreachable:
            raise connection_refused()
        return self._inbox

    # --- the test's own hand ------------------------------------------------------------------------------------------

    def register(self, kind: type[KubernetesObject] | ResourceInfo) -> None:
        """Serve a custom kind; creating its CustomResourceDefinition does the same.

        Raises:
            TypeError: The class is no kind.
        """
        self._kinds.add(kind if isinstance(kind, ResourceInfo) else resource_of(kind))

    @overload
    def create(self, obj: K) -> K: ...
    @overload
    def create(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def create(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Create an object; the status is taken as it is given.

        Raises:
            StatusError: As a client would get it.
        """
        with as_status_errors("create"):
            served, given = read(self._kinds, obj)
            stored = self._registry.create(served, place_of(served, given)[0], given, part="whole")
            return like(obj, served, stored)

    @overload
    def replace(self, obj: K) -> K: ...
    @overload
    def replace(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def replace(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Replace an object, status and all; a ``resourceVersion`` in it must be the present one.

        Raises:
            StatusError: As a client would get it.
        """
        with as_status_errors("replace"):
            served, given = read(self._kinds, obj)
            stored = self._registry.update(served, *place_of(served, given), lambda _: given, part="whole")
            return like(obj, served, stored)

    @overload
    def patch(self, kind: type[K], name: str, patch: Mapping[str, object], *, namespace: str = ...) -> K: ...
    @overload
    def patch(
        self, kind: ResourceInfo | str, name: str, patch: Mapping[str, object], *, namespace: str = ...
    ) -> dict[str, object]: ...

    def patch(
        self, kind: type[K] | ResourceInfo | str, name: str, patch: Mapping[str, object], *, namespace: str = "default"
    ) -> K | dict[str, object]:
        """Apply a JSON merge patch to an object, status and all.

        Raises:
            StatusError: As a client would get it.
        """
        with as_status_errors(f"patch {name}"):
            served = find(self._kinds, kind)
            change: JSONObject = decode(dumps(patch))
            stored = self._registry.update(served, namespace, name, lambda old: merge(old, change), part="whole")
            return like(kind, served, stored)

    @overload
    def get(self, kind: type[K], name: str, *, namespace: str = ...) -> K: ...
    @overload
    def get(self, kind: ResourceInfo | str, name: str, *, namespace: str = ...) -> dict[str, object]: ...

    def get(
        self, kind: type[K] | ResourceInfo | str, name: str, *, namespace: str = "default"
    ) -> K | dict[str, object]:
        """Return an object as it is stored.

        Raises:
            NotFoundError: There is none, or the kind is not served.
        """
        with as_status_errors(f"get {name}"):
            served = find(self._kinds, kind)
            return like(kind, served, self._registry.get(served, namespace, name))

    @overload
    def list(
        self,
        kind: type[K],
        *,
        namespace: str | None = ...,
        label_selector: str | None = ...,
        field_selector: str | None = ...,
    ) -> Sequence[K]: ...
    @overload
    def list(
        self,
        kind: ResourceInfo | str,
        *,
        namespace: str | None = ...,
        label_selector: str | None = ...,
        field_selector: str | None = ...,
    ) -> Sequence[dict[str, object]]: ...

    def list(
        self,
        kind: type[K] | ResourceInfo | str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Sequence[K | dict[str, object]]:
        """Return the stored objects of a kind, ordered by namespace and name; None is every namespace.

        Raises:
            BadRequestError: A selector does not parse, or the kind cannot be selected by a field.
            NotFoundError: The kind is not served.
        """
        with as_status_errors("list"):
            served = find(self._kinds, kind)
            selection = Selection.parse(served, label_selector or "", field_selector or "")
            prefix = f"{namespace}/" if namespace is not None and served.info.namespaced else ""
            found = self._storage.snapshot(served.resource, prefix)
            return [like(kind, served, stored) for stored in found if selection.matches(stored)]

    @overload
    def delete(self, kind: Kind, name: str, *, namespace: str = ...) -> None: ...
    @overload
    def delete(self, kind: KubernetesObject) -> None: ...

    def delete(self, kind: Kind | KubernetesObject, name: str = "", *, namespace: str = "default") -> None:
        """Delete an object, given by kind and name or as it is; one with finalizers stays until they are removed.

        Raises:
            StatusError: As a client would get it.
        """
        if isinstance(kind, KubernetesObject):
            place: tuple[Kind, str, str] = type(kind), kind.namespace or "default", kind.name
        else:
            place = kind, namespace, name
        with as_status_errors(f"delete {place[2]}"):
            self._registry.delete(find(self._kinds, place[0]), *place[1:])

    # --- faults and figures -------------------------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Forget history, as etcd does every few minutes.

        Watches that have not read it yet get an ERROR event with 410; those that are up to date go on.
        New watches and continued lists from before it are refused.

        Args:
            revision: The last revision to forget; None forgets everything and makes every revision that was ever handed
                out too old, as if something else had been written since.

        Returns:
            The oldest revision that can still be watched from.

        Raises:
            ValueError: The revision is in the future.
        """
        return self._storage.compact(revision)

    def disconnect_watches(self, *, how: End = "clean", kind: Kind | None = None, status: int | None = None) -> int:
        """End the open watches, at once: changes that they have not sent yet are not sent.

        Args:
            how: ``"clean"`` ends the response as when ``timeoutSeconds`` are over; ``"reset"`` breaks the connection in
                the middle of the response; ``"stall"`` sends nothing any more but leaves it open.
            kind: Whose watches; None for all.
            status: First send an ERROR event with this code.

        Returns:
            How many watches that were.

        Raises:
            NotFoundError: The kind is not served.
        """
        with as_status_errors("disconnect_watches"):
            resource = None if kind is None else find(self._kinds, kind).resource
        return self._watches.end(how, resource=resource, status=status)

    def fail_next(
        self,
        n: int = 1,
        *,
        verb: str | None = None,
        resource: str | None = None,
        status: int | StatusChooser = 500,
        retry_after: int | None = None,
    ) -> None:
        """Let the next ``n`` fitting requests fail.

        Args:
            n: How many.
            verb: Only such requests: ``list``, ``watch``, ``update``, …; see :class:`RequestRecord`.
            resource: Only requests for it: ``pods``, or with its group, ``deployments.apps``.
            status: The HTTP code, or a function that looks at each request and returns it, or None to let it pass.
            retry_after: Seconds for the ``Retry-After`` header and the Status's details.

        Raises:
            ValueError: ``n`` or ``status`` is out of range.
        """
        self._faults.order(n, verb=verb, resource=resource, status=status, retry_after=retry_after)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse new connections in memory while the block runs; open watches are reset at its beginning."""
        self._is_unreachable = True
        self.disconnect_watches(how="reset")
        try:
            yield
        finally:
            self._is_unreachable = False

    def statistics(self) -> APIServerStatistics:
        """Return the server's figures."""
        return APIServerStatistics(
            is_running=self._inbox is not None,
            open_watches=len(self._watches),
            requests_served=self._app.served,
            pending_faults=self._faults.pending,
            objects=self._storage.count(),
            revision=self._storage.revision,
            compacted_revision=self._storage.compacted,
        )
