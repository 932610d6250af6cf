"""Details of single requests that clients rely on, on an embedded and on a real server."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.e2e.contract.custom_kinds import serve_kind
from trioformer.client import Client
from trioformer.models import resource_of

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
WORKLOAD: Final = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
OPTIONAL_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
WRITTEN: Final[dict[str, Any]] = {
    "labels": {"l": "1"},
    "annotations": {"n": "1"},
    "finalizers": ["example.com/f"],
    "ownerReferences": [OPTIONAL_OWNER],
}
CLAIM: Final = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "x.example.com"}}]}}


async def send(
    client: Client, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **params: str
) -> tuple[int, dict[str, Any]]:
    """Send a request, and return the code and the decoded body of the response."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    response = await client._transport.request(method, path, params=params, content=content, content_type=content_type)
    return response.code, json.loads(response.body)


def collection(group: str, plural: str, namespace: str | None) -> str:
    """Return the path of a collection; ``group`` is such as ``v1`` or ``apps/v1``."""
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    return f"{root}/{plural}" if namespace is None else f"{root}/namespaces/{namespace}/{plural}"


async def create(client: Client, path: str, **fields: Any) -> dict[str, Any]:
    """Create an object with a new name, and return it."""
    code, made = await send(client, "POST", path, {"metadata": {"generateName": "x"}, **fields})
    assert code == 201, made
    return made


# --- the status ---

STATUS_WRITES: Final = {
    ("v1", "pods", True): ({"spec": TEMPLATE["spec"]}, {"ownerReferences"}),
    ("v1", "services", True): ({"spec": {"ports": [{"port": 80}]}}, set()),
    ("v1", "nodes", False): ({}, set()),
    ("v1", "resourcequotas", True): ({"spec": {"hard": {"pods": "1"}}}, set()),
    ("apps/v1", "deployments", True): ({"spec": WORKLOAD}, {"labels"}),
    ("apps/v1", "replicasets", True): ({"spec": WORKLOAD}, set()),
    ("apps/v1", "statefulsets", True): ({"spec": {**WORKLOAD, "serviceName": "x"}}, set()),
    ("networking.k8s.io/v1", "servicecidrs", False): ({"spec": {"cidrs": ["10.9.0.0/16"]}}, set(WRITTEN)),
    ("resource.k8s.io/v1", "resourceclaims", True): ({"spec": CLAIM}, set(WRITTEN)),
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", False): (
        {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
        set(WRITTEN),
    ),
}
"""The objects of kinds, and the fields of the metadata that a write of the status does not change."""


@pytest.fixture
def account(namespace: str) -> str:
    """The path of the service accounts in the namespace; pods need the account ``default``."""
    return collection("v1", "serviceaccounts", namespace)


@pytest.mark.parametrize("kind", STATUS_WRITES, ids=lambda kind: kind[1])
async def test_a_write_of_the_status_also_writes_metadata(
    server_client: Client, namespace: str, account: str, kind: tuple[str, str, bool]
) -> None:
    await send(server_client, "POST", account, {"metadata": {"name": "default"}})
    fields, kept = STATUS_WRITES[kind]
    path = collection(kind[0], kind[1], namespace if kind[2] else None)
    made = await create(server_client, path, **fields)
    one = f"{path}/{made['metadata']['name']}"
    code, written = await send(server_client, "PATCH", f"{one}/status", {"metadata": WRITTEN}, content_type=MERGE)
    assert code == 200
    for name, value in WRITTEN.items():
        assert written["metadata"].get(name) == (made["metadata"].get(name) if name in kept else value), name
    await send(server_client, "PATCH", one, {"metadata": {"finalizers": None}}, content_type=MERGE)
    await send(server_client, "DELETE", one)


async def test_a_write_of_the_status_of_a_custom_object_keeps_its_metadata(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client, subresources={"status": {}}) as kind:
        info = resource_of(kind)
        path = collection(info.api_version, info.plural, namespace)
        made = await create(server_client, path, apiVersion=info.api_version, kind=info.kind)
        one = f"{path}/{made['metadata']['name']}"
        change = {"metadata": WRITTEN, "status": {"n": 1}}
        code, written = await send(server_client, "PATCH", f"{one}/status", change, content_type=MERGE)
        assert (code, written["status"]) == (200, {"n": 1})
        assert not written["metadata"].keys() & WRITTEN


async def test_a_status_writer_owns_the_metadata_that_it_writes(server_client: Client, namespace: str) -> None:
    path = collection("apps/v1", "deployments", namespace)
    made = await create(server_client, path, spec=WORKLOAD)
    change = {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}, "status": {"replicas": 1}}
    one = f"{path}/{made['metadata']['name']}/status"
    _, written = await send(server_client, "PATCH", one, change, content_type=MERGE, fieldManager="me")
    (entry,) = (entry for entry in written["metadata"]["managedFields"] if entry["manager"] == "me")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:annotations": {".": {}, "f:n": {}}},
        "f:status": {"f:replicas": {}},
    }


@pytest.mark.parametrize(
    ("conditions", "is_valid"), [([{"status": "True"}], True), ([{"type": "", "status": "True"}], True), ("x", False)]
)
async def test_conditions_of_a_definition_may_lack_a_type(
    server_client: Client, conditions: Any, is_valid: bool
) -> None:
    async with serve_kind(server_client) as kind:
        info = resource_of(kind)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{info.plural}.{info.group}"
        body = {"status": {"conditions": conditions, "storedVersions": []}}
        code, written = await send(server_client, "PATCH", f"{path}/status", body, content_type=MERGE)
        assert (code == 200) is is_valid
        if is_valid:
            assert written["status"]["storedVersions"] == ["v1"]
        else:
            assert code in (400, 422)
        labels = {"metadata": {"labels": {"l": "v"}}}
        code, labelled = await send(server_client, "PATCH", path, labels, content_type=MERGE)
        assert (code, labelled["metadata"]["labels"]) == (200, {"l": "v"})


# --- names, versions and bindings ---


async def test_a_binding_does_not_change_the_generation(server_client: Client, namespace: str, account: str) -> None:
    await send(server_client, "POST", account, {"metadata": {"name": "default"}})
    path = collection("v1", "pods", namespace)
    pod = await create(server_client, path, spec=TEMPLATE["spec"])
    name = pod["metadata"]["name"]
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
    assert (await send(server_client, "POST", f"{path}/{name}/binding", binding))[0] == 201
    _, bound = await send(server_client, "GET", f"{path}/{name}")
    assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("n", 1)


@pytest.mark.parametrize(
    ("version", "params", "code"),
    [("5", {}, 500), ("5", {"dryRun": "All"}, 201), ("0", {}, 201), ("abc", {}, 201)],
)
async def test_a_new_object_has_no_version(
    server_client: Client, namespace: str, version: str, params: dict[str, str], code: int
) -> None:
    path = collection("v1", "configmaps", namespace)
    body = {"metadata": {"name": "a", "resourceVersion": version}}
    found, made = await send(server_client, "POST", path, body, **params)
    assert found == code
    assert code == 500 or (made["metadata"]["resourceVersion"] == version) is bool(params)
    missing = path.replace(namespace, "no-such-namespace")
    assert (await send(server_client, "POST", missing, body, **params))[0] == 404


async def test_an_object_that_is_being_deleted_exists(server_client: Client, namespace: str) -> None:
    path = collection("v1", "configmaps", namespace)
    body = {"metadata": {"name": "a", "finalizers": ["example.com/f"]}}
    await send(server_client, "POST", path, body)
    await send(server_client, "DELETE", f"{path}/a")
    for params in ({}, {"dryRun": "All"}):
        code, status = await send(server_client, "POST", path, body, **params)
        assert (code, status["reason"], status["message"].partition(":")[0]) == (
            409,
            "AlreadyExists",
            "object is being deleted",
        )


@pytest.mark.parametrize(
    ("method", "body"), [("PATCH", {"metadata": {"name": None}}), ("PATCH", {"metadata": None}), ("PUT", {"data": {}})]
)
async def test_an_update_has_a_name(server_client: Client, namespace: str, method: str, body: Any) -> None:
    path = collection("v1", "configmaps", namespace)
    await send(server_client, "POST", path, {"metadata": {"name": "a"}})
    content_type = MERGE if method == "PATCH" else "application/json"
    code, status = await send(server_client, method, f"{path}/a", body, content_type=content_type)
    assert (code, status["message"]) == (
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )


# --- deletes ---

DELETED: Final = {
    ("v1", "configmaps", True): ({}, "Status"),
    ("v1", "limitranges", True): ({"spec": {"limits": []}}, "Status"),
    ("v1", "podtemplates", True): ({"template": TEMPLATE}, "PodTemplate"),
    ("v1", "resourcequotas", True): ({"spec": {"hard": {"pods": "1"}}}, "ResourceQuota"),
    ("v1", "serviceaccounts", True): ({}, "ServiceAccount"),
    ("v1", "services", True): ({"spec": {"ports": [{"port": 80}]}}, "Service"),
    ("apps/v1", "deployments", True): ({"spec": WORKLOAD}, "Status"),
    ("resource.k8s.io/v1", "deviceclasses", False): ({"spec": {}}, "DeviceClass"),
    ("resource.k8s.io/v1", "resourceclaims", True): ({"spec": CLAIM}, "ResourceClaim"),
    ("storage.k8s.io/v1", "csidrivers", False): ({"spec": {}}, "CSIDriver"),
    ("storage.k8s.io/v1", "csinodes", False): ({"spec": {"drivers": []}}, "CSINode"),
    ("storage.k8s.io/v1", "csistoragecapacities", True): ({"storageClassName": "x"}, "Status"),
    ("storage.k8s.io/v1", "storageclasses", False): ({"provisioner": "x.y"}, "StorageClass"),
}
"""The kind of the response to a delete."""


@pytest.mark.parametrize("kind", DELETED, ids=lambda kind: kind[1])
async def test_a_delete_returns_a_status_or_the_object(
    server_client: Client, namespace: str, kind: tuple[str, str, bool]
) -> None:
    fields, expected = DELETED[kind]
    path = collection(kind[0], kind[1], namespace if kind[2] else None)
    name = (await create(server_client, path, **fields))["metadata"]["name"]
    for params in ({"dryRun": "All"}, {}):
        code, found = await send(server_client, "DELETE", f"{path}/{name}", **params)
        assert (code, found["kind"]) == (200, expected)
    assert (await send(server_client, "GET", f"{path}/{name}"))[0] == 404


@pytest.mark.parametrize(("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")])
@pytest.mark.parametrize("plural", ["configmaps", "services"])
async def test_a_policy_is_a_finalizer_until_the_garbage_collector_has_run(
    server_client: Client, namespace: str, plural: str, policy: str, finalizer: str
) -> None:
    path = collection("v1", plural, namespace)
    fields = {"spec": {"ports": [{"port": 80}]}} if plural == "services" else {}
    name = (await create(server_client, path, **fields))["metadata"]["name"]
    code, waiting = await send(server_client, "DELETE", f"{path}/{name}", propagationPolicy=policy)
    assert (code, waiting["metadata"]["finalizers"]) == (200, [finalizer])
    assert waiting["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await send(server_client, "GET", f"{path}/{name}"))[1]["metadata"]["finalizers"] == [finalizer]
    code, last = await send(server_client, "DELETE", f"{path}/{name}", propagationPolicy="Background")
    assert (code, last["metadata"].get("finalizers")) == (200, [finalizer] if plural == "services" else None)
    assert (await send(server_client, "GET", f"{path}/{name}"))[0] == 404


async def test_a_job_is_orphaned_by_default(server_client: Client, namespace: str) -> None:
    path = collection("batch/v1", "jobs", namespace)
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    name = (await create(server_client, path, spec={"template": template}))["metadata"]["name"]
    _, waiting = await send(server_client, "DELETE", f"{path}/{name}")
    assert waiting["metadata"]["finalizers"] == ["orphan"]


# --- JSON patches ---


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        ({"op": "replace", "path": "/data/none", "value": "x"}, {"a": "1", "none": "x"}),
        ({"op": "replace", "path": "/none/a", "value": "x"}, None),
        ({"op": "replace", "path": "/metadata/finalizers/7", "value": "x"}, None),
        ({"op": "test", "path": "/data/none", "value": None}, {"a": "1"}),
        ({"op": "test", "path": "/data/none", "value": "x"}, None),
        ({"op": "remove", "path": "/data/none"}, None),
        ({"op": "move", "from": "/data/none", "path": "/data/b"}, None),
        ({"op": "add", "path": "data/a", "value": "x"}, {"a": "1"}),
        ({"op": "frob", "path": "/data/a"}, None),
    ],
)
async def test_a_json_patch_may_replace_what_is_missing(
    server_client: Client, namespace: str, operation: Any, data: Any
) -> None:
    path = collection("v1", "configmaps", namespace)
    await send(server_client, "POST", path, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    code, patched = await send(server_client, "PATCH", f"{path}/a", [operation], content_type=JSON_PATCH)
    assert (code, patched.get("data")) == (422 if data is None else 200, data)


# --- namespaces ---


async def test_a_namespace_is_finalized(server_client: Client, namespace: str) -> None:
    one = f"/api/v1/namespaces/{namespace}"
    for method in ("GET", "POST", "PATCH", "DELETE"):
        assert (await send(server_client, method, f"{one}/finalize", {}, content_type=MERGE))[0] in (405, 415)
    assert (
        await send(server_client, "PUT", f"{one}-missing/finalize", {"metadata": {"name": f"{namespace}-missing"}})
    )[0] == 404
    _, before = await send(server_client, "GET", one)
    names = ["kubernetes", "example.com/f"]
    code, written = await send(server_client, "PUT", f"{one}/finalize", {**before, "spec": {"finalizers": names}})
    assert (code, written["spec"], written["status"]) == (200, {"finalizers": names}, {"phase": "Active"})
    spec = {"spec": {"finalizers": []}}
    assert (await send(server_client, "PATCH", one, spec, content_type=MERGE))[1]["spec"]["finalizers"] == names
    body = {"metadata": {"name": namespace}, "spec": {"finalizers": ["undotted"]}}
    code, status = await send(server_client, "PUT", f"{one}/finalize", body)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.finalizers[0]")
    await send(server_client, "DELETE", one)
    _, terminating = await send(server_client, "GET", one)
    assert "example.com/f" in terminating["spec"]["finalizers"]
    assert terminating["status"]["phase"] == "Terminating"
    body = {"metadata": {"name": namespace}, "spec": {"finalizers": []}}
    code, last = await send(server_client, "PUT", f"{one}/finalize", body)
    assert (code, last["spec"]) == (200, {})
    assert (await send(server_client, "GET", one))[0] == 404


# --- paths ---


async def test_unknown_paths_of_custom_groups_are_unknown_pages(server_client: Client, namespace: str) -> None:
    request = server_client._transport.request
    async with serve_kind(server_client) as kind:
        info = resource_of(kind)
        group, one = f"/apis/{info.group}", f"/apis/{info.api_version}/namespaces/{namespace}/{info.plural}/a"
        for path in (
            f"{group}/v1/nothings",
            f"{group}/v9/{info.plural}",
            f"{group}/v1/{info.plural}/a",
            "/apis/no.such.group/v1/nothings",
        ):
            response = await request("GET", path)
            assert (response.code, response.body) == (404, b"404 page not found\n"), path
        for path in ("/api/v1/nothings", "/apis/apps/v1/nothings", "/api/v1/configmaps/a"):
            code, status = await send(server_client, "GET", path)
            assert (code, status["details"]) == (404, {}), path
        for subresource in ("status", "scale", "nothing"):
            code, status = await send(server_client, "GET", f"{one}/{subresource}")
            assert (code, status["details"].get("name")) == (404, "a"), subresource
