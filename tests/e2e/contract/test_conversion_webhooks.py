"""Conversion webhooks: when objects are converted between the versions of a custom kind, and how that fails."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import attrs
import pytest
import trio

from tests.e2e.contract.webhook_servers import Answer, Installer, Review, WebhookServer, allow, patch, raw, send
from tests.e2e.parallel import in_parallel
from tests.support.end_to_end import is_end_to_end
from trioformer.client import Client
from trioformer.models import Unstructured, to_dict, unstructured_kind

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
FIELDS = {"v1": "one", "v2": "two"}
"""The name of the same field in each version."""
numbers = itertools.count()


async def convert(request: Review) -> Review:
    """Rename the field, and change more than a webhook may change."""
    version = request["desiredAPIVersion"].rpartition("/")[2]
    converted = copy.deepcopy(request["objects"])
    for obj in converted:
        value = next((obj["spec"].pop(name) for name in FIELDS.values() if name in obj["spec"]), None)
        obj["spec"] |= {FIELDS[version]: value, "unknown": 1}
        obj["metadata"]["labels"] = {**obj["metadata"].get("labels", {}), "converted": f"to-{version}"}
        obj["metadata"]["generation"] = 99
        obj["apiVersion"] = request["desiredAPIVersion"]
    return {"convertedObjects": converted, "result": {"status": "Success"}}


def broken(change: Callable[[dict[str, Any]], object]) -> Answer:
    """Convert, and make a mistake in the converted object."""

    async def answer(request: Review) -> Review:
        response = await convert(request)
        change(response["convertedObjects"][0])
        return response

    return answer


def version(name: str, *, storage: bool) -> dict[str, Any]:
    field = FIELDS[name]
    properties = {field: {"type": "string"}, "size": {"type": "integer", "default": 1}}
    spec = {"type": "object", "properties": properties}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": f".spec.{field}"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
    }


@attrs.frozen
class Widgets:
    """A kind with two versions, which are stored in v2 at first."""

    client: Client
    server: WebhookServer
    group: str
    namespace: str

    def path(self, name: str = "", version: str = "v1") -> str:
        return f"/apis/{self.group}/{version}/namespaces/{self.namespace}/widgets/{name}".rstrip("/")

    def body(self, name: str, version: str = "v1", **more: Any) -> dict[str, Any]:
        api_version = f"{self.group}/{version}"
        spec = {FIELDS[version]: name}
        return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, "spec": spec, **more}

    async def create(self, name: str, version: str = "v1", **more: Any) -> dict[str, Any]:
        reply = await send(self.client, "POST", self.path(version=version), self.body(name, version, **more))
        assert reply.code == 201, reply
        return reply.body

    async def get(self, name: str, version: str = "v1") -> dict[str, Any]:
        return (await send(self.client, "GET", self.path(name, version))).body

    async def change_storage(self, stored: str) -> None:
        versions = [version(name, storage=name == stored) for name in FIELDS]
        path = f"{DEFINITIONS}/widgets.{self.group}"
        body = {"spec": {"versions": versions}}
        found = (await send(self.client, "PATCH", path, body, content_type=MERGE)).body
        assert found["status"]["storedVersions"] == ["v2", "v1"]

    def kind(self, version: str = "v1") -> type[Unstructured]:
        return unstructured_kind(f"{self.group}/{version}", "Widget", plural="widgets", namespaced=True)


@pytest.fixture
async def widgets(server_client: Client, webhook_server: WebhookServer, namespace: str) -> AsyncIterator[Widgets]:
    group = f"converted{next(numbers)}-{os.getpid()}.example.com"
    webhook_server.answers["/convert"] = convert
    webhook = {"clientConfig": webhook_server.client("/convert"), "conversionReviewVersions": ["v1"]}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", storage=False), version("v2", storage=True)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }
    assert (await send(server_client, "POST", DEFINITIONS, body)).code == 201
    made = Widgets(server_client, webhook_server, group, namespace)
    with trio.fail_after(30):
        for each in FIELDS:
            while (await send(server_client, "GET", made.path(version=each))).code != 200:  # noqa: ASYNC110  # remote
                await trio.sleep(0.1)
    yield made
    await send(server_client, "DELETE", f"{DEFINITIONS}/widgets.{group}")


async def test_an_object_is_stored_in_one_version_and_read_in_each(widgets: Widgets) -> None:
    made = await widgets.create("a", metadata={"name": "a", "labels": {"x": "y"}})
    assert (made["apiVersion"], made["spec"]) == (f"{widgets.group}/v1", {"one": "a", "size": 1})
    assert made["metadata"]["labels"] == {"x": "y", "converted": "to-v1"}
    assert made["metadata"]["generation"] == 1
    old, new = await widgets.get("a", "v1"), await widgets.get("a", "v2")
    assert old == made
    assert (new["apiVersion"], new["spec"]) == (f"{widgets.group}/v2", {"two": "a", "size": 1})
    assert new["metadata"]["labels"] == {"x": "y", "converted": "to-v2"}
    same = ("uid", "resourceVersion", "generation", "creationTimestamp")
    assert [new["metadata"][name] for name in same] == [made["metadata"][name] for name in same]


async def test_a_webhook_gets_the_object_in_the_other_version(widgets: Widgets) -> None:
    await widgets.create("a")
    request = widgets.server.requests("/convert")[0]
    assert request["desiredAPIVersion"] == f"{widgets.group}/v2"
    (obj,) = request["objects"]
    assert (obj["apiVersion"], obj["kind"], obj["spec"]) == (f"{widgets.group}/v1", "Widget", {"one": "a", "size": 1})
    assert "resourceVersion" not in obj["metadata"]


async def test_an_object_in_the_version_of_the_storage_is_not_converted(widgets: Widgets) -> None:
    widgets.server.answers["/convert"] = allow(result={"status": "Failed", "message": "down"})
    await widgets.create("a", "v2")
    body = {"spec": {"two": "b"}}
    assert (await send(widgets.client, "PATCH", widgets.path("a", "v2"), body, content_type=MERGE)).code == 200
    assert (await widgets.get("a", "v2"))["spec"] == {"two": "b", "size": 1}
    assert (await send(widgets.client, "DELETE", widgets.path("a", "v2"))).code == 200


async def test_lists_and_field_selectors_use_the_version_of_the_request(widgets: Widgets) -> None:
    for name, version in (("a", "v1"), ("b", "v2"), ("c", "v1")):
        await widgets.create(name, version)
    for version, field in FIELDS.items():
        path = widgets.path(version=version)
        items = (await send(widgets.client, "GET", path)).body["items"]
        assert [(one["apiVersion"], one["spec"][field]) for one in items] == [
            (f"{widgets.group}/{version}", name) for name in "abc"
        ]
        chosen = (await send(widgets.client, "GET", path, fieldSelector=f"spec.{field}=b")).body["items"]
        assert [one["metadata"]["name"] for one in chosen] == ["b"]
        pages = (await send(widgets.client, "GET", path, limit="2")).body
        assert [one["spec"][field] for one in pages["items"]] == ["a", "b"]


async def test_a_watch_gets_all_changes_in_its_version(widgets: Widgets) -> None:
    await widgets.create("a", "v2")
    api = widgets.client.api(widgets.kind(), namespace=widgets.namespace)
    start = (await api.list()).resource_version
    await widgets.create("b", "v2")
    await widgets.create("c", "v1")
    path = widgets.path("a", "v2")
    await send(widgets.client, "PATCH", path, {"spec": {"two": "x"}}, content_type=MERGE)
    await send(widgets.client, "DELETE", path)
    found = []
    with trio.fail_after(20):
        async with api.watch(resource_version=start) as events:
            async for event in events:
                obj = to_dict(event.object)
                found.append((event.type, obj["apiVersion"].rpartition("/")[2], obj["spec"]["one"]))
                if event.type == "DELETED":
                    break
    expected = [("ADDED", "b"), ("ADDED", "c"), ("MODIFIED", "x"), ("DELETED", "x")]
    assert found == [(kind, "v1", value) for kind, value in expected]


async def test_each_kind_of_write_changes_an_object_of_another_version(widgets: Widgets) -> None:
    client, path = widgets.client, widgets.path("a")
    await widgets.create("a", "v2")
    patched = (await send(client, "PATCH", path, {"spec": {"one": "b"}}, content_type=MERGE)).body
    operations = [{"op": "replace", "path": "/spec/one", "value": "c"}]
    await send(client, "PATCH", path, operations, content_type="application/json-patch+json")
    status = await send(client, "PATCH", f"{path}/status", {"status": {"ready": True}}, content_type=MERGE)
    current = await widgets.get("a")
    put = await send(client, "PUT", path, {**current, "spec": {"one": "d"}})
    dry = await send(client, "PATCH", path, {"spec": {"one": "e"}}, content_type=MERGE, dryRun="All")
    assert (patched["spec"], patched["metadata"]["generation"]) == ({"one": "b", "size": 1}, 2)
    assert (status.body["spec"]["one"], status.body["status"]) == ("c", {"ready": True})
    assert (put.body["spec"]["one"], dry.body["spec"]["one"]) == ("d", "e")
    found = await widgets.get("a", "v2")
    assert (found["spec"], found["status"]) == ({"two": "d", "size": 1}, {"ready": True})
    assert found["metadata"]["generation"] == 4
    unchanged = await send(client, "PATCH", path, {"spec": {"one": "d"}}, content_type=MERGE)
    assert unchanged.body["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


async def test_an_applied_object_of_another_version_keeps_its_owners(widgets: Widgets) -> None:
    client, path = widgets.client, widgets.path("a")
    apply = "application/apply-patch+yaml"
    made = await send(client, "PATCH", path, widgets.body("a"), content_type=apply, fieldManager="me")
    changed = {**widgets.body("a"), "spec": {"one": "b"}}
    applied = await send(client, "PATCH", path, changed, content_type=apply, fieldManager="me")
    assert (made.code, applied.code, applied.body["spec"]["one"]) == (201, 200, "b")
    refused = await send(client, "PATCH", path, {**changed, "spec": {"one": "c"}}, content_type=apply, fieldManager="x")
    assert refused.code == 409
    assert (await widgets.get("a", "v2"))["spec"]["two"] == "b"


async def test_objects_of_another_version_are_deleted(widgets: Widgets) -> None:
    client = widgets.client
    await widgets.create("a")
    await widgets.create("b")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await send(client, "PATCH", widgets.path("a"), held, content_type=MERGE)
    deleted = (await send(client, "DELETE", widgets.path("a"))).body
    assert (deleted["apiVersion"], deleted["spec"]["one"]) == (f"{widgets.group}/v1", "a")
    assert deleted["metadata"]["deletionTimestamp"]
    again = (await send(client, "DELETE", widgets.path("a"))).body
    assert again["spec"]["one"] == "a"
    freed = {"metadata": {"finalizers": None}}
    assert (await send(client, "PATCH", widgets.path("a"), freed, content_type=MERGE)).code == 200
    listed = (await send(client, "DELETE", widgets.path())).body
    assert [one["spec"]["one"] for one in listed["items"]] == ["b"]
    assert (await send(client, "GET", widgets.path(version="v2"))).body["items"] == []


async def test_a_write_moves_an_object_to_the_new_version_of_the_storage(widgets: Widgets) -> None:
    made = await widgets.create("a", "v2")
    await widgets.change_storage("v1")
    path = widgets.path("a", "v2")
    with trio.fail_after(30):  # until each part of the server has read the definition
        while True:
            moved = (await send(widgets.client, "PATCH", path, {}, content_type=MERGE)).body
            if moved["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]:
                break
            await trio.sleep(0.1)
    again = (await send(widgets.client, "PATCH", path, {}, content_type=MERGE)).body
    assert again["metadata"]["resourceVersion"] == moved["metadata"]["resourceVersion"]
    assert (moved["spec"], moved["metadata"]["generation"]) == ({"two": "a", "size": 1}, 1)
    widgets.server.reviews.clear()
    assert (await widgets.get("a", "v1"))["spec"] == {"one": "a", "size": 1}
    assert widgets.server.requests("/convert") == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (allow(result={"status": "Failed", "message": "cannot"}), "failed: cannot"),
        (allow(result={"status": "Failed"}), "failed: response.result.status was 'Failed', not 'Success'"),
        (allow(), "failed: response.result.status was '', not 'Success'"),
        (allow(uid="x", result={"status": "Success"}), 'failed: expected response.uid="'),
        (allow(result={"status": "Success"}, convertedObjects=[]), "returned 0 objects, expected 1"),
        (raw(500, b"oops", "text/plain"), 'failed: an error on the server ("oops") has prevented the request from'),
        (raw(200, b'{"kind":"Con'), "failed: couldn't get version/kind; json parse error:"),
        (raw(200, b'{"kind":"ConversionReview","apiVersion":"x/v2"}'), 'failed: no kind "ConversionReview" is regis'),
        (
            raw(200, b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}'),
            "failed: no response provided",
        ),
        (
            broken(lambda obj: obj.update(apiVersion="x/v1")),
            "returned invalid object at index 0: invalid groupVersion (expected {group}/v2, received x/v1)",
        ),
        (
            broken(lambda obj: obj.update(kind="X")),
            "returned invalid object at index 0: invalid kind (expected Widget, received X)",
        ),
        (
            broken(lambda obj: obj["metadata"].update(name="b")),
            "returned invalid object: must have the same name: a != b",
        ),
        (broken(lambda obj: obj.pop("metadata")), "returned invalid object: must have the same name: a != "),
        (
            broken(lambda obj: obj["metadata"].update(labels={"a b": "c"})),
            'returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of',
        ),
        (broken(lambda obj: obj["metadata"].update(labels={"a": 1})), "returned invalid metadata: "),
        (broken(lambda obj: obj["metadata"].update(labels={"a": None})), "returned invalid metadata: "),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
async def test_an_object_that_cannot_be_converted_is_not_stored(widgets: Widgets, answer: Answer, problem: str) -> None:
    widgets.server.answers["/convert"] = answer
    reply = await send(widgets.client, "POST", widgets.path(), widgets.body("a"))
    webhook = f"conversion webhook for {widgets.group}/v1, Kind=Widget"
    assert (reply.code, reply.body.get("reason")) == (500, None)
    assert reply.message.startswith(f"{webhook} {problem.format(group=widgets.group)}")
    widgets.server.answers["/convert"] = convert
    assert (await send(widgets.client, "GET", widgets.path("a", "v2"))).code == 404


async def test_an_object_that_cannot_be_converted_cannot_be_read(widgets: Widgets) -> None:
    widgets.server.answers["/convert"] = allow(result={"status": "Failed", "message": "cannot"})
    await widgets.create("a", "v2")
    client, path, body = widgets.client, widgets.path("a"), {"spec": {"one": "b"}}
    replies = [
        await send(client, "GET", path),
        await send(client, "PATCH", path, body, content_type=MERGE),
        await send(client, "DELETE", path),
    ]
    problem = f"conversion webhook for {widgets.group}/v2, Kind=Widget failed: cannot"
    assert [(reply.code, reply.message) for reply in replies] == [(500, problem)] * 3
    assert (await widgets.get("a", "v2"))["spec"]["two"] == "a"


async def test_objects_are_converted_to_the_version_of_an_admission_webhook(
    widgets: Widgets, installer: Installer
) -> None:
    server = widgets.server
    server.answers["/m"] = patch({"op": "replace", "path": "/spec/two", "value": "patched"})
    rule = {"apiGroups": [widgets.group], "apiVersions": ["v2"], "operations": ["*"], "resources": ["widgets"]}
    await installer.install({"path": "/m", "rule": rule}, mutating=True)
    made = await widgets.create("a")
    assert (made["apiVersion"], made["spec"]["one"]) == (f"{widgets.group}/v1", "patched")
    (request,) = server.requests("/m")
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
    assert (request["object"]["apiVersion"], request["object"]["spec"]["two"]) == (f"{widgets.group}/v2", "a")


async def test_many_objects_keep_everything_in_both_directions(
    widgets: Widgets, request: pytest.FixtureRequest
) -> None:
    # Each call of the embedded server makes a TLS connection, which takes 10 ms.
    names = [f"n{index:03}" for index in range(1_000 if is_end_to_end(request.config) else 100)]
    versions = zip(names, itertools.cycle(FIELDS), strict=False)
    await in_parallel(partial(widgets.create, name, version) for name, version in versions)
    for version, field in FIELDS.items():
        items = (await send(widgets.client, "GET", widgets.path(version=version))).body["items"]
        assert [one["spec"] for one in items] == [{field: name, "size": 1} for name in names]
