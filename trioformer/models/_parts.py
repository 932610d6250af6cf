"""Checks that what a program gives for a part of an object is a model.

The constructor that attrs makes takes a dict in the place of an ``ObjectMeta``.
It would fail only when the object is read or encoded, far from the mistake.
Decoded objects are not checked: their parts are made of the bytes when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, final, get_args, get_origin

import attrs

__all__ = ["Part", "model_in", "part_of"]

B = TypeVar("B")


@final
@attrs.frozen(eq=False)
class Part:
    """A field that has a model, or a tuple or a mapping of models."""

    where: str
    """The class and the field, as in errors."""
    name: str
    model: type[Any]
    container: type[Any] | None

    def check(self, value: Any) -> None:
        """Check what the program gave; None removes the member.

        Raises:
            TypeError: It is something else than the field's models.
        """
        if value is None:
            return
        if self.container is None:
            self._check_model(value, self.where)
        elif self.container is tuple:
            if not isinstance(value, tuple | list | set | frozenset):
                self._refuse(value, "a tuple", f"({self.model.__name__}(...),)")
            for index, item in enumerate(value):
                if not isinstance(item, self.model):
                    self._check_model(item, f"{self.where}[{index}]")
        else:
            if not isinstance(value, Mapping):
                self._refuse(value, "a mapping", f"{{key: {self.model.__name__}(...)}}")
            for item in value.values():
                self._check_model(item, f"each value of {self.where}")

    def _check_model(self, value: Any, where: str) -> None:
        if isinstance(value, self.model):
            return
        name = self.model.__name__
        other = f" or from_dict({name}, ...)" if isinstance(value, Mapping) else ""
        raise TypeError(f"{where} must be {_a(self.model)}, not {_a(type(value))}; write {name}(...){other}")

    def _refuse(self, value: Any, wanted: str, example: str) -> NoReturn:
        raise TypeError(f"{self.where} must be {wanted}, not {_a(type(value))}; write {example}")


def part_of(cls: type[Any], name: str, hint: Any, base: type[Any]) -> Part | None:
    """Return how the values of a field are checked; None if it has no models.

    Args:
        cls: The class of the field.
        name: The field's name.
        hint: Its type, without None.
        base: The base of all models.
    """
    container, model = model_in(hint, base)
    return None if model is None else Part(f"{cls.__name__}.{name}", name, model, container)


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


def _a(cls: type[Any]) -> str:
    return f"{'an' if cls.__name__[0] in 'AEIOUaeiou' else 'a'} {cls.__name__}"
