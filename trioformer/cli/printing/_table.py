"""Tables: the server's, and columns aligned as Go's ``tabwriter`` does (cli-runtime ``pkg/printers``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO, final

import attrs

from ._go import sprint

__all__ = ["ServerTable", "TableOptions", "TableWriter", "escape"]

_MINIMUM: Final = 6
_PADDING: Final = 3
_EVENTS: Final = {"ADDED": "ADDED   ", "MODIFIED": "MODIFIED", "DELETED": "DELETED ", "ERROR": "ERROR   "}


def escape(text: str) -> str:
    """Make the escape sequences of a text harmless for a terminal, as kubectl does."""
    return text.replace("\x1b", "^[").replace("\r", "\\r")


@final
@attrs.define(eq=False)
class TableWriter:
    """Aligns the cells of lines; the widths of columns never shrink."""

    _out: TextIO
    _minimum: int = _MINIMUM
    _padding: int = _PADDING
    _lines: list[list[str]] = attrs.field(factory=list, init=False)
    _widths: list[int] = attrs.field(factory=list, init=False)
    is_empty: bool = attrs.field(default=True, init=False)
    """Whether nothing was written."""

    def add(self, cells: Sequence[str]) -> None:
        """Add a line; it is written by :meth:`flush`."""
        self._lines.append(list(cells))

    def flush(self) -> None:
        """Write the lines."""
        for cells in self._lines:
            # The last cell of a line has no tab behind it, and so no part in its column.
            for index, cell in enumerate(cells[:-1]):
                if index == len(self._widths):
                    self._widths.append(self._minimum)
                self._widths[index] = max(self._widths[index], len(cell) + self._padding)
        for cells in self._lines:
            padded = [cell.ljust(width) for cell, width in zip(cells[:-1], self._widths, strict=False)]
            self._out.write("".join([*padded, *cells[-1:]]) + "\n")
            self.is_empty = False
        self._lines.clear()

    def forget_widths(self) -> None:
        """Begin a table with other columns."""
        self.flush()
        self._widths.clear()


@final
@attrs.frozen(kw_only=True)
class TableOptions:
    """What is added to a table of the server, and left out."""

    has_headers: bool = True
    """Whether the names of the columns are printed."""
    is_wide: bool = False
    """Whether columns are printed that only ``-o wide`` shows."""
    has_namespace: bool = False
    """Whether a column with the namespace is first."""
    group_kind: str = ""
    """What stands before each name, such as ``deployment.apps``; nothing if empty."""
    label_columns: tuple[str, ...] = ()
    """The labels that have columns of their own."""
    has_labels: bool = False
    """Whether the last column has all labels."""
    has_events: bool = False
    """Whether the first column is the type of the event."""


@final
@attrs.define(eq=False)
class ServerTable:
    """Prints tables of the server: its columns, and the rows with theirs, which may come one by one."""

    _writer: TableWriter
    _options: TableOptions
    _columns: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    _has_printed_header: bool = attrs.field(default=False, init=False)

    def add(self, table: Mapping[str, Any], *, event: str = "") -> None:
        """Add the rows of a table; one without column definitions has those of the one before."""
        columns = table.get("columnDefinitions") or self._columns
        if columns != self._columns:
            self._columns = list(columns)
            self._has_printed_header = False
        rows = table.get("rows") or []
        if not rows:
            return
        if self._options.has_headers and not self._has_printed_header:
            self._has_printed_header = True
            self._writer.add(self._header())
        for row in rows:
            self._writer.add(self._cells(row, event))

    def _shown(self) -> list[tuple[int, dict[str, Any]]]:
        is_wide = self._options.is_wide
        return [(index, one) for index, one in enumerate(self._columns) if is_wide or not one.get("priority")]

    def _header(self) -> list[str]:
        options = self._options
        names = [str(one.get("name", "")) for _, one in self._shown()]
        if options.has_namespace:
            names.insert(0, "Namespace")
        if options.has_events:
            names.insert(0, "Event")
        names += [label.split("/")[-1] for label in options.label_columns]
        if options.has_labels:
            names.append("Labels")
        return [name.upper() for name in names]

    def _cells(self, row: Mapping[str, Any], event: str) -> list[str]:
        options = self._options
        given = row.get("cells") or []
        cells = []
        for index, column in self._shown():
            if index >= len(given):
                break
            text = _cell(given[index])
            if options.group_kind and column.get("format") == "name" and column.get("type") == "string":
                text = f"{options.group_kind}/{text}"
            cells.append(text)
        metadata = (row.get("object") or {}).get("metadata") or {}
        if options.has_namespace:
            cells.insert(0, str(metadata.get("namespace", "")))
        if options.has_events:
            cells.insert(0, _EVENTS.get(event, event))
        labels = metadata.get("labels") or {}
        cells += [escape(str(labels.get(label, ""))) for label in options.label_columns]
        if options.has_labels:
            cells.append(escape(",".join(f"{key}={labels[key]}" for key in sorted(labels))) or "<none>")
        return cells


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return sprint(value)
    ends = [index for index in (value.find("\f"), value.find("\n"), value.find("\r")) if index >= 0]
    return escape(value[: min(ends)]) + "..." if ends else escape(value)
