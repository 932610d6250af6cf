"""Sets of fields of an object, in the format of ``managedFields``: ``fieldsV1``.

A set of fields is a tree of dicts.
The keys of the dicts are path elements: ``f:spec`` is a field, ``k:{"name":"a"}`` is the list item with this key,
``v:"a"`` is the list item with this value, and ``i:0`` is the list item at this index.
A field is a member of the set if its dict is empty or contains ``"."``.  Otherwise, only fields below this field are
members.
The root is not a member.  The dict of the root is ``{}`` if the set is empty.

Sets are never modified.  Each operation returns a new set, which may share parts with other sets.

Source: structured-merge-diff ``fieldpath/set.go`` and ``fieldpath/serialize.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ...errors import DecodeError
from ...models._internal import MAX_LEVELS, decode, dumps
from ._metadata import stored_numbers

FieldSet: TypeAlias = dict[str, Any]
"""A set of fields, or its part below one field."""

MEMBER: Final[FieldSet] = {}
"""The dict of a member without members below it."""
_SELF = "."
_LEVELS_ABOVE: Final = 4
"""The number of levels above a set: the object, its metadata, the list of entries and the entry."""


def node(is_member: bool, below: FieldSet) -> FieldSet | None:
    """Return the dict of a field, or None if neither the field nor any field below it is a member."""
    if not below:
        return MEMBER if is_member else None
    return {_SELF: MEMBER, **below} if is_member else below


def is_member(child: FieldSet) -> bool:
    """Return whether the field with this dict is a member."""
    return not child or _SELF in child


def below(child: FieldSet) -> FieldSet:
    """Return the set of the fields below the field with this dict."""
    return {key: value for key, value in child.items() if key != _SELF} if _SELF in child else child


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the set of fields that are members of either set."""
    if not one or not other:
        return one or other
    result = dict(one)
    for element, child in other.items():
        if (own := result.get(element)) is None:
            result[element] = child
        elif own is not child:
            joined = node(is_member(own) or is_member(child), union(below(own), below(child)))
            result[element] = joined or MEMBER
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the set of fields that are members of both sets."""
    result: FieldSet = {}
    for element, own in one.items():
        if (child := other.get(element)) is not None:
            shared = node(is_member(own) and is_member(child), intersection(below(own), below(child)))
            if shared is not None:
                result[element] = shared
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the set of fields that are members of the first set but not of the second."""
    if not one or not other:
        return one
    result: FieldSet = {}
    for element, own in one.items():
        if (child := other.get(element)) is None:
            result[element] = own
            continue
        rest = node(is_member(own) and not is_member(child), difference(below(own), below(child)))
        if rest is not None:
            result[element] = rest
    return result


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the first set without the members of the second set and all fields below them."""
    result: FieldSet = {}
    for element, own in one.items():
        if (child := other.get(element)) is None:
            result[element] = own
        elif not is_member(child):
            rest = node(is_member(own), without(below(own), child))
            if rest is not None:
                result[element] = rest
    return result


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the paths of the members, such as ``.spec.ports[port=80].name``, with parents before their children."""
    elements = [element for element in in_order(fields) if element != _SELF]
    for element in elements:
        if is_member(fields[element]):
            yield prefix + element_text(element)
    for element in elements:
        yield from paths(below(fields[element]), prefix + element_text(element))


def element_text(element: str) -> str:
    """Return a path element in the format of error messages."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        keys = decode(rest.encode())
        return f"[{','.join(f'{name}={json_text(value)}' for name, value in keys.items())}]"
    if kind == "v:":
        return f"[={json_text(decode(rest.encode()))}]"
    return f"[{rest}]"


class TooDeepError(Exception):
    """An error for a set that has too many levels to be stored in an object."""


def encode(fields: FieldSet, levels: int = MAX_LEVELS - _LEVELS_ABOVE) -> FieldSet:
    """Return a copy of the set with its members in kube-apiserver's order.

    Raises:
        TooDeepError: The set has too many levels to be stored.
    """
    if not levels:
        raise TooDeepError
    return {
        element: encode(child, levels - 1) if (child := fields[element]) else MEMBER for element in in_order(fields)
    }


def in_order(fields: FieldSet) -> list[str]:
    """Return the path elements of a set in kube-apiserver's order, which starts with ``"."``."""
    elements = sorted(fields)
    # "." and fields are ordered as strings; others are not.
    return elements if not elements or elements[-1] < "g" else sorted(elements, key=_place)


def read(fields: object) -> FieldSet:
    """Return the set of fields that a ``fieldsV1`` value represents.

    Path elements of unknown types are skipped, as in kube-apiserver.

    Raises:
        ValueError: The value is not a set of fields.
    """
    if not isinstance(fields, dict):
        raise ValueError("fieldsV1 is not an object")  # noqa: TRY004  # bad input, like json's errors
    result: FieldSet = {}
    for element, child in fields.items():
        if element == _SELF:
            result[_SELF] = MEMBER
        elif element[:2] in ("f:", "i:"):
            result[element] = read(child)
        elif element[:2] in ("k:", "v:"):
            result[_same_element(element)] = read(child)
        elif len(element) < len("f:") or element[1] != ":":
            raise ValueError(f"not a path element: {element!r}")
    if len(result) == 1 and _SELF in result:
        return MEMBER
    return result


def _same_element(element: str) -> str:
    """Normalize a path element for comparison."""
    try:
        value = decode(element[2:].encode())
        if element.startswith("k:"):
            return key_element(value)
    except (AttributeError, DecodeError) as exc:
        raise ValueError(f"not a path element: {element!r}") from exc
    return value_element(value)


def key_element(keys: dict[str, Any]) -> str:
    """Return the path element of the list item with these keys."""
    return "k:" + json_text(dict(sorted(keys.items())))


def value_element(value: object) -> str:
    """Return the path element of the list item with this value."""
    return "v:" + json_text(value)


def json_text(value: object) -> str:
    """Encode a value as Go does in the keys of fieldsV1: ``1.0`` becomes ``1``, and three characters are escaped."""
    text = dumps(stored_numbers(value)).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def _place(element: str) -> tuple[int, Any]:
    """Return the sort key of a path element: first fields by name, and then items by keys, by value or by index."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return 1, rest
    if kind == "k:":
        keys = decode(rest.encode())
        return 2, [(name, _value_place(value)) for name, value in keys.items()]
    if kind == "v:":
        return 3, _value_place(decode(rest.encode()))
    return (4, int(rest)) if kind == "i:" else (0, "")


def _value_place(value: object) -> tuple[int, Any]:
    """Return the sort key of a scalar: numbers, then strings, then booleans."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))
