"""A connection to one cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar, cast, final

import attrs
import httpx

from .._util import NoPublicConstructor
from ..errors import DecodeError, UnexpectedResponseError
from ..kubeconfig import ClusterConfig, load_config
from ..models import KubernetesObject, Unstructured, unstructured_kind
from ..models._internal import decode, scan_whole, scan_without_managed_fields
from ..transport import BURST, RequestObserver
from ..transport._internal import Transport, excerpt, open_transport
from ._api import Api
from ._discovery import discover_resource
from ._responses import check

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(kw_only=True)
class VersionInfo:
    """What a server says of its own version."""

    git_version: str
    """Such as ``v1.36.3``; may end with a distribution's own suffix."""
    major: str
    """Such as ``1``."""
    minor: str
    """Such as ``36``, on some distributions ``36+``."""
    platform: str
    """Such as ``linux/amd64``."""


@final
class Client(metaclass=NoPublicConstructor):
    """A connection to one cluster; made by :func:`open_client`, which also closes it.

    Any number of tasks may use it at once.

    Attributes:
        config: Where the server is, and who asks.
    """

    __slots__ = ("_transport", "config")

    def __init__(self, config: ClusterConfig, transport: Transport) -> None:
        self.config: ClusterConfig = config
        self._transport = transport

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.server}>"

    def api(self, kind: type[T], namespace: str | None = None, *, drop_managed_fields: bool = False) -> Api[T]:
        """Give access to the objects of one kind; sends nothing.

        Args:
            kind: A model, such as ``Pod``, a class of your own with a ``__resource__``, or one that :meth:`discover`,
                :func:`~trioformer.models.unstructured_kind` or :func:`~trioformer.models.metadata_kind` has made.
            namespace: The only namespace to deal with; None for all of them.
            drop_managed_fields: Cut ``metadata.managedFields`` out of what is listed and watched; often half of it.

        Raises:
            TypeError: ``kind`` is no kind.
            ValueError: The namespace cannot be one, or the kind belongs to none.
        """
        scan = scan_without_managed_fields if drop_managed_fields else scan_whole
        return Api[T]._create(self._transport, kind, namespace, scan)

    async def discover(self, api_version: str, kind: str) -> type[Unstructured]:
        """Ask the server where the objects of a kind live, and make a kind of it.

        For example::

            Widget = await client.discover("example.com/v1", "Widget")
            widgets = await client.api(Widget, namespace="default").list()

        One request is sent each time: keep the class.

        Args:
            api_version: Such as ``apps/v1``.
            kind: Such as ``Deployment``.

        Raises:
            NotFoundError: There is no such version, or no such kind in it; names what there is.
            StatusError: The server refused.
            UnexpectedResponseError: The answer is no list of resources.
            ConnectionFailedError: There was no answer.
            ValueError: ``api_version`` cannot be one, or ``kind`` is empty.
        """
        return unstructured_kind(await discover_resource(self._transport, api_version, kind))

    async def version(self) -> VersionInfo:
        """Ask the server for its version (``GET /version``).

        Raises:
            StatusError: The server refused.
            UnexpectedResponseError: The answer is no version.
            ConnectionFailedError: There was no answer.
        """
        where = "get the server's version"
        answer = await self._transport.request("GET", "/version")
        check(answer, method="GET", where=where)
        try:
            found: object = decode(answer.body)
        except DecodeError as exc:
            raise _no_version(answer.code, answer.body, where) from exc
        if not isinstance(found, dict) or "gitVersion" not in found:
            raise _no_version(answer.code, answer.body, where)
        members = cast("dict[str, object]", found)
        git_version, major, minor, platform = (
            str(members.get(name, "")) for name in ("gitVersion", "major", "minor", "platform")
        )
        return VersionInfo(git_version=git_version, major=major, minor=minor, platform=platform)


def _no_version(code: int, body: bytes, where: str) -> UnexpectedResponseError:
    return UnexpectedResponseError(f"{where}: the answer (HTTP {code}) is none: {excerpt(body)}", code=code)


@asynccontextmanager
async def open_client(
    config: ClusterConfig | None = None,
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    http_transport: httpx.AsyncBaseTransport | None = None,
    user_agent: str | None = None,
    qps: float | None = None,
    burst: int = BURST,
    observer: RequestObserver | None = None,
) -> AsyncGenerator[Client, None]:
    """Open a client of one cluster.

    For example::

        async with open_client() as client:
            pods = await client.api(Pod, namespace="default").list()

    Connections are made when they are needed, and closed when the block is left; using the client after that raises
    ``trio.ClosedResourceError``.

    Args:
        config: The cluster; None looks for a kubeconfig, then for the pod's service account, as
            :func:`~trioformer.kubeconfig.load_config` describes.
        kubeconfig: The kubeconfig file to use.
        context: The context in it to use.
        http_transport: Carries the requests instead of network connections, such as the API server of
            :mod:`trioformer.testing`.
        user_agent: What to call oneself; by default the library and its version.
        qps: How many requests and lists to send a second, on average; further ones wait, watches never.  None, which
            client-go spells -1, leaves it to the server's priority and fairness.
        burst: How many may go at once after a pause.
        observer: Is told of each request, for metrics.

    Raises:
        ConfigError: There is no usable configuration; names file and key.
        ValueError: ``config`` is given together with ``kubeconfig`` or ``context``; or ``qps`` or ``burst`` is too
            small.

    Ownership:
        No task is started, so what the block raises leaves it as it is.
        ``http_transport`` stays the caller's and is not closed.
    """
    if config is None:
        config = load_config(kubeconfig=kubeconfig, context=context)
    elif kubeconfig is not None or context is not None:
        raise ValueError("either a config, or a kubeconfig and a context to make one of, not both")
    async with open_transport(
        config, http_transport=http_transport, user_agent=user_agent, qps=qps, burst=burst, observer=observer
    ) as transport:
        yield Client._create(config, transport)
