"""Clients of threads: calls, errors, watches and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from tests.support.asyncio_programs import config_map, server_with
from tests.support.loopback_server import Exchange, LoopbackServer
from tests.support.thread_programs import client_of
from trioformer import sync
from trioformer.client import Api, ListOptions
from trioformer.errors import ConfigError, NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap
from trioformer.sync._portal import portal_of_process


def test_methods_are_calls() -> None:
    with client_of(server_with("a")) as client:
        api = client.api(ConfigMap, namespace="default")
        assert isinstance(api, sync.Api)
        assert api.get("a").name == "a"
        created = api.create(config_map("b", x="1"))
        assert [one.name for one in api.list()] == ["a", "b"]
        api.replace(created.evolve(data={"x": "2"}))
        assert api.get("b").data == {"x": "2"}
        assert client.version().git_version
        assert [one.name for page in api.pages(ListOptions(limit=1)) for one in page] == ["a", "b"]


def test_errors_arrive_as_they_are() -> None:
    with client_of(server_with()) as client, pytest.raises(NotFoundError, match="gone"):
        client.api(ConfigMap, namespace="default").get("gone")
    with pytest.raises(ConfigError), sync.open_client(kubeconfig="/does/not/exist"):
        raise AssertionError


def test_functions_of_trio_run_with_the_client_or_api() -> None:
    async def name_of(api: Api[ConfigMap], name: str) -> str:
        return (await api.get(name)).name

    with client_of(server_with("a")) as client:
        assert client.api(ConfigMap, namespace="default").run(name_of, "a") == "a"


def test_a_watch_is_an_iterator() -> None:
    with client_of(server_with("a")) as client:
        api = client.api(ConfigMap, namespace="default")
        version = api.list().resource_version
        api.create(config_map("b"))
        with api.watch(resource_version=version) as events:
            for event in events:
                assert event.object.name == "b"
                break
            api.create(config_map("c"))
            assert next(iter(events)).object.name == "c"


def test_a_watch_that_is_left_early_closes_its_connection() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(
            b'{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":'
            b'{"name":"a","namespace":"default","uid":"u","resourceVersion":"8"}}}\n'
        )
        await trio.sleep_forever()

    server = LoopbackServer(script)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            yield
            nursery.cancel_scope.cancel()

    with (
        portal_of_process() as portal,
        portal.open(running()),
        sync.open_client(ClusterConfig(server=server.url)) as client,
    ):
        with client.api(ConfigMap, namespace="default").watch(resource_version="7") as events:
            for event in events:
                assert event.object.name == "a"
                break
            assert server.connections == 1
        portal.call(server.wait_until_idle)


def test_a_client_whose_block_has_ended_refuses() -> None:
    with client_of(server_with("a")) as client:
        with sync.open_client(ClusterConfig(server="http://127.0.0.1:1")) as other:
            api = other.api(ConfigMap, namespace="default")
        with pytest.raises(trio.ClosedResourceError, match="client"):
            api.get("a")
        api = client.api(ConfigMap, namespace="default")
    with pytest.raises(trio.ClosedResourceError, match="door"):
        api.get("a")
