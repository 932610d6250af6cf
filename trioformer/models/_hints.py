"""Checks the fields of a class when it is defined: every part of an immutable object must be immutable.

A decoded list is a tuple and a decoded map is read-only, whatever the class says; a class that says ``list[str]`` would
only hide that ``["a"]`` is never equal to it, so the class is refused.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import inspect
import sys
import types
import typing
from typing import Annotated, Any, ClassVar, get_args, get_origin

import attrs

__all__ = ["check_annotations", "check_hint", "check_names"]

_LISTS = (
    list,
    set,
    collections.deque,
    collections.abc.MutableSequence,
    collections.abc.MutableSet,
)
_SETS = (frozenset, collections.abc.Set)
_MAPS = (
    dict,
    collections.OrderedDict,
    collections.defaultdict,
    collections.Counter,
    collections.abc.MutableMapping,
)


def check_annotations(cls: type[Any], skipped: type[Any]) -> None:
    """Check the annotations of a class that can be evaluated already; the others are checked when it is first used.

    Args:
        cls: The class, which attrs has not seen yet.
        skipped: The base of classes that are checked by themselves.

    Raises:
        TypeError: A field has a mutable type.
    """
    module = sys.modules.get(cls.__module__)
    try:
        annotations = inspect.get_annotations(cls)
    except NameError:  # Python 3.14 evaluates them here
        return
    for name, annotation in annotations.items():
        hint = annotation
        if isinstance(annotation, str):
            try:
                hint = eval(annotation, dict(vars(module)) if module else {}, dict(vars(cls)))  # its own text
            except Exception:  # noqa: BLE001  # a name that is defined later
                continue
        check_hint(cls, name, hint, skipped)


def check_names(cls: type[Any]) -> None:
    """Check that the class variables about fields name fields of the class.

    Raises:
        TypeError: A name is not that of a field.
    """
    fields = [attribute.name for attribute in attrs.fields(cls) if attribute.name != "_origin"]
    for where in ("_always", "_json_names"):
        for name in sorted(getattr(cls, where)):
            if name not in fields:
                raise TypeError(
                    f"{cls.__name__}.{where} names {name!r}, which is not a field; write one of: {', '.join(fields)}"
                )


def check_hint(cls: type[Any], name: str, hint: Any, skipped: type[Any]) -> None:
    """Check the type of one field, and those of the fields of attrs classes and dataclasses in it.

    Raises:
        TypeError: It is mutable.
    """
    _check(cls, name, hint, skipped, set())


def _check(cls: type[Any], name: str, hint: Any, skipped: type[Any], seen: set[type[Any]]) -> None:
    if get_origin(hint) is ClassVar or hint is ClassVar:
        return
    wanted = _immutable(hint)
    if wanted != _text(hint):
        # A decoded set has lost the order of its items, so a change of one item would move and rewrite others.
        why = "arrays of JSON have an order" if _has_set(hint) else "objects are immutable"
        raise TypeError(f"{cls.__name__}.{name} is {_text(hint)}, but {why}; write {wanted}")
    for part in _classes(hint):
        if part in seen or issubclass(part, skipped):
            continue
        seen.add(part)
        names = _fields(part)
        if names and not _is_frozen(part, names[0]):
            how = "@attrs.frozen" if attrs.has(part) else "@dataclass(frozen=True)"
            raise TypeError(
                f"{cls.__name__}.{name} is {_text(hint)}, but objects are immutable; define {part.__name__} with {how}"
            )
        try:
            hints = typing.get_type_hints(part, include_extras=True)
        except NameError:  # defined later; the check is repeated when the class is first used
            continue
        for each in names:
            _check(part, each, hints.get(each), skipped, seen)


def _fields(cls: type[Any]) -> list[str]:
    if attrs.has(cls):
        return [attribute.name for attribute in attrs.fields(cls)]
    return [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []


def _is_frozen(cls: type[Any], name: str) -> bool:
    try:
        setattr(object.__new__(cls), name, None)
    except AttributeError:  # FrozenInstanceError, of attrs and of dataclasses
        return True
    return False


def _classes(hint: Any) -> list[type[Any]]:
    """Return the classes in a type, such as C in ``tuple[C, ...] | None``."""
    if args := _arguments(hint):
        return [cls for arg in args for cls in _classes(arg)]
    return [hint] if isinstance(hint, type) else []


def _arguments(hint: Any) -> tuple[Any, ...]:
    args = get_args(hint)
    return args[:1] if get_origin(hint) is Annotated else args


def _immutable(hint: Any) -> str:
    """Return the text of a type in which every mutable type has been replaced."""
    origin = get_origin(hint) or hint
    args = [_immutable(arg) for arg in _arguments(hint)]
    if origin is Annotated:
        return _text(hint) if args == [_text(get_args(hint)[0])] else args[0]
    if origin in _LISTS or origin in _SETS:
        return f"tuple[{args[0] if args else 'JSON'}, ...]"
    if origin in _MAPS:
        return f"Mapping[{', '.join(args) if len(args) == 2 else 'str, JSON'}]"
    if origin is bytearray:
        return "bytes"
    if args == [_text(arg) for arg in get_args(hint)]:
        return _text(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(args)
    return f"{_text(origin)}[{', '.join(args)}]"


def _has_set(hint: Any) -> bool:
    return (get_origin(hint) or hint) in _SETS or any(map(_has_set, _arguments(hint)))


def _text(hint: Any) -> str:
    if hint is type(None):
        return "None"
    if hint is ...:
        return "..."
    args = get_args(hint)
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_text, args))
    if origin is not None and args and origin is not Annotated:
        return f"{_text(origin)}[{', '.join(map(_text, args))}]"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
