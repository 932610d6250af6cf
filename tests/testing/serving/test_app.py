"""The embedded API server sends a valid response to every request, however malformed."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.support.raw_requests import TABLE
from tests.support.server_errors import is_expected
from trioformer.client import Client
from trioformer.errors import AlreadyExistsError
from trioformer.models import ObjectMeta, ResourceInfo
from trioformer.models._internal import builtin_resources, object_of
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import read_request
from trioformer.testing._serving._resources import ResourceRequest
from trioformer.testing._serving._responses import Response
from trioformer.testing._storage._patching import JSON_PATCH, MERGE, STRATEGIC
from trioformer.testing._storage._status import APIStatusError

NAMES = """
metadata name generateName namespace uid resourceVersion labels annotations finalizers ownerReferences kind apiVersion
spec status phase containers containerStatuses restartCount state waiting terminated conditions type replicas selector
matchLabels template names plural group versions scope served storage subresources data ports target preconditions
dryRun op path value from $patch $deleteFromPrimitiveList/finalizers reason source readinessGates conditionType
readyReplicas unschedulable deletionTimestamp
"""
KEYS = st.sampled_from(NAMES.split())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.just(2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "a", "x", "default", "v1", "True", "x.com", "widgets", "Widget", "/metadata/name", "add", "/-"]
    )
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.just("x")}, optional={"labels": JSON, "finalizers": JSON})},
    optional={"spec": JSON, "status": JSON, "data": JSON, "type": JSON, "involvedObject": JSON},
)
CUSTOM = ResourceInfo(
    group="x.com", version="v1", kind="X", plural="xs", namespaced=True, subresources=("scale", "status")
)
COLLECTIONS = st.sampled_from(
    [
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/events",
        "/api/v1/nodes",
        "/api/v1/namespaces",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/x.com/v1/namespaces/default/xs",
    ]
)
FOLLOWING = st.lists(
    st.tuples(
        st.sampled_from(["PUT", "PATCH", "POST", "DELETE"]),
        st.sampled_from(["/x", "/x/status", "/x/scale", "/x/binding", "/x/eviction", ""]),
        st.sampled_from(["application/json", MERGE, JSON_PATCH, STRATEGIC]),
        OBJECTS | JSON,
    ),
    max_size=4,
)


def send(
    server: APIServer, method: str, path: str, body: Any = None, *, content_type: str = "", accept: str = ""
) -> int:
    """Send a request without tasks; reads the whole response and returns its code."""
    path, _, query = path.partition("?")
    record = read_request(method, path, query.encode(), user_agent="", time=0)
    content = b"" if body is None else json.dumps(body).encode()
    try:
        caller = server._app._access.admit({"headers": []}, record)
        response, _ = server._app._resources.handle(ResourceRequest(record, accept, content_type, content, caller))
    except APIStatusError as error:
        status = json.loads(json.dumps(error.status))
        assert is_expected(status)
        return error.code
    assert isinstance(response, Response)
    obj = json.loads(b"".join(response.chunks))
    if response.code == 201 and obj["apiVersion"].startswith("auth"):
        assert object_of(obj)
    return response.code


@given(COLLECTIONS, OBJECTS | JSON, FOLLOWING)
def test_every_body_gets_a_valid_response(collection: str, first: Any, following: Any) -> None:
    server = APIServer()
    server.register(CUSTOM)
    assert send(server, "POST", collection, first) in (201, 400, 403, 404, 409, 422, 500)
    for method, suffix, content_type, body in following:
        code = send(server, method, collection + suffix, body, content_type=content_type)
        assert code in (200, 201, 400, 403, 404, 405, 409, 415, 422, 500)
    for accept in ("", TABLE):
        assert send(server, "GET", collection, accept=accept) in (200, 404)
        assert send(
            server, "GET", f"{collection}?labelSelector=a,x!=y&fieldSelector=metadata.name=x", accept=accept
        ) in (200, 404)
    send(server, "GET", "/api/v1/pods?fieldSelector=spec.nodeName=,status.phase=,status.podIP=,spec.hostNetwork=true")
    send(server, "GET", "/api/v1/events?fieldSelector=source=,reason=,type=,involvedObject.name=x")


REVIEWS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": JSON,
        "spec": st.dictionaries(
            st.sampled_from(
                ["resourceAttributes", "nonResourceAttributes", "user", "groups", "namespace", "token", "audiences"]
            ),
            st.sampled_from(["a.b.c", "default"]) | JSON,
        )
        | JSON,
    },
)


@given(st.sampled_from([info for info in builtin_resources() if info.kind.endswith("Review")]), REVIEWS | JSON)
def test_every_review_gets_a_valid_response(info: ResourceInfo, body: Any) -> None:
    assert send(APIServer(), "POST", info.path(namespace="default"), body) in (201, 400, 422)


PARAMETERS = ["limit", "continue", "resourceVersion", "timeoutSeconds", "labelSelector", "fieldSelector", "dryRun"]


@given(st.sampled_from(PARAMETERS), st.text())
def test_every_query_gets_a_valid_response(parameter: str, value: str) -> None:
    query = urlencode({parameter: value, "watch": "0"})
    assert send(APIServer(), "GET", f"/api/v1/pods?{query}") in (200, 400, 410, 504)


async def test_records_have_the_code_and_the_manager_and_name_writes(api_server: APIServer, k8s_client: Client) -> None:
    config_maps = k8s_client.api(ConfigMap, "default")
    api_server.requests.clear()
    created = await config_maps.create(ConfigMap(metadata=ObjectMeta(name="a")), field_manager="me")
    with pytest.raises(AlreadyExistsError):
        await config_maps.create(ConfigMap(metadata=ObjectMeta(name="a")))
    await config_maps.replace(created, dry_run=True)
    await config_maps.list()
    async with config_maps.watch(resource_version="0"):
        pass
    await config_maps.delete("a")
    assert [(one.verb, one.code, one.is_write) for one in api_server.requests] == [
        ("create", 201, True),
        ("create", 409, False),
        ("update", 200, False),
        ("list", 200, False),
        ("watch", 200, False),
        ("delete", 200, True),
    ]
    assert api_server.requests[0].manager == "me"
    assert "/" not in api_server.requests[1].manager
