"""The Tables of custom kinds and nodes, and discovery of custom kinds, on an embedded and on a real server."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
import trio

from tests.e2e.contract.custom_kinds import serve_kind
from trioformer.client import Client
from trioformer.models import resource_of

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
COLUMNS: Final = {
    "Size": ("integer", ".spec.size"),
    "Label": ("string", ".metadata.labels.a"),
    "When": ("date", ".spec.when"),
    "Number": ("number", ".spec.number"),
    "Flag": ("boolean", ".spec.flag"),
    "First": ("string", ".spec.list[0].name"),
    "All": ("string", ".spec.list[*].name"),
    "Filtered": ("string", '.spec.list[?(@.name=="two")].v'),
    "Object": ("string", ".spec.obj"),
    "Dotted": ("string", r".metadata.annotations.example\.com/x"),
}
"""The type and path of each column."""
ROWS: Final[list[tuple[dict[str, Any], list[Any]]]] = [
    ({}, [None] * 10),
    (
        {
            "size": 3,
            "number": 1.5,
            "flag": True,
            "list": [{"name": "one"}, {"name": "two", "v": 1}],
            "obj": {"z": 1, "a": [True]},
        },
        [3, None, None, 1.5, True, "one", "one", "1", '{"a":[true],"z":1}', None],
    ),
    (
        {"size": "text", "when": "no date", "number": "1.5", "flag": "yes", "list": "s", "obj": None},
        [None, None, "<invalid>", None, None, None, None, None, "<no value>", None],
    ),
    (
        {"size": 1.7, "when": "", "number": 3, "flag": 0, "list": [], "obj": []},
        [1, None, "<unknown>", 3, None, None, None, None, "[]", None],
    ),
    (
        {"size": True, "when": "2020-01-01", "number": True, "list": [1, 2], "obj": 1e30},
        [None, None, "<invalid>", None, None, None, None, None, "1e+30", None],
    ),
]
"""The spec of an object, and the cells of its row."""


async def get(client: Client, path: str, accept: str = "application/json", **params: str) -> Any:
    """Return the decoded body of a response."""
    response = await client._transport.request("GET", path, params=params, accept=accept)
    assert response.code == 200
    return json.loads(response.body)


async def test_a_custom_kind_has_its_own_columns(server_client: Client, namespace: str) -> None:
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, (kind, path) in COLUMNS.items()]
    columns[0] |= {"description": "the size", "priority": 1, "format": "int32"}
    async with serve_kind(server_client, additionalPrinterColumns=columns) as kind:
        info = resource_of(kind)
        path = f"/apis/{info.api_version}/namespaces/{namespace}/{info.plural}"
        for number, (spec, _) in enumerate(ROWS):
            body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": f"n{number}"}, "spec": spec}
            await server_client.request("POST", path, body=body)
        table = await get(server_client, path, TABLE)
    name, size, label, *_ = table["columnDefinitions"]
    assert (name["name"], name["format"]) == ("Name", "name")
    assert size == {"name": "Size", "type": "integer", "format": "int32", "description": "the size", "priority": 1}
    assert label["description"].endswith(": .metadata.labels.a")
    assert [column["type"] for column in table["columnDefinitions"][1:]] == [kind for kind, _ in COLUMNS.values()]
    assert [row["cells"] for row in table["rows"]] == [[f"n{i}", *cells] for i, (_, cells) in enumerate(ROWS)]


async def test_dates_are_ages_and_annotations_are_cells(server_client: Client, namespace: str) -> None:
    columns = [{"name": name, "type": COLUMNS[name][0], "jsonPath": COLUMNS[name][1]} for name in ("When", "Dotted")]
    async with serve_kind(server_client, additionalPrinterColumns=columns) as kind:
        info = resource_of(kind)
        path = f"/apis/{info.api_version}/namespaces/{namespace}/{info.plural}"
        metadata = {"name": "a", "annotations": {"example.com/x": "value"}}
        body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}
        await server_client.request("POST", path, body={**body, "spec": {"when": "2001-01-01T00:00:00Z"}})
        (row,) = (await get(server_client, path, TABLE))["rows"]
    assert row["cells"][0::2] == ["a", "value"]
    assert row["cells"][1].endswith("y")


async def test_a_watch_of_nodes_sends_tables(server_client: Client) -> None:
    labels = {"kubernetes.io/role": "worker", "node-role.kubernetes.io/control-plane": ""}
    conditions = [{"type": "Ready", "status": "True"}]
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    status = {"conditions": conditions, "addresses": addresses, "nodeInfo": {"kubeletVersion": "v1"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tabled", "labels": labels}, "status": status}
    params = {"fieldSelector": "metadata.name=tabled"}
    before = await get(server_client, "/api/v1/nodes", TABLE, **params)
    await server_client.request("POST", "/api/v1/nodes", body=node)
    listed = await get(server_client, "/api/v1/nodes", TABLE, **params)
    cordon = {"body": {"spec": {"unschedulable": True}}, "content_type": "application/merge-patch+json"}
    await server_client.request("PATCH", "/api/v1/nodes/tabled", **cordon)
    await server_client.request("DELETE", "/api/v1/nodes/tabled")
    params |= {"watch": "1", "timeoutSeconds": "1", "resourceVersion": before["metadata"]["resourceVersion"]}
    response = await server_client._transport.request("GET", "/api/v1/nodes", params=params, accept=TABLE)
    events = [json.loads(line) for line in response.body.splitlines()]

    names = [
        *("Name", "Status", "Roles", "Age", "Version", "Internal-IP", "External-IP"),
        *("OS-Image", "Kernel-Version", "Container-Runtime"),
    ]
    # Only the first event has the definitions of the columns.
    tables = [before, listed, *(event["object"] for event in events)]
    defined = [table["columnDefinitions"] for table in tables]
    assert [one and [column["name"] for column in one] for one in defined] == [names, names, names, None, None]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    rows = [row["cells"] for table in tables for row in table["rows"]]
    assert [row[1] for row in rows] == ["Ready", "Ready", *["Ready,SchedulingDisabled"] * 2]
    for name, _, roles, _, *rest in rows:
        assert (name, roles) == ("tabled", "control-plane,worker")
        assert rest == ["v1", "192.0.2.1", "<none>", "<unknown>", "<unknown>", "<unknown>"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/v1", "configmaps"),
        ("/api/v1", "events"),
        ("/apis/events.k8s.io/v1", "events"),
        ("/apis/autoscaling/v1", "horizontalpodautoscalers"),
        ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ],
)
async def test_discovery_names_the_hash_of_the_stored_version(server_client: Client, path: str, name: str) -> None:
    hashes = {
        "configmaps": "qFsyl6wFWjQ=",
        "events": "r2yiGXH7wu8=",
        "horizontalpodautoscalers": "qwQve8ut294=",
    }
    (found,) = [one for one in (await get(server_client, path))["resources"] if one["name"] == name]
    assert found["storageVersionHash"] == hashes[name]


async def test_discovery_names_the_singular_of_a_custom_kind(server_client: Client) -> None:
    async with serve_kind(server_client, singular="thingy") as kind:
        path = f"/apis/{resource_of(kind).api_version}"
        with trio.fail_after(30):  # kube-apiserver may name the group later than it serves the kind
            while (await server_client._transport.request("GET", path)).code == 404:  # noqa: ASYNC110  # its state
                await trio.sleep(0.1)
        (found,) = (await get(server_client, path))["resources"]
    assert found["singularName"] == "thingy"
    assert found["storageVersionHash"]


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/kube-system"])
async def test_a_table_has_the_objects_that_are_asked_for(server_client: Client, path: str) -> None:
    for include, kind in (("", "PartialObjectMetadata"), ("Object", "Namespace"), ("None", None)):
        rows = (await get(server_client, path, TABLE, includeObject=include))["rows"]
        assert (rows[0]["object"] or {}).get("kind") == kind
    refused = await server_client._transport.request("GET", path, params={"includeObject": "none"}, accept=TABLE)
    assert refused.code == 400
    assert "includeObject" in json.loads(refused.body)["message"]
    assert (await get(server_client, path, includeObject="none"))["metadata"]
