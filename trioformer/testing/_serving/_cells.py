"""What the cells of Tables in ``kubectl get`` are made from: words and durations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

Cell: TypeAlias = str | int | float
NONE = "<none>"
UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400


def human_duration(seconds: float) -> str:
    """Format an age in the same way as apimachinery's ``HumanDuration``, for example as ``3s``, ``2m21s`` or ``5d``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    for limit, unit, size, small, small_size in (
        (2 * _MINUTE, "s", 1, "", 1),
        (10 * _MINUTE, "m", _MINUTE, "s", 1),
        (3 * _HOUR, "m", _MINUTE, "", 1),
        (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
        (2 * _DAY, "h", _HOUR, "", 1),
        (8 * _DAY, "d", _DAY, "h", _HOUR),
        (2 * _YEAR, "d", _DAY, "", 1),
        (8 * _YEAR, "y", _YEAR, "d", _DAY),
    ):
        if total < limit:
            rest = total % size // small_size if small else 0
            return f"{max(total, 0) // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{total // _YEAR}y"


def since(text: object, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(str(text))
    except ValueError:
        return UNKNOWN
    return human_duration((now - then.replace(tzinfo=then.tzinfo or UTC)).total_seconds())
