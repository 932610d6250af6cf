"""Values as Go prints them (``fmt.Sprint``), and durations as apimachinery's ``HumanDuration``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

__all__ = ["float_text", "human_duration", "sprint"]

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
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{sprint(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(sprint, value))}]"
    return str(value)


def float_text(value: float) -> str:
    """Return a number as Go's ``%v``: with an exponent below -4 and from 21 on."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value)) if value or math.copysign(1, value) > 0 else "-0"
    text = repr(value)
    if "e" not in text:
        return text if abs(value) >= 1e-4 else f"{value:e}"
    mantissa, _, exponent = text.partition("e")
    sign, digits = exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-")
    if sign == "+" and int(digits) < 21:
        return f"{value:.0f}"
    return f"{mantissa.removesuffix('.0')}e{sign}{digits.zfill(2)}"


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
