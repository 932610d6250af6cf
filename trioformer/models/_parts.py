"""Check the types of field values in constructors: models, scalars, and tuples and mappings of models or scalars.

A constructor made by attrs accepts a dict instead of an ``ObjectMeta``, or a string instead of a tuple.  Without these
checks, such a mistake would raise an error only when the object is read or encoded, or on the server.
Decoded objects are not checked, because their parts are decoded with the right types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar, final, get_args, get_origin

import attrs

from .._suggestions import describe, with_article

__all__ = ["Part", "model_in", "part_of"]

B = TypeVar("B")

_SCALARS: Final = (str, bool, int)
"""The scalar types that are checked; float is not one of them, because an int is a valid value for a float field."""


@final
@attrs.frozen(eq=False)
class Part:
    """A type check for a field whose value is a model, a scalar, or a tuple or mapping of models or scalars."""

    where: str
    """The class and field name for error messages."""
    name: str
    model: type[Any]
    """The class of the values, or ``object`` if only the container is checked."""
    container: type[Any] | None
    is_required: bool
    """Whether None is refused, as for the metadata of an object, which contains its key."""

    def check(self, value: Any) -> None:
        """Check a value that the program set; None is valid unless the field is required.

        Raises:
            TypeError: The value does not have the type of the field.
        """
        if value is None and not self.is_required:
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
        """Return whether the values are models."""
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
        raise TypeError(f"{where} must be {with_article(self.model)}, not {describe(value)}{hint}")

    def _refuse(self, value: Any, wanted: str, example: str) -> NoReturn:
        raise TypeError(f"{self.where} must be {wanted}, not {describe(value)}; write {example}")


def part_of(cls: type[Any], name: str, hint: Any, base: type[Any]) -> Part | None:
    """Return the type check for a field, or None if the values of the field are not checked.

    Args:
        cls: The class that has the field.
        name: The name of the field.
        hint: The type of the field, without None.
        base: The base class of all models.
    """
    container, model = model_in(hint, base)
    if model is None:
        value = hint if container is None else get_args(hint)[0 if container is tuple else 1]
        model = value if value in _SCALARS else object
    if model is object and container is None:
        return None
    is_required = name == "metadata" and hasattr(cls, "__resource__")
    return Part(f"{cls.__name__}.{name}", name, model, container, is_required=is_required)


def model_in(hint: Any, base: type[B]) -> tuple[type[Any] | None, type[B] | None]:
    """Return the container of a type (tuple, Mapping or None), and the model class in it (or None)."""
    origin, args = get_origin(hint), get_args(hint)
    container: type[Any] | None = None
    model = hint
    if origin is tuple:
        container, model = tuple, args[0]
    elif origin is Mapping:
        container, model = Mapping, args[1]
    return container, model if isinstance(model, type) and issubclass(model, base) else None
