"""Controllers of objects: owner references, and how objects are adopted and released by a selector.

An object has at most one controller: the owner whose reference is marked as such.  A controller that finds its objects
by a selector keeps their references up to date: it adopts objects that match and have no controller, and releases
objects of its own that no longer match.  It does not change objects that another owner controls.

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
    """No object was adopted, because the owner was deleted, was replaced, or is being deleted on the server.

    The cache will receive the owner's event, and the next reconcile reads it there.
    """


@final
class AlreadyOwnedError(TrioformerError):
    """An object has another controller already, and may have only one (controller-runtime ``AlreadyOwnedError``)."""


def controller_of(obj: KubernetesObject) -> OwnerReference | None:
    """Return the reference to an object's controller; None if it has no controller."""
    return next((owner for owner in obj.metadata.owner_references if owner.controller), None)


def is_controlled_by(obj: KubernetesObject, owner: KubernetesObject) -> bool:
    """Whether an owner is the object's controller, by uid: an earlier owner of the same name is another one."""
    controller = controller_of(obj)
    return controller is not None and controller.uid == owner.uid


def controller_reference(owner: KubernetesObject) -> OwnerReference:
    """Make an object's reference to its controller.

    It blocks the deletion of the owner with the policy ``Foreground`` until the object is deleted.

    Raises:
        ValueError: The owner has no uid, because it was not read from a server.
    """
    if not owner.uid:
        raise ValueError(f"{owner!r} has no uid, so no object can refer to it; create it first, or read it")
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
    """Return an object with a reference to its controller; its other owners stay.

    The reference to an earlier owner of the same kind and name is replaced.

    Args:
        obj: The object, in the owner's namespace; one without a namespace, which is to be created, is put there.
        owner: The controller, as read from a server or a cache.

    Returns:
        A new object; ``obj`` itself if it has this reference.

    Raises:
        AlreadyOwnedError: Another object controls it.
        ValueError: The owner has no uid; or it is in a namespace, and the object is in another one or in none.

    Source: controller-runtime ``controllerutil.SetControllerReference``.
    """
    reference, namespaced = controller_reference(owner), resource_of(type(obj)).namespaced
    if owner.namespace is not None and (obj.namespace or owner.namespace if namespaced else None) != owner.namespace:
        raise ValueError(
            f"{obj!r} is not in the namespace of {owner!r}, so it cannot be its owner; "
            "use a label, and a finalizer to clean up"
        )
    metadata = obj.metadata
    if (controller := controller_of(obj)) is not None and not _is_same_object(controller, reference):
        raise AlreadyOwnedError(
            f"{obj!r} is controlled by {controller.kind} {one_line(controller.name)}, so {owner!r} cannot control it"
        )
    if reference in metadata.owner_references and (obj.namespace or not namespaced):
        return obj
    others = tuple([each for each in metadata.owner_references if not _is_same_object(each, reference)])
    namespace = (obj.namespace or owner.namespace) if namespaced else None
    return evolve(obj, metadata=metadata.evolve(namespace=namespace, owner_references=(*others, reference)))


def _is_same_object(one: OwnerReference, other: OwnerReference) -> bool:
    """Whether two references have the same group, kind and name, whatever the version and the uid."""
    groups = one.api_version.rpartition("/")[0], other.api_version.rpartition("/")[0]
    return groups[0] == groups[1] and (one.kind, one.name) == (other.kind, other.name)


async def claim_objects(
    client: Client,
    owner: KubernetesObject,
    objects: Iterable[T],
    label_selector: LabelSelectorLike,
) -> tuple[T, ...]:
    """Adopt the objects that match and have no controller, and release the owner's objects that no longer match.

    Objects that another owner controls, that are being deleted, or that are in another namespace than the owner, are
    not adopted.
    For an owner that is being deleted nothing changes.

    Before the first adoption the owner is read from the server, once, so that no object is adopted for an owner that
    was deleted and is still in the cache.
    Each change has the object's uid and resourceVersion as preconditions.

    Args:
        client: Reads the owner and changes objects.
        owner: The owner, as read from a server or a cache.
        objects: The objects that may be claimed, for example all pods in the owner's namespace from a lister.
        label_selector: A label selector in kubectl's grammar, or labels that must all be equal.

    Returns:
        The objects that match and that the owner now controls, in the order of ``objects``; adopted ones as the server
        has stored them.  Objects that were deleted are left out.

    Raises:
        OwnerGoneError: The owner was deleted or is being deleted.  The objects after that one are not processed.
            Earlier errors are in its notes, and also in those of a ``ConnectionFailedError``.
        StatusError: The server rejected a change, for example because the object has changed (``ConflictError``).
            The other objects have been processed; there is one error for each rejected change, in an ``ExceptionGroup``
            if there are several.  When the read of the owner is rejected, that is one error, and no object is adopted.
        ConnectionFailedError: There was no response.
        SelectorError: The selector is invalid.
        ValueError: The selector is empty and would adopt every object, or the owner has no uid.

    Cancellation: objects that have been claimed stay claimed; the next call continues.
    """
    matcher = LabelSelector.of(label_selector)
    if matcher.is_empty:
        raise ValueError(f"the selector of {owner!r} is empty and would adopt every object; name a label")
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
    """One call of :func:`claim_objects`."""

    client: Client
    owner: KubernetesObject
    reference: OwnerReference
    selector: LabelSelector
    may_adopt: bool | None = attrs.field(default=None, init=False)
    """Whether the owner exists on the server; None before it was read."""

    async def claim(self, obj: T) -> T | None:
        """Adopt or release one object if necessary; return its current state if it matches and is the owner's."""
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
        """Make the owner the object's controller; None if the object was deleted or the owner cannot be read.

        A 404 that is not a Status is raised: it may be a proxy's, and a caller would replace an object that is missing.
        """
        if self.may_adopt is None:
            self.may_adopt = False
            await self.check_owner()
            self.may_adopt = True
        if not self.may_adopt:
            return None  # the error was raised for the first object
        try:
            return await self.set_owners(obj, [*self.other_owners(obj), self.reference])
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:
                raise
            return None

    async def release(self, obj: KubernetesObject) -> None:
        """Remove the reference to the owner."""
        try:
            await self.set_owners(obj, self.other_owners(obj))
        except (NotFoundError, InvalidError) as exc:
            if exc.is_unexpected_server_error:
                raise
            # The object was deleted, or there is another one of its name: then the patch would change its uid.

    def other_owners(self, obj: KubernetesObject) -> list[OwnerReference]:
        return [each for each in obj.metadata.owner_references if each.uid != self.owner.uid]

    async def set_owners(self, obj: T, owners: list[OwnerReference]) -> T:
        # A merge patch, because custom kinds support it too; it replaces the whole list, hence the resourceVersion.
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
            raise OwnerGoneError(
                f"{owner.kind} {key_of(owner)} does not exist any more, so it adopts no objects"
            ) from exc
        if now.uid != owner.uid:
            raise OwnerGoneError(
                f"{owner.kind} {key_of(owner)} with uid {owner.uid} does not exist any more, so it adopts no "
                f"objects; the current one has uid {now.uid}"
            )
        if now.metadata.deletion_timestamp is not None:
            raise OwnerGoneError(f"{owner.kind} {key_of(owner)} is being deleted, so it adopts no objects")
