"""A client of one cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar, cast, final, overload

import attrs
import trio

from .._suggestions import attribute_hints, check_async, check_observer, describe
from .._util import NoPublicConstructor, opened_by
from ..errors import ConfigError, DecodeError
from ..kubeconfig import ClusterConfig, Impersonation
from ..models import KubernetesObject, Unstructured
from ..models._internal import decode, scan_whole, scan_without_managed_fields
from ..transport import RequestObserver, RequestRateLimiter
from ..transport._internal import (
    DEFAULT_OPTIONS,
    ClientOptions,
    Transport,
    WarningLog,
    default_user_agent,
    open_transport,
)
from ._api import Api
from ._api_requests import ApiRequests, check_field_manager
from ._client_requests import ClientRequests
from ._client_writes import ClientWrites
from .bodies._responses import check, raise_failure, unexpected_response

if TYPE_CHECKING:
    import httpx

    from ..kubeconfig import ConfigOverrides
    from ._api_resources import ApiResources
    from ._known_kinds import KnownKinds

T = TypeVar("T", bound=KubernetesObject)


_HINTS: Final = dict.fromkeys(
    ("get", "list", "watch"),
    "each kind has its own API: client.api(Pod, namespace=...) has the methods",
) | dict.fromkeys(
    (
        "AppsV1Api",
        "CoreV1Api",
        "core_v1",
        "deployments",
        "list_namespaced_pod",
        "list_pod_for_all_namespaces",
        "pods",
        "resource",
        "resources",
        "services",
    ),
    "write client.api(Pod, namespace=...), with the class of the kind",
)


_NO_TRIO: Final = (
    "open_client() requires trio; start the program with trioformer.run(main), or a prompt with `python -m trio`; use "
    "trioformer.aio in an asyncio program, and trioformer.sync in threads"
)


_Cluster: TypeAlias = "tuple[ClusterConfig, httpx.AsyncBaseTransport, ClientOptions]"
simulated_cluster: Final[ContextVar[Callable[[ClientOptions], _Cluster] | None]] = ContextVar(
    "simulated_cluster", default=None
)
"""In a simulation, the cluster that :func:`open_client` uses if no other one is given."""


@final
@attrs.frozen
class _Opened:
    """The arguments of :func:`open_client` that also apply to a separate client."""

    http_transport: httpx.AsyncBaseTransport | None
    observer: RequestObserver | None
    options: ClientOptions
    field_manager: str | None


@final
@attrs.frozen(kw_only=True)
class VersionInfo:
    """The version of an API server."""

    git_version: str
    """The full version, such as ``v1.36.3``.  Some distributions add a suffix."""
    major: str
    """The major version, such as ``1``."""
    minor: str
    """The minor version, such as ``36``, or ``36+`` on some distributions."""
    platform: str
    """The platform of the server, such as ``linux/amd64``."""


@final
@attrs.define(eq=False)
class Client(ClientWrites, ClientRequests, metaclass=NoPublicConstructor):
    """A client of one cluster, which :func:`open_client` opens.

    Any number of tasks may use the client at the same time.
    """

    _made_by: ClassVar[str] = "write `async with open_client() as client:`"
    config: ClusterConfig
    """The configuration of the cluster, with the server and the credentials."""
    _transport: Transport
    _opened: _Opened
    _known: KnownKinds | None = attrs.field(default=None, init=False)
    _applied_kinds: dict[tuple[str, str], type[KubernetesObject]] = attrs.field(factory=dict, init=False)

    if not TYPE_CHECKING:  # type checkers would accept every name
        __getattr__ = attribute_hints(**_HINTS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.server}>"

    @overload
    def api(self, kind: type[T], namespace: str | None = None, *, drop_managed_fields: bool = False) -> Api[T]: ...
    @overload
    def api(
        self, kind: str, namespace: str | None = None, *, drop_managed_fields: bool = False
    ) -> Api[KubernetesObject]: ...

    def api(
        self, kind: type[T] | str, namespace: str | None = None, *, drop_managed_fields: bool = False
    ) -> Api[T] | Api[KubernetesObject]:
        """Return the API of one kind, without sending a request.

        Args:
            kind: The class of the objects: a model such as ``Pod``, your own class with a ``__resource__``, or a class
                that :meth:`discover`, :func:`~trioformer.models.unstructured_kind` or
                :func:`~trioformer.models.metadata_kind` returns.  Instead of a class, you can pass the name of a
                built-in kind or of a kind that this client has discovered.  All names that kubectl accepts are valid,
                such as ``deploy``, ``deployments.apps`` or ``Lease.coordination``.  The objects then have the class
                that :meth:`discover` returns.
            namespace: The namespace, or None for all namespaces.
            drop_managed_fields: Whether to remove ``metadata.managedFields``, which is often half of an object, from
                the objects of lists and watches.

        Raises:
            TypeError: The class does not represent a Kubernetes kind.
            ValueError: The namespace is not valid, a namespace is given for a cluster-scoped kind, or the name of the
                kind is not valid.
            LookupError: The client does not know a kind with this name.  Call :meth:`discover` to look up the kind on
                the server.
        """
        if isinstance(kind, str):
            return self.api(self._kinds().find(kind), namespace, drop_managed_fields=drop_managed_fields)
        scan = scan_without_managed_fields if drop_managed_fields else scan_whole
        manager, protobuf = self._opened.field_manager, self._opened.options.protobuf
        return Api[T]._create(ApiRequests.of(self._transport, kind, namespace, scan, manager, protobuf=protobuf))

    def _api_of(self, obj: T) -> Api[T]:
        return self.api(type(obj))

    def impersonating(
        self,
        user: str,
        *,
        groups: Collection[str] = (),
        uid: str | None = None,
        extra: Mapping[str, Collection[str]] | None = None,
    ) -> Client:
        """Return a client that acts as another user, without sending a request.

        For example, list pods with the permissions of a tenant's service account::

            tenant = client.impersonating("system:serviceaccount:team-a:deployer")
            pods = await tenant.api(Pod, namespace="team-a").list()

        The user of this client must be allowed to ``impersonate`` the user and each group, UID and extra attribute.
        If this client already impersonates a user, the new user replaces that user.

        Args:
            user: The name of the user.
            groups: The groups of the user.  If no groups are given, the server adds the groups that it knows.
            uid: The UID of the user.
            extra: Extra attributes of the user.  The server converts the keys to lower case.

        Raises:
            ValueError: The name of the user is empty, or a value cannot be sent in a header.
            TypeError: A string was passed where a collection of strings is required.

        Ownership:
            The new client shares the connections, the rate limit, the observer and the warning handler of this client.
            When this client is closed, the new client is closed too.
        """
        impersonation = Impersonation(user=user, uid=uid, groups=groups, extra={} if extra is None else extra)
        transport = self._transport.impersonating(impersonation)
        return Client._create(attrs.evolve(self.config, impersonate=impersonation), transport, self._opened)

    @overload
    async def discover(self, kind: str, /) -> type[KubernetesObject]: ...
    @overload
    async def discover(self, kind: type[T], /) -> type[T]: ...
    @overload
    async def discover(self, api_version: str, kind: str) -> type[Unstructured]: ...

    async def discover(
        self, api_version: str | type[KubernetesObject], kind: str | None = None
    ) -> type[KubernetesObject]:
        """Look up a kind on the server, and return a class for objects of this kind.

        For example::

            Widget = await client.discover("widgets.example.com")       # any name that kubectl accepts
            Widget = await client.discover("example.com/v1", "Widget")  # by apiVersion and kind
            await client.discover(Website)                              # only checks that it is served

        If a name is given, all resources of the server are searched.  The client requests the resources once, and again
        for each unknown name.  At most ten such requests are sent in a burst, and then one per second. For a built-in
        kind, the result is its typed class, such as ``Deployment``.  For any other kind, the result is a class of
        :class:`~trioformer.models.Unstructured` objects. If several resources have the name, the first one in kubectl's
        order is used (see :class:`ApiResources`).

        If an apiVersion and a kind are given, only this version is searched, with one request per call.  The result is
        then always a class of ``Unstructured`` objects.

        After a kind has been discovered, :meth:`api` also accepts its name.

        Args:
            api_version: The apiVersion of the kind, such as ``apps/v1``.  If ``kind`` is omitted, pass a class, or a
                name such as ``deploy``, ``deployments.apps`` or ``Deployment.v1.apps``.
            kind: The name of the kind, such as ``Deployment``.

        Raises:
            NotFoundError: The server does not serve the version or the kind.  The message suggests similar kinds.
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not a resource list.
            LimitExceededError: A response exceeds a limit of the client.
            ConnectionFailedError: No complete response arrived.
            ValueError: The apiVersion or the name is not valid, or ``kind`` is empty.
            TypeError: The class does not represent a Kubernetes kind.
        """
        kinds = self._kinds()
        if not isinstance(api_version, str):
            await kinds.check_served(api_version)
            return api_version
        if kind is None:
            return await kinds.look_up(api_version)
        from ._discovery import discover_resource  # noqa: PLC0415  # most programs do not need it

        return kinds.remember(await discover_resource(self._transport, api_version, kind))

    async def api_resources(self) -> ApiResources:
        """Return all resources that the server serves, as ``kubectl api-resources`` does.

        Each call sends two requests.  The server must be Kubernetes 1.26 or newer. If an API group is unavailable, the
        call still succeeds, and ``failures`` of the result contains the reason.

        Raises:
            StatusError: The server rejected a request.
            UnexpectedResponseError: A response is not a discovery document.
            LimitExceededError: A response exceeds a limit of the client.
            ConnectionFailedError: No complete response arrived.
        """
        return await self._kinds().refresh()

    def _kinds(self) -> KnownKinds:
        if self._known is None:
            from ._known_kinds import KnownKinds  # noqa: PLC0415  # most programs refer to kinds by their classes

            self._known = KnownKinds(self._transport)
        return self._known

    async def version(self) -> VersionInfo:
        """Return the version of the server (``GET /version``).

        Raises:
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not a version object.
            LimitExceededError: The response exceeds a limit of the client.
            ConnectionFailedError: No complete response arrived.
        """
        where, problem = "GET /version", "not a version object"
        response = await self._transport.request("GET", "/version", where=where)
        check(response, method="GET", where=where)
        raise_failure(response, response.body, where=where)
        try:
            found: object = decode(response.body)
        except DecodeError as exc:
            raise unexpected_response(response, where, problem) from exc
        if not isinstance(found, dict) or "gitVersion" not in found:
            raise unexpected_response(response, where, problem)
        members = cast("dict[str, object]", found)
        git_version, major, minor, platform = (
            text if isinstance(text := members.get(name), str) else ""
            for name in ("gitVersion", "major", "minor", "platform")
        )
        return VersionInfo(git_version=git_version, major=major, minor=minor, platform=platform)


@opened_by("client", "async with open_client() as client:")
async def open_client(
    config: ClusterConfig | None = None,
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    overrides: ConfigOverrides | None = None,
    http_transport: httpx.AsyncBaseTransport | None = None,
    field_manager: str | None = None,
    rate_limiter: RequestRateLimiter | None = None,
    observer: RequestObserver | None = None,
    options: ClientOptions = DEFAULT_OPTIONS,
) -> AsyncGenerator[Client, None]:
    """Open a client of one cluster.

    For example::

        async with open_client() as client:
            pods = await client.api(Pod, namespace="default").list()

    Connections are opened on demand, and closed at the end of the block.  Requests after the block raise
    ``trio.ClosedResourceError``.

    Args:
        config: The configuration of the cluster. If None, :func:`~trioformer.kubeconfig.load_config` reads a
            kubeconfig or the pod's service account.
        kubeconfig: The path of the kubeconfig file.  A FIFO, such as a shell's ``<(…)``, is read once, in a thread.
        context: The name of the context in the kubeconfig.
        overrides: Values that override the kubeconfig, as kubectl options such as ``--server`` do.
        http_transport: A replacement for the network connections, such as the API server of :mod:`trioformer.testing`.
        field_manager: The field manager for writes of this client, such as the name of the controller. The name must
            consist of 1 to 128 printable characters.  A call may pass another field manager.  If None, the server uses
            the beginning of the ``User-Agent``, and each call to :meth:`Api.apply` must pass a field manager.
        rate_limiter: A limiter for the rate of requests, such as ``TokenBucketRateLimiter(qps=5, burst=10)``.  Several
            clients may share a limiter.  Watches are not limited.  By default, the client does not limit requests, and
            relies on the server's API Priority and Fairness.  This corresponds to a QPS of -1 in client-go.
        observer: An object that is notified of each request, for example to collect metrics.
        options: Options that few programs change, such as retries and limits.

    Raises:
        ConfigError: No valid configuration is found.  The message names the file and the key.
        RuntimeError: Trio is not running, for example because the program uses asyncio.
        ValueError: The argument ``config`` is given together with ``kubeconfig``, ``context`` or ``overrides``, or
            ``field_manager`` is not valid.
        TypeError: The argument ``config``, ``options``, ``http_transport``, ``rate_limiter`` or ``observer`` has the
            wrong type, or a method of ``observer`` is async.

    Ownership:
        No task is started, so exceptions from the block are not wrapped in an exception group.
        The ``http_transport`` belongs to the caller, and is not closed at the end of the block.
    """
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(_NO_TRIO)
    simulated = simulated_cluster.get()
    if simulated is not None and (config, kubeconfig, context, overrides, http_transport) == (None,) * 5:
        config, http_transport, options = simulated(options)
    if config is None:
        from ..kubeconfig import load_config  # noqa: PLC0415  # not needed for a configuration that is made in code

        load = partial(load_config, kubeconfig=kubeconfig, context=context, overrides=overrides)
        try:
            config = load()
        except ConfigError as exc:
            # A program in a pod does not read a kubeconfig, and does not import the modules that read it.
            from ..kubeconfig._internal import StreamError  # noqa: PLC0415

            if not isinstance(exc, StreamError):
                raise
            config = await trio.to_thread.run_sync(load, abandon_on_cancel=True)
    elif not isinstance(config, ClusterConfig):
        raise TypeError(f"config must be a ClusterConfig, not {describe(config)}; pass a file as kubeconfig=")
    elif kubeconfig is not None or context is not None or overrides is not None:
        raise ValueError("pass either config, or kubeconfig, context and overrides, not both")
    if not isinstance(options, ClientOptions):
        raise TypeError(f"options must be ClientOptions(...), not {describe(options)}")
    if rate_limiter is not None:
        if isinstance(rate_limiter, type) or not hasattr(rate_limiter, "wait"):
            what = "rate_limiter must be an object with an async wait()"
            raise TypeError(f"{what}, such as TokenBucketRateLimiter(qps=5, burst=10), not {describe(rate_limiter)}")
        check_async(rate_limiter.wait, "rate_limiter.wait", "async def wait(self)")
    if http_transport is not None:
        from httpx import AsyncBaseTransport  # noqa: PLC0415  # httpx is a tenth of a program's start

        if not isinstance(http_transport, AsyncBaseTransport):
            raise TypeError(f"http_transport must be an httpx.AsyncBaseTransport, not {describe(http_transport)}")
    if observer is not None:
        if isinstance(observer, type) or not isinstance(observer, RequestObserver):
            what = "observer must be an object with request_started() and request_ended()"
            raise TypeError(f"{what}, not {describe(observer)}")
        check_observer(observer, RequestObserver)
    if field_manager is not None:
        check_field_manager(field_manager)
    # A separate client must not log the same warnings again.
    options = attrs.evolve(options, warning_handler=options.warning_handler or WarningLog())
    opened = _Opened(http_transport, observer, options, field_manager)
    async with open_transport(
        config,
        http_transport=http_transport,
        rate_limiter=rate_limiter,
        observer=observer,
        options=options,
    ) as transport:
        yield Client._create(config, transport, opened)


def default_field_manager(client: Client) -> str | None:
    """Return the name of a client's field manager, or None if the client was opened without a field manager."""
    return client._opened.field_manager


@asynccontextmanager
async def open_separate_client(client: Client, *, purpose: str) -> AsyncGenerator[Client, None]:
    """Open another client of the same cluster. Its requests do not wait for requests of the first client.

    The new client has its own connections and no rate limit, but uses the same observer, limits, retries and warning
    handler. Both clients share their credentials, so a plugin that asks for a password asks only once.

    Args:
        client: The first client, which may be closed before the new client.
        purpose: A suffix for the ``User-Agent``, which distinguishes the two clients in the server's audit log.
    """
    given = client._opened.options
    agent = default_user_agent() if given.user_agent is None else given.user_agent
    opened = attrs.evolve(client._opened, options=attrs.evolve(given, user_agent=f"{agent}/{purpose}"))
    async with open_transport(
        client.config,
        http_transport=opened.http_transport,
        observer=opened.observer,
        options=opened.options,
        credentials=client._transport._credentials,
    ) as transport:
        yield Client._create(client.config, transport, opened)
