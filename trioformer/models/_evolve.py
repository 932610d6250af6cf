"""How type checkers see ``Model.evolve``, and how it converts what the program gives, as attrs does.

The arguments of ``evolve`` are those of the constructor, all optional.  There is no type for that, so:

- If the constructor can be called without arguments, as those of all built-in kinds, ``evolve`` has its signature.
- If a field has no default, pyright uses the ``__replace__`` that it generates for Python 3.13 and later.
  mypy, and pyright for older versions, accept any keyword.

The function ``trioformer.models.evolve`` is ``attrs.evolve`` to type checkers: mypy checks its arguments for all
classes, and pyright for none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import attrs

__all__ = ["Evolve", "convert"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _WithoutArguments(Protocol[T_co]):
    def __call__(self) -> T_co: ...


class _Replaceable(Protocol[P]):
    def __replace__(self, *args: P.args, **changes: P.kwargs) -> Any: ...


class Evolve:
    """The type of ``Model.evolve``; only for type checkers."""

    @overload
    def __get__(self, obj: T, owner: _WithoutArguments[T]) -> type[T]: ...
    @overload
    def __get__(  # type: ignore[overload-cannot-match]  # mypy does not compare with the constructor here
        self, obj: _Replaceable[P], owner: type[T]
    ) -> Callable[P, T]: ...
    def __get__(self, obj: object, owner: object) -> object:
        raise NotImplementedError


def convert(value: Any, model: object, attribute: attrs.Attribute[Any]) -> Any:
    """Convert a value as the constructor does."""
    converter: Any = attribute.converter
    if not isinstance(converter, attrs.Converter):
        return value if converter is None else converter(value)
    function: Any = converter  # attrs does not type its attributes
    return function.converter(value, *[model] * function.takes_self, *[attribute] * function.takes_field)
