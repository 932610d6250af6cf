"""The check that the values in an object of a built-in kind have the JSON types of their fields.

The types are those of the table of protobuf types.  The names of Go types that do not follow from it are in
``_go_types.txt``, which ``models/_generate/protobuf`` writes.

kube-apiserver has two decoders with different messages.  The one for strategic merge patches does not name the field.

Source: ``sigs.k8s.io/json``, apimachinery ``pkg/runtime/converter.go``.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from ...errors import DecodeError
from ...models import Quantity
from ...models._internal import WireType, find_wire_type
from ._defaults import has_objects, set_go_form
from ._field_errors import number_text
from ._go_times import time_problem
from ._kinds import ServedKind
from ._status import bad_request
from ._storage import JSONObject

_SCALARS: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "s": ("string", (str,)),
    "b": ("bool", (bool,)),
    "i": ("int32", (int,)),
    "d": ("float64", (int, float)),
    "y": ("[]uint8", (str,)),
    "T": ("string", (str,)),
    "U": ("string", (str,)),
    "D": ("string", (str,)),
    "Q": ("resource.Quantity", (str, int, float)),
    "I": ("int32", (int, str)),
    "A": ("v1.JSONSchemaPropsOrArray", (dict, list)),
    "B": ("v1.JSONSchemaPropsOrBool", (dict, bool)),
    "F": ("v1.JSON", (dict, list, str, int, float, bool)),
}
"""The Go type and the Python types of a scalar, by the letter of its kind.  Values of other kinds are not checked."""
_CONTAINERS: Final[dict[str, tuple[str, type | None, str]]] = {
    "[": ("[]", list, "slice"),
    "{": ("map[string]", dict, "map"),
    "": ("", None, ""),
}
"""The prefix of the Go type, the Python type and the Go kind of a list and of a map."""
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_JSON_TYPES: Final[dict[type, str]] = {dict: "object", list: "array", str: "string", bool: "bool"}
_GO_TYPES: Final[dict[type, str]] = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/\r\n]")
_QUANTITY_PROBLEM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@final
class _Field:
    """A field of a Go struct."""

    __slots__ = ("below", "classes", "container", "go", "item", "kind", "limit", "path", "shape")

    def __init__(self, path: str, field: Any, owner: WireType, go: str | None) -> None:
        self.path = path
        """The names of the inlined structs, and of the field."""
        self.kind = field.element
        self.below: WireType | None = None
        self.classes: tuple[type, ...] = (dict,)
        if has_objects(field.element):
            self.below = owner.type_of(field.element)
            item = f"{self.below.module.rpartition('_')[2]}.{self.below.name}"
        else:
            item, self.classes = _SCALARS[field.element]
        if field.element in ("A", "B"):  # a schema in a schema
            self.below = owner
        prefix, self.container, self.shape = _CONTAINERS[field.shape]
        self.go = go or prefix + item
        """The Go type of the value."""
        self.item = (self.go.partition("]")[2] or item) if prefix else self.go
        """The Go type of an item, which is the value itself unless that is a list or a map."""
        self.limit = _LIMITS.get(self.item)

    def within(self, struct: str) -> _Field:
        """Return the field as a field of another struct that inlines its struct."""
        field = copy(self)
        field.path = f"{struct}.{self.path}"
        return field

    def is_wrong(self, item: Any) -> bool:
        """Return whether the value, or an item of the value, does not fit the type."""
        if type(item) not in self.classes:
            return item is not None
        if self.limit is not None and type(item) is int:
            return not -self.limit <= item < self.limit
        if self.kind in ("T", "U"):
            return bool(time_problem(item, self.kind))
        return (self.kind == "Q" and not _is_quantity(item)) or (self.kind == "y" and not _is_base64(item))


@functools.lru_cache(1_000)
def _is_quantity(amount: str | float) -> bool:
    try:
        _ = Quantity(str(amount)).canonical
    except DecodeError:
        return False
    return True


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return False
    return True


def _illegal_base64(text: str) -> str:
    illegal = _NOT_BASE64.search(text)
    return f"illegal base64 data at input byte {illegal.start() if illegal else len(text) // 4 * 4}"


_Message: TypeAlias = Callable[[Any, _Field, str, str], str]
"""A function that returns the message for a value, its field, its shape, and the path with the Go type."""


def type_problem(served: ServedKind, obj: JSONObject, *, is_strategic: bool = False) -> str:
    """Return the decoder's message for the first value of the wrong type in an object, or an empty string.

    ``is_strategic`` is true for the result of a strategic merge patch.
    """
    message = _unconverted if is_strategic else _undecoded
    return "" if served.wire_type is None else _find(obj, served.wire_type, "", message)


def check_delete_options(body: Mapping[str, Any]) -> None:
    """Check the types in the body of a delete request.

    Raises:
        APIStatusError: A value has the wrong type (400).
    """
    type_ = find_wire_type("v1", "DeleteOptions")
    if type_ is not None and (problem := _find(body, type_, "", _undecoded)):
        raise bad_request(problem)


def metadata_of(obj: JSONObject) -> JSONObject:
    """Check the types in an object's metadata, and return the metadata.  Missing metadata is added."""
    metadata = obj["metadata"] = {} if obj.get("metadata") is None else obj["metadata"]
    if problem := metadata_problem(metadata):
        raise bad_request(f"the object provided is unrecognized: metadata: {problem}")
    checked: JSONObject = metadata
    return checked


def metadata_problem(metadata: object) -> str:
    """Return the reason why a value is not a ``metav1.ObjectMeta``, or bring the value into Go's form."""
    type_ = find_wire_type("v1", "ObjectMeta")
    if metadata is None or type_ is None:
        return ""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {json_type(metadata)} into Go value of type v1.ObjectMeta"
    if problem := _find(metadata, type_, "", _undecoded):
        return problem
    set_go_form(metadata, type_)
    return ""


def _find(obj: Mapping[str, Any], type_: WireType, path: str, message: _Message) -> str:
    fields = _fields(type_)
    for name, value in obj.items():
        field = fields.get(name)
        if field is None or value is None:
            continue
        if field.container is not None and type(value) is not field.container:
            return message(value, field, field.shape, f"{type_.name}.{path}{field.path} of type {field.go}")
        for item in _items(value) if field.container is not None else (value,):
            if field.is_wrong(item):
                return message(item, field, "", f"{type_.name}.{path}{field.path} of type {field.item}")
            if field.below is not None and isinstance(item, dict):
                problem = _find(item, field.below, f"{path}{field.path}.", message)
                if problem:
                    return problem
    return ""


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def json_type(value: object) -> str:
    """Return the name of a value's JSON type in Go's error messages."""
    return _JSON_TYPES.get(type(value), "number")


def _undecoded(value: Any, field: _Field, shape: str, where: str) -> str:
    """Return the message of the decoder for JSON."""
    if field.kind == "Q" and not shape:
        return _QUANTITY_PROBLEM
    if field.kind == "y" and not shape and isinstance(value, str):
        return _illegal_base64(value)
    if field.kind in ("T", "U") and not shape and isinstance(value, str):
        return time_problem(value, field.kind)
    what = json_type(value)
    if what == "number" and field.limit is not None and not shape:
        what = f"number {number_text(value)}"
    return f"json: cannot unmarshal {what} into Go struct field {where}"


def _unconverted(value: Any, field: _Field, shape: str, where: str) -> str:
    """Return the message of the converter for unstructured objects."""
    found = _GO_TYPES.get(type(value), "float64")
    if field.kind == "y" and not shape and isinstance(value, str):
        return f"error decoding from json: {_illegal_base64(value)}"
    if field.kind in ("T", "U") and not shape and isinstance(value, str):
        return time_problem(value, field.kind)
    if shape or field.kind == "y":
        return f"cannot restore {shape or 'slice'} from {found}"
    if field.below is not None:
        return f"cannot restore struct from: {found}"
    if field.kind == "Q":
        return _QUANTITY_PROBLEM
    if field.kind in "TUDI":
        return f"json: cannot unmarshal {json_type(value)} into Go value of type {field.item}"
    if (field.kind, found) in (("s", "int64"), ("i", "float64"), ("i", "int64")):
        return f"cannot convert {found} to {field.item}"
    kind = _SCALARS[field.kind][0] if field.limit is None else field.item
    return f"unrecognized type: {kind}"


@functools.cache
def _go_types() -> dict[str, dict[str, str]]:
    lines = Path(__file__).with_name("_go_types.txt").read_text("utf-8").splitlines()
    named = (line.split(" ") for line in lines)
    return {name: dict(field.split("=", 1) for field in fields) for name, *fields in named}


@functools.cache
def _fields(type_: WireType) -> dict[str, _Field]:
    names = _go_types().get(f"{type_.module}.{type_.name}", {})
    fields = {}
    for field in type_.fields.values():
        if field.is_inline:
            inlined = type_.type_of(field.element)
            for name, one in _fields(inlined).items():
                fields[name] = one.within(inlined.name)
        elif has_objects(field.element) or field.element in _SCALARS:
            fields[field.json] = _Field(field.json, field, type_, names.get(field.json))
    return fields
