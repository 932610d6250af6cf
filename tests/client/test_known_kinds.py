"""Kinds by name: ``client.api("deploy")`` and ``client.discover("widgets.example.com")``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.scripted_http import InMemory, response
from trioformer.client import Client, ClientOptions, open_client
from trioformer.errors import NotFoundError, StatusError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, ObjectMeta, ResourceInfo, Unstructured, resource_of, unstructured_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.autoscaling_v2 import HorizontalPodAutoscaler
from trioformer.models.core_v1 import Event, Node
from trioformer.models.networking_v1beta1 import ServiceCIDR
from trioformer.testing import APIServer

WIDGET = ResourceInfo(
    group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True, short_names=("w",)
)


def discoveries(api_server: APIServer) -> int:
    return sum(record.path == "/apis" for record in api_server.requests)


# --- api(), which sends no request ------------------------------------------------------------------------------------


async def test_api_knows_the_names_of_built_in_kinds(api_server: APIServer, client: Client) -> None:
    for name, kind in [
        ("deploy", Deployment),
        ("deployments", Deployment),
        ("Deployment", Deployment),
        ("deployments.apps", Deployment),
        ("deployments.v1.apps", Deployment),
        ("ev", Event),
        ("nodes.v1.", Node),
        ("hpa", HorizontalPodAutoscaler),
        ("servicecidrs.v1beta1.networking.k8s.io", ServiceCIDR),
    ]:
        api_server.requests.clear()
        assert client.api(name).kind is kind
        assert not api_server.requests


async def test_api_of_an_unknown_name_says_how_to_discover_it(client: Client) -> None:
    with pytest.raises(LookupError) as caught:
        client.api("widgets.example.com")
    assert str(caught.value) == (
        "'widgets.example.com' is neither a built-in kind nor one that this client has discovered;"
        " for a custom kind call await client.discover('widgets.example.com') first, or pass its class"
    )
    with pytest.raises(
        LookupError, match=r"; did you mean deployments\? If not, call await client\.discover\('deploymets'\) first"
    ):
        client.api("deploymets")
    with pytest.raises(ValueError, match="the name of a kind must be one that kubectl accepts"):
        client.api("apps/v1")


async def test_a_discovered_kind_never_takes_the_name_of_a_built_in_one(api_server: APIServer, client: Client) -> None:
    api_server.register(attrs.evolve(WIDGET, kind="Event", plural="events", singular="event"))
    await client.discover("example.com/v1", "Event")
    assert client.api("events").kind is Event
    await client.api_resources()
    assert client.api("events").kind is Event
    assert resource_of(client.api("events.example.com").kind).group == "example.com"


async def test_the_version_that_the_server_serves_comes_before_the_newest() -> None:
    entry = {"resource": "horizontalpodautoscalers", "responseKind": {"kind": "HorizontalPodAutoscaler"}}
    version = {"version": "v1", "resources": [{**entry, "scope": "Namespaced", "shortNames": ["hpa"], "verbs": []}]}
    bodies = [[], [{"metadata": {"name": "autoscaling"}, "versions": [version]}]]
    transport = InMemory(
        [response(200, json.dumps({"kind": "APIGroupDiscoveryList", "items": items})) for items in bodies]
    )
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=transport) as client:
        assert client.api("hpa").resource.version == "v2"
        await client.api_resources()
        assert client.api("hpa").resource.version == "v1"
        assert client.api("deploy").kind is Deployment


# --- discover() -------------------------------------------------------------------------------------------------------


async def test_a_kind_that_a_server_serves_otherwise_has_no_class() -> None:
    entry = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Cluster", "verbs": []}
    core = {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [entry]}]}]}
    replies = [response(200, json.dumps(each)) for each in (core, {"kind": "APIGroupDiscoveryList", "items": []})]
    transport = InMemory(list(replies))
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=transport) as client:
        found = await client.discover("pods")
    assert issubclass(found, Unstructured)
    assert not resource_of(found).namespaced


async def test_a_name_that_is_known_sends_no_request(api_server: APIServer, client: Client) -> None:
    api_server.register(WIDGET)
    found = await client.discover("w")
    assert found is unstructured_kind(resource_of(found))
    before = len(api_server.requests)
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.discover("widgets")
    assert scope.cancelled_caught, "it is a checkpoint"
    assert await client.discover("widgets") is found
    assert len(api_server.requests) == before


async def test_a_miss_asks_the_server_again(api_server: APIServer, client: Client) -> None:
    with pytest.raises(NotFoundError) as caught:
        await client.discover("widgetz.example.com")
    assert (
        str(caught.value)
        == "discover widgetz.example.com: the server has no resource 'widgetz.example.com' (HTTP 404, NotFound)"
    )
    api_server.register(WIDGET)
    found = await client.discover("Widget")
    assert resource_of(found).kind == "Widget"
    assert discoveries(api_server) == 2
    with pytest.raises(NotFoundError, match=r"has no resource 'widgetz'; did you mean widgets\?"):
        await client.discover("widgetz")


async def test_misses_are_bounded_and_the_next_one_waits(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    begin = trio.current_time()
    for number in range(14):
        with pytest.raises(NotFoundError):
            await client.discover(f"typo{number}")
    assert discoveries(api_server) == 14
    assert trio.current_time() - begin == pytest.approx(4.0)  # ten at once, then one a second
    # Every miss was searched on the server after it was asked for, so a new kind is found at once.
    api_server.register(WIDGET)
    await client.discover("widgets")


async def test_one_refresh_serves_all_who_wait_for_it(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.register(WIDGET)
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(client.discover, "widgets")
    assert discoveries(api_server) <= 2


@asynccontextmanager
async def blocked_client(*codes: int) -> AsyncIterator[tuple[Client, InMemory]]:
    """The first request takes a minute."""
    empty = json.dumps({"kind": "APIGroupDiscoveryList", "items": []})
    replies: list[Any] = [60.0, *(response(code, empty) for code in codes)]
    transport = InMemory(replies)
    async with open_client(
        ClusterConfig(server="https://api.test"), http_transport=transport, options=ClientOptions(retries=0)
    ) as client:
        yield client, transport


async def test_a_refresh_that_began_before_a_name_was_asked_for_does_not_count(autojump_clock: MockClock) -> None:
    async with blocked_client(200, 200, 200, 200) as (client, transport), trio.open_nursery() as nursery:
        nursery.start_soon(client.api_resources)
        await wait_all_tasks_blocked()
        with pytest.raises(NotFoundError):
            await client.discover("widgets")
        assert len(transport.requests) == 4


async def test_a_cancelled_or_failed_refresh_leaves_the_work_to_the_next(autojump_clock: MockClock) -> None:
    async with blocked_client(500, 200, 200) as (client, transport):
        with trio.move_on_after(30) as scope:
            await client.discover("widgets")
        assert scope.cancelled_caught
        transport.replies.insert(0, 0.0)
        with pytest.raises(StatusError):
            await client.discover("widgets")
        with pytest.raises(NotFoundError):
            await client.discover("widgets")
    assert len(transport.requests) == 4


async def test_a_failed_refresh_keeps_what_was_known(api_server: APIServer, client: Client) -> None:
    api_server.register(WIDGET)
    found = await client.discover("widgets")
    api_server.fail_next(status=500)
    with pytest.raises(StatusError):
        await client.discover("typo")
    assert client.api("widgets").kind is found


async def test_a_miss_names_the_groups_that_could_not_be_searched() -> None:
    down = {"version": "v1beta1", "resources": [], "freshness": "Stale"}
    items = [{"metadata": {"name": "metrics.k8s.io"}, "versions": [down]}]
    bodies = [{"kind": "APIGroupDiscoveryList", "items": each} for each in ([], items)]
    transport = InMemory([response(200, json.dumps(each)) for each in bodies])
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=transport) as client:
        with pytest.raises(
            NotFoundError, match=r"no resource 'nodemetrics'; could not search metrics\.k8s\.io/v1beta1 \("
        ):
            await client.discover("nodemetrics")


# --- discover() of a class --------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Widget(KubernetesObject):
    __resource__: ClassVar[ResourceInfo] = WIDGET


async def test_a_class_is_discovered_when_the_server_serves_it(api_server: APIServer, client: Client) -> None:
    assert await client.discover(Deployment) is Deployment
    with pytest.raises(
        NotFoundError, match=r"^discover Widget: the server does not serve widgets\.example\.com in exa"
    ):
        await client.discover(Widget)
    api_server.register(attrs.evolve(WIDGET, version="v2"))
    with pytest.raises(NotFoundError, match=r"in example\.com/v1; did you mean example\.com/v2\?"):
        await client.discover(Widget)
    api_server.register(WIDGET)
    assert await client.discover(Widget) is Widget
    before = len(api_server.requests)
    assert await client.discover(Widget) is Widget
    assert len(api_server.requests) == before
    with pytest.raises(TypeError, match="is not a kind"):
        await client.discover(ObjectMeta)  # type: ignore[type-var]  # the mistake
