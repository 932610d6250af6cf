"""Controller references, and the adoption and release of objects by a selector.

An object has at most one controlling owner: the owner reference to it has ``controller: true``.  Some controllers
find their objects by a selector.  Such controllers adopt matching objects that have no controller, and release owned
objects that no longer match. Objects of other controllers are not changed.

Source: kube-controller-manager ``pkg/controller/controller_ref_manager.go``; apimachinery
``pkg/apis/meta/v1/controller_ref.go``; the design proposal "ControllerRef".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, final

import attrs
import trio

from .._text import one_line
from ..client import Client
from ..client._internal import LabelSelectorLike
from ..errors import InvalidError, NotFoundError, StatusError, TrioformerError
from ..models import KubernetesObject, LabelSelector, OwnerReference, evolve, key_of, resource_of

T = TypeVar("T", bound=KubernetesObject)


@final
class OwnerGoneError(TrioformerError):
    """The owner cannot adopt objects, because it was deleted, was replaced, or is being deleted.

    When ``reconcile`` raises this error, no other action is necessary: the request is added again when the cache
    receives the owner's event.
    """


@final
class AlreadyOwnedError(TrioformerError):
    """The object already has another controller (controller-runtime ``AlreadyOwnedError``)."""


def controller_of(obj: KubernetesObject) -> OwnerReference | None:
    """Return the owner reference to the object's controller, or None if the object has no controller."""
    return next((owner for owner in obj.metadata.owner_references if owner.controller), None)


def is_controlled_by(obj: KubernetesObject, owner: KubernetesObject) -> bool:
    """Return whether the owner is the object's controller; only uids are compared."""
    controller = controller_of(obj)
    return controller is not None and controller.uid == owner.uid


def controller_reference(owner: KubernetesObject) -> OwnerReference:
    """Return an owner reference that marks the owner as the controller.

    The reference blocks a foreground deletion of the owner until the object is deleted.

    Raises:
        ValueError: The owner has no uid, because it is not from a server.
    """
    if not owner.uid:
        raise ValueError(f"{owner!r} has no uid and cannot be an owner; create it or read it first")
    info = resource_of(type(owner))
    return OwnerReference(
        api_version=info.api_version,
        kind=info.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def set_controller_reference(obj: T, owner: KubernetesObject) -> T:
    """Return the object with an owner reference to its controller.

    Other owner references are kept.  A reference to an earlier owner with the same kind and name is replaced.

    Args:
        obj: The object.  If the object has no namespace, the namespace of the owner is set.
        owner: The controlling owner, which must be from a server or a cache.

    Returns:
        A changed copy of the object, or ``obj`` itself if it already has the reference.

    Raises:
        AlreadyOwnedError: The object has another controller.
        ValueError: The owner has no uid, or is in a different namespace from the object.

    Source: controller-runtime ``controllerutil.SetControllerReference``.
    """
    reference, namespaced = controller_reference(owner), resource_of(type(obj)).namespaced
    if owner.namespace is not None and (obj.namespace or owner.namespace if namespaced else None) != owner.namespace:
        raise ValueError(f"{owner!r} cannot own {obj!r} in another namespace; use a label, and a finalizer to clean up")
    metadata = obj.metadata
    if (controller := controller_of(obj)) is not None and not _is_same_object(controller, reference):
        raise AlreadyOwnedError(
            f"{owner!r} cannot control {obj!r}, which is controlled by {controller.kind} {one_line(controller.name)}"
        )
    if reference in metadata.owner_references and (obj.namespace or not namespaced):
        return obj
    others = tuple([each for each in metadata.owner_references if not _is_same_object(each, reference)])
    namespace = (obj.namespace or owner.namespace) if namespaced else None
    return evolve(obj, metadata=metadata.evolve(namespace=namespace, owner_references=(*others, reference)))


def _is_same_object(one: OwnerReference, other: OwnerReference) -> bool:
    """Return whether two references have the same group, kind and name; the version and the uid may differ."""
    groups = one.api_version.rpartition("/")[0], other.api_version.rpartition("/")[0]
    return groups[0] == groups[1] and (one.kind, one.name) == (other.kind, other.name)


async def claim_objects(
    client: Client,
    owner: KubernetesObject,
    objects: Iterable[T],
    label_selector: LabelSelectorLike,
) -> tuple[T, ...]:
    """Adopt matching objects that have no controller, and release the owner's objects that no longer match.

    An object is not adopted if it has another controller, is being deleted, or is not in the owner's namespace.
    If the owner is being deleted, no object is changed.

    Before the first adoption, the owner is read from the server, because a deleted owner may still be in the cache.
    Each change is sent with the object's uid and resourceVersion as preconditions.

    Args:
        client: The client that changes the objects.
        owner: The owner, which must be from a server or a cache.
        objects: The candidates, for example all pods in the owner's namespace.
        label_selector: A label selector in kubectl's syntax, or a mapping of labels that must all be equal.

    Returns:
        The matching objects that the owner now controls, in the order of ``objects``.  Adopted objects are returned as
        the server stored them.  Objects that no longer exist are omitted.

    Raises:
        OwnerGoneError: The owner was deleted or is being deleted.  The remaining objects are not processed, and notes
            contain earlier errors.
        StatusError: The server rejected a change, for example because the object has changed (``ConflictError``). All
            other objects were processed.  Several errors are raised in an ``ExceptionGroup``.  If the client is not
            allowed to read the owner, one error is raised, and no object is adopted.
        ConnectionFailedError: The server did not respond.  The remaining objects are not processed, and notes contain
            earlier errors.
        SelectorError: The selector is not valid.
        ValueError: The selector is empty, so that it would match all objects, or the owner has no uid.

    Cancellation: earlier changes are kept, and the next call continues with the remaining objects.
    """
    matcher = LabelSelector.of(label_selector)
    if matcher.is_empty:
        raise ValueError(f"the selector of {owner!r} is empty and would adopt every object; add a label")
    claim = _Claim(client, owner, controller_reference(owner), matcher)
    await trio.lowlevel.checkpoint()
    claimed: list[T] = []
    rejected: list[StatusError] = []
    for obj in objects:
        try:
            own = await claim.claim(obj)
        except StatusError as error:
            error.add_note(f"while {owner!r} claimed {obj!r}")
            rejected.append(error)
        except TrioformerError as error:
            for earlier in rejected:
                error.add_note(f"earlier error: {earlier}; {'; '.join(earlier.__notes__)}")
            raise
        else:
            if own is not None:
                claimed.append(own)
    if len(rejected) > 1:
        raise ExceptionGroup(f"{owner!r} could not claim {len(rejected)} objects", rejected)
    if rejected:
        raise rejected[0]
    return tuple(claimed)


@final
@attrs.define(eq=False)
class _Claim:
    """The state of one call to :func:`claim_objects`."""

    client: Client
    owner: KubernetesObject
    reference: OwnerReference
    selector: LabelSelector
    may_adopt: bool | None = attrs.field(default=None, init=False)
    """Whether the owner exists on the server, or None if this is not known yet."""

    async def claim(self, obj: T) -> T | None:
        """Adopt or release an object if necessary; return it if it matches and the owner now controls it."""
        is_being_deleted = self.owner.metadata.deletion_timestamp is not None
        matches = self.selector.matches(obj.metadata.labels)
        if (controller := controller_of(obj)) is not None:
            if controller.uid != self.owner.uid:
                return None
            if matches:
                return obj
            if not is_being_deleted:
                await self.release(obj)
            return None
        if is_being_deleted or not matches or obj.metadata.deletion_timestamp is not None:
            return None
        if self.owner.namespace is not None and obj.namespace != self.owner.namespace:
            return None
        return await self.adopt(obj)

    async def adopt(self, obj: T) -> T | None:
        """Adopt an object; return None if the object was deleted or the owner cannot be read.

        An HTTP 404 response without a Status is raised as an error, because it may be from a proxy.  The caller would
        otherwise create a replacement for an object that still exists.
        """
        if self.may_adopt is None:
            self.may_adopt = False
            await self.check_owner()
            self.may_adopt = True
        if not self.may_adopt:
            return None  # already raised for the first object
        try:
            return await self.set_owners(obj, [*self.other_owners(obj), self.reference])
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:
                raise
            return None

    async def release(self, obj: KubernetesObject) -> None:
        """Remove the reference to the owner from an object."""
        try:
            await self.set_owners(obj, self.other_owners(obj))
        except (NotFoundError, InvalidError) as exc:
            if exc.is_unexpected_server_error:
                raise
            # The object was deleted, or replaced: then the patch has the wrong uid.

    def other_owners(self, obj: KubernetesObject) -> list[OwnerReference]:
        return [each for each in obj.metadata.owner_references if each.uid != self.owner.uid]

    async def set_owners(self, obj: T, owners: list[OwnerReference]) -> T:
        # Custom kinds support only merge patches.  They replace the whole list, so send the resourceVersion.
        metadata = {
            "uid": obj.uid,
            "resourceVersion": obj.resource_version,
            "ownerReferences": owners or None,
        }
        return await self.client.api(type(obj), namespace=obj.namespace).patch(obj.name, {"metadata": metadata})

    async def check_owner(self) -> None:
        owner = self.owner
        try:
            now = await self.client.api(type(owner), namespace=owner.namespace).get(owner.name)
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:
                raise
            raise OwnerGoneError(f"{owner.kind} {key_of(owner)} no longer exists and cannot adopt objects") from exc
        if now.uid != owner.uid:
            raise OwnerGoneError(
                f"{owner.kind} {key_of(owner)} with uid {owner.uid} no longer exists and cannot adopt objects; "
                f"the current object has uid {now.uid}"
            )
        if now.metadata.deletion_timestamp is not None:
            raise OwnerGoneError(f"{owner.kind} {key_of(owner)} is being deleted and cannot adopt objects")
