"""Values by their types: items of lists that are there twice, as old versions of an API have let them be stored."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.testing._storage._field_sets import paths
from trioformer.testing._storage._field_types import Field, FieldType, ListType, MapType
from trioformer.testing._storage._typed_values import compare, item_element, merge

SCALAR = FieldType(scalar="string")
ITEM = FieldType(map=MapType({"name": Field(lambda: SCALAR), "value": Field(lambda: SCALAR)}))
BY_NAME = ListType(lambda: ITEM, is_atomic=False, keys=("name",))
SET = ListType(lambda: SCALAR, is_atomic=False)
PORTS, NAMES = FieldType(items=BY_NAME), FieldType(items=SET)
OBJECT = FieldType(map=MapType({"ports": Field(lambda: PORTS), "names": Field(lambda: NAMES)}))


def item(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


def difference(old: list[Any], new: list[Any]) -> tuple[list[str], list[str], list[str]]:
    found = compare(OBJECT, {"ports": old}, {"ports": new})
    return list(paths(found.added)), list(paths(found.modified)), list(paths(found.removed))


A = '.ports[name="a"]'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([item("a", "1")], [item("a", "2")], ([], [f"{A}.value"], [])),
        ([item("a", "1"), item("a", "2")], [item("a", "1"), item("a", "2")], ([], [], [])),
        ([item("a", "1"), item("a", "2")], [item("a", "1"), item("a", "3")], ([], [A], [])),
        ([item("a", "1"), item("a", "2")], [], ([], [], [A])),
        ([], [item("a", "1"), item("a", "2")], ([A], [], [])),
    ],
    ids=["one", "the same two", "two others", "two removed", "two added"],
)
def test_items_that_are_there_twice_are_compared_as_one(old: list[Any], new: list[Any], expected: object) -> None:
    assert difference(old, new) == expected


def test_an_item_that_is_there_twice_and_then_once_has_fields_again() -> None:
    added, modified, removed = difference([item("a", "1"), item("a", "2")], [item("a", "1")])
    assert (set(added) >= {f"{A}.name", f"{A}.value"}, modified, removed) == (True, [], [A])


def test_an_item_that_is_there_once_and_then_twice_has_no_fields_any_more() -> None:
    added, modified, removed = difference([item("a", "1")], [item("a", "1"), item("a", "2")])
    assert (added, modified, set(removed) >= {f"{A}.name", f"{A}.value"}) == ([A], [], True)


@pytest.mark.parametrize(
    ("items", "value", "text"),
    [
        (SET, ["x"], "associative list with lists as elements"),
        (SET, None, "an explicit null"),
        (SET, {"a": 1}, "a map type"),
        (BY_NAME, None, "a null element"),
        (BY_NAME, "x", "non-map elements"),
        (BY_NAME, {"value": "1"}, "omits all key fields"),
    ],
)
def test_what_cannot_be_an_item_says_why(items: ListType, value: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        item_element(items, value)


def test_merged_items_keep_the_order_of_the_applied_ones_and_the_place_of_the_others() -> None:
    merged = merge(OBJECT, {"names": ["x", "a", "y", "b"]}, {"names": ["b", "c", "a"]})
    assert [each for each in merged["names"] if each in "abc"] == ["b", "c", "a"]
    assert sorted(merged["names"]) == ["a", "b", "c", "x", "y"]
