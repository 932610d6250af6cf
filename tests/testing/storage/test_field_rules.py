"""The validation of built-in kinds can be left out; its results are compared in ``tests/e2e/contract``."""

from __future__ import annotations

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
