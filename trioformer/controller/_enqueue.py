"""Enqueue functions: from an object that changed to the requests to add.

They are called with each state in a notification, the old and the new one, so that an object's former owner is
reconciled as well as its new one.  Any function from an object to requests can be used.

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
"""Returns the requests for a state of an object; must be quick, and depend on that state only."""


def request_for_object(obj: KubernetesObject) -> tuple[Request, ...]:
    """Return the request for the object itself."""
    return (Request.of(obj),)


def request_for_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Make a function that returns the request for an object's controller, if the controller is of a kind.

    Args:
        kind: The controller's class.  Group and kind must be equal; the version may differ.
    """
    return _owners(kind, only_controller=True)


def request_for_any_owner(kind: type[KubernetesObject]) -> Enqueue[KubernetesObject]:
    """Make a function that returns the requests for all of an object's owners of a kind.

    Args:
        kind: The owners' class.  Group and kind must be equal; the version may differ.
    """
    return _owners(kind, only_controller=False)


def _owners(kind: type[KubernetesObject], *, only_controller: bool) -> Enqueue[KubernetesObject]:
    info = resource_of(kind)

    def owners(obj: KubernetesObject) -> tuple[Request, ...]:
        namespace = obj.namespace if info.namespaced else None
        if info.namespaced and namespace is None:
            return ()  # the owner of a cluster-scoped object is not in a namespace: the reference names none
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
    """Make a function that returns requests for the objects that another informer has under an index value.

    An index of the objects' references finds the objects that refer to a changed one, for example the Deployments that
    mount a ConfigMap.
    The same controller should watch that informer, so that its cache has synced before the first event is processed.

    Args:
        informer: The informer with the index.
        index: The index's name.
        value: Returns the value for an object that changed; by default the object's key.

    The function raises:
        CacheNotSyncedError: The informer's cache has not synced.
        IndexerError: The informer has no such index.
    """

    def requests(obj: T) -> tuple[Request, ...]:
        return tuple(map(Request.parse, informer.lister.index_keys(index, value(obj))))

    return requests
