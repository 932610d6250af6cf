"""Compares what the security pages say with the code."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from trioformer.transport import Limits

ROOT = Path(__file__).resolve().parents[2]
SECURITY = (ROOT / "SECURITY.md").read_text()
PAGE = (ROOT / "docs" / "security.rst").read_text()
UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))


def table(title: str) -> list[list[str]]:
    """Return the cells of a list-table, without its heading."""
    found = re.search(rf"^\.\. list-table:: {re.escape(title)}\n(.*?)^\S", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    rows = re.split(r"^   \* - ", found[1], flags=re.MULTILINE)[2:]
    return [[" ".join(cell.split()) for cell in re.split(r"^     - ", row, flags=re.MULTILINE)] for row in rows]


def written(value: float, name: str) -> str:
    """Write a default as the page does."""
    if name.endswith("_bytes"):
        unit, size = next((unit, size) for unit, size in UNITS if value % size == 0)
        return f"{value // size:g} {unit}"
    return f"{value:,g} s" if isinstance(value, float) else f"{value:,}"


def test_the_table_of_limits_has_every_limit_with_its_default() -> None:
    expected = {field.name: written(field.default, field.name) for field in attrs.fields(Limits)}
    assert {name.strip("`"): default for name, default, *_ in table("Limits")} == expected


def test_the_targets_of_the_security_policys_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)", SECURITY)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
