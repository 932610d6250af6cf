"""Decode and encode JSON with msgspec.

For types that msgspec does not support, this module uses the cattrs converter in ``_converter.py``.  ``_meta.py``
scans the heads of objects.  No other module imports msgspec or cattrs.
The code in this module does not depend on any Kubernetes kind.
"""

from __future__ import annotations

import functools
import math
import pathlib
import re
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, final

import msgspec

from ..errors import DecodeError
from ._values import MAX_LEVELS, NOT_FINITE, TOO_DEEP, freeze

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = [
    "ABSENT",
    "FAULTS",
    "INVALID_JSON",
    "Raw",
    "canonical",
    "check_object",
    "decode",
    "decode_error",
    "dumps",
    "dumps_finite",
    "dumps_sorted",
    "encode_error",
    "level_decoder",
    "list_items",
    "loads",
    "map_items",
    "plain",
    "plain_decoder",
    "register_hooks",
    "structure",
    "unstructure",
]

Raw = msgspec.Raw
"""A slice of scanned JSON that is not decoded yet.  The slice keeps the whole JSON alive."""

ABSENT = Raw(b"")


@final
class MalformedError(ValueError):
    """The error for bytes that are not a JSON object; its text does not quote the bytes."""


def decode_error(error: Exception, what: str) -> DecodeError:
    """Return the error for an exception from decoding ``what``; its text contains paths, but no values."""
    return DecodeError(f"cannot decode {what}: {_problem(error)}")


def encode_error(error: Exception, what: str) -> DecodeError:
    """Return the error for an exception from encoding a value for ``what``, with the text of the exception."""
    problem = TOO_DEEP if isinstance(error, RecursionError) else " ".join(str(error).split())
    return DecodeError(f"cannot decode {what}: {problem}")


def _problem(error: Exception) -> str:
    if isinstance(error, DecodeError):
        return " ".join(str(error).split()).removeprefix("cannot decode JSON: ")
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, UnicodeDecodeError):
        error.object, error.args = b"", ()  # str and repr would show the bytes
        return "a string in it is not valid UTF-8"
    if isinstance(error, msgspec.MsgspecError | MalformedError):
        return _QUOTED.sub("invalid value", " ".join(str(error).split()))
    # From code of the program: its text may quote the value, so give the place where it was raised.
    found = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" in {frame.name}, {pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in found)
    return f"a value is not valid ({type(error).__name__}{where})"


_QUOTED = re.compile(r"[Ii]nvalid (?:enum )?value .*(?= - at `[^`]*`$)|[Ii]nvalid (?:enum )?value .*")


FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ExceptionGroup,  # of cattrs, with the errors of all fields
    msgspec.MsgspecError,  # a ValueError only since msgspec 0.22
)
"""The exceptions that decoding an invalid value can raise, mostly from hooks of the converter.

AttributeError is included, because otherwise ``hasattr`` would hide the error when a field is decoded on first access.
"""
# RecursionError for JSON that has more levels than Python allows, UnicodeDecodeError for a string that is not UTF-8.
INVALID_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


# --- levels: one JSON object, its members not decoded ----------------------------------------------------------------

_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_map = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def level_decoder(keys: tuple[str, ...]) -> Callable[[bytes | Raw], tuple[Raw, ...]]:
    """Make a function that returns the raw values of ``keys`` in a JSON object, or an empty ``Raw`` for an absent key.

    The function raises ValueError if its argument is not a JSON object, and RecursionError if it has too many levels.
    """
    fields = [(f"f{i}", msgspec.Raw, msgspec.field(default=ABSENT, name=key)) for i, key in enumerate(keys)]
    level = msgspec.defstruct("Level", fields, gc=False)
    find = msgspec.json.Decoder(level).decode

    def find_values(data: bytes | Raw) -> tuple[Raw, ...]:
        try:
            return msgspec.structs.astuple(find(data))
        except msgspec.MsgspecError as error:
            raise MalformedError(str(error)) from error
        except RecursionError:
            raise RecursionError(TOO_DEEP) from None

    return find_values


def list_items(data: bytes | Raw) -> list[Raw]:
    """Return the raw items of a JSON array; null is read as an empty array.

    Raises:
        ValueError: ``data`` is not an array.
        RecursionError: ``data`` has too many levels.
    """
    try:
        return _decode_list(data) or []
    except msgspec.MsgspecError as error:
        raise MalformedError(str(error)) from error
    except RecursionError:
        raise RecursionError(TOO_DEEP) from None


def map_items(data: bytes | Raw) -> dict[str, Raw]:
    """Return the raw members of a JSON object; null is read as an empty object.

    Raises:
        ValueError: ``data`` is not an object, or a key is not UTF-8.
        RecursionError: ``data`` has too many levels.
    """
    try:
        return _decode_map(data) or {}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedError(_problem(error)) from error
    except RecursionError:
        raise RecursionError(TOO_DEEP) from None


def check_object(data: bytes, what: str) -> None:
    """Check that ``data`` is a JSON object.

    Raises:
        DecodeError: ``data`` is not a JSON object.
    """
    try:
        _decode_object(data)
    except INVALID_JSON as error:
        raise decode_error(error, what) from error


def plain_decoder(type_: Any) -> Callable[[bytes | Raw], Any]:
    """Return a decoder for a type that msgspec supports."""
    return msgspec.json.Decoder(type_).decode


def decode(data: bytes | bytearray | memoryview | Raw, levels: int = MAX_LEVELS) -> Any:
    """Decode JSON to plain dicts, lists and scalars.

    Args:
        data: The JSON to decode.
        levels: The maximum number of nested arrays and objects.

    Raises:
        DecodeError: ``data`` is not JSON, or has too many levels.
    """
    try:
        found = msgspec.json.decode(data)
    except INVALID_JSON as error:
        raise decode_error(error, "JSON") from error
    # Few bytes or few brackets cannot have too many levels.
    if len(view := memoryview(data)) > 2 * levels:
        text = bytes(view)
        if text.count(b"{") + text.count(b"[") > levels and _has_too_many_levels(found, levels):
            raise DecodeError(f"cannot decode JSON: {TOO_DEEP}")
    return found


def _has_too_many_levels(value: object, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [
            each
            for parent in level
            for each in (parent.values() if type(parent) is dict else parent if type(parent) is list else ())
            if type(each) in (dict, list)
        ]
        if not level:
            return False
    return True


dumps_sorted = msgspec.json.Encoder(order="sorted").encode
"""A function that encodes plain values with sorted members."""


def canonical(data: bytes | Raw) -> bytes:
    """Return the canonical form of JSON, which does not depend on the order of members.

    ``1``, ``1.0`` and ``true`` have different canonical forms, but ``1.0`` and ``1.00`` have the same.
    JSON that cannot be decoded, such as a number with 400 digits, is returned unchanged.
    """
    try:
        return dumps_sorted(msgspec.json.decode(data))
    except (*INVALID_JSON, ValueError):
        return bytes(data)


def dumps(value: object) -> bytes:
    """Encode plain values (dicts, sequences and scalars) as compact JSON; bytes are encoded as base64.

    Raises:
        TypeError: A value cannot be encoded as JSON.
        ValueError: A string is not valid Unicode, or the value has too many levels.
    """
    try:
        return msgspec.json.encode(value, enc_hook=_unstructure_other)
    except UnicodeEncodeError as error:
        raise ValueError("a string with a lone surrogate cannot be encoded as JSON") from error
    except RecursionError as error:
        raise DecodeError(f"cannot encode a value: {TOO_DEEP}") from error


def _unstructure_other(value: object) -> Any:
    found = plain(value)
    if type(found) is type(value):
        raise TypeError(f"a {type(value).__name__} cannot be encoded as JSON")
    return found


def plain(value: object) -> object:
    """Convert models and other objects in dicts and sequences to values that :func:`dumps` can encode.

    Without this conversion, msgspec would apply its own rules for attrs classes.

    Raises:
        ValueError: A number is NaN or infinite, or the value has too many levels.
    """
    try:
        found: object = _converter().unstructure(value)
    except RecursionError as error:
        raise DecodeError(f"cannot encode a value: {TOO_DEEP}") from error
    return found


def dumps_finite(value: Any) -> bytes:
    """Encode a float, or a sequence or mapping that contains floats.

    Raises:
        ValueError: A number is NaN or infinite, which msgspec alone would encode as null.
    """
    each = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    if not all(math.isfinite(number) for number in each if isinstance(number, float)):
        raise ValueError(NOT_FINITE)
    return dumps(value)


def loads(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to immutable values: tuples, read-only maps and scalars.

    Raises:
        DecodeError: ``data`` is not JSON, or has too many levels.
    """
    try:
        return freeze(msgspec.json.decode(data))
    except INVALID_JSON as error:
        raise decode_error(error, "JSON") from error
    except DecodeError as error:
        raise decode_error(error, "JSON") from error


# --- the converter ---------------------------------------------------------------------------------------------------


Structure: TypeAlias = Callable[[Any, type[Any]], Any]
Unstructure: TypeAlias = Callable[[Any], Any]

_hooks: list[tuple[type[Any], Structure, Unstructure]] = []


@functools.cache
def _converter() -> Converter:
    # cattrs takes a fifth of this library's import time, and most programs do not need it immediately.
    from ._converter import make_converter  # noqa: PLC0415

    return make_converter(_hooks)


def register_hooks(cls: type[Any], structure: Structure, unstructure: Unstructure) -> None:
    """Before a class is first used, register the functions that structure and unstructure it and its subclasses."""
    _hooks.append((cls, structure, unstructure))


def structure(data: bytes | Raw, type_: Any) -> Any:
    """Decode JSON as a value of ``type_`` with the converter.

    Raises:
        DecodeError: The JSON does not have this type or has too many levels, or the converter does not support the
            type.
    """
    converter = _converter()
    value = decode(data)
    try:
        return converter.structure(value, type_)
    except Exception as error:  # noqa: BLE001  # hooks, converters and validators may raise anything
        from ._converter import UNSUPPORTED, describe  # noqa: PLC0415  # as in _converter()

        problem = str(error) if isinstance(error, UNSUPPORTED) else describe(error, _problem)
    # Not in the except clause: an exception whose text quotes the value would be the context of this one.
    raise DecodeError(problem)


def unstructure(value: object, type_: Any) -> Any:
    """Convert a value of ``type_`` to plain values for :func:`dumps`."""
    return _converter().unstructure(value, unstructure_as=type_)
