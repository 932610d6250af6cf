"""The embedded API server."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Literal, final, overload

import attrs
import httpx
import trio

from ..client import Client, open_client
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject, ResourceInfo, resource_of
from ..models._internal import decode, dumps, find_model, plain
from ._convert import K, Kind, as_status_errors, convert_like, find_kind, namespace_and_name, read_object
from ._in_memory import Exchange, InMemoryTransport, connection_refused
from ._scripted_pods import ScriptedPod
from ._serving._app import Application
from ._serving._faults import Fault, Faults, StatusChooser
from ._serving._pod_scripts import PodScripts
from ._serving._requests import RequestRecord
from ._serving._resources import Resources
from ._serving._watching import WatchEnd, Watches, WatchSettings
from ._state import APIServerSnapshot, APIServerStatistics, load_objects
from ._storage._clock import Clock, wall_clock
from ._storage._garbage import GarbageCollector
from ._storage._kinds import Kinds
from ._storage._patching import merge
from ._storage._registry import Registry
from ._storage._selection import Selection
from ._storage._storage import JSONObject, Storage
from ._storage._tracking import Writer

URL = "http://embedded.invalid"
"""The server's address in memory; a domain that never resolves."""
_DIRECT = Writer("APIServer", writes_all=True)
"""The manager of changes by the direct API."""


@final
@attrs.define(eq=False, kw_only=True, repr=False)
class APIServer:
    """A Kubernetes API server in this process.

    It serves all built-in kinds, and custom kinds, with the semantics of kube-apiserver v1.36 over etcd: one revision
    counter, conflicts, generations, finalizers, consistent pages, watches that resume, bookmarks, watch-lists,
    compaction and 410, selectors, the subresources status, scale, binding, eviction and log, three kinds of patch,
    server-side apply with conflicts and ``managedFields``, Tables and discovery for kubectl.
    It does not validate or default the specs of built-in kinds, does not authenticate, and reads only JSON.
    The garbage collector is its only controller; a deleted pod is removed immediately.

    Clients reach it without sockets, through :meth:`open_client` or :meth:`http_transport`, while a task runs
    :meth:`run`::

        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                ...

    The direct API, for tests, is :meth:`create`, :meth:`replace`, :meth:`patch`, :meth:`delete`, :meth:`get` and
    :meth:`list`: synchronous methods that take effect immediately, before, during and after :meth:`run`.
    They take and return models or dicts, write the status together with the rest, use the namespace ``default`` unless
    another is given, and raise the errors of a client.

    The server never polls and uses trio's clock, so it works under ``trio.testing.MockClock(autojump_threshold=0)``.
    Generated names and uids are the same in every run.
    """

    clock: Clock = wall_clock
    """Returns the time for timestamps in objects; by default the real time, or the virtual time of a mock clock."""
    bookmark_period: float = 60.0
    """Seconds between the bookmarks of a watch that allows them."""
    watch_timeout: float = 1_800.0
    """Seconds after which a watch without ``timeoutSeconds`` ends; 1,800 to 3,600 in kube-apiserver."""
    expired_as_status: bool = False
    """Respond to a watch from a compacted revision with HTTP 410, as a server without watch cache does, instead of an
    ERROR event."""
    first_revision: int = 1
    """The first revision.  If this server replaces another one, it must be higher than the last revision there, so that
    watches of old revisions get 410; otherwise clients would resume them and miss the difference."""
    history_limit: int = 10_000
    """The minimum number of changes that are kept for each kind."""
    seed: int = 0
    """The seed of the random numbers for uids and generated names."""
    garbage_collector: bool = False
    """Run a garbage collector in :meth:`run`, which deletes objects whose owners are gone and completes foreground and
    orphaning deletions.  Without it owner references have no effect, and every deletion is in
    the background."""
    managed_fields: bool = True
    """Record the managers of objects that clients create, in ``metadata.managedFields``.
    Without them a write takes about 50 µs less; objects still get managers at their first server-side apply."""
    requests: deque[RequestRecord] = attrs.field(init=False, factory=lambda: deque(maxlen=1_000))
    """The last 1,000 requests, oldest first, including discovery and failed requests; a test may clear it."""
    _storage: Storage = attrs.field(init=False)
    _kinds: Kinds = attrs.field(init=False, factory=Kinds.builtin)
    _registry: Registry = attrs.field(init=False)
    _watches: Watches = attrs.field(init=False)
    _scripts: PodScripts = attrs.field(init=False)
    _faults: Faults = attrs.field(init=False, factory=Faults)
    _app: Application = attrs.field(init=False)
    _exchanges: trio.MemorySendChannel[Exchange] | None = attrs.field(init=False, default=None)
    _is_unreachable: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._storage = Storage(self.history_limit, self.first_revision)
        self._watches = Watches(self._storage)
        generator = random.Random(self.seed)
        self._registry = Registry(self._storage, self._kinds, self.clock, generator, self.garbage_collector)
        self._registry.tracker.tracks_new = self.managed_fields
        settings = WatchSettings(self.bookmark_period, self.watch_timeout, self.expired_as_status)
        self._scripts = PodScripts(self._registry, Watches(self._storage))
        resources = Resources(self._registry, settings, self._scripts)
        followers = self._scripts.followers
        self._app = Application(self._kinds, resources, self._watches, followers, self._faults, self.requests)
        self._registry.create_system_namespaces()

    def __repr__(self) -> str:
        state = "running" if self._exchanges is not None else "not running"
        return f"<{type(self).__name__}, {state}, {self._storage.count()} objects at revision {self._storage.revision}>"

    # --- serving ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the in-memory transport until cancelled.

        Raises:
            RuntimeError: The server is already running.

        Cancellation:
            Ends every request; unfinished responses break.  No task is left when this returns.

        Ownership:
            The tasks of all requests belong to a nursery of this method, so an error in the server leaves it in an
            ``ExceptionGroup``.
        """
        if self._exchanges is not None:
            raise RuntimeError("the embedded API server is already running")
        self._exchanges, exchanges = trio.open_memory_channel[Exchange](0)
        try:
            with exchanges:
                async with trio.open_nursery() as nursery:
                    if self.garbage_collector:
                        await nursery.start(GarbageCollector(self._registry).run)
                    task_status.started()
                    async for exchange in exchanges:
                        nursery.start_soon(exchange.serve, self._app)
        finally:
            self._exchanges = None

    @property
    def asgi_app(self) -> Application:
        """The server as an ASGI application, for a server with sockets; it does not need :meth:`run`."""
        return self._app

    @property
    def config(self) -> ClusterConfig:
        """The configuration for clients that use :meth:`http_transport`."""
        return ClusterConfig(server=URL, source="embedded")

    def http_transport(self) -> httpx.AsyncBaseTransport:
        """Return an httpx transport that reaches this server in memory, and streams responses.

        Its requests raise ``RuntimeError`` while :meth:`run` is not running.
        """
        return InMemoryTransport(self._open_exchanges)

    def open_client(self, *, field_manager: str | None = None) -> AbstractAsyncContextManager[Client]:
        """Open a client of this server.

        Args:
            field_manager: As for :func:`~trioformer.client.open_client`.
                For other arguments call that function with :attr:`config` and :meth:`http_transport`.
        """
        return open_client(self.config, http_transport=self.http_transport(), field_manager=field_manager)

    def _open_exchanges(self) -> trio.MemorySendChannel[Exchange]:
        if self._exchanges is None:
            raise RuntimeError("the embedded API server is not running: await nursery.start(server.run) first")
        if self._is_unreachable:
            raise connection_refused()
        return self._exchanges

    # --- direct API ---------------------------------------------------------------------------------------------------

    def register(self, kind: type[KubernetesObject] | ResourceInfo) -> None:
        """Serve a custom kind; creating its CustomResourceDefinition has the same effect.

        Raises:
            TypeError: The class is not a kind.
        """
        self._kinds.add(kind if isinstance(kind, ResourceInfo) else resource_of(kind))

    @overload
    def create(self, obj: K) -> K: ...
    @overload
    def create(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def create(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Create an object, including its status.

        Raises:
            StatusError: As a client would get it.
        """
        with as_status_errors("create"):
            served, given = read_object(self._kinds, obj)
            stored = self._registry.create(served, namespace_and_name(served, given)[0], given, part="whole")
            return convert_like(obj, served, stored)

    @overload
    def replace(self, obj: K) -> K: ...
    @overload
    def replace(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def replace(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Replace an object, including its status; a ``resourceVersion`` in it must be the current one.

        Raises:
            StatusError: As a client would get it.
        """
        with as_status_errors("replace"):
            served, given = read_object(self._kinds, obj)
            stored = self._registry.update(
                served, *namespace_and_name(served, given), lambda _: given, part="whole", writer=_DIRECT
            )
            return convert_like(obj, served, stored)

    @overload
    def patch(
        self,
        kind: type[K],
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = ...,
        subresource: Literal["status"] | None = ...,
    ) -> K: ...
    @overload
    def patch(
        self,
        kind: ResourceInfo | str,
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = ...,
        subresource: Literal["status"] | None = ...,
    ) -> dict[str, object]: ...

    def patch(
        self,
        kind: type[K] | ResourceInfo | str,
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = "default",
        subresource: Literal["status"] | None = None,
    ) -> K | dict[str, object]:
        """Apply a JSON merge patch to an object, including its status; with ``subresource="status"``, only to that.

        Raises:
            StatusError: As a client would get it.
            TypeError: The patch contains a model that would be merged.
        """
        if (found := find_model(patch)) is not None:
            problem = f"{found[0] or 'the patch'} must be a mapping, not a {type(found[1]).__name__}"
            raise TypeError(f"patch {name}: {problem}; call replace() with the object, or pass a mapping with None")
        with as_status_errors(f"patch {name}"):
            served = find_kind(self._kinds, kind)
            change: JSONObject = decode(dumps(plain(patch)))
            stored = self._registry.update(
                served,
                namespace,
                name,
                lambda old: merge(old, change),
                part="whole" if subresource is None else subresource,
                writer=_DIRECT,
            )
            return convert_like(kind, served, stored)

    @overload
    def get(self, kind: type[K], name: str, *, namespace: str = ...) -> K: ...
    @overload
    def get(self, kind: ResourceInfo | str, name: str, *, namespace: str = ...) -> dict[str, object]: ...

    def get(
        self, kind: type[K] | ResourceInfo | str, name: str, *, namespace: str = "default"
    ) -> K | dict[str, object]:
        """Return an object as it is stored.

        Raises:
            NotFoundError: The object does not exist, or the kind is not served.
        """
        with as_status_errors(f"get {name}"):
            served = find_kind(self._kinds, kind)
            return convert_like(kind, served, self._registry.get(served, namespace, name))

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
        """Return the stored objects of a kind, ordered by namespace and name; the namespace None is all namespaces.

        Raises:
            BadRequestError: A selector does not parse, or a field is not selectable for the kind.
            NotFoundError: The kind is not served.
        """
        with as_status_errors("list"):
            served = find_kind(self._kinds, kind)
            selection = Selection.parse(served, label_selector or "", field_selector or "")
            prefix = f"{namespace}/" if namespace is not None and served.info.namespaced else ""
            found = self._storage.snapshot(served.resource, prefix)
            return [convert_like(kind, served, stored) for stored in found if selection.matches(stored)]

    @overload
    def delete(self, kind: Kind, name: str, *, namespace: str = ...) -> None: ...
    @overload
    def delete(self, kind: KubernetesObject) -> None: ...

    def delete(self, kind: Kind | KubernetesObject, name: str = "", *, namespace: str = "default") -> None:
        """Delete an object; one with finalizers stays until they are removed.

        Args:
            kind: The object, or its kind.
            name: Its name, when only the kind is given.
            namespace: Its namespace, when only the kind is given.

        Raises:
            StatusError: As a client would get it.
        """
        if isinstance(kind, KubernetesObject):
            namespace, name = kind.namespace or "default", kind.name
            kind = type(kind)
        with as_status_errors(f"delete {name}"):
            self._registry.delete(find_kind(self._kinds, kind), namespace, name)

    def load(self, *paths: str | os.PathLike[str]) -> None:
        """Create the objects of YAML and JSON files and directories, with their status, and new versions and uids.

        Raises:
            ManifestError: A file cannot be read or is not valid; nothing was created.
            StatusError: As a client would get it; the objects before this one were created.
        """
        load_objects(self._registry, paths)

    def snapshot(self) -> APIServerSnapshot:
        """Return the stored objects, the served kinds and the revision, for :meth:`restore`."""
        return APIServerSnapshot(self._storage.revision, self._storage.objects(), self._kinds.copy())

    def restore(self, snapshot: APIServerSnapshot) -> None:
        """Go back to a snapshot of this or another server, like a cluster whose etcd is restored from a backup.

        Objects have the resource versions of the snapshot, and new writes have revisions that no client has seen, as
        after ``etcdutl snapshot restore --bump-revision``.  All watches and followed logs are reset; scripted pods and
        faults stay.
        Stop controllers first: until their informers have listed again, they would act on the previous objects.
        """
        self._registry.restore(snapshot._kinds, snapshot._objects, snapshot.revision)
        self._app.reset_streams()

    def script_pod(self, name: str, *, namespace: str = "default") -> ScriptedPod:
        """Script the containers of a pod: their logs, commands, restarts and ends.

        ::

            server.create(Pod(metadata=ObjectMeta(name="web-0"), spec=PodSpec(containers=(Container(name="main"),))))
            web = server.script_pod("web-0")
            web.write_log("listening on port 8080")

        Containers without a status start to run, and a pending pod becomes ready.
        Logs of pods that are not scripted are empty, and end when the status of the container says so.

        Raises:
            NotFoundError: The pod does not exist.
        """
        pod = ScriptedPod(name, namespace, self._scripts)
        pod.start()
        return pod

    # --- faults and statistics ----------------------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Discard history, as etcd does every few minutes.

        Watches that have not read it get an ERROR event with 410; watches that are up to date continue.
        New watches and continued lists from earlier revisions get 410.

        Args:
            revision: The last revision to discard.
                None discards all history and makes all revisions that clients know too old, as if another object had
                been written since.

        Returns:
            The oldest revision from which a watch can begin.

        Raises:
            ValueError: The revision is in the future.
        """
        return self._storage.compact(revision)

    def disconnect_watches(
        self, *, how: WatchEnd = "clean", kind: Kind | None = None, status: int | None = None
    ) -> int:
        """End the open watches immediately, without sending pending changes.

        Args:
            how: ``"clean"`` completes the response, as after ``timeoutSeconds``; ``"reset"`` breaks the connection in
                the middle of the response; ``"stall"`` sends nothing more but keeps the connection open.
            kind: The kind whose watches end; None for all kinds.
            status: The code of an ERROR event to send first; None to send no event.

        Returns:
            The number of these watches.

        Raises:
            NotFoundError: The kind is not served.
        """
        with as_status_errors("disconnect_watches"):
            resource = None if kind is None else find_kind(self._kinds, kind).resource
        return self._watches.end(how, resource=resource, status=status)

    def fail_next(
        self,
        n: int = 1,
        *,
        verb: str | None = None,
        resource: str | None = None,
        status: int | StatusChooser | None = 500,
        retry_after: int | None = None,
        after: float = 0.0,
        body: Mapping[str, object] | None = None,
    ) -> None:
        """Make the next ``n`` matching requests fail, or respond late.

        Args:
            n: The number of requests.
            verb: Match only this verb: ``list``, ``watch``, ``update``, …
            resource: Match only this resource: ``pods``, or with its group, ``deployments.apps``.
            status: The HTTP code.  A function is called with the request and returns the code, or None if the request
                does not match.  None serves the request, ``after`` some time.
            retry_after: Seconds for the ``Retry-After`` header and the Status's details.
            after: Seconds on trio's clock to hold the request first; infinity: until the client gives up.
            body: Members of the Status in the response, which replace the usual ones.

        Raises:
            ValueError: ``n``, ``status`` or ``after`` is out of range.
        """
        self._faults.add(Fault(n, verb, resource, status, retry_after, after, body))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse in-memory connections while the block runs; resets all open watches and followed logs first."""
        self._is_unreachable = True
        self._app.reset_streams()
        try:
            yield
        finally:
            self._is_unreachable = False

    def statistics(self) -> APIServerStatistics:
        """Return the server's statistics."""
        return APIServerStatistics(
            is_running=self._exchanges is not None,
            open_watches=len(self._watches),
            followed_logs=len(self._scripts.followers),
            requests_served=self._app.served,
            pending_faults=self._faults.pending,
            objects=self._storage.count(),
            revision=self._storage.revision,
            compacted_revision=self._storage.compacted,
        )
