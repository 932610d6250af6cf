"""Undecodable objects from a server: in lists, in pages, in watch-lists, and when they are deleted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response
from trioformer.cache import ApiListWatch, ReflectorOptions, SharedInformer
from trioformer.client import Undecodable, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

BROKEN_UID = 7
"""A uid that is not a string: the metadata contains the key of the object, and is undecodable."""


def item(name: str, version: int, uid: object = "uid") -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version), "uid": uid}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}


def event(kind: str, name: str, version: int, uid: object = "uid") -> bytes:
    return json.dumps({"type": kind, "object": item(name, version, uid)}).encode() + b"\n"


def page(*items: object, version: int, token: str = "") -> bytes:
    metadata = {"resourceVersion": str(version), "continue": token}
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


GONE = json.dumps({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "old"}).encode()
EXPIRED = b'{"type":"ERROR","object":' + GONE + b"}\n"
ANNOTATED = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
END = (
    json.dumps({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": ANNOTATED}}).encode()
    + b"\n"
)
BAD_DELETION = event("DELETED", "a", 8, BROKEN_UID)
NAMELESS_DELETION = b'{"type":"DELETED","object":{"kind":"Pod","metadata":{"name":7}}}\n'


@asynccontextmanager
async def informing(
    responses: list[httpx.Response], undecodable: list[Undecodable], *, watch_list: bool = True
) -> AsyncIterator[SharedInformer[Pod]]:
    options = ReflectorOptions(
        watch_list=watch_list, undecodable_handler=undecodable.append, watch_error_handler=lambda error: None
    )
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory(responses)) as client,
        trio.open_nursery() as nursery,
    ):
        informer = SharedInformer(ApiListWatch(client.api(Pod)), options=options)
        nursery.start_soon(informer.run)
        await trio.sleep(20)
        yield informer
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "pieces",
    [
        [event("ADDED", "a", 5) + event("ADDED", "b", 6), BAD_DELETION, END],
        [event("ADDED", "a", 5), event("ADDED", "b", 6), END + BAD_DELETION],
        [event("ADDED", "a", 5), event("ADDED", "b", 6), END, 1.0, BAD_DELETION],
    ],
    ids=["before the end of a watch-list", "with its end", "alone in an open watch"],
)
async def test_an_undecodable_deletion_anywhere_in_a_watch_deletes_its_key(
    pieces: list[bytes | float], autojump_clock: trio.testing.MockClock
) -> None:
    undecodable: list[Undecodable] = []
    async with informing([response(200, *pieces, None)], undecodable) as informer:
        assert [obj.name for obj in informer.lister] == ["b"]
        assert informer.lister.quarantined() == {}
    assert [(each.event_type, each.key) for each in undecodable] == [("DELETED", "default/a")]


@pytest.mark.parametrize(
    ("pieces", "again"),
    [
        ([event("ADDED", "a", 5), NAMELESS_DELETION, END], [page(item("b", 6), version=9)]),
        ([event("ADDED", "a", 5), event("ADDED", "b", 6), END + NAMELESS_DELETION], [event("ADDED", "b", 6), END]),
        ([event("ADDED", "a", 5), END, 1.0, NAMELESS_DELETION], [event("ADDED", "b", 6), END]),
    ],
    ids=["before the end of a watch-list", "with its end", "alone in an open watch"],
)
async def test_a_deletion_without_a_key_anywhere_in_a_watch_is_followed_by_a_list(
    pieces: list[bytes | float], again: list[bytes], autojump_clock: trio.testing.MockClock
) -> None:
    undecodable: list[Undecodable] = []
    end = [] if again[0].startswith(b'{"kind"') else [None]
    responses = [response(200, *pieces, None), response(200, *again, *end), response(200, None)]
    async with informing(responses, undecodable) as informer:
        assert [obj.name for obj in informer.lister] == ["b"]
        assert informer.lister.quarantined() == {}
    assert [(each.event_type, each.key) for each in undecodable] == [("DELETED", "")]


async def test_an_undecodable_object_that_is_deleted_in_a_watch_list_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    first = [event("ADDED", "a", 5), event("ADDED", "x", 6), END, 1.0, EXPIRED]
    second = [event("ADDED", "a", 5), event("ADDED", "x", 7, BROKEN_UID), 1.0, event("DELETED", "x", 8), END]
    async with informing([response(200, *first), response(200, *second, None)], []) as informer:
        assert [obj.name for obj in informer.lister] == ["a"]


async def test_an_undecodable_object_of_a_discarded_page_is_not_reported(
    autojump_clock: trio.testing.MockClock,
) -> None:
    undecodable: list[Undecodable] = []
    responses = [
        response(200, page(item("b", 1), version=5, token="x")),  # two pages, so that later lists have pages too
        response(200, page(item("a", 1), version=5)),
        response(200, EXPIRED),
        response(200, page(item("a", 1, BROKEN_UID), version=6, token="y")),
        response(410, GONE),
        response(200, page(item("b", 1), version=9)),
        response(200, None),
    ]
    async with informing(responses, undecodable, watch_list=False) as informer:
        assert [obj.name for obj in informer.lister] == ["b"]
    assert undecodable == []
