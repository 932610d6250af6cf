"""The table of loggers in ``docs/howto/logging.rst`` is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/howto/logging.rst"
LOGGER = re.compile(r"getLogger\((?:\"([\w.]+)\"|__name__)\)")
ROW = re.compile(r"^``(trioformer[\w.]*)``  ", re.MULTILINE)


def loggers_in_the_code() -> set[str]:
    found = set()
    for path in (ROOT / "trioformer").rglob("*.py"):
        for name in LOGGER.findall(path.read_text()):
            # A module that names its logger after itself is private: its users know the package.
            found.add(name or ".".join(part for part in path.relative_to(ROOT).parts[:-1] if part[0] != "_"))
    return found


def test_each_logger_has_a_row_and_each_row_a_logger() -> None:
    rows = set(ROW.findall(PAGE.read_text()))
    in_the_row_of_its_parent = {"trioformer.kubeconfig.permissions", "trioformer.testing.access"}
    assert rows == loggers_in_the_code() - in_the_row_of_its_parent
