"""Print tables, or print objects as YAML, JSON or names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO, final

import attrs

from .._text import one_line

__all__ = ["FORMATS", "ServerTable", "TableWriter", "age_of", "now", "parse_time", "print_objects"]

FORMATS: Final = ("json", "name", "wide", "yaml")
"""The allowed values of ``-o``."""
_MINIMUM, _PADDING = 6, 3


def print_objects(out: TextIO, output: str, objects: Sequence[Mapping[str, Any]], *, is_list: bool = False) -> None:
    """Print objects without their managed fields.

    Args:
        out: The stream to print to.
        output: The format: ``json``, ``name`` or ``yaml``.
        objects: The objects.  Each object must contain its kind.
        is_list: Whether JSON output is a single ``List`` object, even if there is only one object.
    """
    if output == "name":
        for each in objects:
            group = str(each["apiVersion"]).rpartition("/")[0]
            kind = str(each["kind"]).lower()
            out.write(f"{kind}.{group}/" if group else f"{kind}/")
            out.write(f"{each['metadata'].get('name', '')}\n")
        return
    shown = [_without_managed_fields(each) for each in objects]
    if output == "yaml":
        from ..manifests._internal import dump_documents  # noqa: PLC0415  # only for YAML

        out.write(dump_documents(shown))
    else:
        values = [{"apiVersion": "v1", "kind": "List", "items": shown}] if is_list else shown
        for each in values:  # not writelines(), which would not escape control characters
            out.write(json.dumps(each, indent=4, ensure_ascii=False) + "\n")


def _without_managed_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


@final
@attrs.define(eq=False)
class TableWriter:
    """Prints lines with aligned columns.

    Columns never become narrower.
    """

    _out: TextIO
    _lines: list[list[str]] = attrs.field(factory=list, init=False)
    _widths: list[int] = attrs.field(factory=list, init=False)

    def add(self, cells: Sequence[object]) -> None:
        """Add a line, which is printed by the next :meth:`flush`."""
        self._lines.append([_cell(each) for each in cells])

    def flush(self) -> None:
        """Print the added lines."""
        for cells in self._lines:
            for index, cell in enumerate(cells[:-1]):
                if index == len(self._widths):
                    self._widths.append(_MINIMUM)
                self._widths[index] = max(self._widths[index], len(cell) + _PADDING)
        for cells in self._lines:
            padded = [cell.ljust(width) for cell, width in zip(cells[:-1], self._widths, strict=False)]
            self._out.write("".join([*padded, *cells[-1:]]) + "\n")
        self._lines.clear()


def _cell(value: object) -> str:
    """Return the text of a cell as a single line.

    The text may come from any user of the cluster, so it must not add lines to the table.
    """
    if value is None:
        return ""
    return one_line(value if isinstance(value, str) else json.dumps(value))


@final
@attrs.define(eq=False)
class ServerTable:
    """Prints tables that the server has formatted.

    The rows may be added one by one.
    """

    _writer: TableWriter
    _is_wide: bool
    """Whether to print the columns that are reserved for ``-o wide``."""
    _has_namespace: bool
    """Whether to print the namespace in the first column."""
    _prefix: str = ""
    """The text before each name, such as ``deployment.apps/``."""
    _columns: list[dict[str, Any]] = attrs.field(factory=list, init=False)

    def add(self, table: Mapping[str, Any]) -> None:
        """Add the rows of a table.

        If the table does not contain column definitions, the columns of the previous table are used.
        """
        rows = table.get("rows") or []
        columns = table.get("columnDefinitions") or self._columns
        if rows and columns != self._columns:
            self._columns = list(columns)
            names = [str(one.get("name", "")).upper() for _, one in self._shown()]
            self._writer.add(["NAMESPACE", *names] if self._has_namespace else names)
        for row in rows:
            given = row.get("cells") or []
            cells: list[object] = []
            for index, column in self._shown():
                is_name = column.get("format") == "name" and self._prefix
                cell = given[index] if index < len(given) else None
                cells.append(f"{self._prefix}{cell}" if is_name else cell)
            metadata = (row.get("object") or {}).get("metadata") or {}
            self._writer.add([metadata.get("namespace"), *cells] if self._has_namespace else cells)

    def _shown(self) -> list[tuple[int, dict[str, Any]]]:
        return [(index, one) for index, one in enumerate(self._columns) if self._is_wide or not one.get("priority")]


# --- times ---


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def parse_time(text: object) -> datetime | None:
    """Return the time of an API timestamp, or None if the timestamp is missing or not valid."""
    if not isinstance(text, str) or not text:
        return None
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return None
    return then if then.tzinfo is not None else then.replace(tzinfo=UTC)


def age_of(text: object) -> str:
    """Return the age of a timestamp, such as ``5m``, or ``<unknown>`` if the timestamp is missing or not valid."""
    then = parse_time(text)
    if then is None:
        return "<unknown>"
    seconds = max(int((now() - then).total_seconds()), 0)
    for limit, size, unit in ((120, 1, "s"), (7_200, 60, "m"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86_400}d"
