"""The values of a kubeconfig show nothing of it, and neither does an error."""

from __future__ import annotations

import pytest

from trioformer._secret import Secret
from trioformer.errors import ConfigError
from trioformer.kubeconfig._values import Fields, Items, kind_of, parse_yaml, reveal


def problem(text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(Secret(text.encode() if isinstance(text, str) else text), "config")
    error = caught.value
    assert (error.file, error.key) == ("config", None)
    assert error.__cause__ is None
    assert error.__context__ is None
    return str(error).removeprefix("config: ")


def test_nothing_of_a_document_is_shown() -> None:
    value = parse_yaml(Secret(b"s3cret: [s3cret, {a: s3cret}, 4242]"), "config")
    assert isinstance(value, Fields)
    items = value.get("s3cret")
    assert isinstance(items, Items)
    assert "s3cret" not in f"{value!r} {items!r} {list(items)!r} {value} {items}"
    assert (repr(value), repr(items)) == ("<1 fields>", "<3 items>")
    assert reveal(value) == {"s3cret": ["s3cret", {"a": "s3cret"}, 4242]}


def test_kinds_are_named_for_errors() -> None:
    value = parse_yaml(Secret(b"[a, yes, 1, 1.5, {}, [], ~]"), "config")
    assert isinstance(value, Items)
    expected = ["a string", "a boolean", "an integer", "a number", "a mapping", "a list", "nothing"]
    assert list(map(kind_of, value)) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("[a, {b: 1.5}]", ["a", {"b": 1.5}]), ("a", "a"), ("7", 7), ("~", None)]
)
def test_a_value_is_revealed_as_json_has_it(text: str, expected: object) -> None:
    assert reveal(parse_yaml(Secret(text.encode()), "config")) == expected


@pytest.mark.parametrize("text", ["", "# nothing\n", "--- ~", "---\n---\n"])
def test_an_empty_file_has_no_value(text: str) -> None:
    assert parse_yaml(Secret(text.encode()), "config") is None


@pytest.mark.parametrize("end", ["---", "--- # nothing\n# more\n", "--- ~\n", "...\n---\n...\n"])
def test_an_empty_document_may_follow(end: str) -> None:
    assert reveal(parse_yaml(Secret(f"a: b\n{end}".encode()), "config")) == {"a": "b"}


@pytest.mark.parametrize("end", ["--- {}", "--- s3cret", "---\n---\n", "---\n--- a\n"])
def test_a_second_document_with_a_value_and_a_third_are_errors(end: str) -> None:
    assert problem(f"a: b\n{end}").startswith("contains a second document: remove it (line ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b\nc: d\na: s3cret", "has a key twice in one mapping: remove one of them (line 3, column 1)"),
        ("password: s3cret: s3cret", "is not YAML: mapping values are not allowed in this context (line 1, column 17)"),
        (b"a: b\nc: s3cr\xe9t\n", "is not UTF-8 text (line 2): save it in UTF-8"),
    ],
)
def test_a_problem_names_its_place_and_quotes_nothing(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)
    assert "s3cret" not in problem(text)
