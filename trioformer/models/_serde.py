"""JSON in, JSON out: the only module that names msgspec and cattrs.

msgspec scans bytes and turns plain leaves into Python values; the one cattrs converter does what msgspec does not
know: quantities, the two kinds of time, free-form JSON, read-only maps, and the attrs classes that users bring for
their own kinds.
Nothing here knows a Kubernetes kind, and nothing here is structured before :mod:`._lazy` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias, TypeVar, Union, final, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from ..errors import DecodeError
from ._quantity import Quantity

__all__ = [
    "EMPTY_MAP",
    "FAULTS",
    "JSON",
    "FrozenMap",
    "Head",
    "MicroTime",
    "Raw",
    "Time",
    "camel_case",
    "check_object",
    "decode",
    "decode_error",
    "dumps",
    "freeze",
    "level_decoder",
    "list_items",
    "loads",
    "make_head",
    "map_items",
    "plain",
    "plain_decoder",
    "scan_head",
    "scan_whole",
    "scan_without_managed_fields",
    "structure",
    "teach",
    "unstructure",
]

V = TypeVar("V")

Raw = msgspec.Raw
"""A slice of somebody's bytes that has been skipped over, not decoded; it keeps those bytes alive."""

ABSENT = Raw(b"")

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


def decode_error(error: Exception, what: str) -> DecodeError:
    """The library's own error for what msgspec or cattrs found wrong in ``what``."""
    if isinstance(error, cattrs.BaseValidationError):
        wrong = "; ".join(cattrs.transform_error(error, path=""))
    else:
        wrong = " ".join(str(error).split())
    return DecodeError(f"cannot decode {what}: {wrong}")


FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    cattrs.BaseValidationError,
    msgspec.MsgspecError,  # a ValueError only since msgspec 0.22
)
"""What structuring a bad value may raise, most of it out of converter hooks.

AttributeError is one of them because Python's ``hasattr`` would hide it where a field is decoded on first access.
"""
_NO_JSON = (msgspec.MsgspecError, RecursionError)  # the latter when it is nested a thousand times


# --- heads: what the pipe itself reads of every object ---------------------------------------------------------------


@final
class MetadataHead(msgspec.Struct, gc=False):
    """The metadata fields that caches and queues read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  # the wire's spelling spares msgspec a rename table


@final
class Head(msgspec.Struct, gc=False):
    """The one scan that every object gets; ``spec`` is captured for nothing on the way.

    ``gc=False``: a head refers to no container, and hundreds of thousands of them would slow each collection.
    """

    metadata: MetadataHead
    spec: msgspec.Raw = ABSENT

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for what has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_decode_head = msgspec.json.Decoder(Head).decode


def scan_head(data: bytes) -> Head:
    """Scan an object's bytes for its head.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        return _decode_head(data)
    except _NO_JSON as error:
        raise decode_error(error, "an object's metadata") from error


def scan_whole(data: bytes) -> tuple[bytes, Head]:
    """Scan an object's bytes that are kept as they are.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    return data, scan_head(data)


class _ManagedMetadataHead(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = ABSENT  # noqa: N815  # as above


class _ManagedHead(msgspec.Struct, gc=False):
    metadata: _ManagedMetadataHead


_find_managed_fields = msgspec.json.Decoder(_ManagedHead).decode
_MANAGED_FIELDS = b'"managedFields":'


def scan_without_managed_fields(data: bytes) -> tuple[bytes, Head]:
    """Cut ``metadata.managedFields`` out of an object's bytes, which often halves them, and scan the rest.

    The bytes before and after are copied once, and nothing is decoded.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        found = _find_managed_fields(data).metadata.managedFields
    except _NO_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    value = memoryview(found)
    if not value:
        return scan_whole(data)
    begin = data.find(_MANAGED_FIELDS)
    end = begin + len(_MANAGED_FIELDS) + len(value)
    # The key cannot be part of a string, where its quotes are escaped, but it may be a deeper object's, or spaced.
    if begin > 0 and data[end - len(value) : end] == value:
        if data[begin - 1] == _COMMA:
            begin -= 1
        elif data[end] == _COMMA:
            end += 1
        rest = data[:begin] + data[end:]
        if not memoryview(_find_managed_fields(rest).metadata.managedFields):
            return rest, _decode_head(rest)
    return scan_whole(_without_managed_fields(data))


_COMMA = ord(",")


def _without_managed_fields(data: bytes) -> bytes:
    """Cut them out of an object in any spelling, by its members."""
    members = map_items(data)
    metadata = map_items(members["metadata"])
    del metadata["managedFields"]
    members["metadata"] = Raw(_join(metadata))
    return _join(members)


def _join(members: dict[str, Raw]) -> bytes:
    return b"{" + b",".join([dumps(key) + b":" + bytes(raw) for key, raw in members.items()]) + b"}"


def make_head(name: str, namespace: str, uid: str, resource_version: str) -> Head:
    """The head of an object that was built in Python, not read."""
    return Head(MetadataHead(name, namespace, uid, resource_version))


# --- levels: one JSON object, its members skipped over ----------------------------------------------------------------

_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_map = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def level_decoder(keys: tuple[str, ...]) -> Callable[[bytes | Raw], tuple[Raw, ...]]:
    """Make a function that finds the raw values of ``keys`` in a JSON object; an absent one is the empty ``Raw``.

    The function raises ValueError for what is no JSON object, and RecursionError for one that is nested too deeply.
    """
    fields = [(f"f{i}", msgspec.Raw, msgspec.field(default=ABSENT, name=key)) for i, key in enumerate(keys)]
    level = msgspec.defstruct("Level", fields, gc=False)
    find = msgspec.json.Decoder(level).decode

    def find_values(data: bytes | Raw) -> tuple[Raw, ...]:
        try:
            return msgspec.structs.astuple(find(data))
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error

    return find_values


def list_items(data: bytes | Raw) -> list[Raw]:
    """Return the raw items of a JSON array; null reads as empty.

    Raises:
        ValueError: It is no array.
        RecursionError: It is nested too deeply.
    """
    try:
        return _decode_list(data) or []
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def map_items(data: bytes | Raw) -> dict[str, Raw]:
    """Return the raw members of a JSON object; null reads as empty.

    Raises:
        ValueError: It is no object.
        RecursionError: It is nested too deeply.
    """
    try:
        return _decode_map(data) or {}
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def check_object(data: bytes, what: str) -> None:
    """Make sure that the bytes are one JSON object.

    Raises:
        DecodeError: They are not.
    """
    try:
        _decode_object(data)
    except _NO_JSON as error:
        raise decode_error(error, what) from error


def plain_decoder(type_: Any) -> Callable[[bytes | Raw], Any]:
    """A decoder of a leaf type that msgspec knows by itself."""
    return msgspec.json.Decoder(type_).decode


def decode(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to plain dicts, lists and scalars.

    Raises:
        DecodeError: It is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except _NO_JSON as error:
        raise decode_error(error, "JSON") from error


def dumps(value: object) -> bytes:
    """Encode plain values (dicts, sequences, scalars, base64 for bytes) as compact JSON.

    A model is not one of them: it has ``encode``.

    Raises:
        TypeError: A value has no JSON form.
    """
    return msgspec.json.encode(value, enc_hook=_plainer)


def _plainer(value: object) -> Any:
    made = plain(value)
    if type(made) is type(value):
        raise TypeError(f"a {type(value).__name__} has no JSON form here")
    return made


def plain(value: object) -> object:
    """Turn the models and other values in dicts and sequences into what :func:`dumps` takes.

    Without it, msgspec would take them for attrs classes of its own rules.
    """
    made: object = converter.unstructure(value)
    return made


def loads(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to frozen plain values: tuples and read-only maps.

    Raises:
        DecodeError: It is not JSON.
    """
    return freeze(decode(data))


# --- the converter ---------------------------------------------------------------------------------------------------


def camel_case(name: str) -> str:
    """The API's spelling of a snake_case name, where no exception is listed: ``node_name`` → ``nodeName``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(UTC)")
    return value.astimezone(UTC)


def _structure_time(value: object, _: object) -> datetime:
    return value if isinstance(value, datetime) else msgspec.convert(value, datetime)


def _unstructure_time(value: datetime) -> str:
    return _utc(value).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unstructure_micro_time(value: datetime) -> str:
    return _utc(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _structure_quantity(value: object, _: object) -> Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError("a quantity is a string or a number")
    return Quantity(str(value))


def _is(tag: object) -> Callable[[Any], bool]:
    return lambda type_: type_ == tag


def _is_user_class(type_: Any) -> bool:
    return isinstance(type_, type) and attrs.has(type_)


def _is_plain_union(type_: Any) -> bool:
    arms = {*get_args(type_)} - {type(None)}
    return get_origin(type_) in (Union, UnionType) and len(arms) > 1 and arms <= _PLAIN


_PLAIN = frozenset({str, int, float, bool})


def _renames(cls: type[Any]) -> dict[str, Any]:
    return {
        a.name: override(rename=a.metadata.get("json", camel_case(a.name)), omit_if_default=True)
        for a in attrs.fields(cls)
    }


def _make_converter() -> cattrs.Converter:
    made = cattrs.Converter(forbid_extra_keys=False)

    def reader(cls: type[Any]) -> Callable[[Any, Any], Any]:
        read = make_dict_structure_fn(cls, made, **_renames(cls))

        def read_object(value: Any, type_: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected an object, got {type(value).__name__}")
            return read(value, type_)

        return read_object

    def writer(cls: type[Any]) -> Callable[[Any], Any]:
        return make_dict_unstructure_fn(cls, made, **_renames(cls))

    made.register_structure_hook_factory(_is_user_class, reader)
    made.register_unstructure_hook_factory(_is_user_class, writer)
    times = {Time: _unstructure_time, datetime: _unstructure_time, MicroTime: _unstructure_micro_time}
    for tag, unstructure_time in times.items():
        made.register_structure_hook_func(_is(tag), _structure_time)
        made.register_unstructure_hook_func(_is(tag), unstructure_time)
    made.register_structure_hook_func(_is_plain_union, msgspec.convert)
    made.register_structure_hook(Quantity, _structure_quantity)
    made.register_unstructure_hook(Quantity, str)
    made.register_structure_hook(bytes, lambda value, _: msgspec.convert(value, bytes))
    made.register_unstructure_hook(bytes, msgspec.to_builtins)
    made.register_structure_hook_func(_is(JSON), lambda value, _: freeze(value))
    made.register_unstructure_hook_func(_is(JSON), made.unstructure)
    made.register_structure_hook_func(
        lambda type_: get_origin(type_) in _MAPPINGS,
        lambda value, type_: FrozenMap({k: made.structure(v, get_args(type_)[1]) for k, v in value.items()}),
    )
    return made


_MAPPINGS: tuple[object, ...] = (Mapping, FrozenMap)
converter = _make_converter()


def teach(cls: type[Any], read: Callable[[Any, type[Any]], Any], write: Callable[[Any], Any]) -> None:
    """Tell the converter how a class and its subclasses are read from plain values, and written as what dumps takes."""

    def is_known(type_: Any) -> bool:
        return isinstance(type_, type) and issubclass(type_, cls)

    converter.register_structure_hook_func(is_known, read)
    converter.register_unstructure_hook_func(is_known, write)


def structure(data: bytes | Raw, type_: Any) -> Any:
    """Decode JSON and let the converter structure it as ``type_``."""
    return converter.structure(msgspec.json.decode(data), type_)


def unstructure(value: object, type_: Any) -> Any:
    """Turn a value of ``type_`` into what :func:`dumps` takes."""
    return converter.unstructure(value, unstructure_as=type_)
