"""Patches and bodies beyond the limits, on a real API server and on the embedded one: both refuse them alike."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from trioformer.testing import APIServer, ControlPlane

Connected = Callable[[], AbstractAsyncContextManager[httpx.AsyncClient]]
KIND = {
    "group": "hostile.example.com",
    "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    ],
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/hostile.example.com/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = {"content-type": "application/json-patch+json"}
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture(params=["embedded", "kube-apiserver"])
def connected(request: pytest.FixtureRequest) -> Connected:
    @asynccontextmanager
    async def embedded() -> AsyncIterator[httpx.AsyncClient]:
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with httpx.AsyncClient(base_url=server.config.server, transport=server.http_transport()) as http:
                await prepare(http)
                yield http
            nursery.cancel_scope.cancel()

    if request.param == "embedded":
        return embedded
    control_plane: ControlPlane = request.getfixturevalue("control_plane")

    @asynccontextmanager
    async def real() -> AsyncIterator[httpx.AsyncClient]:
        directory = control_plane.directory
        trust = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        trust.load_cert_chain(directory / "client.crt", directory / "client.key")
        async with httpx.AsyncClient(base_url=control_plane.url, verify=trust, timeout=60) as http:
            await prepare(http)
            yield http

    return real


async def prepare(http: httpx.AsyncClient) -> None:
    """Serve the kind, and create the objects of the tests, whichever of them exist."""
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": KIND,
    }
    definition["metadata"] = {"name": "widgets.hostile.example.com"}
    assert (await http.post(DEFINITIONS, json=definition)).status_code in (201, 409)
    with trio.fail_after(60):
        while (await http.get(WIDGETS)).status_code == 404:  # noqa: ASYNC110  # nothing reports that a kind is served
            await trio.sleep(0.1)
    widget = {
        "apiVersion": "hostile.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "hostile"},
        "spec": {"a": "x" * 1_000},
    }
    await http.delete(f"{WIDGETS}/hostile")
    assert (await http.post(WIDGETS, json=widget)).status_code == 201


def outcome(response: httpx.Response) -> tuple[int, str, str]:
    status = response.json()
    return response.status_code, status.get("reason", ""), status["message"]


async def test_copies_beyond_the_limit_are_refused(connected: Connected) -> None:
    operations = [{"op": "copy", "from": "/spec", "path": f"/spec/c{i}"} for i in range(17)]
    async with connected() as http:
        response = await http.patch(f"{WIDGETS}/hostile", content=json.dumps(operations), headers=JSON_PATCH)
        problem = "the server rejected our request due to an error in our request"
        assert outcome(response) == (422, "Invalid", problem)
        assert response.json()["details"] == {}
        allowed = await http.patch(f"{WIDGETS}/hostile", content=json.dumps(operations[:9]), headers=JSON_PATCH)
        assert allowed.status_code == 200


async def test_operations_beyond_the_limit_are_refused(connected: Connected) -> None:
    operation = {"op": "test", "path": "/spec/a", "value": "x" * 1_000}
    short = {"op": "test", "path": "/spec/b", "value": 1}
    setup = [{"op": "add", "path": "/spec/b", "value": 1}, operation]
    async with connected() as http:
        for operations, code in (([*setup, *[short] * 9_998], 200), ([*setup, *[short] * 9_999], 413)):
            response = await http.patch(f"{WIDGETS}/hostile", content=json.dumps(operations), headers=JSON_PATCH)
            assert response.status_code == code
        problem = "The allowed maximum operations in a JSON patch is 10000, got 10001"
        assert outcome(response) == (413, "RequestEntityTooLarge", f"Request entity too large: {problem}")


@pytest.mark.parametrize("levels", [10_001, 100_000])
async def test_bodies_of_too_many_levels_are_refused(connected: Connected, levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    widget = '{"apiVersion":"hostile.example.com/v1","kind":"Widget","metadata":{"name":"deep"},"spec":'
    async with connected() as http:
        for response in (
            await http.post(WIDGETS, content=f"{widget}{deep}}}", headers={"content-type": "application/json"}),
            await http.patch(f"{WIDGETS}/hostile", content=f'{{"spec":{deep}}}', headers=MERGE),
            await http.patch(
                f"{WIDGETS}/hostile", content=f'[{{"op":"add","path":"/spec/d","value":{deep}}}]', headers=JSON_PATCH
            ),
        ):
            code, reason, message = outcome(response)
            if connected.__name__ == "embedded" and levels == 100_000:  # it has more values than a body may have there
                assert (code, reason) == (413, "RequestEntityTooLarge")
            else:
                assert (code, reason) == (400, "BadRequest")
                assert "exceeded max depth" in message


async def test_a_pointer_of_100000_parts_leads_nowhere(connected: Connected) -> None:
    async with connected() as http:
        for op in ("add", "test", "remove", "copy", "move"):
            operation = {"op": op, "path": "/a" * 100_000, "from": "/a" * 100_000, "value": 1}
            response = await http.patch(f"{WIDGETS}/hostile", content=json.dumps([operation]), headers=JSON_PATCH)
            assert outcome(response)[:2] == (422, "Invalid")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_bodies_that_a_form_can_send_are_refused(connected: Connected, content_type: str) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "form"}})
    options = '{"kind":"DeleteOptions","apiVersion":"v1"}'
    headers = {"content-type": content_type}
    async with connected() as http:
        for response in (
            await http.post(CONFIG_MAPS, content=body, headers=headers),
            await http.put(f"{CONFIG_MAPS}/form", content=body, headers=headers),
            await http.patch(f"{CONFIG_MAPS}/form", content=body, headers=headers),
            await http.request("DELETE", f"{CONFIG_MAPS}/form", content=options, headers=headers),
        ):
            assert outcome(response)[:2] == (415, "UnsupportedMediaType")
        untyped = await http.post(f"{CONFIG_MAPS}?dryRun=All", content=body)  # as kubectl never, and curl -H does
        assert untyped.status_code == 201


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=1" + "0" * 30, 400),
        ("limit=", 400),
        ("limit=-5", 200),
        ("timeoutSeconds=x", 400),
        ("resourceVersion=" + "1" * 5_000, 400),
        ("resourceVersion=18446744073709551616", 400),
        ("resourceVersion=18446744073709551615", 504),
        ("continue=abc", 400),
        ("continue=W10", 400),
        ("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIvYSJ9", 400),
        ("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTIyMzM3MjAzNjg1NDc3NTgwNywic3RhcnQiOiIvYSJ9", 504),
        ("labelSelector=" + "(" * 50_000, 400),
        ("watch=1&resourceVersion=" + "1" * 5_000, 500),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_absurd_query_parameters_are_refused(connected: Connected, query: str, code: int) -> None:
    async with connected() as http:
        assert (await http.get(f"{CONFIG_MAPS}?{query}")).status_code == code


@pytest.mark.parametrize("method", ["FROB", "TRACE", "OPTIONS", "PROPFIND", "HEAD"])
async def test_unknown_methods_are_not_allowed(connected: Connected, method: str) -> None:
    async with connected() as http:
        for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/form"):
            response: Any = await http.request(method, path)
            assert response.status_code == 405
