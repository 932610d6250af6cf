"""The encodings and formats of requests and responses, on an embedded and on a real server."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.encodings import JSON, YAML, received, sent
from tests.e2e.workloads import make_namespace
from trioformer.client import Client
from trioformer.client._internal import PROTOBUF
from trioformer.models import Unstructured, resource_of
from trioformer.models._internal import message_to_json, read_level

TABLE: Final = "as=Table;v=v1;g=meta.k8s.io"
PARTIAL: Final = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS: Final = PARTIAL.replace("Metadata", "MetadataList")

ACCEPTED: Final = {
    PROTOBUF: ("200 protobuf ConfigMap", "406 protobuf"),
    f"{PROTOBUF},{JSON}": ("200 protobuf ConfigMap", "200 json Widget"),
    f"{JSON},{PROTOBUF}": ("200 json ConfigMap", "200 json Widget"),
    f"{JSON};q=0.5,{PROTOBUF}": ("200 protobuf ConfigMap", "200 json Widget"),
    f"text/html, {PROTOBUF}": ("200 protobuf ConfigMap", "406 protobuf"),
    YAML: ("200 yaml ConfigMap", "200 yaml Widget"),
    f"{YAML},{JSON}": ("200 yaml ConfigMap", "200 yaml Widget"),
    f"{YAML};{TABLE}": ("200 yaml Table", "200 yaml Table"),
    f"{YAML};{PARTIAL}": ("200 yaml PartialObjectMetadata", "200 yaml PartialObjectMetadata"),
    "*/*": ("200 json ConfigMap", "200 json Widget"),
    "application/*": ("406 json", "200 json Widget"),
    "text/html": ("406 json", "406 json"),
    "nonsense": ("406 json", "406 json"),
    PROTOBUF.upper(): ("406 json", "406 json"),
    f"{JSON};{TABLE}": ("200 json Table", "200 json Table"),
    f"{JSON};{TABLE},{PROTOBUF}": ("200 json Table", "200 json Table"),
    f"{PROTOBUF};{TABLE}": ("406 json", "406 json"),
    f"{PROTOBUF};{TABLE},{JSON}": ("200 json ConfigMap", "200 json Widget"),
    f"{JSON};as=Novel;v=v1;g=meta.k8s.io": ("406 json", "406 json"),
    f"{JSON};{PARTIAL}": ("200 json PartialObjectMetadata", "200 json PartialObjectMetadata"),
    f"{PROTOBUF};{PARTIAL}": ("200 protobuf PartialObjectMetadata", "200 protobuf PartialObjectMetadata"),
}
"""What a GET of a built-in and of a custom object returns for an ``Accept`` header."""

LISTED: Final = {
    YAML: ("200 yaml ConfigMapList", "200 yaml WidgetList"),
    PROTOBUF: ("200 protobuf ConfigMapList", "406 protobuf"),
    f"{PROTOBUF},{JSON}": ("200 protobuf ConfigMapList", "200 json WidgetList"),
    f"{JSON};{TABLE}": ("200 json Table", "200 json Table"),
    f"{JSON};{PARTIAL}": ("406 json", "406 json"),
    f"{JSON};{PARTIALS}": ("200 json PartialObjectMetadataList", "200 json PartialObjectMetadataList"),
    f"{PROTOBUF};{PARTIALS}": ("200 protobuf PartialObjectMetadataList", "200 protobuf PartialObjectMetadataList"),
}

SENT: Final = {
    "": (201, 201),
    JSON: (201, 201),
    f"{JSON}; charset=utf-8": (201, 201),
    JSON.upper(): (201, 201),
    YAML: (201, 201),
    PROTOBUF: (201, None),
    "application/xml": (415, 415),
    "text/plain": (415, 415),
    "*/*": (415, 415),
    "application/merge-patch+json": (415, 415),
}
"""The codes of a POST of a built-in and of a custom object with a ``Content-Type``.

kube-apiserver closes the connection when a custom object comes in protobuf.
"""
PATCHED: Final = {
    "": (415, 415),
    JSON: (415, 415),
    PROTOBUF: (415, 415),
    YAML: (415, 415),
    "application/merge-patch+json": (200, 200),
    "application/strategic-merge-patch+json": (200, 415),
}
DELETED: Final = {JSON: 200, YAML: 200, PROTOBUF: 200, "": 200, "application/xml": 415}
"""The code of a DELETE with options; only these may be protobuf for a custom object."""


def outcome(response: Any) -> str:
    found = received(response)
    encoding = {PROTOBUF: "protobuf", YAML: "yaml"}.get(response.headers["content-type"], "json")
    return f"{response.code} {encoding} {found['kind'] if response.code < 300 else ''}".rstrip()


def config_map(name: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}


def widget(kind: type[Unstructured], name: str) -> dict[str, Any]:
    return {"kind": "Widget", "apiVersion": resource_of(kind).api_version, "metadata": {"name": name}}


def path_of(kind: type[Unstructured], namespace: str) -> str:
    return f"/apis/{resource_of(kind).api_version}/namespaces/{namespace}/widgets"


async def test_a_response_has_the_first_accepted_form(server_client: Client, namespace: str) -> None:
    request, config_maps = server_client._transport.request, f"/api/v1/namespaces/{namespace}/configmaps"
    async with serve_kind(server_client) as kind:
        widgets = path_of(kind, namespace)
        await request("POST", config_maps, **sent(config_map("a"), JSON))
        await request("POST", widgets, **sent(widget(kind, "a"), JSON))
        found = {}
        for accept in ACCEPTED:
            of_both = [await request("GET", f"{path}/a", accept=accept) for path in (config_maps, widgets)]
            found[accept] = tuple(map(outcome, of_both))
        assert found == ACCEPTED
        found = {}
        for accept in LISTED:
            of_both = [await request("GET", path, accept=accept) for path in (config_maps, widgets)]
            found[accept] = tuple(map(outcome, of_both))
        assert found == LISTED
        for path in (config_maps, widgets):  # errors have an encoding, but no format
            missing = await request("GET", f"{path}/b", accept=f"{JSON};{PARTIAL},{PROTOBUF}")
            assert outcome(missing) == "404 protobuf"
            missing = await request("GET", f"{path}/b", accept=f"{PROTOBUF};{PARTIAL}")
            assert outcome(missing) == "404 json"


async def test_a_body_has_a_supported_content_type(server_client: Client, namespace: str) -> None:
    request, config_maps = server_client._transport.request, f"/api/v1/namespaces/{namespace}/configmaps"
    async with serve_kind(server_client) as kind:
        widgets = path_of(kind, namespace)
        objects = (config_maps, config_map("a")), (widgets, widget(kind, "a"))
        for path, obj in objects:
            await request("POST", path, **sent(obj, JSON))
        dry = {"dryRun": "All"}
        for number, (path, obj) in enumerate(objects):
            for content_type, codes in SENT.items():
                if codes[number] is not None:
                    new = {**obj, "metadata": {"name": "b"}}
                    response = await request("POST", path, params=dry, **sent(new, content_type))
                    assert (content_type, response.code) == (content_type, codes[number])
            for content_type, codes in PATCHED.items():
                response = await request("PATCH", f"{path}/a", params=dry, content=b"{}", content_type=content_type)
                assert (content_type, response.code) == (content_type, codes[number])
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
            for content_type, code in DELETED.items():
                response = await request("DELETE", f"{path}/a", **sent(options, content_type))
                assert (content_type, response.code) == (content_type, code)


async def test_a_review_has_no_table(server_client: Client) -> None:
    body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    found = {}
    for accept in (f"{JSON};{TABLE}", f"{JSON};{TABLE},{PROTOBUF}", f"{PROTOBUF};{PARTIAL}"):
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        found[accept] = outcome(await server_client._transport.request("POST", path, accept=accept, **sent(body, JSON)))
    assert list(found.values()) == ["406 json", "201 protobuf SelfSubjectReview", "201 protobuf PartialObjectMetadata"]


async def test_an_error_event_has_the_accepted_encoding(server_client: Client, namespace: str) -> None:
    params = {
        "watch": "1",
        "timeoutSeconds": "6",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "9999999999",
    }
    response = await server_client._transport.request(
        "GET", f"/api/v1/namespaces/{namespace}/configmaps", params=params, accept=PROTOBUF
    )
    assert response.headers["content-type"] == f"{PROTOBUF};stream=watch"
    event: dict[int, Any] = dict(read_level(response.body[4:]))
    assert event[1] == b"ERROR"
    status = message_to_json(dict(read_level(event[2]))[1])  # type: ignore[arg-type]  # it is bytes
    assert b'"reason":"Timeout"' in status


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"accept": PROTOBUF}),
        ("GET", {"accept": "text/html"}),
        ("GET", {"accept": f"{PROTOBUF};{TABLE}"}),
        ("WATCH", {"accept": YAML}),
        ("POST", {"content_type": "application/xml"}),
        ("PUT", {"content_type": "text/plain"}),
        ("PATCH", {"content_type": PROTOBUF}),
        ("DELETE", {"content_type": "application/xml"}),
    ],
)
async def test_refusals_have_the_same_text(
    both_clients: tuple[Client, Client], method: str, headers: dict[str, str]
) -> None:
    found: list[list[dict[str, Any]]] = []
    for client in both_clients:
        namespace = await make_namespace(client, "contract")
        async with serve_kind(client) as kind:
            paths = [f"/api/v1/namespaces/{namespace}/configmaps/a", f"{path_of(kind, namespace)}/a"]
            if method in ("POST", "WATCH"):
                paths = [path.rpartition("/")[0] for path in paths]
            content = None if method in ("GET", "WATCH") else b"{}"
            params = {"watch": "1", "timeoutSeconds": "1"} if method == "WATCH" else {}
            verb = "GET" if method == "WATCH" else method
            responses = [
                await client._transport.request(verb, path, params=params, content=content, **headers)  # type: ignore[arg-type]
                for path in paths
            ]
            found.append([received(response) for response in responses])
    embedded, real = found
    if headers.get("accept") == PROTOBUF:
        embedded, real = embedded[1:], real[1:]  # it is accepted for the built-in kind
    assert embedded == real
