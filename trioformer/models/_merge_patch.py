"""JSON merge patches (RFC 7386): compute a patch from two values, and find models in a given patch.

A patch must not contain a model, because a model cannot express that a field is removed.  A patch that is computed from
two models uses null for this purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, overload

import attrs

from . import _serde
from ._lazy import Model
from ._meta import KubernetesObject, key_of, newer_field_problem
from ._plain import newer_field, to_dict
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
    """Return the JSON merge patch (RFC 7386) that changes one state of an object into another.

    For example::

        changed = web.status.evolve(message=None)
        await deployments.patch(web.name, {"status": merge_patch(web.status, changed)}, subresource="status")

    If only ``old`` has a member, the member is null in the patch, so that the server removes it.  :meth:`Api.update
    <trioformer.client.Api.update>` and ``update_status`` send such a patch.
    The patch for two equal values is empty.
    A patch replaces a list as a whole.

    A merge patch cannot set a member to null.  So a member that is null in ``new`` is treated as absent, unless it is
    also null in ``old``.  kube-apiserver removes nulls from objects in the lists of a patch.

    Args:
        old: The current state on the server: an object, a part of an object, or a mapping with the API's names.
        new: The desired state, which must have the same class as ``old``.  The ``managedFields`` and
            ``resourceVersion`` of objects are not compared, because the server sets them.

    Raises:
        TypeError: The arguments have different classes, or are not models or mappings, or contain a value that cannot
            be encoded as JSON.
        ValueError: The arguments are objects with different names or namespaces.  Or the patch would replace a list,
            and an argument was read as protobuf and has a field that is newer than this version of trioformer.
        DecodeError: A part of an argument is not valid JSON, or has too many levels.
    """
    if isinstance(old, Model) and isinstance(new, Model):
        if type(old) is not type(new):
            raise TypeError(f"a merge patch requires two models of the same class, not {_names(old, new)}")
        if isinstance(old, KubernetesObject) and isinstance(new, KubernetesObject):
            return _checked(_between_objects(old, new), old, new)
    elif not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        raise TypeError(f"a merge patch requires two models or two mappings, not {_names(old, new)}")
    return _checked(_difference(_members_of(old), _members_of(new)), old, new)


def _checked(patch: dict[str, object], *values: object) -> dict[str, object]:
    """Check that a patch does not remove newer fields from the objects in a list, which it replaces as a whole."""
    if _replaces_objects(patch):
        for value in values:
            if isinstance(value, Model) and (name := newer_field(value)):
                raise ValueError(newer_field_problem(value, name))
    return patch


def _replaces_objects(patch: Mapping[str, object]) -> bool:
    return any(
        _replaces_objects(value)
        if isinstance(value, dict)
        else isinstance(value, list) and any(isinstance(each, dict) for each in value)
        for value in patch.values()
    )


def _names(old: object, new: object) -> str:
    return f"{type(old).__name__} and {type(new).__name__}"


def _between_objects(old: KubernetesObject, new: KubernetesObject) -> dict[str, object]:
    if (old.name, old.namespace) != (new.name, new.namespace):
        raise ValueError(f"a merge patch requires two states of the same object, not {key_of(old)} and {key_of(new)}")
    found = _members_of(old), _members_of(new)
    for members in found:
        metadata = members.get("metadata")
        if isinstance(metadata, dict):
            for name in _SERVERS_OWN:
                metadata.pop(name, None)
    return _difference(*found)


def _members_of(value: Model | Mapping[str, object]) -> dict[str, Any]:
    if isinstance(value, Model):
        return to_dict(value)
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
    """Remove null members, which would remove fields on the server, except for nulls in lists."""
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {key: _without_nulls(member) for key, member in members.items() if member is not None}


def find_model(patch: object, *, merges_lists: bool = False) -> tuple[str, object] | None:
    """Find a model that the server would merge as part of a patch; return its path and the model, or None.

    A model encodes a cleared field as absent, and a merge keeps absent fields.  So the server would keep the old
    value, and the response would look like a success.
    A merge patch replaces lists, so a model in a list is not merged.  A strategic merge patch merges some lists item
    by item.  Only the server knows which lists it merges, so models are not allowed in any list of such a patch.

    Args:
        patch: The patch to search.
        merges_lists: Whether the server merges list items, as in a strategic merge patch.

    Raises:
        ValueError: The patch has too many levels.
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
