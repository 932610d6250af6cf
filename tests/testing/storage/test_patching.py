"""The three kinds of patch of the embedded API server."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.support.raw_requests import WIDGET, config_map, failure_of, pod, running
from trioformer.testing import APIServer
from trioformer.testing._storage._metadata import json_equal
from trioformer.testing._storage._patching import apply_json_patch, merge
from trioformer.testing._storage._status import APIStatusError

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


# The examples of RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": None}, {}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_rfc(original: Any, patch: Any, result: Any) -> None:
    assert merge(original, patch) == result


def test_nulls_in_lists_are_dropped_as_by_kube_apiserver() -> None:
    patch = {"a": [{"b": None, "c": [{"d": None}, None]}]}
    for old in ({}, {"a": 1}, {"a": [1]}):
        assert merge(old, patch) == {"a": [{"c": [{}, None]}]}
    assert merge({"a": {"b": 1}}, patch) == patch


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from((0.0, 1.0, 1.5)) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_json_values_are_equal_when_their_texts_are(one: Any, other: Any) -> None:
    assert json_equal(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a", "value": 1}], {"a": 1, "list": [1, 2], "m": {"x/y": {"~": 0}}}),
        ([{"op": "add", "path": "/list/1", "value": 9}], {"list": [1, 9, 2], "m": {"x/y": {"~": 0}}}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {"list": [1, 2, 9], "m": {"x/y": {"~": 0}}}),
        ([{"op": "replace", "path": "/list/0", "value": 9}], {"list": [9, 2], "m": {"x/y": {"~": 0}}}),
        ([{"op": "remove", "path": "/list/0"}], {"list": [2], "m": {"x/y": {"~": 0}}}),
        ([{"op": "remove", "path": "/m/x~1y/~0"}], {"list": [1, 2], "m": {"x/y": {}}}),
        ([{"op": "move", "from": "/list/0", "path": "/first"}], {"first": 1, "list": [2], "m": {"x/y": {"~": 0}}}),
        (
            [{"op": "copy", "from": "/m", "path": "/n"}, {"op": "remove", "path": "/m"}],
            {"list": [1, 2], "n": {"x/y": {"~": 0}}},
        ),
        ([{"op": "test", "path": "/list", "value": [1, 2]}], {"list": [1, 2], "m": {"x/y": {"~": 0}}}),
        ([{"op": "add", "path": "", "value": {"all": "new"}}], {"all": "new"}),
    ],
)
def test_json_patches_follow_the_rfc(operations: Any, result: Any) -> None:
    assert apply_json_patch({"list": [1, 2], "m": {"x/y": {"~": 0}}}, operations) == result


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "replace", "path": "/nope", "value": 2}, {"a": 1, "nope": 2}),
        ({"op": "test", "path": "/nope", "value": None}, {"a": 1}),
        ({"op": "test", "path": "/nope"}, {"a": 1}),
        ({"op": "copy", "from": "/nope", "path": "/b"}, {"a": 1, "b": None}),
        ({"op": "add", "path": "/a"}, {"a": None}),
        ({"op": "replace", "path": "x/a", "value": 2}, {"a": 2}),
    ],
)
def test_a_json_patch_treats_missing_values_as_kube_apiserver_does(operation: Any, result: Any) -> None:
    assert apply_json_patch({"a": 1}, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": True},
        {"op": "replace", "path": "/nope/a", "value": 2},
        {"op": "replace", "path": "/list/7", "value": 2},
        {"op": "copy", "from": "/list/7", "path": "/b"},
        {"op": "move", "from": "/nope", "path": "/b"},
        {"op": "remove", "path": "/nope"},
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/list/7"},
        {"op": "add", "path": "/list/7", "value": 2},
        {"op": "add", "path": "/list/x", "value": 2},
        {"op": "add", "path": "/a/b", "value": 2},
        {"op": "add", "path": "a", "value": 2},
        {"op": "frob", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_rejected(operation: Any) -> None:
    with pytest.raises(APIStatusError) as caught:
        apply_json_patch({"a": 1, "list": [1]}, [operation])
    assert caught.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/json", b"{}", 415),
        (MERGE, b"{nope", 400),
        (MERGE, b"[]", 400),
        (STRATEGIC, b"[]", 400),
        (STRATEGIC, b'{"metadata": {"$setElementOrder/finalizers": 5}}', 400),
        (JSON_PATCH, b"{}", 400),
        (JSON_PATCH, b"[1]", 400),
    ],
)
async def test_a_body_that_is_not_a_patch_is_rejected(content_type: str, body: bytes, code: int) -> None:
    server = APIServer()
    server.create({**pod(), "metadata": {"name": "web-1", "finalizers": ["example.com/a"]}})
    async with running(server) as http:
        response = await http.patch(f"{PODS}/web-1", content=body, headers={"content-type": content_type})
        assert failure_of(response)[0] == code
        if code == 415:
            assert response.json()["message"] == "415: Unsupported Media Type"


async def test_custom_kinds_do_not_support_strategic_merge() -> None:
    server = APIServer()
    server.register(WIDGET)
    server.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    async with running(server) as http:
        path = "/apis/example.com/v1/namespaces/default/widgets/w"
        for content_type, code in ((STRATEGIC, 415), (MERGE, 200)):
            response = await http.patch(path, content=b"{}", headers={"content-type": content_type})
            assert response.status_code == code
            if code == 415:
                assert "details" not in response.json()
                assert f"media types include: {JSON_PATCH}, {MERGE}" in response.json()["message"]


async def test_a_patch_that_makes_the_object_invalid_is_rejected() -> None:
    server = APIServer()
    server.create(config_map())
    async with running(server) as http:
        path = "/api/v1/namespaces/default/configmaps/cm"
        patch = json.dumps([{"op": "replace", "path": "/metadata", "value": 5}])
        assert failure_of(await http.patch(path, content=patch, headers={"content-type": JSON_PATCH}))[0] == 422
