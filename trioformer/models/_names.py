"""The rules for the names that URL paths consist of.

A name from a server, a manifest or a configuration becomes a part of a path.
With a ``#``, ``?`` or ``/`` in it, the path would be another one: the collection, or another kind.

Source: apimachinery ``util/validation`` (``IsDNS1123Subdomain``, ``IsDNS1035Label``) and ``api/validation/path``.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Final

__all__ = [
    "NOT_NAMES",
    "check_resource",
    "guess_plural",
    "is_label",
    "is_path_segment",
    "is_subdomain",
    "is_version",
    "kind_problem",
]

_LOWER: Final = frozenset(string.ascii_lowercase + string.digits + "-")
_ANY_CASE: Final = _LOWER | frozenset(string.ascii_uppercase)
NOT_NAMES: Final = frozenset(("", ".", ".."))
"""Invalid names without ``/`` and ``%``."""
_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253

_LABEL_RULE: Final = "a DNS label: at most 63 lower-case letters, digits and '-', and no '-' at its ends"


def is_path_segment(name: str) -> bool:
    """Whether an API server can serve an object of this name (apimachinery ``IsValidPathSegmentName``)."""
    return name not in NOT_NAMES and "/" not in name and "%" not in name


def is_label(text: str) -> bool:
    """Whether a text is a DNS label, like the name of a resource."""
    return 0 < len(text) <= _MAX_LABEL and _LOWER.issuperset(text) and text[0] != "-" != text[-1]


def is_version(text: str) -> bool:
    """Whether a text is a DNS label that begins with a letter, like the version of an API."""
    return is_label(text) and text[0].isalpha()


def is_subdomain(text: str) -> bool:
    """Whether a text is a DNS subdomain, like the name of an API group."""
    return len(text) <= _MAX_SUBDOMAIN and all(map(is_label, text.split(".")))


def kind_problem(kind: str) -> str:
    """Return the rule for a kind, if a text is not a valid one; otherwise an empty string."""
    if _ANY_CASE.issuperset(kind) and is_version(kind.lower()):
        return ""
    return "a name of at most 63 letters, digits and '-' that begins with a letter"


def check_resource(group: str, version: str, kind: str, plural: str, subresources: Iterable[str]) -> None:
    """Check the names of a resource.

    Raises:
        TypeError: One of them is not a string.
        ValueError: One of them is not valid; the text has the name and the rule.
    """
    for what, value in (("group", group), ("version", version), ("kind", kind), ("plural", plural)):
        if not isinstance(value, str):
            raise TypeError(f"the {what} of a resource must be a string, not {type(value).__name__}")
    if group and not is_subdomain(group):
        raise ValueError(f"the group of a resource must be a DNS subdomain in lower case or empty, not {group[:99]!r}")
    if not is_version(version):
        rule = f"{_LABEL_RULE}, and a letter first"
        raise ValueError(f"the version of a resource must be {rule}, not {version[:99]!r}")
    if rule := kind_problem(kind):
        raise ValueError(f"the kind of a resource must be {rule}, not {kind[:99]!r}")
    if not is_label(plural):
        raise ValueError(f"the plural of a resource must be {_LABEL_RULE}, not {plural[:99]!r}")
    for name in subresources:
        if not is_path_segment(name):
            raise ValueError(f"a subresource must be one segment of a URL path, not {name[:99]!r}")


def guess_plural(kind: str) -> str:
    """Guess a plural (apimachinery ``meta.UnsafeGuessKindToResource``)."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
