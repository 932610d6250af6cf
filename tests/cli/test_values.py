"""Values of flags, as Go reads them, also those that Python refuses or has no limit for."""

from __future__ import annotations

import pytest

from trioformer.cli._failures import UsageError
from trioformer.cli._values import duration_value, int_value

MANY = "9" * 5_000
"""More digits than Python makes a number of."""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("0" * 5_000 + "80", 80),
    ],
    ids=lambda value: value[-20:] if isinstance(value, str) else "",
)
def test_a_number_has_64_bits(text: str, number: int) -> None:
    assert int_value(text, "--flag") == number


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", MANY, f"-{MANY}"], ids=len)
def test_a_number_of_more_bits_is_out_of_range(text: str) -> None:
    with pytest.raises(UsageError, match=f'^invalid argument "{text}" for "--flag" flag: .*: value out of range$'):
        int_value(text, "--flag")


@pytest.mark.parametrize("text", ["", "-", "x", "1_0", "1.0", "²", " 1", "1\n"])
def test_what_is_no_number_has_an_invalid_syntax(text: str) -> None:
    with pytest.raises(UsageError, match=r"invalid syntax$"):
        int_value(text, "--flag")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("-1s", -1), ("1m30s", 90), ("1.5h", 5_400), ("2ms", 0.002), ("2562047h", 9223369200)],
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    assert duration_value(text, "--flag") == seconds


@pytest.mark.parametrize("text", ["2562048h", f"{MANY}s", f"-{MANY}ns"], ids=len)
def test_a_duration_of_more_than_292_years_is_an_error(text: str) -> None:
    with pytest.raises(
        UsageError, match=f'^invalid argument "{text}" for "--flag" flag: time: invalid duration "{text}"$'
    ):
        duration_value(text, "--flag")
