"""The API of one kind: read, write, list and watch objects."""

from __future__ import annotations

from typing import TypeVar, final

from ..models import KubernetesObject
from ._api_changes import ApiChanges
from ._api_subresources import ApiSubresources
from ._responses import server_version_in

T = TypeVar("T", bound=KubernetesObject)


@final
class Api(ApiChanges[T], ApiSubresources[T]):
    """The API of one kind, in one namespace or in all; made by :meth:`Client.api`.

    A request is sent again where that does no harm: when the server asks for it with ``Retry-After``, and when the
    connection fails, if it is a read or if nothing of it was sent; ``open_client(retries=0)`` turns that off.
    "Retries" in docs/howto/connect.rst has the table.
    The server may have executed a request that was cancelled, or that raised
    :class:`~trioformer.errors.ConnectionFailedError`.

    Every method that sends a request raises:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass is the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: no API server sends such a response
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded, or has too many levels
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing or not valid, or is not that of the object

    Attributes:
        kind: The model.
        resource: The resource of the kind.
        namespace: The namespace; None for all namespaces.
    """

    __slots__ = ()

    async def server_version(self) -> tuple[int, int] | None:
        """Return the major and minor version of the server, such as ``(1, 36)``; None if it has no valid version.

        It is requested once for each client, and kept.
        """
        return await self._transport.server_version(server_version_in)

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be sent again after a :class:`~trioformer.errors.ConnectionFailedError`.

        First until the given time, or until a request of this client has a response, and then for a turn: all users of
        the client go one after another, five a second while connections fail and 46 a second otherwise.

        Args:
            until: A time of trio's clock.
        """
        await self._transport.health.wait_to_retry(until)
