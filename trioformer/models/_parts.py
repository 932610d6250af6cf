"""Check the types of the values that a program gives for fields: models, scalars, and tuples and mappings of them.

attrs' constructor accepts a dict for an ``ObjectMeta``, and a text for a tuple.  That would fail only when the object
is read or encoded, or on the server.
Decoded objects are not checked: their parts are made from the bytes when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar, final, get_args, get_origin

import attrs

from .._suggestions import with_article

__all__ = ["Part", "model_in", "part_of"]

B = TypeVar("B")

_SCALARS: Final = (str, bool, int)
"""The scalars that are checked; a float may be given as an int."""


@final
@attrs.frozen(eq=False)
class Part:
    """A field whose values have a class that can be checked, or a tuple or a mapping of such values."""

    where: str
    """The class and the field, for errors."""
    name: str
    model: type[Any]
    """The class of the values; ``object`` in a container of values that are not checked."""
    container: type[Any] | None

    def check(self, value: Any) -> None:
        """Check a value that the program gave; None removes the member.

        Raises:
            TypeError: It does not have the type of the field.
        """
        if value is None:
            return
        if self.container is None:
            self._check_value(value, self.where)
        elif self.container is tuple:
            if not isinstance(value, tuple | list | set | frozenset):
                self._refuse(value, "a tuple", f"({self._example},)")
            for index, item in enumerate(value):
                if not isinstance(item, self.model):
                    self._check_value(item, f"{self.where}[{index}]")
        else:
            if not isinstance(value, Mapping):
                self._refuse(value, "a mapping", f"{{key: {self._example}}}")
            for item in value.values():
                self._check_value(item, f"each value of {self.where}")

    @property
    def is_model(self) -> bool:
        """Whether the values are models."""
        return self.model is not object and self.model not in _SCALARS

    @property
    def _example(self) -> str:
        return f"{self.model.__name__}(...)" if self.is_model else "..."

    def _check_value(self, value: Any, where: str) -> None:
        if isinstance(value, self.model):
            return
        name = self.model.__name__
        other = f" or from_dict({name}, ...)" if isinstance(value, Mapping) and self.is_model else ""
        hint = f"; write {name}(...){other}" if self.is_model else ""
        raise TypeError(f"{where} must be {with_article(self.model)}, not {with_article(type(value))}{hint}")

    def _refuse(self, value: Any, wanted: str, example: str) -> NoReturn:
        raise TypeError(f"{self.where} must be {wanted}, not {with_article(type(value))}; write {example}")


def part_of(cls: type[Any], name: str, hint: Any, base: type[Any]) -> Part | None:
    """Return the check for the values of a field; None if any value may be valid.

    Args:
        cls: The class of the field.
        name: The field's name.
        hint: Its type, without None.
        base: The base of all models.
    """
    container, model = model_in(hint, base)
    if model is None:
        value = hint if container is None else get_args(hint)[0 if container is tuple else 1]
        model = value if value in _SCALARS else object
    return None if model is object and container is None else Part(f"{cls.__name__}.{name}", name, model, container)


def model_in(hint: Any, base: type[B]) -> tuple[type[Any] | None, type[B] | None]:
    """Return the container of a type, tuple, Mapping or None, and the model in it; None if it has no model."""
    origin, args = get_origin(hint), get_args(hint)
    container: type[Any] | None = None
    model = hint
    if origin is tuple:
        container, model = tuple, args[0]
    elif origin is Mapping:
        container, model = Mapping, args[1]
    return container, model if isinstance(model, type) and issubclass(model, base) else None
