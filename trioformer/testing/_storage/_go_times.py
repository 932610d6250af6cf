"""Times as Go parses and encodes them, which are the types ``metav1.Time`` and ``metav1.MicroTime``.

Source: apimachinery ``pkg/apis/meta/v1/time.go`` and ``micro_time.go``, Go's ``time/format.go``.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from typing import Final

_DATE: Final = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"))
_CLOCK: Final = (("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"))
_ZONE: Final = ("Z07:00", r"Z|[+-]\d\d:\d\d")
_LAYOUTS: Final = {
    "T": (*_DATE, *_CLOCK, ("05", r"\d\d(?:[.,]\d+)?"), _ZONE),
    "U": (*_DATE, *_CLOCK, ("05", r"\d\d"), (".000000", r"\.\d{6}"), _ZONE),
}
"""The parts of the layouts in Go, with their patterns, by the letter of the type in the table of protobuf types."""


@functools.lru_cache(1_000)
def time_problem(text: str, kind: str) -> str:
    """Return the reason why a string is not a time, or an empty string if it is a time."""
    layout, rest = _LAYOUTS[kind], text
    what = f'parsing time "{text}" as "{"".join(element for element, _ in layout)}"'
    for element, pattern in layout:
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return f'{what}: cannot parse "{rest}" as "{element}"'
        rest = rest[found.end() :]
    if rest:
        return f'parsing time "{text}": extra text: "{rest}"'
    try:
        datetime.fromisoformat(text)
    except ValueError as exc:
        return f'parsing time "{text}": {str(exc).partition(" ")[0]} out of range'  # such as month or day
    return ""


@functools.lru_cache(1_000)
def utc_time(text: str, *, is_micro: bool) -> str:
    """Return a time in UTC, with microseconds or without fractions.  Texts that are not times do not change."""
    try:
        time = datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, ValueError):
        return text
    unit = "microseconds" if is_micro else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=unit) + "Z"
