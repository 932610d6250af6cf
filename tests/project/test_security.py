"""Compares what the security pages say with the code."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from trioformer import _text, _yaml
from trioformer._retry import _outcomes
from trioformer._serving import _server
from trioformer.cache.store import _resource_versions
from trioformer.errors import _status
from trioformer.manager import _token_checks
from trioformer.models import _quantity, _values
from trioformer.testing import _serve_http
from trioformer.testing._storage._bodies import MAX_BYTES, MAX_CONTAINERS, MAX_VALUES
from trioformer.testing._storage._patching import MAX_COPIED, MAX_OPERATIONS
from trioformer.transport import Limits
from trioformer.transport.http import _tunnel

ROOT = Path(__file__).resolve().parents[2]
SECURITY = (ROOT / "SECURITY.md").read_text()
PAGE = (ROOT / "docs" / "security.rst").read_text()
KIB, MIB, GIB = 1024, 1024**2, 1024**3
UNITS = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB))


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


def test_the_table_of_fixed_limits_has_those_of_the_code() -> None:
    manager, embedded = _server.DEFAULT_LIMITS, _serve_http.LIMITS
    assert [limit for _, limit, _ in table("Fixed limits")] == [
        f"{_yaml.MAX_LEVELS}",
        f"{_yaml.MAX_SIZE:,}",
        f"{_values.MAX_LEVELS}",
        f"{_text.LONGEST:,} characters",
        f"{_status.MAX_CAUSES:,}",
        f"{_outcomes.MAX_RETRY_AFTER:g} s",
        f"{_resource_versions.MAX_DIGITS} digits",
        f"{_quantity._MAX_TEXT} characters",
        f"{_quantity._MAX_EXPONENT}",
        f"{_tunnel.MAX_HEAD // KIB} KiB, {_tunnel.TUNNEL_PATIENCE:g} s",
        f"{manager.connections}",
        f"{manager.head_size // KIB} KiB, {manager.body_size // KIB} KiB, {manager.request_period:g} s",
        f"{_token_checks.MAX_CHECKS}, {_token_checks.CHECK_PERIOD:g} s",
        f"{MAX_BYTES // MIB} MiB; {MAX_OPERATIONS:,}; {MAX_COPIED // MIB} MiB",
        f"{MAX_VALUES:,}; {MAX_CONTAINERS:,}",
        f"{embedded.connections}",
        f"{embedded.head_size // KIB} KiB, {embedded.request_period:g} s",
    ]


def test_the_targets_of_the_security_policys_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)", SECURITY)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
