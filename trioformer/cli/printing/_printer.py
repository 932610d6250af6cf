"""The printer that ``-o`` asks for: whole objects as YAML, JSON, names, by JSONPath or in columns of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO, final

import attrs

from .._failures import CommandError
from ._custom_columns import CustomColumns
from ._json import to_json
from ._jsonpath import JSONPath, JSONPathError
from ._table import TableWriter
from ._yaml import to_yaml

__all__ = ["Printer", "make_printer"]

_FORMATS: Final = (
    "custom-columns",
    "custom-columns-file",
    "json",
    "jsonpath",
    "jsonpath-as-json",
    "jsonpath-file",
    "name",
    "wide",
    "yaml",
)
_TEMPLATES: Final = ("custom-columns", "custom-columns-file", "jsonpath", "jsonpath-as-json", "jsonpath-file")
_EVENT: Final = {"object", "type"}
"""The fields of an event of a watch."""


@final
@attrs.define(eq=False)
class Printer:
    """Prints objects, one or a ``List`` at a time."""

    _print: Callable[[Mapping[str, Any]], None]
    _finish: Callable[[], None]

    def print(self, obj: Mapping[str, Any]) -> None:
        """Print an object.

        Raises:
            CommandError: The template does not fit it.
        """
        self._print(obj)

    def finish(self) -> None:
        """Write what is left, such as the last lines of a table."""
        self._finish()


def make_printer(
    output: str, out: TextIO, *, template: str = "", has_headers: bool = True, show_managed_fields: bool = False
) -> Printer | None:
    """Return the printer for the value of ``-o``; None for a table.

    Args:
        output: The value, such as ``jsonpath={.metadata.name}``.
        out: Where it prints.
        template: The value of ``--template``.
        has_headers: Whether custom columns have headers.
        show_managed_fields: Whether YAML and JSON have ``metadata.managedFields``.

    Raises:
        CommandError: There is no such form of output, or its template is not valid.
    """
    if output in ("", "wide") and not template:
        return None
    reduce = dict if show_managed_fields else _without_managed_fields
    if output == "json":
        return Printer(lambda obj: _write(out, _json_text(reduce(obj)) + "\n"), _nothing)
    if output == "yaml":
        return _yaml_printer(out, reduce)
    if output == "name":
        return Printer(lambda obj: _print_names(obj, out), _nothing)
    form, equals, given = output.partition("=")
    if form not in _TEMPLATES:
        if form in ("go-template", "go-template-file", "template", "templatefile") or not output:
            raise CommandError("Go templates are not supported, only kubectl has them; use -o jsonpath='{...}'")
        known = ",".join(_FORMATS)
        raise CommandError(
            f'unable to match a printer suitable for the output format "{output}", allowed formats are: {known}'
        )
    text = given if equals else template
    if form.startswith("custom-columns"):
        return _columns_printer(form, text, out, has_headers=has_headers)
    if not text:
        raise CommandError("template format specified but no template given")
    if form == "jsonpath-file":
        text = _read(text, f"error reading --template {text}")
    try:
        path = JSONPath(text, True, form == "jsonpath-as-json")
    except JSONPathError as exc:
        raise CommandError(f"error parsing jsonpath {text}, {exc}") from exc
    return Printer(lambda obj: _print_path(path, text, obj, out), _nothing)


def _columns_printer(form: str, text: str, out: TextIO, *, has_headers: bool) -> Printer:
    if not text:
        raise CommandError("custom-columns format specified but no custom columns given")
    writer = TableWriter(out)
    try:
        if form == "custom-columns":
            columns = CustomColumns.from_spec(text, writer, has_headers=has_headers)
        else:
            columns = CustomColumns.from_template(_read(text, f"error reading template {text}"), writer)
    except JSONPathError as exc:
        raise CommandError(str(exc)) from exc

    def add(obj: Mapping[str, Any]) -> None:
        try:
            columns.start()
            for each in obj["items"] if _is_list(obj) else [obj]:
                columns.add(each)
        except JSONPathError as exc:
            raise CommandError(str(exc)) from exc

    return Printer(add, writer.flush)


def _read(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as exc:
        raise CommandError(f"{what}, open {path}: {(exc.strerror or str(exc)).lower()}") from exc
    except UnicodeDecodeError as exc:
        raise CommandError(f"{what}, {path} is not UTF-8") from exc


def _without_managed_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    if _is_list(obj):
        return {**obj, "items": [_without_managed_fields(each) for each in obj["items"]]}
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping) or "managedFields" not in metadata:
        return dict(obj)
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _json_text(obj: Mapping[str, Any]) -> str:
    if set(obj) == _EVENT:  # kubectl writes it on one line, its type first
        return f'{{"type":{to_json(obj["type"], indent=None)},"object":{to_json(obj["object"], indent=None)}}}'
    return to_json(obj)


def _yaml_printer(out: TextIO, reduce: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Printer:
    is_first = True

    def write(obj: Mapping[str, Any]) -> None:
        nonlocal is_first
        text = to_yaml(reduce(obj))
        out.write(text if is_first else f"---\n{text}")
        is_first = False

    return Printer(write, _nothing)


def _print_names(obj: Mapping[str, Any], out: TextIO) -> None:
    if _is_list(obj):
        for each in obj["items"]:
            _print_names(each, out)
        return
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    kind = str(obj.get("kind", "")).lower()
    name = (obj.get("metadata") or {}).get("name") or "<unknown>"
    out.write(f"{kind}.{group}/{name}\n" if group else f"{kind}/{name}\n")


def _print_path(path: JSONPath, text: str, obj: Mapping[str, Any], out: TextIO) -> None:
    try:
        out.write(path.render(obj))
    except JSONPathError as exc:
        raise CommandError(
            # kubectl prints the object, too, with what may be secret in it.
            f'error executing jsonpath "{text}": Error executing template: {exc}'
        ) from exc


def _is_list(obj: Mapping[str, Any]) -> bool:
    return isinstance(obj.get("items"), list)


def _write(out: TextIO, text: str) -> None:
    out.write(text)


def _nothing() -> None:
    """Do nothing."""
