"""The events of PyYAML's parser, and what a scalar is; nothing of a text is quoted in an error.

PyYAML's composer and constructor recurse, so that a few kilobytes of brackets end the interpreter; they take the last
of two equal keys, and quote values in errors.
So only its parser is used, whose events come one by one.

Scalars are what they are for kubectl (``sigs.k8s.io/yaml``): ``yes`` is a boolean and ``0x1F`` an integer, but
dates, sexagesimal numbers such as ``60:00``, and numbers that fit into no number of Go's are strings.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import yaml

from .._secret import Secret

Scalar: TypeAlias = "str | bool | int | float | None"

R = TypeVar("R")

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_QUOTE = "put a value with special characters in quotes"
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **{spelling: True for word in ("true", "yes", "on", "y") for spelling in (word, word.title(), word.upper())},
    **{spelling: False for word in ("false", "no", "off", "n") for spelling in (word, word.title(), word.upper())},
}
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_OCTAL: Final = frozenset("01234567")
_FIRST_OF_NUMBER: Final = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|[0-9]++)")
_DECIMAL = re.compile(
    r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class YamlError(Exception):
    """What is wrong, and where; its traceback has events as variables, and is dropped."""

    def __init__(self, what: str, mark: Any = None, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        self.mark = mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        super().__init__(f"{what}{where}{hint}")


def decode_text(content: Secret[bytes]) -> Secret[str]:
    """Decode UTF-8, or UTF-16 with a byte order mark, which PowerShell writes."""
    is_utf_16 = content.reveal().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf_16 else "utf-8-sig"
    try:
        return Secret(content.reveal().decode(encoding))
    except UnicodeDecodeError as exc:
        line = content.reveal().count(b"\n", 0, exc.start) + 1
    raise YamlError(f"is not {encoding.removesuffix('-sig').upper()} text (line {line}): save it in UTF-8")


def parse_events(text: Secret[str], compose: Callable[[Callable[[], Any]], R]) -> R:
    """Parse a stream, and return what ``compose`` makes of its events; it gets the function for the next one.

    Raises:
        YamlError: It is not YAML.
    """
    try:
        loader = _LOADER(text.reveal())
        try:
            return compose(loader.get_event)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        what = ", ".join(_without_quotation(part) for part in (exc.context, exc.problem) if part)
        raise YamlError(f"is not YAML: {what}", exc.problem_mark, f"; {_QUOTE}") from None
    except (yaml.YAMLError, ValueError, OverflowError, LookupError) as exc:
        # What PyYAML raises for unprintable characters, and for code points that do not exist.
        found = _UNPRINTABLE.search(text.reveal())
        if isinstance(exc, yaml.YAMLError) and found:
            line = text.reveal().count("\n", 0, found.start()) + 1
            raise YamlError(f"contains a control character (line {line}): remove it") from None
        raise YamlError(f"is not valid YAML; {_QUOTE}") from None


def _without_quotation(problem: str) -> str:
    """Cut what PyYAML's loader in Python quotes; that in C quotes nothing, and otherwise says almost the same."""
    problem = problem.partition(", but ")[0]
    return re.sub(r""" (['"]).*\1""", "", problem, flags=re.DOTALL) if problem.startswith("found ") else problem


def resolve_scalar(text: str) -> Scalar:
    """Return what a plain scalar without a tag is; a float may be infinite or NaN, which JSON does not have."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _FIRST_OF_NUMBER:
        digits = text.replace("_", "")
        if _INTEGER.fullmatch(digits):
            return text if _overflows(digits) else _integer(digits.lower())
        if _DECIMAL.fullmatch(digits):
            return text if _overflows(digits) else float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _overflows(digits: str) -> bool:
    """Whether a number is too large for Go's integers or, in decimal, for a float64; the time is linear."""
    base = _BASES.get(digits.lstrip("+-")[:2].lower())
    if base is not None:
        lowest, beyond = (-(1 << 63), 1 << 63) if digits[0] in "+-" else (0, 1 << 64)
        return not lowest <= int(digits, base) < beyond
    return not digits[-1].isalpha() and math.isinf(float(digits))  # what ends with a letter is .inf or .nan


def _integer(digits: str) -> int | float:
    """Return the value that kubectl gives digits: ``017`` is octal, and an integer of more than 64 bits a float64."""
    sign, unsigned = ("-", digits[1:]) if digits[0] == "-" else ("", digits.lstrip("+"))
    base = _BASES.get(unsigned[:2])
    if base is None:
        unsigned = unsigned.lstrip("0") or "0"
        base = 8 if unsigned != digits.lstrip("+-") and set(unsigned) <= _OCTAL else 10
    value = int(f"{sign}{unsigned}", base)
    if -(1 << 63) <= value < 1 << 64:
        return value
    return float(f"{sign}{unsigned}")  # an octal number that overflows is a decimal one
