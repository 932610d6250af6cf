"""A record of the fields that a program has set in a model, and the type of ``Model.evolve``.

``evolve`` has the same arguments as the constructor, and all of them are optional.  Python's type system cannot
express this, so type checkers see one of these signatures:

- If the constructor can be called without arguments, as for all built-in kinds, ``evolve`` has the constructor's
  signature.
- If a field has no default, pyright uses the ``__replace__`` method that it generates for Python 3.13 and later. mypy
  accepts any keyword argument, as does pyright for older Python versions.

Type checkers treat the function ``trioformer.models.evolve`` as ``attrs.evolve``. mypy checks its arguments for all
classes, and pyright for none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import attrs

from ._mistakes import wrong_argument
from ._protobuf._wire import Message
from ._serde import Raw
from ._values import FrozenMap, freeze

__all__ = [
    "ALL",
    "Edits",
    "Evolve",
    "Received",
    "Slots",
    "check_parts",
    "evolved",
    "freeze_fields",
    "new_edits",
    "raw_of",
    "set_once",
]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _WithoutArguments(Protocol[T_co]):
    def __call__(self) -> T_co: ...


class _Replaceable(Protocol[P]):
    def __replace__(self, *args: P.args, **changes: P.kwargs) -> Any: ...


class Evolve:
    """The type of ``Model.evolve`` for type checkers."""

    @overload
    def __get__(self, obj: T, owner: _WithoutArguments[T]) -> type[T]: ...
    @overload
    def __get__(  # type: ignore[overload-cannot-match]  # mypy does not compare with the constructor here
        self, obj: _Replaceable[P], owner: type[T]
    ) -> Callable[P, T]: ...
    def __get__(self, obj: object, owner: object) -> object:
        raise NotImplementedError


def _convert(value: Any, model: object, attribute: attrs.Attribute[Any]) -> Any:
    """Apply the converter of an attribute to a value, as the constructor does."""
    converter: Any = attribute.converter
    if not isinstance(converter, attrs.Converter):
        return value if converter is None else converter(value)
    function: Any = converter  # attrs does not type its attributes
    return function.converter(value, *[model] * function.takes_self, *[attribute] * function.takes_field)


Received: TypeAlias = bytes | Raw | Message
"""The bytes that an object was decoded from, as JSON or a message."""


class Edits:
    """The origin of a new or changed object: the received bytes, and the names of the fields that the program set."""

    __slots__ = ("names", "raw")

    def __init__(self, raw: Received | None, names: frozenset[str]) -> None:
        self.raw = raw
        self.names = names


_IMMUTABLE = frozenset({str, int, bool, float, bytes, type(None), FrozenMap})
_COLLECTIONS = (tuple, list, set, Mapping)


ALL = "*"
"""The value of ``_once`` after all fields of the level have been decoded."""


class Slots:
    """A base class with the slot ``_once``, which holds the name of the first decoded field."""

    __slots__ = ("_once",)
    _once: str | frozenset[str] | None
    """While an object is being constructed, this is the set of fields that the program gave."""


set_once: Callable[[Slots, str | frozenset[str] | None], None] = Slots.__dict__["_once"].__set__


def new_edits(model: Slots) -> Edits:
    """Return the origin of an object that the program makes."""
    names = cast("frozenset[str]", model._once)
    set_once(model, ALL)  # a field that is read later is decoded alone, and does not overwrite those that were given
    return Edits(None, names)


def raw_of(model: Any) -> Received | None:
    """Return the bytes from which the fields of a model are decoded, or None for a new object."""
    origin = model._origin
    return cast("Received | None", origin.raw if isinstance(origin, Edits) else origin)


def freeze_fields(model: object, names: Iterable[str]) -> None:
    # The caller's list or dict would be a mutable part of an immutable object.
    for name in names:
        value = getattr(model, name)
        if type(value) not in _IMMUTABLE and value != () and isinstance(value, _COLLECTIONS):
            object.__setattr__(model, name, freeze(value))


def check_parts(model: object, names: Collection[str], plan: Any) -> None:
    """Check the types of the fields that the program set."""
    parts = {} if plan is None else plan.parts
    for argument in names:
        part = parts.get(argument)
        if part is not None:
            part.check(getattr(model, part.name))


def evolved(model: T, changes: Mapping[str, Any], plan: Any) -> T:
    """Return a copy of a model with new values for the given fields; ``plan`` is the plan of the model's class."""
    cls: Any = type(model)
    origin: Any = model._origin  # type: ignore[attr-defined]  # a model
    if not changes.keys() <= plan.arguments:
        raise wrong_argument(cls, changes, plan.parts)
    raw, names = (origin.raw, origin.names) if isinstance(origin, Edits) else (origin, frozenset())
    made: Any = object.__new__(cls)
    object.__setattr__(made, "_origin", Edits(raw, names | changes.keys()))
    set_once(made, ALL)
    for name, field in plan.fields.items():
        if field.argument in changes:
            field.set(made, _convert(changes[field.argument], made, field.attribute))
            continue
        if raw is None and field.is_builtin and field.argument not in names:  # the default
            continue
        try:
            field.set(made, object.__getattribute__(model, name))
        except AttributeError:  # an empty slot
            continue
    if plan.has_validators:
        attrs.validate(made)
    check_parts(made, changes, plan)
    freeze_fields(made, [name for name, field in plan.fields.items() if field.argument in changes])
    if plan.has_post_init:
        made.__attrs_post_init__()
    return cast("T", made)
