"""The pods and the container that are meant: selectors, and the wait for a first pod."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.cli import Result, run
from trioformer.cli._failures import CommandError
from trioformer.cli.commands._pods import choose_container
from trioformer.testing import APIServer

EXPRESSIONS = [
    {"key": "tier", "operator": "In", "values": ["a", "b"]},
    {"key": "env", "operator": "NotIn", "values": ["test"]},
    {"key": "app", "operator": "Exists"},
    {"key": "old", "operator": "DoesNotExist"},
]
LABELS = {"app": "web", "tier": "b", "env": "prod"}


def add_set(server: APIServer) -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": EXPRESSIONS}, "template": template}
    head = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    server.create({**head, "metadata": {"name": "web", "namespace": "default"}, "spec": spec})


def add_pod(server: APIServer, name: str, **labels: str) -> None:
    metadata = {"name": name, "namespace": "default", "labels": {**LABELS, **labels}}
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    server.script_pod(name).script_command(["name"], stdout=name)


async def test_a_pod_matches_each_expression_of_the_selector(api_server: APIServer) -> None:
    add_set(api_server)
    for name, label, value in (("a", "tier", "c"), ("b", "env", "test"), ("c", "app", "x"), ("d", "old", "")):
        add_pod(api_server, name, **{label: value})
    add_pod(api_server, "meant")
    result = await run(api_server, "exec", "rs/web", "--", "name")
    assert (result.code, result.out, result.err) == (0, "meant", "")


async def test_a_first_pod_is_waited_for(api_server: APIServer, mock_clock: MockClock) -> None:
    add_set(api_server)
    results: list[Result] = []

    async def run_it() -> None:
        results.append(await run(api_server, "exec", "rs/web", "--", "name"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        await wait_all_tasks_blocked()
        assert results == []
        add_pod(api_server, "late")
    assert results == [Result(0, "late", "")]


def test_a_pod_without_containers_has_none_to_choose() -> None:
    pod: dict[str, Any] = {"metadata": {"namespace": "default", "name": "one"}, "spec": {}}
    with pytest.raises(CommandError, match=r"^pod default/one does not have any containers$"):
        choose_container(pod, "", None)
