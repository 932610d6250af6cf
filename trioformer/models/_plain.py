"""Convert models to and from plain values: dicts, lists and scalars with the API's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from ..errors import DecodeError
from . import _serde
from ._hints import without_notes
from ._lazy import Model, canonical, check_made, codec_of, encode, encode_for_request, make
from ._protobuf._wire import Unknown, newer_field_in
from ._values import MAX_LEVELS

__all__ = ["encode_as", "from_dict", "json_equal", "newer_field", "to_dict"]

M = TypeVar("M", bound=Model)


def from_dict(cls: type[M], mapping: Mapping[str, object]) -> M:
    """Make an object of ``cls`` from plain values with the API's names, such as a parsed YAML manifest.

    Raises:
        DecodeError: A value cannot be encoded as JSON.
    """
    check_made(cls)
    try:
        return make(cls, _serde.dumps(_serde.plain(dict(mapping))))
    except _serde.FAULTS as error:
        raise _serde.encode_error(error, cls.__name__) from error


_AROUND = 8
"""The extra levels of the objects around a field, whose value may itself have :data:`MAX_LEVELS` levels."""


def to_dict(model: Model) -> dict[str, Any]:
    """Convert a model to new dicts, lists and scalars with the API's names.

    The dict of an object always has ``apiVersion`` and ``kind``, which list items and protobuf messages omit.

    Raises:
        DecodeError: The model's JSON is not an object, or has too many levels.
    """
    members = _serde.decode(model._complete(encode(model)), MAX_LEVELS + _AROUND)
    if not isinstance(members, dict):
        raise DecodeError(f"cannot decode {type(model).__name__}: it is not an object")
    return cast("dict[str, Any]", members)


def encode_as(hint: Any, value: object) -> bytes:
    """Encode a value like the value of a field with the type ``hint``."""
    return codec_of(without_notes(hint)).unstructure(value)


def newer_field(model: Model) -> str:
    """Return the name of a protobuf field of the model that this version's table of types does not contain.

    If there is none, return an empty string.
    """
    unknown: Unknown = []
    encode_for_request(model, unknown=unknown)
    return newer_field_in(unknown)


def json_equal(one: object, other: object) -> bool:
    """Return whether two values (models, free-form values or plain values) are encoded as the same JSON.

    The order of members does not matter, and a tuple is equal to a list with the same items.
    Unlike in Python, ``1``, ``1.0`` and ``true`` differ.  The comparison includes JSON members that a model has no
    fields for.

    Raises:
        TypeError: A value cannot be encoded as JSON.
    """
    return _canonical_value(one) == _canonical_value(other)


def _canonical_value(value: object) -> bytes:
    return (
        canonical(value, encode(value))
        if isinstance(value, Model)
        else _serde.canonical(_serde.dumps(_serde.plain(value)))
    )
