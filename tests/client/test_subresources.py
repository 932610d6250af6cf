"""Subresources, and what is not stored: responses of another kind than the API's."""

from __future__ import annotations

import pytest

from examples.custom_resource import CronTab
from tests.client.test_api import client_of
from tests.support.scripted_http import response
from trioformer.client import Client
from trioformer.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    UnexpectedResponseError,
)
from trioformer.models import ObjectMeta, Unstructured, from_dict, metadata_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Binding, ConfigMap, ObjectReference, Pod
from trioformer.models.policy_v1 import Eviction
from trioformer.testing import APIServer

BOUND = Binding(metadata=ObjectMeta(name="web-0"), target=ObjectReference(kind="Node", name="node-1"))


def deployment() -> Deployment:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    return from_dict(Deployment, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})


def pod() -> Pod:
    return from_dict(Pod, {"metadata": {"name": "web-0", "namespace": "default"}, "spec": {"containers": []}})


# --- scale ---


async def test_the_scale_can_be_read_and_is_a_precondition(api_server: APIServer, client: Client) -> None:
    api_server.create(deployment())
    deployments = client.api(Deployment, "default")
    scale = await deployments.get("web", subresource="scale")
    assert scale.spec.replicas == 2
    patch = {"metadata": {"resourceVersion": scale.metadata.resource_version}, "spec": {"replicas": 0}}
    assert (await deployments.patch("web", patch, subresource="scale")).spec.replicas == 0
    with pytest.raises(ConflictError):
        await deployments.patch("web", patch, subresource="scale")
    with pytest.raises(NotFoundError, match=r"get configmaps/web/scale in namespace default"):
        await client.api(ConfigMap, "default").get("web", subresource="scale")


async def test_a_scale_is_requested_as_such_and_not_as_metadata() -> None:
    scale = '{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"},"spec":{"replicas":2}}'
    async with client_of(scale) as (client, transport):
        await client.api(metadata_kind(Deployment), "shop").get("web", subresource="scale")
    assert transport.requests[0].headers["accept"] == "application/json"


async def test_another_kind_than_a_scale_is_an_unexpected_response() -> None:
    for body in ('{"kind":"Secret","apiVersion":"v1","metadata":{}}', "nothing", '["Scale"]'):
        async with client_of(body) as (client, _):
            with pytest.raises(UnexpectedResponseError, match=r"unexpected response .* to get deployments"):
                await client.api(Deployment, "shop").get("web", subresource="scale")


# --- others ---


async def test_a_subresource_of_an_unknown_kind_returns_what_came() -> None:
    body = '{"kind":"Order","apiVersion":"shop.test/v1","metadata":{"name":"web"},"total":7}'
    async with client_of(body, body, body) as (client, transport):
        things = client.api(CronTab, "shop")
        order = await things.patch("web", {"total": 7}, subresource="order")
        again = await things.get("web", subresource="order")
        with pytest.raises(UnexpectedResponseError, match=r"an? Order, not a CronTab"):
            await things.get("web", subresource="status")
    assert isinstance(order, Unstructured)
    assert (order.kind, order.api_version, order.name, order["total"]) == ("Order", "shop.test/v1", "web", 7)
    assert order == again
    assert [target.partition(" ")[0] for target in transport.targets] == ["PATCH", "GET", "GET"]


async def test_a_response_that_is_no_object_is_unexpected() -> None:
    for body in ['{"kind":"Order"}', '{"kind":"Order","metadata":{}}', '{"kind":"O\\u0000","metadata":{}}']:
        async with client_of(body) as (client, _):
            with pytest.raises(UnexpectedResponseError):
                await client.api(Deployment, "shop").get("web", subresource="order")


# --- what acts and is not stored ---


async def test_a_pod_is_bound_and_evicted_through_its_subresources(api_server: APIServer, client: Client) -> None:
    api_server.create(pod())
    pods = client.api(Pod, "default")
    unnamed = Binding(target=ObjectReference(kind="Node", name="node-1"))
    assert await pods.create_subresource("web-0", "binding", unnamed) == BOUND
    assert api_server.get(Pod, "web-0").spec.node_name == "node-1"
    evicted = await pods.create_subresource("web-0", "eviction", Eviction())
    assert evicted.metadata.name == "web-0"
    with pytest.raises(NotFoundError, match="create pods/web-0/eviction in namespace default"):
        await pods.create_subresource("web-0", "eviction", Eviction())
    with pytest.raises(BadRequestError, match="does not match"):
        await pods.create_subresource("web-1", "eviction", Eviction(metadata=ObjectMeta(name="web-0")))


async def test_a_response_to_a_subresource_that_is_of_another_kind_is_unexpected() -> None:
    for body in ('{"kind":"Pod","metadata":{}}', "ok"):
        async with client_of(response(201, body)) as (client, _):
            with pytest.raises(UnexpectedResponseError, match=r"not an? Eviction"):
                await client.api(Pod, "shop").create_subresource("web-0", "eviction", Eviction())
