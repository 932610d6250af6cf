"""The objects that arguments name."""

from __future__ import annotations

import pytest

from tests.support.cli import Result, run
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    """Create a pod and a ConfigMap, which nobody names."""
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main"}]}}))
    api_server.create(from_dict(ConfigMap, {"metadata": {"name": "settings"}}))
    return api_server


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "pods", ""],
        ["get", "pods", "web-0", ""],
        ["get", "pods", "", "--watch"],
        ["logs", ""],
        ["port-forward", "", "80"],
    ],
    ids=" ".join,
)
async def test_an_empty_name_does_not_mean_all_objects(server: APIServer, arguments: list[str]) -> None:
    assert await run(server, *arguments) == Result(1, "", "error: '' is not the name of an object\n")
    assert [each.metadata.name for each in server.list(ConfigMap)] == ["settings"]


async def test_a_command_without_a_pod_is_not_sent(server: APIServer) -> None:
    problem = "error: pod, type/name or --filename must be specified\n"
    assert await run(server, "exec", "", "--", "ls") == Result(1, "", problem)
