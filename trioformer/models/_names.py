"""The rules for names that become parts of URL paths.

A name can come from a server, a manifest or a configuration file.
If a name contained ``#``, ``?`` or ``/``, the URL would refer to a different resource, such as the whole collection.

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
"""The invalid names that contain neither ``/`` nor ``%``."""
_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253

_LABEL_RULE: Final = "a DNS label (at most 63 lower-case letters, digits and '-', with no '-' at either end)"
_VERSION_RULE: Final = (
    "a DNS label that begins with a letter (at most 63 lower-case letters, digits and '-', with no '-' at the end)"
)


def is_path_segment(name: str) -> bool:
    """Return whether an API server can serve an object with this name (apimachinery ``IsValidPathSegmentName``)."""
    return name not in NOT_NAMES and "/" not in name and "%" not in name


def is_label(text: str) -> bool:
    """Return whether a string is a DNS label, as the name of a resource must be."""
    return 0 < len(text) <= _MAX_LABEL and _LOWER.issuperset(text) and text[0] != "-" != text[-1]


def is_version(text: str) -> bool:
    """Return whether a string is a DNS label that begins with a letter, as the version of an API must be."""
    return is_label(text) and text[0].isalpha()


def is_subdomain(text: str) -> bool:
    """Return whether a string is a DNS subdomain, as the name of an API group must be."""
    return len(text) <= _MAX_SUBDOMAIN and all(map(is_label, text.split(".")))


def kind_problem(kind: str) -> str:
    """Return the rule that a kind's name violates, or an empty string if the name is valid."""
    if _ANY_CASE.issuperset(kind) and is_version(kind.lower()):
        return ""
    return "a name of at most 63 letters, digits and '-' that begins with a letter"


def check_resource(group: str, version: str, kind: str, plural: str, subresources: Iterable[str]) -> None:
    """Check that all names of a resource are valid.

    Raises:
        TypeError: A name is not a string.
        ValueError: A name is not valid.  The message contains the name and the rule.
    """
    for what, value in (("group", group), ("version", version), ("kind", kind), ("plural", plural)):
        if not isinstance(value, str):
            raise TypeError(f"the {what} of a resource must be a string, not {type(value).__name__}")
    if group and not is_subdomain(group):
        raise ValueError(f"the group of a resource must be a DNS subdomain in lower case or empty, not {group[:99]!r}")
    if not is_version(version):
        raise ValueError(f"the version of a resource must be {_VERSION_RULE}, not {version[:99]!r}")
    if rule := kind_problem(kind):
        raise ValueError(f"the kind of a resource must be {rule}, not {kind[:99]!r}")
    if not is_label(plural):
        raise ValueError(f"the plural of a resource must be {_LABEL_RULE}, not {plural[:99]!r}")
    for name in subresources:
        if not is_path_segment(name):
            raise ValueError(f"a subresource must be one segment of a URL path, not {name[:99]!r}")


def guess_plural(kind: str) -> str:
    """Guess the plural of a kind (apimachinery ``meta.UnsafeGuessKindToResource``)."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
