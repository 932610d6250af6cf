"""From an object that changed to the requests that it concerns.

Such a function is given each state of an object that a controller's handler is told of, the old and the new one, so
that whoever lost something hears of it as well as who got it.  Any function from an object to requests will do.

Source: controller-runtime ``pkg/handler`` (``enqueue.go``, ``enqueue_owner.go``, ``enqueue_mapped.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from ..cache import SharedInformer
from ..models import KubernetesObject, OwnerReference, ResourceInfo, key_of, resource_of
from ._request import Request

T = TypeVar("T", bound=KubernetesObject)
O = TypeVar("O", bound=KubernetesObject)  # noqa: E741  # an object of another kind than T

Enqueue: TypeAlias = Callable[[T], Iterable[Request]]
"""Given a state of an object, names what is to be reconciled; must be quick, and depend on that state alone."""


def request_for_object(obj: KubernetesObject) -> tuple[Request, ...]:
    """Name the object itself."""
    return (Request.of(obj),)


def request_for_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Make a function that names the object's controller: the one owner that is marked as such, if it is of this kind.

    Args:
        kind: The owner's class.  Group and kind must be the same, the version may be another.
    """
    return _owners(kind, only_controller=True)


def request_for_any_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Make a function that names every owner of this kind.

    Args:
        kind: The owner's class.  Group and kind must be the same, the version may be another.
    """
    return _owners(kind, only_controller=False)


def _owners(kind: type[KubernetesObject], *, only_controller: bool) -> Enqueue[KubernetesObject]:
    info = resource_of(kind)

    def owners(obj: KubernetesObject) -> tuple[Request, ...]:
        namespace = obj.namespace if info.namespaced else None
        if info.namespaced and namespace is None:
            return ()  # a cluster's object cannot belong to a namespace's: nobody knows which one
        return tuple(
            [
                Request(namespace, owner.name)
                for owner in obj.metadata.owner_references
                if (owner.controller or not only_controller) and _is_of(owner, info)
            ]
        )

    return owners


def _is_of(owner: OwnerReference, info: ResourceInfo) -> bool:
    return owner.kind == info.kind and owner.api_version.rpartition("/")[0] == info.group


def requests_by_index(
    informer: SharedInformer[O], index: str, *, value: Callable[[T], str] = key_of
) -> Callable[[T], tuple[Request, ...]]:
    """Make a function that names those objects of another informer that have a value in an index.

    With an index of what objects refer to it finds the referring ones, for example the Deployments that mount a
    ConfigMap that changed.
    The same controller should watch that informer: then its cache is filled before the first event is looked at.

    Args:
        informer: Where to look.
        index: The index's name.
        value: What to look for; by default the key of the object that changed.

    The function raises:
        CacheNotSyncedError: The informer's cache is not filled.
        IndexerError: There is no such index.
    """

    def found(obj: T) -> tuple[Request, ...]:
        return tuple(map(Request.parse, informer.lister.index_keys(index, value(obj))))

    return found
