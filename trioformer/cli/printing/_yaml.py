"""YAML as kubectl prints it: go-yaml v2's, with keys in order."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from ._go import float_text, is_int64

__all__ = ["to_yaml"]

_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WORDS: Final = frozenset(
    form
    for word in ("null", "true", "false", "y", "yes", "n", "no", "on", "off")
    for form in (word, word.title(), word.upper())
) | {"", "~", "<<", "=", ".nan", ".NaN", ".NAN"}
"""Plain texts that are other values; from ``resolve.go``."""
_NUMBER: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*"
    r"|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))"
)
_BASE60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIME: Final = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d\d?:\d\d?:\d\d?(?:\.\d*)?(?:Z|[ \t]*[-+]\d\d?(?::?\d\d)?)?)?"
)


class _Dumper(_BASE):  # type: ignore[misc]  # libyaml's or Python's, found at run time
    """Puts the texts into quotes that go-yaml v2 does."""

    def ignore_aliases(self, _: object) -> bool:
        """Never write an alias: equal parts of an object are not the same part."""
        return True


def to_yaml(value: object) -> str:
    """Return a value as kubectl's YAML, with the last line's end."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=True, default_flow_style=False, width=80)
    # The end of a document, which follows a scalar that is not in quotes.
    return text.removesuffix("...\n")


def _text(dumper: Any, value: str) -> Any:
    if "\n" in value:
        style = "|"
    elif value in _WORDS or _NUMBER.fullmatch(value) or _BASE60.fullmatch(value) or _TIME.fullmatch(value):
        style = '"'
    else:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _float(dumper: Any, value: float) -> Any:
    kind = "int" if is_int64(value) else "float"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", float_text(value))


def _int(dumper: Any, value: int) -> Any:
    if -(2**63) <= value < 2**64:
        return dumper.represent_scalar("tag:yaml.org,2002:int", str(value))
    return _float(dumper, value)


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"-?\d(\.\d+)?e[+-]\d+"), list("-0123456789"))
_Dumper.add_representer(int, _int)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _float)
