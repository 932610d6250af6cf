"""The values of flags, as Go's ``flag`` package reads them."""

from __future__ import annotations

import re
from typing import Final

from ._failures import UsageError

__all__ = ["duration_value", "int_value", "natural_number"]

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_LARGEST: Final = 2**63
_LONGEST: Final = _LARGEST / 1e9
"""Seconds; Go counts nanoseconds."""


def duration_value(text: str, flag: str) -> float:
    """Return the seconds of a duration such as ``1m30s`` or ``-1s``; a unit is needed, except for ``0``.

    Raises:
        UsageError: It is not a duration.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    sign = -1.0 if text.startswith("-") else 1.0
    if rest == "0":
        return 0.0
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        problem = "missing unit in" if _NUMBER.fullmatch(text) else "invalid"
        raise _invalid(text, flag, f'time: {problem} duration "{text}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds >= _LONGEST:
        raise _invalid(text, flag, f'time: invalid duration "{text}"')
    return sign * seconds


def int_value(text: str, flag: str) -> int:
    """Return a whole number of 64 bits.

    Raises:
        UsageError: It is not a number.
    """
    problem = "invalid syntax"
    if found := re.fullmatch(r"([+-]?)([0-9]+)", text):
        number = int(f"{found[1]}{natural_number(found[2])}")
        if -_LARGEST <= number < _LARGEST:
            return number
        problem = "value out of range"
    raise _invalid(text, flag, f'strconv.ParseInt: parsing "{text}": {problem}')


def natural_number(digits: str) -> int:
    """Return the number of decimal digits; of thousands, which Python does not read, one that is too large as well."""
    return int(digits.lstrip("0")[:20] or "0")


def _invalid(text: str, flag: str, problem: str) -> UsageError:
    return UsageError(f'invalid argument "{text}" for "{flag}" flag: {problem}', is_flag=True)
