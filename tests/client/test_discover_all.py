"""Discovery of all resources, and groups that are down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from tests.support.scripted_http import InMemory, response
from trioformer.client import Client, ClientOptions, open_client
from trioformer.client._api_resources import ApiResources
from trioformer.errors import ForbiddenError, NotFoundError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models._kinds import builtin_resources
from trioformer.testing import APIServer
from trioformer.transport import Limits
from trioformer.transport._internal import DEFAULT_LIMITS

AGGREGATED = "APIGroupDiscoveryList"


@asynccontextmanager
async def client_of(*replies: object, limits: Limits = DEFAULT_LIMITS) -> AsyncIterator[tuple[Client, InMemory]]:
    made = [each if isinstance(each, httpx.Response) else response(200, json.dumps(each)) for each in replies]
    transport = InMemory(list(made))
    config = ClusterConfig(server="https://api.test")
    async with open_client(config, http_transport=transport, options=ClientOptions(limits=limits, retries=0)) as client:
        yield client, transport


def entry(plural: str, kind: str, **more: Any) -> dict[str, Any]:
    of_kind = {"group": "", "version": "", "kind": kind}
    return {"resource": plural, "responseKind": of_kind, "scope": "Namespaced", "verbs": ["list"], **more}


def aggregated(**groups: list[dict[str, Any]]) -> dict[str, Any]:
    items = [{"metadata": {"name": name.replace("_", ".")}, "versions": found} for name, found in groups.items()]
    return {"kind": AGGREGATED, "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def version(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": name, "resources": list(resources), "freshness": freshness}


CORE = {"kind": AGGREGATED, "items": [{"versions": [version("v1", entry("pods", "Pod"))]}]}


def shown(found: ApiResources) -> list[str]:
    return [f"{info.api_version} {info.plural}" for info in found.resources]


async def test_all_resources_are_two_requests(api_server: APIServer, client: Client) -> None:
    api_server.requests.clear()
    found = await client.api_resources()
    assert [record.path for record in api_server.requests] == ["/api", "/apis"]
    served = {(info.api_version, info.plural): info for info in found.resources}
    for info in builtin_resources():
        if "watch" in info.verbs:
            mine = served[info.api_version, info.plural]
            assert (mine.kind, mine.namespaced, mine.singular) == (info.kind, info.namespaced, info.singular)
            assert (mine.short_names, mine.categories, mine.verbs) == (info.short_names, info.categories, info.verbs)
    assert not found.failures
    assert found.resources[0].group == ""


async def test_an_entry_becomes_a_resource_with_all_its_names() -> None:
    subresources = [{"subresource": "status"}, {"subresource": "a/b"}, {"subresource": 3}, None]
    more = {
        "singularResource": "widgety",
        "shortNames": ["w", "a/b"],
        "categories": ["all"],
        "subresources": subresources,
    }
    apis = aggregated(example_com=[version("v1", entry("widgets", "Widget", scope="Cluster", **more))])
    async with client_of(CORE, apis) as (client, transport):
        info = (await client.api_resources()).resources[-1]
    assert (info.api_version, info.kind, info.plural, info.singular) == (
        "example.com/v1",
        "Widget",
        "widgets",
        "widgety",
    )
    assert (info.namespaced, info.short_names, info.categories) == (False, ("w",), ("all",))
    assert (info.verbs, info.subresources) == (("list",), ("status",))
    accept = transport.requests[0].headers["accept"]
    aggregated_form = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
    assert accept == f"{aggregated_form.format('v2')},{aggregated_form.format('v2beta1')}"


async def test_preferred_versions_come_before_all_others() -> None:
    apis = aggregated(
        a_io=[version("v2", entry("as", "A")), version("v1", entry("as", "A"), entry("olds", "Old"))],
        b_io=[version("v1", entry("bs", "B"), entry("olds", "Old"))],
    )
    async with client_of(CORE, apis) as (client, _):
        found = await client.api_resources()
    assert shown(found) == ["v1 pods", "a.io/v2 as", "b.io/v1 bs", "b.io/v1 olds", "a.io/v1 as", "a.io/v1 olds"]


async def test_a_group_that_is_down_is_reported_and_all_others_are_found() -> None:
    up = aggregated(metrics_k8s_io=[version("v1beta1", entry("nodes", "NodeMetrics"))], a_io=[version("v1")])
    down = aggregated(metrics_k8s_io=[version("v1beta1", freshness="Stale")], a_io=[version("v1", entry("as", "A"))])
    async with client_of(CORE, up, CORE, down) as (client, _):
        assert not (await client.api_resources()).failures
        found = await client.api_resources()
    # What was known of it is kept.
    assert shown(found) == ["v1 pods", "metrics.k8s.io/v1beta1 nodes", "a.io/v1 as"]
    assert found.failures == {"metrics.k8s.io/v1beta1": "the server of the group does not respond"}


async def test_a_server_without_core_group_has_its_other_groups() -> None:
    for code in [403, 404]:
        async with client_of(response(code, "no"), aggregated(a_io=[version("v1", entry("as", "A"))])) as (client, _):
            assert shown(await client.api_resources()) == ["a.io/v1 as"]


async def test_a_server_that_rejects_both_requests_raises() -> None:
    for code, error in [(403, ForbiddenError), (404, NotFoundError)]:
        async with client_of(response(code, "no"), response(code, "no")) as (client, _):
            with pytest.raises(error, match=r"^discover the resources of /apis: "):
                await client.api_resources()


# --- hostile ----------------------------------------------------------------------------------------------------------


async def test_a_response_that_is_not_discovery_is_unexpected() -> None:
    for body in [
        "",
        "[]",
        '{"kind":"APIGroupDiscoveryList","items":3}',
        '{"kind":"APIGroupDiscoveryList","items":[{"versions":3}]}',
        '{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":{}}]}]}',
        '{"kind":"APIGroupList","groups":3}',
        "[" * 100_000,
    ]:
        async with client_of(response(200, body)) as (client, _):
            with pytest.raises(
                UnexpectedResponseError, match="to discover the resources of /api: not a list of API groups"
            ):
                await client.api_resources()


async def test_entries_and_versions_with_invalid_names_are_ignored() -> None:
    bad = [
        entry("../x", "A"),
        entry("xs", "../X"),
        entry("xs", ""),
        {"resource": "ys"},
        {"resource": "zs", "responseKind": 3},
        entry("long", "Long", padding="x" * 70_000),
        entry("good", "Good"),
    ]
    apis = aggregated(a_io=[version("v1", *bad), version("../v1", entry("as", "A")), {}])
    apis["items"] += [{"metadata": {"name": "../b"}, "versions": [version("v1", entry("bs", "B"))]}, {}]
    apis["items"] += [{"metadata": 3, "versions": [version("v1", entry("cs", "C"))]}]
    async with client_of(CORE, apis) as (client, _):
        assert shown(await client.api_resources()) == ["v1 pods", "a.io/v1 good", "v1 cs"]


async def test_a_long_list_of_resources_does_not_hold_up_other_tasks() -> None:
    turns: dict[int, int] = {}

    async def count(length: int) -> None:
        turns[length] = 0
        while True:
            await trio.lowlevel.checkpoint()
            turns[length] += 1

    for length in (1, 10_000):
        apis = aggregated(a_io=[version("v1", *[entry("as", "A")] * length)])
        async with client_of(CORE, apis) as (client, _), trio.open_nursery() as nursery:
            nursery.start_soon(count, length)
            await client.api_resources()
            nursery.cancel_scope.cancel()
    assert turns[10_000] >= turns[1] + 9  # one for each thousand at least
