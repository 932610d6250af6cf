"""Make the classes of the built-in kinds and their parts.

attrs needs about half a millisecond for a class, so it would need 0.1 s for ``core_v1``.  :func:`frozen_model` needs
0.03 ms, because all these classes share one constructor, and attrs' description of the fields is made only when it is
first read.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import attrs

from ._mistakes import refuse_change

__all__ = ["Signature", "frozen_model"]

C = TypeVar("C", bound="type[object]")

if TYPE_CHECKING:
    from attrs import frozen as frozen_model  # type checkers see a class that attrs makes
else:

    def frozen_model(*, kw_only):
        """Return a decorator that makes a slotted model class.

        Every field has a default.  To :func:`attrs.fields` and to subclasses, the class looks like a class that attrs
        has made.

        Args:
            kw_only: Always True.  This is an argument because type checkers read it.
        """
        return _with_slots


def _with_slots(cls: C) -> C:
    namespace = dict(vars(cls))
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    defaults = {name: namespace.pop(name) for name, hint in cls.__annotations__.items() if "ClassVar" not in hint}
    namespace["__slots__"] = [name for name in defaults if not hasattr(cls.__base__, name)]
    namespace["__setattr__"] = namespace["__delattr__"] = refuse_change
    namespace["__attrs_attrs__"] = _Attributes(defaults)
    return cast("C", type(cls.__name__, cls.__bases__, namespace))


@functools.cache
def _template() -> attrs.Attribute[Any]:
    """Return an attribute to copy for each field, because attributes have no public constructor."""
    made = attrs.make_class("Template", {"field": attrs.field(default=None, kw_only=True)})
    return cast("attrs.Attribute[Any]", attrs.fields(made)[0])


@final
class _Attributes:
    """The initial ``__attrs_attrs__`` of a class, which replaces itself with the value that attrs would store.

    This value is a tuple of attributes, and each of them is also an attribute of the tuple.
    """

    __slots__ = ("_cls", "_defaults")

    def __init__(self, defaults: Mapping[str, object]) -> None:
        self._defaults = defaults

    def __set_name__(self, cls: type[Any], name: str) -> None:
        self._cls = cls

    def __get__(self, model: object, owner: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
        cls, hints = self._cls, inspect.get_annotations(self._cls)
        found = [
            each.evolve(inherited=True) for each in attrs.fields(cls.__mro__[1]) if each.name not in self._defaults
        ]
        found += [
            _template().evolve(name=name, alias=name, default=default, type=hints[name])
            for name, default in self._defaults.items()
        ]
        getters = {attribute.name: property(operator.itemgetter(index)) for index, attribute in enumerate(found)}
        made: Any = type(f"{cls.__name__}Attributes", (tuple,), {"__slots__": (), **getters})
        cls.__attrs_attrs__ = made(found)
        return cast("tuple[attrs.Attribute[Any], ...]", cls.__attrs_attrs__)


_FACTORY: Any = attrs.Factory  # attrs types the class as a function


@final
class Signature:
    """The ``__signature__`` of classes with the shared constructor.

    Other classes have no ``__signature__``.  For them, ``inspect`` reads the constructor that attrs has made.
    """

    __slots__ = ("_init",)

    def __init__(self, init: object) -> None:
        self._init = init

    def __get__(self, model: object, owner: type[Any]) -> inspect.Signature:
        if owner.__init__ is not self._init:
            raise AttributeError("__signature__")
        parameters: list[inspect.Parameter] = []
        for each in attrs.fields(owner):
            default = ... if isinstance(each.default, _FACTORY) else each.default
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(each.alias, kind, default=default, annotation=each.type))
        return inspect.Signature(parameters[1:])  # without the origin
