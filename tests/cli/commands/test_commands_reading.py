"""The commands that read, less ``get``: each prints what kubectl prints, and its errors are one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from tests.support.cli import opener_of, run, run_alone
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta, ResourceInfo, from_dict
from trioformer.models.core_v1 import ConfigMap, Event, Node
from trioformer.testing import APIServer

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters:
- name: one
  cluster: {server: "https://one.example", certificate-authority-data: c2VjcmV0LWNh}
- name: two
  cluster: {server: "https://two.example"}
users:
- name: u
  user:
    token: secret-token
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, env: [{name: PASSWORD, value: secret-env}]}
contexts:
- {name: b, context: {cluster: one, user: u, namespace: shop}}
- {name: a, context: {cluster: two, user: u}}
current-context: b
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    file.chmod(0o600)
    return {"KUBECONFIG": str(file)}


async def test_the_kubeconfig_is_shown_without_its_secrets(environ: dict[str, str]) -> None:
    result = await run_alone("config", "view", environ=environ)
    assert (result.code, result.err) == (0, "")
    assert "secret-" not in result.out
    assert "c2VjcmV0" not in result.out
    shown = yaml.safe_load(result.out)
    assert shown["clusters"][0]["cluster"]["certificate-authority-data"] == "DATA+OMITTED"
    assert shown["users"][0]["user"]["token"] == "REDACTED"


async def test_the_kubeconfig_is_shown_with_its_secrets_on_request(environ: dict[str, str]) -> None:
    assert "secret-token" in (await run_alone("config", "view", "--raw", environ=environ)).out


async def test_a_kubeconfig_is_reduced_to_one_context(environ: dict[str, str]) -> None:
    result = await run_alone("config", "view", "--minify", "--context", "a", "-o", "json", environ=environ)
    shown = json.loads(result.out)
    assert shown["current-context"] == "a"
    assert [each["name"] for each in shown["clusters"]] == ["two"]
    assert [each["name"] for each in shown["contexts"]] == ["a"]


async def test_contexts_are_listed_in_order(environ: dict[str, str]) -> None:
    result = await run_alone("config", "get-contexts", environ=environ)
    assert [line.split() for line in result.out.splitlines()] == [
        ["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"],
        ["a", "two", "u"],
        ["*", "b", "one", "u", "shop"],
    ]
    result = await run_alone("config", "get-contexts", "nope", environ=environ)
    assert (result.code, result.err) == (1, "error: context nope not found\n")


async def test_the_current_context_is_named(environ: dict[str, str]) -> None:
    assert (await run_alone("config", "current-context", environ=environ)).out == "b\n"
    result = await run_alone("config", "current-context")
    assert (result.code, result.err) == (1, "error: current-context is not set\n")


async def test_an_invalid_kubeconfig_is_an_error_that_quotes_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users: [{name: u, user: {token: secret-token")
    result = await run_alone("config", "view", "--kubeconfig", str(file))
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert "secret" not in result.err


async def test_resources_are_listed_as_by_kubectl(api_server: APIServer) -> None:
    result = await run(api_server, "api-resources", "--api-group=apps", "--sort-by=kind", "-o", "wide")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS", "CATEGORIES"]
    assert lines[1][:4] == ["controllerrevisions", "apps/v1", "true", "ControllerRevision"]
    assert (await run(api_server, "api-resources", "--namespaced=false", "-o", "name")).out.splitlines()[
        0
    ] == "namespaces"
    result = await run(api_server, "api-resources", "--sort-by=age")
    assert (result.code, result.err) == (1, "error: --sort-by accepts only name or kind\n")


async def test_versions_of_groups_are_listed(api_server: APIServer) -> None:
    versions = (await run(api_server, "api-versions")).out.split()
    assert versions == sorted(versions)
    assert {"v1", "apps/v1"} <= set(versions)


def event(name: str, count: int, minute: int, kind: str = "Pod") -> Event:
    at = f"2026-01-01T00:{minute:02}:00Z"
    return from_dict(
        Event,
        {
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": kind, "name": name, "apiVersion": "v1"},
            "type": "Warning" if count > 1 else "Normal",
            "reason": "Failed\x1b[1m",
            "message": f"message of {name}\n",
            "count": count,
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": at,
        },
    )


async def test_events_are_printed_in_the_order_of_their_times(api_server: APIServer) -> None:
    api_server.create(event("late", 3, 9))
    api_server.create(event("early", 1, 1))
    result = await run(api_server, "events")
    assert [line.split()[-1] for line in result.out.splitlines()] == ["MESSAGE", "early", "late"]
    assert "(x3 over " in result.out
    assert "Failed^[[1m" in result.out
    assert (await run(api_server, "events", "--types=warning")).out.count("\n") == 2
    assert (await run(api_server, "events", "--for", "pod/early")).out.count("\n") == 2
    assert (await run(api_server, "events", "-o", "name")).out == "event/early\nevent/late\n"


async def test_without_events_there_is_a_note(api_server: APIServer) -> None:
    assert (await run(api_server, "events")).err == "No events found in default namespace.\n"
    assert (await run(api_server, "events", "-A")).err == "No events found.\n"
    assert (await run(api_server, "events", "--types=Foo")).err == "error: valid --types are Normal or Warning\n"
    assert (await run(api_server, "events", "--for=pod")).err == "error: --for must be in resource/name form\n"


async def test_usage_needs_a_server_with_metrics(api_server: APIServer) -> None:
    result = await run(api_server, "top", "pods")
    assert (result.code, result.err) == (1, "error: Metrics API not available\n")


def serve_metrics(server: APIServer) -> None:
    group = {"group": "metrics.k8s.io", "version": "v1beta1"}
    server.register(ResourceInfo(**group, kind="NodeMetrics", plural="nodes", namespaced=False))
    server.register(ResourceInfo(**group, kind="PodMetrics", plural="pods", namespaced=True))
    head = {"apiVersion": "metrics.k8s.io/v1beta1"}
    usage = {"cpu": "1234567890n", "memory": "2000000Ki"}
    server.create({**head, "kind": "NodeMetrics", "metadata": {"name": "node-1"}, "usage": usage})
    for name, cpu in (("a", "1500u"), ("b", "250m")):
        containers = [
            {"name": "main", "usage": {"cpu": cpu, "memory": "64Mi"}},
            {"name": "side", "usage": {"cpu": "1m", "memory": "1500Ki"}},
        ]
        metadata = {"name": name, "namespace": "default"}
        server.create({**head, "kind": "PodMetrics", "metadata": metadata, "containers": containers})


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["pods"], ["NAME CPU(cores) MEMORY(bytes)", "a 3m 65Mi", "b 251m 65Mi"]),
        (["pods", "--sort-by=cpu", "--no-headers"], ["b 251m 65Mi", "a 3m 65Mi"]),
        (["pod", "a", "--containers", "--no-headers"], ["a main 2m 64Mi", "a side 1m 1Mi"]),
        (
            ["pods", "-A", "--sum", "--no-headers"],
            [
                "default a 3m 65Mi",
                "default b 251m 65Mi",
                "________ ________",
                "254m 130Mi",
            ],
        ),
        (["node"], ["NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%)", "node-1 1235m 30% 1953Mi 11%"]),
    ],
    ids=" ".join,
)
async def test_usage_is_what_the_metrics_say(api_server: APIServer, arguments: list[str], rows: list[str]) -> None:
    serve_metrics(api_server)
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}
    api_server.create(from_dict(Node, node))
    result = await run(api_server, "top", *arguments)
    assert (result.code, result.err) == (0, "")
    assert [" ".join(line.split()) for line in result.out.splitlines()] == rows


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["pod", "none"], 'Error from server (NotFound): pods.metrics.k8s.io "none" not found\n'),
        (["node", "a", "b"], "error: node [NAME | -l label]\nSee 'trioformer top node -h' for help and examples\n"),
        (["pod", "a", "-l", "x=y"], "error: only one of NAME or selector can be provided\n"),
        (["node", "a", "-l", "x=y"], "error: only one of NAME or --selector can be provided\n"),
        (["pod", "--sort-by=x"], "error: --sort-by accepts only cpu or memory\n"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
async def test_usage_that_cannot_be_shown_is_an_error(api_server: APIServer, arguments: list[str], error: str) -> None:
    serve_metrics(api_server)
    result = await run(api_server, "top", *arguments)
    assert (result.code, result.err) == (1, error)


async def test_the_doctor_has_a_line_for_each_check(api_server: APIServer) -> None:
    result = await run(api_server, "doctor", "--token", "secret-token")
    assert "secret-token" not in result.out + result.err
    words = [line.split()[:2] for line in result.out.splitlines()]
    assert ["ok", "version"] in words
    assert ["ok", "watch-list"] in words
    assert not [each for each in words if each[0] == "failed"]


async def test_the_doctor_fails_where_nothing_responds() -> None:
    result = await run_alone("doctor", "-s", "http://127.0.0.1:1")
    assert result.code == 1
    assert result.out.splitlines()[-1].startswith("failed  reachability")


async def test_the_doctor_fails_without_a_configuration() -> None:
    result = await run_alone("doctor")
    assert result.code == 1
    assert result.out.startswith("failed  configuration   no cluster configuration found")


async def test_the_live_table_shows_the_cache_and_its_health(api_server: APIServer, autojump_clock: object) -> None:
    for name in ("a", "b", "c"):
        api_server.create(ConfigMap(metadata=ObjectMeta(name=name)))
    out = io.StringIO()
    with trio.move_on_after(5):
        arguments = ["watch", "cm", "-s", api_server.config.server, "--rows", "2"]
        await run_command(arguments, out, io.StringIO(), {}, opener_of(api_server.http_transport()))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[0][:5] == ["3", "configmaps", "in", "default", "·"]
    assert [line[0] for line in lines[1:4]] == ["NAME", "a", "b"]
    assert lines[4] == ["and", "1", "more"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["watch"], "error: one kind is required, such as `trioformer watch pods`"),
        (["watch", "foos"], 'error: the server doesn\'t have a resource type "foos"'),
        (["watch", "pods", "--rows=x"], 'error: invalid argument "x" for "--rows" flag: must be a number'),
        (["explain"], "error: You must specify the type of resource to explain."),
        (["explain", "foos"], 'the server doesn\'t have a resource type "foos"'),
        (
            ["auth", "can-i", "get"],
            "error: you must specify two arguments: verb resource or verb resource/resourceName.",
        ),
        (["auth", "whoami"], "error: the selfsubjectreviews API is not enabled in the cluster"),
        (["version", "x"], "error: extra arguments: [x]"),
        (["version", "-o", "x"], "error: --output must be 'yaml' or 'json'"),
    ],
)
async def test_wrong_use_is_an_error_without_traceback(api_server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(api_server, *arguments)
    assert result.code == 1
    assert result.err.splitlines()[0].startswith(error)
    assert "Traceback" not in result.err


DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            "x.Thing": {
                "description": "Thing is a thing.",
                "properties": {
                    "kind": {"type": "string", "enum": ["", "A", "B", "C", "D"], "description": "word " * 30},
                    "spec": {"allOf": [{"$ref": "#/components/schemas/x.Spec"}], "description": "The wish."},
                },
                "required": ["spec"],
            },
            "x.Spec": {
                "description": "Spec of it.",
                "type": "object",
                "properties": {
                    "parts": {"items": {"$ref": "#/components/schemas/x.Thing"}, "type": "array"},
                    "labels": {"additionalProperties": {"type": "string"}, "type": "object"},
                },
            },
        }
    }
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            [],
            [
                "DESCRIPTION:",
                "    Thing is a thing.",
                "    ",
                "FIELDS:",
                "  kind\t<string>",
                '  enum: "", A, B, C, ....',
            ],
        ),
        (["spec"], ["FIELD: spec <Spec>", "", "", "DESCRIPTION:", "    The wish.", "    Spec of it."]),
        (["spec", "parts"], ["FIELD: parts <[]Thing>", "", "", "DESCRIPTION:", "    Thing is a thing."]),
        (["spec", "labels"], ["FIELD: labels <map[string]string>", "", "", "DESCRIPTION:", "    <empty>"]),
        (["kind"], ["FIELD: kind <string>", "ENUM:", '    ""', "    A", "    B", "    C", "    D"]),
    ],
)
def test_a_schema_is_explained_as_by_kubectl(fields: list[str], expected: list[str]) -> None:
    from trioformer.cli.commands._explain_text import explain

    schema = DOCUMENT["components"]["schemas"]["x.Thing"]
    lines = explain(schema, DOCUMENT, fields, is_recursive=False).splitlines()
    assert lines[: len(expected)] == expected


def test_a_schema_that_contains_itself_is_explained_once() -> None:
    from trioformer.cli.commands._explain_text import explain

    text = explain(DOCUMENT["components"]["schemas"]["x.Thing"], DOCUMENT, [], is_recursive=True)
    assert "    parts\t<[]Thing>\n      kind\t<string>" in text
