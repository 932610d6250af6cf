"""Extract the part of an object that one field manager owns.

Server-side apply removes a field if its manager applied the field before and no longer applies it.  A program that
changes one field must therefore also apply all fields that it applied before.  ``managedFields`` lists these fields
(client-go has ``Extract…`` functions for this).

``fieldsV1`` is a tree. The key ``f:name`` is a member of an object, ``k:{"name":"web"}`` is the list item with these
keys, ``v:"x"`` is an item of a set, and ``.`` is the value itself.
A leaf of the tree is either a value with one owner, or an object or list whose members have separate owners. client-go
uses a schema to distinguish these two cases.
This module has no schema, so it checks whether another manager owns a member of the object or list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from ..errors import DecodeError
from . import _serde
from ._meta import KubernetesObject, ManagedFieldsEntry, key_of, make_object, newer_field_problem
from ._plain import newer_field, to_dict
from ._resources import resource_of

__all__ = ["extract"]

K = TypeVar("K", bound=KubernetesObject)
Fields: TypeAlias = Mapping[str, Any]


def extract(obj: K, *, field_manager: str, subresource: str | None = None) -> K:
    """Return an object that contains only the fields that a field manager has applied.

    The result always has the object's kind, name and namespace, even if the manager did not apply anything.
    For example, to change one field of an applied object::

        mine = extract(await deployments.get("web"), field_manager="deployer")
        await deployments.apply(mine.evolve(spec=mine.spec.evolve(replicas=3)), field_manager="deployer")

    Only applied fields are extracted.  Fields that the manager set with create, replace or patch requests are in
    separate entries of ``managedFields``.
    An extracted list item always includes its key fields, even if the manager does not own them.
    If the manager applied an empty structure, the result includes the defaults that the server has added to the
    structure.

    Args:
        obj: The object as read from the server, including ``managedFields``.
        field_manager: The name of the field manager.
        subresource: The subresource that the fields were applied to, such as ``status``. The default, None, extracts
            the fields that were applied to the object itself.

    Raises:
        ValueError: The object has no ``managedFields``, or the manager has applied the ``stringData`` of a Secret,
            which the server stores as ``data``.  Or the object was read as protobuf and has a field that is newer than
            this version of trioformer.
        DecodeError: The object or an entry in its ``managedFields`` is not valid.
    """
    entries = obj.metadata.managed_fields
    if not entries:
        hint = "read the object without drop_managed_fields"
        raise ValueError(f"{obj!r} has no managedFields, so the fields of {field_manager!r} are not known; {hint}")
    if name := newer_field(obj):
        raise ValueError(newer_field_problem(obj, name))
    data = to_dict(obj)
    resource = resource_of(type(obj))
    trees = [_tree_of(entry, obj) for entry in entries]
    owned: dict[str, Any] = {}
    for entry, tree in zip(entries, trees, strict=True):
        is_mine = entry.manager == field_manager and entry.operation == "Apply"
        if is_mine and (entry.subresource or None) == (subresource or None):
            if resource.kind == "Secret" and not resource.group and "f:stringData" in tree:
                hint = "apply data instead, or apply all desired fields again"
                raise ValueError(f"{field_manager!r} has applied stringData of {obj!r}, which cannot be read; {hint}")
            found = _extracted(data, tree, trees)
            owned = found if isinstance(found, dict) else {}
    names = {"name": obj.name} | ({"namespace": obj.namespace} if obj.namespace else {})
    metadata = {**names, **owned.get("metadata", {})}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **owned, "metadata": metadata}
    return make_object(type(obj), _serde.dumps(whole))


def _tree_of(entry: ManagedFieldsEntry, obj: KubernetesObject) -> Fields:
    fields = entry.fields_v1
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise DecodeError(f"managedFields of {key_of(obj)}: the fieldsV1 of {entry.manager!r} is not an object")
    return cast("Fields", fields)


def _extracted(value: Any, tree: Fields, others: Sequence[Fields]) -> Any:
    """Return the part of a value that a ``fieldsV1`` tree selects.

    Args:
        value: The value to extract from.
        tree: The manager's ``fieldsV1`` subtree for the value.
        others: The subtrees of all managers for the value.
    """
    steps = [step for step in tree if step != "."]
    if not steps:
        is_divided = any(step != "." for other in others for step in other)
        return type(value)() if is_divided and isinstance(value, dict | list) else value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        names = [step[2:] for step in steps if step.startswith("f:") and step[2:] in members]
        return {name: _below(members[name], f"f:{name}", tree, others) for name in names}
    if isinstance(value, list):
        found = ((step, _position(value, step)) for step in steps)
        return [_item(value, index, step, tree, others) for step, index in sorted(found, key=_by_index) if index >= 0]
    return value


def _by_index(found: tuple[str, int]) -> int:
    return found[1]


def _below(value: Any, step: str, tree: Fields, others: Sequence[Fields]) -> Any:
    return _extracted(value, _mapping(tree[step]), [_mapping(other[step]) for other in others if step in other])


def _item(items: list[Any], index: int, step: str, tree: Fields, others: Sequence[Fields]) -> Any:
    """Return the owned part of a list item, including its key fields."""
    part = _below(items[index], step, tree, others)
    keys = _parsed(step) if step.startswith("k:") else None
    if not isinstance(keys, dict) or not isinstance(part, dict):
        return part
    whole = items[index]
    return {**{key: whole[key] for key in cast("dict[str, Any]", keys) if key in whole}, **cast("dict[str, Any]", part)}


def _position(items: list[Any], step: str) -> int:
    """Return the index of the list item that a tree key selects, or -1 if there is no such item."""
    wanted = _parsed(step)
    if step.startswith("i:"):
        return wanted if isinstance(wanted, int) and 0 <= wanted < len(items) else -1
    if step.startswith("v:"):
        sought = _serde.dumps_sorted(wanted)
        return next((index for index, item in enumerate(items) if _serde.dumps_sorted(item) == sought), -1)
    keys = cast("dict[str, Any]", wanted) if isinstance(wanted, dict) else {}
    # An absent key has its default, such as the protocol of a port.
    for defaults in ({}, keys):
        for index, item in enumerate(items):
            if keys and isinstance(item, dict) and keys.items() <= {**defaults, **item}.items():
                return index
    return -1


def _parsed(step: str) -> Any:
    try:
        return _serde.decode(step[2:].encode())
    except DecodeError:
        return None


def _mapping(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, Mapping) else {}
