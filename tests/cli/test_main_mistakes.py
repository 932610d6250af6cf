"""Kubeconfigs that are wrong, and kinds, names and servers that do not exist: one line each, and exit code 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run, run_alone
from trioformer.testing import APIServer

CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"{{{", "a key must be a string"),
        (b"a: \xff\n", "utf-8"),
        (CONTEXT.encode(), "names the cluster 'c', which does not exist"),
    ],
)
async def test_a_kubeconfig_that_is_wrong_is_named(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    result = await run_alone(f"--kubeconfig={path}", "get", "pods")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"error: {path}: ")
    assert problem in result.err.lower() or problem in result.err


@pytest.mark.parametrize("command", ["get nopes x", "watch nopes", "events --for=nopes/x"])
async def test_an_unknown_kind_is_named(command: str, api_server: APIServer) -> None:
    result = await run(api_server, *command.split())
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert 'the server doesn\'t have a resource type "nopes"' in result.err


@pytest.mark.parametrize(
    "command",
    [
        "get pod web-9",
        "logs web-9",
        "exec web-9 -- true",
        "port-forward web-9 :80",
        "cp web-9:/x /nonexistent/x",
    ],
)
async def test_a_name_that_does_not_exist_is_named(command: str, api_server: APIServer) -> None:
    result = await run(api_server, *command.split())
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert '"web-9" not found' in result.err


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        (["version", "x"], "x"),
        (["completion"], "Shell"),
        (["completion", "fish"], "fish"),
        (["completion", "bash", "zsh"], "arguments"),
        (["get", "pods", "--as-group", "g", "-s", "http://127.0.0.1:1"], "--as"),
        (["doctor"], "configuration"),
        (["doctor", "a", "b"], "[a b]"),
        (["get"], "trioformer get pods"),
        (["cp", "a/b/c:d", "x"], "namespace/"),
    ],
)
async def test_wrong_use_is_an_error_without_traceback(arguments: list[str], keyword: str) -> None:
    result = await run_alone(*arguments)
    assert result.code == 1
    assert keyword in result.out + result.err
    assert "Traceback" not in result.err
