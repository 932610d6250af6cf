"""``config get-contexts``: the contexts as names and as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run_alone

CONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters: []
users: []
contexts:
- {name: two, context: {cluster: c, user: u, namespace: n}}
- {name: one, context: null}
"""
NAMES = "CURRENT   NAME   CLUSTER   AUTHINFO   NAMESPACE\n"
ONE = "*         one                         "
TWO = "          two    c         u          n"


@pytest.mark.parametrize(
    ("arguments", "out", "err"),
    [
        (["-o", "name"], "one\ntwo\n", ""),
        (["-o", "name", "two"], "two\n", ""),
        ([], f"{NAMES}{ONE}\n{TWO}\n", ""),
        (["-o", "name", "two", "three", "four"], "two\n", "error: context three not found\ncontext four not found\n"),
        (
            ["-o", "json"],
            "",
            (
                "error: --output json is not available in trioformer config get-contexts; resetting to default output "
                "format\n"
            ),
        ),
    ],
)
async def test_contexts_are_listed(tmp_path: Path, arguments: list[str], out: str, err: str) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    result = await run_alone("config", "get-contexts", "--kubeconfig", str(file), *arguments)
    assert (result.code, result.out, result.err) == (1 if err else 0, out, err)


async def test_a_table_has_no_names_of_columns_on_request(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    result = await run_alone("config", "get-contexts", "--kubeconfig", str(file), "--no-headers", "two")
    assert result.out.split() == ["two", "c", "u", "n"]
