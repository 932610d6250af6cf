"""Kubernetes quantities such as ``100m``, ``1.5Gi`` and ``2e3``.

Any user of a cluster can write a quantity.  The length of the text and the exponent are limited, so that calculations
cannot become too expensive.
"""

from __future__ import annotations

import functools
import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Final, Literal, TypeAlias, final

import attrs

from ..errors import DecodeError

_SUFFIX = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
_BY_POWER: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_ONE_KI: Final = Decimal(1024)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MAX_TEXT: Final = 256
_MAX_EXPONENT: Final = 256
_NANO: Final = Decimal("1e-9")
_MAX_BINARY: Final = Decimal(2**63 - 1)
_MIN_BINARY: Final = Decimal(1 - 2**63)  # an operator would round in the thread's context
# Not the thread's context, whose 28 digits are less than a text may have.
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])
_ROUNDING: Final = Context(prec=2 * (_MAX_TEXT + _MAX_EXPONENT), rounding=ROUND_UP, traps=[InvalidOperation])


@final
@functools.total_ordering
@attrs.frozen(eq=False, repr=False)
class Quantity:
    """A resource amount that keeps its original text and is compared by value.

    Quantities can be added, subtracted, multiplied by integers and summed; the results are exact.  A result is in
    canonical form, and its suffix is in the same family as the suffix of the first operand that is not 0.  For
    example, ``Quantity("1Gi") + Quantity("1G")`` is ``2023741824``, and ``Quantity("1.5Gi") * 2`` is ``3Gi``.

    The constructor does not check the text.  Encoding writes the text unchanged.

    Source: apimachinery ``pkg/api/resource``.

    Raises:
        DecodeError: The text is not a quantity, or is longer than 256 characters, or its exponent is greater than 256.
            :attr:`value`, :attr:`canonical`, the hash, comparisons and calculations raise this exception, which is a
            subclass of ValueError.
    """

    text: str
    """The original text, such as ``1500m``."""

    @property
    def value(self) -> Decimal:
        """The amount in the base unit, such as cores or bytes.

        The value is exact, except that two limits of the API server apply.  An amount is rounded away from zero to
        whole billionths, and an amount with a binary suffix is at most 2⁶³ - 1.
        """
        text = self.text
        match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT else None
        if match is None:
            # Not the text: it is the content of an object.
            raise DecodeError(f"a string of {len(text)} characters is not a quantity; examples: 100m, 1.5, 2Gi, 1e3")
        number, suffix = Decimal(match[1]), match[2] or ""
        if suffix in _SUFFIX:
            found = _EXACT.multiply(number, _SUFFIX[suffix])
            if suffix[1:]:
                found = max(min(found, _MAX_BINARY), _MIN_BINARY)
        else:
            exponent = int(suffix[1:])
            if exponent > _MAX_EXPONENT:
                raise DecodeError(f"a quantity with an exponent above {_MAX_EXPONENT} is not supported")
            # Below this, every number of the longest text is less than a billionth.
            found = _EXACT.scaleb(number, max(exponent, -2 * _MAX_TEXT))
        return found if _is_whole(found) else found.quantize(_NANO, context=_ROUNDING)

    @property
    def canonical(self) -> Quantity:
        """The same amount in canonical form: no fraction, and the largest possible suffix of the same family.

        For example, ``1.5Gi`` becomes ``1536Mi``, ``0.5`` becomes ``500m``, and ``1e2`` becomes ``100``.
        As in Go, ``62.5Ki`` becomes ``64000``, although the canonical form of ``64000`` itself is ``64k``.
        The API server stores quantities in this form, but keeps some texts such as ``1.500`` unchanged.
        The server has no suffix above ``E``, so it wrongly writes 10²¹ as ``1``, while this property returns ``1e21``.

        Raises:
            DecodeError: The text is not a quantity.
        """
        return Quantity(_canonical(self.value, _family(self.text)))

    def __add__(self, other: Quantity) -> Quantity:
        return self._calculated(other, 1)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._calculated(other, -1)

    def _calculated(self, other: Quantity, sign: int) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        value = self.value
        family = _family(self.text if value else other.text)
        return Quantity(_canonical(_EXACT.add(value, _EXACT.multiply(other.value, Decimal(sign))), family))

    def __radd__(self, other: int) -> Quantity:
        """Support ``sum()``, which starts with 0; adding any other number raises TypeError."""
        return self.canonical if other == 0 and isinstance(other, int) else NotImplemented

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        return Quantity(_canonical(_EXACT.multiply(self.value, Decimal(factor)), _family(self.text)))

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return self * -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.text == other.text or self.value == other.value

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.value < other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"


def _is_whole(number: Decimal) -> bool:
    """Return whether a number has at most nine decimal places."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -9


# --- canonical form ---------------------------------------------------------------------------------------------------

_Family: TypeAlias = Literal["decimal", "binary", "exponent"]
"""A family of suffixes, such as ``k``, ``Ki`` or ``e3``."""


def _family(text: str) -> _Family:
    if text.endswith("i"):
        return "binary"
    return "exponent" if re.search(r"[eE][+-]?\d+\Z", text, re.ASCII) else "decimal"


def _canonical(value: Decimal, family: _Family) -> str:
    if not value:
        return "0"
    # With a binary suffix, more than the largest amount would be read as the largest.
    if family == "binary" and not (_ONE_KI <= value.copy_abs() <= _MAX_BINARY and value == int(value)):
        family = "decimal"
    if family == "binary":
        amount, power = int(value), 0
        while amount % 1024 == 0 and power < len(_BINARY) - 1:
            amount, power = amount // 1024, power + 1
        return f"{amount}{_BINARY[power]}"
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DecodeError("a quantity must be a finite number")
    mantissa = "".join(map(str, digits))
    power = exponent + len(mantissa) - len(mantissa.rstrip("0"))
    mantissa = (mantissa.rstrip("0") or "0") + "0" * (power % 3)
    power -= power % 3
    suffix = _BY_POWER.get(power) if family == "decimal" else None
    if suffix is None:
        suffix = f"e{power}" if power else ""
    return f"{'-' if sign else ''}{mantissa}{suffix}"
