"""The validation of built-in kinds can be left out; its results are compared in ``tests/e2e/contract``."""

from __future__ import annotations

import pytest

from tests.support.raw_requests import PODS, failure_of, merge_patch, running
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

EMPTY = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}


async def test_a_server_without_defaults_does_not_validate_fields() -> None:
    async with running(APIServer(defaults=False)) as http:
        assert (await http.post(PODS, json=EMPTY)).status_code == 201


async def test_the_direct_api_stores_invalid_objects_which_requests_may_change() -> None:
    server = APIServer()
    server.create(from_dict(Pod, EMPTY))
    async with running(server) as http:
        assert failure_of(await http.post(PODS, json=EMPTY))[0] == 422
        labels = await http.patch(f"{PODS}/a", **merge_patch({"metadata": {"labels": {"a": "b"}}}))
        assert labels.status_code == 200
        policy = await http.patch(f"{PODS}/a", **merge_patch({"spec": {"restartPolicy": "x"}}))
        assert "spec.containers: Required" not in policy.text
        assert "spec.restartPolicy" in policy.text


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("a" * 16, ["no more than 15 characters"]),
        ("A1", ["alpha-numeric", "at least one letter"]),
        ("a--b", ["consecutive hyphens"]),
        ("-a", ["begin or end with a hyphen"]),
    ],
)
async def test_the_name_of_a_port_is_checked(name: str, problems: list[str]) -> None:
    containers = [{"name": "main", "image": "web", "ports": [{"containerPort": 80, "name": name}]}]
    async with running(APIServer()) as http:
        response = await http.post(PODS, json={**EMPTY, "spec": {"containers": containers}})
    assert response.status_code == 422
    causes = response.json()["details"]["causes"]
    assert {cause["field"] for cause in causes} == {"spec.containers[0].ports[0].name"}
    for problem in problems:
        assert any(problem in cause["message"] for cause in causes)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("a b", "a valid config key"),
        ("a" * 254, "no more than 253"),
        (".", "must not be '.'"),
        ("..", "must not be '..'"),
        ("..a", "must not start with '..'"),
    ],
)
async def test_the_keys_of_a_config_map_are_checked(key: str, problem: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {key: ""}}
    async with running(APIServer()) as http:
        response = await http.post("/api/v1/namespaces/default/configmaps", json=body)
    assert response.status_code == 422
    (cause,) = response.json()["details"]["causes"]
    assert cause["field"] == f"data[{key}]"
    assert problem in cause["message"]
