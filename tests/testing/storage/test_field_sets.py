"""Sets of fields: their operations, their order, and what errors show of them."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from trioformer.testing._storage._field_sets import (
    FieldSet,
    TooDeepError,
    difference,
    encode,
    intersection,
    key_element,
    paths,
    read,
    union,
    value_element,
    without,
)


def members(fields: FieldSet) -> set[str]:
    return set(paths(fields))


trees = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c", 'k:{"n":"x"}']), below, min_size=1).flatmap(
        lambda tree: st.sampled_from([tree, {".": {}, **tree}])
    ),
    max_leaves=8,
)
sets = st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), trees, max_size=3)


@hypothesis.given(sets, sets)
def test_operations_are_those_on_the_members(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert members(union(one, other)) == members(one) | members(other)
    assert members(intersection(one, other)) == members(one) & members(other)
    assert members(difference(one, other)) == members(one) - members(other)
    outside = {path for path in members(one) if not any(_is_in(path, top) for top in members(other))}
    assert members(without(one, other)) == outside


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith((f"{top}.", f"{top}["))


@hypothesis.given(sets)
def test_a_set_is_what_is_read_from_its_encoding(one: dict[str, Any]) -> None:
    assert read(encode(one)) == one


def test_elements_are_in_the_order_of_kube_apiserver() -> None:
    elements = ["i:10", "i:9", 'v:"b"', "v:10", "v:9", "v:true", 'k:{"p":9}', 'k:{"p":80}', "f:b", "f:a", "."]
    expected = [".", "f:a", "f:b", 'k:{"p":9}', 'k:{"p":80}', "v:9", "v:10", 'v:"b"', "v:true", "i:9", "i:10"]
    assert list(encode({element: {} for element in elements})) == expected


def test_errors_show_paths_as_go_does() -> None:
    keys = key_element({"protocol": "TCP", "port": 80})
    assert list(paths({"f:ports": {keys: {"f:name": {}}}})) == ['.ports[port=80,protocol="TCP"].name']
    assert list(paths({"f:tags": {value_element("x"): {}, "i:3": {}}})) == ['.tags[="x"]', ".tags[3]"]


def test_keys_are_encoded_as_go_encodes_them() -> None:
    assert value_element("<a&b>ü") == 'v:"\\u003ca\\u0026b\\u003eü"'
    assert value_element(1.0) == "v:1"
    assert read({'k:{"b": 1.0, "a": "x"}': {}}) == {'k:{"a":"x","b":1}': {}}


@pytest.mark.parametrize("bad", [[], {"x": {}}, {"f:a": 1}, {"k:[": {}}, {"k:1": {}}, {"": {}}])
def test_what_is_no_set_is_not_read(bad: object) -> None:
    with pytest.raises(ValueError, match="not"):
        read(bad)


def test_elements_of_unknown_kinds_are_left_out() -> None:
    assert read({"x:new": {}, "f:a": {}}) == {"f:a": {}}


def test_a_set_with_too_many_levels_is_not_encoded() -> None:
    deep: FieldSet = {}
    for _ in range(200):
        deep = {"f:a": deep}
    with pytest.raises(TooDeepError):
        encode(deep)
