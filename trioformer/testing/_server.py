"""The embedded API server."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import final

import attrs
import httpx
import trio

from .._suggestions import check_async
from ..client import Client
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject, ResourceInfo, resource_of, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition
from ..webhooks import Webhooks
from ._controllers import Cluster, start_controllers
from ._convert import Kind, as_status_errors, find_kind
from ._direct_api import DirectAPI
from ._in_memory import Exchange, InMemoryTransport, connection_refused, open_in_memory
from ._scripted_pods import PodRunner, ScriptedPod, run_pod, start_run
from ._serving._access import Access, operator_actions
from ._serving._app import Application
from ._serving._faults import Fault, Faults, StatusChooser
from ._serving._pod_scripts import PodScripts
from ._serving._requests import RequestRecord
from ._serving._resources import Resources
from ._serving._watching import WatchEnd, Watches, WatchSettings
from ._serving._webhook_client import WebhookClient
from ._state import APIServerSnapshot, APIServerStatistics, load_objects
from ._storage._clock import Clock, wall_clock
from ._storage._garbage import GarbageCollector
from ._storage._kinds import Kinds, ServedKind
from ._storage._registry import Registry
from ._storage._release import open_release
from ._storage._storage import Storage

URL = "http://embedded.invalid"
"""The URL of every in-memory server, with a domain that never resolves."""


@final
@attrs.define(eq=False, kw_only=True, repr=False)
class APIServer(DirectAPI):
    """An embedded Kubernetes API server, which runs in this process.

    The server supports all built-in kinds and custom kinds, with the semantics of kube-apiserver v1.36 on etcd.  It
    supports conflicts, generations, finalizers, selectors, consistent pages, watches that resume, bookmarks,
    watch-lists, compaction, three kinds of patch, and server-side apply.  It also serves the subresources status,
    scale, binding, eviction, token and log, reviews, and discovery and Tables for kubectl.
    It calls admission and conversion webhooks.
    The server speaks JSON, YAML and protobuf.  It sets the defaults of built-in kinds and validates most of their
    fields.  Every client may do everything, unless ``roles`` are given.  By default, no controllers run.  A deleted pod
    is removed immediately.

    While a task runs :meth:`run`, clients from :meth:`open_client` or with :meth:`http_transport` reach the server
    without sockets::

        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                ...

    Tests can also use the direct API: :meth:`create`, :meth:`replace`, :meth:`patch`, :meth:`delete`, :meth:`get` and
    :meth:`list`.  These methods are synchronous, take effect immediately, and do not need :meth:`run`.  They take and
    return models or dicts, raise the same errors as a client, and write the status together with the other fields.

    The server never polls and uses trio's clock, so it works under ``trio.testing.MockClock(autojump_threshold=0)``.
    Generated names and uids are the same in every run, and the default namespace is ``default``.
    """

    clock: Clock = wall_clock
    """A function that returns the time for timestamps.  The default is the real time, or the time of a mock clock."""
    bookmark_period: float = 60.0
    """Seconds between the bookmarks of a watch that allows them."""
    watch_timeout: float = 1_800.0
    """Seconds after which a watch without ``timeoutSeconds`` ends.  kube-apiserver uses 1,800 to 3,600 seconds."""
    expired_as_status: bool = False
    """Whether a watch from a compacted revision fails with HTTP 410 instead of an ERROR event."""
    first_revision: int = 1
    """The first revision. If this server replaces another server, set a revision higher than the last revision of the
    old server, so that watches from old revisions fail with 410.  Otherwise, clients would resume these watches and
    miss changes."""
    history_limit: int = 10_000
    """The minimum number of changes that are kept for each kind."""
    seed: int = 0
    """The seed of the random numbers for uids and generated names."""
    garbage_collector: bool = False
    """Whether :meth:`run` runs a garbage collector.  Without one, owner references have no effect, and objects that are
    deleted with the policy ``Foreground`` or ``Orphan``, the default for Jobs, keep the finalizer for this policy."""
    controllers: bool = False
    """Whether controllers create the pods of Deployments, ReplicaSets, StatefulSets and Jobs, and the EndpointSlices of
    Services, and pods are scheduled and run.  Each namespace has a ServiceAccount ``default``, and
    PodDisruptionBudgets count their pods.  The controllers act at the end of each write, and collect garbage."""
    run_pod: PodRunner = run_pod
    """With ``controllers``, a function that runs each new pod, when the pod has been scheduled.  The default starts the
    pod, and ends the pods of Jobs successfully."""
    managed_fields: bool = True
    """Whether the managers of objects that clients create are recorded in ``metadata.managedFields``.  If False, a
    write is about 50 µs faster, and objects only get managers at their first server-side apply."""
    defaults: bool = True
    """Whether objects of built-in kinds get kube-apiserver's defaults and are validated, and whether the objects of a
    new cluster exist."""
    tables: str | os.PathLike[str] | None = None
    """A directory with the tables of another release of Kubernetes, as ``nox -s tables`` makes it in trioformer's
    repository.  The default, None, is the release of the installed tables, v1.36.  Objects have the fields of the
    classes in :mod:`trioformer.models`, and kinds without a class are not served."""
    roles: Iterable[KubernetesObject | Mapping[str, object]] | None = None
    """Roles and bindings that the server creates, and enforces as kube-apiserver does, for clients but not for the
    direct API.  A client is an administrator unless it impersonates another user, as with
    :meth:`~trioformer.client.Client.impersonating`, or has a token of a service account that this server granted.
    The default, None, allows everything; an empty list only the roles of a new cluster."""
    requests: deque[RequestRecord] = attrs.field(init=False, factory=lambda: deque(maxlen=1_000))
    """The last 1,000 requests, oldest first, including discovery and failed requests.  A test may clear this deque."""
    _storage: Storage = attrs.field(init=False)
    _kinds: Kinds = attrs.field(init=False)
    _registry: Registry = attrs.field(init=False)
    _webhooks: WebhookClient = attrs.field(init=False)
    _watches: Watches = attrs.field(init=False)
    _scripts: PodScripts = attrs.field(init=False)
    _faults: Faults = attrs.field(init=False, factory=Faults)
    _cluster: Cluster | None = attrs.field(init=False, default=None)
    _app: Application = attrs.field(init=False)
    _exchanges: trio.MemorySendChannel[Exchange] | None = attrs.field(init=False, default=None)
    _is_unreachable: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._kinds = Kinds.builtin(open_release(self.tables))
        self._storage = Storage(self.history_limit, self.first_revision)
        self._watches = Watches(self._storage)
        generator = random.Random(self.seed)
        self._registry = Registry(self._storage, self._kinds, self.clock, generator, self.defaults)
        self._registry.tracker.tracks_new = self.managed_fields
        self._webhooks = webhooks = WebhookClient(self._registry)
        settings = WatchSettings(self.bookmark_period, self.watch_timeout, self.expired_as_status, webhooks)
        self._scripts = scripts = PodScripts(self._registry, Watches(self._storage))
        resources = Resources(self._registry, settings, scripts)
        access = Access(self._registry, self.roles is not None)
        streams = self._watches, scripts.followers
        self._app = Application(self._kinds, resources, webhooks, *streams, self._faults, self.requests, access)
        self._registry.create_system_objects()
        if self.controllers:
            self._cluster = start_controllers(self._registry, lambda pod: start_run(self._scripts, self.run_pod, pod))
            self._scripts.later = self._cluster.later
        for obj in self.roles or ():
            self.create(obj)

    def __repr__(self) -> str:
        state = "running" if self._exchanges is not None else "not running"
        return f"<{type(self).__name__}, {state}, {self._storage.count()} objects at revision {self._storage.revision}>"

    # --- serving ------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve clients of the in-memory transport until cancelled.

        Raises:
            RuntimeError: The server is already running.

        Cancellation:
            All requests end, and unfinished responses fail.  When this method returns, all of its tasks have ended.

        Ownership:
            The tasks of all requests belong to a nursery of this method, so an error in the server is raised in an
            ``ExceptionGroup``.
        """
        if self._exchanges is not None:
            raise RuntimeError("the embedded API server is already running")
        self._exchanges, exchanges = trio.open_memory_channel[Exchange](0)
        try:
            with exchanges:
                async with trio.open_nursery() as nursery:
                    if self._cluster is not None:
                        nursery.start_soon(self._cluster.run)
                    elif self.garbage_collector:
                        await nursery.start(GarbageCollector(self._registry).run)
                    if (observer := operator_actions.get()) is not None:
                        nursery.start_soon(observer.run)
                    task_status.started()
                    async for exchange in exchanges:
                        nursery.start_soon(exchange.serve, self._app)
        finally:
            self._exchanges = None

    @property
    def asgi_app(self) -> Application:
        """The ASGI application of this server, for an HTTP server.  It does not need :meth:`run`."""
        return self._app

    @property
    def config(self) -> ClusterConfig:
        """The configuration for clients that use :meth:`http_transport`."""
        return ClusterConfig(server=URL, source="embedded")

    def http_transport(self, *, operator: bool = False) -> httpx.AsyncBaseTransport:
        """Return an httpx transport that reaches this server in memory, and streams responses.

        Requests raise ``RuntimeError`` while :meth:`run` is not running.

        Args:
            operator: Whether the clients are those of an operator, as for :meth:`open_client`.
        """
        return InMemoryTransport(self._open_exchanges, self._app, operator)

    def open_client(
        self, *, field_manager: str | None = None, operator: bool = False
    ) -> AbstractAsyncContextManager[Client]:
        """Open a client for this server, which requests JSON, because the server stores JSON.

        Args:
            field_manager: The field manager, as for :func:`~trioformer.client.open_client`.  To set other arguments,
                call that function with :attr:`config` and :meth:`http_transport`.
            operator: Whether ``pytest --trioformer-rbac`` records the permissions that this client needs.  The option
                always records what :func:`~trioformer.manager.run_controllers` requests.
        """
        transport = InMemoryTransport(self._open_exchanges, self._app, operator)
        return open_in_memory(self.config, transport, field_manager)

    def _open_exchanges(self) -> trio.MemorySendChannel[Exchange]:
        if self._exchanges is None:
            raise RuntimeError("the embedded API server is not running: await nursery.start(server.run) first")
        if self._is_unreachable:
            raise connection_refused()
        return self._exchanges

    # --- content ------------------------------------------------------------------------------------------------------

    def register(self, kind: type[KubernetesObject] | ResourceInfo) -> None:
        """Serve a custom kind, as if its CustomResourceDefinition had been created.

        Raises:
            TypeError: The class is not a Kubernetes kind.
        """
        info = kind if isinstance(kind, ResourceInfo) else resource_of(kind)
        self._kinds.add(ServedKind(info, release=self._kinds.release))

    def load(self, *paths: str | os.PathLike[str]) -> None:
        """Create the objects in YAML and JSON files or directories, including their status, with new uids.

        Raises:
            ManifestError: A file cannot be read or is not valid.  No object was created.
            StatusError: The server rejects an object, as it would for a client.  The earlier objects were created.
        """
        load_objects(self._registry, paths)

    def snapshot(self) -> APIServerSnapshot:
        """Return a snapshot of the stored objects, the served kinds and the revision, for :meth:`restore`."""
        return APIServerSnapshot(self._storage.revision, self._storage.objects(), self._kinds.copy())

    def restore(self, snapshot: APIServerSnapshot) -> None:
        """Restore a snapshot of this server or of another server, as an etcd backup is restored in a cluster.

        Objects have the resource versions of the snapshot.  New writes get revisions that no client has seen, as after
        ``etcdutl snapshot restore --bump-revision``.  All watches and requests that follow logs are reset.  Scripted
        pods and faults are kept.
        Stop all controllers first.  Otherwise, they act on the old objects until their informers have listed again.
        """
        self._registry.restore(snapshot._kinds, snapshot._objects, snapshot.revision)
        self._app.reset_streams()

    async def install_webhooks(
        self,
        webhooks: Callable[..., Awaitable[None]],
        *,
        service: str = "webhooks",
        namespace: str = "webhooks-system",
    ) -> None:
        """Call webhooks in memory, as if a Service led to them.

        If ``webhooks`` is a :class:`~trioformer.webhooks.Webhooks`, its configurations are created or replaced, and
        the CustomResourceDefinitions of its converted kinds get the conversion.  For any other ASGI application, create
        the configurations, whose ``clientConfig`` must have this Service.  The calls use virtual time and no sockets.

        Args:
            webhooks: The webhooks, which are an ASGI 3 application.
            service: The name of the Service, which need not exist.
            namespace: The namespace of the Service.  By default, ``Webhooks`` do not review objects in this namespace.

        Raises:
            NotFoundError: The CustomResourceDefinition of a converted kind does not exist.
            TypeError: ``webhooks`` is not an ASGI application, for example because it is the function of a webhook.
        """
        check_async(webhooks, "webhooks", "Webhooks(validate={Website: check})", {}, None, None)
        self._webhooks.apps[namespace, service] = webhooks
        if isinstance(webhooks, Webhooks):
            for each in webhooks.configurations(service=service, namespace=namespace):
                if self._storage.get(str(resource_of(type(each))), each.name) is None:
                    self.create(each)
                else:
                    self.patch(type(each), each.name, {"webhooks": to_dict(each)["webhooks"]})
            for hub in webhooks.convert:
                conversion = to_dict(webhooks.conversion(hub, service=service, namespace=namespace))
                self.patch(CustomResourceDefinition, str(resource_of(hub)), {"spec": {"conversion": conversion}})
        await trio.lowlevel.checkpoint()

    def script_pod(self, name: str, *, namespace: str = "default") -> ScriptedPod:
        """Return a :class:`ScriptedPod`, to control the logs, commands, restarts and exits of a pod's containers.

        ::

            server.create(Pod(metadata=ObjectMeta(name="web-0"), spec=PodSpec(containers=(Container(name="main"),))))
            web = server.script_pod("web-0")
            web.write_log("listening on port 8080")

        Containers without a status are started, and a pending pod becomes ready.  The logs of other pods are empty,
        and end when the stored status of the container is terminated.

        Raises:
            NotFoundError: The pod does not exist.
        """
        pod = ScriptedPod(name, namespace, self._scripts)
        pod.start()
        return pod

    # --- faults and statistics ----------------------------------------------------------------------------------------

    def compact(self, revision: int | None = None) -> int:
        """Discard the history of changes, as kube-apiserver does in etcd every few minutes.

        Watches that have not read the discarded changes get an ERROR event with 410.  Watches that are up to date
        continue.  New watches and continued lists from earlier revisions fail with 410.

        Args:
            revision: The last revision to discard.  The default, None, discards the whole history, and makes all
                revisions that clients know too old.

        Returns:
            The oldest revision from which a watch can start.

        Raises:
            ValueError: The revision is in the future.
        """
        return self._storage.compact(revision)

    def disconnect_watches(
        self, *, how: WatchEnd = "clean", kind: Kind | None = None, status: int | None = None
    ) -> int:
        """End the open watches immediately, without sending pending changes.

        Args:
            how: The way in which the watches end.  ``"clean"`` completes the response, as after ``timeoutSeconds``.
                ``"reset"`` breaks the connection in the middle of the response.  ``"stall"`` keeps the connection open
                but sends nothing more.
            kind: The kind whose watches end.  The default, None, means all kinds.
            status: The status code of an ERROR event to send first.  The default, None, sends no event.

        Returns:
            The number of watches that were ended.

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
        """Make the next ``n`` matching requests fail, or delay their responses.

        Args:
            n: The number of matching requests that are affected.
            verb: The verb of matching requests, such as ``list`` or ``watch``.  The default, None, matches all verbs.
            resource: The resource of matching requests, such as ``pods`` or ``deployments.apps``.  The default, None,
                matches all resources.
            status: The HTTP status code of the responses.  If None, the requests succeed after a delay of ``after``
                seconds.  A function is called with each request, and returns the status code, or None if the request
                does not match.
            retry_after: The seconds in the ``Retry-After`` header and in the details of the Status.
            after: How long the response is delayed, in seconds on trio's clock.  With ``math.inf``, the request hangs.
            body: Fields of the Status in the response, which replace the defaults.

        Raises:
            ValueError: The value of ``n``, ``status`` or ``after`` is out of range.
        """
        self._faults.add(Fault(n, verb, resource, status, retry_after, after, body))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Reset all open watches and followed logs, and refuse in-memory connections while the block runs."""
        before, self._is_unreachable = self._is_unreachable, True
        self._app.reset_streams()
        try:
            yield
        finally:
            self._is_unreachable = before

    def statistics(self) -> APIServerStatistics:
        """Return a snapshot of the server's statistics."""
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
