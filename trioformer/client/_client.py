"""A client of one cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast, final, overload

import attrs
import httpx
import trio

from .._suggestions import attribute_hints, check_async, check_observer, describe
from .._util import NoPublicConstructor, opened_by
from ..errors import ConfigError, DecodeError
from ..kubeconfig import ClusterConfig, ConfigOverrides, Impersonation, load_config
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
    "open_client() requires trio; start the program with trioformer.run(main), or an interactive prompt with "
    "`python -m trio`"
)


@final
@attrs.frozen
class _Opened:
    """The arguments of :func:`open_client` that a separate client shares."""

    http_transport: httpx.AsyncBaseTransport | None
    observer: RequestObserver | None
    options: ClientOptions
    field_manager: str | None


@final
@attrs.frozen(kw_only=True)
class VersionInfo:
    """The version of an API server."""

    git_version: str
    """Such as ``v1.36.3``; some distributions add a suffix."""
    major: str
    """Such as ``1``."""
    minor: str
    """Such as ``36``; on some distributions ``36+``."""
    platform: str
    """Such as ``linux/amd64``."""


@final
@attrs.define(eq=False)
class Client(ClientWrites, ClientRequests, metaclass=NoPublicConstructor):
    """A client of one cluster, opened by :func:`open_client`.

    Any number of tasks may use it at the same time.
    """

    _made_by: ClassVar[str] = "write `async with open_client() as client:`"
    config: ClusterConfig
    """The server and the credentials."""
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
            kind: A model, such as ``Pod``, your own class with a ``__resource__``, or a class that :meth:`discover`,
                :func:`~trioformer.models.unstructured_kind` or :func:`~trioformer.models.metadata_kind` returns.
                Or a name as for kubectl, such as ``deploy``, ``deployments.apps`` or ``Lease.coordination``, of a kind
                that is built in or that this client has discovered; it stands for the class that :meth:`discover`
                returns.
            namespace: The namespace; None for all namespaces.
            drop_managed_fields: Remove ``metadata.managedFields``, often half of an object, from lists and watches.

        Raises:
            TypeError: ``kind`` is not a kind.
            ValueError: The namespace is not valid, the kind is not namespaced, or the name of the kind is not valid.
            LookupError: The client does not know the name; call :meth:`discover` to look it up on the server.
        """
        if isinstance(kind, str):
            return self.api(self._kinds().find(kind), namespace, drop_managed_fields=drop_managed_fields)
        scan = scan_without_managed_fields if drop_managed_fields else scan_whole
        return Api[T]._create(ApiRequests.of(self._transport, kind, namespace, scan, self._opened.field_manager))

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
        If this client already impersonates a user, the new one replaces it.

        Args:
            user: The name of the user.
            groups: The groups of the user; if empty, the server adds the groups that it knows.
            uid: The UID of the user.
            extra: Further attributes; the server makes their keys lower-case.

        Raises:
            ValueError: The user is empty, or a value cannot be sent in a header.
            TypeError: A string is given instead of a collection of strings.

        Ownership:
            The new client shares the connections, rate limit, observer and warning handler of this client, and is
            closed with it.
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
        """Look up a kind on the server, and return a class for its objects.

        For example::

            Widget = await client.discover("widgets.example.com")       # any name that kubectl accepts
            Widget = await client.discover("example.com/v1", "Widget")  # by apiVersion and kind
            await client.discover(Website)                              # only checks that it is served

        A name is searched among all resources of the server.  They are requested once, and again for each unknown name:
        up to ten times at once, then once a second; further calls wait.
        The class of a built-in kind is the typed one, such as ``Deployment``; other kinds get a class of
        :class:`~trioformer.models.Unstructured` objects.
        If several resources have the name, kubectl's order decides; see :class:`ApiResources`.

        With an apiVersion and a kind, only that version is searched, with one request per call, and the class is always
        ``Unstructured``.

        Afterwards, :meth:`api` accepts the name of a discovered kind.

        Args:
            api_version: Such as ``apps/v1``; without ``kind``, a name such as ``deploy``, ``deployments.apps`` or
                ``Deployment.v1.apps``, or a class.
            kind: Such as ``Deployment``.

        Raises:
            NotFoundError: The server does not serve the version or the kind; the message names similar kinds.
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not a resource list.
            LimitExceededError: A response is too long.
            ConnectionFailedError: No complete response arrived.
            ValueError: ``api_version`` or the name is not valid, or ``kind`` is empty.
            TypeError: The class is not a kind.
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
        """Return all resources that the server serves, as ``kubectl api-resources`` lists them.

        Each call sends two requests.  The server must be Kubernetes 1.26 or newer.
        If a group is down, the call still succeeds, and the result's ``failures`` has the reason.

        Raises:
            StatusError: The server rejected the requests.
            UnexpectedResponseError: A response is not a discovery document.
            LimitExceededError: A response is too long.
            ConnectionFailedError: No complete response arrived.
        """
        return await self._kinds().refresh()

    def _kinds(self) -> KnownKinds:
        if self._known is None:
            from ._known_kinds import KnownKinds  # noqa: PLC0415  # most programs name kinds by classes

            self._known = KnownKinds(self._transport)
        return self._known

    async def version(self) -> VersionInfo:
        """Get the version of the server (``GET /version``).

        Raises:
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not a version.
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

    Connections are opened on demand and closed at the end of the block.  After that, the client raises
    ``trio.ClosedResourceError``.

    Args:
        config: The cluster; None to call :func:`~trioformer.kubeconfig.load_config`, which reads a kubeconfig or the
            pod's service account.
        kubeconfig: The kubeconfig file; a FIFO, such as a shell's ``<(…)``, is read once, in a thread.
        context: The context in the kubeconfig.
        overrides: Values that replace values of the kubeconfig, as kubectl's options such as ``--server`` do.
        http_transport: Replaces the network connections, for example with the API server of :mod:`trioformer.testing`.
        field_manager: The manager in ``managedFields`` of the fields that this client writes, such as the name of the
            controller: at most 128 printable characters.  A call may pass another one.  None for the beginning of the
            ``User-Agent``; then :meth:`Api.apply` requires its own field manager.
        rate_limiter: Decides when requests and lists are sent, such as ``TokenBucketRateLimiter(qps=5, burst=10)``;
            several clients may share one, and watches never wait.  None (-1 in client-go) to rely on the server's
            priority and fairness.
        observer: Observes each request, for metrics.
        options: Rarely changed options, such as retries and limits.

    Raises:
        ConfigError: There is no valid configuration; the message names the file and the key.
        RuntimeError: Trio is not running, for example because the program uses asyncio.
        ValueError: ``config`` is given together with ``kubeconfig``, ``context`` or ``overrides``, or
            ``field_manager`` is not valid.
        TypeError: ``config``, ``options``, ``http_transport``, ``rate_limiter`` or ``observer`` is not one.

    Ownership:
        No task is started, so exceptions of the block are not wrapped in a group.
        ``http_transport`` belongs to the caller and is not closed.
    """
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError(_NO_TRIO)
    if config is None:
        load = partial(load_config, kubeconfig=kubeconfig, context=context, overrides=overrides)
        try:
            config = load()
        except ConfigError as exc:
            # A program in a pod does not read a kubeconfig, and does not import the modules for it.
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
    if not isinstance(http_transport, httpx.AsyncBaseTransport | None):
        raise TypeError(f"http_transport must be an httpx.AsyncBaseTransport, not {describe(http_transport)}")
    if observer is not None:
        if isinstance(observer, type) or not hasattr(observer, "ended"):
            raise TypeError(f"observer must be an object with the method ended(), not {describe(observer)}")
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
    """Return the manager of the fields that the client writes; None if it was opened without one."""
    return client._opened.field_manager


@asynccontextmanager
async def open_separate_client(client: Client, *, purpose: str) -> AsyncGenerator[Client, None]:
    """Open a client of the same cluster with requests that do not wait behind the other client's.

    It has its own connections and no rate limit, but the same observer, limits, retries and warning handler.
    The credentials come from the same source: a plugin that asks the user for a password asks once.

    Args:
        client: The other client; it may be closed before this one.
        purpose: Appended to the ``User-Agent``, to distinguish the two clients in the server's audit log.
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
