"""``run``: a command in each running pod of a selector."""

from __future__ import annotations

import pytest

from tests.support.cli import run
from trioformer.testing import APIServer


def add_pod(server: APIServer, name: str, phase: str = "Running") -> None:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}, {"name": "side", "image": "x"}]}
    head = {"apiVersion": "v1", "kind": "Pod"}
    server.create({**head, "metadata": metadata, "spec": spec, "status": {"phase": phase}})


async def test_the_output_of_each_pod_has_its_name(api_server: APIServer) -> None:
    for name in ("web-0", "web-1"):
        add_pod(api_server, name)
        api_server.script_pod(name).script_command(["hostname"], stdout=f"I am\n{name}\n")
    add_pod(api_server, "web-2", "Pending")
    result = await run(api_server, "run", "-l", "app=web", "--at-once=1", "--", "hostname")
    assert (result.code, result.err) == (0, "")
    assert sorted(result.out.splitlines()) == ["web-0: I am", "web-0: web-0", "web-1: I am", "web-1: web-1"]


async def test_a_failure_does_not_stop_the_other_pods(api_server: APIServer) -> None:
    for name in ("web-0", "web-1"):
        add_pod(api_server, name)
    api_server.script_pod("web-0").script_command(["check"], stderr="no\n", exit_code=3)
    api_server.script_pod("web-1").script_command(["check"], stdout="yes\n")
    result = await run(api_server, "run", "-l", "app=web", "--", "check")
    assert (result.code, result.out) == (1, "web-1: yes\n")
    assert result.err.splitlines() == ["web-0: no", "web-0: exit code 3"]


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [(["-l", "app=x", "--", "ls"], "no running pods"), (["-l", "app=x"], "after --"), (["--", "ls"], "select")],
)
async def test_mistakes_are_named(api_server: APIServer, arguments: list[str], keyword: str) -> None:
    result = await run(api_server, "run", *arguments)
    assert (result.code, result.out) == (1, "")
    assert keyword in result.err


async def test_a_pod_that_cannot_be_reached_does_not_stop_the_others(api_server: APIServer) -> None:
    for name in ("web-0", "web-1"):
        add_pod(api_server, name)
    api_server.script_pod("web-1").script_command(["check"], stdout="yes\n")
    result = await run(api_server, "run", "-l", "app=web", "-c", "main", "--", "check")
    assert (result.code, result.out) == (1, "web-1: yes\n")
    assert result.err.startswith("web-0: ")
