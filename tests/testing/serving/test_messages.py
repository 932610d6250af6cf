"""The embedded server in protobuf: bodies of requests, and responses."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.support.raw_requests import CONFIG_MAPS, PODS, TABLE, WIDGET, config_map, pod, running
from trioformer.models._internal import (
    decode,
    envelope_of,
    message_to_json,
    object_of,
    open_envelope,
    read_level,
    tagged,
)
from trioformer.testing import APIServer

PROTOBUF = "application/vnd.kubernetes.protobuf"
BOTH = {"accept": f"{PROTOBUF},application/json", "content-type": PROTOBUF}
ALONE = {"accept": PROTOBUF}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def message(obj: dict[str, Any]) -> bytes:
    found = object_of(obj)
    assert found is not None
    return found


def read(response: httpx.Response) -> Any:
    """Return the object of a response in protobuf."""
    assert response.headers["content-type"] == PROTOBUF
    return decode(message_to_json(response.content))


def items_of(response: httpx.Response) -> tuple[str, dict[str, Any], list[Any]]:
    """Return the kind, the metadata and the items of a list in protobuf."""
    assert response.headers["content-type"] == PROTOBUF
    api_version, kind, data = open_envelope(response.content)
    found = []
    for number, value in read_level(data):
        assert isinstance(value, bytes)
        if number == 2:
            found.append(decode(message_to_json(envelope_of(api_version, kind.removesuffix("List"), value))))
        else:
            meta = dict(read_level(value))
    return kind, {str(number): value for number, value in meta.items()}, found


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        (PODS, pod("a", terminationGracePeriodSeconds=0)),
        (CONFIG_MAPS, {**config_map("a"), "data": {"x": "1"}, "binaryData": {"b": "AP+A"}}),
        (
            "/api/v1/namespaces/default/secrets",
            {
                "kind": "Secret",
                "apiVersion": "v1",
                "metadata": {"name": "a"},
                "data": {"k": "AP+A"},
                "type": "example.com/x",
            },
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            {
                "kind": "Deployment",
                "apiVersion": "apps/v1",
                "metadata": {"name": "a", "labels": {"app": "web"}},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                    },
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
                },
            },
        ),
    ],
    ids=lambda given: given["kind"] if isinstance(given, dict) else "",
)
async def test_an_object_is_created_read_and_replaced(path: str, obj: dict[str, Any]) -> None:
    async with running(APIServer()) as http:
        created = await http.post(path, content=message(obj), headers=BOTH)
        assert created.status_code == 201
        found = read(created)
        assert (found["kind"], found["apiVersion"]) == (obj["kind"], obj["apiVersion"])
        in_json = (await http.get(f"{path}/a")).json()
        for name in obj.keys() - {"metadata", "spec"}:
            assert in_json[name] == obj[name] == found[name]
        assert read(await http.get(f"{path}/a", headers=ALONE)) == found
        found["metadata"]["labels"] = {"changed": "yes"}
        replaced = await http.put(f"{path}/a", content=message(found), headers=BOTH)
        assert replaced.status_code == 200
        after = (await http.get(f"{path}/a")).json()
        assert after["metadata"]["labels"] == {"changed": "yes"}
        for name in in_json.keys() - {"metadata"}:
            assert after[name] == in_json[name]


async def test_a_list_is_served_with_its_metadata() -> None:
    server = APIServer()
    for number in range(3):
        server.create(pod(f"web-{number}"))
    async with running(server) as http:
        kind, meta, items = items_of(await http.get(PODS, headers=ALONE, params={"limit": "2"}))
        assert kind == "PodList"
        assert [item["metadata"]["name"] for item in items] == ["web-0", "web-1"]
        assert (meta["4"], bool(meta["2"])) == (1, True)
        params = {"limit": "2", "continue": meta["3"].decode()}
        _, meta, items = items_of(await http.get(PODS, headers=ALONE, params=params))
        assert [item["metadata"]["name"] for item in items] == ["web-2"]
        assert not meta.get("3")
        assert items_of(await http.get(CONFIG_MAPS, headers=ALONE))[2] == []


async def test_a_watch_is_served_in_frames() -> None:
    server = APIServer()
    server.create(pod("a"))
    async with running(server) as http:
        params = {"watch": "1", "timeoutSeconds": "1"}
        response = await http.get(PODS, headers=ALONE, params=params)
        assert response.headers["content-type"] == f"{PROTOBUF};stream=watch"
        size = int.from_bytes(response.content[:4], "big")
        frame: dict[int, Any] = dict(read_level(response.content[4 : 4 + size]))
        assert frame[1] == b"ADDED"
        found = decode(message_to_json(dict(read_level(frame[2]))[1]))  # type: ignore[arg-type]
        assert (found["kind"], found["metadata"]["name"]) == ("Pod", "a")


async def test_errors_are_served_in_the_accepted_encoding() -> None:
    async with running(APIServer()) as http:
        missing = await http.get(f"{PODS}/a", headers=ALONE)
        assert missing.status_code == 404
        found = read(missing)
        assert (found["kind"], found["reason"], found["code"]) == ("Status", "NotFound", 404)
        assert found["details"]["name"] == "a"
        assert (await http.get(f"{PODS}/a")).json()["reason"] == "NotFound"
        both = await http.get(f"{PODS}/a", headers={"accept": f"application/json,{PROTOBUF}"})
        assert both.json()["reason"] == "NotFound"


async def test_a_body_that_is_not_a_message_is_rejected() -> None:
    good = message(pod("a"))
    async with running(APIServer()) as http:
        for body in (
            b"",
            b"{}",
            json.dumps(pod("a")).encode(),
            good[:-9],
            b"k8s\0" + b"\xff" * 20,
            envelope_of("v1", "Novel", b""),
            envelope_of("v1", "Pod", tagged(1, b"\x7f")),
            envelope_of("apiextensions.k8s.io/v1", "JSONSchemaProps", tagged(9, b"abc")),
            envelope_of("apiextensions.k8s.io/v1", "JSONSchemaProps", tagged(8, tagged(1, b"{"))),
            envelope_of("../v1", "Pod", b""),
        ):
            response = await http.post(PODS, content=body, headers={"content-type": PROTOBUF})
            assert response.status_code == 400
            assert response.json()["reason"] == "BadRequest"
        assert (await http.get(PODS)).json()["items"] == []


async def test_options_of_a_deletion_are_read() -> None:
    server = APIServer()
    server.create(pod("a"))
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    async with running(server) as http:
        response = await http.request("DELETE", f"{PODS}/a", content=message(wrong), headers=BOTH)
        assert (response.status_code, read(response)["reason"]) == (409, "Conflict")
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        response = await http.request("DELETE", f"{PODS}/a", content=message(options), headers=BOTH)
        assert response.status_code == 200
        assert (await http.get(f"{PODS}/a")).status_code == 404


async def test_subresources_are_read_and_served() -> None:
    server = APIServer()
    server.create(pod("a"))
    server.create({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "sa"}})
    server.create(
        {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "a", "image": "b"}]},
                },
            },
        }
    )
    async with running(server) as http:
        path = "/apis/apps/v1/namespaces/default/deployments/web/scale"
        scale = read(await http.get(path, headers=ALONE))
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        scale["spec"]["replicas"] = 3
        changed = await http.put(path, content=message(scale), headers=BOTH)
        assert read(changed)["spec"]["replicas"] == 3
        assert "warning" not in changed.headers
        assert (await http.get(path)).json()["spec"]["replicas"] == 3

        metadata = {"name": "a", "namespace": "default"}
        target = {"kind": "Node", "name": "node-1"}
        binding = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target}
        response = await http.post(f"{PODS}/a/binding", content=message(binding), headers=BOTH)
        assert (response.status_code, read(response)["status"]) == (201, "Success")
        assert (await http.get(f"{PODS}/a")).json()["spec"]["nodeName"] == "node-1"

        accounts = "/api/v1/namespaces/default/serviceaccounts"
        request = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"audiences": ["x"], "expirationSeconds": 600},
        }
        response = await http.post(f"{accounts}/sa/token", content=message(request), headers=BOTH)
        assert response.status_code == 201
        found = read(response)
        assert found["kind"] == "TokenRequest"
        assert found["status"]["token"]

        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": metadata}
        response = await http.post(f"{PODS}/a/eviction", content=message(eviction), headers=BOTH)
        assert (response.status_code, read(response)["status"]) == (201, "Success")


async def test_a_patch_is_answered_in_protobuf() -> None:
    server = APIServer()
    server.create(config_map("a"))
    async with running(server) as http:
        headers = {**ALONE, "content-type": "application/merge-patch+json"}
        response = await http.patch(f"{CONFIG_MAPS}/a", content=b'{"data":{"x":"1"}}', headers=headers)
        assert read(response)["data"] == {"x": "1"}
        response = await http.patch(f"{CONFIG_MAPS}/a", content=message(config_map("a")), headers=BOTH)
        assert response.status_code == 415


async def test_a_custom_kind_has_no_protobuf() -> None:
    server = APIServer()
    server.register(WIDGET)
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a", "namespace": "default"}}
    server.create(widget)
    async with running(server) as http:
        for path in (WIDGETS, f"{WIDGETS}/a"):
            response = await http.get(path, headers=ALONE)
            assert (response.status_code, read(response)["reason"]) == (406, "NotAcceptable")
            both = await http.get(path, headers={"accept": BOTH["accept"]})
            assert both.headers["content-type"] == "application/json"
        body = envelope_of("example.com/v1", "Widget", b"")
        for method, path in (("POST", WIDGETS), ("PUT", f"{WIDGETS}/a"), ("PATCH", f"{WIDGETS}/a")):
            response = await http.request(method, path, content=body, headers={"content-type": PROTOBUF})
            assert (response.status_code, response.json()["reason"]) == (415, "UnsupportedMediaType")


async def test_what_has_no_message_stays_json() -> None:
    server = APIServer()
    server.create(pod("a"))
    async with running(server) as http:
        for accept in (TABLE, f"{TABLE},{PROTOBUF}"):
            response = await http.get(PODS, headers={"accept": accept})
            assert response.json()["kind"] == "Table"
        response = await http.get("/version", headers={"accept": BOTH["accept"]})
        assert response.headers["content-type"] == "application/json"
        assert (await http.get(f"{PODS}/a/log", headers=ALONE)).status_code == 204


async def test_discovery_is_served_in_protobuf() -> None:
    async with running(APIServer()) as http:
        for path, kind in (("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/api/v1", "APIResourceList")):
            assert read(await http.get(path, headers=ALONE))["kind"] == kind


async def test_metadata_alone_is_served_in_protobuf() -> None:
    server = APIServer()
    server.create(pod("a"))
    partial = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with running(server) as http:
        found = read(await http.get(f"{PODS}/a", headers={"accept": partial}))
        assert (found["kind"], found["metadata"]["name"]) == ("PartialObjectMetadata", "a")
        assert "spec" not in found
        kind, _, items = items_of(await http.get(PODS, headers={"accept": partial.replace(";g", "List;g")}))
        assert (kind, [item["metadata"]["name"] for item in items]) == ("PartialObjectMetadataList", ["a"])


async def test_the_content_type_is_read_in_any_form() -> None:
    async with running(APIServer()) as http:
        for number, form in enumerate((PROTOBUF, PROTOBUF.upper(), f"{PROTOBUF}; charset=utf-8")):
            headers = {"content-type": form, "accept": PROTOBUF}
            response = await http.post(CONFIG_MAPS, content=message(config_map(f"a-{number}")), headers=headers)
            assert response.status_code == 201
            assert read(response)["metadata"]["name"] == f"a-{number}"


async def test_an_object_of_another_kind_is_not_options_of_a_deletion() -> None:
    server = APIServer()
    server.create(config_map("a"))
    async with running(server) as http:
        response = await http.request("DELETE", f"{CONFIG_MAPS}/a", content=message(config_map("a")), headers=BOTH)
        assert response.status_code == 400
        assert (await http.get(f"{CONFIG_MAPS}/a")).status_code == 200
