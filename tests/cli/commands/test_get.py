"""``get``: tables, whole objects, selectors, names, errors and watches."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx
import pytest
import trio
import yaml
from trio.testing import wait_all_tasks_blocked

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod
from trioformer.testing import APIServer

PODS = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": ["get", "list"]}


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    for name, labels in (("web-0", {"app": "web"}), ("web-1", {"app": "web", "x.io/tier": "2"})):
        spec = {"containers": [{"name": "main", "image": f"image:{name}"}]}
        api_server.create(from_dict(Pod, {"metadata": {"name": name, "labels": labels}, "spec": spec}))
    for name in ("b", "a", "c"):
        api_server.create(ConfigMap(metadata=ObjectMeta(name=name)))
    api_server.create(Namespace(metadata=ObjectMeta(name="other")))
    return api_server


async def table(server: APIServer, *arguments: str) -> list[list[str]]:
    """Return the cells of what a command prints."""
    result = await run(server, "get", *arguments)
    assert (result.code, result.err) == (0, "")
    return [line.split() for line in result.out.splitlines()]


async def test_a_table_has_the_columns_of_the_server(server: APIServer) -> None:
    rows = await table(server, "pods")
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "NOMINATED" in (await table(server, "pods", "-owide"))[0]
    assert [row[:4] for row in rows[1:]] == [["web-0", "0/1", "Pending", "0"], ["web-1", "0/1", "Pending", "0"]]


async def test_a_table_of_all_namespaces_begins_with_the_namespace(server: APIServer) -> None:
    assert [row[:2] for row in await table(server, "pods", "-A")] == [
        ["NAMESPACE", "NAME"],
        ["default", "web-0"],
        ["default", "web-1"],
    ]


async def test_selectors_select_objects(server: APIServer) -> None:
    assert (await run(server, "get", "pods", "-l", "x.io/tier", "-o", "name")).out == "pod/web-1\n"
    assert (await run(server, "get", "cm", "--field-selector=metadata.name=a", "-o", "name")).out == "configmap/a\n"
    assert (await run(server, "get", "cm", "-n", "other", "-o", "name")).out == ""


async def test_several_kinds_are_tables_with_their_kind_before_each_name(server: APIServer) -> None:
    result = await run(server, "get", "pods/web-0", "cm/a")
    assert [line.split()[0] for line in result.out.splitlines() if line] == ["NAME", "pod/web-0", "NAME", "configmap/a"]
    assert "\n\n" in result.out


async def test_names_are_printed_with_kind_and_group(server: APIServer) -> None:
    spec: Any = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    server.create(from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec}))
    assert (await run(server, "get", "deploy", "-o", "name")).out == "deployment.apps/web\n"


async def test_objects_are_yaml_documents_or_a_list_in_json(server: APIServer) -> None:
    text = (await run(server, "get", "cm", "a", "b", "-o", "yaml")).out
    documents = list(yaml.safe_load_all(text))
    assert [(each["kind"], each["metadata"]["name"]) for each in documents] == [("ConfigMap", "a"), ("ConfigMap", "b")]
    assert "managedFields" not in text
    listed = json.loads((await run(server, "get", "cm", "a", "b", "-o", "json")).out)
    assert [(each["kind"], each["metadata"]["name"]) for each in listed["items"]] == [
        ("ConfigMap", "a"),
        ("ConfigMap", "b"),
    ]
    assert json.loads((await run(server, "get", "cm", "a", "-o", "json")).out)["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        (["pods", "nope"], "not found"),
        (["foos"], "foos"),
        (["pods", "web-0", "-A"], "all namespaces"),
        (["pods", "web-0", "-l", "a"], "selector"),
        (["pods/web-0", "web-1"], "both"),
        (["pods", ".."], ".."),
        (["pods", "web-0", ""], "not a valid object name"),
        (["pods", "a%b"], "a%b"),
        (["pods,cm", "-w"], "only one resource"),
        (["cm", "none", "-w"], "not found"),
    ],
)
async def test_a_wrong_request_is_one_line(server: APIServer, arguments: list[str], keyword: str) -> None:
    result = await run(server, "get", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert keyword in result.err


@pytest.mark.parametrize("output", ["", "json"])
async def test_found_objects_are_printed_before_errors(server: APIServer, output: str) -> None:
    result = await run(server, "get", "cm", "none", "a", "other", *(["-o", output] if output else []))
    assert result.code == 1
    assert ["none" in line or "other" in line for line in result.err.splitlines()] == [True, True]
    if output == "json":
        assert [each["metadata"]["name"] for each in json.loads(result.out)["items"]] == ["a"]
    else:
        assert result.out.splitlines()[-1].split()[0] == "a"


async def test_no_object_is_not_an_error(server: APIServer) -> None:
    result = await run(server, "get", "secrets")
    assert (result.code, result.out, result.err) == (0, "", "no resources found in namespace default\n")
    assert (await run(server, "get", "nodes")).err == "no resources found\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("name", ["configmap/a", "configmap/b", "configmap/c", "configmap/d", "configmap/a", "configmap/b"]),
        ("", ["NAME", "a", "b", "c", "d", "a", "b"]),
    ],
)
async def test_a_watch_prints_the_objects_and_then_each_change_across_a_broken_connection(
    server: APIServer, autojump_clock: object, output: str, expected: list[str]
) -> None:
    out = io.StringIO()
    async with server.open_client() as client, trio.open_nursery() as nursery:
        arguments = ["get", "cm", "-w", "-s", server.config.server, *(["-o", output] if output else [])]
        nursery.start_soon(run_command, arguments, out, io.StringIO(), {}, opener_of(server.http_transport()))
        api = client.api(ConfigMap, "default")
        await trio.sleep(1)
        await api.create(ConfigMap(metadata=ObjectMeta(name="d")))
        await wait_all_tasks_blocked()
        server.disconnect_watches(how="reset")
        await api.patch("a", {"data": {"size": "3Gi"}})
        await trio.sleep(60)
        await api.delete("b")
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert [line.split()[0] for line in out.getvalue().splitlines()] == expected


async def test_a_server_without_tables_gets_columns_for_name_and_age() -> None:
    bodies = {
        "/api": {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [PODS]}]}]},
        "/apis": {"kind": "APIGroupDiscoveryList", "items": []},
        "/api/v1/namespaces/default/pods": {"kind": "PodList", "items": [{"metadata": {"name": "web-0"}}]},
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=bodies[request.url.path]))
    out = io.StringIO()
    assert await run_command(["-s", "http://h", "get", "pods"], out, io.StringIO(), {}, opener_of(transport)) == 0
    assert [line.split() for line in out.getvalue().splitlines()] == [["NAME", "AGE"], ["web-0", "<unknown>"]]


async def test_a_long_list_is_requested_page_by_page(server: APIServer) -> None:
    for number in range(501):
        server.create(ConfigMap(metadata=ObjectMeta(name=f"many-{number}", namespace="other")))
    result = await run(server, "get", "cm", "-n", "other", "-o", "name")
    assert len(result.out.splitlines()) == 501
