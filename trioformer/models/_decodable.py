"""Whether an object decodes completely; usually nobody asks, because fields are decoded when they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import attrs

from ..errors import DecodeError
from . import _lazy, _serde
from ._meta import KubernetesObject
from ._unstructured import Unstructured

__all__ = ["find_undecodable"]


def find_undecodable(obj: KubernetesObject) -> DecodeError | None:
    """Decode all fields of an object, and return the error of one that does not decode, or None.

    A copy is decoded, so that a cached object does not grow.  It costs about 1 ms for a pod.
    """
    try:
        _decode_all(_lazy.make(type(obj), _lazy.encode(obj)))
    except DecodeError as error:
        return error
    except RecursionError as error:
        return _serde.decode_error(error, type(obj).__name__)
    return None


def _decode_all(obj: KubernetesObject) -> None:
    pending: list[object] = [obj]  # a stack: objects may be nested deeper than calls
    while pending:
        value = pending.pop()
        if isinstance(value, _lazy.Model):
            pending += [getattr(value, name) for name in _lazy.field_names(type(value))]
            if isinstance(value, Unstructured):
                pending += [value[key] for key in value]
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, tuple | frozenset):
            pending += value
        elif attrs.has(type(value)):
            pending += [getattr(value, field.name) for field in attrs.fields(cast("Any", type(value)))]
        elif dataclasses.is_dataclass(value):
            pending += [getattr(value, field.name) for field in dataclasses.fields(value)]
