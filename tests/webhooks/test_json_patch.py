"""JSON patches: applied to the old value, they give the new one, and they are small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.models._internal import dumps
from trioformer.testing._storage._patching import apply_json_patch
from trioformer.webhooks._json_patch import json_patch

KEYS = st.sampled_from(["a", "b", "a/b", "~", "~1", "", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 1.5, "", "x", "<é>"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def operations(old: bytes, new: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(dumps([*json_patch(old, new)]))
    return found


def between(old: object, new: object) -> list[dict[str, Any]]:
    return operations(json.dumps(old).encode(), json.dumps(new).encode())


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_patch_turns_the_old_object_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    patched = apply_json_patch(old, between(old, new))
    assert json.dumps(patched, sort_keys=True) == json.dumps(new, sort_keys=True)


@given(VALUES)
def test_equal_values_have_no_patch_whatever_their_bytes_are(value: Any) -> None:
    one, other = json.dumps(value, indent=1), json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert operations(one.encode(), other.encode()) == []


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}]),
        ({"a/~": 1}, {}, [{"op": "remove", "path": "/a~1~0"}]),
        ({"a": {"b": [1]}}, {"a": {"b": []}}, [{"op": "remove", "path": "/a/b/0"}]),
        ({"a": [1, 2, 3]}, {"a": [0, 1, 2, 3]}, [{"op": "add", "path": "/a/0", "value": 0}]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [{"op": "remove", "path": "/a/1"}]),
        ({"a": [{"x": 1}, 2]}, {"a": [{"x": 2}, 2]}, [{"op": "replace", "path": "/a/0/x", "value": 2}]),
        ({"a": {}}, {"a": []}, [{"op": "replace", "path": "/a", "value": []}]),
    ],
)
def test_a_patch_changes_only_what_differs(old: object, new: object, patch: object) -> None:
    assert json.dumps(between(old, new)) == json.dumps(patch)


def test_numbers_that_python_cannot_represent_are_kept() -> None:
    old = b'{"a":0.10000000000000000000001,"b":123456789012345678901234567890}'
    assert b'"value":0.10000000000000000000001' in dumps([*json_patch(b"{}", old)])
    assert operations(old, old) == []
