"""Conversions of objects, dicts, stored states and errors for the direct API of :class:`APIServer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar, overload

from ..errors import StatusError
from ..models import KubernetesObject, PartialObjectMetadata, ResourceInfo, resource_of
from ..models._internal import decode, dumps, encode_for_server, make_object, metadata_only
from ._serving._rendering import object_json
from ._storage._kinds import Kinds, ServedKind
from ._storage._status import APIStatusError, status_error
from ._storage._storage import JSONObject, Stored

K = TypeVar("K", bound=KubernetesObject)
Kind: TypeAlias = type[KubernetesObject] | ResourceInfo | str
"""A kind, as a class, a :class:`ResourceInfo`, or a plural such as ``pods`` or ``deployments.apps``."""

_NOT_SERVED = "is not served; call register() or create its CustomResourceDefinition first"


def find_kind(kinds: Kinds, kind: Kind) -> ServedKind:
    """Return the served kind for a class, a :class:`ResourceInfo` or the name of a resource.

    Raises:
        APIStatusError: The kind is not served (404) or not stored (405).
        TypeError: The class is not a Kubernetes kind.
    """
    if isinstance(kind, str):
        served, name = kinds.find_resource(kind), kind
    else:
        info = kind if isinstance(kind, ResourceInfo) else resource_of(kind)
        served, name = kinds.find(info.group, info.version, info.plural), str(info)
    return _stored(served, name)


def _stored(served: ServedKind | None, name: str) -> ServedKind:
    if served is None:
        raise status_error(404, message=f"{name} {_NOT_SERVED}")
    if not served.is_stored:
        raise status_error(405, message=f"{name} is not stored; send the request through a client")
    if served.conversion_webhook is not None and served.info.version != served.storage_version:
        problem = f"a webhook converts it to {served.storage_version}; use this version, or send the request"
        raise status_error(405, message=f"{name} is not stored, because {problem} through a client")
    return served


def read_object(kinds: Kinds, obj: KubernetesObject | Mapping[str, object]) -> tuple[ServedKind, JSONObject]:
    """Return the kind of an object or a dict, and a copy of it as decoded JSON.

    Raises:
        APIStatusError: The kind is not served (404) or not stored (405).
        DecodeError: The object has too many levels.
    """
    given: JSONObject = decode(encode_for_server(obj) if isinstance(obj, KubernetesObject) else dumps(obj))
    api_version, kind = str(given.get("apiVersion")), str(given.get("kind"))
    return _stored(kinds.find_kind(api_version, kind), f"{api_version} {kind}"), given


def namespace_and_name(served: ServedKind, given: JSONObject) -> tuple[str, str]:
    """Return an object's namespace and name.  A missing namespace is replaced by ``default``."""
    metadata = given.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "default") if served.info.namespaced else ""
    return namespace, str(metadata.get("name") or "")


@overload
def convert_like(example: K | type[K], served: ServedKind, stored: Stored) -> K: ...
@overload
def convert_like(
    example: ResourceInfo | str | Mapping[str, object], served: ServedKind, stored: Stored
) -> dict[str, object]: ...


def convert_like(example: object, served: ServedKind, stored: Stored) -> KubernetesObject | dict[str, object]:
    """Convert a stored state to the class of ``example`` if that is a model or a model class, or else to a dict."""
    raw = object_json(served, stored)
    cls = example if isinstance(example, type) else type(example)
    if issubclass(cls, KubernetesObject):
        return make_object(cls, metadata_only(raw) if issubclass(cls, PartialObjectMetadata) else raw)
    obj: dict[str, object] = decode(raw)
    return obj


@contextmanager
def as_status_errors(where: str) -> Iterator[None]:
    """Convert the errors that the block raises to the exceptions that a client raises."""
    try:
        yield
    except APIStatusError as error:
        raise StatusError.from_status(error.status, where=where) from error
