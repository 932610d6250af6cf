"""Decode the fields of models, and write changed fields into JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast, final, get_args, get_origin

import attrs

from . import _serde
from ._evolve import Received
from ._hints import has_float, is_scalar
from ._protobuf._places import place_of, source_of
from ._protobuf._wire import Message, Unknown
from ._serde import Raw
from ._values import FrozenMap, camel_case, freeze

__all__ = ["MADE", "Codec", "Field", "encode_members", "json_of", "model_codec", "value_codec"]

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
    """Whether a changed value must be merged into the old value, because decoding lost members."""
    model: Any = None
    """The class of the models in the field's values, or None if the values contain no models."""


def encode_members(members: Mapping[str, bytes | Raw]) -> bytes:
    """Encode a JSON object whose values are already encoded."""
    return b"{" + b",".join([_serde.dumps(key) + b":" + bytes(value) for key, value in members.items()]) + b"}"


def json_of(model: object, origin: Received, unknown: Unknown | None = None) -> bytes:
    """Return the JSON of a decoded object, and collect the protobuf fields that are not in the table of types."""
    if type(origin) is not Message:
        return bytes(origin)
    from ._protobuf._fields import message_to_plain  # noqa: PLC0415  # which JSON does not need

    try:
        return _serde.dumps(message_to_plain(type(model), origin.data, unknown))
    except _serde.FAULTS as error:
        raise _serde.decode_error(error, place_of(source_of(model, origin))) from error


def model_codec(container: Any, model: type[Any], make: Callable[[Any], Any], encode: EncodePart) -> Codec:
    """Return the codec for a model, or for a tuple or map of models."""
    if container is None:
        return Codec(make, encode, lambda value, encode_one: encode_one(value), model=model)
    if container is tuple:
        return Codec(
            lambda raw: tuple([make(one) for one in _serde.list_items(raw)]),
            lambda value: _encode_items(value, encode),
            _encode_items,
            model=model,
        )
    return Codec(
        lambda raw: FrozenMap({key: make(one) for key, one in _serde.map_items(raw).items()}),
        lambda value: _encode_map(value, encode),
        _encode_map,
        model=model,
    )


def value_codec(hint: Any) -> Codec:
    """Return the codec for a type that contains no models."""
    args = get_args(hint)
    if get_origin(hint) is Mapping and is_scalar(args[1]):
        decode_map = _serde.plain_decoder(dict[str, args[1]])  # type: ignore[valid-type]  # a run-time type
        return Codec(lambda raw: FrozenMap(decode_map(raw)), _scalar_encoder(args[1]))
    if is_scalar(hint):
        return Codec(_serde.plain_decoder(hint), _scalar_encoder(hint))
    return Codec(
        lambda raw: freeze(_serde.structure(raw, hint)),
        lambda value: _serde.dumps(_serde.unstructure(value, hint)),
        is_merged=True,
    )


def _scalar_encoder(hint: Any) -> EncodePart:
    return _serde.dumps_finite if has_float(hint) else _serde.dumps


def _encode_items(value: Iterable[Any], encode_one: EncodePart) -> bytes:
    return b"[" + b",".join(map(encode_one, value)) + b"]"


def _encode_map(value: Mapping[str, Any], encode_one: EncodePart) -> bytes:
    return encode_members({key: encode_one(one) for key, one in value.items()})


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
        "is_builtin",
        "is_merged",
        "json",
        "model",
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
        self.model = codec.model
        self.find: Callable[[bytes | Raw], tuple[Raw, ...]] | None = None
        self.structure, self.unstructure, self.is_merged = codec.structure, codec.unstructure, codec.is_merged
        self._unstructure_parts = codec.unstructure_parts
        self.is_builtin = is_builtin
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
        """Encode a value; ``encode_part``, by default :func:`~trioformer.models.encode`, encodes the models in it."""
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
                from ._merge_changes import merge_changes  # noqa: PLC0415  # only for changed values of free form

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
    raise TypeError(f"{cls.__name__}.{name} has no slot; define the class with @attrs.frozen (slots=True)")
