"""Find fields that cannot be decoded.

Programs rarely need these functions, because fields are decoded when they are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs

from ..errors import DecodeError
from . import _lazy, _serde
from ._meta import KubernetesObject
from ._quantity import Quantity
from ._unstructured import Unstructured
from ._values import MAX_LEVELS, TOO_DEEP

__all__ = ["find_undecodable", "locate_undecodable"]

_MAX_NESTED: Final = 3 * MAX_LEVELS
"""This counts models, the tuples and maps between them, and the levels of free-form values below them."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


def find_undecodable(obj: KubernetesObject) -> DecodeError | None:
    """Decode all fields of an object, and return the first error, or None if every field can be decoded.

    The function decodes a copy, so that a cached object does not use more memory.  The call takes about 1 ms for a pod.
    """
    try:
        _decode_all(_lazy.make(type(obj), _bytes_of(obj)))
    except DecodeError as error:
        return error
    except RecursionError as error:
        return _serde.decode_error(error, type(obj).__name__)
    return None


def _decode_all(obj: KubernetesObject) -> None:
    # Level by level: each reads its bytes again, so the cost grows with the number of levels.
    pending: list[object] = [obj]
    for _ in range(_MAX_NESTED):
        pending = _decode_level(pending)
        if not pending:
            return
    raise DecodeError(f"cannot decode {type(obj).__name__}: {TOO_DEEP}")


def locate_undecodable(obj: KubernetesObject) -> tuple[tuple[str | int, ...], DecodeError] | None:
    """Return the JSON path of an undecodable field together with its error, or None if there is no such field.

    The call takes several times as long as :func:`find_undecodable`, so it is used only for error messages that name
    the field.
    """
    pending: list[tuple[tuple[str | int, ...], object]] = [((), _lazy.make(type(obj), _bytes_of(obj)))]
    for _ in range(_MAX_NESTED):
        inner: list[tuple[tuple[str | int, ...], object]] = []
        for path, value in pending:
            if isinstance(value, _lazy.Model):
                for name, field in _lazy.plan_of(type(value)).fields.items():
                    try:
                        inner.append(((*path, field.json), getattr(value, name)))
                    except DecodeError as error:
                        return (*path, field.json), error
            elif isinstance(value, Mapping):
                inner += [((*path, key), each) for key, each in value.items()]
            elif isinstance(value, tuple | frozenset):
                inner += [((*path, index), each) for index, each in enumerate(value)]
            else:
                try:
                    _decode_level([value])
                except DecodeError as error:
                    return path, error
        pending = [(path, value) for path, value in inner if type(value) not in _SCALARS]
    return None


def _bytes_of(model: _lazy.Model) -> bytes:
    origin = model._origin
    return _lazy.encode(model) if isinstance(origin, _lazy.Edits) else cast("bytes", origin)


def _decode_level(values: Iterable[object]) -> list[object]:
    pending: list[object] = []
    for value in values:
        if isinstance(value, _lazy.Model):
            pending += [getattr(value, name) for name in _lazy.plan_of(type(value)).fields]
            if isinstance(value, Unstructured):
                pending += [value[key] for key in value]
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, tuple | frozenset):
            pending += value
        elif isinstance(value, Quantity):
            value.value  # noqa: B018  # raises unless it is one
        elif attrs.has(type(value)):
            pending += [getattr(value, field.name) for field in attrs.fields(cast("Any", type(value)))]
        elif dataclasses.is_dataclass(value):
            pending += [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value for value in pending if type(value) not in _SCALARS]
