"""Responses of another kind than the API: subresources, and a Status if nothing is stored.

A subresource such as ``status`` has objects of the API's own kind.
Others have their own kind of object: ``scale`` a Scale, ``token`` a TokenRequest.
``binding`` and ``eviction`` act and store nothing; the server responds with a Status, as for a Binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

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
"""A subresource with objects of the kind itself."""

_OWN = ("approval", "ephemeralcontainers", "finalize", "resize", "status")


def has_own_kind(subresource: str) -> bool:
    """Return whether the objects of a subresource are of the kind itself."""
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
    """Make the object in a response of a subresource, whatever its kind.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is not an object, or not a Scale for ``scale``.
        DecodeError: It is an object that cannot be decoded.
    """
    found = _kind_of(response)
    if found in ("", *wire_format.names):
        return object_in(response, wire_format, method=method, where=where)
    check(response, method=method, where=where)
    # Imported when a Scale arrives: most programs never receive one.
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
    """Make the object in the response to a subresource's request; if the server sends a Status, return the sent one.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is neither an object of the sent one's class nor a Status.
        DecodeError: It is an object of this class that cannot be decoded.
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
        raise unexpected_response(response, where, f"{shown_kind(found)}, not a {expected}", method=method)
    try:
        text_in(response.body)  # raises this Python version's error for too many levels
        return from_json(cls, response.body)
    except (ValueError, RecursionError) as exc:
        raise undecodable(exc, response, where, expected, is_ours=found == expected, method=method) from exc


def with_name(body: M, name: str) -> M:
    """Add the name of the object to the body; the server compares it with the name in the URL."""
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
    """Return whether the response is a Status of a success (client-go ``Result.Into``).

    Raises:
        StatusError: It is a Status of a failure.
    """
    if _kind_of(response) != "Status":
        return False
    raise_failure(response, response.body, where=where)
    return True
