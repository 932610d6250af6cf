"""The decoding of objects as Go structs: the types of the values, and the removal of unknown fields.

The types are those of the table of protobuf types.  The names of Go types that do not follow from it are in
``go_types.txt``, which ``models/_generate/protobuf`` writes.  Both are of the installed release, as the classes are.

kube-apiserver has two decoders with different messages.  The one for strategic merge patches does not name the field.

Source: ``sigs.k8s.io/json``, apimachinery ``pkg/runtime/converter.go``.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from ...models._internal import WireType, builtin_resources, find_wire_type
from ._defaults import ZEROS, canonical_amount, has_objects
from ._field_errors import number_text
from ._go_times import time_problem, utc_time
from ._kinds import SCALE
from ._release import INSTALLED
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
_NULLABLE: Final = frozenset("RFAB")
"""The kinds of the fields that may contain any JSON, including null."""
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

    def __init__(self, path: str, field: Any, owner: WireType, go: str | None) -> None:
        self.path = path
        """The names of the inlined structs, and of the field."""
        self.kind = field.element
        self.is_nullable = field.kind in _NULLABLE
        self.struct = owner.type_of(field.element) if has_objects(field.element) else None
        self.below = owner if field.element in ("A", "B") else self.struct
        """The type of the objects whose fields are checked.  Those in a schema may be schemas."""
        self.classes: tuple[type, ...] = (dict,)
        if self.struct is not None:
            item = f"{self.struct.module.rpartition('_')[2]}.{self.struct.name}"
        else:
            item, self.classes = _SCALARS.get(field.element, ("", ()))
        prefix, self.container, self.shape = _CONTAINERS[field.shape if self.classes else ""]
        self.go = go or prefix + item
        """The Go type of the value."""
        self.item = (self.go.partition("]")[2] or item) if prefix else self.go
        """The Go type of an item, which is the value itself unless that is a list or a map."""
        self.limit = _LIMITS.get(self.item)
        self.zero: Any = "" if field.element == "y" else ZEROS.get(field.element)
        """The value of a null in a list or a map of scalars."""

    def is_wrong(self, item: Any) -> bool:
        """Return whether the value, or an item of the value, does not fit the type."""
        if type(item) not in self.classes:
            return item is not None and bool(self.classes)
        if self.limit is not None and type(item) is int:
            return not -self.limit <= item < self.limit
        if self.kind in ("T", "U"):
            return bool(time_problem(item, self.kind))
        if self.kind == "Q":
            return canonical_amount(str(item)) is None
        return self.kind == "y" and not _is_base64(item)


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return False
    return True


def _illegal_base64(text: str) -> str:
    illegal = _NOT_BASE64.search(text)
    return f"illegal base64 data at input byte {illegal.start() if illegal else len(text) // 4 * 4}"


Message: TypeAlias = Callable[[Any, _Field, str, str], str]
"""A function that returns the message for a value, its field, its shape, and the path with the Go type."""


@functools.cache
def _meta_type(name: str) -> WireType:
    type_ = find_wire_type("v1", name)
    assert type_ is not None
    return type_


def remove_unknown_metadata(metadata: Any, path: str, on_unknown: Callable[[str], None]) -> None:
    """Remove from metadata null members, and all members that are not fields of ``metav1.ObjectMeta``."""
    remove_unknown(metadata, _meta_type("ObjectMeta"), path, on_unknown)


def check_delete_options(body: Mapping[str, Any]) -> None:
    """Check the types in the body of a delete request.

    Raises:
        APIStatusError: A value has the wrong type (400).
    """
    if problem := find_problem(body, _meta_type("DeleteOptions"), undecoded, []):
        raise bad_request(problem)


def metadata_of(obj: JSONObject) -> JSONObject:
    """Check the types in an object's metadata, and return the metadata.  Missing metadata is added."""
    metadata: JSONObject = {} if obj.get("metadata") is None else obj["metadata"]
    if problem := metadata_problem(metadata):
        raise bad_request(f"the object provided is unrecognized: metadata: {problem}")
    obj["metadata"] = metadata
    return metadata


def metadata_problem(metadata: object) -> str:
    """Return the reason why a value is not a ``metav1.ObjectMeta``, or bring its times into Go's form."""
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {json_type(metadata)} into Go value of type v1.ObjectMeta"
    if problem := find_problem(metadata, _meta_type("ObjectMeta"), undecoded, []):
        return problem
    for name in ("creationTimestamp", "deletionTimestamp"):
        if time := metadata.get(name):
            metadata[name] = utc_time(time, is_micro=False)
    return ""


def find_problem(obj: Mapping[str, Any], type_: WireType, message: Message, strange: list[str], path: str = "") -> str:
    """Return the message for the first value of the wrong type in an object, or an empty string.

    The names of unknown fields and of null fields are added to ``strange``.
    """
    fields = _fields(type_)
    for name, value in obj.items():
        field = fields.get(name)
        if field is None or value is None:
            strange.append(name)
            continue
        if field.container is not None and type(value) is not field.container:
            problem = message(value, field, field.shape, f"{type_.name}.{path}{field.path} of type {field.go}")
            if problem:
                return problem
            continue
        for item in value.values() if field.container is dict else value if field.container is list else (value,):
            problem = ""
            if item is None:
                strange.append(name)
            elif field.is_wrong(item):
                problem = message(item, field, "", f"{type_.name}.{path}{field.path} of type {field.item}")
            elif field.below is not None and isinstance(item, dict):
                problem = find_problem(item, field.below, message, strange, f"{path}{field.path}.")
            if problem:
                return problem
    return ""


def remove_unknown(value: Any, type_: WireType, path: str, on_unknown: Callable[[str], None]) -> None:
    """Remove from an object, which is modified in place, null members and all members that its Go struct lacks.

    As in Go, nulls in lists and maps become zero values, such as empty strings and empty objects.
    """
    if not isinstance(value, dict):
        return
    fields = _fields(type_)
    gone: list[str] = []
    for name, member in value.items():
        where = f"{path}.{name}" if path else name
        field = fields.get(name)
        if field is None:
            on_unknown(where)
            gone.append(name)
        elif member is None:
            if not field.is_nullable:
                gone.append(name)
        elif field.container is None:
            if field.struct is not None:
                remove_unknown(member, field.struct, where, on_unknown)
        elif isinstance(member, list | dict):
            for key, item in member.items() if isinstance(member, dict) else enumerate(member):
                if item is None:
                    member[key] = field.zero if field.struct is None else {}
                elif field.struct is not None:
                    below = f"{where}[{key}]" if isinstance(member, list) else f"{where}.{key}"
                    remove_unknown(item, field.struct, below, on_unknown)
    for name in gone:
        del value[name]


def json_type(value: object) -> str:
    """Return the name of a value's JSON type in Go's error messages."""
    return _JSON_TYPES.get(type(value), "number")


def ignored(value: Any, field: _Field, shape: str, where: str) -> str:
    """Ignore a value of the wrong type."""
    return ""


def undecoded(value: Any, field: _Field, shape: str, where: str) -> str:
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


def unconverted(value: Any, field: _Field, shape: str, where: str) -> str:
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
def _go_names(type_: WireType) -> dict[str, str]:
    names = INSTALLED.table("go_types.txt").get(f"{type_.module}.{type_.name}", b"")
    return dict(name.split("=", 1) for name in names.decode().split())


_TYPE_META: Final = WireType("meta_v1", "TypeMeta", "1?kind s,2?apiVersion s")  # which the table leaves out


def _is_kind(type_: WireType) -> bool:
    kinds = (info for info in (SCALE.info, *builtin_resources()) if info.kind == type_.name)
    return any(find_wire_type(info.api_version, info.kind) is type_ for info in kinds)


@functools.cache
def _fields(type_: WireType) -> dict[str, _Field]:
    fields = dict(_fields(_TYPE_META)) if _is_kind(type_) else {}
    for path, owner, field in type_.members():
        fields[field.json] = _Field(path, field, owner, _go_names(owner).get(field.json))
    return fields
