"""Lists: pages, selectors, and responses that are not lists."""

from __future__ import annotations

import json
from collections.abc import Sequence

import httpx
import pytest
import trio

from tests.support.clients import client_of
from tests.support.scripted_http import Body, InMemory, response
from trioformer.client import ListOptions, ObjectList, open_client
from trioformer.client._internal import without_retries
from trioformer.errors import (
    ConnectionFailedError,
    ForbiddenError,
    SelectorError,
    ServerTimeoutError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import FieldSelector, LabelSelector
from trioformer.models.core_v1 import Pod

CONFIG = ClusterConfig(server="https://api.test")


def page(
    *names: str, version: str = "7", token: str = "", remaining: int | None = None, kind: str = "Pod"
) -> httpx.Response:
    metadata = {"resourceVersion": version, "continue": token, "remainingItemCount": remaining}
    items = [{"metadata": {"name": name, "namespace": "shop"}, "spec": {"nodeName": "n"}} for name in names]
    body = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata, "items": items}
    return response(200, json.dumps(body, separators=(",", ":")))


def gone() -> httpx.Response:
    return response(410, '{"kind":"Status","code":410,"reason":"Expired","message":"too old","metadata":{}}')


def queries(transport: InMemory) -> list[dict[str, str]]:
    return [dict(request.url.params) for request in transport.requests]


def names(listing: ObjectList[Pod]) -> list[str]:
    return [pod.name for pod in listing]


async def test_a_list_of_one_page() -> None:
    async with client_of(page("a", "b", remaining=0)) as (client, transport):
        listing = await client.api(Pod, "shop").list()
    assert names(listing) == ["a", "b"]
    assert len(listing) == 2
    assert listing == ObjectList(items=listing.items, resource_version="7")
    assert [(pod.kind, pod.api_version, pod.spec.node_name) for pod in listing] == [("Pod", "v1", "n")] * 2
    assert repr(listing).startswith("ObjectList(items=<2 objects>, resource_version='7'")
    assert transport.targets == ["GET /api/v1/namespaces/shop/pods?limit=500"]


async def test_a_list_is_a_sequence() -> None:
    async with client_of(page("a", "b", "c")) as (client, _):
        listing = await client.api(Pod, "shop").list()
    assert isinstance(listing, Sequence)
    first, second, last = listing
    assert (listing[0], listing[-1]) == (first, last)
    assert listing[:2] == (first, second)
    assert list(reversed(listing)) == [last, second, first]
    assert (second in listing, listing.index(last), listing.count(first)) == (True, 2, 1)
    with pytest.raises(IndexError):
        listing[3]
    match listing:
        case [one, *rest]:
            assert (one, len(rest)) == (first, 2)
        case _:
            pytest.fail("a listing matches no sequence pattern")


async def test_pages_are_joined_at_the_version_of_the_first_page() -> None:
    """client-go: TestListPager_List"""
    replies = page("a", token="x", remaining=2), page("b", token="y"), page("c", version="8")
    async with client_of(*replies) as (client, transport):
        listing = await client.api(Pod, "shop").list(
            label_selector="app=web", resource_version="5", resource_version_match="NotOlderThan", page_size=1
        )
    assert names(listing) == ["a", "b", "c"]
    assert (listing.resource_version, listing.pages, listing.continue_token) == ("7", 3, "")
    assert listing.remaining_item_count is None
    constant = {"labelSelector": "app=web", "limit": "1"}
    # The token implies the version.
    assert queries(transport) == [
        {**constant, "resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"},
        {**constant, "continue": "x"},
        {**constant, "continue": "y"},
    ]


async def test_an_expired_token_leads_to_one_list_without_limit() -> None:
    """client-go: TestListPager_List"""
    replies = page("a", token="x"), page("b", token="y"), gone(), page("new", version="9")
    async with client_of(*replies) as (client, transport):
        listing = await client.api(Pod, "shop").list(resource_version="5", page_size=1)
    assert names(listing) == ["new"]
    assert (listing.resource_version, listing.pages) == ("9", 3)
    assert queries(transport)[3] == {"resourceVersion": "5"}


async def test_two_pages_with_one_continue_token_raise() -> None:
    async with client_of(page("a", token="x"), page("a", token="x")) as (client, _):
        with pytest.raises(UnexpectedResponseError, match="two pages have the same continue token"):
            await client.api(Pod, "shop").list()


async def test_pages_are_requested_one_by_one_and_the_loop_may_end_early() -> None:
    replies = page("a", token="x"), page("b", token="y"), page("c")
    async with client_of(*replies) as (client, transport):
        pods = client.api(Pod, "shop")
        seen = [names(each) async for each in pods.pages(ListOptions(limit=1, resource_version="5"))]
        assert seen == [["a"], ["b"], ["c"]]
    assert queries(transport) == [
        {"limit": "1", "resourceVersion": "5"},
        {"limit": "1", "continue": "x"},
        {"limit": "1", "continue": "y"},
    ]
    async with client_of(page("a", token="x")) as (client, transport):
        async for _ in client.api(Pod, "shop").pages():
            break
    assert queries(transport) == [{"limit": "500"}]


async def test_list_page_sends_its_options() -> None:
    options = ListOptions(
        label_selector="tier in (back,front),app=web",
        field_selector="spec.nodeName=n",
        resource_version="0",
        resource_version_match="Exact",
        limit=2,
        continue_token="x",
        timeout_seconds=9,
    )
    async with client_of(page("a", token="y", remaining=3), page()) as (client, transport):
        pods = client.api(Pod, "shop")
        found = await pods.list_page(options)
        await pods.list_page()
        assert (found.continue_token, found.remaining_item_count, found.pages) == ("y", 3, 1)
    assert queries(transport) == [
        {
            "labelSelector": "app=web,tier in (back,front)",
            "fieldSelector": "spec.nodeName=n",
            "resourceVersion": "0",
            "resourceVersionMatch": "Exact",
            "limit": "2",
            "continue": "x",
            "timeoutSeconds": "9",
        },
        {},
    ]


async def test_selectors_may_be_text_or_mappings_or_parsed() -> None:
    async with client_of(page(), page(), page(), page()) as (client, transport):
        pods = client.api(Pod, "shop")
        await pods.list(label_selector={"app": "web", "tier": "front"}, field_selector={"spec.nodeName": "n"})
        await pods.list(label_selector="app=web,tier=front", field_selector="spec.nodeName=n")
        await pods.list(
            label_selector=LabelSelector.of({"tier": "front", "app": "web"}),
            field_selector=FieldSelector.parse("spec.nodeName=n"),
        )
        await pods.list(label_selector="", field_selector={}, resource_version="")
    asked = {"labelSelector": "app=web,tier=front", "fieldSelector": "spec.nodeName=n", "limit": "500"}
    assert queries(transport) == [asked, asked, asked, {"limit": "500"}]


async def test_an_invalid_selector_is_not_sent() -> None:
    async with client_of() as (client, transport):
        pods = client.api(Pod, "shop")
        with pytest.raises(SelectorError):
            await pods.list(label_selector="app in")
        with pytest.raises(SelectorError):
            await pods.list(field_selector={"a=b": "c"})
        with pytest.raises(SelectorError):
            await pods.list_page(ListOptions(label_selector="!"))
        with pytest.raises(SelectorError):
            async with pods.watch(label_selector={"app": "not valid"}):
                pass
    assert transport.requests == []


async def test_a_check_of_a_version_uses_only_the_status_code() -> None:
    for body in ["", "<html>", '{"items":[{"metadata":', '{"items":[{"metadata":7}]}']:
        replies = [response(200, body), response(200, "{", httpx.ReadError("reset")), response(200, body)]
        async with client_of(*replies) as (client, transport):
            pods = client.api(Pod, "shop")
            await pods.check_resource_version("9")
            await pods.check_resource_version("9", label_selector={"app": "web"}, field_selector="spec.nodeName=n")
            await pods.check_resource_version("")
        asked = {"resourceVersion": "9", "resourceVersionMatch": "NotOlderThan", "limit": "1"}
        selected = {"labelSelector": "app=web", "fieldSelector": "spec.nodeName=n"}
        assert queries(transport) == [asked, asked | selected, {"limit": "1"}]


async def test_a_check_of_a_version_reads_a_short_body_and_closes_a_long_one(autojump_clock) -> None:
    short, long, silent = Body([b"x" * 60_000]), Body([b"x" * 60_000, b"x" * 60_000, None]), Body([b"x", None])
    async with client_of(*(httpx.Response(200, stream=body) for body in (short, long, silent))) as (client, _):
        for state, body in (("read", short), ("unwound", long), ("unwound", silent)):
            await client.api(Pod).check_resource_version("9")
            assert body.state == state
    assert trio.current_time() == pytest.approx(5.0)


async def test_a_check_of_a_version_raises_what_the_server_rejects() -> None:
    status = '{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 7"}'
    async with client_of(response(504, status), response(302, ""), httpx.ConnectError("no")) as (client, _):
        pods = client.api(Pod, "shop")
        with pytest.raises(ServerTimeoutError, match=r"^list pods in namespace shop: Too large") as caught:
            await pods.check_resource_version("9")
        assert caught.value.is_too_large_resource_version
        with pytest.raises(UnexpectedResponseError):
            await pods.check_resource_version("9")
        with pytest.raises(ConnectionFailedError):
            await without_retries(pods).check_resource_version("9")
        with pytest.raises(SelectorError):
            await pods.check_resource_version("9", label_selector="app in")


async def test_an_endless_error_response_is_cut_off(autojump_clock) -> None:
    async with client_of(response(403, "no", None), response(403, *[b"x" * 10_000] * 1_000)) as (client, _):
        pods = client.api(Pod, "shop")
        with pytest.raises(ForbiddenError, match="no"):
            await pods.list()
        assert trio.current_time() == pytest.approx(5.0)
        with pytest.raises(ForbiddenError, match="xxx"):
            await pods.list()


async def test_a_long_list_lets_other_tasks_run() -> None:
    for size in (1_000, 1_000_000, 100_000_000):
        item = json.dumps({"metadata": {"name": "x", "labels": {"a": "b" * 1_000}}}, separators=(",", ":"))
        body = (
            f'{{"kind":"PodList","metadata":{{"resourceVersion":"7"}},"items":[{",".join([item] * 5_000)}]}}'.encode()
        )
        reply = response(200, *(body[begin : begin + size] for begin in range(0, len(body), size)))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with client_of(reply) as (client, _), trio.open_nursery() as nursery:
            nursery.start_soon(count)
            listing = await client.api(Pod, "shop").list()
            nursery.cancel_scope.cancel()
        assert len(listing) == 5_000
        assert turns > 4


def pod(name: str, size: int) -> bytes:
    return b'{"metadata":{"name":"%s","namespace":"shop","resourceVersion":"5"},"data":"%s"}' % (
        name.encode(),
        b"x" * size,
    )


def list_of(*items: bytes) -> httpx.Response:
    return response(200, b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[%s]}' % b",".join(items))


async def test_an_object_of_a_list_may_have_any_size() -> None:
    async with client_of(list_of(pod("a", 50), pod("b", 17_000_000), pod("c", 50))) as (client, _):
        assert names(await client.api(Pod, "shop").list()) == ["a", "b", "c"]


async def test_other_tasks_run_while_the_brackets_of_an_object_are_counted() -> None:
    transport = InMemory([list_of(b'{"metadata":{"name":"a","namespace":"shop"},"a":%s}' % (b"[]," * 300_000))])
    ran = 0

    async def run() -> None:
        nonlocal ran
        while True:
            await trio.lowlevel.checkpoint()
            ran += 1

    async with open_client(CONFIG, http_transport=transport) as client, trio.open_nursery() as nursery:
        nursery.start_soon(run)
        with pytest.raises(UnexpectedResponseError):
            await client.api(Pod, "shop").list()
        nursery.cancel_scope.cancel()
    assert ran >= 20


async def test_a_list_whose_connection_fails_is_read_again_from_its_beginning(
    autojump_clock: trio.testing.MockClock,
) -> None:
    begin = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":['
    bad, good = '{"metadata":{}}', '{"metadata":{"name":"web-0","namespace":"shop"}}'
    lost = httpx.ReadError("reset")
    many = f"{good}," * 5_000  # what is shorter waits for the end
    cut = [response(200, f"{begin}{bad},{many}", lost), response(200, lost), response(429, "", retry_after="1")]
    found: list[str] = []
    async with client_of(*cut, response(200, f"{begin}{bad},{good}]}}")) as (client, transport):
        pods = await client.api(Pod, "shop").list(on_undecodable=lambda each: found.append(each.key))
        assert [pod.name for pod in pods] == ["web-0"]
        assert len(found) == 1
        assert len(transport.requests) == 4
    async with client_of(*[response(200, begin, lost) for _ in range(12)]) as (client, transport):
        with pytest.raises(ConnectionFailedError, match=r"the connection was lost; try again; after 11 attempts$"):
            await client.api(Pod, "shop").list()
        assert len(transport.requests) == 11
    async with client_of(response(200, begin, lost)) as (client, transport):
        with pytest.raises(ConnectionFailedError, match=r"the connection was lost; try again$"):
            await without_retries(client.api(Pod, "shop")).list()
