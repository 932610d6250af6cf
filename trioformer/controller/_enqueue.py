"""Enqueue functions, which return the requests for a changed object.

For an update, an enqueue function is called with the old and the new state, so that the previous and the new owner are
both reconciled.

Source: controller-runtime ``pkg/handler`` (``enqueue.go``, ``enqueue_owner.go``, ``enqueue_mapped.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from ..cache import SharedInformer
from ..models import KubernetesObject, OwnerReference, ResourceInfo, key_of, resource_of
from ._request import Request

T = TypeVar("T", bound=KubernetesObject)
O = TypeVar("O", bound=KubernetesObject)  # noqa: E741  # another kind than T

Enqueue: TypeAlias = Callable[[T], Iterable[Request]]
"""A function that returns the requests for a state of an object.  The function must be fast, and its result must
depend only on this state."""


def request_for_object(obj: KubernetesObject) -> tuple[Request, ...]:
    """Return the request for the object itself."""
    return (Request.of(obj),)


def request_for_owner(kind: type[KubernetesObject], *, only_controller: bool = True) -> Enqueue[KubernetesObject]:
    """Return an enqueue function that requests the owner of an object.

    Args:
        kind: The class of the owner.  The group and kind of an owner reference must match, but its version may differ.
        only_controller: Whether to request only the controlling owner, and not all owners of this kind.
    """
    info = resource_of(kind)

    def owners(obj: KubernetesObject) -> tuple[Request, ...]:
        namespace = obj.namespace if info.namespaced else None
        if info.namespaced and namespace is None:
            return ()  # a cluster-scoped object cannot have an owner in a namespace
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
    """Return an enqueue function that requests objects from an index of another informer.

    For example, to reconcile Deployments when a ConfigMap changes, index the Deployments by the ConfigMaps that they
    mount. The controller should also watch the informer with the index, so that its cache has synced before the first
    event.

    Args:
        informer: The informer with the index.
        index: The name of the index.
        value: A function that returns the index value for a changed object.  The default returns the object's key.

    The function raises:
        CacheNotSyncedError: The cache of the informer has not synced.
        IndexerError: The informer has no index with this name.
    """

    def requests(obj: T) -> tuple[Request, ...]:
        return tuple(map(Request.parse, informer.lister.index_keys(index, value(obj))))

    return requests
