"""YAML is what it is for kubectl, is checked before anything is made of it, and knows its lines."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trioformer._secret import Secret
from trioformer.kubeconfig import _yaml as events
from trioformer.manifests import _yaml
from trioformer.manifests._yaml import Mapping, Parsed, parse_documents, position_of


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has a loader in C only with libyaml."""
    monkeypatch.setattr(events, "_LOADER", getattr(yaml, request.param))


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
        ("[yes, off, 'yes', 0x1F, 017, 1_000, 1.5, 1e3, 60:00, 2001-01-01, ~, '']",
         [[True, False, "yes", 31, 15, 1000, 1.5, 1000.0, "60:00", "2001-01-01", None, ""]]),
        ("[!!str 5, !!int '5', !!float 1, !!bool yes, !!null '', ! 5]", [["5", 5, 1, True, None, "5"]]),
        ("{8080: a, -1: b, 0: c}", [{"8080": "a", "-1": "b", "0": "c"}]),
        ("{'yes': a, \"1.5\": b, '<<': {c: d}}", [{"yes": "a", "1.5": "b", "<<": {"c": "d"}}]),
        ("a: &a [1, {b: c}]\nd: *a\n", [{"a": [1, {"b": "c"}], "d": [1, {"b": "c"}]}]),
        ("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n", [{"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}]),
        ("a: &a {b: 1}\nc: &c {b: 2, d: 2}\ne: {f: 3, <<: [*a, *c]}", [
            {"a": {"b": 1}, "c": {"b": 2, "d": 2}, "e": {"f": 3, "b": 1, "d": 2}}]),
        ('{"a": "\\u00e9", "b": [1, 2.5, true, null]}', [{"a": "é", "b": [1, 2.5, True, None]}]),
        ('{\n\t"a": 1\n}', [{"a": 1}]),
        ('{"a": "\\ud83d\\ude00"}', [{"a": "\U0001f600"}]),
        ('{"a": 1}{"b": 2}\n\n{"c": 3}\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
        (f'{{"{"k" * 2000}": 1}}', [{"k" * 2000: 1}]),
    ],
)  # fmt: skip
def test_values_are_those_of_kubectl(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


def test_documents_and_mappings_know_where_they_begin() -> None:
    found = parsed("# comment\n---\na:\n  b: c\n---\n  d: [{e: f}]\n")
    first, second = found.documents
    assert [(document.line, document.column) for document in found.documents] == [(3, 1), (6, 3)]
    assert isinstance(first.value["a"], Mapping)
    assert (first.value["a"].line, first.value["a"].column) == (4, 3)
    assert (second.value["d"][0].line, second.value["d"][0].column) == (6, 7)
    json = parsed('{"a": "\\ud83d\\ude00"}\n  {"b": 1}')
    assert [(document.line, document.column) for document in json.documents] == [(1, 1), (2, 3)]


def test_a_value_is_found_by_its_path() -> None:
    text = Secret(b"a: 1\n---\nb:\n- c: {d: e}\n- *x\n")
    assert position_of(text, 0, ("a",)) is None  # it is not YAML, as the alias is not known
    text = Secret(b"a: 1\n---\nb:\n- c: {d: e}\n- f\n")
    assert position_of(text, 1, ("b", 0, "c", "d")) == (4, 10)
    assert position_of(text, 1, ("b", 1)) == (5, 3)
    assert position_of(text, 1, ("b", 0, "c", "missing", "more")) == (4, 6)


def test_all_problems_of_a_file_are_found_up_to_what_is_not_yaml() -> None:
    found = parsed("{a: 1, a: 2}\n---\n{no: 1}\n---\nb: !x c\n---\n[\n")
    assert [(each.line, each.message.partition(":")[0]) for each in found.problems] == [
        (1, "has the key 'a' twice in one mapping"),
        (3, "has a key that is not a string but a number, a boolean or null"),
        (5, "has a tag (!) that manifests cannot have"),
        (8, "is not YAML"),
    ]
    assert [document.value for document in found.documents] == [{"a": 1}, {"no": 1}, {"b": "c"}]


def test_problems_are_not_counted_without_end() -> None:
    text = "- {a: 1, a: 2}\n" * 10_000
    assert len(parsed(text).problems) == _yaml.MAX_PROBLEMS


def test_an_alias_counts_as_if_it_were_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{name}'] * 9)}]\n"
        for name, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "keys and values: split the file" in problem(bomb)
    monkeypatch.setattr(_yaml, "MAX_EXPANDED", 10_000)
    long = f"a: &a {'x' * 1_000}\nb: [{', '.join(['*a'] * 20)}]"
    assert "has more than 10,000 characters with its aliases: split the file" in problem(long)


def test_an_alias_in_itself_is_a_problem() -> None:
    assert problem("a: &a [*a]").startswith("1:8: begins with * but is not an alias of a value before it")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 10_000, "a: " + "{a: " * 10_000, '{"a":' * 10_000])
def test_levels_are_limited_without_recursion(text: str) -> None:
    assert parsed(text).problems


def test_as_many_levels_as_an_object_may_have_are_read() -> None:
    text = "[" * _yaml.MAX_LEVELS + "]" * _yaml.MAX_LEVELS
    assert parsed(text).problems == ()
    assert "has more than 120 levels" in problem(f"[{text}]")
    surrogates = '{"a": "\\ud83d\\ude00", "b": ' + text + "}"
    assert "has more than 120 levels" in problem(surrogates)


@pytest.mark.parametrize("text", ['{"a": NaN}{}', '{"a": "\\ud83d\\ude00", "b": Infinity}', '{"a": "\\ud83d\\ude00",}'])
def test_what_is_neither_yaml_nor_json_is_a_problem_of_yaml(text: str) -> None:
    # The loader in Python accepts surrogates.
    assert "is not YAML" in problem(text) or "contains half of a character" in problem(text)


def test_a_key_of_json_twice_is_a_problem_of_its_document() -> None:
    found = parsed('{"a": 1}\n {"b": {"c": 1, "c": "\\ud83d\\ude00"}}')
    (only,) = found.problems
    assert str(only) == "a.yaml:2:2: has the key 'c' twice in one object: remove one of them"
    assert [document.value for document in found.documents] == [{"a": 1}]
