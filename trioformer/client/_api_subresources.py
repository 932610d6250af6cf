"""The methods of an :class:`Api` for subresources that have objects of their own."""

from __future__ import annotations

from typing import TypeVar

from ..models import KubernetesObject, Model, encode
from ._api_requests import ApiRequests
from ._paths import ObjectName
from ._subresources import body_in, with_name
from ._wire_format import JSON

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)


class ApiSubresources(ApiRequests[T]):
    """The methods for subresources; a base of :class:`Api`, which describes their errors."""

    __slots__ = ()

    async def create_subresource(
        self, name: str | ObjectName, subresource: str, body: M, *, namespace: str | None = None
    ) -> M:
        """Send an object to a subresource that acts on the object of this name, and return the response.

        ``await pods.create_subresource("web-0", "eviction", Eviction())`` evicts a pod, if its disruption budgets allow
        it.
        Others are ``binding`` of pods, with a Binding, and ``token`` of service accounts, with a TokenRequest.

        Args:
            name: The name of the object; or what has one: a request of a controller, or the object itself.
            subresource: The name of the subresource.
            body: What to send; if its metadata has no name, it is sent with ``name``.
            namespace: The namespace of the object; None for that of ``name``, or of this API.

        Returns:
            What the server responds, an object of the same class; ``body`` as it was sent if the response is a Status.

        Raises:
            NotFoundError: There is no object of this name, or the kind has no such subresource.
            ConflictError: A precondition does not hold, or the pod is bound already.
            TooManyRequestsError: A disruption budget does not allow the eviction now.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("create", name=name, namespace=namespace, subresource=subresource)
        path = self._paths.object(name, namespace=namespace, subresource=subresource)
        body = with_name(body, name)
        sent = await self._send("POST", path, where, encode(body), accept=JSON)
        return body_in(sent, body, namespace, where=where)
