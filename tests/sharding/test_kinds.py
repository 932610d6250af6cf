"""The lists of the ranges of a kind, from servers that filter them and servers that do not."""

from __future__ import annotations

import json

import attrs
import httpx
import pytest
import trio
import trio.testing

from trioformer import ClientOptions, SharedInformerFactory, open_client
from trioformer.models.core_v1 import ConfigMap
from trioformer.sharding import Shares, open_shares
from trioformer.testing import APIServer


@attrs.define(eq=False)
class SlowLists(httpx.AsyncBaseTransport):
    """Delays lists of ConfigMaps, and counts how many run at once."""

    inner: httpx.AsyncBaseTransport
    confirms: bool
    """Whether lists say that the server has filtered them."""
    running: int = 0
    most: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        query = request.url.params
        if not request.url.path.endswith("/configmaps") or "watch" in query:
            return await self.inner.handle_async_request(request)
        self.running += 1
        self.most = max(self.most, self.running)
        await trio.sleep(1)
        self.running -= 1
        response = await self.inner.handle_async_request(request)
        if not self.confirms:
            return response
        found = json.loads(await response.aread())
        found["metadata"]["shardInfo"] = {"selector": query["shardSelector"]}
        return httpx.Response(200, json=found)


@pytest.mark.parametrize(("confirms", "most"), [(False, 1), (True, 7)])
async def test_lists_run_at_once_only_if_the_server_filters_them(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, confirms: bool, most: int
) -> None:
    server = APIServer()
    await nursery.start(server.run)
    lists = SlowLists(server.http_transport(), confirms)
    async with open_client(server.config, http_transport=lists, options=ClientOptions(protobuf=False)) as client:
        factory = SharedInformerFactory(client)
        async with open_shares(client, Shares("tests", 8), factory) as shares:
            factory.informer(ConfigMap)
            nursery.start_soon(factory.run)
            await trio.sleep(9)
            assert [*shares.state.own.values()] == ["ready"] * 8
            assert shares.state.filtered_by_server == {"configmaps": confirms}
            assert lists.most == most
        nursery.cancel_scope.cancel()
