"""YAML is checked on its events, before anything is made of it, and no error quotes it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.support.cpu_time import least_seconds
from trioformer._secret import Secret
from trioformer.errors import ConfigError
from trioformer.kubeconfig import _yaml
from trioformer.kubeconfig._checks import CheckError
from trioformer.kubeconfig._values import Fields, Items, Number, NumberKind, Value, to_json

MEBIBYTE = 1 << 20


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has a loader in C only with libyaml."""
    monkeypatch.setattr(_yaml, "_LOADER", getattr(yaml, request.param))


both_loaders = pytest.mark.usefixtures("_loader")


def plain(value: Value) -> object:
    match value:
        case Secret():
            return value.reveal()
        case Items():
            return [plain(item) for item in value]
        case Fields():
            return {key: plain(value.get(key)) for key in value._fields}
        case Number():
            return value.kind
        case _:
            return value


def parsed(text: str | bytes) -> object:
    return plain(_yaml.parse_yaml(Secret(text.encode() if isinstance(text, str) else text), "config"))


def problem(text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    error = caught.value
    assert (error.file, error.key) == ("config", None)
    assert error.__cause__ is None
    assert error.__context__ is None
    return str(error).removeprefix("config: ")


# ------------------------------------------------------------------------------------------------------------- values


@both_loaders
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("--- ~", None),
        ("[~, null, Null, NULL, ]", [None] * 4),
        ("{a: , b: c}", {"a": None, "b": "c"}),
        ("- a: [b, {c: 'd'}]\n  e: |\n    f\n- g", [{"a": ["b", {"c": "d"}], "e": "f\n"}, "g"]),
        ("[true, True, yes, on, ON, y, Y]", [True] * 7),
        ("[false, FALSE, no, off, Off, n, N]", [False] * 7),
        ("['true', \"yes\", !!str no, ! off]", ["true", "yes", "no", "off"]),
        ("[!!bool true, !!null ~, !!int 1, !!float 1.5]", [True, None, NumberKind.INTEGER, NumberKind.DECIMAL]),
        ("!!map {a: !!seq [b]}", {"a": ["b"]}),
        ("[0, -1, +12, 1_000, 0x1F, 0o17, 017, 0b11]", [NumberKind.INTEGER] * 8),
        ("[1.5, .5, 1., -1e3, 1.5E-3, .inf, -.Inf, .nan]", [NumberKind.DECIMAL] * 8),
        (
            "[1.2.3, 1x, -, --, ., .., 0x, 0b2, 1e, +, _1]",
            ["1.2.3", "1x", "-", "--", ".", "..", "0x", "0b2", "1e", "+", "_1"],
        ),
        ("[trues, nUll, YeS, '', \"\"]", ["trues", "nUll", "YeS", "", ""]),
        ("{1: a, true: b, ~: c}", {"1": "a", "true": "b", "~": "c"}),
        ('"\\u00e9\\n\\x41"', "é\nA"),
        ("%YAML 1.1\n--- a", "a"),
    ],
)
def test_values_are_what_they_are_for_kubectl(text: str, value: object) -> None:
    assert parsed(text) == value


@both_loaders
@pytest.mark.parametrize(
    "text",
    [
        *("60:00:00", "1:2", "1:2.5", "-190:20:30", "1:60", "190:20:30.15", "1:2:3.x"),
        *("2026-11-22", "2026-13-45", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43"),
        "9" * 5000 + ":00",
    ],
)
def test_sexagesimal_numbers_and_dates_are_strings_as_for_kubectl(text: str) -> None:
    assert parsed(f"a: {text}") == {"a": text}


@both_loaders
@pytest.mark.parametrize(
    "text",
    [
        *("12345e678901", "-1e400", "1.8e308", "1e" + "9" * 5_000, "9" * 400, "9" * 100_000, "-" + "1" * 310),
        *("0xdeadbeefdeadbeefdeadbeefdeadbeef", "0x1_0000_0000_0000_0000", "-0x8000000000000001", "0x" + "f" * 100_000),
        *("+0xffffffffffffffff", "0o" + "7" * 40, "0b" + "1" * 77, "-0b1" + "0" * 64, "0B" + "1" * 100_000),
    ],
)
def test_a_number_that_overflows_is_a_string_as_for_kubectl(text: str) -> None:
    assert parsed(f"a: {text}") == {"a": text}


@both_loaders
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, NumberKind.INTEGER)
            for text in ("9" * 60, "0xffffffffffffffff", "-0x8000000000000000", "0" + "7" * 99)
        ),
        *(
            (text, NumberKind.INTEGER)
            for text in ("0" * 100_000, "0x" + "0" * 100_000 + "f", "0o1777777777777777777777")
        ),
        *((text, NumberKind.DECIMAL) for text in ("1e-400", "1.7e308", "0." + "9" * 100_000, "-.inf", "0e999999999")),
    ],
)
def test_a_long_number_that_does_not_overflow_is_one(text: str, expected: NumberKind) -> None:
    assert parsed(text) is expected


@both_loaders
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[0, -1, +12, 1_000, 00, 9223372036854775808]", [0, -1, 12, 1000, 0, 1 << 63]),
        ("[0x1F, -0x10, 0o17, 017, -017, 0b11, 089]", [31, -16, 15, 15, -15, 3, 89]),
        ("[1.5, .5, 1., -1e3, 99999999999999999999999]", [1.5, 0.5, 1.0, -1000.0, 1e23]),
        ("0" + "7" * 40, float("7" * 40)),
        ("0" * 100_000, 0),
        ("{a: [b, ~, yes, {c: 1}]}", {"a": ["b", None, True, {"c": 1}]}),
    ],
)
def test_what_is_passed_on_as_json_has_the_values_of_kubectl(text: str, expected: object) -> None:
    assert to_json(_yaml.parse_yaml(Secret(text.encode()), "config")) == expected


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "[{a: .NaN}]"])
def test_a_number_that_json_does_not_have_cannot_be_passed_on(text: str) -> None:
    with pytest.raises(CheckError, match="JSON does not have"):
        to_json(_yaml.parse_yaml(Secret(text.encode()), "config"))


@both_loaders
def test_an_alias_repeats_the_value_of_its_anchor() -> None:
    assert parsed("a: &x {b: &y c}\nd: *x\ne: [*y, *y]\n") == {"a": {"b": "c"}, "d": {"b": "c"}, "e": ["c", "c"]}


@both_loaders
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf_8_and_utf_16_with_a_byte_order_mark_are_read(encoding: str) -> None:
    assert parsed("a: é€\U0001f600\r\nb: c\r\n".encode(encoding)) == {"a": "é€\U0001f600", "b": "c"}


def test_nothing_of_a_document_is_shown() -> None:
    value = _yaml.parse_yaml(Secret(b"s3cret: [s3cret, {a: s3cret}, 4242]"), "config")
    assert isinstance(value, Fields)
    items = value.get("s3cret")
    assert isinstance(items, Items)
    assert "s3cret" not in f"{value!r} {items!r} {list(items)!r} {value} {items}"
    assert "4242" not in repr(list(items))
    assert (repr(value), repr(items)) == ("<1 fields>", "<3 items>")


# ------------------------------------------------------------------------------------------------------------- limits


OPENINGS = ["[", "{a: ", "- ", "[[", "{[", "? ", "[{a: "]


@both_loaders
@pytest.mark.parametrize("opening", OPENINGS)
def test_too_many_levels_are_refused(opening: str) -> None:
    text = opening * 25_000
    assert problem(text).startswith(("has more than 50 levels of lists and mappings (line 1", "a key must be a string"))


def test_a_mebibyte_of_levels_does_not_end_the_interpreter(tmp_path: Path) -> None:
    program = f"""
from trioformer.errors import ConfigError
from trioformer.kubeconfig import load_kubeconfig
for number in range({len(OPENINGS)}):
    try:
        load_kubeconfig(f"{tmp_path}/{{number}}")
    except ConfigError:
        print(number)
"""
    for number, opening in enumerate(OPENINGS):
        (tmp_path / str(number)).write_text((opening * MEBIBYTE)[:MEBIBYTE])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == [str(number) for number in range(len(OPENINGS))]


@both_loaders
def test_the_limit_of_levels_is_exact() -> None:
    assert parsed("[" * 50 + "]" * 50)
    assert problem("[" * 51 + "]" * 51) == "has more than 50 levels of lists and mappings (line 1, column 51)"


@both_loaders
def test_the_limit_of_keys_and_values_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_yaml, "MAX_NODES", 8)
    assert parsed("a: b\nc: [d, e, f]\n")  # the mapping, two keys, b, the list and its items
    expected = "has more than 8 keys and values: split it, $KUBECONFIG may list several files"
    assert problem("a: b\nc: [d, e, f, g]\n") == f"{expected} (line 2, column 14)"


@both_loaders
def test_what_aliases_repeat_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert "keys and values" in problem("\n".join(lines))
    assert problem("\n".join(lines)).endswith("(line 5, column 20)")  # the second alias of 7,381 values
    monkeypatch.setattr(_yaml, "MAX_NODES", 10)
    assert parsed("[&a [b, c], *a, *a]")  # the list, and three for each item
    assert parsed("[&a b, *a, *a, *a, *a, *a, *a, *a, *a]")
    assert "keys and values" in problem("[&a [b, c], *a, *a, d]")
    assert "keys and values" in problem("[&a b, *a, *a, *a, *a, *a, *a, *a, *a, *a]")


@both_loaders
@pytest.mark.parametrize("text", ["&a [*a]", "a: &a {b: *a}", "[*a, &a b]"])
def test_an_alias_inside_or_before_its_anchor_is_an_error(text: str) -> None:
    assert problem(text).startswith("begins with * but is not an alias of a value before it: ")


@both_loaders
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028"])
def test_many_directives_are_refused_at_once(end: str) -> None:
    assert parsed(f"%TAG !a! x{end}" * 1 + "--- b") == "b"
    text = "# c" + "".join(f"{end}%TAG !a{n}! x" for n in range(60_000)) + f"{end}--- b"
    assert problem(text) == "has more than 10 lines that begin with %: remove them, they are not needed"


@both_loaders
@pytest.mark.parametrize("end", ["---", "---\n", "--- # nothing\n# more\n", "--- ~\n", "...\n---\n...\n", "--- null"])
def test_an_empty_document_may_follow(end: str) -> None:
    assert parsed(f"a: b\n{end}") == {"a": "b"}


@both_loaders
@pytest.mark.parametrize("end", ["--- {}", "--- ''", "--- s3cret", "---\n---\n", "---\n--- a\n", "---\n" * 100_000])
def test_a_second_document_with_a_value_and_a_third_are_errors(end: str) -> None:
    assert problem(f"a: b\n{end}").startswith("contains a second document: remove it (line ")


# ------------------------------------------------------------------------------------------------- what is ambiguous


@both_loaders
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b\nc: d\na: s3cret", "has a key twice in one mapping: remove one of them (line 3, column 1)"),
        ("x: {a: b, 'a': s3cret}", "has a key twice in one mapping: remove one of them (line 1, column 11)"),
        ("x: &x {a: b}\ny:\n  <<: *x", "merge keys (<<) are not supported: write the fields out (line 3, column 3)"),
        ("{<<: s3cret}", "merge keys (<<) are not supported: write the fields out (line 1, column 2)"),
        ("a\n--- s3cret", "contains a second document: remove it (line 2, column 1)"),
        ("{[s3cret]: b}", "a key must be a string, not a list, a mapping or an alias (line 1, column 2)"),
        ("? {a: b}\n: c", "a key must be a string, not a list, a mapping or an alias (line 1, column 3)"),
        ("a: &a s3cret\n*a : b", "a key must be a string, not a list, a mapping or an alias (line 2, column 1)"),
    ],
)
def test_what_programs_read_differently_is_refused(text: str, expected: str) -> None:
    assert problem(text) == expected


@both_loaders
def test_quoted_merge_keys_and_keys_of_other_mappings_are_no_problem() -> None:
    assert parsed("'<<': a\nb: {c: {b: d}}\n") == {"<<": "a", "b": {"c": {"b": "d"}}}


TAG = "has a tag (!) that a kubeconfig cannot have: put a string that begins with ! in quotes"
STAR = "begins with * but is not an alias of a value before it: put a string that begins with * in quotes"
ANCHOR = "begins with & and has no value: put a string that begins with & in quotes"


@both_loaders
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("!s3cret", TAG),
        ("!s3cret x", TAG),
        ("!!s3cret", TAG),
        ("!<s3cret> a", TAG),
        ("!s3cret [a]", TAG),
        ("!s3cret {a: b}", TAG),
        ("!!binary czNjcmV0", TAG),
        ("!!timestamp 2001-12-14", TAG),
        ("!!set {s3cret}", TAG),
        ("!!omap [s3cret: a]", TAG),
        ("!!python/name:os.s3cret", TAG),
        ("!!python/object/apply:os.system [s3cret]", TAG),
        ("!!int s3cret", TAG),
        ("!!float s3cret", TAG),
        ("!!bool s3cret", TAG),
        ("!!null s3cret", TAG),
        ("!!map [s3cret]", TAG),
        ("!!seq {s3cret: a}", TAG),
        ("*s3cret", STAR),
        ("&s3cret", ANCHOR),
    ],
)
def test_tags_aliases_and_anchors_that_may_be_passwords_are_not_quoted(value: str, expected: str) -> None:
    assert problem(f"password: {value}") == f"{expected} (line 1, column 11)"


QUOTE = "; put a value with special characters in quotes"


@both_loaders
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("password: !s3cret!x y", "(line 1, column 11)"),
        ("password: *s3cret!x", None),
        ("password: &s3cret!x", None),
        ("password: @s3cret", "(line 1, column 11)"),
        ("password: `s3cret`", "(line 1, column 11)"),
        ("password: %s3cret", "(line 1, column 11)"),
        ("password: s3cret: s3cret", "(line 1, column 17)"),
        ('password: "s3cret', "(line 1, column 18)"),
        ('password: "\\s3cret"', None),
        ('password: "\\x s3cret"', None),
        ("password: 's3cret' s3cret", "(line 1, column 20)"),
        ("password: |s3cret\n  s3cret", "(line 1, column 12)"),
        ("a:\n\tpassword: s3cret", "(line 2, column 1)"),
        ("a: [b\npassword: s3cret", None),
        ("%s3cret s3cret\n--- a: b: c", None),
        ("%TAG s3cret s3cret\n---\na", None),
        ("%YAML 2.0\n--- s3cret", None),
        ("s3cret\npassword: x: y", None),
        ("password: !<s3cret", None),
        ("password: !s3cret%zz x", None),
        ("? s3cret\nb: s3cret: c", None),
        ("- s3cret\nb", None),
    ],
)
def test_syntax_errors_name_the_position_and_quote_nothing(text: str, position: str | None) -> None:
    found = problem(text)
    assert found.startswith("is not YAML: ")
    assert found.endswith(QUOTE)
    assert "s3cret" not in found
    assert "(line " in found
    assert position is None or position in found


def test_the_python_loader_quotes_no_characters() -> None:
    for character in "@`%":
        with pytest.raises(yaml.YAMLError) as caught:
            list(yaml.parse(f"a: {character}", yaml.SafeLoader))
        assert character in str(caught.value.problem)
        assert _yaml._without_quotation(caught.value.problem) == "found character that cannot start any token"
    assert _yaml._without_quotation("""found undefined tag handle "!it's" """) == "found undefined tag handle "
    assert _yaml._without_quotation("could not find expected ':'") == "could not find expected ':'"
    assert _yaml._without_quotation("expected ' ', but found 'x'") == "expected ' '"


@both_loaders
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: b\nc: s3cr\xe9t\n", "is not UTF-8 text (line 2): save it in UTF-8"),
        (b"a: b\n\n\xff", "is not UTF-8 text (line 3): save it in UTF-8"),
        ("a: s3cret".encode("utf-16-le"), "contains a control character (line 1): remove it"),
        ("a: s3cret".encode("utf-32"), "contains a control character (line 1): remove it"),
        (b"\xff\xfea", "is not UTF-16 text (line 1): save it in UTF-8"),
        (b"a: b\nc: s3cret\x00\n", "contains a control character (line 2): remove it"),
        (b"a: s3cret\x1b[31m", "contains a control character (line 1): remove it"),
        ("a: s3cret\x9b".encode(), "contains a control character (line 1): remove it"),
        ("a: s3cret\uffff".encode(), "contains a control character (line 1): remove it"),
        (b"\x00" * 1000, "contains a control character (line 1): remove it"),
    ],
)
def test_bytes_that_are_no_text_are_an_error_with_the_line(content: bytes, expected: str) -> None:
    assert problem(content) == expected


@both_loaders
@pytest.mark.parametrize("escape", ["\\U00110000", "\\UFFFFFFFF", "\\U80000000"])
def test_code_points_that_do_not_exist_are_an_error(escape: str) -> None:
    assert problem(f'a: "s3cret{escape}"').endswith(QUOTE)


# --------------------------------------------------------------------------------------------------------------- time

LARGE = {
    "items": "- a\n" * (MEBIBYTE // 4),
    "flow items": "[" + "a," * (MEBIBYTE // 2 - 1) + "]",
    "aliases": "[&a a," + "*a," * (MEBIBYTE // 3 - 3) + "]",
    "brackets": "[" * MEBIBYTE,
    "dashes": "- " * (MEBIBYTE // 2),
    "escapes": '"' + "\\u0041" * (MEBIBYTE // 6 - 1) + '"',
    "lines": "a: b\n" + " c\n" * (MEBIBYTE // 3 - 2),
    "block": "a: |\n" + " c\n" * (MEBIBYTE // 3 - 2),
    "comments": "#\n" * (MEBIBYTE // 2),
    "blanks": "\n" * MEBIBYTE,
    "directives": "".join(f"%TAG !{n:06}! x\n" for n in range(MEBIBYTE // 16 - 1)) + "--- a",
    "documents": "---\n" * (MEBIBYTE // 4),
    "anchor": "&" + "a" * (MEBIBYTE - 3) + " b",
    "tag": "!" + "a" * (MEBIBYTE - 3) + " b",
    "percent": "!<" + "%41" * (MEBIBYTE // 3 - 3) + "> b",
    "colons": "a: " + ":" * (MEBIBYTE - 3),
    "base64": "a: " + "QUFB" * (MEBIBYTE // 4 - 1),
    "digits": "a: " + "1_" * (MEBIBYTE // 2 - 2),
    "digits and dot": "a: " + "1" * (MEBIBYTE - 8) + ".x",
}


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="the loader in Python is twenty times slower")
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.long
def test_a_mebibyte_takes_no_time_that_a_task_notices(name: str) -> None:
    content = Secret(LARGE[name].encode())
    assert len(content.reveal()) <= MEBIBYTE

    def parse() -> None:
        with suppress(ConfigError):
            _yaml.parse_yaml(content, "config")

    assert least_seconds(parse) < 0.06


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="the loader in Python is twenty times slower")
@pytest.mark.long
@pytest.mark.parametrize("item", ["- a\n", "- -1_2_3.5e-5x\n", "- 'a'\n", "- {}\n", "- \n"])
def test_the_most_values_take_no_time_that_a_task_notices(item: str) -> None:
    content = Secret((item * (_yaml.MAX_NODES - 1)).encode())
    values = _yaml.parse_yaml(content, "config")
    assert isinstance(values, Items)
    assert len(values) == _yaml.MAX_NODES - 1
    # 20 to 45 ms on two slow cores
    assert least_seconds(lambda: _yaml.parse_yaml(content, "config")) < 0.12
