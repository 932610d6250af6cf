"""The test's own hand: classes or plain dicts in, the same out, and a client's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar, overload

from ..errors import StatusError
from ..models import KubernetesObject, PartialObjectMetadata, ResourceInfo, resource_of
from ..models._internal import decode, dumps, encode_for_server, make_object, metadata_only
from ._serving._rendering import full
from ._storage._kinds import Kinds, Served
from ._storage._status import RefusedError, refusal
from ._storage._storage import JSONObject, Stored

K = TypeVar("K", bound=KubernetesObject)
Kind: TypeAlias = type[KubernetesObject] | ResourceInfo | str
"""A kind: its class, where it lives, or its plural (``pods``, ``deployments.apps``)."""

_UNKNOWN = "is not served; call register() or create its CustomResourceDefinition first"


def find(kinds: Kinds, kind: Kind) -> Served:
    """Return a kind as it is served.

    Raises:
        RefusedError: 404: it is not.
        TypeError: The class is no kind.
    """
    if isinstance(kind, str):
        served, name = kinds.find_resource(kind), kind
    else:
        info = kind if isinstance(kind, ResourceInfo) else resource_of(kind)
        served, name = kinds.find(info.group, info.version, info.plural), str(info)
    if served is None:
        raise refusal(404, message=f"{name} {_UNKNOWN}")
    return served


def read(kinds: Kinds, obj: KubernetesObject | Mapping[str, object]) -> tuple[Served, JSONObject]:
    """Copy an object of either flavour, and find its kind.

    Raises:
        RefusedError: 404: the kind is not served.
    """
    given: JSONObject = decode(encode_for_server(obj) if isinstance(obj, KubernetesObject) else dumps(obj))
    api_version, kind = str(given.get("apiVersion")), str(given.get("kind"))
    served = kinds.find_kind(api_version, kind)
    if served is None:
        raise refusal(404, message=f"{api_version} {kind} {_UNKNOWN}")
    return served, given


def place_of(served: Served, given: JSONObject) -> tuple[str, str]:
    """Return the namespace and name that an object asks for; ``default`` when it names no namespace."""
    metadata = given.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "default") if served.info.namespaced else ""
    return namespace, str(metadata.get("name") or "")


@overload
def like(flavour: K | type[K], served: Served, stored: Stored) -> K: ...
@overload
def like(flavour: ResourceInfo | str | Mapping[str, object], served: Served, stored: Stored) -> dict[str, object]: ...


def like(flavour: object, served: Served, stored: Stored) -> KubernetesObject | dict[str, object]:
    """Return a state in the flavour of what was given: an object of the class, or a dict."""
    raw = full(served, stored)
    kind = flavour if isinstance(flavour, type) else type(flavour)
    if issubclass(kind, KubernetesObject):
        return make_object(kind, metadata_only(raw) if issubclass(kind, PartialObjectMetadata) else raw)
    obj: dict[str, object] = decode(raw)
    return obj


@contextmanager
def as_status_errors(where: str) -> Iterator[None]:
    """Raise what is refused inside the block as a client would."""
    try:
        yield
    except RefusedError as refused:
        raise StatusError.from_status(refused.status, where=where) from refused
