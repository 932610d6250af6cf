"""Requests to any path, and health, on an embedded and on a real server."""

from __future__ import annotations

import pytest

from trioformer.client import Client
from trioformer.errors import MethodNotAllowedError, NotFoundError
from trioformer.models import ObjectMeta, from_json
from trioformer.models.core_v1 import ConfigMap


async def test_any_path_is_requested(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = await server_client.request("POST", path, body=ConfigMap(metadata=ObjectMeta(name="a")))
    assert made.code == 201
    assert made.headers["content-type"] == "application/json"
    patched = await server_client.request(
        "PATCH", f"{path}/a", body={"data": {"k": "v"}}, content_type="application/merge-patch+json"
    )
    assert from_json(ConfigMap, patched.body).data == {"k": "v"}
    listed = await server_client.request("GET", path, params={"labelSelector": "a=b", "limit": 1})
    assert isinstance(document := listed.json(), dict)
    assert (document["kind"], document["items"]) == ("ConfigMapList", [])
    dry = await server_client.request("DELETE", f"{path}/a", params={"dryRun": "All"})
    assert dry.code == 200
    with pytest.raises(NotFoundError, match=r"^GET /api/v1/namespaces/.*: configmaps \"b\" not found"):
        await server_client.request("GET", f"{path}/b")
    with pytest.raises(NotFoundError):
        await server_client.request("GET", "/no/such/path")
    with pytest.raises(MethodNotAllowedError):
        await server_client.request("DELETE", "/api/v1/configmaps")


async def test_a_body_is_streamed(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await server_client.request("POST", path, body=ConfigMap(metadata=ObjectMeta(name="a")))
    async with server_client.stream("GET", path) as body:
        assert body.code == 200
        assert b'"name":"a"' in b"".join([chunk async for chunk in body])
    params = {"watch": True, "resourceVersion": "0"}
    async with server_client.stream("GET", path, params=params, endless=True) as body:
        async for line in body.lines():
            assert '"type":"ADDED"' in line
            break
    with pytest.raises(NotFoundError):
        async with server_client.stream("GET", "/no/such/path"):
            pass


@pytest.mark.parametrize("endpoint", ["readyz", "livez", "healthz"])
async def test_health_lists_its_checks(server_client: Client, endpoint: str) -> None:
    health = await server_client.health(endpoint)
    assert (health.is_ok, health.failed) == (True, ())
    assert {"ping", "etcd"} <= {check.name for check in health.checks}
    excluded = await server_client.health(endpoint, exclude=["etcd"])
    assert [check.name for check in excluded.checks if check.is_excluded] == ["etcd"]
    single = await server_client.health(f"{endpoint}/ping")
    assert (single.is_ok, single.checks) == (True, ())
    with pytest.raises(NotFoundError):
        await server_client.health(f"{endpoint}/no-such-check")
