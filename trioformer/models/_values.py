"""The types of field values that are neither models nor scalars: free-form JSON, times, and read-only maps."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias, TypeVar

from ..errors import DecodeError

__all__ = [
    "EMPTY_MAP",
    "JSON",
    "MAX_LEVELS",
    "NOT_FINITE",
    "TOO_DEEP",
    "FrozenMap",
    "MicroTime",
    "Time",
    "camel_case",
    "freeze",
]

MAX_LEVELS: Final = 128
"""The maximum number of nested arrays and objects in a value.

kube-apiserver accepts ten thousand levels, but Python programs cannot handle so many.  To compare, print, pickle or
encode a value takes up to five nested calls for each level, and Python's default limit is a thousand calls.
kube-rs has the same limit.
"""
TOO_DEEP: Final = f"it has too many levels of arrays and objects; up to {MAX_LEVELS} are supported"
NOT_FINITE: Final = "NaN and infinity cannot be encoded as JSON"

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
    """A read-only dict whose mutating methods raise ``TypeError``.

    In comparisons, ``1``, ``1.0`` and ``True`` differ, as they do in JSON.
    The hash depends only on the keys, because values may not be hashable.
    """

    __slots__ = ()

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a mapping in a model cannot be changed; pass a new mapping, such as {**old, ...}, to evolve()")

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
    """Return whether the numbers in two equal values have the same types."""
    if isinstance(one, dict):
        return all(type(value) is str or _has_same_types(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple):
        return all(map(_has_same_types, one, other))
    return not isinstance(one, bool | int | float) or type(one) is type(other)


EMPTY_MAP: FrozenMap[Any] = FrozenMap()
"""The value of an absent map."""


def freeze(value: object, levels: int = MAX_LEVELS) -> Any:
    """Convert lists to tuples, dicts to read-only maps and sets to frozen sets, recursively.

    Args:
        value: Decoded JSON, or a value that the program sets in a field.
        levels: The maximum number of nested arrays and objects.

    Raises:
        DecodeError: The value has more levels.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if levels == 0:
        raise DecodeError(TOO_DEEP)
    left = levels - 1
    if kind is dict:
        members: Any = value
        return FrozenMap({k: v if type(v) in _SCALARS else freeze(v, left) for k, v in members.items()})
    if kind is list:
        listed: Any = value
        return tuple([v if type(v) in _SCALARS else freeze(v, left) for v in listed])
    return _freeze_other(value, left)


_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


def _freeze_other(value: object, left: int) -> Any:
    if isinstance(value, dict):
        return value if type(value) is FrozenMap else FrozenMap({k: freeze(v, left) for k, v in value.items()})
    if isinstance(value, Mapping):
        return FrozenMap({str(k): freeze(v, left) for k, v in value.items()})
    if type(value) is tuple:
        items = tuple([freeze(v, left) for v in value])
        return items if any(map(operator.is_not, items, value)) else value
    if isinstance(value, list | tuple):
        return value if hasattr(value, "_fields") else tuple([freeze(v, left) for v in value])  # not a NamedTuple
    return frozenset(value) if isinstance(value, set) else value


def camel_case(name: str) -> str:
    """Convert a snake_case name to an API name, for example ``node_name`` to ``nodeName``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
