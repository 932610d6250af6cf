"""Check the definition of a model class, and restore the model methods that attrs has replaced.

Objects of a class are decoded or encoded incorrectly if attrs has not processed the class, or if the class has its own
``__init__``. The same happens if attrs or the class's ``__attrs_post_init__`` replaces a method of the base class.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar, dataclass_transform

import attrs

from ._mistakes import not_a_kind

__all__ = ["check_class", "fields_for_subclasses", "keep_methods"]

C = TypeVar("C", bound="type[object]")


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(attrs.field,))
def fields_for_subclasses(cls: C) -> C:
    """Make type checkers see the fields of a base class in subclasses that use the library's decorators.

    The decorator is necessary because mypy special-cases ``attrs.frozen`` and does not combine its fields with
    ``dataclass_transform`` fields.
    """
    return cls


def check_class(cls: type[Any], model: type[Any]) -> None:
    """Check that attrs has processed a class and that its constructor sets the fields.

    Args:
        cls: The class to check.
        model: The base class of all models.  The classes between ``cls`` and the base class are also checked.

    Raises:
        TypeError: attrs has not processed the class, or its constructor does not set the fields.
    """
    if not isinstance(cls, type):
        raise not_a_kind(cls)
    library = model.__module__.rpartition(".")[0] + "."
    if cls.__module__.startswith(library):
        return
    fields = {attribute.name for attribute in attrs.fields(cls)}
    for base in cls.__mro__[: cls.__mro__.index(model)]:
        if base.__module__.startswith(library):
            continue
        for name, hint in _annotations(base).items():
            if name not in fields and "ClassVar" not in str(hint):
                raise TypeError(f"{base.__name__}.{name} is not a field; define {base.__name__} with @attrs.frozen")
        if "__attrs_init__" in vars(base) or ("__init__" in vars(base) and "__attrs_attrs__" not in vars(base)):
            raise TypeError(
                f"{base.__name__} must not define its own __init__; write a class method that creates an object"
            )


def _annotations(cls: type[Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls)
    except NameError:  # Python 3.14 evaluates them here
        return {}


def keep_methods(cls: type[Any], model: type[Any]) -> None:
    """Restore the methods that attrs replaced, and freeze objects before the class's ``__attrs_post_init__`` runs.

    The ``__eq__`` method that attrs generates would compare Python values, and in Python, 1 equals True.
    """
    for name in ("__eq__", "__ne__", "__hash__", "__repr__"):
        code = getattr(vars(cls).get(name), "__code__", None)
        if code is not None and code.co_filename.startswith("<attrs generated"):
            setattr(cls, name, getattr(super(cls, cls), name))
    own = vars(cls).get("__attrs_post_init__")
    if own is not None:

        @functools.wraps(own)
        def post_init(self: Any) -> None:
            model.__attrs_post_init__(self)
            own(self)

        cls.__attrs_post_init__ = post_init
