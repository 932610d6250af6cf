"""The methods of a :class:`Client` for requests to any path, and for the health of the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import TYPE_CHECKING

from .._util import opened_by
from ..transport._internal import Transport, open_http_client

if TYPE_CHECKING:
    import httpx

    from ._raw import Health, QueryParams, RawResponse, RawStream, RequestBody


class ClientRequests:
    """The methods for requests to any path; a base of :class:`Client`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _transport: Transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: QueryParams | None = None,
        body: RequestBody | None = None,
        content_type: str | None = None,
        accept: str | None = None,
    ) -> RawResponse:
        """Send a request to any path of the server, and return the successful response.

        For example::

            usage = (await client.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes")).json()

        Credentials, retries and the rate limit are the same as for other requests.

        Args:
            method: Such as ``GET``.
            path: The path, quoted, with its leading slash: ``/version``.
            params: The query.
            body: The body: bytes, text, or an object to send as JSON.
            content_type: The media type of the body; None for JSON.
            accept: The accepted media types of the response; None for any, preferably JSON.

        Raises:
            StatusError: The server rejected the request; the subclass is the reason.
            UnexpectedResponseError: The response is a redirect.
            LimitExceededError: The response is longer than ``Limits.object_bytes``; call :meth:`stream` instead.
            ConnectionFailedError: No complete response arrived.
            ValueError: The method or the path is not valid.
            TypeError: The body has another type.
        """
        from . import _raw  # noqa: PLC0415  # most programs never send such a request

        return await _raw.request(
            self._transport, method, path, params=params, body=body, content_type=content_type, accept=accept
        )

    @opened_by("stream", "async with client.stream(method, path) as stream:")
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: QueryParams | None = None,
        body: RequestBody | None = None,
        content_type: str | None = None,
        accept: str | None = None,
        endless: bool = False,
    ) -> AsyncGenerator[RawStream, None]:
        """Send a request to any path of the server, and receive the body of the response while it arrives.

        For example, the log of a pod::

            path, params = "/api/v1/namespaces/default/pods/web-0/log", {"follow": True}
            async with client.stream("GET", path, params=params, endless=True) as log:
                async for line in log.lines():
                    print(line)

        If ``endless``, the body may be silent for any time, as during a watch.  The other arguments are the same
        as for :meth:`request`.

        Raises:
            StatusError: The server rejected the request; the subclass is the reason.
            UnexpectedResponseError: The response is a redirect.
            ConnectionFailedError: No response arrived, or the body ended early.
            ValueError: The method or the path is not valid.
            TypeError: The body has another type.

        Ownership:
            No task is started, so exceptions of the block are not wrapped in a group.
            The end of the block closes the connection, unless the body has ended.
        """
        from . import _raw  # noqa: PLC0415  # as in request()

        async with _raw.stream(
            self._transport,
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            accept=accept,
            endless=endless,
        ) as received:
            yield received

    def http(self) -> httpx.AsyncClient:
        """Return an httpx client for this cluster, for requests without a typed call and for libraries that need one.

        For example, get the metrics of a service through the API server::

            async with client.http() as http:
                response = await http.get("/api/v1/namespaces/default/services/web:8080/proxy/metrics")

        Its requests use the connections, the credentials, the proxy, the retries and the rate limit of this client.
        Paths are relative to the server's URL.  An ``Authorization`` header of a request replaces the credentials.
        The httpx client ignores cookies and environment variables.
        Redirects are not followed; ``follow_redirects=True`` follows redirects to the same server.

        Only the ``read`` timeout of a request is used: seconds without a byte of the response, 90 by default; None for
        streams that may be silent.

        Raises:
            httpx.UnsupportedProtocol: A request is for another server, possibly after a redirect; it is not sent.
            httpx.TransportError: A complete response did not arrive, or a plugin did not return a credential.

        Ownership:
            The connections belong to this client.  Closing the httpx client does not close them; closing this client
            does.  Close each response, as always with httpx: leave ``async with http.stream(...)``.
        """
        return open_http_client(self._transport)

    async def health(self, endpoint: str = "readyz", *, exclude: Collection[str] = ()) -> Health:
        """Request a health endpoint of the server: ``readyz``, ``livez`` or ``healthz``, or a check: ``readyz/etcd``.

        If the server is not healthy, no error is raised: ``is_ok`` is false, and ``failed`` names the failed checks.

        Args:
            endpoint: The endpoint.
            exclude: Checks to skip, such as ``etcd``.

        Raises:
            NotFoundError: The check does not exist.
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not from a health endpoint.
            ConnectionFailedError: No complete response arrived.
            ValueError: It is not a health endpoint.
        """
        from . import _raw  # noqa: PLC0415  # as in request()

        return await _raw.health(self._transport, endpoint, exclude)
