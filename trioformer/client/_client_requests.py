"""The methods of :class:`Client` that send requests to any path or check the health of the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import TYPE_CHECKING

from .._util import opened_by
from ..transport._internal import Transport

if TYPE_CHECKING:
    import httpx

    from ._raw import Health, QueryParams, RawResponse, RawStream, RequestBody


class ClientRequests:
    """A base class of :class:`Client`, with methods that send requests to any path."""

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

        The credentials, the retries and the rate limit are the same as for other requests.

        Args:
            method: The HTTP method, such as ``GET``.
            path: The percent-encoded path with its leading slash, such as ``/version``.
            params: The query parameters.
            body: The body of the request: bytes, text, or an object to send as JSON.
            content_type: The media type of the body.  If None, the body is sent as JSON.
            accept: The media types to accept in the response.  If None, any type is accepted, and JSON is preferred.

        Raises:
            StatusError: The server rejected the request.  The subclass corresponds to the reason.
            UnexpectedResponseError: The response is a redirect.
            LimitExceededError: The response is longer than ``Limits.object_bytes``.  For such responses, call
                :meth:`stream`.
            ConnectionFailedError: No complete response arrived.
            ValueError: The method or the path is not valid.
            TypeError: The body has the wrong type.
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
        """Send a request to any path of the server, and open the body of the response as a stream.

        For example, print the log of a pod::

            path, params = "/api/v1/namespaces/default/pods/web-0/log", {"follow": True}
            async with client.stream("GET", path, params=params, endless=True) as log:
                async for line in log.lines():
                    print(line)

        If ``endless`` is true, the response may be silent for any length of time, as in a watch.  The other arguments
        are the same as for :meth:`request`.

        Raises:
            StatusError: The server rejected the request.  The subclass corresponds to the reason.
            UnexpectedResponseError: The response is a redirect.
            ConnectionFailedError: No response arrived, or the connection failed before the end of the body.
            ValueError: The method or the path is not valid.
            TypeError: The body has the wrong type.

        Ownership:
            No task is started, so exceptions from the block are not wrapped in an exception group. If the body has not
            been read completely, the connection is closed at the end of the block.
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
        """Return an httpx client for this cluster.

        Use the httpx client for requests that the other methods do not support, or for libraries that require such a
        client.

        For example, get the metrics of a service through the API server::

            async with client.http() as http:
                response = await http.get("/api/v1/namespaces/default/services/web:8080/proxy/metrics")

        Requests of the httpx client use the connections, the credentials, the proxy, the retries and the rate limit of
        this client. Paths are relative to the server's URL.  If a request has an ``Authorization`` header, this header
        replaces the client's credentials. The httpx client ignores cookies and environment variables. By default,
        redirects are not followed.  If ``follow_redirects=True`` is passed, redirects to the same server are followed.

        Of a request's timeouts, only ``read`` is used: the maximum time during which no byte of the response arrives.
        The default is 90 seconds.  For streams that may be silent for longer, pass None.

        Raises:
            httpx.UnsupportedProtocol: The URL of a request or a redirect is on another server.  The request is not
                sent.
            httpx.TransportError: No complete response arrived, or a plugin did not return a credential.

        Ownership:
            The connections belong to this client.  They stay open when the httpx client is closed, and are closed when
            this client is closed.  As usual with httpx, close each response, for example with an ``async with
            http.stream(...)`` block.
        """
        from ..transport._internal import open_http_client  # noqa: PLC0415  # imports httpx

        return open_http_client(self._transport)

    async def health(self, endpoint: str = "readyz", *, exclude: Collection[str] = ()) -> Health:
        """Check the health of the server.

        If the server is not healthy, no error is raised.  Instead, ``is_ok`` of the result is false, and ``failed``
        names the failed checks.

        Args:
            endpoint: The health endpoint: ``readyz``, ``livez``, ``healthz``, or a single check such as
                ``readyz/etcd``.
            exclude: The checks to skip, such as ``etcd``.

        Raises:
            NotFoundError: The check does not exist.
            StatusError: The server rejected the request.
            UnexpectedResponseError: The response is not from a health endpoint.
            ConnectionFailedError: No complete response arrived.
            ValueError: The argument is not a health endpoint.
        """
        from . import _raw  # noqa: PLC0415  # as in request()

        return await _raw.health(self._transport, endpoint, exclude)
