"""Convert API names to Python names for fields and classes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Final

from .._values import camel_case

__all__ = ["class_name", "field_names", "json_names", "snake_case", "unused"]

# A field of this name would hide the type in later annotations of the same class.
_USED_IN_ANNOTATIONS: Final = frozenset({"bool", "bytes", "float", "int", "str", "tuple"})


def snake_case(name: str) -> str:
    """Return the Python name for a JSON field, such as ``pod_ips`` for ``podIPs``."""
    words = name.lstrip("$").replace("-", "_")
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words)
    words = re.sub(r"([A-Z])(V\d)", r"\1_\2", words)
    # The last of several capitals begins the next word, except in the plural of an acronym.
    words = re.sub(r"([A-Z])([A-Z])(?=[a-z])(?!s(?:_|$))", r"\1_\2", words).lower()
    return f"{words}_" if keyword.iskeyword(words) or words in _USED_IN_ANNOTATIONS else words


def field_names(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Map the API names in one object to unique Python names.

    Args:
        names: The API names, which can be arbitrary strings.
        reserved: The names of the attributes that the class already has.
    """
    found: dict[str, str] = {}
    reserved = {*reserved, "self"}  # the first argument of the method that attrs writes
    taken = set(reserved)
    for name in names:
        # An underscore at the beginning would make a private name, for which attrs has other arguments.
        words = re.sub(r"_{2,}", "_", snake_case(re.sub(r"[^0-9A-Za-z_]", "_", name)).lstrip("_")) or "field"
        wanted = f"field_{words}" if words[0].isdigit() else words
        wanted = f"{wanted}_" if wanted in taken and f"{wanted}_" not in taken and wanted in reserved else wanted
        found[name] = unused(wanted, taken, "_")
    return found


def json_names(names: Mapping[str, str]) -> dict[str, str]:
    """Map Python names to API names, for those API names that cannot be derived from the Python names."""
    return {ours: theirs for theirs, ours in names.items() if camel_case(ours) != theirs}


def class_name(*parts: str) -> str:
    """Join parts into a class name: ``Website``, ``tls`` and ``x-options`` become ``WebsiteTlsXOptions``."""
    words = (word for part in parts for word in re.split(r"[^0-9A-Za-z]+", part))
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() and not keyword.iskeyword(name) else f"Kind{name}"


def unused(wanted: str, taken: set[str], separator: str = "") -> str:
    """Return the wanted name, with a number appended if it is taken, and add the result to the taken names."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted.rstrip('_')}{separator}{number}"
    taken.add(name)
    return name
