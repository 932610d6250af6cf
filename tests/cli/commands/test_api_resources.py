"""``api-resources``: formats, what is chosen, and groups that fail."""

from __future__ import annotations

import io
import json

import httpx
import pytest
import yaml

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.testing import APIServer


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_resources_are_printed_as_a_list_of_the_api(api_server: APIServer, output: str, read: object) -> None:
    result = await run(api_server, "api-resources", "-o", output, "--sort-by=name")
    assert callable(read)
    listed = read(result.out)
    assert {key: listed[key] for key in ("apiVersion", "groupVersion", "kind")} == {
        "apiVersion": "v1",
        "groupVersion": "",
        "kind": "APIResourceList",
    }
    found = {each["name"]: each for each in listed["resources"]}
    assert list(found) == sorted(found)
    assert {key: value for key, value in found["deployments"].items() if key != "verbs"} == {
        "group": "apps",
        "kind": "Deployment",
        "name": "deployments",
        "namespaced": True,
        "shortNames": ["deploy"],
        "singularName": "deployment",
        "version": "v1",
        **({"categories": ["all"]} if "categories" in found["deployments"] else {}),
    }
    assert "group" not in found["configmaps"]


async def test_resources_are_sorted_by_their_kinds_on_request(api_server: APIServer) -> None:
    result = await run(api_server, "api-resources", "--sort-by=kind", "--no-headers", "--api-group=apps")
    kinds = [line.split()[-1] for line in result.out.splitlines()]
    assert kinds == ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]


async def test_resources_are_chosen_by_verbs_and_categories(api_server: APIServer) -> None:
    result = await run(api_server, "api-resources", "--verbs=list,frob", "--no-headers")
    assert (result.code, result.out) == (0, "")
    result = await run(api_server, "api-resources", "--categories=none", "-o", "wide")
    assert result.out.split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS", "CATEGORIES"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["pods"], "error: unexpected arguments: [pods]\nSee 'trioformer api-resources -h' for help and examples\n"),
        (
            ["-o", "frob"],
            (
                'error: unable to match a printer suitable for the output format "frob", allowed formats are: '
                "json,name,wide,yaml\n"
            ),
        ),
    ],
)
async def test_mistakes_are_errors(api_server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(api_server, "api-resources", *arguments)
    assert (result.code, result.out, result.err) == (1, "", error)


async def test_a_group_that_fails_is_an_error_after_the_others(api_server: APIServer) -> None:
    served = api_server.http_transport()

    class OneFails(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path in ("/api", "/apis"):
                request.headers["Accept"] = "application/json"  # no aggregated discovery
            if request.url.path == "/apis/apps/v1":
                return httpx.Response(503, json={"kind": "Status", "code": 503, "message": "no backend"})
            return await served.handle_async_request(request)

    out, err = io.StringIO(), io.StringIO()
    arguments = ["-s", api_server.config.server, "api-resources", "-o", "name"]
    code = await run_command(arguments, out, err, {}, opener_of(OneFails()))
    assert code == 1
    assert "pods\n" in out.getvalue()
    assert "deployments.apps\n" not in out.getvalue()
    assert err.getvalue().startswith("error: unable to retrieve the complete list of server APIs: apps/v1: ")
    assert "no backend" in err.getvalue()
