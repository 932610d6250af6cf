"""Custom kinds and subresources of the embedded API server, and unsupported requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.raw_requests import PODS, failure_of, merge_patch, pod, running
from trioformer.errors import StatusError
from trioformer.testing import APIServer

# --- custom kinds and subresources ----------------------------------------------------------------------------------


def definition(**version: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    one = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    versions = [one | version]
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions},
    }


async def test_a_definition_serves_its_kind_until_it_is_deleted() -> None:
    server = APIServer()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    async with running(server) as http:
        assert (await http.get(widgets)).status_code == 404
        made = (await http.post(crds, json=definition())).json()
        assert {one["type"]: one["status"] for one in made["status"]["conditions"]} == {
            "NamesAccepted": "True",
            "Established": "True",
        }
        assert made["status"]["storedVersions"] == ["v1"]
        created = (await http.post(widgets, json={"metadata": {"name": "w"}, "size": 3})).json()
        assert created["metadata"]["generation"] == 1
        # The items of a custom list have a kind and come before its metadata, unlike those of built-in lists.
        listed = (await http.get(widgets)).text
        revision = server.statistics().revision
        assert listed.startswith(
            '{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget",'
        )
        assert listed.endswith(f'],"kind":"WidgetList","metadata":{{"continue":"","resourceVersion":"{revision}"}}}}\n')
        await http.patch(f"{crds}/widgets.example.com", **merge_patch(definition(served=False)))
        assert (await http.get(widgets)).status_code == 404
        await http.patch(f"{crds}/widgets.example.com", **merge_patch(definition()))
        assert len((await http.get(widgets)).json()["items"]) == 1
        gone = (await http.delete(f"{crds}/widgets.example.com")).json()
        assert (gone["kind"], "deletionTimestamp" in gone["metadata"]) == ("CustomResourceDefinition", True)
        assert (await http.get(widgets)).status_code == 404
    server.create(definition())
    assert server.list("widgets.example.com") == []


async def test_a_version_that_a_definition_has_dropped_is_not_served() -> None:
    server = APIServer()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    both = definition()
    both["spec"]["versions"].append({**both["spec"]["versions"][0], "name": "v1beta1", "storage": False})
    async with running(server) as http:
        await http.post(crds, json=both)
        assert (await http.get("/apis/example.com/v1beta1/widgets")).status_code == 200
        await http.patch(f"{crds}/widgets.example.com", **merge_patch(definition()))
        assert (await http.get("/apis/example.com/v1beta1/widgets")).status_code == 404
        assert (await http.get("/apis/example.com/v1/widgets")).status_code == 200
        groups = (await http.get("/apis")).json()["groups"]
        found = next(one for one in groups if one["name"] == "example.com")
        assert [one["version"] for one in found["versions"]] == ["v1"]


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"names": {"plural": "x", "kind": "X"}, "versions": [5]}, 400),
        ({"versions": [{"storage": True}]}, 422),
        ({"versions": [{"name": "v1", "storage": True}]}, 422),
        ({}, 422),
    ],
)
def test_an_invalid_definition_is_rejected(spec: Any, code: int) -> None:
    server = APIServer()
    bad = {**definition(), "spec": spec}
    with pytest.raises(StatusError) as caught:
        server.create(bad)
    assert caught.value.code == code
    known = server.create(definition())
    with pytest.raises(StatusError) as caught:
        server.replace({**known, "spec": spec})
    assert caught.value.code == code


async def test_a_binding_binds_the_pod_of_its_name_and_is_not_stored() -> None:
    server = APIServer()
    server.create(pod())
    path = "/api/v1/namespaces/default/bindings"
    binding = {"metadata": {"name": "web-1"}, "target": {"kind": "Node", "name": "node-1"}}
    async with running(server) as http:
        assert failure_of(await http.post(path, json={**binding, "metadata": {}}))[0] == 400
        assert failure_of(await http.post(path, json={**binding, "metadata": {"name": "x"}}))[0] == 404
        assert (await http.post(f"{path}?dryRun=All", json=binding)).json()["status"] == "Success"
        assert (await http.post(path, json=binding)).json()["status"] == "Success"
        again = await http.post(path, json=binding)
        assert failure_of(again)[:2] == (409, "Conflict")
        assert again.json()["details"] == {"name": "web-1", "kind": "pods/binding"}
        assert failure_of(await http.get(path))[0] == 405
        assert failure_of(await http.post("/api/v1/bindings", json=binding))[0] == 404
    bound = server.get("pods", "web-1")
    assert isinstance(bound["spec"], dict)
    assert bound["spec"]["nodeName"] == "node-1"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"{PODS}/web-1/proxy", 501),
        ("GET", f"{PODS}/web-1/unknown", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/cm/status", 404),
        ("POST", f"{PODS}/web-1", 405),
        ("PUT", PODS, 405),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/pods", 405),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("OPTIONS", PODS, 405),
    ],
)
async def test_unsupported_requests_get_the_errors_of_kube_apiserver(method: str, path: str, code: int) -> None:
    reasons = {404: "NotFound", 405: "MethodNotAllowed", 501: "NotImplemented"}
    messages = {
        501: "the embedded API server does not serve pods/proxy",
        404: "the server could not find the requested resource",
        405: "the server does not allow this method on the requested resource",
    }
    server = APIServer()
    server.create(pod())
    async with running(server) as http:
        response = await http.request(method, path)
        assert response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": messages[code],
            "reason": reasons[code],
            "details": {},
            "code": code,
        }


async def test_cel_rules_are_not_evaluated_and_the_response_says_so() -> None:
    rule = {"rule": "self.size < 3", "message": "is too large"}
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [rule]}
    async with running(APIServer()) as http:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = await http.post(path, json=definition(schema={"openAPIV3Schema": schema}))
        assert made.status_code == 201
        text = "x-kubernetes-validations: the embedded API server does not evaluate CEL rules"
        assert made.headers["warning"] == f'299 - "{text}"'
        stored = await http.post(
            "/apis/example.com/v1/namespaces/default/widgets", json={"metadata": {"name": "w"}, "size": 3}
        )
        assert (stored.status_code, stored.headers.get("warning")) == (201, None)
        schema["x-kubernetes-validations"] = [{"rule": ""}]
        refused = await http.post(path, json=definition(schema={"openAPIV3Schema": schema}))
        assert "x-kubernetes-validations[0].rule: Required value: rule is not specified" in failure_of(refused)[2]


async def test_a_pod_can_be_bound_once_and_evicted() -> None:
    server = APIServer()
    server.create(pod())
    binding = {"metadata": {"name": "web-1"}, "target": {"kind": "Node", "name": "node-1"}}
    async with running(server) as http:
        assert failure_of(await http.post(f"{PODS}/web-1/binding", json={**binding, "metadata": {}}))[0] == 400
        assert failure_of(await http.post(f"{PODS}/web-1/binding", json={**binding, "target": {}}))[0] == 500
        response = await http.post(f"{PODS}/web-1/binding", json=binding)
        assert response.status_code == 201
        assert response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        assert (await http.get(f"{PODS}/web-1")).json()["spec"]["nodeName"] == "node-1"
        assert failure_of(await http.post(f"{PODS}/web-1/binding", json=binding))[0] == 409
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1"}}
        assert failure_of(await http.post(f"{PODS}/web-1/eviction", json={**eviction, "metadata": {}}))[0] == 400
        stale = {**eviction, "deleteOptions": {"preconditions": {"uid": "another"}}}
        assert failure_of(await http.post(f"{PODS}/web-1/eviction", json=stale))[0] == 409
        dry_run = {**eviction, "deleteOptions": {"dryRun": ["All"]}}
        assert (await http.post(f"{PODS}/web-1/eviction", json=dry_run)).status_code == 201
        assert (await http.post(f"{PODS}/web-1/eviction", json=eviction)).status_code == 201
        assert failure_of(await http.post(f"{PODS}/web-1/eviction", json=eviction))[0] == 404
