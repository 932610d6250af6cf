"""The forms of output: tables, YAML, JSON, names, JSONPath and custom columns, each as kubectl prints it.

- ``_printer.py``: the printer that ``-o`` asks for
- ``_table.py``: columns that are aligned, and the server's tables
- ``_json.py``, ``_yaml.py``: objects whole
- ``_jsonpath.py``: kubectl's JSONPath; ``_jsonpath_parser.py`` reads a template of it
- ``_custom_columns.py``: ``-o custom-columns=…``
- ``_go.py``: values as Go prints them
"""

from __future__ import annotations

from ._custom_columns import relaxed_path as relaxed_path
from ._go import human_duration as human_duration
from ._go import sprint as sprint
from ._json import to_json as to_json
from ._jsonpath import JSONPath as JSONPath
from ._jsonpath import JSONPathError as JSONPathError
from ._printer import Printer as Printer
from ._printer import make_printer as make_printer
from ._table import ServerTable as ServerTable
from ._table import TableOptions as TableOptions
from ._table import TableWriter as TableWriter
from ._table import escape as escape
from ._yaml import to_yaml as to_yaml

__all__ = [
    "JSONPath",
    "JSONPathError",
    "Printer",
    "ServerTable",
    "TableOptions",
    "TableWriter",
    "escape",
    "human_duration",
    "make_printer",
    "relaxed_path",
    "sprint",
    "to_json",
    "to_yaml",
]
