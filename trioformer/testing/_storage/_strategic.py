"""Kubernetes' strategic merge patches: merge patches that merge lists by item if the items have a key.

The types of fields define which lists have keys.
Without ``$setElementOrder``, new items are placed before the items that are not in the patch.

Source: apimachinery ``pkg/util/strategicpatch``, and the error messages of v1.36.
"""

from __future__ import annotations

from typing import Any, Final

from ...models._internal import dumps
from ._field_types import DEDUCED, FieldType
from ._go_formats import go_text, go_type
from ._status import APIStatusError, bad_request, excerpt, status_error
from ._storage import JSONObject

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(of: FieldType, obj: object, patch: JSONObject) -> JSONObject:
    """Return the result of a strategic merge patch for a value of a known type.

    Neither the value nor the patch is modified.

    Raises:
        APIStatusError: A directive is not valid, or an item does not have its key (400 or 500, as in kube-apiserver).
    """
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged: JSONObject = dict(obj) if isinstance(obj, dict) else {}
    if _RETAIN in patch:
        merged = _retained(merged, patch)
    ordered = [key for key in patch if key.startswith(_ORDER)]
    for key in ordered:
        _set_order(of, merged, patch, key)
    done = {_RETAIN, *ordered, *(key.removeprefix(_ORDER) for key in ordered)}
    for key, value in patch.items():
        if key not in done:
            _merge_member(of, merged, key, value)
    return merged


def _directed(patch: JSONObject) -> JSONObject:
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _failure(f"unknown patch type: {go_text(other)} in map: {go_text(patch)}")


def _retained(obj: JSONObject, patch: JSONObject) -> JSONObject:
    """Return an object with only those members that the ``$retainKeys`` directive of a patch lists."""
    names = patch[_RETAIN]
    given = {
        key for key, value in patch.items() if value is not None and not key.startswith((_DELETE, _ORDER, _RETAIN))
    }
    if not isinstance(names, list) or not given <= {name for name in names if isinstance(name, str)}:
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in obj.items() if key in names}


def _merge_member(of: FieldType, merged: JSONObject, key: str, value: Any) -> None:
    name = key.removeprefix(_DELETE)
    old = merged.get(name)
    if name != key:
        if isinstance(value, list) and isinstance(old, list):
            deleted = set(map(dumps, value))
            merged[name] = [one for one in old if dumps(one) not in deleted]
    elif value is None:
        merged.pop(name, None)
    elif type(old) is not type(value) or not isinstance(value, dict | list):
        if _is_directive(value):
            merged.pop(name, None)
        else:
            merged[name] = _plain(value)
    elif isinstance(value, dict):
        result = strategic_merge(_member(of, name), old, value)
        merged[name] = result
        if not result and (kind := _member(of, name).map) is not None and not kind.fields:
            del merged[name]  # Go omits an empty map but keeps an empty struct
    elif isinstance(old, list):
        merged[name] = _merge_lists(_member(of, name), old, value)


def _member(of: FieldType, name: str) -> FieldType:
    return DEDUCED if of.map is None else of.map.member(name)


def _is_directive(value: object) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _plain(value: Any) -> Any:
    """Return a value from the patch without directives and nulls, for a field that the object does not have."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None and not _is_directive(one)}
    return [_plain(one) for one in value if not _is_directive(one)] if isinstance(value, list) else value


# --- lists ------------------------------------------------------------------------------------------------------------


def _merge_lists(of: FieldType, old: list[Any], patch: list[Any]) -> list[Any]:
    """Merge two lists.  The items of the patch keep their order, and all others are placed near their old neighbors.

    A list without a key for patches is replaced.
    """
    if of.items is None or of.items.patch_key is None:
        return patch
    _check_items(old, patch)
    if not any(isinstance(one, dict) for one in (*old, *patch)):
        merged = list({dumps(one): one for one in (*old, *patch)}.values())
        return _in_order(merged, "", patch, old)
    key = of.items.patch_key
    old, patch = _without_special(old, patch, key)
    positions = _places(old, key)
    merged = list(old)
    for one in patch:
        if (index := positions.get(_identity(one, key))) is not None:
            merged[index] = strategic_merge(of.items.item, merged[index], one)
        else:
            positions[_identity(one, key)] = len(merged)
            merged.append(one)
    return _in_order(merged, key, patch, old)


def _check_items(old: list[Any], patch: list[Any]) -> None:
    types = {go_type(one) for one in (*old, *patch) if one is not None}
    if go_type([]) in types:
        raise status_error(422, reason="", message="lists of lists are not supported")
    if len(types) > 1:
        raise _failure(f"list element types are not identical: {excerpt(go_text([old, patch]))}")


def _without_special(old: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply the directives that delete items or replace the list, and return both lists without directives."""
    deleted: set[bytes] = set()
    replaces = False
    for one in patch:
        match one.get(_DIRECTIVE):
            case None:
                pass
            case "delete":
                deleted.add(_identity(one, key))
            case "replace":
                replaces = True
            case "merge":
                raise _failure("merging lists cannot yet be specified in the patch")
            case other:
                raise _failure(f"unknown patch type: {go_text(other)} in map: {go_text(one)}")
    rest = [one for one in patch if _DIRECTIVE not in one]
    if replaces:
        return rest, []
    return [item for item in old if _identity(item, key) not in deleted] if deleted else old, rest


def _identity(item: Any, key: str) -> bytes:
    """Return the key of an item, encoded as JSON because the value may not be hashable."""
    if not key:
        return dumps(item)
    if not isinstance(item, dict) or key not in item:
        raise _failure(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return dumps(item[key])


def _in_order(merged: list[Any], key: str, order: list[Any], old: list[Any]) -> list[Any]:
    """Sort items by their order in one list, and the remaining items by their order in the old list."""
    places = _places(order, key)
    old_places = _places(old, key)
    identities = [_identity(item, key) for item in merged]
    mine = sorted((i for i, one in enumerate(identities) if one in places), key=lambda i: places[identities[i]])
    others = [i for i, one in enumerate(identities) if one not in places]
    result: list[Any] = []
    j = 0
    for i in others:
        place = old_places.get(identities[i], -1)
        while j < len(mine) and not 0 <= place < old_places.get(identities[mine[j]], -1):
            result.append(merged[mine[j]])
            j += 1
        result.append(merged[i])
    return result + [merged[i] for i in mine[j:]]


def _places(items: list[Any], key: str) -> dict[bytes, int]:
    return {_identity(item, key): index for index, item in reversed(list(enumerate(items)))}


def _set_order(of: FieldType, merged: JSONObject, patch: JSONObject, key: str) -> None:
    """Merge a list for which the patch has a ``$setElementOrder`` directive, and sort its items."""
    name, order = key.removeprefix(_ORDER), patch[key]
    old, given = merged.get(name), patch.get(name)
    if not isinstance(order, list) or not isinstance(old, list | None) or not isinstance(given, list | None):
        raise bad_request("invalid patch format of setElementOrder list")
    list_type = _member(of, name)
    merge_key = list_type.items.patch_key or "" if list_type.items is not None else ""
    kept = [one for one in given or () if not (isinstance(one, dict) and _DIRECTIVE in one)]
    _check_order(kept, order, merge_key)
    if old is None and given is None:
        return
    if given is None:
        found = list(old or ())
    elif old is None:
        found = _plain(given)
    else:
        found = _merge_lists(list_type, old, given)
    merged[name] = _in_order(found, merge_key, order, list(old or ()))


def _check_order(items: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of a patch are in the order that its directive sets."""
    identities = iter([_identity(one, key) for one in order])
    if order and not all(_identity(one, key) in identities for one in items):
        shown = f"{go_text(items)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        raise _failure(f"The order in patch list:\n{shown}")


def _failure(message: str) -> APIStatusError:
    """Return a 500 error, which kube-apiserver uses for problems without a more specific status code."""
    return status_error(500, reason="", message=message)
