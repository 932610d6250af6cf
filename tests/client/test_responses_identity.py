"""An object whose name cannot be one, or that is another than was asked for, is refused and reported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.support.scripted_http import InMemory, response
from trioformer.client import Client, Undecodable, open_client
from trioformer.errors import DecodeError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta, metadata_kind, unstructured_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.authentication_v1 import TokenRequest, TokenReview
from trioformer.models.core_v1 import ConfigMap, Node, ServiceAccount

IMPOSSIBLE = ["", ".", "..", "a/b", "other/a", "/", "a%2fb", "%"]


def obj(name: str | None = "a", namespace: str | None = "x", kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"kind": kind, "metadata": {key: value for key, value in metadata.items() if value is not None}, **more}


def listed(*items: dict[str, Any], kind: str = "ConfigMap") -> httpx.Response:
    head = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    return response(200, json.dumps({**head, "items": items}))


def watched(*objects: dict[str, Any], type_: str = "ADDED") -> httpx.Response:
    return response(200, "".join(json.dumps({"type": type_, "object": each}) + "\n" for each in objects))


@asynccontextmanager
async def client_of(*replies: httpx.Response) -> AsyncIterator[Client]:
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory(list(replies))) as client:
        yield client


# --- lists and watches ---

REFUSED = [
    *((obj(name), name, "x") for name in IMPOSSIBLE),
    *((obj(name, None), name, "x") for name in IMPOSSIBLE),
    *((obj("a", namespace), namespace, None) for namespace in ("x/y", "/")),
    (obj("a", "y"), "y", "x"),
    (obj("a", "X"), "X", "x"),
]


@pytest.mark.parametrize(("bad", "named", "namespace"), REFUSED)
@pytest.mark.parametrize("is_metadata", [False, True])
async def test_an_item_is_refused_and_the_others_are_listed(
    bad: dict[str, Any], named: str, namespace: str | None, is_metadata: bool
) -> None:
    kind: type[Any] = metadata_kind(ConfigMap) if is_metadata else ConfigMap
    reported: list[Undecodable] = []
    pages = listed(obj("b"), bad, obj("c")), listed(bad)
    async with client_of(*pages) as client:
        maps = client.api(kind, namespace)
        found = await maps.list(on_undecodable=reported.append)
        with pytest.raises(UnexpectedResponseError, match="the server sent a ConfigMap"):
            await maps.list()
    assert [each.name for each in found] == ["b", "c"]
    (report,) = reported
    assert repr(named) in str(report.error) if named else "without a name" in str(report.error)
    assert report.key == ("y/a" if named == "y" else "X/a" if named == "X" else "")


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(("bad", "named", "namespace"), REFUSED)
async def test_an_event_is_refused_and_the_others_are_received(
    bad: dict[str, Any], named: str, namespace: str | None, type_: str
) -> None:
    reported: list[Undecodable] = []
    replies = watched(obj("b"), bad, obj("c"), type_=type_), watched(bad, type_=type_)
    async with client_of(*replies) as client:
        maps = client.api(ConfigMap, namespace)
        async with maps.watch(on_undecodable=reported.append) as events:
            assert [event.object.name async for event in events] == ["b", "c"]
        async with maps.watch() as events:
            with pytest.raises(DecodeError, match="the server sent a ConfigMap"):
                await events.__anext__()
    (report,) = reported
    assert (report.event_type, "/" in report.key) == (type_, named in ("y", "X"))


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
        async with client_of(listed(*objects, kind=kind.__resource__.kind), watched(*objects)) as client:
            api: Any = client.api(kind, api_namespace)
            assert [each.name for each in await api.list()] == [each["metadata"]["name"] for each in objects]
            async with api.watch() as events:
                assert len([event async for event in events]) == len(objects)


async def test_a_bookmark_needs_no_name() -> None:
    bookmark = {"kind": "ConfigMap", "metadata": {"resourceVersion": "9", "namespace": "y/z"}}
    async with client_of(watched(bookmark, type_="BOOKMARK")) as client, client.api(ConfigMap, "x").watch() as events:
        assert (await events.__anext__()).object.resource_version == "9"


# --- single objects ---

OTHERS = [obj("b"), obj("a", "y"), obj(""), obj(None), obj("A"), obj("a/"), obj("x/a", None)]
CONFIG_MAP = ConfigMap(metadata=ObjectMeta(name="a"))


@pytest.mark.parametrize("body", OTHERS)
async def test_the_response_about_another_object_is_unexpected(body: dict[str, Any]) -> None:
    async with client_of(*(response(200, json.dumps(body)) for _ in range(9))) as client:
        maps = client.api(ConfigMap, "x")
        for call in (
            lambda: maps.get("a"),
            lambda: client.api(metadata_kind(ConfigMap), "x").get("a"),
            lambda: maps.get("a", subresource="status"),
            lambda: maps.get("a", subresource="other"),
            lambda: maps.create(CONFIG_MAP),
            lambda: maps.replace(CONFIG_MAP),
            lambda: maps.replace_status(CONFIG_MAP),
            lambda: maps.patch("a", {}),
            lambda: maps.delete("a"),
        ):
            with pytest.raises(UnexpectedResponseError, match=r"another object, '|an object without a name"):
                await call()


@pytest.mark.parametrize("body", [obj("b"), obj("a", "y")])
async def test_the_scale_of_another_object_is_unexpected(body: dict[str, Any]) -> None:
    scale = json.dumps({**body, "kind": "Scale", "apiVersion": "autoscaling/v1"})
    async with client_of(response(200, scale), response(200, scale)) as client:
        deployments = client.api(Deployment, "x")
        with pytest.raises(UnexpectedResponseError, match="another object"):
            await deployments.get("a", subresource="scale")
        with pytest.raises(UnexpectedResponseError, match="another object"):
            await deployments.patch("a", {}, subresource="scale")


@pytest.mark.parametrize("name", ["a-x7f2k", "b", "a"])
async def test_the_server_chooses_the_name_for_a_generate_name(name: str) -> None:
    async with client_of(response(201, json.dumps(obj(name)))) as client:
        made = await client.api(ConfigMap, "x").create(ConfigMap(metadata=ObjectMeta(generate_name="a-")))
        assert made.name == name


@pytest.mark.parametrize("name", ["", "a/b", "..", "%"])
async def test_a_name_that_the_server_chose_must_be_one(name: str) -> None:
    async with client_of(response(201, json.dumps(obj(name)))) as client:
        with pytest.raises(UnexpectedResponseError):
            await client.api(ConfigMap, "x").create(ConfigMap(metadata=ObjectMeta(generate_name="a-")))


async def test_what_is_not_stored_needs_no_name() -> None:
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}}
    replies = (
        response(201, json.dumps(review)),
        response(201, json.dumps(review)),
        response(201, '{"kind":"ConfigMap","metadata":{}}'),
    )
    async with client_of(*replies) as client:
        assert (await client.api(TokenReview).create(TokenReview())).name == ""
        assert (await client.api(TokenReview).create(TokenReview(metadata=ObjectMeta(name="a")))).name == ""
        assert (await client.api(ConfigMap, "x").create(ConfigMap())).name == ""


@pytest.mark.parametrize("metadata", [{}, {"name": "robot", "namespace": "x"}, {"creationTimestamp": None}])
async def test_a_token_has_the_name_of_its_account_or_none(metadata: dict[str, Any]) -> None:
    body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata}
    async with client_of(response(201, json.dumps(body))) as client:
        accounts = client.api(ServiceAccount, "x")
        assert type(await accounts.create_subresource("robot", "token", TokenRequest())) is TokenRequest
