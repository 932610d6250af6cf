"""What describes each kind, and every other one by its fields (kubectl ``pkg/describe``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..printing import sprint
from ._describe_access import ACCESS
from ._describe_configuration import CONFIGURATION
from ._describe_network import NETWORK
from ._describe_nodes import NODES
from ._describe_related import Objects, Related
from ._describe_scaling import SCALING
from ._describe_storage import STORAGE
from ._describe_text import Description
from ._describe_workloads import WORKLOADS

__all__ = ["DESCRIBERS", "describe_fields"]

_WORD: Final = re.compile(r"[A-Z]{3,}[a-z]+|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
"""Words of a name; several capitals and the letters behind them are one, such as ``URLs``."""
_ACRONYMS: Final = ("API", "URL", "UID", "GUID")
_SKIPPED: Final = {f".metadata.{name}" for name in ("managedFields", "name", "namespace", "labels", "annotations")}


def describe_fields(obj: Mapping[str, Any], events: Objects | None) -> str:
    """Return the description of an object of any kind: all its fields."""
    text = Description()
    text.head(obj)
    _fields(text, 0, obj, "")
    text.events(events)
    return text.render()


def _fields(text: Description, level: int, content: Mapping[str, Any], prefix: str) -> None:
    for name in sorted(content):
        value, path = content[name], f"{prefix}.{name}"
        if path in _SKIPPED:
            continue
        label = _label(name)
        if isinstance(value, Mapping):
            text.line(level, f"{label}:")
            _fields(text, level + 1, value, path)
        elif isinstance(value, list):
            text.line(level, f"{label}:")
            for each in value:
                if isinstance(each, Mapping):
                    _fields(text, level + 1, each, path)
                else:
                    text.line(level + 1, sprint(each))
        else:
            text.field(label, sprint(value), level)


def _label(name: str) -> str:
    """Return words for the name of a field: ``apiVersion`` becomes ``API Version``."""
    if not all(character.isalpha() or character == "-" for character in name):
        return name
    words = []
    for word in _WORD.findall(name):
        if word.upper() in _ACRONYMS:
            words.append(word.upper())
        else:
            words.append(word.title() if word.islower() else word)
    return " ".join(words)


DESCRIBERS: Final[Mapping[str, Callable[[Mapping[str, Any], Objects | None, Related], str]]] = {
    **ACCESS,
    **CONFIGURATION,
    **NETWORK,
    **NODES,
    **SCALING,
    **STORAGE,
    **WORKLOADS,
}
"""What describes an object, by its resource; it is given the object, its events and what belongs to it."""
