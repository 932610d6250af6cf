"""Lists and watches in protobuf with damage: it is reported by key, or raised where it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.scripted_http import InMemory, Step, response
from tests.support.undecodable import Reported, check_list, check_watch
from trioformer.client import Api, open_client
from trioformer.errors import (
    DecodeError,
    ExpiredError,
    ForbiddenError,
    LimitExceededError,
    NotFoundError,
    StatusError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models._internal import envelope_of, event_of, object_of, open_envelope, tagged
from trioformer.models.core_v1 import Pod

PROTOBUF = "application/vnd.kubernetes.protobuf"


def message(name: str = "a", **more: object) -> bytes:
    found = object_of(
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "shop", "uid": "u"}, **more}
    )
    assert found is not None
    return open_envelope(found)[2]


def listing(*items: bytes, kind: str = "PodList", meta: bytes = tagged(2, b"7")) -> bytes:
    return envelope_of("v1", kind, tagged(1, meta) + b"".join(tagged(2, item) for item in items))


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def event(item: bytes, type_: str = "ADDED", *, kind: str = "Pod") -> bytes:
    return framed(event_of(type_, envelope_of("v1", kind, item)))


def status(**members: object) -> bytes:
    found = object_of({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **members})
    assert found is not None
    return found


@asynccontextmanager
async def api_over(
    *bodies: bytes | list[Step], code: int = 200, content_type: str = PROTOBUF
) -> AsyncIterator[Api[Pod]]:
    replies: list[Any] = [
        response(code, *([body] if isinstance(body, bytes) else body), content_type=content_type) for body in bodies
    ]
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory(replies)) as client:
        yield client.api(Pod, "shop")


META = tagged(1, b"a") + tagged(3, b"shop") + tagged(6, b"9")
DAMAGED = [
    (b"", "", "does not begin|longer than its message"),
    (tagged(1, b""), "", "a Pod without a name"),
    (tagged(1, tagged(3, b"shop")), "", "a Pod without a name"),
    (tagged(1, META) + b"\x12\x7f", "shop/a", "longer than its message"),
    (tagged(1, META)[:-1], "shop/a", "longer than its message"),
    (tagged(1, META + b"\x7a\x7f"), "shop/a", "longer than its message"),
    (tagged(1, META + b"\x0f\x00"), "shop/a", "unknown wire type 7"),
    (tagged(1, META + b"\x43" + b"\xff" * 11), "shop/a", "unknown wire type 3"),
    (tagged(1, META + b"\x40" + b"\xff" * 11), "shop/a", "more than ten bytes"),
    (tagged(1, META) + b"\x16\x00", "shop/a", "unknown wire type 6"),
    (tagged(1, META) + b"\x10" + b"\xff" * 11, "shop/a", "more than ten bytes"),
    (tagged(1, META) + b"\x12" + b"\xff" * 9 + b"\x01", "shop/a", "longer than its message"),
    (tagged(1, META + b"\x7a" + b"\xff" * 9 + b"\x01"), "shop/a", "longer than its message"),
    (tagged(1, META + b"\x8a"), "shop/a", "longer than its message"),
    (tagged(1, META) + b"\x12", "shop/a", "longer than its message"),
    (tagged(1, tagged(1, b"s3cret\n") + b"\x7a\x7f"), "", "longer than its message"),
    (b"{}" + tagged(1, META), "", "does not begin with its metadata"),
]


async def test_a_damaged_item_is_reported_by_its_key_and_the_others_are_listed() -> None:
    for raw, key, text in DAMAGED:
        body = listing(message("before"), raw, message("after"))
        await check_list(api_over(body, body), raw, key, text)


async def test_a_damaged_frame_is_reported_by_its_key_and_the_watch_continues() -> None:
    for raw, key, text in DAMAGED:
        frames = event(message("before")) + event(raw, "MODIFIED") + event(message("after"))
        await check_watch(api_over(frames, frames, content_type=f"{PROTOBUF};stream=watch"), key, text)


async def test_the_version_of_a_damaged_item_is_reported() -> None:
    reported: Reported = []
    items = [tagged(1, META + tagged(6, version) + b"\x7a\x7f") for version in (b"10", b"s3cret: a")]
    async with api_over(listing(*items)) as pods:
        await pods.list(on_undecodable=reported.append)
    assert [found.resource_version for found in reported] == ["10", ""]


async def test_a_frame_that_is_not_an_event_is_reported_with_its_known_parts() -> None:
    pod = message("a")
    wrapped = tagged(2, tagged(1, envelope_of("v1", "Pod", pod)))
    for frame, key, type_, text in [
        (b"", "", "", "unknown type or no object"),
        (b"<html>", "", "", "unknown wire type|longer than its message"),
        (tagged(1, b"ADDED"), "", "ADDED", "no object"),
        (tagged(1, b"ADDED") + tagged(2, b""), "", "ADDED", "no object"),
        (tagged(1, b"ADDED") + tagged(2, tagged(1, pod)), "", "ADDED", "does not begin like Kubernetes protobuf"),
        (tagged(1, b"ADDED") + b"\x10\x01", "", "ADDED", "no object"),
        (tagged(1, b"RENAMED") + wrapped, "shop/a", "RENAMED", "unknown type"),
        (tagged(1, b"\xff") + wrapped, "shop/a", "", "unknown type"),
        (tagged(1, b"s3cret: a") + wrapped, "shop/a", "", "unknown type"),
        (b"\x08\x01" + wrapped, "", "", "unknown type"),
        (wrapped, "shop/a", "", "unknown type"),
        (tagged(1, b"ADDED") + wrapped[:-1], "", "", "longer than its message"),
    ]:
        reported: Reported = []
        body = event(message("before")) + framed(frame) + event(message("after"))
        async with api_over(body) as pods, pods.watch(on_undecodable=reported.append) as events:
            assert [found.object.name async for found in events] == ["before", "after"]
        assert [(one.key, one.event_type) for one in reported] == [(key, type_)]
        with pytest.raises(DecodeError, match=text):
            raise reported[0].error


async def test_an_event_may_be_written_in_another_form() -> None:
    pod = envelope_of("v1", "Pod", message("a"))
    other = tagged(9, b"later")
    for frame in (
        tagged(2, tagged(1, pod)) + tagged(1, b"ADDED"),
        tagged(1, b"ADDED") + tagged(2, other + tagged(1, pod)),
        tagged(1, b"ADDED") + tagged(2, tagged(1, pod + other)),
        tagged(1, b"ADDED") + tagged(2, tagged(1, pod[:-4])),
        tagged(1, b"ADDED") + tagged(2, tagged(1, pod)) + other,
    ):
        async with api_over(framed(frame)) as pods, pods.watch() as events:
            assert [(found.type, found.object.key) async for found in events] == [("ADDED", "shop/a")]


async def test_an_object_of_another_kind_is_not_delivered() -> None:
    for kind, text in [
        ("Secret", "the server sent a Secret, not a Pod"),
        ("Ingress", "the server sent an Ingress, not a Pod"),
        ("", "an object without a valid kind, not a Pod"),
        ("\x1b[2J", "an object without a valid kind, not a Pod"),
    ]:
        reported: Reported = []
        async with (
            api_over(event(message("b"), kind=kind) + event(message("a"))) as pods,
            pods.watch(on_undecodable=reported.append) as events,
        ):
            assert [found.object.name async for found in events] == ["a"]
        assert [one.key for one in reported] == ["shop/b"]
        assert text in str(reported[0].error)


async def test_a_list_of_another_kind_is_an_error() -> None:
    for kind, text in [
        ("SecretList", "expected a list of Pod, but the server sent a SecretList"),
        ("Table", "but the server sent a Table"),
        ("\x1b[2J", "but the server sent an object without a valid kind"),
    ]:
        for items in ([], [message("a")], [b"\x07"]):
            async with api_over(listing(*items, kind=kind)) as pods:
                with pytest.raises(UnexpectedResponseError) as caught:
                    await pods.list(on_undecodable=lambda found: None)
            assert text in str(caught.value)


async def test_a_status_in_the_place_of_a_list_is_raised() -> None:
    for content_type in (PROTOBUF, "application/json"):
        body = status(code=403, reason="Forbidden", message="no")
        pieces: list[Step] = [body[at : at + 1] for at in range(len(body))]
        async with api_over(body, body, pieces, content_type=content_type) as pods:
            with pytest.raises(ForbiddenError, match="no"):
                await pods.list(on_undecodable=lambda found: None)
            for _ in range(2):
                with pytest.raises(ForbiddenError, match="no"):
                    await pods.list()


async def test_an_error_response_is_decoded() -> None:
    body = status(code=404, reason="NotFound", message='pods "a" not found', details={"name": "a", "kind": "pods"})
    async with api_over(body, body, body, code=404) as pods:
        with pytest.raises(NotFoundError, match='pods "a" not found'):
            await pods.list()
        with pytest.raises(NotFoundError, match='pods "a" not found'):
            await pods.get("a")
        with pytest.raises(NotFoundError, match='pods "a" not found'):
            async with pods.watch():
                pass


async def test_a_damaged_error_response_is_an_error_by_its_code() -> None:
    for body in (status(code=404)[:-9], b"k8s\0", b"k8s\0\xff", b"k8s\0" + b"\xff" * 20):
        async with api_over(body, code=404) as pods:
            with pytest.raises((StatusError, UnexpectedResponseError)) as caught:
                await pods.get("a")
        assert caught.value.code == 404


async def test_an_error_event_raises_whatever_it_contains() -> None:
    for obj, error in [
        (status(code=410, reason="Expired"), ExpiredError),
        (envelope_of("v1", "Status", b""), StatusError),
        (envelope_of("v1", "Status", b"\x07"), DecodeError),
        (b"", DecodeError),
    ]:
        reported: Reported = []
        body = event(message("before")) + framed(event_of("ERROR", obj)) + event(message("after"))
        async with api_over([body, None]) as pods, pods.watch(on_undecodable=reported.append) as events:
            assert [found.object.name for found in await events.receive_batch()] == ["before"]
            for _ in range(2):
                with pytest.raises(error):
                    await events.receive_batch()
        assert reported == []


async def test_a_frame_over_the_limit_ends_the_watch_after_the_events_before_it() -> None:
    body = event(message("before")) + (1 << 31).to_bytes(4, "big")
    async with api_over([body, None]) as pods, pods.watch() as events:
        assert len(await events.receive_batch()) == 1
        for _ in range(2):
            with pytest.raises(LimitExceededError, match="an event is too large"):
                await events.receive_batch()


async def test_a_body_in_another_form_than_its_header_says_is_an_error() -> None:
    for body in (b'{"kind":"PodList","items":[]}', b"<html>", b"\0" * 9):
        async with api_over(body) as pods:
            with pytest.raises(UnexpectedResponseError, match="does not begin like Kubernetes protobuf"):
                await pods.list()
    for body in (b'{"type":"ADDED","object":{}}\n', b"<html><body>x</body></html>\n"):
        async with api_over(body) as pods, pods.watch() as events:
            with pytest.raises(LimitExceededError):
                await events.receive_batch()


async def test_a_response_may_name_its_encoding_in_any_form() -> None:
    for content_type in (
        f"{PROTOBUF};stream=watch",
        f"{PROTOBUF}; stream=watch",
        f" {PROTOBUF} ;charset=utf-8",
        PROTOBUF.upper(),
        "Application/vnd.Kubernetes.Protobuf; Stream=Watch",
    ):
        async with api_over(listing(message("a")), event(message("b")), content_type=content_type) as pods:
            assert [pod.name for pod in await pods.list()] == ["a"]
            async with pods.watch() as events:
                assert [found.object.name async for found in events] == ["b"]


async def test_a_type_that_only_begins_like_protobuf_is_json() -> None:
    async with api_over(b'{"kind":"PodList","metadata":{},"items":[]}', content_type=f"{PROTOBUF}-not") as pods:
        assert len(await pods.list()) == 0
