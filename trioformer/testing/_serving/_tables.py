"""The columns of Tables in ``kubectl get``.

Those of built-in kinds are in ``columns.txt``, which ``tests/e2e/fetch_columns.py`` writes.  Kinds that are not in the
file have only a name and an age.  The file ``cells.csv`` says how each cell is made from an object.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, final

import attrs

from ...models._internal import decode
from .._storage._field_errors import json_text, number_text
from .._storage._kinds import ServedKind
from .._storage._release import Release
from .._storage._storage import JSONObject
from ._cells import UNKNOWN, Cell, since
from ._json_paths import find_all, parse_path
from ._kind_cells import read_cells

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch


@final
@attrs.frozen
class Column:
    """A column of a Table."""

    definition: JSONObject
    """The ``TableColumnDefinition``."""
    cell: Callable[[JSONObject, datetime], Cell | None]
    """Returns the cell of an object at the current time."""


def cell_of(column: Column, obj: JSONObject, now: datetime) -> Cell | None:
    """Return the cell of an object, or ``<unknown>`` if a field has the wrong type.

    The direct API stores objects with fields of the wrong type.
    """
    try:
        cell = column.cell(obj, now)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return UNKNOWN
    if isinstance(cell, int):
        return cell if -(2**63) <= cell < 2**63 else UNKNOWN
    if not isinstance(cell, str):
        return cell
    return cell if len(cell) <= _LONGEST_CELL else cell[:_LONGEST_CELL] + "..."


_LONGEST_CELL = 4_096


def columns_of(served: ServedKind) -> tuple[Column, ...]:
    """Return the Table columns of a kind."""
    known = _builtin_columns(served.release)
    if served.columns:
        return (known[""][0], *map(_custom_column, served.columns))
    return known.get(served.resource) or known[""]


@functools.cache
def _builtin_columns(release: Release) -> dict[str, tuple[Column, ...]]:
    columns, known = {}, read_cells(release)
    for resource, definitions in release.table("columns.txt").items():
        cells = {**known["*"], **known.get(resource, {})}
        columns[resource] = tuple(Column(one, cells.get(one["name"], _no_cell)) for one in decode(definitions))
    return columns


def _no_cell(obj: JSONObject, now: datetime) -> Cell:
    return UNKNOWN


def _custom_column(definition: Mapping[str, Any]) -> Column:
    """Return the column for an entry of ``additionalPrinterColumns``."""
    path, kind = definition["jsonPath"], definition["type"]
    steps = parse_path(path)

    def cell(obj: JSONObject, now: datetime) -> Cell | None:
        found = [] if steps is None else find_all(obj, steps)
        return _custom_cell(found[0], kind, now) if found else None

    shown = {"name": definition["name"], "type": kind, "format": "", "priority": 0}
    given = {key: definition[key] for key in ("format", "priority", "description") if definition.get(key)}
    description = f"Custom resource definition column (in JSONPath format): {path}"
    return Column({"description": description, **shown, **given}, cell)


def _custom_cell(value: object, kind: str, now: datetime) -> Cell | None:
    """Return the cell for a value.  The cell is None if the value has another type than the column."""
    match kind, value:
        case "boolean", bool():
            return value
        case "string", None:
            return "<no value>"
        case _, None:
            return None
        case "string", bool() | str() | dict() | list():
            return value if isinstance(value, str) else json_text(value)
        case "string", int() | float():
            return number_text(value)
        case (("integer" | "number"), bool()):
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return value
        case "date", "":
            return UNKNOWN
        case "date", str():
            return since(value, now) if _TIME(value) else "<invalid>"
        case _:
            return None
