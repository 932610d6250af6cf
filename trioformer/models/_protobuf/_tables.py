"""The table of protobuf types, which lists the number, JSON name and kind of value of each field.

``_generate/protobuf`` makes the table from the Go types of a Kubernetes release, with one file for each module of
models.  Each line describes a type, such as ``LocalObjectReference:1?name s``.  The name of the type is followed by its
fields.  For each field, the line contains the number, ``?`` if Go omits an empty value from JSON, the JSON name (or
``&`` if the field is inlined in JSON), and the kind:

=======  ===============================================================================================
kind     value
=======  ===============================================================================================
``*k``   a pointer to the kind ``k``: an absent field differs from an empty value
``[k``   a list
``[=k``  a list inside a message
``{k``   a map from strings
``s``    a string; ``b`` a bool, ``i`` an integer, ``d`` a float, ``y`` bytes
``T``    a Time; ``U`` a MicroTime, ``D`` a Duration, ``Q`` a Quantity, ``I`` an integer or a string
``R``    a RawExtension; ``F`` a FieldsV1 or JSON: both have JSON inside
``A``    JSONSchemaPropsOrArray; ``B`` JSONSchemaPropsOrBool, ``C`` JSONSchemaPropsOrStringArray
other    a message: the name of its type, after its module and a dot if that is another one
=======  ===============================================================================================
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from typing import Any, Final, final

__all__ = ["WireField", "WireType", "find_type"]

_FIELD: Final = re.compile(r"(\d+)(\??)(\S+) (\S+)")


@final
class WireField:
    """One field of a type."""

    __slots__ = ("element", "json", "kind", "number", "omits_empty", "shape")

    def __init__(self, number: int, json: str, kind: str, *, omits_empty: bool) -> None:
        self.number = number
        self.json = json
        self.kind = kind
        self.omits_empty = omits_empty
        element = kind.removeprefix("*")
        is_repeated = element[0] in "[{" and not element.startswith("[=")
        self.shape = element[0] if is_repeated else ""
        """``[`` if the field is a list, ``{`` if it is a map, otherwise empty."""
        self.element = element[1:] if is_repeated else element
        """The kind of one item, map value or value."""

    @property
    def is_inline(self) -> bool:
        """Whether the field is inlined: the members of its value are members of the surrounding JSON object."""
        return self.json == "&"


@final
class WireType:
    """A type, with its fields by number."""

    __slots__ = ("__weakref__", "fields", "module", "name")

    def __init__(self, module: str, name: str, line: str) -> None:
        self.module = module
        self.name = name
        found = (_FIELD.fullmatch(field) for field in line.split(",") if field)
        self.fields: dict[int, WireField] = {
            int(each[1]): WireField(int(each[1]), each[3], each[4], omits_empty=bool(each[2])) for each in found if each
        }

    def members(self, path: str = "") -> Iterator[tuple[str, WireType, WireField]]:
        """Yield the fields of the JSON object, each after its path in Go and the type that declares it."""
        for field in self.fields.values():
            if field.is_inline:
                inlined = self.type_of(field.element)
                yield from inlined.members(f"{path}{inlined.name}.")
            else:
                yield f"{path}{field.json}", self, field

    def inlined(self, number: int) -> WireType:
        """Return the type of an inlined field."""
        return self.type_of(self.fields[number].element)

    def type_of(self, kind: str) -> WireType:
        """Return the type of a nested message, given the kind of its field."""
        module, _, name = kind.rpartition(".")
        found = find_type(module or self.module, name)
        assert found is not None  # the table is complete
        return found


@functools.cache
def _lines(module: str) -> dict[str, str]:
    loader: Any = __spec__.loader  # importlib.resources would import ten modules
    try:
        table: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "tables", f"{module}.txt"))
    except OSError:
        return {}
    return dict(line.split(":", 1) for line in table.decode().splitlines())


@functools.cache
def find_type(module: str, name: str) -> WireType | None:
    """Return a type in a module of models, such as ``Pod`` in ``core_v1``, or None if it is not in the table."""
    line = _lines(module).get(name)
    return None if line is None else WireType(module, name, line)
