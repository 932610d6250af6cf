"""Merging and comparing values of known types, field by field.

A leaf is a scalar, or a list or object that is replaced as a whole.
A list or object that is empty in both values is also a leaf, so ``{}`` and null are kept.

Source: structured-merge-diff ``typed/merge.go``, ``compare.go``, ``tofieldset.go``, ``remove.go`` and ``validate.go``.
"""

from __future__ import annotations

from typing import Any, final

import attrs

from ...models._internal import dumps
from ._field_sets import (
    MEMBER,
    FieldSet,
    below,
    is_member,
    key_element,
    node,
    union,
    value_element,
    without,
)
from ._field_types import MISSING, FieldType, ListType, MapType
from ._metadata import json_equal, stored_numbers

_SELF = "."


# --- items of lists ---------------------------------------------------------------------------------------------------


def item_element(items: ListType, item: object) -> str:
    """Return the path element of an item in a merged list.

    Raises:
        ValueError: The item does not have a key, or is not a valid item of a set.
    """
    if not items.keys:
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        if isinstance(item, dict) or item is None:
            what = "an explicit null" if item is None else "a map type"
            raise ValueError(f"associative list without keys has an element that's {what}")
        return value_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise ValueError(f"associative list with keys may not have {what}")  # noqa: TRY004  # of bad input
    keys = {}
    for name in items.keys:
        value = item.get(name, MISSING)
        if value is MISSING and (map_type := items.item.map) is not None and name in map_type.fields:
            value = map_type.fields[name].default
        if value is not MISSING:
            keys[name] = value
    if not keys:
        names = " ".join(f'"{name}"' for name in items.keys)
        problem = "omits all key fields"
        raise ValueError(
            f"associative list with keys has an element that {problem} [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _element(items: ListType, index: int, item: object) -> str:
    """Return the path element of a stored item.  Unlike an applied item, a stored item may have no key."""
    try:
        return item_element(items, item)
    except ValueError:
        return f"i:{index}"


def _elements(items: ListType, values: list[Any]) -> list[str]:
    return [_element(items, index, item) for index, item in enumerate(values)]


# --- the fields of a value --------------------------------------------------------------------------------------------


def fields_of(of: FieldType, value: object) -> FieldSet:
    """Return the set of all leaves and list items of an object."""
    return _fields(of, value)[1]


def _fields(of: FieldType, value: object) -> tuple[bool, FieldSet]:
    """Return whether a value is a leaf, and the set of the fields below it."""
    of = of.of(value)
    if of.map is not None:
        if of.map.is_atomic or not isinstance(value, dict):
            return of.map.is_atomic, {}
        return False, _map_fields(of.map, value)
    if of.scalar is not None:
        return True, {}
    if of.items is None or of.items.is_atomic or not isinstance(value, list):
        return of.items is not None and of.items.is_atomic, {}
    return False, _list_fields(of.items, value)


def _map_fields(of: MapType, value: dict[str, Any]) -> FieldSet:
    result: FieldSet = {}
    for name, member in value.items():
        is_leaf, rest = _fields(of.member(name), member)
        child = node(is_leaf or member is None or member == {} or name not in of.fields, rest)
        if child is not None:
            result[f"f:{name}"] = child
    return result


def _list_fields(of: ListType, value: list[Any]) -> FieldSet:
    result: FieldSet = {}
    for element, item in zip(_elements(of, value), value, strict=True):
        if element in result:  # only the item itself is a member if it exists twice
            result[element] = MEMBER
        else:
            result[element] = node(True, _fields(of.item, item)[1]) or MEMBER
    return result


def with_named_fields(of: FieldType, fields: FieldSet) -> FieldSet:
    """Return the set together with the declared fields above its members."""
    result: FieldSet = {}
    for element, child in fields.items():
        if element == _SELF:
            continue
        kind, name = element[:2], element[2:]
        inner, is_named = _NOTHING, False
        if kind == "f:" and of.map is not None:
            is_named = name in of.map.fields
            inner = of.map.fields[name].type if is_named else of.map.element or _NOTHING
        elif kind == "k:" and of.items is not None:
            inner = of.items.item
        rest = below(child)
        joined = node(is_member(child) or (is_named and bool(rest)), with_named_fields(inner, rest))
        result[element] = joined or MEMBER
    return result


_NOTHING = FieldType()


# --- comparison -------------------------------------------------------------------------------------------------------


@final
@attrs.define(eq=False)
class Comparison:
    """The differences between two objects."""

    added: FieldSet = attrs.field(factory=dict)
    """The fields that only the second value has."""
    modified: FieldSet = attrs.field(factory=dict)
    """The fields whose values differ."""
    removed: FieldSet = attrs.field(factory=dict)
    """The fields that only the first value has."""

    def without(self, fields: FieldSet) -> Comparison:
        """Return the differences outside the given fields."""
        return Comparison(*(without(part, fields) for part in (self.added, self.modified, self.removed)))

    def join(self, inner: Comparison, element: str) -> None:
        """Add the differences in a field.

        For the object itself, the field is empty, and the differences replace those found so far.
        """
        for part, whole in ((inner.added, self.added), (inner.modified, self.modified), (inner.removed, self.removed)):
            if part and element:
                _add(whole, element, part)
            else:
                whole.update(part)


def compare(of: FieldType, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Compare two objects.  Fields that Go always encodes count as present."""
    result = Comparison()
    _compare(of, old, new, result, "")
    return result


def _compare(of: FieldType, old: object, new: object, into: Comparison, element: str) -> None:
    """Compare two values, at least one of which exists, and add the result to the comparison of their parent."""
    if new is MISSING:
        _add(into.removed, element, node(*_whole(of, old)))
        return
    if old is MISSING:
        _add(into.added, element, node(*_whole(of, new)))
        return
    as_old, as_new = of.of(old), of.of(new)
    for kind in (as_new,) if as_old is as_new or as_old.is_same(as_new) else (as_old, as_new):
        if kind.map is not None:
            if kind.map.is_atomic or not ((isinstance(old, dict) and old) or (isinstance(new, dict) and new)):
                _compare_leaf(old, new, into, element)
            else:
                _compare_maps(kind.map, old, new, into, element)
        elif kind.scalar is not None:
            _compare_leaf(old, new, into, element)
        elif kind.items is not None:
            if kind.items.is_atomic or not ((isinstance(old, list) and old) or (isinstance(new, list) and new)):
                _compare_leaf(old, new, into, element)
            else:
                _compare_lists(kind.items, old, new, into, element)


def _present(of: MapType, value: object) -> dict[str, Any]:
    """Return the fields of an object, including those that Go always encodes."""
    if not isinstance(value, dict):
        return {}
    return {**of.implied, **value} if of.implied else value


def _is_copy(one: object, other: object) -> bool:
    """Return whether two values are equal and have the same order of members, as is true of most parts of an update."""
    return one == other and (type(one) is str or dumps(one) == dumps(other))  # in Python, 1 equals True


def _compare_leaf(old: object, new: object, into: Comparison, element: str) -> None:
    if element and not same(old, new):
        _add(into.modified, element, MEMBER)


def same(one: object, other: object) -> bool:
    """Return whether two decoded JSON values are equal, as 1 and 1.0 are."""
    return json_equal(stored_numbers(one), stored_numbers(other))


def _add(to: FieldSet, element: str, child: FieldSet | None) -> None:
    if child is not None:
        own = to.get(element)
        to[element] = child if own is None else union({element: own}, {element: child})[element]


def _compare_maps(of: MapType, old: object, new: object, into: Comparison, element: str) -> None:
    before, after = _present(of, old), _present(of, new)
    inner = Comparison()
    for name, value in after.items():
        previous = before.get(name, MISSING)
        if previous is MISSING or (previous is not value and not _is_copy(previous, value)):
            _compare(of.member(name), previous, value, inner, f"f:{name}")
    for name, value in before.items():
        if name not in after:
            _compare(of.member(name), value, MISSING, inner, f"f:{name}")
    into.join(inner, element)


def _compare_lists(of: ListType, old: object, new: object, into: Comparison, element: str) -> None:
    before, after = _by_element(of, old), _by_element(of, new)
    inner = Comparison()
    for one in {**before, **after}:
        first, last = before.get(one, []), after.get(one, [])
        if len(first) <= 1 and len(last) <= 1:
            _compare(of.item, (first or [MISSING])[0], (last or [MISSING])[0], inner, one)
        elif len(first) > 1 and len(last) > 1:
            if not same(first, last):
                _add(inner.modified, one, MEMBER)
        elif len(first) > 1:
            if last:
                _compare(of.item, MISSING, last[0], inner, one)
            _add(inner.removed, one, MEMBER)
        else:
            if first:
                _compare(of.item, first[0], MISSING, inner, one)
            _add(inner.added, one, MEMBER)
    into.join(inner, element)


def _by_element(of: ListType, value: object) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    if isinstance(value, list):
        for index, item in enumerate(value):
            result.setdefault(_element(of, index, item), []).append(item)
    return result


def _whole(of: FieldType, value: object) -> tuple[bool, FieldSet]:
    """Return the result of :func:`_fields` for a value that exists in only one object, and is therefore a member."""
    of = of.of(value)
    result: FieldSet = {}
    if of.map is not None:
        if not of.map.is_atomic and isinstance(value, dict):
            for name, member in _present(of.map, value).items():
                result[f"f:{name}"] = node(*_whole(of.map.member(name), member)) or MEMBER
    elif of.items is not None and of.scalar is None and not of.items.is_atomic and isinstance(value, list):
        for element, items in _by_element(of.items, value).items():
            result[element] = MEMBER if len(items) > 1 else node(*_whole(of.items.item, items[0])) or MEMBER
    return True, result


# --- merge ------------------------------------------------------------------------------------------------------------


def merge(of: FieldType, old: Any, new: Any) -> Any:
    """Merge a new value into an old value.  Leaves are replaced, and nothing is removed.

    The items of a merged list keep the order of the old list, unless the new list has another order.
    """
    if new is MISSING:
        return old
    kind = of.of(new)
    if kind.map is not None:
        before, after = (value if isinstance(value, dict) else {} for value in (old, new))
        if kind.map.is_atomic or not (before or after):
            return new
        result = {name: merge(kind.map.member(name), value, after.get(name, MISSING)) for name, value in before.items()}
        return result | {name: value for name, value in after.items() if name not in before}
    if kind.scalar is not None or kind.items is None:
        return new
    before_items, after_items = (value if isinstance(value, list) else [] for value in (old, new))
    if kind.items.is_atomic or not (before_items or after_items):
        return new
    return _merge_lists(kind.items, before_items, after_items)


def _merge_lists(of: ListType, old: list[Any], new: list[Any]) -> list[Any]:
    """Merge two lists.

    Common items have the order of the new list, and all others are placed near their old neighbors.
    """
    left, right = _elements(of, old), _elements(of, new)
    before: dict[str, Any] = {}
    for element, item in zip(left, old, strict=True):
        before[element] = None if element in before else item  # duplicates are not merged, but replaced
    after = dict(zip(right, new, strict=True))
    shared = iter([element for element in right if element in before])
    next_shared = next(shared, None)
    merged: set[str] = set()
    result: list[Any] = []
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right):
            if left[i] == right[j]:
                merged.add(left[i])
                result.append(merge(of.item, before[left[i]], after[right[j]]))
                i, j = i + 1, j + 1
                next_shared = next(shared, None)
                continue
            if left[i] in after and next_shared is not None and next_shared != left[i]:
                i += 1  # a common item whose place in the new list is later
                continue
        if i < len(left):
            if left[i] not in after:
                result.append(old[i])
                i += 1
                continue
            if left[i] in merged:
                i += 1
        if j < len(right):
            element = right[j]
            merged.add(element)
            result.append(merge(of.item, before.get(element, MISSING), after[element]))
            j += 1
            if element == next_shared:
                next_shared = next(shared, None)
    return result


# --- removal ----------------------------------------------------------------------------------------------------------


def remove(of: FieldType, value: Any, fields: FieldSet) -> Any:
    """Return a value without the members of a set.  An object or list that becomes empty is replaced by null."""
    of = of.of(value)
    if of.map is not None:
        if not isinstance(value, dict) or not value or of.map.is_atomic:
            return None
        return _remove_fields(of.map, value, fields) or None
    if of.scalar is not None or of.items is None:
        return value
    if not isinstance(value, list) or not value or of.items.is_atomic:
        return None
    result = []
    for element, item in zip(_elements(of.items, value), value, strict=True):
        child = fields.get(element)
        if child is None:
            result.append(item)
        elif not is_member(child):
            result.append(remove(of.items.item, item, child))
    return result or None


def _remove_fields(of: MapType, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    result = {}
    for name, member in value.items():
        child = fields.get(f"f:{name}")
        if child is None:
            result[name] = member
        elif not is_member(child):
            result[name] = remove(of.member(name), member, child)
    return result
