"""Discovery, unstructured kinds, and metadata kinds."""

from __future__ import annotations

import json
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.clients import client_of
from tests.support.raw_requests import PODS, WIDGET, pod, watching
from tests.support.scripted_http import response
from trioformer.client import Client
from trioformer.errors import (
    DecodeError,
    LimitExceededError,
    NotFoundError,
    UnexpectedResponseError,
)
from trioformer.models import (
    ObjectMeta,
    Quantity,
    Unstructured,
    encode,
    from_dict,
    from_json,
    key_of,
    metadata_kind,
    resource_of,
    to_dict,
    unstructured_kind,
)
from trioformer.models._internal import encode_for_server, make_object
from trioformer.models.core_v1 import Container, Pod
from trioformer.testing import APIServer

Widget = unstructured_kind(WIDGET)
PodMetadata = metadata_kind(Pod)

AS_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


# --- Unstructured: reading --------------------------------------------------------------------------------------------


def test_members_have_the_names_of_the_json() -> None:
    found = from_dict(Widget, widget(size=3, parts=[{"color": "red"}], ratio=0.5, on=True, none=None))
    assert found["spec"]["size"] == 3
    assert found["spec"]["parts"][0]["color"] == "red"
    assert found["spec"] == {"size": 3, "parts": ({"color": "red"},), "ratio": 0.5, "on": True, "none": None}
    assert found["apiVersion"] == found.api_version == "example.com/v1"
    assert found["metadata"]["name"] == found.metadata.name == found.name == "w"
    assert found["spec"] is found["spec"]


def test_an_object_is_a_mapping_of_its_top_level() -> None:
    found = from_dict(Widget, widget(size=3))
    assert list(found) == list(found.keys()) == ["apiVersion", "kind", "metadata", "spec"]
    assert len(found) == 4
    assert "spec" in found
    assert "status" not in found
    assert 7 not in found
    assert found.get("spec") == {"size": 3}
    assert found.get("status") is None
    assert found.get("status", {}).get("phase", "Pending") == "Pending"
    assert dict(found) == to_dict(found)
    with pytest.raises(KeyError, match="status"):
        found["status"]


def test_an_item_without_kind_and_api_version_has_those_of_its_class() -> None:
    found = from_json(unstructured_kind(resource_of(Pod)), b'{"metadata":{"name":"a"}}')
    assert (found["kind"], found["apiVersion"], found.kind) == ("Pod", "v1", "Pod")
    assert list(found) == ["apiVersion", "kind", "metadata"]
    assert len(found) == 3
    assert encode(found) == b'{"metadata":{"name":"a"}}'
    assert json.loads(encode_for_server(found))["kind"] == "Pod"


def test_an_object_is_immutable() -> None:
    found: Any = from_dict(Widget, widget(parts=[{"color": "red"}]))
    with pytest.raises(TypeError):
        found["spec"] = {}
    with pytest.raises(TypeError):
        del found["spec"]
    with pytest.raises(TypeError):
        found["spec"]["size"] = 4
    with pytest.raises(TypeError):
        found["spec"]["parts"][0]["color"] = "blue"
    with pytest.raises(AttributeError):
        found["spec"]["parts"].append(1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        found.metadata = ObjectMeta()
    with pytest.raises(AttributeError):
        found.spec = {}


def test_an_unchanged_object_encodes_to_its_bytes() -> None:
    for raw in [
        b'{"metadata" : {"name":"w"}, "spec":{"n":1.0,"big":123456789012345678901234567890}}',
        b'{"spec":{},"metadata":{"name":"w","labels":{}},"kind":"Widget","apiVersion":"example.com/v1"}',
    ]:
        found = make_object(Widget, raw)
        assert found["spec"] is not None
        assert found.metadata.name == "w"
        assert encode(found) == raw


def test_a_member_that_is_not_read_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = make_object(Widget, b'{"metadata":{"name":"w"},"spec":{"size":3},"status":"\xff"}')
    assert found["spec"]["size"] == 3
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"^cannot decode Widget\['status'\]: .*UTF-8"):
            found["status"]
        with pytest.raises(DecodeError):
            found.get("status")


# --- Unstructured: building and changing ------------------------------------------------------------------------------


def test_an_object_is_built_from_a_mapping() -> None:
    made = Widget.of(
        {"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"memory": Quantity("1Gi"), "n": (1, 2)}}
    )
    assert to_dict(made) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "labels": {"a": "b"}},
        "spec": {"memory": "1Gi", "n": [1, 2]},
    }
    assert key_of(made) == "w"
    assert Widget.of(to_dict(made)) == made
    assert Widget.of(made) == made  # type: ignore[arg-type]  # keys() and [] are enough
    typed = Widget.of({"metadata": ObjectMeta(generate_name="w-"), "spec": {"template": Container(name="c")}})
    assert to_dict(typed)["spec"] == {"template": {"name": "c"}}


def test_a_mapping_that_is_not_an_object_of_the_kind_raises() -> None:
    for mapping, text in [
        ({"apiVersion": "example.com/v2", "metadata": {"name": "w"}}, "a example.com/v2 Widget, not a example.com/v1"),
        ({"kind": "Gadget", "metadata": {"name": "w"}}, "a example.com/v1 Gadget, not a example.com/v1 Widget"),
        ({"kind": 7, "metadata": {"name": "w"}}, "kind"),
        ({}, "neither a name nor a generateName"),
        ({"metadata": {"labels": {}}}, "neither a name nor a generateName"),
        ({"metadata": "w"}, r"Widget\.metadata: .*`str`"),
        ({"metadata": ["w"]}, r"Widget\.metadata: .*`array`"),
        ({"metadata": {"name": 7}}, "ObjectMeta.name"),
        ({"metadata": {"name": "w", "labels": {"a": 1}}}, "ObjectMeta.labels"),
        ({"metadata": {"name": "w", "creationTimestamp": "yesterday"}}, "ObjectMeta.creation_timestamp"),
        ({"metadata": {"name": "w"}, "spec": object()}, "object"),
    ]:
        with pytest.raises(DecodeError, match=text):
            Widget.of(mapping)


def test_merge_returns_a_changed_copy() -> None:
    old = from_json(
        Widget,
        b'{"metadata":{"name":"w","labels":{"a":"b","c":"d"}},"spec":{"size":3,"deep":{"n":1.00,"m":2},"list":[1,2]}}',
    )
    new = old.merge(
        {"metadata": {"labels": {"a": None}}, "spec": {"deep": {"m": 5}, "list": [3]}, "status": {"on": True}}
    )
    assert encode(new) == (
        b'{"metadata":{"name":"w","labels":{"c":"d"}},"spec":{"size":3,"deep":{"n":1.00,"m":5},"list":[3]},'
        b'"status":{"on":true}}'
    )
    assert type(new) is Widget
    assert old["spec"]["list"] == (1, 2)
    assert new.metadata.labels == {"c": "d"}


def test_a_patch_whose_result_is_not_an_object_of_the_kind_raises() -> None:
    for patch in [
        {"kind": "Gadget"},
        {"metadata": {"name": None}},
        {"metadata": None},
        {"metadata": {"labels": {"a": 1}}},
    ]:
        with pytest.raises(DecodeError):
            from_dict(Widget, widget()).merge(patch)


# --- kinds ------------------------------------------------------------------------------------------------------------


def test_there_is_one_class_for_each_resource() -> None:
    assert unstructured_kind(WIDGET) is Widget
    assert unstructured_kind("apps/v1", "Foo", plural="foos", namespaced=True) is unstructured_kind(
        "apps/v1", "Foo", plural="foos", namespaced=True
    )
    assert metadata_kind(Pod) is PodMetadata
    assert metadata_kind(resource_of(Pod)) is PodMetadata
    assert metadata_kind(PodMetadata) is PodMetadata
    assert metadata_kind(Pod, managed_fields=True) is metadata_kind(Pod, managed_fields=True) is not PodMetadata
    assert metadata_kind(Widget) is metadata_kind(WIDGET)
    assert (Widget.__name__, PodMetadata.__name__) == ("Widget", "PodMetadata")


def test_unstructured_kind_accepts_the_parts_of_a_resource() -> None:
    nodes = unstructured_kind("v1", "Node", plural="nodes", namespaced=False)
    assert resource_of(nodes).path(name="a") == "/api/v1/nodes/a"
    foos = unstructured_kind("a.b/v1beta1", "Foo", plural="foos", namespaced=True)
    assert resource_of(foos).path(namespace="x") == "/apis/a.b/v1beta1/namespaces/x/foos"
    for api_version, kind, plural in (
        ("", "Foo", "foos"),
        ("a/", "Foo", "foos"),
        ("v1", "", "foos"),
        ("v1", "Foo", ""),
    ):
        with pytest.raises(ValueError, match="a kind must have a version, a name and a plural"):
            unstructured_kind(api_version, kind, plural=plural, namespaced=True)


# --- Unstructured: through a client -----------------------------------------------------------------------------------


def test_a_model_that_would_be_merged_into_an_object_is_refused() -> None:
    obj = from_dict(Widget, widget(a="b"))
    with pytest.raises(TypeError, match="metadata must be a mapping, not an ObjectMeta; pass a mapping with None"):
        obj.merge({"metadata": ObjectMeta(labels={"a": "b"})})


async def test_unstructured_objects_are_written_read_and_watched(api_server: APIServer, client: Client) -> None:
    api_server.register(WIDGET)
    widgets = client.api(Widget, namespace="default")
    made = await widgets.create(Widget.of(widget(size=3)))
    assert made["spec"]["size"] == 3
    assert made.uid
    changed = await widgets.replace(made.merge({"spec": {"size": 4}}))
    assert (await widgets.get("w"))["spec"] == changed["spec"] == {"size": 4}
    assert (await widgets.patch("w", {"spec": {"color": "red"}}))["spec"] == {"size": 4, "color": "red"}
    newest = await widgets.get("w")
    replaced = await widgets.replace_status(newest.merge({"spec": {"size": 9}, "status": {"on": True}}))
    assert (replaced["spec"]["size"], replaced["status"]) == (4, {"on": True})
    listing = await widgets.list()
    assert [one["spec"]["color"] for one in listing] == ["red"]
    async with widgets.watch(resource_version=listing.resource_version, timeout_seconds=1) as events:
        await widgets.delete("w")
        event = await anext(events)
    assert (event.type, event.object["status"], type(event.object)) == ("DELETED", {"on": True}, Widget)


# --- discovery --------------------------------------------------------------------------------------------------------


async def test_a_kind_is_discovered_with_one_request(api_server: APIServer, client: Client) -> None:
    api_server.register(attrs.evolve(WIDGET, short_names=("wd",), categories=("all",)))
    found = await client.discover("example.com/v1", "Widget")
    resource = resource_of(found)
    assert issubclass(found, Unstructured)
    assert (resource.plural, resource.namespaced, resource.subresources) == ("widgets", True, ("status",))
    assert (resource.short_names, resource.categories, resource.singular) == (("wd",), ("all",), "widget")
    assert [request.path for request in api_server.requests] == ["/apis/example.com/v1"]
    assert await client.discover("example.com/v1", "Widget") is found
    assert len(api_server.requests) == 2  # the result is not cached
    nodes = resource_of(await client.discover("v1", "Node"))
    assert (nodes.path(), nodes.namespaced) == ("/api/v1/nodes", False)


async def test_discovery_of_an_unknown_kind_names_similar_ones(client: Client) -> None:
    for api_version, kind, text in [
        (
            "apps/v1",
            "Deploymnt",
            r"discover Deploymnt of apps/v1: apps/v1 has no kind Deploymnt: did you mean Deployment\?",
        ),
        ("apps/v1", "deployment", r"has no kind deployment: did you mean Deployment\?"),
        (
            "apps/v1",
            "Scale",
            "has no kind Scale: it has ControllerRevision, DaemonSet, Deployment, ReplicaSet, Stateful",
        ),
        ("apps/v9", "Deployment", "discover Deployment of apps/v9: the server does not serve apps/v9"),
        ("v9", "Pod", "the server does not serve v9"),
    ]:
        with pytest.raises(NotFoundError, match=text):
            await client.discover(api_version, kind)


async def test_a_response_that_is_not_a_resource_list_is_unexpected() -> None:
    for body in ["", "<html>", "[]", "{}", '{"resources":{}}']:
        async with client_of(response(200, body)) as (client, _):
            text = r"^unexpected response \(HTTP 200\) to discover Thing of a/v1: not a resource list: "
            with pytest.raises(UnexpectedResponseError, match=text):
                await client.discover("a/v1", "Thing")


# --- metadata kinds ---------------------------------------------------------------------------------------------------


async def test_metadata_is_read_listed_and_watched(api_server: APIServer, client: Client) -> None:
    api_server.create(pod("a", labels={"app": "web"}))
    pods = client.api(PodMetadata, namespace="default")
    one = await pods.get("a")
    listing = await pods.list(label_selector="app=web")
    async with pods.watch(resource_version=listing.resource_version, allow_bookmarks=True) as events:
        api_server.create(pod("b"))
        event = await anext(events)
    for found in (one, *listing, event.object):
        assert type(found) is PodMetadata
        assert (found.kind, found.api_version) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert list(to_dict(found)) == ["kind", "apiVersion", "metadata"]
        assert found.metadata.creation_timestamp is not None
    assert one.metadata.labels == {"app": "web"}
    assert (event.type, event.object.name) == ("ADDED", "b")
    assert resource_of(PodMetadata) == resource_of(Pod)
    assert repr(one) == f"<metadata of Pod default/a at {one.resource_version}>"
    assert [request.path for request in api_server.requests] == [f"{PODS}/a", PODS, PODS]


async def test_metadata_cannot_be_written_as_an_object() -> None:
    async with client_of() as (client, transport):
        pods = client.api(PodMetadata, namespace="shop")
        obj = PodMetadata(metadata=ObjectMeta(name="a"))
        for write in (pods.create, pods.replace, pods.replace_status):
            with pytest.raises(
                TypeError, match=r"metadata of Pod a> contains only metadata, .*patch it, or use the API of Pod"
            ):
                await write(obj)
    assert transport.requests == []


COMPLETE = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "managedFields": [{"manager": "m"}]},
    "spec": {"x": 1},
}


async def test_complete_objects_are_reduced_to_their_metadata() -> None:
    for managed_fields, drop_managed_fields in [(False, False), (True, False), (True, True)]:
        item = json.dumps({"metadata": COMPLETE["metadata"], "spec": {"x": 1}})
        listed = f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{item}]}}'
        event = json.dumps({"type": "ADDED", "object": COMPLETE}) + "\n"
        replies = response(200, listed), response(200, event), response(200, json.dumps(COMPLETE))
        async with client_of(*replies) as (client, _):
            pods = client.api(
                metadata_kind(Pod, managed_fields=managed_fields), "shop", drop_managed_fields=drop_managed_fields
            )
            (listed_one,) = await pods.list()
            async with pods.watch() as events:
                watched = (await anext(events)).object
            got = await pods.get("a")
        for found in (listed_one, watched, got):
            assert to_dict(found).keys() == {"kind", "apiVersion", "metadata"}
            assert found.kind == "PartialObjectMetadata"
            assert found.name == "a"
        assert bool(got.metadata.managed_fields) == managed_fields
        for found in (listed_one, watched):  # drop_managed_fields is for lists and watches, as for complete objects
            assert bool(found.metadata.managed_fields) == (managed_fields and not drop_managed_fields)


# --- the embedded server ----------------------------------------------------------------------------------------------


async def test_the_embedded_server_sends_metadata_in_a_watch_and_its_bookmarks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = APIServer()
    server.create(pod("a"))
    query = {"allowWatchBookmarks": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with watching(server, PODS, accept=AS_METADATA, timeoutSeconds=9, **query) as reader:
            events = await reader.rest()
        nursery.cancel_scope.cancel()
    assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]  # the last one is before the end
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    for _, obj in events:
        assert (obj["kind"], obj["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert obj.keys() == {"kind", "apiVersion", "metadata"}


def resource_list(count: int, **members: object) -> httpx.Response:
    entries = [{"name": f"widgets{i}", "kind": f"Widget{i}", "verbs": ["list"], **members} for i in range(count)]
    return response(200, json.dumps({"kind": "APIResourceList", "resources": entries}))


async def test_discovery_has_limits() -> None:
    unusual = b'{"resources":[%s{"name":"widgets","kind":"Widget","a":"%s"}]}' % (b"[],7,{}," * 1_000, b"x" * 100_000)
    replies = (
        resource_list(20_000),
        resource_list(5_000, note="x" * 4_000),
        response(200, unusual),
        resource_list(3_000),
    )
    async with client_of(*replies) as (client, _):
        with pytest.raises(UnexpectedResponseError, match="a resource list of more than 10000 resources"):
            await client.discover("example.com/v1", "Widget0")
        with pytest.raises(LimitExceededError) as caught:
            await client.discover("example.com/v1", "Widget0")
        with pytest.raises(NotFoundError):
            await client.discover("example.com/v1", "Widget")
        assert (await client.discover("example.com/v1", "Widget2999")).__resource__.plural == "widgets2999"
    assert caught.value.limit == "object_bytes"
