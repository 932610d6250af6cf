"""Values as Go prints them (``fmt.Sprint``), and durations as apimachinery's ``HumanDuration``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

__all__ = ["float_text", "human_duration", "is_int64", "sprint"]

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400
_LIMITS: Final = (
    (2 * _MINUTE, "s", 1, "", 1),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 1),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (2 * _DAY, "h", _HOUR, "", 1),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 1),
    (8 * _YEAR, "y", _YEAR, "d", _DAY),
)


def sprint(value: object) -> str:
    """Return a value of JSON as Go's ``fmt.Sprint``: ``map[a:1]``, ``[x y]``, ``<nil>``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, int) and not is_int64(value)):
        return float_text(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{sprint(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(sprint, value))}]"
    return str(value)


def float_text(value: float) -> str:
    """Return a number as Go's ``%v``: with an exponent below -4 and from 6 on, unless it is a whole number of 64 bits.

    Go has read such a number as one, and not as a float.
    """
    if is_int64(value):
        return str(int(value)) if value or math.copysign(1, value) > 0 else "-0"
    text = repr(float(value)) if abs(value) < 1e308 else str(value)
    number = Decimal(text)
    if not number.is_finite() or -4 <= number.adjusted() < 6:
        return text
    sign, digits, _ = number.normalize().as_tuple()
    mantissa = ".".join(filter(None, (str(digits[0]), "".join(map(str, digits[1:])))))
    return f"{'-' * sign}{mantissa}e{number.adjusted():+03}"


def is_int64(value: float) -> bool:
    """Whether a number is whole, and has at most 64 bits."""
    return -(2**63) <= value < 2**63 and (isinstance(value, int) or value.is_integer())


def human_duration(seconds: float) -> str:
    """Format an age as apimachinery's ``HumanDuration`` does: ``3s``, ``2m21s``, ``5d``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    for limit, unit, size, small, small_size in _LIMITS:
        if total < limit:
            rest = total % size // small_size if small else 0
            return f"{max(total, 0) // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{total // _YEAR}y"
