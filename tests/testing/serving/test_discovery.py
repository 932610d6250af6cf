"""Discovery of the embedded API server, negotiated formats, and the Tables that kubectl prints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio.testing

from tests.support.raw_requests import TABLE, config_map, failure_of, pod, running
from trioformer.models import ResourceInfo
from trioformer.testing import APIServer
from trioformer.testing._serving._cells import human_duration

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
PODS = "/api/v1/namespaces/default/pods"


async def get(server: APIServer, path: str, accept: str = "") -> Any:
    async with running(server) as http:
        response = await http.get(path, headers={"accept": accept} if accept else {})
        assert response.status_code == 200
        return response.json()


async def test_groups_and_versions_are_listed() -> None:
    server = APIServer()
    assert (await get(server, "/api"))["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await get(server, "/apis"))["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert [version["version"] for version in groups["autoscaling"]["versions"]] == ["v2", "v1"]
    assert (await get(server, "/apis/apps"))["name"] == "apps"
    assert "/apis/apps/v1" in (await get(server, "/"))["paths"]


async def test_stable_versions_come_before_betas_and_alphas() -> None:
    server = APIServer()
    for version in ("v1beta2", "v1alpha1", "odd", "v1", "v1betax", "v2", "v1beta1"):
        server.register(ResourceInfo(group="x.com", version=version, kind="X", plural="xs", namespaced=True))
    versions = [one["version"] for one in (await get(server, "/apis/x.com"))["versions"]]
    assert versions[:5] == ["v2", "v1", "v1beta2", "v1beta1", "v1betax"]
    assert set(versions[5:]) == {"v1alpha1", "odd"}


async def test_kinds_are_listed_with_their_subresources() -> None:
    listed = await get(APIServer(), "/apis/apps/v1")
    by_name = {resource["name"]: resource for resource in listed["resources"]}
    assert by_name["deployments"] == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
        "storageVersionHash": "8aSe+NMegvE=",
    }
    assert by_name["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }
    assert by_name["deployments/status"]["kind"] == "Deployment"


METHODS = {"create": "POST", "delete": "DELETE", "get": "GET", "list": "GET", "patch": "PATCH", "update": "PUT"}


@pytest.mark.parametrize("version", ["api/v1", "apis/apps/v1", "apis/certificates.k8s.io/v1"])
async def test_everything_that_is_listed_is_served_or_not_implemented(version: str) -> None:
    async with running(APIServer()) as http:
        listed = (await http.get(f"/{version}")).json()["resources"]
        assert listed
        for entry in listed:
            plural, _, subresource = entry["name"].partition("/")
            for verb in METHODS.keys() & set(entry["verbs"]):
                has_name = subresource or verb not in ("create", "list")
                namespace = "namespaces/default" if entry["namespaced"] else ""
                parts = (version, namespace, plural, "x" if has_name else "", subresource)
                path = "/" + "/".join(part for part in parts if part)
                media_type = "application/merge-patch+json" if verb == "patch" else "application/json"
                body = {} if verb in ("get", "list") else {"content": "{}", "headers": {"content-type": media_type}}
                response = await http.request(METHODS[verb], path, **body)
                is_out_of_scope = plural == "componentstatuses" or subresource == "proxy"
                assert (response.status_code == 501) == is_out_of_scope
                assert response.status_code != 405
                assert response.status_code != 404 or response.json()["details"]


@pytest.mark.parametrize(("path", "group"), [("/api", None), ("/apis", "apps")])
async def test_discovery_is_aggregated_for_kubectl(path: str, group: str | None) -> None:
    async with running(APIServer()) as http:
        response = await http.get(path, headers={"accept": AGGREGATED})
    assert response.headers["content-type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    listed = response.json()
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    (found,) = [item for item in listed["items"] if item["metadata"].get("name") == group]
    resources = {resource["resource"]: resource for resource in found["versions"][0]["resources"]}
    if group == "apps":
        assert resources["deployments"]["subresources"][0] == {
            "subresource": "scale",
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"],
        }
    else:
        assert resources["nodes"]["scope"] == "Cluster"
        # kube-apiserver leaves out the group and version of the list.
        assert resources["pods"]["responseKind"] == {"group": "", "version": "", "kind": "Pod"}


async def test_openapi_describes_built_in_kinds() -> None:
    document = await get(APIServer(), "/openapi/v3/api/v1")
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "containers" in document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["required"]
    older = await get(APIServer(), "/openapi/v2")
    assert "containers" in older["definitions"]["io.k8s.api.core.v1.PodSpec"]["required"]
    media_type = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    async with running(APIServer()) as http:
        response = await http.get("/openapi/v2", headers={"accept": media_type})
    assert response.headers["content-type"] == media_type.replace("@", ".")
    assert b"io.k8s.api.core.v1.PodSpec" in response.content


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
async def test_openapi_has_the_media_type_that_the_client_prefers(path: str) -> None:
    async with running(APIServer()) as http:
        for accepted, code in (("application/yaml", 406), ("text/html", 406), ("application/*", 200), ("", 200)):
            response = await http.get(path, headers={"accept": accepted})
            assert (response.status_code, bool(response.content)) == (code, code == 200)
        accepted = "application/json;q=0.5, application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        response = await http.get(path, headers={"accept": accepted})
    assert ("protobuf" in response.headers["content-type"]) == (path == "/openapi/v2")


async def test_the_list_of_openapi_shows_which_documents_have_changed() -> None:
    server = APIServer()
    before = (await get(server, "/openapi/v3"))["paths"]
    assert {"api/v1", "apis/apps/v1", "version"} <= before.keys()
    assert not [path for path in before if "example" in path]
    server.register(
        ResourceInfo(
            group="x.com", version="v2", kind="Widget", plural="widgets", namespaced=True, subresources=("status",)
        )
    )
    after = (await get(server, "/openapi/v3"))["paths"]
    assert {path: one for path, one in after.items() if path in before} == before
    (added,) = after.keys() - before.keys()
    document = await get(server, after[added]["serverRelativeURL"])
    assert f"/{added}/namespaces/{{namespace}}/widgets/{{name}}/status" in document["paths"]
    assert "Gadget" not in str(document)


async def test_health_and_version_are_served() -> None:
    async with running(APIServer()) as http:
        for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
            assert (await http.get(path)).text == "ok"
        assert (await http.get("/version")).json()["gitVersion"].startswith("v1.36.")
        assert failure_of(await http.post("/version"))[0] == 405


@pytest.mark.parametrize(
    "path",
    ["/nope", "/apis/nope.example.com", "/apis/nope.example.com/v1", "/api/v2", "/openapi/v3/nope", "/openapi/v3/v2"],
)
async def test_other_paths_are_not_found(path: str) -> None:
    async with running(APIServer()) as http:
        response = await http.get(path)
        assert (response.status_code, response.text) == (404, "404 page not found\n")
        assert response.headers["content-type"] == "text/plain; charset=utf-8"


# --- formats of a response ------------------------------------------------------------------------------------------


async def test_the_first_supported_format_is_used() -> None:
    server = APIServer()
    server.create(pod())
    path = f"{PODS}/web-1"
    for accept, kind in (
        ("", "Pod"),
        ("*/*", "Pod"),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json", "Pod"),
        (TABLE, "Table"),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", "Pod"),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "PartialObjectMetadata"),
        ("application/json;as=Nope;v=v1;g=meta.k8s.io,application/json", "Pod"),
    ):
        assert (await get(server, path, accept))["kind"] == kind
    async with running(server) as http:
        code, reason, message = failure_of(await http.get(path, headers={"accept": "text/html"}))
        assert (code, reason) == (406, "NotAcceptable")
        assert message.startswith("406: Not Acceptable\n\nAvailable representations: application/json")


async def test_a_list_can_be_of_metadata_only() -> None:
    server = APIServer()
    server.create(pod())
    listed = await get(server, PODS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    (item,) = listed["items"]
    assert set(item) == {"kind", "apiVersion", "metadata"}
    assert item["metadata"]["name"] == "web-1"


@pytest.mark.parametrize(
    ("include", "expected"),
    [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod"), ("None", None)],
)
async def test_include_object_selects_the_content_of_table_rows(include: str, expected: str | None) -> None:
    server = APIServer()
    server.create(pod())
    ((row,),) = [(await get(server, f"{PODS}?includeObject={include}", TABLE))["rows"]]
    assert (row["object"] and row["object"]["kind"]) == expected


async def cells(server: APIServer, path: str) -> dict[str, Any]:
    table = await get(server, path, TABLE)
    (row,) = table["rows"]
    return dict(zip([column["name"] for column in table["columnDefinitions"]], row["cells"], strict=True))


async def test_a_pod_has_the_columns_of_kubectl(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer()
    one = pod(nodeName="n1", readinessGates=[{"conditionType": "x.com/a"}, {"conditionType": "x.com/b"}])
    terminated = {"finishedAt": "2026-01-01T00:00:00Z"}
    status = {"name": "web", "ready": True, "restartCount": 2, "lastState": {"terminated": terminated}}
    conditions = [{"type": "x.com/a", "status": "True"}]
    one["status"] = {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [status], "conditions": conditions}
    server.create(one)
    await trio.sleep(200)
    assert await cells(server, PODS) == {
        "Name": "web-1",
        "Ready": "1/1",
        "Status": "Running",
        "Restarts": "2 (3m20s ago)",
        "Age": "3m20s",
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "1/2",
    }


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        (
            {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}]},
            "Completed",
        ),
    ],
)
async def test_the_status_of_a_pod_is_its_phase_or_a_containers_reason(status: Any, word: str) -> None:
    server = APIServer()
    server.create({**pod(), "status": status})
    assert (await cells(server, PODS))["Status"] == word


@pytest.mark.parametrize(
    ("obj", "path", "expected"),
    [
        (
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "spec": {},
                "status": {"readyReplicas": 1, "updatedReplicas": 2},
            },
            "/apis/apps/v1/deployments",
            {"Ready": "1/1", "Up-to-date": 2, "Available": 0},
        ),
        ({**config_map(), "data": {"a": "b"}}, "/api/v1/configmaps", {"Data": 1}),
        (
            {
                "apiVersion": "v1",
                "kind": "Node",
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
            "/api/v1/nodes",
            {"Status": "Ready,SchedulingDisabled"},
        ),
        (
            {"apiVersion": "v1", "kind": "Node", "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            "/api/v1/nodes",
            {"Status": "NotReady"},
        ),
        (
            {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
            "/api/v1/services",
            {"Type": "ClusterIP", "Port(s)": "80/TCP"},
        ),
        ({"apiVersion": "v1", "kind": "Endpoints"}, "/api/v1/endpoints", {"Name": "x", "Age": "0s"}),
    ],
)
async def test_other_kinds_have_the_columns_of_kubectl(
    autojump_clock: trio.testing.MockClock, obj: Any, path: str, expected: dict[str, Any]
) -> None:
    server = APIServer()
    server.create({**obj, "metadata": {"name": "x"}})
    found = await cells(server, f"{path}?fieldSelector=metadata.name=x")
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=141), "2m21s"),
        (timedelta(minutes=10, seconds=30), "10m"),
        (timedelta(hours=3, minutes=7), "3h7m"),
        (timedelta(days=3, hours=4), "3d4h"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=365 * 9), "9y"),
    ],
)
def test_ages_are_formatted_as_in_kubectl(age: timedelta, text: str) -> None:
    assert human_duration(age.total_seconds()) == text


async def test_an_invalid_timestamp_has_an_unknown_age() -> None:
    server = APIServer()
    terminated = {"finishedAt": "yesterday"}
    status = {"restartCount": 1, "lastState": {"terminated": terminated}}
    server.create({**pod(), "status": {"containerStatuses": [status, "strange"]}})
    assert (await cells(server, PODS))["Restarts"] == "1 (<unknown> ago)"
