"""The JSONPaths of columns."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.testing._serving._json_paths import find_all, parse_path

VALUE: dict[str, Any] = {
    "metadata": {"name": "a", "annotations": {"example.com/x": "dotted"}},
    "list": [{"name": "one", "n": 1, "ok": True}, {"name": "two", "n": 2}],
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".metadata.name", ["a"]),
        (r".metadata.annotations.example\.com/x", ["dotted"]),
        (r".metadata.annotations['example\.com/x']", ["dotted"]),
        (".list[0].name", ["one"]),
        (".list[-1].name", ["two"]),
        (".list[7].name", []),
        (".list[*].n", [1, 2]),
        (".list[1:].n", [2]),
        (".list[0:2:1].n", [1, 2]),
        ('.list[?(@.name=="two")].n', [2]),
        (".list[?(@.n>1)].name", ["two"]),
        (".list[?(@.n!='x')].name", []),
        (".list[?(@.ok)].name", ["one"]),
        ("..name", ["one", "two", "a"]),
        (".metadata.annotations.*", ["dotted"]),
        (".none", [None]),
        (".none.below", []),
        (".metadata[0]", []),
        (".list.name", []),
    ],
)
def test_a_path_leads_to_values(path: str, values: list[Any]) -> None:
    steps = parse_path(path)
    assert steps is not None
    assert find_all(VALUE, steps) == values


@pytest.mark.parametrize("path", [".a[", ".a]", "a", ".a[?(@.b==f(x))]", "{.a}"])
def test_other_paths_are_not_supported(path: str) -> None:
    assert parse_path(path) is None
