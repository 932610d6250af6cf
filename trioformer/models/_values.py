"""The values that fields hold beside models and plain scalars: free-form JSON, times, and read-only maps."""

from __future__ import annotations

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
"""``metav1.Time``: whole seconds on the wire."""
MicroTime: TypeAlias = Annotated[datetime, "MicroTime"]
"""``metav1.MicroTime``: exactly six digits of a second on the wire."""


class FrozenMap(dict[str, V]):
    """A read-only mapping: a dict whose changing methods raise, so that it pickles, copies and encodes like one.

    It is hashable by its keys alone, since its values may be nested maps.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is part of a frozen object; build a new one with {**old, …} and attrs.evolve")

    if not TYPE_CHECKING:  # checkers go by dict's own signatures
        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable
        return hash(frozenset(self))

    def __copy__(self) -> FrozenMap[V]:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> FrozenMap[V]:
        return self

    def __reduce__(self) -> tuple[type[FrozenMap[V]], tuple[dict[str, V]]]:
        return FrozenMap, (dict(self),)


EMPTY_MAP: FrozenMap[Any] = FrozenMap()
"""What an absent map reads as."""


def freeze(value: object) -> Any:
    """Turn lists into tuples and dicts into read-only maps, in depth."""
    if isinstance(value, dict):
        return value if type(value) is FrozenMap else FrozenMap({k: freeze(v) for k, v in value.items()})
    if isinstance(value, Mapping):
        return FrozenMap({str(k): freeze(v) for k, v in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    return value


def camel_case(name: str) -> str:
    """The API's spelling of a snake_case name, where no exception is listed: ``node_name`` → ``nodeName``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
