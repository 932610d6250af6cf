"""Amounts with absurd texts: exact within bounds, and never an error of decimal."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest

from trioformer.errors import DecodeError
from trioformer.models import Quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * 256, int("9" * 256)),
        ("1e256", 10**256),
        ("-1E256", -(10**256)),
        ("1" + "0" * 40 + ".5", Decimal("1" + "0" * 40 + ".5")),  # more digits than the context of a thread has
        # As apimachinery: what is less than a billionth is rounded up, and binary amounts end at 2⁶³ - 1.
        ("1E-5000", Decimal("1e-9")),
        ("-1E-5000", Decimal("-1e-9")),
        ("0E-5000", 0),
        ("1.0000000001", Decimal("1.000000001")),
        ("1.1n", Decimal("2e-9")),
        ("-1.1n", Decimal("-2e-9")),
        ("0." + "1" * 250, Decimal("0.111111112")),
        ("8Ei", 2**63 - 1),
        ("-8Ei", 1 - 2**63),
        ("9" * 250 + "Ki", 2**63 - 1),
        ("9E", 9 * 10**18),
        ("10E", 10**19),
    ],
)
def test_large_and_small_amounts_are_those_of_the_server(text: str, value: Decimal | int) -> None:
    for context in (decimal.DefaultContext, decimal.Context(prec=3, traps=[decimal.Inexact, decimal.Rounded])):
        with decimal.localcontext(context):
            quantity = Quantity(text)
            assert quantity.value == value
            assert hash(quantity) == hash(Decimal(value))
            assert (quantity < Quantity("0")) == (value < 0)
            assert int(quantity.value) == int(value)
            assert Decimal(format(quantity.value, "f")) == value


@pytest.mark.parametrize(
    "text",
    [
        "1e257",
        "1e999999999",
        "1E" + "9" * 200,
        "1" * 257,
        "1" * 10_000_000,
        "1E-" + "9" * 1_000,
        "\u0661",
        "\uff11",
        "1\n",
        "NaN",
    ],
    ids=lambda text: text[:12],
)
def test_an_absurd_text_is_a_decode_error_that_does_not_show_it(text: str) -> None:
    quantity = Quantity(text)
    for use in (lambda: quantity.value, lambda: hash(quantity), lambda: quantity < Quantity("1")):
        with pytest.raises(DecodeError) as caught:
            use()
        assert text not in str(caught.value)
        assert len(str(caught.value)) < 100
    with pytest.raises(DecodeError):
        assert quantity == Quantity("1")
    assert str(quantity) == text  # as it was sent, and would be sent back
