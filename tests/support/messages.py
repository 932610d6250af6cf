"""Compare objects in Kubernetes' protobuf with their JSON."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from trioformer.errors import DecodeError
from trioformer.models import KubernetesObject, encode, from_json, to_dict
from trioformer.models._internal import Message, make_object, open_envelope, scan_message, tagged
from trioformer.models._kinds import builtin_kind
from trioformer.models._lazy import Model, plan_of
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._heads import spans
from trioformer.models._protobuf._plain import to_plain
from trioformer.models._protobuf._tables import WireField, WireType
from trioformer.models._serde import decode

__all__ = [
    "differences",
    "field_differences",
    "find_model",
    "message_differences",
    "model_differences",
    "model_of",
    "without_type_meta",
]

K = TypeVar("K", bound=KubernetesObject)

_ABSENT: Final = "<absent>"


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Return a line for each path where two plain values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in sorted(one.keys() | other.keys()):
            yield from differences(one.get(name, _ABSENT), other.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, f"{path}[{index}]")
    elif type(one) is not type(other) or one != other:
        yield f"{path}: {one!r:.100} is not {other!r:.100}"


def without_type_meta(data: bytes) -> dict[str, Any]:
    """Decode an object's JSON, without the members that its message does not have."""
    return {name: value for name, value in decode(data).items() if name not in ("apiVersion", "kind")}


def message_differences(envelope: bytes, data: bytes, type_: WireType) -> Iterator[str]:
    """Return a line for each difference between an object on the wire, its JSON, and what we write of that."""
    wanted = without_type_meta(data)
    unknown: list[str] = []
    yield from differences(to_plain(open_envelope(envelope)[2], type_, unknown=unknown), wanted, "read ")
    lost: list[str] = []
    written = to_message(wanted, type_, lost)
    yield from differences(to_plain(written, type_, unknown=unknown), wanted, "written and read ")
    yield from (f"{name} is not in the table" for name in unknown + lost)


def find_model(api_version: str, kind: str) -> type[KubernetesObject] | None:
    """Return the class of a kind; None if it has none, such as an object of options."""
    try:
        return builtin_kind(api_version, kind)
    except LookupError:
        return None


def model_of(cls: type[K], message: bytes, *, drops_managed_fields: bool = False) -> K:
    """Make a model as of an object that arrives in a list or an event."""
    return make_object(cls, *scan_message(message, 0, len(message), drops_managed_fields=drops_managed_fields))


def model_differences(cls: type[KubernetesObject], envelope: bytes, data: bytes) -> Iterator[str]:
    """Return a line for each difference between a model that is made from the wire and one from JSON."""
    one, other = model_of(cls, open_envelope(envelope)[2]), from_json(cls, data)
    if one != other or other != one:
        yield "the models are not equal"
    if hash(one) != hash(other) or hash(one.metadata) != hash(other.metadata):
        yield "the hashes are not equal"
    yield from differences(to_dict(one), to_dict(other), "to_dict ")
    yield from field_differences(one, other)
    copy = pickle.loads(pickle.dumps(one))
    if type(copy._origin) is not Message or copy._origin != one._origin or copy != one or copy.key != one.key:
        yield "the pickle has other bytes"
    if from_json(cls, encode(one)) != one:
        yield "the model from the JSON of the model is not equal"


def field_differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Return a line for each field that reads differently in two values of models."""
    if isinstance(one, Model) and type(one) is type(other):
        for name in plan_of(type(one)).fields:
            if name in ("api_version", "kind"):
                continue
            mine, theirs = _read(one, name), _read(other, name)
            yield from field_differences(mine, theirs, f"{path}.{name}")
    elif isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        for key in one:
            yield from field_differences(one[key], other[key], f"{path}[{key!r}]")
    elif isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from field_differences(mine, theirs, f"{path}[{index}]")
    elif type(one) is not type(other) or one != other:
        yield f"{path} reads as {one!r:.100}, not {other!r:.100}"


def _read(model: Model, name: str) -> Any:
    try:
        return getattr(model, name)
    except DecodeError:
        return DecodeError


UNKNOWN: Final = tagged(1000, b"newer")
"""A field that no type has."""


def with_unknown_everywhere(data: bytes, type_: WireType) -> bytes:
    """Return a message with an unknown field in it, and in each message inside of it."""
    parts: list[bytes] = []
    for number, tag, begin, end in spans(data, 0, len(data)):
        field = type_.fields[number]
        inner = _message_in(type_, field)
        if inner is None:
            parts.append(data[tag:end])
        elif not _is_map(field):
            parts.append(tagged(number, with_unknown_everywhere(data[begin:end], inner)))
        else:
            (key_tag, key_end), (value_begin, value_end) = _entry(data, begin, end)
            value = with_unknown_everywhere(data[value_begin:value_end], inner)
            parts.append(tagged(number, data[key_tag:key_end] + tagged(2, value)))
    return b"".join(parts) + UNKNOWN


def without_unknown(data: bytes, type_: WireType, path: str = "") -> Iterator[str]:
    """Return a line for each message that lacks the unknown field."""
    if not data.endswith(UNKNOWN):
        yield f"{path} ({type_.name}) has lost an unknown field"
    for number, _, begin, end in spans(data, 0, len(data)):
        field = type_.fields.get(number)
        inner = None if field is None else _message_in(type_, field)
        if field is not None and inner is not None:
            if _is_map(field):
                begin, end = _entry(data, begin, end)[1]  # noqa: PLW2901
            yield from without_unknown(data[begin:end], inner, f"{path}.{field.json}")


def _message_in(owner: WireType, field: WireField) -> WireType | None:
    kind = field.kind.lstrip("*[{=")
    return owner.type_of(kind) if len(kind) > 1 else None


def _is_map(field: WireField) -> bool:
    return field.kind.removeprefix("*").startswith("{")


def _entry(data: bytes, begin: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    (_, key_tag, _, key_end), (_, _, value_begin, value_end) = spans(data, begin, end)
    return (key_tag, key_end), (value_begin, value_end)
