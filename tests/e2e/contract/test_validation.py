"""What servers refuse, prune, default and warn of.

The results in ``validation_results.json`` are those of kube-apiserver v1.36; both servers must have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trio import sleep

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.observed import observe
from tests.e2e.contract.releases import differs
from tests.e2e.contract.validation_cases import OBJECTS, SCHEMA, STATUS, definitions, specs
from trioformer.client import Client
from trioformer.models._kinds import builtin_resources

RESULTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("validation_results.json").read_text())
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def assert_as_recorded(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    different = {
        case: (result, recorded.get(case))
        for case, result in found.items()
        if result != recorded.get(case) and not differs(case)
    }
    assert different == {}
    assert found.keys() == recorded.keys()


def text_of(case: object) -> str:
    text = json.dumps(case, ensure_ascii=True)
    return text if len(text) < 300 else f"{text[:300]}… ({len(text)})"


async def observed_definitions(client: Client) -> dict[str, Any]:
    found = {}
    for case in definitions():
        result = await observe(client, "POST", CRDS, case, dryRun="All")
        result.pop("object", None)
        found[text_of(case["spec"])] = result
    return found


async def test_definitions_are_refused_with_the_causes_of_kube_apiserver(server_client: Client) -> None:
    assert_as_recorded(RESULTS["definitions"], await observed_definitions(server_client))


async def observed_metadata(client: Client) -> dict[str, Any]:
    infos = {info.plural: info for info in builtin_resources()}
    found = {}
    for plural, metadata in OBJECTS:
        info = infos[plural]
        body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}
        result = await observe(client, "POST", info.path(namespace="default"), body, dryRun="All")
        obj = result.pop("object", None)
        found[text_of([plural, metadata])] = {**result, "metadata": obj["metadata"]} if obj else result
    return found


async def test_metadata_is_refused_with_the_causes_of_kube_apiserver(server_client: Client) -> None:
    assert_as_recorded(RESULTS["metadata"], await observed_metadata(server_client))


async def observed_objects(client: Client, **params: str) -> dict[str, Any]:
    found = {}
    async with serve_kind(client, SCHEMA, subresources={"status": {}}) as widget:
        info = widget.__resource__
        for spec in specs():
            body = {"apiVersion": info.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
            path = info.path(namespace="default")
            result = await observe(client, "POST", path, body, dryRun="All", **params)
            obj = result.pop("object", None)
            found[text_of(spec)] = {**result, "spec": obj["spec"]} if obj else result
    return found


async def test_custom_objects_are_pruned_defaulted_and_validated(server_client: Client) -> None:
    assert_as_recorded(RESULTS["objects"], await observed_objects(server_client))


async def test_unknown_fields_of_custom_objects_are_refused_if_the_client_asks(server_client: Client) -> None:
    assert_as_recorded(RESULTS["strict"], await observed_objects(server_client, fieldValidation="Strict"))


async def test_nothing_is_said_of_unknown_fields_that_the_client_ignores(server_client: Client) -> None:
    found = await observed_objects(server_client, fieldValidation="Ignore")
    silent = {case: {**result, "warnings": None} for case, result in RESULTS["objects"].items()}
    assert_as_recorded(silent, {case: {**result, "warnings": result.get("warnings")} for case, result in found.items()})


async def test_a_status_is_validated_alone(server_client: Client, namespace: str) -> None:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": SCHEMA["properties"]["spec"], "status": STATUS},
    }
    async with serve_kind(server_client, schema, subresources={"status": {}}) as widget:
        path = widget.__resource__.path(namespace=namespace)
        body = {"apiVersion": widget.__resource__.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
        assert (await observe(server_client, "POST", path, body))["code"] == 201
        for status, causes in (
            (
                {"n": -1},
                ["status.n: FieldValueInvalid: Invalid value: -1: n in body should be greater than or equal to 0"],
            ),
            ({"conds": [{}]}, ["status.conds[0].type: FieldValueRequired: Required value"]),
            (
                {"n": "x"},
                [
                    (
                        'status.n: FieldValueTypeInvalid: Invalid value: "string": '
                        'n in body must be of type integer: "string"'
                    )
                ],
            ),
        ):
            patch = {"status": status}
            found = await observe(server_client, "PATCH", f"{path}/w/status", patch, content_type=MERGE)
            assert found == {"code": 422, "causes": causes}
        patch = {"status": {"n": 1, "unknown": 2}}
        found = await observe(server_client, "PATCH", f"{path}/w/status", patch, content_type=MERGE)
        assert (found["object"]["status"], found["warnings"]) == ({"n": 1}, ['unknown field "status.unknown"'])


async def test_an_update_does_not_report_what_was_wrong_before(server_client: Client, namespace: str) -> None:
    loose = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    }
    fields = {"text": {"type": "string"}, "size": {"type": "integer"}, "list": {**loose, "items": item}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    async with serve_kind(server_client, schema) as widget:
        info = widget.__resource__
        path = info.path(namespace=namespace)
        spec = {"text": "long", "list": [{"name": "a", "n": 1}, {"name": "b", "n": 1}]}
        body = {"apiVersion": info.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
        assert (await observe(server_client, "POST", path, body))["code"] == 201
        prefix = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
        tighter = [
            {"op": "add", "path": f"{prefix}/text/maxLength", "value": 2},
            {"op": "add", "path": f"{prefix}/list/items/properties/n/minimum", "value": 5},
        ]
        found = await observe(
            server_client, "PATCH", f"{CRDS}/{info}", tighter, content_type="application/json-patch+json"
        )
        assert found["code"] == 200
        await wait_until_refused(server_client, path, {**body, "metadata": {"name": "new"}})
        too_long = "spec.text: FieldValueTooLong: Too long: may not be more than 2 bytes"
        too_small = "FieldValueInvalid: Invalid value: 3: spec.list[1].n in body should be greater than or equal to 5"
        for patch, causes in (
            ({"size": 1}, None),
            ({"text": "other"}, [too_long]),
            ({"list": [{"name": "b", "n": 1}, {"name": "c", "n": 5}]}, None),
            ({"list": [{"name": "b", "n": 1}, {"name": "c", "n": 3}]}, [f"spec.list[1].n: {too_small}"]),
        ):
            found = await observe(server_client, "PATCH", f"{path}/w", {"spec": patch}, content_type=MERGE)
            assert found.get("causes") == causes


async def wait_until_refused(client: Client, path: str, body: Any) -> None:
    """Wait until a server has taken over a definition; kube-apiserver does so a moment after the write."""
    for _ in range(300):
        if (await observe(client, "POST", path, body, dryRun="All"))["code"] == 422:
            return
        await sleep(0.1)
    pytest.fail("the schema is not in force after 30 s")


@pytest.mark.parametrize("kind", ["object", "merge", "strategic", "json"])
async def test_duplicate_and_unknown_fields_are_reported(server_client: Client, namespace: str, kind: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await observe(server_client, "POST", path, {"metadata": {"name": "cm"}}))["code"] == 201
    method, where, content_type, body = {
        "object": ("PUT", "/cm", "application/json", b'{"metadata":{"name":"cm"},"data":{"a":"1","a":"2"},"x":1}'),
        "merge": ("PATCH", "/cm", MERGE, b'{"data":{"a":"1","a":"2"},"x":1}'),
        "strategic": ("PATCH", "/cm", "application/strategic-merge-patch+json", b'{"data":{"a":"1","a":"2"},"x":1}'),
        "json": (
            "PATCH",
            "/cm",
            "application/json-patch+json",
            b'[{"op":"add","path":"/x","path":"/x","value":1},{"op":"add","path":"/data","value":{"a":"2"},"y":1}]',
        ),
    }[kind]
    expected = ['duplicate field "data.a"', 'unknown field "x"']
    if kind == "json":
        unknown = 'json patch unknown field "[1].y"'
        expected = ['json patch duplicate field "[0].path"', unknown, 'unknown field "x"']

    async def send(**params: str) -> dict[str, Any]:
        return await observe(server_client, method, path + where, body, content_type=content_type, **params)

    strict = await send(fieldValidation="Strict")
    text = f"strict decoding error: {', '.join(expected)}"
    if kind == "object":
        message = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {text}'
        assert strict == {"code": 400, "message": message}
    else:
        assert strict["code"] == 422
        assert [one.startswith("patch: ") and one.endswith(text) for one in strict["causes"]] == [True]
    ignored = await send(fieldValidation="Ignore", dryRun="All")
    assert (ignored["code"], ignored.get("warnings"), ignored["object"]["data"]) == (200, None, {"a": "2"})
    found = await send()
    assert (found["code"], found["warnings"], found["object"]["data"]) == (200, expected, {"a": "2"})
    options = {"PUT": "UpdateOptions", "PATCH": "PatchOptions"}[method]
    supported = 'Unsupported value: "Never": supported values: "", "Ignore", "Strict", "Warn"'
    refused = await send(fieldValidation="Never")
    assert refused == {"code": 422, "causes": [f"fieldValidation: FieldValueNotSupported: {supported}"]}, options


async def test_a_deprecated_version_warns_with_each_response(server_client: Client, namespace: str) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with serve_kind(server_client, schema, deprecated=True) as widget:
        info = widget.__resource__
        path = info.path(namespace=namespace)
        warning = f"{info.api_version} Widget is deprecated"
        for method, where, body in (("GET", "", b""), ("GET", "/nope", b""), ("DELETE", "/nope", b"")):
            found = await observe(server_client, method, path + where, body)
            assert found["warnings"] == [warning]
        body_of = {"apiVersion": info.api_version, "kind": "Widget", "metadata": {"name": "w", "finalizers": ["x"]}}
        found = await observe(server_client, "POST", path, body_of, dryRun="All")
        assert warning in found["warnings"]
        assert any(one.startswith('metadata.finalizers: "x": prefer a domain') for one in found["warnings"])


async def test_the_texts_of_a_secret_become_its_data(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    body = {"metadata": {"name": "s"}, "data": {"a": "eA==", "b": "eA=="}, "stringData": {"a": "é", "c": ""}}
    found = await observe(server_client, "POST", path, body)
    assert found["object"]["data"] == {"a": "w6k=", "b": "eA==", "c": ""}
    assert "stringData" not in found["object"]
    patch = {"stringData": {"b": "y"}, "data": {"c": None}}
    found = await observe(server_client, "PATCH", f"{path}/s", patch, content_type=MERGE)
    assert (found["code"], found["object"]["data"]) == (200, {"a": "w6k=", "b": "eQ=="})
