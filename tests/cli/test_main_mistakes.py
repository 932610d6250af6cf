"""Kubeconfigs that are wrong, and kinds, names and servers that do not exist: one line each, and exit code 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run, run_alone
from trioformer.testing import APIServer

CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
CLUSTER = CONTEXT + "clusters: [{name: c, cluster: {%s}}]\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"{{{", "a key must be a string"),
        (b"[]", "must be a YAML mapping, not a list"),
        (b"clusters: 3\n", "clusters: must be a list"),
        (b"\xff\xfe\x00", "is not UTF-16 text"),
        (b"a: \xff\n", "utf-8"),
        (CONTEXT.encode(), "names the cluster 'c', which does not exist"),
        ((CLUSTER % "server: 'ht!tp://x'").encode(), "must be a url such as 'https://"),
        ((CLUSTER % "server: 'https://x', certificate-authority: ca.crt").encode(), "does not exist"),
        ((CLUSTER % "").encode(), "server"),
    ],
)
@pytest.mark.parametrize("command", ["get pods", "exec web-0 -- true", "logs web-0", "port-forward web-0 80"])
async def test_a_kubeconfig_that_is_wrong_is_named(command: str, content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    result = await run_alone(f"--kubeconfig={path}", *command.split())
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"error: {path}: ")
    assert problem in result.err.lower() or problem in result.err


@pytest.mark.parametrize("where", ["/", "/nonexistent/config"])
async def test_a_kubeconfig_that_cannot_be_read_is_named(where: str) -> None:
    result = await run_alone(f"--kubeconfig={where}", "get", "pods")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert where in result.err


@pytest.mark.parametrize(
    "command",
    ["get nopes", "get nopes x", "watch nopes", "events --for=nopes/x"],
)
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
        (["completion", "bash", "zsh"], "arguments"),
        (["get", "pods", "--as-group", "g", "-s", "http://127.0.0.1:1"], "--as"),
        (["doctor"], "configuration"),
        (["cp", "a/b/c:d", "x"], "namespace/"),
    ],
)
async def test_wrong_use_is_an_error_without_traceback(arguments: list[str], keyword: str) -> None:
    result = await run_alone(*arguments)
    assert result.code == 1
    assert keyword in result.out + result.err
    assert "Traceback" not in result.err


async def test_exec_needs_one_object(api_server: APIServer) -> None:
    result = await run(api_server, "exec", "pods", "--", "ls")
    assert result.code == 1
    assert result.err
