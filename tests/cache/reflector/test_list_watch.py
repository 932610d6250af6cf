"""The requests of a reflector's source over an API."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.support.scripted_http import InMemory, response
from trioformer.cache import ApiListWatch, SharedInformerFactory
from trioformer.client import open_client
from trioformer.errors import ConnectionFailedError, ForbiddenError, ServerTimeoutError, TooManyRequestsError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

CONFIG = ClusterConfig(server="http://server.invalid", source="test")
TOO_LARGE = '{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 5"}'


async def check(reply: httpx.Response) -> dict[str, str]:
    """Check version 9 of the pods of one node, and return the query."""
    transport = InMemory([reply])
    async with open_client(CONFIG, http_transport=transport) as client:
        source = ApiListWatch(client.api(Pod, "shop"), label_selector="app=web", field_selector="spec.nodeName=n")
        await source.check(resource_version="9")
    (request,) = transport.requests
    return dict(request.url.params)


async def test_a_check_has_the_selectors() -> None:
    """Without them the server rejects the credentials of a node, and roles with resourceNames."""
    assert await check(response(200, '{"kind":"PodList","metadata":{},"items":[]}')) == {
        "labelSelector": "app=web",
        "fieldSelector": "spec.nodeName=n",
        "resourceVersion": "9",
        "resourceVersionMatch": "NotOlderThan",
        "limit": "1",
    }


async def test_each_request_has_the_further_query_parameters() -> None:
    page = '{"kind":"PodList","metadata":{"resourceVersion":"5","continue":"%s"},"items":[]}'
    transport = InMemory([response(200, page % token) for token in ("next", "", "")] + [response(200, "")])
    async with open_client(CONFIG, http_transport=transport) as client:
        source = ApiListWatch(client.api(Pod), label_selector="app=web", query={"shardSelector": "s", "mine": ""})
        await source.list(resource_version="", page_size=500, on_undecodable=print)
        await source.check(resource_version="5")
        async with source.watch(
            resource_version="5", timeout_seconds=5, send_initial_events=False, on_undecodable=print
        ):
            pass
    assert source.name == "Pod with app=web and mine= and shardSelector=s"
    for request in transport.requests:
        params = request.url.params
        assert (params["shardSelector"], params["mine"], params["labelSelector"]) == ("s", "", "app=web")
    assert len(transport.requests) == 4


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("watch", "the informer sets this parameter itself"),
        ("resourceVersion", "the informer sets this parameter itself"),
        ("resourceVersionMatch", "the informer sets this parameter itself"),
        ("limit", "the informer sets this parameter itself"),
        ("continue", "the informer sets this parameter itself"),
        ("allowWatchBookmarks", "the informer sets this parameter itself"),
        ("sendInitialEvents", "the informer sets this parameter itself"),
        ("timeoutSeconds", "the informer sets this parameter itself"),
        ("labelSelector", "pass label_selector= instead"),
        ("fieldSelector", "pass field_selector= instead"),
    ],
)
async def test_a_parameter_that_the_reflector_sets_is_refused(name: str, reason: str) -> None:
    async with open_client(CONFIG, http_transport=InMemory([])) as client:
        with pytest.raises(ValueError, match=f"'{name}'.*{reason}"):
            ApiListWatch(client.api(Pod), query={"pretty": "true", name: "1"})
        with pytest.raises(ValueError, match=f"'{name}'.*{reason}"):
            SharedInformerFactory(client, query={name: "1"})
        with pytest.raises(ValueError, match=f"'{name}'.*{reason}"):
            SharedInformerFactory(client).informer(Pod, query={name: "1"})


@pytest.mark.parametrize("query", [{"shard": 1}, {"shard": None}, {1: "shard"}, "shard=1", [("shard", "1")]])
async def test_a_query_that_does_not_map_strings_to_strings_is_refused(query: Any) -> None:
    async with open_client(CONFIG, http_transport=InMemory([])) as client:
        with pytest.raises(TypeError, match="query must be a mapping of strings to strings"):
            SharedInformerFactory(client, query=query)
        with pytest.raises(TypeError, match="query must be a mapping of strings to strings"):
            SharedInformerFactory(client).informer(Pod, query=query)


@pytest.mark.parametrize("item", ["{}", '{"metadata":null}', '{"metadata":{"name":7}}', "[", ""])
async def test_an_undecodable_object_does_not_matter_to_a_check(item: str) -> None:
    await check(response(200, '{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[' + item + "]}"))


async def test_a_check_raises_the_status_of_the_server() -> None:
    with pytest.raises(ServerTimeoutError) as caught:
        await check(response(504, TOO_LARGE))
    assert caught.value.is_too_large_resource_version
    with pytest.raises(ForbiddenError):
        await check(response(403, "<html>"))


async def test_requests_are_sent_once_because_the_reflector_retries(autojump_clock: MockClock) -> None:
    lost = httpx.ReadError("reset")
    busy = [response(429, "", retry_after="1") for _ in range(2)]
    transport = InMemory([lost, response(200, '{"items":[', lost), lost, lost, *busy])
    async with open_client(CONFIG, http_transport=transport) as client:
        source = ApiListWatch(client.api(Pod, "shop"))
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                await source.list(resource_version="", page_size=500, on_undecodable=print)
        with pytest.raises(ConnectionFailedError):
            await source.check(resource_version="5")
        watch = partial(source.watch, resource_version="5", timeout_seconds=5, send_initial_events=False)
        with pytest.raises(ConnectionFailedError):
            async with watch(on_undecodable=print):
                raise AssertionError
        with pytest.raises(TooManyRequestsError):
            async with watch(on_undecodable=print):
                raise AssertionError
        with pytest.raises(TooManyRequestsError):
            await source.list(resource_version="", page_size=500, on_undecodable=print)
        assert len(transport.requests) == 6
    assert trio.current_time() == 0
