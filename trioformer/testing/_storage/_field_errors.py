"""Field errors as causes of a Status, with the messages of apimachinery's ``pkg/util/validation/field``.

The path of a field is a string such as ``spec.ports[0].name`` or ``metadata.labels[app]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from ._status import cause
from ._storage import JSONObject


def required(path: str, detail: str = "") -> JSONObject:
    """Return the cause for a missing value."""
    return cause("FieldValueRequired", _with("Required value", detail), path)


def forbidden(path: str, detail: str) -> JSONObject:
    """Return the cause for a value that is forbidden."""
    return cause("FieldValueForbidden", _with("Forbidden", detail), path)


def invalid_value(path: str, value: object, detail: str, *, reason: str = "FieldValueInvalid") -> JSONObject:
    """Return the cause for a value that is not valid.

    For a value of the wrong type, the cause has a different reason.
    """
    return cause(reason, _with(f"Invalid value: {shown(value)}", detail), path)


def not_supported(path: str, value: object, supported: Sequence[str]) -> JSONObject:
    """Return the cause for a value that is not one of the supported values."""
    listed = ", ".join(quoted(one) for one in supported)
    text = f"Unsupported value: {shown(value)}"
    return cause("FieldValueNotSupported", _with(text, f"supported values: {listed}" if supported else ""), path)


def duplicate(path: str, value: object) -> JSONObject:
    """Return the cause for a duplicate value."""
    return cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def too_long(path: str, limit: int) -> JSONObject:
    """Return the cause for a string that is too long."""
    unit = "byte" if limit == 1 else "bytes"
    return cause("FieldValueTooLong", f"Too long: may not be more than {limit} {unit}", path)


def too_many(path: str, size: int, limit: int) -> JSONObject:
    """Return the cause for a list or map with too many items."""
    unit = "item" if limit == 1 else "items"
    return cause("FieldValueTooMany", f"Too many: {size}: must have at most {limit} {unit}", path)


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


# --- values in texts, as Go writes them -------------------------------------------------------------------------------

_ESCAPES: Final = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_ESCAPES_OF_JSON: Final = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
_FIRST_WITH_EXPONENT: Final = 6


class Verbatim(str):
    """A value whose fields are not sorted in error messages, because Go structs keep the order of their fields."""

    __slots__ = ()


def shown(value: object) -> str:
    """Return a JSON value in the format of error messages."""
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)  # as Go decodes it
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return quoted(value)
    return json_text(value)


def quoted(text: str) -> str:
    """Return a string as a Go string literal."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def json_text(value: object) -> str:
    """Return the JSON of a map as Go encodes it, with sorted keys and escaped HTML characters."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: _ESCAPES_OF_JSON[found[0]], text)


def number_text(value: float) -> str:
    """Return a number in Go's format ``%v``, which uses an exponent for large and very small numbers."""
    if isinstance(value, int):
        return str(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits, power = _decimal(mantissa, int(exponent or 0))
    if not digits:
        return "-0" if str(value).startswith("-") else "0"
    sign = "-" if value < 0 else ""
    if power < -4 or power >= _FIRST_WITH_EXPONENT:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{sign}{whole}.{digits[power + 1 :]}" if digits[power + 1 :] else f"{sign}{whole}"


def _decimal(mantissa: str, exponent: int) -> tuple[str, int]:
    """Return the significant digits of a number, and the exponent of its first digit."""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 + exponent - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), power
