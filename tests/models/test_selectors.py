"""Label and field selectors: grammar, matching, formatting."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.errors import SelectorError, TrioformerError
from trioformer.models._selectors import FieldRequirement, FieldSelector, LabelRequirement, LabelSelector

NAME_SHAPE = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
PATH_RULE = "a field path must not be empty and must not contain white space, ',', '=', '!' or a backslash"


# ------------------------------------------------------------------------------------- labels: parsing


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        ("a=b", [("a", "=", ["b"])]),
        ("a!=b", [("a", "!=", ["b"])]),
        (" a\t=\r\nb ", [("a", "=", ["b"])]),
        ("a", [("a", "exists", [])]),
        ("!a", [("a", "!", [])]),
        ("a= ,b!= ", [("a", "=", [""]), ("b", "!=", [""])]),
        ("a in(y,x)", [("a", "in", ["x", "y"])]),
        ("a in ()", [("a", "in", [""])]),
        ("a>1,b<2", [("a", "gt", ["1"]), ("b", "lt", ["2"])]),
        (f"a<{2**63 - 1}", [("a", "lt", [str(2**63 - 1)])]),
        # operators that are words at this position
        ("in,notin", [("in", "exists", []), ("notin", "exists", [])]),
        ("in=notin", [("in", "=", ["notin"])]),
        ("in in (in,notin)", [("in", "in", ["in", "notin"])]),
        # keys and values
        ("a.b-c.d/" + "n" * 63, [("a.b-c.d/" + "n" * 63, "exists", [])]),
        ("a=" + "v" * 63, [("a", "=", ["v" * 63])]),
        # sorted by key, otherwise in the given order
        ("b<5,a,b>1", [("a", "exists", []), ("b", "lt", ["5"]), ("b", "gt", ["1"])]),
    ],
)
def test_label_selectors_parse(text: str, requirements: list[tuple[str, Any, list[str]]]) -> None:
    expected = tuple(LabelRequirement(key, operator, values) for key, operator, values in requirements)
    assert LabelSelector.parse(text).requirements == expected


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        (",", 0, "found ',', expected a label key or '!'"),
        ("a,", 2, "found the end, expected a label key or '!'"),
        ("!", 1, "found the end, expected a label key"),
        ("!!a", 1, "found '!', expected a label key"),
        ("a b", 2, "found 'b', expected =, ==, !=, in, notin, > or <"),
        ("a=b=c", 3, "found '=', expected ',' or the end"),
        ("a===b", 3, "found '=', expected a value"),
        ("a in", 4, "found the end, expected '('"),
        ("a in (", 6, "found the end, expected a value, ',' or ')'"),
        ("a in (b", 7, "found the end, expected ',' or ')'"),
        ("a>", 2, "'' must be an integer of at most 64 bits for a comparison"),
        (f"a>{2**63}", 2, f"'{2**63}' must be an integer of at most 64 bits for a comparison"),
        ("a>1_0", 2, "'1_0' must be an integer of at most 64 bits for a comparison"),
        ("a=b-", 2, f"label value 'b-' must be empty, or {NAME_SHAPE}"),
        ("a=é", 2, f"label value 'é' must be empty, or {NAME_SHAPE}"),
        ("a=b\0", 2, rf"label value 'b\x00' must be empty, or {NAME_SHAPE}"),
        ("a in (b,c/d)", 8, f"label value 'c/d' must be empty, or {NAME_SHAPE}"),
        ("a=" + "v" * 64, 2, f"label value '{'v' * 64}' has 64 characters; the limit is 63"),
        ("n" * 64, 0, f"the name in label key '{'n' * 64}' has 64 characters; the limit is 63"),
        ("A.b/c", 0, "the prefix of label key 'A.b/c' must be a lower-case DNS name of at most 253 characters"),
        ("a..b/c", 0, "the prefix of label key 'a..b/c' must be a lower-case DNS name of at most 253 characters"),
    ],
)
def test_label_selectors_that_do_not_parse(text: str, position: int, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert str(caught.value) == f"label selector {text!r}, position {position}: {problem}"


def test_a_prefix_has_at_most_253_characters() -> None:
    with pytest.raises(SelectorError, match="lower-case DNS name of at most 253 characters"):
        LabelSelector.parse(".".join(["p" * 49] * 5) + ".abcd/n")


def test_errors_about_long_selectors_are_one_short_line() -> None:
    text = f"a in ({','.join(str(n) for n in range(5000))}\n$)"
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    message = str(caught.value)
    assert len(message) < 400
    assert "\n" not in message
    assert f"position {len(text) - 2}" in message
    assert message.startswith("label selector 'a in (0,1,2,")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TrioformerError)


# ------------------------------------------------------------------------------------- labels: matching


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("", [{}, {"x": "y"}], []),
        ("x=y", [{"x": "y"}, {"x": "y", "z": "w"}], [{}, {"x": "z"}, {"x": ""}, {"y": "x"}]),
        ("x=", [{"x": ""}], [{}, {"x": "y"}]),
        ("x=y,x=z", [], [{"x": "y"}, {"x": "z"}]),
        ("x!=y", [{}, {"x": "z"}, {"x": ""}], [{"x": "y"}]),
        ("x!=", [{}, {"x": "z"}], [{"x": ""}]),
        ("x in (a,b)", [{"x": "a"}, {"x": "b"}], [{}, {"x": "c"}, {"x": ""}]),
        ("x notin (a,b)", [{}, {"x": "c"}, {"x": ""}], [{"x": "a"}, {"x": "b"}]),
        ("x notin ()", [{}, {"x": "a"}], [{"x": ""}]),
        ("!x", [{}, {"y": "z"}], [{"x": "z"}, {"x": ""}]),
        ("x>1", [{"x": "2"}, {"x": "+2"}, {"x": "007"}, {"x": str(2**63 - 1)}], [{}, {"x": "1"}, {"x": "0"}]),
        ("x>1", [], [{"x": "a"}, {"x": ""}, {"x": " 2"}, {"x": "2_0"}, {"x": "٢"}, {"x": str(2**63)}]),
        ("x<1", [{"x": "0"}, {"x": "-5"}, {"x": str(-(2**63))}], [{}, {"x": "1"}, {"x": "2"}, {"x": ""}]),
        ("x<1", [], [{"x": str(-(2**63) - 1)}, {"x": "0" * 5000}]),
        ("x,y!=a,z=1", [{"x": "", "z": "1"}], [{"x": "", "y": "a", "z": "1"}, {"z": "1"}, {"x": ""}]),
        ("notin=in", [{"notin": "in"}], [{"in": "notin"}]),
    ],
)
def test_label_selectors_match(text: str, matching: list[dict[str, str]], others: list[dict[str, str]]) -> None:
    selector = LabelSelector.parse(text)
    assert [labels for labels in matching if not selector.matches(labels)] == []
    assert [labels for labels in others if selector.matches(labels)] == []
    for labels in (*matching, *others):
        assert selector.matches(labels) == all(r.matches(labels) for r in selector.requirements)


# ------------------------------------------------------------------------------------- labels: formatting and forms


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("z == b , a!=c", "a!=c,z=b"),
        ("a in( z,y, ),b notin()", "a in (,y,z),b notin ()"),
        ("b < 5, a > 1", "a>1,b<5"),
    ],
)
def test_label_selectors_are_formatted(text: str, rendered: str) -> None:
    assert str(LabelSelector.parse(text)) == rendered


def test_label_selectors_are_made_from_every_form() -> None:
    parsed = LabelSelector.parse("app=web,tier=")
    assert LabelSelector.of({"tier": "", "app": "web"}) == parsed
    assert LabelSelector.of(" tier=, app == web") == parsed
    assert LabelSelector.of(parsed) is parsed
    for nothing in (None, "", {}):
        assert LabelSelector.of(nothing) == LabelSelector()
        assert LabelSelector.of(nothing).is_empty
    assert not parsed.is_empty


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"app": "w b"}, f"label requirement on 'app': label value 'w b' must be empty, or {NAME_SHAPE}"),
        ({"app": 3}, "label requirement on 'app': a label value must be a string, not int"),
    ],
)
def test_mappings_are_checked(labels: Mapping[Any, Any], message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.of(labels)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("operator", "values", "problem"),
    [
        ("=", [], "operator '=' takes one value, not 0"),
        ("in", [], "operator 'in' takes at least one value, not 0"),
        ("gt", [], "operator 'gt' takes one value, not 0"),
        ("gt", [1], "a label value must be a string, not int"),
        ("In", ["a"], "'In' is not an operator; the operators are =, !=, in, notin, exists, !, gt, lt"),
    ],
)
def test_constructed_requirements_are_checked(operator: Any, values: Iterable[str], problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelRequirement("key", operator, values)  # type: ignore[arg-type]  # any iterable is converted
    assert str(caught.value) == f"label requirement on 'key': {problem}"


def test_values_must_not_be_one_string() -> None:
    with pytest.raises(TypeError, match="not a single string"):
        LabelRequirement("key", "in", "abc")  # type: ignore[arg-type]  # the mistake that the test makes


def test_selectors_and_requirements_are_values() -> None:
    one, other = LabelSelector.parse("b in (y,x),a>1"), LabelSelector.parse("a>1, b in (x,y)")
    assert one == other
    assert hash(one) == hash(other)
    assert one != LabelSelector.parse("b in (y),a>1")
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert copy.matches({"a": "2", "b": "x"})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.requirements = ()  # type: ignore[misc]  # the mistake that the test makes
    assert repr(one.requirements[0]) == "LabelRequirement(key='a', operator='gt', values=('1',))"
    assert attrs.evolve(one.requirements[0], values=["7"]).matches({"a": "8"})
    assert not attrs.evolve(one.requirements[0], values=["7"]).matches({"a": "7"})


WORDS = st.from_regex(r"\A[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z") | st.sampled_from(["in", "notin", "a"])
KEYS = WORDS | st.builds("{}/{}".format, st.from_regex(r"\A[a-z0-9]+(-[a-z]+)?(\.[a-z0-9]+){0,2}\Z"), WORDS)
VALUES = st.just("") | WORDS
NUMBERS = st.integers(0, 2**63 - 1).map(str)
REQUIREMENTS = st.one_of(
    st.builds(LabelRequirement, KEYS, st.sampled_from(["=", "!="]), st.tuples(VALUES)),
    st.builds(LabelRequirement, KEYS, st.sampled_from(["in", "notin"]), st.lists(VALUES, min_size=1, max_size=4)),
    st.builds(LabelRequirement, KEYS, st.sampled_from(["exists", "!"])),
    st.builds(LabelRequirement, KEYS, st.sampled_from(["gt", "lt"]), st.tuples(NUMBERS)),
)
LABELS = st.dictionaries(st.sampled_from(["a", "in", "notin"]) | KEYS, VALUES | NUMBERS)


@given(st.lists(REQUIREMENTS, max_size=5), LABELS)
def test_a_formatted_label_selector_parses_to_an_equal_one(
    requirements: list[LabelRequirement], labels: dict[str, str]
) -> None:
    selector = LabelSelector(requirements)  # type: ignore[arg-type]  # any iterable is converted
    parsed = LabelSelector.parse(str(selector))
    assert parsed == selector
    assert str(parsed) == str(selector)
    assert parsed.matches(labels) == all(requirement.matches(labels) for requirement in requirements)


@given(
    st.lists(st.sampled_from(["a", "b", "1", "in", "notin", "=", "==", "!", "!=", ">", "<", "(", ")", ",", " ", "~"]))
)
def test_any_text_parses_to_a_label_selector_or_raises(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        selector = LabelSelector.parse(text)
    except SelectorError:
        return
    assert LabelSelector.parse(str(selector)) == selector
    assert selector.is_empty == (text.strip() == "")


# ------------------------------------------------------------------------------------- fields


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        (",", []),
        ("a==b", [("a", "=", "b")]),
        ("a=", [("a", "=", "")]),
        (",,a=a", [("a", "=", "a")]),
        ("a==z,a=b", [("a", "=", "b"), ("a", "=", "z")]),
        (r"k=\,,k2=v2", [("k2", "=", "v2"), ("k", "=", ",")]),
        (r"k=a\=\=b", [("k", "=", "a==b")]),
        ("k=a||b!c", [("k", "=", "a||b!c")]),
        ("k= a b\n", [("k", "=", " a b\n")]),
        ("함=수,목=록", [("목", "=", "록"), ("함", "=", "수")]),
    ],
)
def test_field_selectors_parse(text: str, requirements: list[tuple[str, Any, str]]) -> None:
    assert FieldSelector.parse(text).requirements == tuple(requirements)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("x", 0, "'x' has no operator; expected =, == or !="),
        ("a=b=c", 3, r"'=' in a value must be written '\='"),
        (r"k==\==", 5, r"'=' in a value must be written '\='"),
        (r"a=\x", 2, r"'\x' is not an escape; the escapes are '\,', '\=' and '\\'"),
        ("=b", 0, f"found '', but {PATH_RULE}"),
        ("a=1, b=2", 4, f"found ' b', but {PATH_RULE}"),
        (r"a\,b=c", 0, rf"found 'a\\,b', but {PATH_RULE}"),
        ("a!b=c", 0, f"found 'a!b', but {PATH_RULE}"),
    ],
)
def test_field_selectors_that_do_not_parse(text: str, position: int, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector.parse(text)
    assert str(caught.value) == f"field selector {text!r}, position {position}: {problem}"


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("", [{}], []),
        ("x=y", [{"x": "y"}], [{}, {"x": "z"}]),
        ("x=", [{}, {"x": ""}], [{"x": "z"}]),
        ("x!=y", [{}, {"x": "z"}], [{"x": "y"}]),
        ("x=y,z!=w", [{"x": "y"}, {"x": "y", "z": "v"}], [{"x": "y", "z": "w"}, {"x": "z"}]),
        (r"c=\=value\\\,\\", [{"c": "=value\\,\\"}], [{"c": r"\=value\\\,\\"}]),
    ],
)
def test_field_selectors_match(text: str, matching: list[dict[str, str]], others: list[dict[str, str]]) -> None:
    selector = FieldSelector.parse(text)
    assert [fields for fields in matching if not selector.matches(lambda path, f=fields: f.get(path, ""))] == []
    assert [fields for fields in others if selector.matches(lambda path, f=fields: f.get(path, ""))] == []


@pytest.mark.parametrize(
    ("text", "rendered"),
    [("", ""), ("z==b,a!=c,", "a!=c,z=b"), (r"k=\\\,\=,a=", r"a=,k=\\\,\=")],
)
def test_field_selectors_are_formatted(text: str, rendered: str) -> None:
    assert str(FieldSelector.parse(text)) == rendered


def test_field_selectors_are_made_from_every_form() -> None:
    parsed = FieldSelector.parse("metadata.name=x,spec.nodeName=")
    assert FieldSelector.of({"spec.nodeName": "", "metadata.name": "x"}) == parsed
    assert FieldSelector.of("spec.nodeName=,metadata.name=x") == parsed
    assert FieldSelector.of(parsed) is parsed
    assert hash(FieldSelector.of(str(parsed))) == hash(parsed)
    for nothing in (None, "", {}):
        assert FieldSelector.of(nothing) == FieldSelector()
        assert FieldSelector.of(nothing).is_empty
    assert not parsed.is_empty
    assert [(path, value) for path, _, value in parsed.requirements] == [("metadata.name", "x"), ("spec.nodeName", "")]


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        (("", "=", "x"), PATH_RULE),
        (("a=", "=", "x"), PATH_RULE),
        (("a!", "=", "x"), PATH_RULE),
        ((3, "=", "x"), "a field path must be a string, not int"),
        (("a", "==", "x"), "'==' is not an operator; the operators are =, !="),
        (("a", "=", 3), "a field's value must be a string, not int"),
    ],
)
def test_constructed_field_requirements_are_checked(requirement: Any, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector([requirement])  # type: ignore[arg-type]  # any iterable of triples is converted
    assert str(caught.value) == f"field requirement on {requirement[0]!r}: {problem}"


PATHS = st.text(st.characters(exclude_characters=",=!\\", exclude_categories=["Cs", "Z", "C"]), min_size=1)
TEXTS = st.text(st.sampled_from("ab,=!\\ \n")) | st.text()
FIELDS = st.builds(FieldRequirement, PATHS, st.sampled_from(["=", "!="]), TEXTS)


@given(st.lists(FIELDS, max_size=4), st.dictionaries(PATHS, TEXTS))
def test_a_formatted_field_selector_parses_to_an_equal_one(
    requirements: list[FieldRequirement], fields: dict[str, str]
) -> None:
    selector = FieldSelector(requirements)  # type: ignore[arg-type]  # any iterable is converted
    parsed = FieldSelector.parse(str(selector))
    assert parsed == selector
    assert str(parsed) == str(selector)
    assert sorted(parsed.requirements) == sorted(requirements)
    expected = all((fields.get(path, "") == value) == (operator == "=") for path, operator, value in requirements)
    assert parsed.matches(lambda path: fields.get(path, "")) == expected


@given(st.text(st.sampled_from("ab,=!\\ \n함")))
def test_any_text_parses_to_a_field_selector_or_raises(text: str) -> None:
    try:
        selector = FieldSelector.parse(text)
    except SelectorError:
        return
    assert FieldSelector.parse(str(selector)) == selector
