"""Decode the fields of models, and write changed fields into JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast, final

import attrs

from . import _serde
from ._merge_changes import merge_changes
from ._serde import Raw
from ._values import FrozenMap, camel_case, freeze

__all__ = ["MADE", "Codec", "Field"]

EncodePart: TypeAlias = Callable[[Any], bytes]


@final
@attrs.frozen
class Codec:
    """The functions that decode and encode a field's values."""

    structure: Callable[[Raw], Any]
    unstructure: EncodePart
    unstructure_parts: Callable[[Any, EncodePart], bytes] | None = None
    """Encodes a value that contains models, using a given function for each model; None if the type has no models."""
    is_merged: bool = False
    """Whether a changed value must be merged into the old one, because decoding lost members."""


MADE: Any = object()
"""A marker for a default that a factory makes for each object."""


class Field:
    """One field of a model: its attribute name, argument name and JSON name, its default, and its codec."""

    __slots__ = (
        "_unstructure_parts",
        "argument",
        "attribute",
        "default",
        "factory",
        "find",
        "is_merged",
        "json",
        "name",
        "omits_empty",
        "set",
        "structure",
        "unstructure",
    )

    def __init__(self, cls: Any, attribute: attrs.Attribute[Any], codec: Codec, *, is_builtin: bool) -> None:
        self.attribute = attribute
        self.name = attribute.name
        self.argument = cast("str", attribute.alias)
        self.json = cls._json_names.get(self.name) or attribute.metadata.get("json") or camel_case(self.name)
        self.factory: Any = attribute.default if isinstance(attribute.default, attrs.Factory) else None  # type: ignore[arg-type]  # attrs types the class Factory as a function
        """The default factory, or None if all objects share one default."""
        self.default: Any = MADE if self.factory is not None else _constant_default(attribute)
        self.set: Callable[[object, Any], None] = _slot(cls, self.name)
        self.find: Callable[[bytes | Raw], tuple[Raw, ...]] | None = None
        self.structure, self.unstructure, self.is_merged = codec.structure, codec.unstructure, codec.is_merged
        self._unstructure_parts = codec.unstructure_parts
        self.omits_empty = is_builtin and isinstance(self.default, tuple | FrozenMap)
        """Whether an empty value is omitted, as with omitempty in the Go types of the built-in kinds."""

    def find_in(self, data: bytes | Raw) -> Raw:
        """Return the raw value of this field in the JSON of its object."""
        if self.find is None:
            self.find = _serde.level_decoder((self.json,))
        return self.find(data)[0]

    def value_of(self, raw: Raw) -> Any:
        """Decode a raw value; if it is absent or null, return the default, or :data:`MADE` for a factory."""
        data = bytes(raw) if len(memoryview(raw)) <= 4 else raw
        return self.default if data in (b"", b"null") else self.structure(raw)

    def make_default(self, model: object) -> Any:
        """Return a new default for one object from the default factory."""
        return freeze(self.factory.factory(model) if self.factory.takes_self else self.factory.factory())

    def encode(self, value: Any, encode_part: EncodePart | None = None) -> bytes:
        """Encode a value; ``encode_part`` encodes the models in it, by default :func:`~trioformer.models.encode`."""
        if encode_part is None or self._unstructure_parts is None:
            return self.unstructure(value)
        return self._unstructure_parts(value, encode_part)

    def write(self, members: dict[str, bytes | Raw], value: Any, encode_part: EncodePart | None = None) -> None:
        """Write a new value of this field into the members of an object; if the value is unchanged, its bytes are kept.

        Args:
            members: The members of the JSON object, which are changed in place.
            value: The new value; None removes the member.
            encode_part: The function that encodes models. The default, None, uses :func:`~trioformer.models.encode`,
                which omits empty values of built-in kinds.
        """
        old = members.get(self.json)
        before = None if old is None else bytes(old)
        if value is None or (self.omits_empty and not value and encode_part is None):
            if before not in (None, b"null") and (value is None or not self._is_empty(Raw(before))):
                del members[self.json]
            return
        after = self.encode(value, encode_part)
        if before is None or before == b"null":
            members[self.json] = after
        elif before != after:
            # The value may have been decoded from other bytes, such as a time with a fraction.
            read = self._read_again(Raw(before))
            if read is None:
                members[self.json] = after
            elif _serde.canonical(read) != _serde.canonical(after):
                members[self.json] = merge_changes(before, read, after) if self.is_merged else after

    def _is_empty(self, raw: Raw) -> bool:
        try:
            return not self.value_of(raw)
        except _serde.FAULTS:
            return False

    def _read_again(self, raw: Raw) -> bytes | None:
        """Decode a raw value and encode it again; return None if the value cannot be decoded."""
        try:
            return self.unstructure(self.value_of(raw))
        except _serde.FAULTS:
            return None


def _constant_default(attribute: attrs.Attribute[Any]) -> Any:
    return None if attribute.default is attrs.NOTHING else freeze(attribute.default)


def _slot(cls: type[object], name: str) -> Callable[[object, Any], None]:
    for base in cls.__mro__:
        if name in base.__dict__:
            return cast("Callable[[object, Any], None]", base.__dict__[name].__set__)
    raise TypeError(f"{cls.__name__}.{name} has no slot; make the class with @attrs.frozen (slots=True)")
