"""The types of fields that are neither models nor scalars: free-form JSON, times, and read-only maps."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias, TypeVar

__all__ = ["EMPTY_MAP", "JSON", "FrozenMap", "MicroTime", "Time", "camel_case", "freeze"]

V = TypeVar("V")

if TYPE_CHECKING:
    JSON: TypeAlias = bool | int | float | str | tuple["JSON", ...] | Mapping[str, "JSON"] | None
else:
    JSON = Annotated[object, "JSON"]

Time: TypeAlias = Annotated[datetime, "Time"]
"""``metav1.Time``: encoded with whole seconds."""
MicroTime: TypeAlias = Annotated[datetime, "MicroTime"]
"""``metav1.MicroTime``: encoded with exactly six decimal places."""


class FrozenMap(dict[str, V]):
    """A read-only mapping: a dict whose mutating methods raise ``TypeError``; it pickles, copies and encodes as a dict.

    Its numbers are equal only if their types are: ``1``, ``1.0`` and ``True`` differ, as in JSON.
    Its hash depends only on its keys, because its values may be nested maps.
    """

    __slots__ = ()

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is part of an immutable object; make a new one with {**old, …} and attrs.evolve")

    if not TYPE_CHECKING:  # type checkers keep the signatures of dict
        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _raise

    def __eq__(self, other: object) -> bool:
        found = dict.__eq__(self, other)
        return found if found is not True or self is other else _has_same_types(self, other)

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable
        return hash(frozenset(self))

    def __copy__(self) -> FrozenMap[V]:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> FrozenMap[V]:
        return self

    def __reduce__(self) -> tuple[type[FrozenMap[V]], tuple[dict[str, V]]]:
        return FrozenMap, (dict(self),)


def _has_same_types(one: object, other: Any) -> bool:
    """Return whether equal values have numbers of the same types."""
    if isinstance(one, dict):
        return all(type(value) is str or _has_same_types(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple):
        return all(map(_has_same_types, one, other))
    return not isinstance(one, bool | int | float) or type(one) is type(other)


EMPTY_MAP: FrozenMap[Any] = FrozenMap()
"""The value of an absent map."""


def freeze(value: object) -> Any:
    """Convert lists to tuples, dicts to read-only maps and sets to frozen sets, recursively."""
    if isinstance(value, dict):
        return value if type(value) is FrozenMap else FrozenMap({k: freeze(v) for k, v in value.items()})
    if isinstance(value, Mapping):
        return FrozenMap({str(k): freeze(v) for k, v in value.items()})
    if type(value) is tuple:
        items = tuple(map(freeze, value))
        return items if any(map(operator.is_not, items, value)) else value
    if isinstance(value, list | tuple):
        return value if hasattr(value, "_fields") else tuple(map(freeze, value))  # not a NamedTuple
    return frozenset(value) if isinstance(value, set) else value


def camel_case(name: str) -> str:
    """Convert a snake_case name to the API's name, such as ``node_name`` to ``nodeName``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
