"""YAML is what it is for kubectl, is checked before anything is made of it, and no problem quotes it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trioformer import _yaml
from trioformer._secret import Secret
from trioformer._yaml import Composed, Mapping, YamlError, compose, decode_text


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has a loader in C only with libyaml."""
    monkeypatch.setattr(_yaml, "_LOADER", getattr(yaml, request.param))


def composed(text: str | bytes) -> Composed:
    return compose(decode_text(Secret(text.encode() if isinstance(text, str) else text)))


def values(text: str | bytes) -> list[Any]:
    found = composed(text)
    assert (found.problems, found.error) == ([], None)
    return [document.value for document in found.documents]


def parsed(text: str | bytes) -> Any:
    (only,) = values(text)
    return only


def problem(text: str) -> str:
    """Return the first problem, with its place."""
    found = composed(text)
    if not found.problems:
        return str(found.error)
    first = found.problems[0]
    return f"{first.message} (line {first.line}, column {first.column})"


# --- values ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# nothing\n", []),
        ("--- ~", [None]),
        ("---\n---\n...\n", [None, None]),
        ("a: 1\n---\nb: 2\n...\n---\nc: 3\n", [{"a": 1}, {"b": 2}, {"c": 3}]),
        ("%YAML 1.1\n--- a", ["a"]),
    ],
)
def test_a_text_has_documents(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[~, null, Null, NULL, ]", [None] * 4),
        ("{a: , b: c}", {"a": None, "b": "c"}),
        ("- a: [b, {c: 'd'}]\n  e: |\n    f\n- g", [{"a": ["b", {"c": "d"}], "e": "f\n"}, "g"]),
        ("[true, True, yes, on, ON, y, Y]", [True] * 7),
        ("[false, FALSE, no, off, Off, n, N]", [False] * 7),
        ("['true', \"yes\", !!str no, ! off]", ["true", "yes", "no", "off"]),
        ("[!!str 5, !!int '5', !!float 1, !!bool yes, !!null '', ! 5]", ["5", 5, 1, True, None, "5"]),
        ("!!map {a: !!seq [b]}", {"a": ["b"]}),
        ("[0, -1, +12, 1_000, 00, 9223372036854775808]", [0, -1, 12, 1000, 0, 1 << 63]),
        ("[0x1F, -0x10, 0o17, 017, -017, 0b11, 089]", [31, -16, 15, 15, -15, 3, 89]),
        ("[1.5, .5, 1., -1e3, 99999999999999999999999]", [1.5, 0.5, 1.0, -1000.0, 1e23]),
        ("0" + "7" * 40, float("7" * 40)),
        ("0" * 100_000, 0),
        ("[1.2.3, 1x, -, --, ., .., 0x, 0b2]", ["1.2.3", "1x", "-", "--", ".", "..", "0x", "0b2"]),
        ("[1e, +, _1]", ["1e", "+", "_1"]),
        ("[60:00:00, 1:2.5, -190:20:30, 2026-11-22]", ["60:00:00", "1:2.5", "-190:20:30", "2026-11-22"]),
        ("[trues, nUll, YeS, '', \"\"]", ["trues", "nUll", "YeS", "", ""]),
        ("{8080: a, -1: b, 'yes': c, \"1.5\": d}", {"8080": "a", "-1": "b", "yes": "c", "1.5": "d"}),
        ('"\\u00e9\\n\\x41"', "é\nA"),
        ("a: &x {b: &y c}\nd: *x\ne: [*y, *y]\n", {"a": {"b": "c"}, "d": {"b": "c"}, "e": ["c", "c"]}),
        ("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &a {b: 1}\nc: &c {b: 2, d: 2}\ne: {f: 3, <<: [*a, *c]}",
         {"a": {"b": 1}, "c": {"b": 2, "d": 2}, "e": {"f": 3, "b": 1, "d": 2}}),
        ("{'<<': {c: d}}", {"<<": {"c": "d"}}),
        ('{"a": [1, 2.5, true, null]}', {"a": [1, 2.5, True, None]}),
    ],
)  # fmt: skip
def test_values_are_those_of_kubectl(text: str, expected: Any) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("12345e678901", "-1e400", "1.8e308", "9" * 400, "9" * 100_000, "0x" + "f" * 100_000, "0o" + "7" * 40),
        *("0x1_0000_0000_0000_0000", "-0x8000000000000001", "+0xffffffffffffffff", "-0b1" + "0" * 64),
    ],
)
def test_a_number_that_overflows_is_a_string_as_for_kubectl(text: str) -> None:
    assert parsed(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("text", ["9" * 60, "0xffffffffffffffff", "1e-400", "1.7e308", "0." + "9" * 100_000])
def test_a_long_number_that_does_not_overflow_is_one(text: str) -> None:
    assert isinstance(parsed(text), int | float)


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "[{a: .NaN}]"])
def test_a_number_that_json_does_not_have_is_a_problem(text: str) -> None:
    assert "JSON does not have" in problem(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf_8_and_utf_16_with_a_byte_order_mark_are_read(encoding: str) -> None:
    assert parsed("a: é€\U0001f600\r\nb: c\r\n".encode(encoding)) == {"a": "é€\U0001f600", "b": "c"}


def test_documents_and_mappings_know_where_they_begin() -> None:
    first, second = composed("# comment\n---\na:\n  b: c\n---\n  d: [{e: f}]\n").documents
    assert [(document.line, document.column) for document in (first, second)] == [(3, 1), (6, 3)]
    assert isinstance(first.value["a"], Mapping)
    assert (first.value["a"].line, first.value["a"].column) == (4, 3)
    assert (second.value["d"][0].line, second.value["d"][0].column) == (6, 7)


# --- limits ---


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "[[", "{[", "? ", "[{a: "])
def test_levels_are_limited_without_recursion(opening: str) -> None:
    # The second is the limit of the parser in C, since PyYAML 6.0.4.
    limits = ("has more than 120 levels", "exceeded maximum nesting depth")
    assert any(text in problem(opening * 25_000) for text in (*limits, "a key must be a string"))


def test_as_many_levels_as_an_object_may_have_are_read() -> None:
    text = "[" * _yaml.MAX_LEVELS + "]" * _yaml.MAX_LEVELS
    assert parsed(text)
    assert problem(f"[{text}]").endswith("levels of lists and mappings (line 1, column 121)")


def test_an_alias_counts_as_if_it_were_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{name}'] * 9)}]\n"
        for name, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "too many values" in problem(bomb)
    long = f"a: &a {'x' * 10_000_000}\nb: [*a, *a, *a, *a, *a"
    assert parsed(f"{long}]")
    assert "too many values" in problem(f"{long}, *a, *a]")
    monkeypatch.setattr(_yaml, "MAX_SIZE", 10 * 16 + 6)
    assert parsed("[&a [b, c], *a, *a]")  # the list, and three for each item
    assert "too many values" in problem("[&a [b, c], *a, *a, '']")


def test_problems_are_not_counted_without_end() -> None:
    assert len(composed("- {a: 1, a: 2}\n" * 10_000).problems) == _yaml.MAX_PROBLEMS


# --- problems ---


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("a: b\nc: d\na: s3cret", "key twice", (3, 1)),
        ("x: {a: b, 'a': s3cret}", "key twice", (1, 11)),
        ("kind: a\nb: c\nkind: d", "a line ---", (3, 1)),
        ("{<<: s3cret}", "merge key", (1, 6)),
        *((f"{{{key}: s3cret}}", "key that is not a string", (1, 2)) for key in ("yes", "1.5", "0x1F", "017", "~")),
        ("?\n  a: b\n: c", "a key must be a string", (2, 3)),
        ("a: &a s3cret\n*a : b", "a key must be a string", (2, 1)),
        ("&a [*a]", "not an alias", (1, 5)),
        ("[*a, &a b]", "not an alias", (1, 2)),
        *(
            (f"password: {value}", "tag", (1, 11))
            for value in ("!s3cret x", "!s3cret {a: b}", "!!binary czNjcmV0", "!!int s3cret", "!!seq {s3cret: a}")
        ),
        ("password: *s3cret", "not an alias", (1, 11)),
        ("password: &s3cret", "begins with &", (1, 11)),
    ],
)
def test_what_programs_read_differently_is_a_problem(text: str, words: str, place: tuple[int, int]) -> None:
    assert words in problem(text)
    assert problem(text).endswith(f" (line {place[0]}, column {place[1]})")
    assert "s3cret" not in problem(text)


def test_a_key_that_is_a_template_says_so() -> None:
    assert "helm template" in problem("replicas: {{ .Values.replicas }}")


def test_all_problems_are_found_up_to_what_is_not_yaml() -> None:
    found = composed("{a: 1, a: 2}\n---\n{no: 1}\n---\nb: !x c\n---\n[\n")
    assert [each.line for each in found.problems] == [1, 3, 5]
    assert found.error is not None
    assert found.error.mark.line == 7
    assert [document.value for document in found.documents] == [{"a": 1}, {"no": 1}, {"b": "c"}]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("password: !s3cret!x y", "(line 1, column 11)"),
        ("password: @s3cret", "(line 1, column 11)"),
        ("password: s3cret: s3cret", "(line 1, column 17)"),
        ('password: "s3cret', "(line 1, column 18)"),
        ('password: "\\s3cret"', "(line "),
        ("a:\n\tpassword: s3cret", "(line 2, column 1)"),
        ("%TAG s3cret s3cret\n---\na", "(line "),
    ],
)
def test_syntax_errors_name_the_place_and_quote_nothing(text: str, place: str) -> None:
    found = problem(text)
    assert found.startswith("is not YAML: ")
    assert "s3cret" not in found
    assert place in found


def test_the_python_loader_quotes_no_characters() -> None:
    for character in "@`%":
        with pytest.raises(yaml.YAMLError) as caught:
            list(yaml.parse(f"a: {character}", yaml.SafeLoader))
        assert character in str(caught.value.problem)
        assert _yaml._without_quotation(caught.value.problem) == "found character that cannot start any token"
    assert _yaml._without_quotation("could not find expected ':'") == "could not find expected ':'"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: b\nc: s3cr\xe9t\n", "is not UTF-8 text (line 2)"),
        ("a: s3cret".encode("utf-16-le"), "contains a control character (line 1)"),
        (b"\xff\xfea", "is not UTF-16 text (line 1)"),
        (b"a: b\nc: s3cret\x00\n", "contains a control character (line 2)"),
        ("a: s3cret\x9b".encode(), "contains a control character (line 1)"),
        ("a: s3cret\uffff".encode(), "contains a control character (line 1)"),
        (b'a: "s3cret\\U00110000"', "is not "),
    ],
)
def test_bytes_that_are_no_text_are_an_error_with_the_line(content: bytes, expected: str) -> None:
    try:
        error: YamlError | None = composed(content).error
    except YamlError as exc:
        error = exc
    assert str(error).startswith(expected)
    assert "s3cret" not in str(error)
