"""The tables of the embedded server, which the programs ``fetch_*.py`` take from a real kube-apiserver.

The first argument of each program is the directory of the tables.  Without an argument, it is that of the installed
tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trioformer.testing._storage._release import INSTALLED


def directory() -> Path:
    """Return the directory of the tables that a program writes."""
    return Path(sys.argv[1]) if len(sys.argv) > 1 else INSTALLED.directory


def lines_of(values: Mapping[str, Any]) -> str:
    """Return the lines of a table: a key and a value as JSON."""
    return "".join(f"{key} {json.dumps(value, separators=(',', ':'))}\n" for key, value in values.items())
