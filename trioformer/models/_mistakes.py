"""Errors for unknown attributes of models and for values that are not kinds, with suggestions.

Users of other Kubernetes clients often write ``nodeName``, read an object like a dict, or change an object in place.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import attrs

from .._suggestions import describe, snake_case, suggest, with_article
from ._parts import Part

__all__ = ["arguments_of", "missing_attribute", "not_a_kind", "refuse_change", "refuse_item", "wrong_argument"]

_TO_DICT: Final = "trioformer.models.to_dict(obj)"
_TO_JSON: Final = "trioformer.models.encode(obj)"
_COPY: Final = "evolve(...), which makes a changed copy"
_FUNCTIONS: Final = {
    "as_dict": _TO_DICT,
    "dict": _TO_DICT,
    "model_dump": _TO_DICT,
    "to_dict": _TO_DICT,
    "json": _TO_JSON,
    "model_dump_json": _TO_JSON,
    "to_json": _TO_JSON,
    "copy": _COPY,
    "model_copy": _COPY,
    "replace": _COPY,
}
"""Methods of models in other libraries, and their replacements."""
_FIRST: Final = ("spec", "status", "metadata")
"""The parts of an object that are searched first for an unknown name."""


def missing_attribute(cls: type[Any], name: str, parts: Mapping[str, Part]) -> AttributeError:
    """Return the error for an attribute that a model does not have.

    Args:
        cls: The class of the model.
        name: The name of the attribute.  For names with a leading underscore, the error has no suggestion, because
            libraries often probe for them.
        parts: The model's fields that contain models, by argument name.
    """
    hint = "" if name.startswith("_") else _attribute_hint(cls, name, tuple(parts.values()))
    return AttributeError(f"{cls.__name__!r} object has no attribute {name!r}{hint}")


def _hint_for(cls: type[Any], name: str, parts: tuple[Part, ...]) -> str:
    known = [each for each in dir(cls) if not each.startswith("_")]
    part = _part_with(name, parts)
    if snake_case(name) not in known and part is not None:
        return f"; did you mean {part.name}.{snake_case(name)}?"
    meant = suggest(name, known) or _FUNCTIONS.get(name, "")
    return f"; did you mean {meant}?" if meant else ""


# Programs that ask hasattr() ask often.
_attribute_hint = cast("Callable[[type[Any], str, tuple[Part, ...]], str]", functools.lru_cache(1024)(_hint_for))


def _arguments_of(cls: type[Any]) -> frozenset[str]:
    return frozenset(attribute.alias for attribute in attrs.fields(cls) if attribute.init)


arguments_of = cast("Callable[[type[Any]], frozenset[str]]", functools.cache(_arguments_of))
"""Returns the argument names of a model's constructor."""


def wrong_argument(cls: type[Any], given: Iterable[str], parts: Mapping[str, Part]) -> TypeError:
    """Return the error for the first unknown argument of a model's constructor."""
    known = arguments_of(cls) - {"_origin"}
    name = next(each for each in given if each not in known)
    part = _part_with(name, tuple(parts.values()))
    snake = snake_case(name)
    if snake not in known and part is not None:
        meant = f"{part.name}={part.model.__name__}({snake}=...)"
    else:
        meant = suggest(name, sorted(known))
    hint = f"did you mean {meant}?" if meant else f"it has {', '.join(sorted(known))}"
    return TypeError(f"{cls.__name__}() has no argument {name!r}; {hint}")


def _part_with(name: str, parts: tuple[Part, ...]) -> Part | None:
    """Return the first part that has a field with this name, in the order spec, status, metadata, other parts."""
    snake = snake_case(name)
    single = [part for part in parts if part.container is None and part.is_model]
    single.sort(key=lambda part: _FIRST.index(part.name) if part.name in _FIRST else len(_FIRST))
    return next((part for part in single if snake in {each.name for each in attrs.fields(part.model)}), None)


def refuse_change(self: object, name: str, value: object = None) -> None:
    """Raise an error if an attribute of a model is set or deleted.

    Raises:
        attrs.exceptions.FrozenInstanceError: Always.
    """
    cls = type(self)
    meant = suggest(name, sorted(arguments_of(cls) - {"_origin"})) or name
    raise FrozenInstanceError(f"{with_article(cls)} cannot be changed; make a copy with evolve({meant}=...)")


class FrozenInstanceError(attrs.exceptions.FrozenInstanceError):
    """The ``FrozenInstanceError`` of attrs with a message."""

    def __init__(self, text: str) -> None:
        AttributeError.__init__(self, text)
        self.args = (text,)


def refuse_item(self: object, key: object) -> None:
    """Raise an error if a model is read like a mapping.

    Raises:
        TypeError: Always.
    """
    cls = type(self)
    meant = suggest(key, [each for each in dir(cls) if not each.startswith("_")]) if isinstance(key, str) else ""
    hint = f"read its attribute {meant}" if meant else "to_dict(obj) returns a dict"
    raise TypeError(f"{with_article(cls)} is not a mapping or a list; {hint}")


def not_a_kind(value: object) -> TypeError:
    """Return the error for a value that is not a kind; if the value is a kind's name, the error shows the import."""
    if isinstance(value, str):
        found = _imports(value.rpartition("/")[2].lower())
        hint = f"write {' or '.join(found)}" if found else "client.discover(api_version, kind) returns it"
        return TypeError(f"a kind must be a class, not a string; {hint}")
    cls = type(value)
    if hasattr(cls, "__resource__"):
        return TypeError(f"a kind must be a class, not an object; pass {cls.__name__} itself")
    return TypeError(f"a kind must be a class, such as Pod, not {describe(value)}")


def _imports(name: str) -> list[str]:
    """Return the import statements for built-in kinds with a name that kubectl accepts."""
    table = importlib.import_module(".builtin_kinds", __package__)
    return [
        f"from trioformer.models.{table.MODULES[info.api_version]} import {info.kind}"
        for info in table.RESOURCES
        if name in (info.singular, info.plural, *info.short_names)
    ]
