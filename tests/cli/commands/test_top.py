"""``top``: metrics that there are not, and nodes without them."""

from __future__ import annotations

import io
from typing import Any

import httpx
import pytest

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import ResourceInfo, from_dict
from trioformer.models.core_v1 import Node
from trioformer.testing import APIServer


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    group: Any = {"group": "metrics.k8s.io", "version": "v1beta1"}
    api_server.register(ResourceInfo(**group, kind="NodeMetrics", plural="nodes", namespaced=False))
    api_server.register(ResourceInfo(**group, kind="PodMetrics", plural="pods", namespaced=True))
    return api_server


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        (["node"], 1, "error: metrics not available yet\n"),
        (["pod"], 0, "No resources found in default namespace.\n"),
        (["pod", "-A"], 0, "No resources found\n"),
        (["pod", "a", "-A"], 1, "error: a resource cannot be retrieved by name across all namespaces\n"),
    ],
)
async def test_without_metrics_nothing_is_shown(server: APIServer, arguments: list[str], code: int, err: str) -> None:
    result = await run(server, "top", *arguments)
    assert (result.code, result.out, result.err) == (code, "", err)


async def test_a_node_without_metrics_is_unknown(server: APIServer) -> None:
    usage = {"cpu": "1", "memory": "1Gi"}
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics"}
    server.create({**head, "metadata": {"name": "node-1"}, "usage": usage})
    amounts = {"allocatable": {"cpu": "4", "memory": "0"}, "capacity": {"cpu": "8", "memory": "2Gi"}}
    server.create(from_dict(Node, {"metadata": {"name": "node-1"}, "status": amounts}))
    server.create(from_dict(Node, {"metadata": {"name": "node-2"}}))
    for flags, cells in (([], ["25%", "0%"]), (["--show-capacity"], ["12%", "50%"])):
        rows = [line.split() for line in (await run(server, "top", "node", "--no-headers", *flags)).out.splitlines()]
        assert rows == [["node-1", "1000m", cells[0], "1024Mi", cells[1]], ["node-2", *["<unknown>"] * 4]]


async def test_a_server_that_names_no_version_has_no_metrics() -> None:
    group = httpx.Response(200, json={"kind": "APIGroup", "name": "metrics.k8s.io"})
    out, err = io.StringIO(), io.StringIO()
    opener = opener_of(httpx.MockTransport(lambda _: group))
    code = await run_command(["-s", "http://server.example", "top", "pod"], out, err, {}, opener)
    assert (code, out.getvalue(), err.getvalue()) == (1, "", "error: Metrics API not available\n")


async def test_a_response_that_is_no_list_has_no_metrics() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        is_group = request.url.path == "/apis/metrics.k8s.io"
        return httpx.Response(200, json={"versions": [{"version": "v1"}]} if is_group else [])

    out, err = io.StringIO(), io.StringIO()
    opener = opener_of(httpx.MockTransport(respond))
    code = await run_command(["-s", "http://server.example", "top", "node"], out, err, {}, opener)
    assert (code, out.getvalue(), err.getvalue()) == (1, "", "error: metrics not available yet\n")
