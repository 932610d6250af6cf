"""The API of one kind: read, write, list and watch objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, final

from .._suggestions import describe
from ..models import KubernetesObject
from ..models._internal import scan_whole
from ._api_changes import ApiChanges
from ._api_subresources import ApiSubresources

if TYPE_CHECKING:
    from ..models.core_v1 import Pod

T = TypeVar("T", bound=KubernetesObject)


@final
class Api(ApiChanges[T], ApiSubresources[T]):
    """The API of one kind, in one namespace or in all; made by :meth:`Client.api`.

    A request is retried where that is safe: if the server asks for it with ``Retry-After``, and if the connection fails
    during a read or before anything was sent.  ``open_client(retries=0)`` turns this off.
    "Retries" in docs/howto/connect.rst has the table.
    The server may have executed a request that was cancelled, or that raised
    :class:`~trioformer.errors.ConnectionFailedError`.

    Every method that sends a request raises:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass is the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: the response cannot be from an API server
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded, or has too many levels
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing or not valid, or differs from the object's

    Attributes:
        kind: The model.
        resource: The resource of the kind.
        namespace: The namespace; None for all namespaces.
    """

    __slots__ = ()

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be sent again after a :class:`~trioformer.errors.ConnectionFailedError`.

        Wait until the given time, or until a request of this client receives a response.  Then wait for a turn: the
        users of the client continue one after another, five a second while connections fail and 46 a second otherwise.

        Args:
            until: A time of trio's clock.
        """
        await self._transport.health.wait_to_retry(until)


def pods_beside(api: Api[T], namespace: str | None) -> Api[Pod]:
    """Return the API of the pods in a namespace, with the client of another API."""
    from ..models.core_v1 import Pod  # noqa: PLC0415  # most programs do not need it

    return Api[Pod]._create(api._transport, Pod, namespace, scan_whole)


def check_api(given: object, argument: str) -> None:
    """Check that an argument is an API; a common mistake is to pass a client or the name of a pod.

    Raises:
        TypeError: It is not an API.
    """
    if not isinstance(given, Api):
        raise TypeError(f"{argument} must be an Api, such as client.api(Pod, namespace=...), not {describe(given)}")
