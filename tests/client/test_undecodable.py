"""Objects that do not decode: told of one by one, while everything else goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import attrs
import pytest
import trio

from tests.support.scripted_http import InMemory, Step, answer
from trioformer.client import Api, Undecodable, open_client
from trioformer.errors import DecodeError, ExpiredError, StatusError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, ResourceInfo
from trioformer.models.core_v1 import Pod

Reported = list[Undecodable]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Widget(KubernetesObject):
    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True
    )


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def body_of(name: str = "a", kind: str = "Pod", **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "namespace": "shop", **metadata}}


def event(obj: object, type_: str = "ADDED") -> bytes:
    return compact({"type": type_, "object": obj}) + b"\n"


def listing(*items: bytes, kind: str = "PodList", api_version: str = "v1") -> bytes:
    head = compact({"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": "7"}})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


@asynccontextmanager
async def api_over(*bodies: bytes | list[Step], kind: type[KubernetesObject] = Pod) -> AsyncIterator[Api[Any]]:
    replies = [answer(200, *([body] if isinstance(body, bytes) else body)) for body in bodies]
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory([*replies])) as client:
        yield client.api(kind, "shop")


ODD_OBJECTS = [
    pytest.param(b"{}", "", "metadata", id="no metadata"),
    pytest.param(b'{"metadata":null}', "", "metadata", id="metadata is null"),
    pytest.param(b'{"metadata":[]}', "", "metadata", id="metadata is no object"),
    pytest.param(b'{"metadata":{"namespace":"shop"}}', "", "a Pod without a name", id="no name"),
    pytest.param(b'{"metadata":{"name":""}}', "", "a Pod without a name", id="the name is empty"),
    pytest.param(b'{"metadata":{"name":7,"namespace":"shop"}}', "", "name", id="the name is a number"),
    pytest.param(b'{"metadata":{"name":["a"]}}', "", "name", id="the name is a list"),
    pytest.param(b'{"metadata":{"name":"a","namespace":{}}}', "", "namespace", id="the namespace is an object"),
    pytest.param(b'{"metadata":{"name":"a","namespace":null}}', "a", "namespace", id="the namespace is null"),
    pytest.param(b'{"metadata":{"name":"a","namespace":"shop","uid":7}}', "shop/a", "uid", id="the uid is a number"),
    pytest.param(b'{"metadata":{"name":"\xff"}}', "", "utf-8", id="the name is no text"),
    pytest.param(
        b'{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","namespace":"shop"}}',
        "shop/a",
        "a Service, not a Pod",
        id="another kind",
    ),
    pytest.param(
        b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}',
        "",
        "a Table, not a Pod",
        id="a Table",
    ),
]


@pytest.mark.parametrize(("raw", "key", "text"), ODD_OBJECTS)
async def test_an_item_that_does_not_decode_is_told_and_the_others_are_listed(raw: bytes, key: str, text: str) -> None:
    told: Reported = []
    body = listing(compact(body_of("before")), raw, compact(body_of("after")))
    async with api_over(body, body, body) as pods:
        for list_ in (pods.list, pods.list_page):
            found = await list_(on_undecodable=told.append)
            assert [pod.name for pod in found] == ["before", "after"]
            assert found.resource_version == "7"
        with pytest.raises(UnexpectedResponseError, match=text):
            await pods.list()
    assert [(one.kind, one.key, one.raw, one.event_type) for one in told] == [("Pod", key, raw, "")] * 2
    assert type(told[0].error) is DecodeError
    assert str(told[0].error).startswith("list pods in namespace shop: ")
    assert text in str(told[0].error)


@pytest.mark.parametrize(("raw", "key", "text"), ODD_OBJECTS)
async def test_a_frame_that_does_not_decode_is_told_and_the_watch_goes_on(raw: bytes, key: str, text: str) -> None:
    told: Reported = []
    frames = event(body_of("before")) + b'{"type":"MODIFIED","object":' + raw + b"}\n" + event(body_of("after"))
    async with api_over(frames, frames) as pods:
        async with pods.watch(on_undecodable=told.append) as events:
            assert [found.object.name async for found in events] == ["before", "after"]
        async with pods.watch() as events:
            assert [found.object.name for found in await events.receive_batch()] == ["before"]
            for _ in range(2):
                with pytest.raises(DecodeError, match=text):
                    await events.receive_batch()
    assert [(one.kind, one.key, one.raw, one.event_type) for one in told] == [("Pod", key, raw, "MODIFIED")]
    assert str(told[0].error).startswith("watch pods in namespace shop: ")


NAMED = b'{"metadata":{"name":"a"}}'
SPACED = b'{"metadata":{"name":"a","namespace":"b"}}'


@pytest.mark.parametrize(
    ("frame", "raw", "key", "type_"),
    [
        (b"<html>", b"<html>", "", ""),
        (b"7", b"7", "", ""),
        (b'{"type":"ADDED"}', b'{"type":"ADDED"}', "", "ADDED"),
        (b'{"type":"ADDED","object":null}', b'{"type":"ADDED","object":null}', "", "ADDED"),
        (b'{"type":"ADDED","object":' + NAMED, b'{"type":"ADDED","object":' + NAMED, "", "ADDED"),
        (b'{"type":"RENAMED","object":' + NAMED + b"}", NAMED, "a", "RENAMED"),
        (b'{"type":["ADDED"],"object":' + NAMED + b"}", NAMED, "a", ""),
        (b'{"object":' + SPACED + b"}", SPACED, "b/a", ""),
        (b"[" * 5_000, b"[" * 5_000, "", ""),
    ],
)
async def test_a_frame_that_is_no_event_is_told_with_what_can_be_found_in_it(
    frame: bytes, raw: bytes, key: str, type_: str
) -> None:
    told: Reported = []
    async with (
        api_over(event(body_of("before")) + frame + b"\n" + event(body_of("after"))) as pods,
        pods.watch(on_undecodable=told.append) as events,
    ):
        assert [found.object.name async for found in events] == ["before", "after"]
    assert [(one.key, one.raw, one.event_type) for one in told] == [(key, raw, type_)]


async def test_what_is_told_is_shown_without_its_bytes() -> None:
    told: Reported = []
    async with api_over(listing(b'{"secret":"password"}')) as pods:
        await pods.list(on_undecodable=told.append)
    assert "<21 bytes>" in repr(told[0])
    assert "password" not in repr(told[0])


async def test_frames_are_told_even_when_they_come_alone_and_in_pieces() -> None:
    told: Reported = []
    bad = b'{"type":"ADDED","object":{}}\n'
    async with (
        api_over([bad[:9], bad[9:], bad + bad[:5], bad[5:] + event(body_of("a"))]) as pods,
        pods.watch(on_undecodable=told.append) as events,
    ):
        assert [found.object.name for found in await events.receive_batch()] == ["a"]
        assert len(told) == 3
        with pytest.raises(trio.EndOfChannel):
            await events.receive_batch()


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}', ExpiredError),
        (b'{"type":"ERROR","object":{}}', StatusError),
        (b'{"type":"ERROR","object":null}', DecodeError),
        (b'{"type":"ERROR"}', DecodeError),
        (b'{"type":"ERROR","object":{"kind":"Status","message":"\xff"}}', DecodeError),
        (b'{"type":"ERROR","object":{"kind":"Status"', DecodeError),
    ],
)
async def test_an_error_event_is_an_error_whatever_it_holds(frame: bytes, error: type[Exception]) -> None:
    told: Reported = []
    async with (
        api_over([event(body_of("before")) + frame + b"\n" + event(body_of("after")), None]) as pods,
        pods.watch(on_undecodable=told.append) as events,
    ):
        assert [found.object.name for found in await events.receive_batch()] == ["before"]
        for _ in range(2):
            with pytest.raises(error):
                await events.receive_batch()
    assert told == []


async def test_a_frame_over_the_limit_is_an_error_with_or_without_a_callback() -> None:
    told: Reported = []
    async with (
        api_over([b'{"type":"ADDED","object":"', *[b"x" * 1_000_000] * 17, None]) as pods,
        pods.watch(on_undecodable=told.append) as events,
    ):
        with pytest.raises(DecodeError, match=r"^watch pods in namespace shop: a watch event is longer"):
            await events.receive_batch()
    assert told == []


async def test_bookmarks_need_no_name() -> None:
    told: Reported = []
    frame = event({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}, "BOOKMARK")
    async with api_over(frame) as pods, pods.watch(on_undecodable=told.append) as events:
        (found,) = await events.receive_batch()
    assert (found.type, found.object.resource_version, told) == ("BOOKMARK", "9", [])


@pytest.mark.parametrize(
    "raw",
    [
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}',
        b'{ "kind" : "Pod", "metadata" : {"name":"a"}}',
        b'{"metadata":{"name":"a"},"kind":"Pod"}',
        b'{"metadata":{"name":"a"}}',
        b'{"kind":"","metadata":{"name":"a"}}',
        b'{"kind":null,"metadata":{"name":"a"}}',
    ],
)
async def test_a_kind_may_be_spelled_in_any_way_or_be_left_out(raw: bytes) -> None:
    frames = b'{"type":"ADDED","object":' + raw + b"}\n"
    async with api_over(frames, listing(raw)) as pods:
        async with pods.watch() as events:
            assert [found.object.name async for found in events] == ["a"]
        assert [pod.name for pod in await pods.list()] == ["a"]


async def test_what_a_callback_raises_comes_after_the_events_before_it_and_again() -> None:
    def refuse(found: Undecodable) -> None:
        raise KeyError(found.key)

    bad = b'{"type":"ADDED","object":{"metadata":{"name":"b","uid":1}}}\n'
    async with (
        api_over([event(body_of("a")) + bad + event(body_of("c")), None]) as pods,
        pods.watch(on_undecodable=refuse) as events,
    ):
        assert [found.object.name for found in await events.receive_batch()] == ["a"]
        for _ in range(2):
            with pytest.raises(KeyError, match="b"):
                await events.receive_batch()


async def test_what_a_callback_raises_ends_a_list() -> None:
    def refuse(found: Undecodable) -> None:
        raise KeyError(found.key)

    async with api_over(listing(b"{}")) as pods:
        with pytest.raises(KeyError):
            await pods.list(on_undecodable=refuse)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}', "the server answered with a Table"),
        (b'{"kind":"Status","apiVersion":"v1","status":"Failure"}', "the server answered with a Status"),
        (b"<html>Sign in</html>", "the server answered with no JSON object: <html>Sign in|Sign in"),
        (listing(kind="ServiceList"), "the server answered with a ServiceList, not with a list of Pod"),
        (listing(b'{"metadata":{"name":"a"}}', kind="ServiceList"), "a ServiceList, not with a list of Pod"),
        (listing(kind="PodMetricsList", api_version="metrics.k8s.io/v1"), "a PodMetricsList, not with a list of Pod"),
        (listing(b'{"metadata":{"name":"a"}}', b'{"metadata":{"na}]'), "broke off"),
    ],
)
async def test_an_answer_that_is_no_list_of_the_kind_is_an_error_all_the_same(body: bytes, text: str) -> None:
    told: Reported = []
    async with api_over(body) as pods:
        with pytest.raises(UnexpectedResponseError, match=text):
            await pods.list(on_undecodable=told.append)
    assert told == []


async def test_a_list_of_a_custom_kind_may_have_any_name() -> None:
    item = compact({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    bare = b'{"metadata":{"name":"w"}}'
    listings = (listing(*items, kind="Widgets", api_version="example.com/v1") for items in ([item], [], [bare]))
    async with api_over(*listings, kind=Widget) as widgets:
        assert [widget.name for widget in await widgets.list()] == ["w"]
        assert len(await widgets.list()) == 0
        with pytest.raises(UnexpectedResponseError, match="a Widgets, not with a list of Widget"):
            await widgets.list()


async def test_managed_fields_are_cut_out_beside_what_does_not_decode() -> None:
    told: Reported = []
    managed = compact(body_of("a", managedFields=[{"manager": "me"}]))
    broken = b'{"metadata":{"name":7,"managedFields":[{"manager":"me"}]}}'
    carrier = InMemory([answer(200, listing(managed, broken))])
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=carrier) as client:
        pods = client.api(Pod, "shop", drop_managed_fields=True)
        (found,) = await pods.list(on_undecodable=told.append)
    assert found.metadata.managed_fields == ()
    assert [one.raw for one in told] == [broken]
