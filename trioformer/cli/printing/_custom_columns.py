"""``-o custom-columns=NAME:.metadata.name`` (kubectl ``pkg/cmd/get/customcolumn.go``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, final

import attrs

from ._go import sprint
from ._jsonpath import JSONPath, JSONPathError
from ._table import TableWriter, escape

__all__ = ["CustomColumns", "relaxed_path"]

_RELAXED: Final = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


def relaxed_path(text: str) -> str:
    """Return the template for a path that may lack its braces and its dot.

    Raises:
        JSONPathError: It is no path.
    """
    if not text:
        return text
    found = _RELAXED.fullmatch(text)
    if found is None:
        raise JSONPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    return f"{{.{found[1] or found[2]}}}"


@final
@attrs.define(eq=False)
class CustomColumns:
    """Prints objects in columns that the user has named."""

    _columns: tuple[tuple[str, JSONPath], ...]
    _has_headers: bool
    _writer: TableWriter
    _has_printed_header: bool = attrs.field(default=False, init=False)

    @classmethod
    def from_spec(cls, spec: str, writer: TableWriter, *, has_headers: bool) -> CustomColumns:
        """Read ``NAME:.metadata.name,IMAGE:.spec.containers[*].image``.

        Raises:
            JSONPathError: It is not valid.
        """
        if not spec:
            raise JSONPathError("custom-columns format specified but no custom columns given")
        columns = []
        for part in spec.split(","):
            header, colon, path = part.partition(":")
            if not colon:
                raise JSONPathError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
            columns.append((header, JSONPath(relaxed_path(path))))
        return cls(tuple(columns), has_headers, writer)

    @classmethod
    def from_template(cls, text: str, writer: TableWriter) -> CustomColumns:
        """Read a file with a line of headers and a line of paths.

        Raises:
            JSONPathError: It is not valid.
        """
        lines = [line.split() for line in text.splitlines()]
        expected = "Expected format is one line of space separated headers, one line of space separated column specs."
        for index, what in enumerate(("header", "spec")):
            if len(lines) <= index:
                raise JSONPathError(f"invalid template, missing {what} line. {expected}")
        headers, paths = lines[:2]
        if len(headers) != len(paths):
            raise JSONPathError(
                f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match"
            )
        columns = tuple((name, JSONPath(relaxed_path(path))) for name, path in zip(headers, paths, strict=True))
        return cls(columns, True, writer)

    def start(self) -> None:
        """Add the line of the headers, once."""
        if self._has_headers and not self._has_printed_header:
            self._has_printed_header = True
            self._writer.add([header for header, _ in self._columns])

    def add(self, obj: Mapping[str, Any]) -> None:
        """Add the line of an object.

        Raises:
            JSONPathError: A path does not fit the object.
        """
        cells = []
        for _, path in self._columns:
            values = path.find(obj)
            texts = [escape(sprint(each)) for results in values for each in results]
            if not values or not values[0]:
                texts.insert(0, "<none>")
            cells.append(",".join(texts))
        self._writer.add(cells)
