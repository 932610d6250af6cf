"""``get``: tables, whole objects, selectors, names, errors and watches."""

from __future__ import annotations

import io
import json
from typing import Any

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


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    for name, labels in (("web-0", {"app": "web"}), ("web-1", {"app": "web", "x.io/tier": "2"})):
        spec = {"containers": [{"name": "main", "image": f"image:{name}"}]}
        api_server.create(from_dict(Pod, {"metadata": {"name": name, "labels": labels}, "spec": spec}))
    for name in ("b", "a", "c"):
        api_server.create(
            ConfigMap(metadata=ObjectMeta(name=name), data={"size": {"a": "1Gi", "b": "2Mi"}.get(name, "")})
        )
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
    assert [row[:4] for row in rows[1:]] == [["web-0", "0/1", "Pending", "0"], ["web-1", "0/1", "Pending", "0"]]


async def test_a_wide_table_has_more_columns(server: APIServer) -> None:
    assert "NOMINATED" in (await table(server, "pods", "-owide"))[0]


async def test_labels_and_namespaces_are_columns_on_request(server: APIServer) -> None:
    rows = await table(server, "pods", "-A", "-L", "x.io/tier,app", "--show-labels")
    assert [rows[0][0], *rows[0][-3:]] == ["NAMESPACE", "TIER", "APP", "LABELS"]
    assert [rows[2][0], *rows[2][-3:]] == ["default", "2", "web", "app=web,x.io/tier=2"]


async def test_several_kinds_are_tables_with_their_kind_before_each_name(server: APIServer) -> None:
    result = await run(server, "get", "pods/web-0", "cm/a")
    assert [line.split()[0] for line in result.out.splitlines() if line] == ["NAME", "pod/web-0", "NAME", "configmap/a"]
    assert "\n\n" in result.out


async def test_names_are_printed_with_kind_and_group(server: APIServer) -> None:
    spec: Any = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    server.create(from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec}))
    result = await run(server, "get", "deploy", "-o", "name")
    assert result.out == "deployment.apps/web\n"


async def test_one_object_is_printed_alone_and_several_as_a_list(server: APIServer) -> None:
    one = yaml.safe_load((await run(server, "get", "cm", "a", "-o", "yaml")).out)
    assert (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "a")
    assert "managedFields" not in one["metadata"]
    listed = json.loads((await run(server, "get", "cm", "a", "b", "-o", "json")).out)
    assert (listed["kind"], listed["metadata"]) == ("List", {"resourceVersion": ""})
    assert [each["metadata"]["name"] for each in listed["items"]] == ["a", "b"]
    assert listed["items"][0]["kind"] == "ConfigMap"


@pytest.mark.parametrize(("path", "expected"), [(".metadata.name", ["a", "b", "c"]), ("{.data.size}", ["c", "b", "a"])])
async def test_a_list_is_sorted_by_texts_and_by_amounts(server: APIServer, path: str, expected: list[str]) -> None:
    result = await run(server, "get", "cm", "--sort-by", path, "-o", "custom-columns=N:.metadata.name", "--no-headers")
    assert result.out.split() == expected
    rows = await table(server, "cm", "--sort-by", path, "--no-headers")
    assert [row[0] for row in rows] == expected


async def test_a_jsonpath_reads_the_list(server: APIServer) -> None:
    template = r'jsonpath={range .items[*]}{.metadata.name}={.spec.containers[0].image}{"\n"}{end}'
    assert (await run(server, "get", "pods", "-o", template)).out == "web-0=image:web-0\nweb-1=image:web-1\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["pods", "nope"], 'Error from server (NotFound): pods "nope" not found'),
        (["foos"], 'error: the server doesn\'t have a resource type "foos"'),
        (["pods", "web-0", "-A"], "error: a resource cannot be retrieved by name across all namespaces"),
        (["pods", "web-0", "-l", "a"], "error: name cannot be provided when a selector is specified"),
        (
            ["pods/web-0", "-l", "a"],
            "error: selectors and the all flag cannot be used when passing resource/name arguments",
        ),
        (["pods/web-0/x"], "error: arguments in resource/name form may not have more than one slash"),
        (["pods", ".."], "error: invalid resource name \"..\": [may not be '..']"),
        (["pods", "a%b"], "error: invalid resource name \"a%b\": [may not contain '%']"),
        (["pods/"], "error: arguments in resource/name form must have a single resource and name"),
        (["pods", "--show-labels", "-oyaml"], "error: --show-labels option cannot be used with yaml printer"),
        (["pods", "-o", "jsonpath={.a["], "error: error parsing jsonpath {.a[, unterminated array"),
        (["pods", "-o", "jsonpath"], "error: template format specified but no template given"),
        (["pods", "-o", "custom-columns"], "error: custom-columns format specified but no custom columns given"),
        (["pods", "--sort-by=.nope"], """error: couldn't find any field with path "{.nope}" in the list of objects"""),
        (["--raw", "/api", "pods"], "error: arguments may not be passed when --raw is specified"),
        (["pods,cm", "-w"], "error: you may only specify a single resource type"),
        (["pods", "--subresource", "status"], "error: subresource cannot be used when bulk resources are specified"),
    ],
)
async def test_what_cannot_be_gotten_is_one_line(server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(server, "get", *arguments)
    assert (result.code, result.out, result.err) == (1, "", f"{error}\n")


async def test_what_was_found_is_printed_before_what_was_not(server: APIServer) -> None:
    result = await run(server, "get", "pods", "web-0", "x", "y")
    assert result.code == 1
    assert "web-0" in result.out
    assert result.err.splitlines() == [f'Error from server (NotFound): pods "{name}" not found' for name in "xy"]


async def test_no_object_is_no_error(server: APIServer) -> None:
    result = await run(server, "get", "secrets")
    assert (result.code, result.out, result.err) == (0, "", "No resources found in default namespace.\n")
    assert (await run(server, "get", "nodes")).err == "No resources found\n"
    result = await run(server, "get", "pods", "nope", "--ignore-not-found", "-o", "yaml")
    assert (result.code, result.out, result.err) == (0, "", "")


async def test_an_incomplete_command_says_what_is_missing(server: APIServer) -> None:
    result = await run(server, "get")
    assert result.code == 1
    assert result.err.startswith("You must specify the type of resource to get.")
    assert result.err.endswith("See 'trioformer get -h' for help and examples\n")


async def test_a_path_of_the_server_is_printed_as_it_is(server: APIServer) -> None:
    result = await run(server, "get", "--raw", "/api/v1/namespaces/other?pretty=false")
    assert json.loads(result.out)["metadata"]["name"] == "other"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("name", ["configmap/a", "configmap/b", "configmap/c", "configmap/d", "configmap/a", "configmap/b"]),
        ("", ["NAME", "a", "b", "c", "d", "a", "b"]),
    ],
)
async def test_a_watch_prints_what_there_is_and_then_each_change(
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


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        (["cm", "none", "-w", "--ignore-not-found"], 0, ""),
        (["cm", "none", "-w"], 1, 'Error from server (NotFound): configmaps "none" not found\n'),
        (["cm,pods", "-w"], 1, "error: you may only specify a single resource type\n"),
        (["cm", "none", "-o", "name", "--ignore-not-found"], 0, ""),
        (["cm", "none", "other", "-o", "json", "--ignore-not-found"], 0, ""),
        (["pods", "--raw", "/api"], 1, "error: arguments may not be passed when --raw is specified\n"),
        (
            ["--raw", "/api", "-w"],
            1,
            "error: --raw may not be specified with other flags that filter the server request or alter the output\n",
        ),
        (["--raw", "/api", "-o", "json"], 1, "error: --raw and --output are mutually exclusive\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_nothing_is_printed_of_what_there_is_not(
    server: APIServer, arguments: list[str], code: int, err: str
) -> None:
    result = await run(server, "get", *arguments)
    assert (result.code, result.out, result.err) == (code, "", err)


@pytest.mark.parametrize("output", ["name", "json"])
async def test_objects_that_are_found_are_printed_before_errors(server: APIServer, output: str) -> None:
    result = await run(server, "get", "cm", "none", "a", "other", "-o", output)
    errors = [f'Error from server (NotFound): configmaps "{name}" not found' for name in ("none", "other")]
    assert (result.code, result.err.splitlines()) == (1, errors)
    if output == "name":
        assert result.out == "configmap/a\n"
    else:
        assert [each["metadata"]["name"] for each in json.loads(result.out)["items"]] == ["a"]


async def test_a_watch_alone_prints_only_changes(server: APIServer, autojump_clock: object) -> None:
    out, err = io.StringIO(), io.StringIO()
    async with server.open_client() as client, trio.open_nursery() as nursery:
        arguments = ["get", "cm", "--watch-only", "--sort-by=.metadata.name", "-s", server.config.server, "-o", "name"]
        nursery.start_soon(run_command, arguments, out, err, {}, opener_of(server.http_transport()))
        await trio.sleep(1)
        await client.api(ConfigMap, "default").patch("c", {"data": {"size": "3Gi"}})
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert out.getvalue() == "configmap/c\n"
    assert err.getvalue() == "warning: --watch requested, --sort-by will be ignored for watch events received\n"
