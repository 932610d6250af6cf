"""Amounts with absurd texts: exact within bounds, and never an error of decimal."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.errors import DecodeError
from trioformer.models import Quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e256", 10**256),
        ("1" + "0" * 40 + ".5", Decimal("1" + "0" * 40 + ".5")),  # more digits than the context of a thread has
        # As apimachinery: what is less than a billionth is rounded up, and binary amounts end at 2⁶³ - 1.
        ("1E-5000", Decimal("1e-9")),
        ("0E-5000", 0),
        ("-1.1n", Decimal("-2e-9")),
        ("0." + "1" * 250, Decimal("0.111111112")),
        ("8Ei", 2**63 - 1),
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
        "1E" + "9" * 200,
        "1" * 10_000_000,
        "1E-" + "9" * 1_000,
        "\u0661",
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


# --- canonical form and arithmetic ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("-0.0Ki", "0"),
        ("1.500", "1500m"),
        ("-1.5", "-1500m"),
        ("100", "100"),
        ("1e2", "100"),
        ("1E3", "1e3"),
        ("12e-4", "1200e-6"),
        ("0.1n", "1n"),
        ("1.5Gi", "1536Mi"),
        ("2048Ki", "2Mi"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("8Ei", str(2**63 - 1)),
        ("1000E", "1e21"),
    ],
)
def test_the_canonical_form_has_no_fraction_and_the_largest_suffix(text: str, canonical: str) -> None:
    quantity = Quantity(text)
    assert quantity.canonical.text == canonical
    assert quantity.canonical == quantity
    assert quantity.canonical.canonical.text == canonical


def test_quantities_are_calculated_with_the_suffixes_of_the_first_one() -> None:
    assert (Quantity("1Gi") + Quantity("512Mi")).text == "1536Mi"
    assert (Quantity("1Gi") + Quantity("1G")).text == "2073741824"
    assert (Quantity("1G") + Quantity("1Gi")).text == "2073741824"
    assert (Quantity("0") + Quantity("1Gi")).text == "1Gi"
    assert (Quantity("1") - Quantity("100m")).text == "900m"
    assert (Quantity("1Mi") - Quantity("1048576")).text == "0"
    assert (Quantity("1.5Gi") * 2).text == "3Gi"
    assert (3 * Quantity("100m")).text == "300m"
    assert (-Quantity("1e3")).text == "-1e3"
    assert sum([Quantity("250m"), Quantity("750m")]).text == "1"  # type: ignore[union-attr]  # the sum of nothing is 0
    assert sum([Quantity("1.5Gi")], Quantity("0")).text == "1536Mi"
    # More than a binary suffix can say.
    assert (Quantity("8Ei") * 3).text == str(3 * (2**63 - 1))


def test_quantities_are_not_calculated_with_numbers_that_have_no_unit() -> None:
    for calculate in (
        lambda one: one + 1,
        lambda one: one - 1,
        lambda one: 1 + one,
        lambda one: one * 1.5,
        lambda one: one * one,
    ):
        with pytest.raises(TypeError, match="unsupported operand"):
            calculate(Quantity("1"))
    for absurd in (Quantity("x"), Quantity("1e999")):
        with pytest.raises(DecodeError):
            assert absurd + Quantity("1")
        with pytest.raises(DecodeError):
            assert absurd.canonical


AMOUNTS = st.tuples(
    st.decimals(-(10**9), 10**9, places=3).map("{:f}".format),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-3"]),
).map(lambda parts: Quantity("".join(parts)))


@given(AMOUNTS, AMOUNTS, st.integers(-100, 100))
def test_calculations_are_exact_in_every_context(one: Quantity, other: Quantity, factor: int) -> None:
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact, decimal.Rounded])):
        total, product, difference = one + other, one * factor, one - other
    with decimal.localcontext(decimal.Context(prec=100)):
        assert total.value == one.value + other.value
        assert difference.value == one.value - other.value
        assert product.value == one.value * factor
    assert other + one == total
    assert total.canonical == total
    assert one.canonical == one
