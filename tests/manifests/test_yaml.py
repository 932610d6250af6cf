"""The documents of manifests: YAML, whose tests are in ``tests/yaml``, and JSON."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trioformer import _yaml
from trioformer._secret import Secret
from trioformer._yaml import MAX_LEVELS
from trioformer.manifests._yaml import Parsed, parse_documents, position_of


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has a loader in C only with libyaml."""
    monkeypatch.setattr(_yaml, "_LOADER", getattr(yaml, request.param))


def parsed(text: str) -> Parsed:
    return parse_documents(Secret(text.encode()), "a.yaml")


def values(text: str) -> list[Any]:
    found = parsed(text)
    assert found.problems == ()
    return [document.value for document in found.documents]


def problem(text: str) -> str:
    return str(parsed(text).problems[0]).removeprefix("a.yaml:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("---\n---\n...\n", [None, None]),
        ("a: 1\n---\nb: 2\n...\n---\nc: 3\n", [{"a": 1}, {"b": 2}, {"c": 3}]),
        ('{"a": "\\u00e9", "b": [1, 2.5, true, null]}', [{"a": "é", "b": [1, 2.5, True, None]}]),
        ('{\n\t"a": 1\n}', [{"a": 1}]),
        ('{"a": "\\ud83d\\ude00"}', [{"a": "\U0001f600"}]),
        ('{"a": 1}{"b": 2}\n\n{"c": 3}\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
        (f'{{"{"k" * 2000}": 1}}', [{"k" * 2000: 1}]),
    ],
)  # fmt: skip
def test_values_are_those_of_kubectl(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


def test_documents_of_json_know_where_they_begin() -> None:
    found = parsed('{"a": "\\ud83d\\ude00"}\n  {"b": 1}')
    assert [(document.line, document.column) for document in found.documents] == [(1, 1), (2, 3)]


def test_a_value_is_found_by_its_path() -> None:
    text = Secret(b"a: 1\n---\nb:\n- c: {d: e}\n- f\n")
    assert position_of(text, 1, ("b", 0, "c", "d")) == (4, 10)
    assert position_of(text, 1, ("b", 1)) == (5, 3)
    assert position_of(text, 1, ("b", 0, "c", "missing", "more")) == (4, 6)


def test_all_problems_of_a_file_are_found_up_to_what_is_not_yaml() -> None:
    found = parsed("{a: 1, a: 2}\n---\n{no: 1}\n---\nb: !x c\n---\n[\n")
    assert [(each.line, each.column) for each in found.problems] == [(1, 8), (3, 2), (5, 4), (8, 1)]
    assert [document.value for document in found.documents] == [{"a": 1}, {"no": 1}, {"b": "c"}]


def test_json_has_as_many_levels_as_an_object_may_have() -> None:
    text = "[" * MAX_LEVELS + "]" * MAX_LEVELS
    assert parsed(text).problems == ()
    surrogates = '{"a": "\\ud83d\\ude00", "b": ' + text + "}"
    assert "has more than 120 levels" in problem(surrogates)


@pytest.mark.parametrize("text", ['{"a": NaN}{}', '{"a": "\\ud83d\\ude00", "b": Infinity}', '{"a": "\\ud83d\\ude00",}'])
def test_what_is_neither_yaml_nor_json_is_a_problem_of_yaml(text: str) -> None:
    # The loader in Python accepts surrogates.
    assert "is not YAML" in problem(text) or "contains half of a character" in problem(text)


def test_a_key_of_json_twice_is_a_problem_of_its_document() -> None:
    found = parsed('{"a": 1}\n {"b": {"c": 1, "c": "\\ud83d\\ude00"}}')
    (only,) = found.problems
    assert str(only) == "a.yaml:2:2: has the key 'c' twice in one object; remove one of them"
    assert [document.value for document in found.documents] == [{"a": 1}]
