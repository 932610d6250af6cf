"""Admission webhooks: which requests call them, in which order, and what their answers do."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.webhook_servers import (
    Answer,
    Installer,
    Reply,
    Review,
    WebhookServer,
    allow,
    deny,
    open_webhook_server,
    patch,
    raw,
    send,
)
from trioformer.client import Client

FAILED = "Internal error occurred: failed calling webhook"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
ALL = {"operations": ["*"], "resources": ["configmaps"]}
Y = {"op": "add", "path": "/data/y", "value": "2"}
Z = {"op": "add", "path": "/data/z", "value": "3"}


@pytest.fixture
def path(namespace: str) -> str:
    """The path of the ConfigMaps in the namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "1"}, **more}


async def create(client: Client, path: str, name: str = "a", **params: str) -> Reply:
    return await send(client, "POST", path, config_map(name), **params)


def operations(requests: list[Review]) -> list[str]:
    return [f"{one['operation']} {one['name']}" for one in requests]


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (deny(), 400, "denied the request without explanation"),
        (deny(message="no"), 400, "denied the request: no"),
        (deny(reason="Why"), 400, "denied the request: Why"),
        (deny(message="ok", code=200, status="Success"), 400, "denied the request: ok"),
        (deny(message="tea", code=418, reason="Teapot"), 418, "denied the request: tea"),
    ],
    ids=["nothing", "a message", "a reason", "a success", "a code"],
)
async def test_a_denied_object_is_not_created(
    server_client: Client,
    installer: Installer,
    path: str,
    answer: Answer,
    code: int,
    message: str,
) -> None:
    installer.server.answers["/v"] = answer
    await installer.install({"path": "/v", "failurePolicy": "Ignore"})
    found = await create(server_client, path)
    assert (found.code, found.message) == (code, f'admission webhook "v.example.com" {message}')
    assert (await send(server_client, "GET", f"{path}/a")).code == 404


async def test_the_causes_of_a_denial_reach_the_client(server_client: Client, installer: Installer, path: str) -> None:
    details = {"causes": [{"field": "data.x", "message": "too small", "reason": "FieldValueInvalid"}]}
    installer.server.answers["/v"] = deny(message="bad", code=422, reason="Invalid", details=details)
    await installer.install({"path": "/v"})
    found = await create(server_client, path)
    assert (found.code, found.body["reason"], found.body["details"]) == (422, "Invalid", details)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (raw(500, b"oops", "text/plain"), 'failed to call webhook: an error on the server ("oops") has prevented the'),
        (raw(500, b'{"a":1}'), 'failed to call webhook: an error on the server ("unknown") has prevented the request'),
        (raw(404, b"oops", "text/plain"), "failed to call webhook: the server could not find the requested resource"),
        (raw(400, b"oops", "text/plain"), "failed to call webhook: the server rejected our request for an unknown"),
        (raw(403, b"oops", "text/plain"), "failed to call webhook: oops"),
        (raw(302, b"oops", "text/plain"), "failed to call webhook: the server responded with the status code 302 but"),
        (
            raw(500, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"mine"}'),
            "failed to call webhook: mine",
        ),
        (raw(200, b""), "failed to call webhook: 0-length response with status code: 200"),
        (raw(200, b'{"kind":"Admis'), "failed to call webhook: couldn't get version/kind; json parse error:"),
        (raw(200, b"[]"), "failed to call webhook: couldn't get version/kind; json parse error:"),
        (raw(200, b'{"kind":"Pod","apiVersion":"v1"}'), 'failed to call webhook: no kind "Pod" is registered for'),
        (
            raw(200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}'),
            'failed to call webhook: no kind "AdmissionReview" is registered for version "admission.k8s.io/v2"',
        ),
        (
            raw(200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'),
            "received invalid webhook response: webhook response was absent",
        ),
        (allow(uid="x"), "received invalid webhook response: expected response.uid="),
        (allow(allowed="yes"), "failed to call webhook: json: cannot unmarshal string into Go struct field"),
        (patch(Y), "received invalid webhook response: validating webhook may not return response.patch"),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_the_failure_policy_decides_after_a_bad_answer(
    server_client: Client,
    installer: Installer,
    path: str,
    answer: Answer,
    problem: str,
    policy: str,
) -> None:
    installer.server.answers["/v"] = answer
    await installer.install({"path": "/v", "failurePolicy": policy})
    found = await create(server_client, path)
    if policy == "Ignore":
        assert found.code == 201
    else:
        assert found.code == 500
        assert found.message.startswith(f'{FAILED} "v.example.com": {problem}')


async def test_a_webhook_that_does_not_answer_in_time_has_failed(
    server_client: Client, installer: Installer, path: str
) -> None:
    async def answer(request: Review) -> Review:
        await trio.sleep(1 if request["name"] == "short" else 4)
        return {"allowed": True}

    installer.server.answers |= {"/ignored": answer, "/v": answer}
    await installer.install({"path": "/ignored", "failurePolicy": "Ignore", "timeoutSeconds": 2})
    assert (await create(server_client, path, "a")).code == 201
    await installer.install({"path": "/v", "timeoutSeconds": 2})
    assert (await create(server_client, path, "short")).code == 201
    found = await create(server_client, path, "b")
    assert '?timeout=2s": context deadline exceeded' in found.message
    assert found.code == 500


async def test_a_webhook_that_cannot_be_reached_has_failed(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    other = {"url": "https://127.0.0.1:1/v", "caBundle": server.bundle}
    await installer.install({"path": "/refused", "clientConfig": other})
    found = await create(server_client, path)
    assert "dial tcp 127.0.0.1:1: connect: connection refused" in found.message


async def test_a_certificate_of_another_authority_is_not_trusted(
    server_client: Client, installer: Installer, webhook_server: WebhookServer, path: str
) -> None:
    async with open_webhook_server() as other:
        client = {"url": f"{webhook_server.url}/v", "caBundle": other.bundle}
        await installer.install({"path": "/v", "clientConfig": client})
        found = await create(server_client, path)
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in found.message
    assert webhook_server.requests("/v") == []


async def test_a_service_that_does_not_exist_cannot_be_called(
    server_client: Client, installer: Installer, path: str, namespace: str
) -> None:
    client = {"service": {"name": "nope", "namespace": namespace, "path": "/v"}}
    await installer.install({"path": "/v", "clientConfig": client})
    found = await create(server_client, path)
    assert f'Post "https://nope.{namespace}.svc:443/v?timeout=5s": service "nope" not found' in found.message


async def test_warnings_are_in_the_headers_of_the_response(
    server_client: Client, installer: Installer, path: str
) -> None:
    installer.server.answers |= {
        "/m": allow(warnings=["one"]),
        "/v": allow(warnings=["two", 'a "quote"', "one", "not\nprintable"]),
    }
    await installer.install({"path": "/m"}, mutating=True)
    await installer.install({"path": "/v"})
    found = await create(server_client, path)
    assert found.warnings == '299 - "one", 299 - "two", 299 - "a \\"quote\\""'


# --- mutation ---------------------------------------------------------------------------------------------------------


async def test_a_patch_changes_the_stored_object(server_client: Client, installer: Installer, path: str) -> None:
    label = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    installer.server.answers["/m"] = patch(Y, label, {"op": "add", "path": "/unknown", "value": 1})
    await installer.install({"path": "/m"}, mutating=True)
    found = await create(server_client, path)
    assert (found.body["data"], found.body["metadata"]["labels"]) == ({"x": "1", "y": "2"}, {"a": "b"})
    assert "unknown" not in found.body
    assert (await send(server_client, "GET", f"{path}/a")).body == found.body


@pytest.mark.parametrize(
    ("answer", "policy", "code"),
    [
        (patch({"op": "replace", "path": "/nope/y", "value": "2"}), "Ignore", 500),
        (patch({"op": "test", "path": "/data/x", "value": "2"}), "Ignore", 500),
        (patch({"op": "add", "path": "/data/y", "value": 2}), "Ignore", 500),
        (patch({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}), "Ignore", 422),
        (allow(patch="e30=", patchType="JSONPatch"), "Fail", 500),
        (allow(patch="e30=", patchType="JSONPatch"), "Ignore", 201),
        (allow(patch="W10="), "Fail", 500),
        (allow(patch="W10="), "Ignore", 201),
        (allow(patchType="JSONPatch"), "Fail", 500),
        (allow(patch="W10=", patchType="Other"), "Fail", 201),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
async def test_a_bad_patch_is_an_error(
    server_client: Client, installer: Installer, path: str, answer: Answer, policy: str, code: int
) -> None:
    installer.server.answers["/m"] = answer
    await installer.install({"path": "/m", "failurePolicy": policy}, mutating=True)
    assert (await create(server_client, path)).code == code


async def test_mutating_webhooks_are_called_in_the_order_of_their_configurations(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    server.answers |= {"/b": patch(Y), "/a": allow(), "/c": allow(), "/v": allow()}
    await installer.install({"path": "/v"}, name="a")
    await installer.install({"path": "/c"}, name="z", mutating=True)
    await installer.install({"path": "/b"}, {"path": "/a"}, name="a", mutating=True)
    await create(server_client, path)
    assert [called for called, _ in server.reviews] == ["/b", "/a", "/c", "/v"]
    assert [request["object"]["data"] for _, request in server.reviews] == [
        {"x": "1"},
        *([{"x": "1", "y": "2"}] * 3),
    ]


async def test_a_webhook_is_called_again_if_a_later_one_changes_the_object(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    server.answers |= {"/a": allow(), "/b": patch(Y), "/c": patch(Z), "/d": allow(), "/e": patch(Y)}
    again = {"reinvocationPolicy": "IfNeeded"}
    webhooks = [{"path": "/a", **again}, {"path": "/b", **again}, {"path": "/c"}, {"path": "/d", **again}]
    await installer.install(*webhooks, {"path": "/e"}, mutating=True)
    await create(server_client, path)
    # The last one changes nothing, and what follows the last change is not called again.
    assert [called for called, _ in server.reviews] == ["/a", "/b", "/c", "/d", "/e", "/a", "/b"]
    assert server.requests("/a")[1]["object"]["data"] == {"x": "1", "y": "2", "z": "3"}


async def test_a_patch_of_a_deleted_object_is_an_error(server_client: Client, installer: Installer, path: str) -> None:
    await create(server_client, path)
    installer.server.answers["/m"] = patch(Y)
    await installer.install({"path": "/m", "rule": ALL}, mutating=True)
    found = await send(server_client, "DELETE", f"{path}/a")
    assert found.code == 500
    assert "attempted to modify the object, which is not supported for this operation" in found.message


async def test_the_fields_that_a_webhook_changes_belong_to_nobody(
    server_client: Client, installer: Installer, path: str
) -> None:
    installer.server.answers["/m"] = patch(Y)
    await installer.install({"path": "/m"}, mutating=True)
    await create(server_client, path)
    (entry,) = (await send(server_client, "GET", f"{path}/a")).body["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}


# --- requests ---------------------------------------------------------------------------------------------------------


async def test_a_review_describes_the_request(
    server_client: Client, installer: Installer, path: str, namespace: str
) -> None:
    server = installer.server
    server.answers |= {"/m": allow(), "/v": allow()}
    await installer.install({"path": "/m", "rule": ALL}, mutating=True)
    await installer.install({"path": "/v", "rule": ALL})
    await create(server_client, path, fieldManager="me", fieldValidation="Strict")
    (mutating,), (validating,) = server.requests("/m"), server.requests("/v")
    who = {"group": "", "version": "v1"}
    for request in (mutating, validating):
        assert request["kind"] == request["requestKind"] == {**who, "kind": "ConfigMap"}
        assert request["resource"] == request["requestResource"] == {**who, "resource": "configmaps"}
        assert (request["name"], request["namespace"], request["operation"]) == ("a", namespace, "CREATE")
        assert (request["dryRun"], request["oldObject"]) == (False, None)
        assert request["options"] == {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
        }
        assert request["userInfo"]["username"]
        assert (request["object"]["kind"], request["object"]["apiVersion"]) == ("ConfigMap", "v1")
    before, after = ({*one["object"]["metadata"]} for one in (mutating, validating))
    assert before == {"name", "namespace", "managedFields"}
    assert after == before | {"uid", "creationTimestamp"}
    assert validating["uid"] != mutating["uid"]


async def test_updates_patches_and_applies_are_reviewed_with_the_old_object(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    await create(server_client, path)
    server.answers |= {"/m": patch(Y), "/v": allow()}
    await installer.install({"path": "/m", "rule": ALL}, mutating=True)
    await installer.install({"path": "/v", "rule": ALL})
    put = await send(server_client, "PUT", f"{path}/a", config_map(data={"x": "2"}))
    merged = await send(server_client, "PATCH", f"{path}/a", {"data": {"x": "3"}}, content_type=MERGE)
    body = config_map(data={"x": "4"})
    applied = await send(server_client, "PATCH", f"{path}/a", body, content_type=APPLY, fieldManager="me", force="true")
    made = await send(server_client, "PATCH", f"{path}/b", config_map("b"), content_type=APPLY, fieldManager="me")
    assert [one.body["data"]["x"] for one in (put, merged, applied, made)] == ["2", "3", "4", "1"]
    assert [one.body["data"]["y"] for one in (put, merged, applied, made)] == ["2"] * 4
    requests = server.requests("/v")
    assert operations(requests) == ["UPDATE a", "UPDATE a", "UPDATE a", "CREATE b"]
    assert operations(server.requests("/m")) == operations(requests)
    assert [(one["oldObject"] or {}).get("data", {}).get("x") for one in requests] == ["1", "2", "3", None]
    kinds = [one["options"]["kind"] for one in requests]
    assert kinds == ["UpdateOptions", "UpdateOptions", "UpdateOptions", "CreateOptions"]


async def test_a_write_that_changes_nothing_is_reviewed(server_client: Client, installer: Installer, path: str) -> None:
    server = installer.server
    await create(server_client, path)
    server.answers |= {"/m": allow(), "/v": deny(message="no")}
    await installer.install({"path": "/m", "rule": ALL}, mutating=True)
    await installer.install({"path": "/v", "rule": ALL})
    found = await send(server_client, "PATCH", f"{path}/a", {}, content_type=MERGE)
    assert (found.code, found.message) == (400, 'admission webhook "v.example.com" denied the request: no')
    assert operations(server.requests("/m")) == ["UPDATE a"]


async def test_a_write_that_cannot_succeed_is_not_validated(
    server_client: Client, installer: Installer, path: str, namespace: str
) -> None:
    server = installer.server
    server.answers |= {"/m": allow(), "/v": allow()}
    await installer.install({"path": "/m", "rule": ALL}, mutating=True)
    await installer.install({"path": "/v", "rule": ALL})
    found = await send(server_client, "POST", path, config_map("Bad_Name"))
    assert found.code == 422
    assert (await send(server_client, "POST", f"{path}x/nope", config_map())).code == 404
    other = f"/api/v1/namespaces/nope-{namespace}/configmaps"
    assert (await send(server_client, "POST", other, config_map())).code == 404
    assert [called for called, _ in server.reviews] == ["/m"]


async def test_a_delete_is_reviewed_with_the_old_object(server_client: Client, installer: Installer, path: str) -> None:
    server = installer.server
    await create(server_client, path, "a")
    server.answers["/v"] = deny(message="keep it")
    await installer.install({"path": "/v", "rule": ALL})
    found = await send(server_client, "DELETE", f"{path}/a", {"propagationPolicy": "Background"})
    assert (found.code, found.message) == (400, 'admission webhook "v.example.com" denied the request: keep it')
    (request,) = server.requests("/v")
    assert (request["object"], request["oldObject"]["data"]) == (None, {"x": "1"})
    expected = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"}
    assert request["options"] == expected
    server.answers["/v"] = allow()
    assert (await send(server_client, "DELETE", f"{path}/a")).body["status"] == "Success"


async def test_each_object_of_a_deleted_collection_is_reviewed(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server

    async def answer(request: Review) -> Review:
        name = request["oldObject"]["metadata"]["name"]
        return {"allowed": name != "b", "status": {"message": "keep it", "code": 403}}

    for name in ("a", "b", "c"):
        await create(server_client, path, name)
    server.answers["/v"] = answer
    await installer.install({"path": "/v", "rule": {**ALL, "operations": ["DELETE"]}})
    found = await send(server_client, "DELETE", path)
    assert (found.code, found.message) == (403, 'admission webhook "v.example.com" denied the request: keep it')
    left = (await send(server_client, "GET", path)).body
    assert [one["metadata"]["name"] for one in left["items"]] == ["b", "c", "kube-root-ca.crt"][: len(left["items"])]
    reviewed = [request["oldObject"]["metadata"]["name"] for request in server.requests("/v")]
    assert (reviewed, ["name" in request for request in server.requests("/v")]) == (["a", "b"], [False, False])


async def test_only_the_operations_of_the_rules_are_reviewed(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    server.answers |= {"/update": allow(), "/secrets": allow(), "/other": allow(), "/cluster": allow(), "/all": allow()}
    await installer.install(
        {"path": "/update", "rule": {"operations": ["UPDATE"]}},
        {"path": "/secrets", "rule": {"resources": ["secrets", "configmaps/status"]}},
        {"path": "/other", "rule": {"apiGroups": ["apps"]}},
        {"path": "/cluster", "rule": {"scope": "Cluster"}},
        {"path": "/all", "rule": {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}},
    )
    await create(server_client, path)
    await send(server_client, "PATCH", f"{path}/a", {"data": {"x": "2"}}, content_type=MERGE)
    await send(server_client, "GET", f"{path}/a")
    called = [f"{path} {request['operation']}" for path, request in server.reviews]
    assert sorted(called) == ["/all CREATE", "/all UPDATE", "/update UPDATE"]


async def test_selectors_choose_objects_by_their_new_and_old_labels(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    server.answers["/v"] = allow()
    await installer.install({"path": "/v", "rule": ALL, "objectSelector": {"matchLabels": {"a": "b"}}})
    await create(server_client, path)
    for labels in ({"a": "b"}, {"a": "c"}, {"a": "d"}):
        body = {"metadata": {"labels": labels}}
        await send(server_client, "PATCH", f"{path}/a", body, content_type=MERGE)
    new = [request["object"]["metadata"]["labels"]["a"] for request in server.requests("/v")]
    assert new == ["b", "c"]


async def test_selectors_choose_namespaces(server_client: Client, installer: Installer, namespace: str) -> None:
    server = installer.server
    path = f"/api/v1/namespaces/{namespace}"
    server.answers |= {"/in": allow(), "/out": allow()}
    rule = {"operations": ["UPDATE"], "resources": ["namespaces", "configmaps"]}
    matches = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    for_env = {"key": "env", "operator": "In", "values": ["prod"]}
    await installer.install(
        {"path": "/in", "rule": rule, "namespaceSelector": {"matchExpressions": [matches, for_env]}}
    )
    await create(server_client, f"{path}/configmaps")
    for env in ("test", "prod", "dev"):
        body = {"metadata": {"labels": {"env": env}}}
        await send(server_client, "PATCH", path, body, content_type=MERGE)
        await wait_for_label(server_client, path, env)
        change = {"data": {"env": env}}
        await send(server_client, "PATCH", f"{path}/configmaps/a", change, content_type=MERGE)
    reviewed = [(one["resource"]["resource"], one["namespace"]) for one in server.requests("/in")]
    assert reviewed == [("namespaces", namespace), ("configmaps", namespace)]


async def wait_for_label(client: Client, path: str, env: str) -> None:
    """Wait until the API server's cache of namespaces, which webhooks are matched with, has a label."""
    assert (await send(client, "GET", path)).body["metadata"]["labels"]["env"] == env
    await trio.sleep(0.2)


async def test_configurations_themselves_are_not_reviewed(
    server_client: Client, installer: Installer, path: str
) -> None:
    rule = {"apiGroups": ["admissionregistration.k8s.io"], "operations": ["*"], "resources": ["*"]}
    installer.server.answers["/v"] = deny()
    name = await installer.install({"path": "/v", "rule": rule, "namespaceSelector": {}})
    config = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}"
    body = {"metadata": {"labels": {"a": "b"}}}
    assert (await send(server_client, "PATCH", config, body, content_type=MERGE)).code == 200
    assert installer.server.requests("/v") == []


@pytest.mark.parametrize("side_effects", ["None", "NoneOnDryRun"])
async def test_a_dry_run_calls_webhooks_without_side_effects(
    server_client: Client, installer: Installer, path: str, side_effects: str
) -> None:
    server = installer.server
    server.answers |= {"/m": patch(Y), "/v": allow()}
    await installer.install({"path": "/m", "sideEffects": side_effects}, mutating=True)
    await installer.install({"path": "/v", "sideEffects": side_effects})
    found = await create(server_client, path, dryRun="All")
    assert found.body["data"] == {"x": "1", "y": "2"}
    assert [(request["dryRun"], request["options"]["dryRun"]) for _, request in server.reviews] == [(True, ["All"])] * 2
    assert (await send(server_client, "GET", f"{path}/a")).code == 404


async def test_a_generated_name_is_known_when_the_object_is_validated(
    server_client: Client, installer: Installer, path: str
) -> None:
    server = installer.server
    server.answers |= {"/m": allow(), "/v": allow()}
    await installer.install({"path": "/m"}, mutating=True)
    await installer.install({"path": "/v"})
    body = {**config_map(), "metadata": {"generateName": "made-"}}
    name = (await send(server_client, "POST", path, body)).body["metadata"]["name"]
    assert name.startswith("made-")
    assert "name" not in server.requests("/m")[0]
    assert server.requests("/v")[0]["name"] == name


async def test_two_clients_that_change_an_object_at_the_same_time_lose_nothing(
    server_client: Client, installer: Installer, path: str
) -> None:
    async def answer(request: Review) -> Review:
        await trio.sleep(0.05)
        return {"allowed": True}

    await create(server_client, path)
    installer.server.answers["/v"] = answer
    await installer.install({"path": "/v", "rule": ALL})

    async def write(name: str) -> None:
        await send(server_client, "PATCH", f"{path}/a", {"data": {name: "1"}}, content_type=MERGE)

    async with trio.open_nursery() as nursery:
        for name in "pqrs":
            nursery.start_soon(write, name)
    found = await send(server_client, "GET", f"{path}/a")
    assert {*found.body["data"]} == {*"xpqrs"}


# --- subresources and versions ----------------------------------------------------------------------------------------


async def test_subresources_are_reviewed_by_their_own_rules(
    server_client: Client, installer: Installer, namespace: str
) -> None:
    server = installer.server
    server.answers |= {"/m": allow(), "/v": allow()}
    rule = {"apiGroups": ["apps"], "operations": ["*"], "resources": ["deployments/*"]}
    await installer.install({"path": "/m", "rule": rule}, mutating=True)
    await installer.install({"path": "/v", "rule": rule})
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    await send(server_client, "POST", path, body)
    await send(server_client, "PATCH", f"{path}/d/status", {"status": {"replicas": 3}}, content_type=MERGE)
    await send(server_client, "PATCH", f"{path}/d/scale", {"spec": {"replicas": 2}}, content_type=MERGE)
    _, status, scale = server.requests("/v")
    assert [called for called, _ in server.reviews] == ["/m", "/v"] * 3
    assert (status["subResource"], status["kind"]["kind"], status["object"]["status"]["replicas"]) == (
        "status",
        "Deployment",
        3,
    )
    assert scale["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert scale["resource"] == {"group": "apps", "version": "v1", "resource": "deployments"}
    assert (scale["subResource"], scale["requestSubResource"], scale["name"]) == ("scale", "scale", "d")
    assert (scale["oldObject"]["spec"], scale["object"]["spec"]) == ({"replicas": 1}, {"replicas": 2})


async def test_a_binding_and_an_eviction_are_reviewed(
    server_client: Client, installer: Installer, namespace: str
) -> None:
    server = installer.server
    rule = {"operations": ["*"], "resources": ["pods/*", "pods"]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "a", "image": "b"}], "terminationGracePeriodSeconds": 0}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await send(server_client, "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    assert (await send(server_client, "POST", path, body)).code == 201
    server.answers["/v"] = deny(message="stay")
    await installer.install({"path": "/v", "rule": rule})
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "node-1"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    for subresource, obj in (("binding", binding), ("eviction", eviction)):
        found = await send(server_client, "POST", f"{path}/p/{subresource}", obj)
        assert found.message == 'admission webhook "v.example.com" denied the request: stay'
    server.answers["/v"] = allow()
    found = await send(server_client, "POST", f"{path}/p/eviction", {**eviction, "deleteOptions": {}})
    assert found.code == 201
    reviewed = [f"{one['operation']} {one['kind']['kind']} {one['name']}" for one in server.requests("/v")]
    assert reviewed == ["CREATE Binding p", "CREATE Eviction p", "CREATE Eviction p"]


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
async def test_equivalent_rules_review_other_versions_of_an_object(
    server_client: Client, installer: Installer, namespace: str, policy: str
) -> None:
    server = installer.server
    server.answers["/m"] = patch({"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 70})
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}
    await installer.install({"path": "/m", "rule": rule, "matchPolicy": policy}, mutating=True)
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    found = await send(server_client, "POST", path, body)
    target = found.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]
    if policy == "Exact":
        assert (target, server.requests("/m")) == (80, [])
        return
    (request,) = server.requests("/m")
    assert target == 70
    assert request["resource"] == {"group": "autoscaling", "version": "v1", "resource": "horizontalpodautoscalers"}
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    assert request["object"]["apiVersion"] == "autoscaling/v1"


async def test_custom_objects_are_pruned_defaulted_and_validated_after_a_mutation(
    server_client: Client, installer: Installer, namespace: str
) -> None:
    server = installer.server
    properties = {"size": {"type": "integer", "maximum": 5}, "color": {"type": "string", "default": "red"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    async with serve_kind(server_client, schema) as kind:
        info = kind.__resource__
        rule = {"apiGroups": [info.group], "operations": ["*"], "resources": ["widgets"]}
        await installer.install({"path": "/m", "rule": rule}, mutating=True)
        path = f"/apis/{info.group}/v1/namespaces/{namespace}/widgets"
        body = {"apiVersion": f"{info.group}/v1", "kind": "Widget", "metadata": {"name": "a"}}
        server.answers["/m"] = patch({"op": "add", "path": "/spec", "value": {"size": 3, "unknown": 1}})
        found = await send(server_client, "POST", path, body)
        assert found.body["spec"] == {"size": 3, "color": "red"}
        server.answers["/m"] = patch({"op": "add", "path": "/spec", "value": {"size": 7}})
        found = await send(server_client, "POST", path, {**body, "metadata": {"name": "b"}})
        assert (found.code, [one["field"] for one in found.body["details"]["causes"]]) == (422, ["spec.size"])
