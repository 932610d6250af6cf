"""Metadata and values of wrong types, immutable metadata, times and nulls, on an embedded and on a real server."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.observed import observe
from trioformer.client import Client
from trioformer.models import resource_of

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
LATE: Final = "2020-01-01T01:00:00+01:00"
UTC: Final = "2020-01-01T00:00:00Z"


async def test_a_value_of_the_wrong_type_in_a_patch_of_a_custom_kind_is_not_valid(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client) as widget:
        await server_client.api(widget, namespace).create(widget.of({"metadata": {"name": "w"}}))
        path = f"{resource_of(widget).path(namespace=namespace)}/w"
        for patch, problem in (
            ({"metadata": {"uid": 3}}, "number into Go struct field ObjectMeta.uid of type types.UID"),
            (
                {"metadata": {"annotations": {"a": 3}}},
                "number into Go struct field ObjectMeta.annotations of type ",
            ),
            (
                {"metadata": {"annotations": []}},
                "array into Go struct field ObjectMeta.annotations of type map",
            ),
            ({"metadata": "x", "kind": "Other"}, "string into Go value of type v1.ObjectMeta"),
            ({"metadata": {"creationTimestamp": "x"}}, 'cannot parse "x" as "2006"'),
            ({"apiVersion": 3}, "number into Go struct field .apiVersion of type string"),
            ({"kind": {}}, "object into Go struct field .kind of type string"),
            ({"kind": None}, "Object 'Kind' is missing in"),
        ):
            found = await observe(server_client, "PATCH", path, patch, content_type=MERGE)
            assert (found["code"], len(found["causes"])) == (422, 1)
            assert found["causes"][0].startswith("patch: FieldValueInvalid: Invalid value: ")
            assert problem in found["causes"][0]
        for patch, text in (
            ({"apiVersion": "v7"}, 'apiVersion: FieldValueInvalid: Invalid value: "v7": must be '),
            ({"kind": "Other"}, 'kind: FieldValueInvalid: Invalid value: "Other": must be Widget'),
        ):
            found = await observe(server_client, "PATCH", path, patch, content_type=MERGE)
            assert found["causes"][0].startswith(text)


async def test_a_new_custom_object_with_metadata_of_the_wrong_type_is_refused(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client) as widget:
        info = resource_of(widget)
        body = {"apiVersion": info.api_version, "kind": "Widget", "metadata": {"name": "w", "uid": 3}}
        for method, path in (("POST", ""), ("PUT", "/w")):
            found = await observe(server_client, method, info.path(namespace=namespace) + path, body)
            assert found["code"] == 400
            assert found["message"].startswith('Widget in version "v1" cannot be handled as a Widget: json: cannot')


@pytest.mark.parametrize("is_custom", [True, False])
async def test_immutable_metadata_cannot_be_changed(server_client: Client, namespace: str, *, is_custom: bool) -> None:
    async with serve_kind(server_client) as widget:
        info = resource_of(widget)
        path = info.path(namespace=namespace) if is_custom else f"/api/v1/namespaces/{namespace}/configmaps"
        names = (
            {"apiVersion": info.api_version, "kind": "Widget"}
            if is_custom
            else {"apiVersion": "v1", "kind": "ConfigMap"}
        )
        made = (await observe(server_client, "POST", path, names | {"metadata": {"name": "w"}}))["code"]
        assert made == 201
        for name, value, text in (
            ("uid", "x", '"x"'),
            ("deletionTimestamp", LATE, f'"{UTC}"'),
            ("deletionGracePeriodSeconds", 5, "5"),
        ):
            body = names | {"metadata": {"name": "w", name: value}}
            for content_type, more in ((MERGE, {}), (APPLY, {"fieldManager": "a", "force": "true"})):
                found = await observe(server_client, "PATCH", f"{path}/w", body, content_type=content_type, **more)
                assert found["code"] == 422
                assert found["causes"] == [
                    f"metadata.{name}: FieldValueInvalid: Invalid value: {text}: field is immutable"
                ]
        unchanged = await observe(server_client, "PATCH", f"{path}/w", {"metadata": {"uid": None}}, content_type=MERGE)
        assert unchanged["code"] == 200
        current = (await server_client.request("GET", f"{path}/w")).json()
        current["metadata"]["uid"] = "x"
        assert (await observe(server_client, "PUT", f"{path}/w", current))["code"] == 409


async def test_an_object_that_is_deleted_keeps_the_time_of_its_deletion(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await observe(server_client, "POST", path, {"metadata": {"name": "c", "finalizers": ["example.com/a"]}})
    deleted = (await server_client.request("DELETE", f"{path}/c")).json()
    changed = {"metadata": {"deletionTimestamp": UTC, "labels": {"a": "b"}}}
    found = (await observe(server_client, "PATCH", f"{path}/c", changed, content_type=MERGE))["object"]["metadata"]
    assert (found["deletionTimestamp"], found["labels"]) == (deleted["metadata"]["deletionTimestamp"], {"a": "b"})


async def test_times_are_in_utc(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    spec = {"containers": [{"name": "main", "image": "a"}]}
    await observe(server_client, "POST", path, {**pod, "spec": spec})
    for name, time in (("A", LATE), ("B", "2020-01-01T00:00:00.5Z")):
        condition = {"type": name, "status": "True", "lastTransitionTime": time}
        for content_type, more in ((MERGE, {}), (APPLY, {"fieldManager": "a", "force": "true"})):
            body = {**pod, "status": {"conditions": [condition], "startTime": time}}
            found = await observe(server_client, "PATCH", f"{path}/p/status", body, content_type=content_type, **more)
            status = found["object"]["status"]
            assert status["startTime"] == UTC
            assert [one["lastTransitionTime"] for one in status["conditions"] if one["type"] == name] == [UTC]
    lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2020-01-01T01:00:00.123456+01:00"}}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    found = await observe(server_client, "POST", leases, lease)
    assert found["object"]["spec"]["renewTime"] == "2020-01-01T00:00:00.123456Z"


@pytest.mark.parametrize("time", ["", "x", "2020-01-01", "2020-13-01T00:00:00Z", "2020-02-30T00:00:00Z", f"{UTC}x"])
async def test_what_is_not_a_time_is_refused(both_clients: tuple[Client, Client], time: str) -> None:
    body = {"metadata": {"name": "a"}, "status": {"startTime": time}, "spec": {"containers": []}}
    embedded, real = [await observe(one, "POST", "/api/v1/namespaces/default/pods", body) for one in both_clients]
    assert embedded == real
    assert real["code"] == 400


async def test_nulls_in_lists_and_maps_are_zero_values(server_client: Client, namespace: str) -> None:
    metadata = {"name": "a", "annotations": {"a": None}, "labels": {"b": None}}
    for path, body in (
        (f"/api/v1/namespaces/{namespace}/configmaps", {"data": {"a": None, "b": "x"}, "binaryData": {"c": None}}),
        (f"/api/v1/namespaces/{namespace}/secrets", {"data": {"a": None}}),
    ):
        found = (await observe(server_client, "POST", path, {"metadata": metadata, **body}))["object"]
        assert found["metadata"]["annotations"] == {"a": ""}
        assert found["metadata"]["labels"] == {"b": ""}
        expected: dict[str, Any] = {
            name: {key: value or "" for key, value in members.items()} for name, members in body.items()
        }
        assert {name: found[name] for name in body} == expected
    container = {"name": "main", "image": "a", "args": [None, "x"]}
    pod = {"metadata": metadata, "spec": {"containers": [container], "nodeSelector": {"a": None}}}
    spec = (await observe(server_client, "POST", f"/api/v1/namespaces/{namespace}/pods", pod))["object"]["spec"]
    assert (spec["nodeSelector"], spec["containers"][0]["args"]) == ({"a": ""}, ["", "x"])
    async with serve_kind(server_client) as widget:
        info = resource_of(widget)
        body = {"apiVersion": info.api_version, "kind": "Widget", "metadata": metadata}
        found = (await observe(server_client, "POST", info.path(namespace=namespace), body))["object"]
        assert found["metadata"]["annotations"] == {"a": ""}
