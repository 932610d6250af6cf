"""Responses with objects that are not of the API's kind: subresources, and Status responses to some writes.

The objects of a subresource such as ``status`` are of the API's own kind. Other subresources have their own kinds:
``scale`` has Scale, and ``token`` has TokenRequest. ``binding`` and ``eviction`` perform an action and store nothing,
so the server responds with a Status. It also does so when a Binding is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from .._suggestions import with_article
from ..models import (
    KubernetesObject,
    Model,
    ObjectMeta,
    ResourceInfo,
    Unstructured,
    evolve,
    from_json,
    resource_of,
)
from ..models._internal import scan_head
from ..transport._internal import Response
from .bodies._contents import shown_kind, text_in
from .bodies._responses import (
    check,
    made_by,
    object_in,
    object_of_another_kind,
    raise_failure,
    undecodable,
    unexpected_response,
)
from .bodies._wire_format import WireFormat

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)

OwnSubresource: TypeAlias = Literal["approval", "ephemeralcontainers", "finalize", "resize", "status"]
"""A subresource whose objects are of the same kind as its resource."""

_OWN = ("approval", "ephemeralcontainers", "finalize", "resize", "status")


def has_own_kind(subresource: str) -> bool:
    """Return whether the objects of a subresource are of the resource's kind."""
    return subresource in _OWN


def subresource_in(
    response: Response,
    wire_format: WireFormat[T],
    resource: ResourceInfo,
    subresource: str,
    *,
    method: str,
    where: str,
) -> T | Scale | Unstructured:
    """Return the object in the response of a subresource. The object may be of any kind.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is not an object, or the response of ``scale`` is not a Scale.
        DecodeError: The response is an object, but cannot be decoded.
    """
    found = _kind_of(response)
    if found in ("", *wire_format.names):
        return object_in(response, wire_format, method=method, where=where)
    check(response, method=method, where=where)
    # Import this late, because most programs never receive a Scale.
    from ..models.autoscaling_v1 import Scale  # noqa: PLC0415

    raise_failure(response, response.body, where=where)
    if subresource == "scale" and found != "Scale":
        raise unexpected_response(response, where, f"{shown_kind(found)}, not a Scale", method=method)
    try:
        head = scan_head(response.body)
        if found == "Scale":
            return from_json(Scale, response.body)
        return object_of_another_kind(response.body, found, resource, head)
    except ValueError as exc:
        if found == "Scale":
            raise undecodable(exc, response, where, found, is_ours=True, method=method) from exc
        raise unexpected_response(response, where, "not an object of a valid kind", method=method) from exc


def body_in(response: Response, sent: M, *, method: str, where: str) -> M:
    """Return the object in the response of a subresource, or the sent object if the response is a Status.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is neither a Status nor an object of the same class as the sent object.
        DecodeError: The response is an object of this class, but cannot be decoded.
    """
    check(response, method=method, where=where)
    if is_success(response, where):
        return sent
    cls = type(sent)
    expected = getattr(sent, "kind", cls.__name__)
    found = _kind_of(response)
    if found not in ("", expected):
        if isinstance(sent, Unstructured):
            return made_by(response, sent, resource_of(type(sent)), found, where)
        raise unexpected_response(response, where, f"{shown_kind(found)}, not {with_article(expected)}", method=method)
    try:
        text_in(response.body)  # raises this Python version's error for too many levels
        return from_json(cls, response.body)
    except (ValueError, RecursionError) as exc:
        raise undecodable(exc, response, where, expected, is_ours=found == expected, method=method) from exc


def with_name(body: M, name: str) -> M:
    """Return the body with this name in its metadata. A body that already has a name is returned unchanged.

    The server checks this name against the name in the URL.
    """
    metadata = getattr(body, "metadata", None)
    if not isinstance(metadata, ObjectMeta) or metadata.name:
        return body
    return evolve(body, metadata=metadata.evolve(name=name))  # type: ignore[call-arg]  # it has metadata


def _kind_of(response: Response) -> str:
    try:
        return text_in(response.body)
    except (ValueError, RecursionError):
        return ""  # object_in() and from_json() raise the error


def is_success(response: Response, where: str) -> bool:
    """Return whether the response is a Status of success (client-go ``Result.Into``).

    Raises:
        StatusError: The response is a Status of a failure.
    """
    if _kind_of(response) != "Status":
        return False
    raise_failure(response, response.body, where=where)
    return True
