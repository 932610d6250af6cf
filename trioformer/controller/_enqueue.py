"""Enqueue functions return the requests for an object that changed.

They are called with the old and the new state of an update, so that both the former and the new owner are reconciled.

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
"""Returns the requests for a state of an object.  It must be quick, and depend only on that state."""


def request_for_object(obj: KubernetesObject) -> tuple[Request, ...]:
    """Return the request for the object itself."""
    return (Request.of(obj),)


def request_for_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Return an enqueue function for an object's controller.

    Args:
        kind: The controller's class.  Its group and kind must match; the version may differ.
    """
    return _owners(kind, only_controller=True)


def request_for_any_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Return an enqueue function for all owners of a kind.

    Args:
        kind: The owners' class.  Its group and kind must match; the version may differ.
    """
    return _owners(kind, only_controller=False)


def _owners(kind: type[KubernetesObject], *, only_controller: bool) -> Enqueue[KubernetesObject]:
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
    """Return an enqueue function that looks up the objects to reconcile in an index of another informer.

    For example, index Deployments by the ConfigMaps that they mount, to reconcile them when a ConfigMap changes.
    The same controller should also watch that informer, so that its cache has synced before the first event.

    Args:
        informer: The informer with the index.
        index: The index's name.
        value: Returns the index value for an object that changed; by default the object's key.

    The function raises:
        CacheNotSyncedError: The informer's cache has not synced.
        IndexerError: The informer has no such index.
    """

    def requests(obj: T) -> tuple[Request, ...]:
        return tuple(map(Request.parse, informer.lister.index_keys(index, value(obj))))

    return requests
