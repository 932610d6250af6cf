"""Objects that cannot be decoded: each is reported, and the others are handled."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import attrs
import pytest
import trio

from tests.support.levels import TOO_MANY_LEVELS
from tests.support.scripted_http import InMemory, Step, response
from tests.support.undecodable import Reported, check_list, check_watch
from trioformer._util import Slices
from trioformer.client import Api, Undecodable, open_client
from trioformer.client.bodies._undecodable import undecodable_frame, undecodable_item
from trioformer.errors import DecodeError, ExpiredError, LimitExceededError, StatusError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, ResourceInfo
from trioformer.models.core_v1 import Event, Pod


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
    replies = [response(200, *([body] if isinstance(body, bytes) else body)) for body in bodies]
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory([*replies])) as client:
        yield client.api(kind, "shop")


ODD_OBJECTS = [
    (b"{}", "", "metadata"),
    (b'{"metadata":{"namespace":"shop"}}', "", "a Pod without a name"),
    (b'{"metadata":{"name":7,"namespace":"shop"}}', "", "name"),
    (
        b'{"spec":%s1%s,"metadata":{"name":"a"}}'
        % (b'{"metadata":{"name":"b"},"a":' * 1_000 + b'{"a":' * TOO_MANY_LEVELS, b"}" * (TOO_MANY_LEVELS + 1_000)),
        "a",
        "too many levels",
    ),
    (b'{"metadata":{"name":"a","namespace":"shop","uid":7}}', "shop/a", "uid"),
    (b'{"metadata":{"name":"\xff"}}', "", "UTF-8"),
    (
        b'{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","namespace":"shop"}}',
        "shop/a",
        "a Service, not a Pod",
    ),
    (b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}', "", "a Table, not a Pod"),
]


async def test_an_undecodable_item_is_reported_and_the_others_are_listed() -> None:
    for raw, key, text in ODD_OBJECTS:
        body = listing(compact(body_of("before")), raw, compact(body_of("after")))
        reported = await check_list(api_over(body, body), raw, key, text)
        assert text in str(reported[0].error)


async def test_an_undecodable_frame_is_reported_and_the_watch_continues() -> None:
    for raw, key, text in ODD_OBJECTS:
        frames = event(body_of("before")) + b'{"type":"MODIFIED","object":' + raw + b"}\n" + event(body_of("after"))
        reported = await check_watch(api_over(frames, frames), key, text)
        assert [one.raw for one in reported] == [raw]


async def test_kinds_have_the_right_article() -> None:
    ingress = compact(body_of(kind="Ingress"))
    for body, text in [
        (listing(ingress, kind="EventList"), "an Ingress, not an Event"),
        (listing(b'{"metadata":{"namespace":"shop"}}', kind="EventList"), "an Event without a name"),
        (compact({"kind": "EventList"}), "an EventList without items"),
    ]:
        async with api_over(body, kind=Event) as events:
            with pytest.raises(UnexpectedResponseError, match=text):
                await events.list()
    for body, text in [(ingress, "an Ingress, not an Event"), (b"[", "not an Event")]:
        async with api_over(body, kind=Event) as events:
            with pytest.raises(UnexpectedResponseError, match=text):
                await events.get("a")


async def test_other_tasks_run_while_the_key_of_an_object_is_searched() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await trio.lowlevel.checkpoint()

    item = b'{"spec":' + b"[{}," * 50_000 + b"1" + b"]" * 50_000 + b',"metadata":{"name":"a"}}'
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        assert (await undecodable_item("Pod", item, DecodeError("x"), Slices())).key == "a"
        in_item = ticks
        assert (await undecodable_frame("Pod", b'{"type":"ADDED","object":' + item + b"}", DecodeError("x"))).key == "a"
        nursery.cancel_scope.cancel()
    assert in_item > 5
    assert ticks > in_item + 5


async def test_each_undecodable_frame_of_a_chunk_lets_other_tasks_run() -> None:
    seen: list[int] = []
    reported: Reported = []

    async def tick() -> None:
        while True:
            seen.append(len(reported))
            await trio.lowlevel.checkpoint()

    async with api_over(b'{"type":"X"}\n' * 1_000) as pods, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        async with pods.watch(on_undecodable=reported.append) as events:
            assert [found async for found in events] == []
        nursery.cancel_scope.cancel()
    assert len(reported) == 1_000
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 2


NAMED = b'{"metadata":{"name":"a"}}'
SPACED = b'{"metadata":{"name":"a","namespace":"b"}}'


async def test_a_frame_that_is_not_an_event_is_reported_with_its_known_parts() -> None:
    for frame, raw, key, type_ in [
        (b"<html>", b"<html>", "", ""),
        (b'{"type":"ADDED"}', b'{"type":"ADDED"}', "", "ADDED"),
        (b'{"type":"ADDED","object":[' + NAMED + b"]}", b'{"type":"ADDED","object":[' + NAMED + b"]}", "", "ADDED"),
        (b'{"type":"RENAMED","object":' + NAMED + b"}", NAMED, "a", "RENAMED"),
        (b'{"type" : "RENAMED", "object" : ' + SPACED + b" }", SPACED, "b/a", "RENAMED"),
        (b"[" * 100_000, b"[" * 100_000, "", ""),
        (b'{"type":"ADDED","object":{"spec":{"a":"}}', b'{"spec":{"a":"}', "", "ADDED"),
    ]:
        reported: Reported = []
        async with (
            api_over(event(body_of("before")) + frame + b"\n" + event(body_of("after"))) as pods,
            pods.watch(on_undecodable=reported.append) as events,
        ):
            assert [found.object.name async for found in events] == ["before", "after"]
        assert [(one.key, one.raw, one.event_type) for one in reported] == [(key, raw, type_)]


async def test_the_repr_of_an_undecodable_object_omits_its_bytes() -> None:
    reported: Reported = []
    async with api_over(listing(b'{"secret":"password"}')) as pods:
        await pods.list(on_undecodable=reported.append)
    assert "<21 bytes>" in repr(reported[0])
    assert "password" not in repr(reported[0])


async def test_an_error_event_raises_whatever_it_contains() -> None:
    for frame, error in [
        (b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}', ExpiredError),
        (b'{"type":"ERROR","object":{}}', StatusError),
        (b'{"type":"ERROR"}', DecodeError),
        (b'{"type":"ERROR","object":{"kind":"Status"', DecodeError),
    ]:
        reported: Reported = []
        async with (
            api_over([event(body_of("before")) + frame + b"\n" + event(body_of("after")), None]) as pods,
            pods.watch(on_undecodable=reported.append) as events,
        ):
            assert [found.object.name for found in await events.receive_batch()] == ["before"]
            for _ in range(2):
                with pytest.raises(error):
                    await events.receive_batch()
        assert reported == []


async def test_an_undecodable_frame_keeps_its_place_among_the_others() -> None:
    seen: list[str] = []
    bad = [b'{"type":"ADDED","object":{"metadata":{"name":"%s","uid":1}}}\n' % name for name in (b"b", b"c", b"e")]
    frames = event(body_of("a")) + bad[0] + bad[1] + event(body_of("d")) + bad[2]
    async with api_over(frames) as pods, pods.watch(on_undecodable=lambda found: seen.append(found.key)) as events:
        for _ in range(4):
            seen += [found.object.name for found in await events.receive_batch()]
    assert seen == ["a", "b", "c", "d", "e"]


POD = {"metadata": {"name": "a", "namespace": "shop"}}
LARGE = b'{"type":"MODIFIED","object":{"metadata":{"name":"b","namespace":"shop","resourceVersion":"8"},"a":"%s"}}\n'


async def test_a_frame_over_the_limit_ends_the_watch_after_the_events_before_it() -> None:
    for is_cut in [True, False]:
        for handler in [True, False]:
            reported: Reported = []
            large = LARGE % (b"x" * 17_000_000)
            bad = b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":1}}}\n'
            steps = [event(POD) + bad * handler + large[: -1 if is_cut else None], *([None] if is_cut else [])]
            async with (
                api_over(steps) as pods,
                pods.watch(on_undecodable=reported.append if handler else None) as events,
            ):
                assert len(await events.receive_batch()) == 1
                if handler:
                    assert await events.receive_batch() == []
                for _ in range(2):
                    with pytest.raises(
                        LimitExceededError, match=r"^watch pods in namespace shop: an event is too large"
                    ) as caught:
                        await events.receive_batch()
            assert caught.value.limit == "object_bytes"
            assert [found.key for found in reported] == ["a"] * handler


async def test_two_tasks_cannot_receive_while_an_undecodable_frame_is_read() -> None:
    long = b'{"type":"ADDED","object":{"spec":[' + b"{}," * 50_000 + b"{}]"  # its key is searched in slices
    frames = [long + b',"metadata":{"name":"b%d","namespace":"shop","uid":7}}}\n' % number for number in range(2)]
    reported: Reported = []
    busy = 0
    async with api_over(b"".join(frames) + event(POD)) as pods, pods.watch(on_undecodable=reported.append) as events:

        async def receive() -> None:
            nonlocal busy
            try:
                for _ in range(2):
                    await events.receive_batch()
            except trio.BusyResourceError:
                busy += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            nursery.start_soon(receive)
    assert busy == 1
    assert [found.key for found in reported] == ["shop/b0", "shop/b1"]


async def test_bookmarks_need_no_name() -> None:
    reported: Reported = []
    frame = event({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}, "BOOKMARK")
    async with api_over(frame) as pods, pods.watch(on_undecodable=reported.append) as events:
        (found,) = await events.receive_batch()
    assert (found.type, found.object.resource_version, reported) == ("BOOKMARK", "9", [])


async def test_an_exception_of_the_handler_is_raised_after_earlier_events() -> None:
    def fail(found: Undecodable) -> None:
        raise KeyError(found.key)

    bad = b'{"type":"ADDED","object":{"metadata":{"name":"b","uid":1}}}\n'
    async with (
        api_over([event(body_of("a")) + bad + event(body_of("c")), None]) as pods,
        pods.watch(on_undecodable=fail) as events,
    ):
        assert [found.object.name for found in await events.receive_batch()] == ["a"]
        for _ in range(2):
            with pytest.raises(KeyError, match="b"):
                await events.receive_batch()


async def test_an_exception_of_the_handler_ends_a_list() -> None:
    def fail(found: Undecodable) -> None:
        raise KeyError(found.key)

    async with api_over(listing(b"{}")) as pods:
        with pytest.raises(KeyError):
            await pods.list(on_undecodable=fail)


async def test_a_list_of_another_kind_raises_despite_a_handler() -> None:
    for body, text in [
        (b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}', "the server sent a Table"),
        (b"<title>Sign in</title>", "something that is not JSON"),
        (listing(kind="ServiceList"), "expected a list of Pod, but the server sent a ServiceList"),
        (listing(b'{"metadata":{"name":"a"}}', b'{"metadata":{"na}]'), "is incomplete"),
    ]:
        reported: Reported = []
        async with api_over(body) as pods:
            with pytest.raises(UnexpectedResponseError, match=text):
                await pods.list(on_undecodable=reported.append)
        assert reported == []


async def test_a_list_of_a_custom_kind_may_have_any_name() -> None:
    item = compact({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    bare = b'{"metadata":{"name":"w"}}'
    listings = (listing(*items, kind="Widgets", api_version="example.com/v1") for items in ([item], [], [bare]))
    async with api_over(*listings, kind=Widget) as widgets:
        assert [widget.name for widget in await widgets.list()] == ["w"]
        assert len(await widgets.list()) == 0
        with pytest.raises(UnexpectedResponseError, match="expected a list of Widget, but the server sent a Widgets"):
            await widgets.list()
