"""What a request can contain: never an error of the server, and never more than its limits allow."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.raw_requests import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    TABLE,
    WIDGET,
    config_map,
    failure_of,
    http_client,
    pod,
    running,
)
from trioformer.errors import DecodeError
from trioformer.testing import APIServer
from trioformer.testing._serving._tables import Column, cell_of
from trioformer.testing._storage._bodies import MAX_CONTAINERS

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON_PATCH = {"content-type": "application/json-patch+json"}
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
INVALID = (422, "Invalid", "the server rejected our request due to an error in our request")


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def with_widget() -> APIServer:
    server = APIServer()
    server.register(WIDGET)
    server.create(widget(a="x" * 100, items=[1, 2]))
    return server


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


# --- JSON patches ---


@pytest.mark.parametrize("count", [12, 30])
async def test_copies_that_double_an_object_are_refused(api_server: APIServer, count: int) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(s="y" * 1_000))
    operations = [{"op": "copy", "from": "/spec", "path": f"/spec/c{i}"} for i in range(count)]
    async with http_client(api_server) as http:
        response = await http.patch(f"{WIDGETS}/w", content=json.dumps(operations), headers=JSON_PATCH)
        assert failure_of(response) == INVALID
        assert len((await http.get(f"{WIDGETS}/w")).content) < 2_000
        few = await http.patch(f"{WIDGETS}/w", content=json.dumps(operations[:10]), headers=JSON_PATCH)
        assert few.status_code == 200


async def test_copies_that_nest_an_object_are_refused(api_server: APIServer) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(a={}))
    operations = []
    path = "/spec/a"
    for _ in range(12):  # each doubles the levels
        operations.append({"op": "copy", "from": "/spec/a", "path": f"{path}/a"})
        path += path.removeprefix("/spec")
    value: Any = 1
    for _ in range(100):
        value = [value]
    for _ in range(100):
        operations.append({"op": "add", "path": "/spec/a", "value": {"b": value}})
        operations.append({"op": "add", "path": "/spec/a/b" + "/0" * 99, "value": value})
    async with http_client(api_server) as http:
        for each in (operations[:12], operations[12:]):
            response = await http.patch(f"{WIDGETS}/w", content=json.dumps(each), headers=JSON_PATCH)
            assert failure_of(response) == INVALID


async def test_a_json_patch_has_at_most_10000_operations(api_server: APIServer) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(a="x"))
    operation = {"op": "test", "path": "/spec/a", "value": "x"}
    async with http_client(api_server) as http:
        allowed = await http.patch(f"{WIDGETS}/w", content=json.dumps([operation] * 10_000), headers=JSON_PATCH)
        assert allowed.status_code == 200
        response = await http.patch(f"{WIDGETS}/w", content=json.dumps([operation] * 10_001), headers=JSON_PATCH)
    problem = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert failure_of(response) == (413, "RequestEntityTooLarge", f"Request entity too large: {problem}")


@pytest.mark.parametrize(
    "path",
    [
        "/a" * 100_000,
        "/spec/items/" + "9" * 5_000,
        "/spec/items/\u0661",
        "x",
        [],
    ],
    ids=lambda path: str(path)[:20],
)
@pytest.mark.parametrize("op", ["add", "remove", "copy", "test", None], ids=str)
async def test_a_pointer_that_leads_nowhere_is_invalid(api_server: APIServer, op: object, path: object) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(items=[1, 2]))
    operation = {"op": op, "path": path, "from": path, "value": 1}
    async with http_client(api_server) as http:
        response = await http.patch(f"{WIDGETS}/w?dryRun=All", content=json.dumps([operation]), headers=JSON_PATCH)
    assert failure_of(response) == INVALID


# --- levels ---


@pytest.mark.parametrize("levels", [129, 100_000])
async def test_bodies_of_many_levels_are_refused(api_server: APIServer, levels: int) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(a=1))
    api_server.create(config_map())
    deep, deep_list = nested(levels), "[" * levels + "]" * levels
    head = '{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"deep"},"spec":{"d":'
    async with http_client(api_server) as http:
        for value in (deep, deep_list):
            body = json.dumps({"op": "add", "path": "/spec/d", "value": 0})[:-2] + value + "}"
            for response in (
                await http.post(WIDGETS, content=f"{head}{value}}}}}", headers={"content-type": "application/json"}),
                await http.put(f"{WIDGETS}/w", content=f"{head}{value}}}}}"),
                await http.patch(f"{WIDGETS}/w", content=f'{{"spec":{{"d":{value}}}}}', headers=MERGE),
                await http.patch(f"{WIDGETS}/w", content=f"[{body}]", headers=JSON_PATCH),
                await http.patch(f"{CONFIG_MAPS}/cm", content=f'{{"spec":{{"d":{value}}}}}', headers=STRATEGIC),
                await http.request("DELETE", f"{WIDGETS}/w", content=value),
            ):
                code, reason, message = failure_of(response)
                if levels < MAX_CONTAINERS:
                    assert (code, reason) == (400, "BadRequest")
                    assert "exceeded max depth" in message
                else:  # its size is looked at first
                    assert (code, reason) == (413, "RequestEntityTooLarge")
        assert (await http.get(f"{WIDGETS}/w")).json()["spec"] == {"a": 1}


async def test_objects_of_many_levels_are_kept(api_server: APIServer) -> None:
    api_server.register(WIDGET)
    async with http_client(api_server) as http:
        deep = json.loads(nested(125))
        assert (await http.post(WIDGETS, json=widget(d=deep))).status_code == 201
        changed = await http.patch(
            f"{WIDGETS}/w", content=json.dumps({"spec": {"d": nested_change(124)}}), headers=MERGE
        )
        assert changed.status_code == 200
        assert changed.json()["metadata"]["generation"] == 2
        for accept in (TABLE, "application/json"):
            assert (await http.get(WIDGETS, headers={"accept": accept})).status_code == 200


def nested_change(levels: int) -> Any:
    """Return a patch of the innermost value."""
    value: Any = 2
    for _ in range(levels + 1):
        value = {"a": value}
    return value


def test_the_direct_api_refuses_objects_of_many_levels() -> None:
    server = with_widget()
    with pytest.raises(DecodeError, match="too many levels"):
        server.create({**widget(d=json.loads(nested(400))), "metadata": {"name": "deep"}})


# --- time ---


async def test_strategic_merges_of_long_lists_take_linear_time() -> None:
    count = 10_000
    server = APIServer(defaults=False)  # without the rule that the containers of a pod do not change
    server.create(pod("a", initContainers=[{"name": f"c{i}"} for i in range(count)]))
    patch = {
        "metadata": {"finalizers": [f"e.io/{i}" for i in range(count)]},
        "spec": {"initContainers": [{"name": f"c{i}", "image": "x"} for i in reversed(range(count))]},
    }
    async with running(server) as http:
        response = await http.patch(f"{PODS}/a", content=json.dumps(patch), headers=STRATEGIC)
    assert response.status_code == 200
    containers = response.json()["spec"]["initContainers"]
    assert [one["name"] for one in containers] == [f"c{i}" for i in reversed(range(count))]
    assert {one["image"] for one in containers} == {"x"}


# --- content types ---


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "x", ","],
)
async def test_a_body_that_a_form_can_send_is_refused(api_server: APIServer, content_type: str) -> None:
    api_server.create(config_map())
    headers = {"content-type": content_type}
    body = json.dumps(config_map())
    options = '{"kind":"DeleteOptions","apiVersion":"v1"}'
    async with http_client(api_server) as http:
        for response in (
            await http.post(CONFIG_MAPS, content=body, headers=headers),
            await http.put(f"{CONFIG_MAPS}/cm", content=body, headers=headers),
            await http.patch(f"{CONFIG_MAPS}/cm", content=body, headers=headers),
            await http.request("DELETE", f"{CONFIG_MAPS}/cm", content=options, headers=headers),
            await http.request("DELETE", CONFIG_MAPS, content=options, headers=headers),
        ):
            assert failure_of(response)[:2] == (415, "UnsupportedMediaType")
        assert (await http.get(f"{CONFIG_MAPS}/cm")).status_code == 200


# --- query parameters ---


def token(**more: Any) -> str:
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "/a", **more})
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=1" + "0" * 30, 400),
        ("limit=9223372036854775807", 200),
        ("limit=%D9%A1", 400),
        ("timeoutSeconds=" + "1" * 5_000, 400),
        ("timeoutSeconds=9223372036854775807", 200),
        ("resourceVersion=" + "1" * 5_000, 400),
        ("resourceVersion=18446744073709551615", 504),
        ("resourceVersion=-1", 400),
        ("continue=W10", 400),
        ("continue=" + base64.b64encode(b"[" * 5_000).decode(), 400),
        ("continue=" + token(rv=10**25), 400),
        ("continue=" + token(rv=9223372036854775807), 504),
        ("continue=" + token(rv=1.5), 400),
        ("continue=" + token(start="/../../x"), 400),
        ("continue=" + token(v="x"), 400),
        ("labelSelector=" + "(" * 50_000, 400),
        ("labelSelector=a+in+(" + ",".join(["b"] * 20_000) + ")", 200),
        ("fieldSelector=" + "x" * 50_000, 400),
        ("fieldSelector=metadata.name%3D" + "a" * 60_000, 200),
        ("%ff=%ff&a=%&a;b=c&=&&&", 200),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_absurd_query_parameters_are_refused_as_by_kube_apiserver(
    api_server: APIServer, query: str, code: int
) -> None:
    async with http_client(api_server) as http:
        response = await http.get(f"{CONFIG_MAPS}?{query}")
    assert response.status_code == code
    assert len(response.content) < 20_000  # what is refused is quoted in part
    if code != 200:
        failure_of(response)


@pytest.mark.parametrize("method", ["FROB", "TRACE", "OPTIONS", "CONNECT", "PROPFIND", "get", "HEAD"])
async def test_unknown_methods_are_not_allowed(api_server: APIServer, method: str) -> None:
    api_server.create(config_map())
    async with http_client(api_server) as http:
        for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/cm"):
            response = await http.send(httpx.Request(method, http.base_url.join(path)))
            # httpx writes methods in capitals
            assert response.status_code == (200 if method == "get" else 405)


@pytest.mark.parametrize(
    "path", ["/%00", "/%ff", "/%2e%2e", "/c%2Fd", "/" + "a" * 10_000, "/a/b/c/d/e/f", "/%F0%9F%92%A9"]
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_odd_paths_are_a_status_of_their_own(api_server: APIServer, method: str, path: str) -> None:
    async with http_client(api_server) as http:
        body = "" if method == "GET" else "{}"
        response = await http.request(
            method, CONFIG_MAPS + path, content=body, headers=MERGE if method == "PATCH" else {}
        )
    code, _, message = failure_of(response)
    assert code in (400, 404, 405, 415, 422)
    assert len(message) < 5_000


# --- stored objects ---


HOSTILE: list[Any] = [None, 1, -1.5, "x", [], {}, [1], [{}], {"a": {}}, True, 10**18, "9" * 5_000, [[]], {"": None}]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: str(value)[:20])
async def test_lists_watches_and_tables_take_objects_of_other_types(api_server: APIServer, value: Any) -> None:
    """The server does not validate anything below ``metadata``, so every type can be stored."""
    state = {"containerStatuses": value, "podIP": value, "reason": value, "conditions": value, "phase": value}
    spec = {"containers": value, "nodeName": value, "readinessGates": value, "replicas": value, "ports": value}
    statuses = [{"state": value, "restartCount": value, "ready": value, "lastState": {"terminated": value}}] * 2
    api_server.create({**pod("a"), "spec": spec, "status": state})
    api_server.create({**pod("b"), "status": {"containerStatuses": statuses}})
    more = {
        "deployments": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": spec,
            "status": {"readyReplicas": value},
        },
        "nodes": {"apiVersion": "v1", "kind": "Node", "spec": {"unschedulable": value}, "status": {"nodeInfo": value}},
        "services": {
            "apiVersion": "v1",
            "kind": "Service",
            "spec": {"ports": value, "type": value, "clusterIP": value},
        },
        "secrets": {"apiVersion": "v1", "kind": "Secret", "type": value, "data": value},
    }
    for obj in more.values():
        api_server.create({**obj, "metadata": {"name": "a"}})
    async with http_client(api_server) as http:
        for path in (
            "/api/v1/pods",
            "/apis/apps/v1/deployments",
            "/api/v1/nodes",
            "/api/v1/services",
            "/api/v1/secrets",
        ):
            for accept in (
                TABLE,
                "application/json",
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            ):
                for query in ("", "?watch=1&timeoutSeconds=-1&resourceVersion=0", "?labelSelector=a"):
                    accepted = accept.replace("List", "") if "watch" in query else accept
                    response = await http.get(path + query, headers={"accept": accepted})
                    assert response.status_code == 200, response.text
        for query in ("spec.nodeName=x", "status.phase=x", "status.podIP!=x"):
            assert (await http.get(f"/api/v1/pods?fieldSelector={query}")).status_code == 200
        assert (await http.get("/apis/apps/v1/namespaces/default/deployments/a/scale")).status_code in (200, 404)


SCHEMA_KEYS = (
    "type format pattern default enum required properties items additionalProperties allOf anyOf oneOf not nullable"
    " maximum minimum exclusiveMaximum multipleOf maxLength minLength maxItems minItems maxProperties minProperties"
    " uniqueItems description x-kubernetes-int-or-string x-kubernetes-embedded-resource x-kubernetes-list-type"
    " x-kubernetes-list-map-keys x-kubernetes-map-type x-kubernetes-preserve-unknown-fields x-kubernetes-validations"
)


@pytest.mark.parametrize("value", [*HOSTILE[::2], "9" * 5_000, "../.."], ids=lambda value: str(value)[:20])
async def test_no_definition_of_a_kind_breaks_discovery_or_other_kinds(api_server: APIServer, value: Any) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec: dict[str, Any] = {"group": "e.io", "scope": "Namespaced", "names": names, "versions": [version]}
    variants = [value, *({**spec, key: value} for key in ("group", "scope", "names", "versions"))]
    variants += [{**spec, "names": {**names, key: value}} for key in ("plural", "kind", "shortNames", "categories")]
    variants += [
        {**spec, "versions": [{**version, key: value}]}
        for key in ("name", "served", "storage", "subresources", "schema", "additionalPrinterColumns", "deprecated")
    ]
    for key in SCHEMA_KEYS.split():
        below = {"type": "object", "properties": {"a": {"type": "object", key: value}}}
        variants.append({**spec, "versions": [{**version, "schema": {"openAPIV3Schema": below}}]})
    async with http_client(api_server) as http:
        for variant in variants:
            created = await http.post(DEFINITIONS, json={"metadata": {"name": "widgets.e.io"}, "spec": variant})
            assert created.status_code in (201, 400, 422), created.text
            for path in ("/", "/api", "/apis", "/apis/e.io/v1", "/openapi/v3", "/api/v1/namespaces"):
                assert (await http.get(path)).status_code in (200, 404)
            if created.status_code == 201:
                for one in (1, "a", None, [], {"a": 1}, {}):
                    widget = {"metadata": {"name": "w"}, "a": one}
                    response = await http.post("/apis/e.io/v1/namespaces/default/widgets?dryRun=All", json=widget)
                    assert response.status_code in (201, 400, 404, 422), response.text
                assert (await http.delete(f"{DEFINITIONS}/widgets.e.io")).status_code == 200
            assert (await http.post(f"{CONFIG_MAPS}?dryRun=All", json=config_map())).status_code == 201


async def test_copies_of_many_small_lists_are_refused(api_server: APIServer) -> None:
    """Their JSON is small, and each of them needs 56 bytes."""
    api_server.register(WIDGET)
    api_server.create(widget(a=[[]] * 2_500))
    operations = [{"op": "copy", "from": "/spec/a", "path": f"/spec/c{i}"} for i in range(10)]
    async with http_client(api_server) as http:
        response = await http.patch(f"{WIDGETS}/w", content=json.dumps(operations), headers=JSON_PATCH)
        assert failure_of(response) == INVALID
        fewer = await http.patch(f"{WIDGETS}/w", content=json.dumps(operations[:8]), headers=JSON_PATCH)
        assert fewer.status_code == 200


def test_a_cell_that_cannot_be_made_is_unknown_and_a_long_one_is_cut() -> None:
    def fails(obj: object, now: object) -> str:
        raise ValueError(obj)

    now = datetime.now(UTC)
    assert cell_of(Column("A", fails), {}, now) == "<unknown>"
    assert cell_of(Column("A", lambda obj, now: 2**64), {}, now) == "<unknown>"
    assert cell_of(Column("A", lambda obj, now: "x" * 10_000), {}, now) == "x" * 4_096 + "..."


# --- many values ---


@pytest.mark.parametrize(
    "unit", [b"1", b"[]", b"{}", b'{"a":1}', b"[" * 50 + b"]" * 50], ids=lambda unit: unit.decode()[:10]
)
async def test_a_body_of_3_mb_of_small_values_is_413(api_server: APIServer, unit: bytes) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(a=1))
    spec = b'{"a":[' + b",".join([unit] * (3_000_000 // (len(unit) + 1))) + b"]}"
    new = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"new"},"spec":%s}' % spec
    operation = b'[{"op":"add","path":"/spec","value":%s}]' % spec
    async with http_client(api_server) as http:
        for response in (
            await http.post(WIDGETS, content=new, headers={"content-type": "application/json"}),
            await http.patch(f"{WIDGETS}/w", content=b'{"spec":%s}' % spec, headers=MERGE),
            await http.patch(f"{WIDGETS}/w", content=operation, headers=JSON_PATCH),
            await http.request("DELETE", f"{WIDGETS}/w", content=new, headers={"content-type": "application/json"}),
        ):
            assert failure_of(response)[:2] == (413, "RequestEntityTooLarge")
    assert [one["spec"] for one in api_server.list(WIDGET)] == [{"a": 1}]


async def test_patches_cannot_make_an_object_larger_than_a_body(api_server: APIServer) -> None:
    api_server.register(WIDGET)
    api_server.create(widget())
    async with http_client(api_server) as http:
        codes = [
            (await http.patch(f"{WIDGETS}/w", content=json.dumps({"spec": {name: value}}), headers=MERGE)).status_code
            for name, value in (
                ("a", [1] * 60_000),
                ("b", [1] * 60_000),
                ("c", "x" * 2_000_000),
                ("d", "x" * 2_000_000),
            )
        ]
    assert codes == [200, 413, 200, 413]


async def test_copies_of_many_numbers_are_refused(api_server: APIServer) -> None:
    api_server.register(WIDGET)
    api_server.create(widget(a=[1] * 60_000))
    copies = [{"op": "copy", "from": "/spec/a", "path": f"/spec/{name}"} for name in "bc"]
    remove = {"op": "remove", "path": "/spec/b"}
    async with http_client(api_server) as http:
        response = await http.patch(
            f"{WIDGETS}/w", content=json.dumps([copies[0], remove, copies[1]]), headers=JSON_PATCH
        )
    assert failure_of(response) == INVALID
