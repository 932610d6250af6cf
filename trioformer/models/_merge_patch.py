"""JSON merge patches (RFC 7386): make one of two values, and find models in a patch that a program has written.

A model in a patch is refused, because it cannot express that a field is removed; a patch of two models uses null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, overload

import attrs

from . import _serde
from ._lazy import Model
from ._meta import KubernetesObject, key_of
from ._plain import members_of
from ._quantity import Quantity
from ._values import MAX_LEVELS, TOO_DEEP

__all__ = ["find_model", "merge_patch"]

M = TypeVar("M", bound=Model)
_SERVERS_OWN = ("managedFields", "resourceVersion")


@overload
def merge_patch(old: M, new: M) -> dict[str, object]: ...
@overload
def merge_patch(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]: ...


def merge_patch(old: Model | Mapping[str, object], new: Model | Mapping[str, object]) -> dict[str, object]:
    """Return the JSON merge patch (RFC 7386) that changes one state of an object, or of a part of it, into another.

    For example::

        changed = web.status.evolve(message=None)
        await deployments.patch(web.name, {"status": merge_patch(web.status, changed)}, subresource="status")

    A member that only ``old`` has is null in the patch, so the server removes it; :meth:`Api.update
    <trioformer.client.Api.update>` and ``update_status`` send such a patch.
    The patch of two equal values is empty.
    Lists are replaced as a whole.

    A merge patch cannot set a member to null.  So one that is null in ``new`` counts as absent, unless ``old`` has the
    same null; kube-apiserver omits the nulls in the objects of a list that is sent.

    Args:
        old: The state that the server has: a model, or a mapping with the API's names.
        new: The desired state, of the same class.  ``managedFields`` and the resourceVersion of objects are not
            compared, because the server sets them.

    Raises:
        TypeError: They are of different classes, or neither models nor mappings; or a value cannot be encoded as JSON.
        ValueError: They are two objects with different names or namespaces.
        DecodeError: A part of one is not valid JSON, or has too many levels.
    """
    if isinstance(old, Model) and isinstance(new, Model):
        if type(old) is not type(new):
            raise TypeError(f"a merge patch requires two models of one class, not {_names(old, new)}")
        if isinstance(old, KubernetesObject) and isinstance(new, KubernetesObject):
            return _between_objects(old, new)
    elif not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        raise TypeError(f"a merge patch requires two models or two mappings, not {_names(old, new)}")
    return _difference(_members_of(old), _members_of(new))


def _names(old: object, new: object) -> str:
    return f"{type(old).__name__} and {type(new).__name__}"


def _between_objects(old: KubernetesObject, new: KubernetesObject) -> dict[str, object]:
    if (old.name, old.namespace) != (new.name, new.namespace):
        raise ValueError(f"a merge patch requires two states of one object, not {key_of(old)} and {key_of(new)}")
    found = _members_of(old), _members_of(new)
    for members in found:
        metadata = members.get("metadata")
        if isinstance(metadata, dict):
            for name in _SERVERS_OWN:
                metadata.pop(name, None)
    return _difference(*found)


def _members_of(value: Model | Mapping[str, object]) -> dict[str, Any]:
    if isinstance(value, Model):
        return members_of(value)
    return cast("dict[str, Any]", _serde.decode(_serde.dumps(_serde.plain(dict(value)))))


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, object]:
    patch: dict[str, object] = {}
    patch |= dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        if key not in old:
            if value is not None:
                patch[key] = _without_nulls(value)
        elif isinstance(value, dict) and isinstance(old[key], dict):
            if changes := _difference(old[key], cast("dict[str, Any]", value)):
                patch[key] = changes
        elif _serde.dumps_sorted(value) != _serde.dumps_sorted(old[key]):
            patch[key] = _without_nulls(value)
    return patch


def _without_nulls(value: Any) -> Any:
    """Remove null members, which would mean removals; the server handles nulls in lists."""
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {key: _without_nulls(member) for key, member in members.items() if member is not None}


def find_model(patch: object, *, merges_lists: bool = False) -> tuple[str, object] | None:
    """Find a typed object that a patch would merge into a stored one; return its path and the object.

    A model encodes a cleared field as absent, and a merge keeps absent fields: the server would keep the cleared value,
    and the response would look like a success.
    A merge patch replaces lists, so a typed object in one is not merged.  A strategic merge patch merges many lists
    item by item, and only the server knows which ones, so typed items are refused there.

    Args:
        patch: The patch.
        merges_lists: Whether items of lists are merged, as in a strategic merge patch.

    Raises:
        ValueError: It has too many levels.
    """
    pending: list[tuple[object, str, int]] = [(patch, "", 0)]
    while pending:
        value, where, level = pending.pop()
        if isinstance(value, Model) or (attrs.has(type(value)) and not isinstance(value, Quantity)):
            return where, value
        if level > MAX_LEVELS:  # or it contains itself
            raise ValueError(f"a patch cannot be encoded: {TOO_DEEP}")
        members: list[tuple[object, str]] = []
        if isinstance(value, Mapping):
            members = [(member, f"{where}.{key}" if where else str(key)) for key, member in value.items()]
        elif merges_lists and isinstance(value, list | tuple):
            members = [(item, f"{where}[{number}]") for number, item in enumerate(value)]
        pending += [(member, place, level + 1) for member, place in reversed(members)]  # the first is looked at first
    return None
