"""Who controls an object: references to owners, and their change of hands by selector.

An object has one controller at most: the owner whose reference is marked so.  A controller that finds its objects by a
selector keeps both in step: it adopts what matches and has no controller, and releases what is its own and matches no
longer.  What somebody else controls it leaves alone, however well it matches.

Source: kube-controller-manager ``pkg/controller/controller_ref_manager.go``; apimachinery
``pkg/apis/meta/v1/controller_ref.go``; the design proposal "ControllerRef".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, final

import attrs
import trio

from ..client import Client
from ..errors import InvalidError, NotFoundError, StatusError, TrioformerError
from ..models import KubernetesObject, LabelSelector, OwnerReference, key_of, resource_of

T = TypeVar("T", bound=KubernetesObject)


@final
class OwnerGoneError(TrioformerError):
    """Nothing was adopted, since the server says that the owner is gone, another one now, or being deleted.

    The owner's event is on its way, and a reconcile that reads it finds out for itself.
    """


def controller_of(obj: KubernetesObject) -> OwnerReference | None:
    """Return the reference to the object's controller, or None if it has none."""
    return next((owner for owner in obj.metadata.owner_references if owner.controller), None)


def is_controlled_by(obj: KubernetesObject, owner: KubernetesObject) -> bool:
    """Whether the object's controller is this owner, and not an earlier one of the same name."""
    controller = controller_of(obj)
    return controller is not None and controller.uid == owner.uid


def controller_reference(owner: KubernetesObject) -> OwnerReference:
    """Make the reference that an object has to its controller.

    The owner cannot be gone before the object, if it is deleted with the policy ``Foreground``.

    Raises:
        ValueError: The owner has no uid, since it was not read from a server.
    """
    if not owner.uid:
        raise ValueError(f"{owner!r} has no uid, so nothing can refer to it; create it first, or read it")
    info = resource_of(type(owner))
    return OwnerReference(
        api_version=info.api_version,
        kind=info.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


async def claim_objects(
    client: Client,
    owner: KubernetesObject,
    objects: Iterable[T],
    selector: LabelSelector | Mapping[str, str] | str,
) -> tuple[T, ...]:
    """Adopt those objects that match and have no controller, release those of one's own that match no longer.

    Objects that somebody else controls, that are being deleted, or that are in another namespace than their owner, are
    not adopted.
    For an owner that is being deleted nothing is changed.

    Before the first adoption the owner is read from the server, at most once, so that a cache that is behind does not
    make an object the child of an owner that is gone.
    Each change names the object's uid and resourceVersion, so it meets the state that was looked at, or none.

    Args:
        client: For reading the owner and changing objects.
        owner: Who claims, as read from a server or a cache.
        objects: What may be claimed, such as all pods of the owner's namespace in a lister.
        selector: A label selector in kubectl's grammar, or labels that must all be equal.

    Returns:
        The objects that the owner controls now and that match, in the order of ``objects``; adopted ones as the server
        has stored them.  Objects that turn out to be gone are left out.

    Raises:
        OwnerGoneError: The owner is not there any more, or is being deleted.  Nothing after that object is looked at.
            What was refused before is in its notes; so it is in those of a ``ConnectionFailedError``.
        StatusError: The server refused a change, for example as somebody else was faster (``ConflictError``).
            The other objects have been looked at, and there is one error for each that was refused, in an
            ``ExceptionGroup`` if there are several.  When it refuses to read the owner, that is one error, and nothing
            is adopted.
        ConnectionFailedError: No answer came.
        SelectorError: The selector does not parse.
        ValueError: It is empty, and would adopt everything; or the owner has no uid.

    Cancellation: what has been claimed remains so, and is found by the next call.
    """
    matcher = LabelSelector.of(selector)
    if matcher.is_empty:
        raise ValueError(f"an empty selector of {owner!r} would adopt everything; name a label")
    claim = _Claim(client, owner, controller_reference(owner), matcher)
    await trio.lowlevel.checkpoint()
    claimed: list[T] = []
    refused: list[StatusError] = []
    for obj in objects:
        try:
            mine = await claim.claim(obj)
        except StatusError as error:
            error.add_note(f"while {owner!r} claimed {obj!r}")
            refused.append(error)
        except TrioformerError as error:
            for earlier in refused:
                error.add_note(f"before that: {earlier}; {', '.join(earlier.__notes__)}")
            raise
        else:
            if mine is not None:
                claimed.append(mine)
    if len(refused) > 1:
        raise ExceptionGroup(f"{owner!r} could not claim {len(refused)} objects", refused)
    if refused:
        raise refused[0]
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
    """Whether the server has said that the owner is still there; None until it was asked."""

    async def claim(self, obj: T) -> T | None:
        """Look at one object; return it if it is the owner's, as it is now."""
        is_going = self.owner.metadata.deletion_timestamp is not None
        matches = self.selector.matches(obj.metadata.labels)
        if (controller := controller_of(obj)) is not None:
            if controller.uid != self.owner.uid:
                return None
            if matches:
                return obj
            if not is_going:
                await self.release(obj)
            return None
        if is_going or not matches or obj.metadata.deletion_timestamp is not None:
            return None
        if self.owner.namespace is not None and obj.namespace != self.owner.namespace:
            return None
        return await self.adopt(obj)

    async def adopt(self, obj: T) -> T | None:
        """Refer to the owner as the object's controller; None if the object is gone, or the owner cannot be read."""
        if self.may_adopt is None:
            self.may_adopt = False
            await self.check_owner()
            self.may_adopt = True
        if not self.may_adopt:
            return None  # its refusal was raised for the first one
        try:
            return await self.refer(obj, [*self.other_owners(obj), self.reference])
        except NotFoundError:
            return None

    async def release(self, obj: KubernetesObject) -> None:
        """Refer to the owner no longer."""
        try:
            await self.refer(obj, self.other_owners(obj))
        except (NotFoundError, InvalidError):
            # It is gone, or another one of its name is there, of whose uid the server says that it cannot be changed.
            return

    def other_owners(self, obj: KubernetesObject) -> list[OwnerReference]:
        return [each for each in obj.metadata.owner_references if each.uid != self.owner.uid]

    async def refer(self, obj: T, owners: list[OwnerReference]) -> T:
        # A merge patch, which custom kinds take too.  It replaces the whole list, hence the resourceVersion.
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
            raise OwnerGoneError(f"{owner.kind} {key_of(owner)} is gone, so it adopts nothing") from exc
        if now.uid != owner.uid:
            raise OwnerGoneError(
                f"{owner.kind} {key_of(owner)} with uid {owner.uid} is gone, so it adopts nothing; "
                f"the one that is there has uid {now.uid}"
            )
        if now.metadata.deletion_timestamp is not None:
            raise OwnerGoneError(f"{owner.kind} {key_of(owner)} is being deleted, so it adopts nothing")
