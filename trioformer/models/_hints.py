"""When a class is defined, check that the types of its fields are immutable and have a form in JSON.

A decoded array is always a tuple, and a decoded map is always read-only.  If a field had the type ``list[str]``, a
comparison with ``["a"]`` would always be False, so such classes are rejected.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import inspect
import operator
import sys
import types
import typing
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import attrs

from ._quantity import Quantity
from ._values import FrozenMap

__all__ = [
    "UNIONS",
    "check_annotations",
    "check_hint",
    "check_names",
    "has_float",
    "is_scalar",
    "without_none",
    "without_notes",
]

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
    """Check the annotations that can already be evaluated; the others are checked when the class is first used.

    Args:
        cls: The class, before attrs has processed it.
        skipped: A base class; its subclasses are checked separately.

    Raises:
        TypeError: A field has a type that is mutable or has no form in JSON.
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
    """Check that ``_always`` and ``_json_names`` contain only names of fields.

    Raises:
        TypeError: One of the class variables contains a name that is not a field.
    """
    fields = [attribute.name for attribute in attrs.fields(cls) if attribute.name != "_origin"]
    for where in ("_always", "_json_names"):
        for name in sorted(getattr(cls, where)):
            if name not in fields:
                raise TypeError(
                    f"{cls.__name__}.{where} names {name!r}, which is not a field; write one of: {', '.join(fields)}"
                )


def check_hint(cls: type[Any], name: str, hint: Any, skipped: type[Any]) -> None:
    """Check the type of one field, including the fields of attrs classes and dataclasses in the type.

    Raises:
        TypeError: The type is mutable, or has no form in JSON.
    """
    _check(cls, name, hint, skipped, set())


def _check(cls: type[Any], name: str, hint: Any, skipped: type[Any], seen: set[type[Any]]) -> None:
    if get_origin(hint) is ClassVar or hint is ClassVar:
        return
    wanted = _immutable(hint)
    if wanted != _text(hint):
        # A decoded set loses the order of its items, so a change of one item would move and rewrite others.
        why = "JSON arrays are ordered" if _has_set(hint) else "objects are immutable"
        raise TypeError(f"{cls.__name__}.{name} is {_text(hint)}, but {why}; write {wanted}")
    _check_form(cls, name, hint)
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


def _check_form(cls: type[Any], name: str, hint: Any) -> None:
    """Check that every part of a type has exactly one form in JSON that can be decoded."""
    origin, args = get_origin(hint), _arguments(hint)
    why = None
    if isinstance(hint, typing.TypeVar):
        why = f"{_text(hint)} is not a type; write the type"
    elif isinstance(origin, type) and (attrs.has(origin) or dataclasses.is_dataclass(origin)):
        why = "the types of the fields of a generic class are not known; write a separate class"
    elif origin in UNIONS and not _is_decidable([arg for arg in args if arg is not type(None)]):
        why = "the JSON does not distinguish these types; write JSON"
    elif isinstance(hint, type) and origin is None and not _has_form(hint):
        why = f"JSON has no {_text(hint)}; write str, float, Quantity, Time or JSON"
    if why is not None:
        raise TypeError(f"{cls.__name__}.{name} is {_text(hint)}, but {why}")
    for arg in args if origin is not Literal else ():
        _check_form(cls, name, arg)


UNIONS = (typing.Union, types.UnionType)
_SCALARS = (str, int, float, bool)
_FORMS = (*_SCALARS, bytes, object, Any, type(None), datetime, Quantity, tuple, FrozenMap)
_FORMS_OF_BASES = (enum.Enum, tuple)
_COLLECTIONS = (
    collections.abc.Mapping,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)


def _is_decidable(members: list[Any]) -> bool:
    """Return whether the members of a union can be distinguished in JSON."""
    return len(members) == 1 or all(map(_is_plain, members))


def _is_plain(hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return all(_is_plain(arg) for arg in get_args(hint) if arg is not ...)
    return hint in _SCALARS


def _has_form(cls: type[Any]) -> bool:
    if cls in _FORMS or cls in _COLLECTIONS or issubclass(cls, _FORMS_OF_BASES) or typing.is_typeddict(cls):
        return True
    return attrs.has(cls) or dataclasses.is_dataclass(cls)


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
    """Return the classes in a type, such as ``C`` in ``tuple[C, ...] | None``."""
    if args := _arguments(hint):
        return [cls for arg in args for cls in _classes(arg)]
    return [hint] if isinstance(hint, type) else []


def _arguments(hint: Any) -> tuple[Any, ...]:
    args = get_args(hint)
    return args[:1] if get_origin(hint) is Annotated else args


def _immutable(hint: Any) -> str:
    """Return the text of a type, with every mutable type replaced by an immutable type."""
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
    if origin in UNIONS:
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
    if origin in UNIONS:
        return " | ".join(map(_text, args))
    if origin is not None and args and origin is not Annotated:
        return f"{_text(origin)}[{', '.join(map(_text, args))}]"
    return hint.__name__ if isinstance(hint, type | typing.TypeVar) else str(hint).replace("typing.", "")


def without_none(hint: Any) -> Any:
    """Return a type without its None member."""
    members = [each for each in get_args(hint) if each is not type(None)] if get_origin(hint) in UNIONS else [hint]
    return members[0] if len(members) == 1 else typing.Union[tuple(members)]  # noqa: UP007  # built at run time


_TAGS = ("JSON", "Time", "MicroTime")


def without_notes(hint: Any) -> Any:
    """Remove the metadata of ``Annotated`` from a type, except for tags such as ``Time`` that are part of the type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        tags = [note for note in args[1:] if type(note) is str and note in _TAGS]
        found = without_notes(args[0])
        return Annotated[(found, *tags)] if tags else found
    if origin is Literal or not args:
        return hint
    inner = tuple(map(without_notes, args))
    if all(map(operator.is_, inner, args)):
        return hint
    return typing.Union[inner] if origin in UNIONS else origin[inner]  # noqa: UP007  # built at run time


def is_scalar(hint: Any) -> bool:
    """Return whether the values of a type are JSON scalars or tuples of scalars."""
    if get_origin(hint) in UNIONS:
        return all(map(is_scalar, get_args(hint)))
    if get_origin(hint) is tuple:
        return is_scalar(get_args(hint)[0])
    return hint in (str, int, float, bool, bytes)


def has_float(hint: Any) -> bool:
    """Return whether a type contains ``float``."""
    return hint is float or any(map(has_float, get_args(hint)))
