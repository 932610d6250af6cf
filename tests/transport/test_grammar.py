"""Whether bytes have the grammar of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.transport._grammar import MAX_LEVELS, Grammar


def is_json(data: bytes, *, step: int = 1_000_000) -> bool:
    grammar = Grammar()
    return all(grammar.feed(data[at : at + step]) for at in range(0, len(data), step)) and grammar.end()


def is_read(data: bytes) -> bool:
    try:
        json.loads(data, parse_constant=int, parse_int=float)
    except (ValueError, RecursionError):
        return False
    return True


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
changes = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from(list('"{}[],:\\ \n01-+.eEtfnu\x00a'))),
    max_size=3,
)


@given(
    value=values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), changed=changes, step=st.integers(1, 9)
)
def test_what_is_json_is_what_a_json_parser_reads(
    value: object, ascii_only: bool, indent: int | None, changed: list[tuple[int, int, str]], step: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    for at, removed, added in changed:
        begin = at % (len(text) + 1)
        text = text[:begin] + added + text[begin + removed :]
    data = text.encode()
    assert is_json(data) == is_json(data, step=step) == is_read(data)


@given(text=st.text('"{}[],:\\ 01-.eutn', max_size=8), step=st.integers(1, 3))
def test_any_text_of_marks_is_read_as_a_json_parser_does(text: str, step: int) -> None:
    data = text.encode()
    assert is_json(data) == is_json(data, step=step) == is_read(data)


@pytest.mark.parametrize(
    "data", [b'"\\ud800"', b'{"\xff":"\xfe"}', b"9" * 5_000, b"1e999", b"[" * MAX_LEVELS + b"]" * MAX_LEVELS]
)
@pytest.mark.parametrize("step", [1, 1_000_000])
def test_what_cannot_be_decoded_may_be_grammatical(data: bytes, step: int) -> None:
    assert is_json(data, step=step)


@pytest.mark.parametrize(
    "data", [b"[" * (MAX_LEVELS + 1), b"NaN", b"1" * 200_000, b"\xef\xbb\xbf{}", b"'a'", b'{"a":1}}']
)
def test_what_ends_nowhere_or_is_no_json_is_refused(data: bytes) -> None:
    assert not is_json(data, step=1_000)


def test_a_broken_text_stays_broken() -> None:
    grammar = Grammar()
    assert not grammar.feed(b"]")
    assert not grammar.feed(b"1")
    assert not grammar.end()
