"""Values in the texts of errors are written as Go writes them."""

from __future__ import annotations

import pytest

from trioformer.testing._storage._field_errors import Verbatim, quoted, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Verbatim("{1 2}"), "{1 2}"),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (2**70, shown(float(2**70))),
        ("a", '"a"'),
    ],
)
def test_a_value_is_shown(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ('a"b\\', r'"a\"b\\"'),
        ("\n\t", r'"\n\t"'),
        ("é", '"é"'),
        ("\x01", r'"\x01"'),
        ("\u2028", r'"\u2028"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_a_text_is_a_literal_of_go(text: str, literal: str) -> None:
    assert quoted(text) == literal
