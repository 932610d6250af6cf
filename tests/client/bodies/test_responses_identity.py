"""An object without a name is refused and reported; that of a response may have any name."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.support.clients import client_of
from tests.support.scripted_http import response
from trioformer.client import Undecodable
from trioformer.errors import DecodeError, UnexpectedResponseError
from trioformer.models import ObjectMeta, metadata_kind, unstructured_kind
from trioformer.models.authentication_v1 import TokenReview
from trioformer.models.core_v1 import ConfigMap, Node


def obj(name: str | None = "a", namespace: str | None = "x", kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"kind": kind, "metadata": {key: value for key, value in metadata.items() if value is not None}, **more}


def listed(*items: dict[str, Any], kind: str = "ConfigMap") -> httpx.Response:
    head = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    return response(200, json.dumps({**head, "items": items}))


def watched(*objects: dict[str, Any], type_: str = "ADDED") -> httpx.Response:
    return response(200, "".join(json.dumps({"type": type_, "object": each}) + "\n" for each in objects))


# --- lists and watches ---

NAMELESS = [obj(""), obj("", None), obj(None)]


@pytest.mark.parametrize("is_metadata", [False])
async def test_an_item_without_a_name_is_refused_and_the_others_are_listed(is_metadata: bool) -> None:
    for bad in NAMELESS:
        kind: type[Any] = metadata_kind(ConfigMap) if is_metadata else ConfigMap
        reported: list[Undecodable] = []
        pages = listed(obj("b"), bad, obj("c")), listed(bad)
        async with client_of(*pages) as (client, _):
            maps = client.api(kind, "x")
            found = await maps.list(on_undecodable=reported.append)
            with pytest.raises(UnexpectedResponseError, match="the server sent a ConfigMap without a name"):
                await maps.list()
        assert [each.name for each in found] == ["b", "c"]
        (report,) = reported
        assert "without a name" in str(report.error)
        assert report.key == ""


async def test_an_event_without_a_name_is_refused_and_the_others_are_received() -> None:
    for bad in NAMELESS:
        for type_ in ["ADDED", "MODIFIED", "DELETED"]:
            reported: list[Undecodable] = []
            replies = watched(obj("b"), bad, obj("c"), type_=type_), watched(bad, type_=type_)
            async with client_of(*replies) as (client, _):
                maps = client.api(ConfigMap, "x")
                async with maps.watch(on_undecodable=reported.append) as events:
                    assert [event.object.name async for event in events] == ["b", "c"]
                async with maps.watch() as events:
                    with pytest.raises(DecodeError, match="the server sent a ConfigMap without a name"):
                        await events.__anext__()
            (report,) = reported
            assert (report.event_type, report.key) == (type_, "")


async def test_honest_objects_of_any_kind_are_listed_and_received() -> None:
    widget = unstructured_kind("e.io/v1", "Widget", plural="widgets", namespaced=True)
    names = ["a", "system:node:a", "a.b", "...", ".a", "ü", "A B", "a" * 253]
    for kind, api_namespace, namespaces in (
        (ConfigMap, None, ["x", "y"]),
        (ConfigMap, "x", ["x", None]),  # some aggregated servers omit it
        (Node, None, [None, ""]),
        (widget, "x", ["x"]),
    ):
        objects = [obj(name, namespace, kind.__resource__.kind) for name in names for namespace in namespaces]
        async with client_of(listed(*objects, kind=kind.__resource__.kind), watched(*objects)) as (client, _):
            api: Any = client.api(kind, api_namespace)
            assert [each.name for each in await api.list()] == [each["metadata"]["name"] for each in objects]
            async with api.watch() as events:
                assert len([event async for event in events]) == len(objects)


# --- single objects ---


async def test_what_is_not_stored_needs_no_name() -> None:
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}}
    replies = (
        response(201, json.dumps(review)),
        response(201, json.dumps(review)),
        response(201, '{"kind":"ConfigMap","metadata":{}}'),
    )
    async with client_of(*replies) as (client, _):
        assert (await client.api(TokenReview).create(TokenReview())).name == ""
        assert (await client.api(TokenReview).create(TokenReview(metadata=ObjectMeta(name="a")))).name == ""
        assert (await client.api(ConfigMap, "x").create(ConfigMap())).name == ""
