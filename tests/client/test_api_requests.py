"""How an object is named: by its name, by a request of a controller, or by itself."""

from __future__ import annotations

import pytest

from tests.client.test_api import POD, client_of
from trioformer.client import ObjectName
from trioformer.controller import Request
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Node, Pod

WEB = Pod(metadata=ObjectMeta(name="web-0", namespace="shop"))


@pytest.mark.parametrize("api_namespace", [None, "shop"])
@pytest.mark.parametrize("name", [WEB, Request("shop", "web-0"), "web-0"])
async def test_an_object_is_named_by_itself_a_request_or_its_name(
    api_namespace: str | None, name: ObjectName | str
) -> None:
    async with client_of(POD, POD, POD) as (client, transport):
        pods = client.api(Pod, api_namespace)
        namespace = "shop" if api_namespace is None else None
        await pods.get(name, namespace=namespace)
        await pods.patch(name, {}, namespace=namespace)
        await pods.delete(name, namespace=namespace)
    path = "/api/v1/namespaces/shop/pods/web-0"
    assert transport.targets == [f"GET {path}", f"PATCH {path}", f"DELETE {path}"]


@pytest.mark.parametrize(
    ("api_namespace", "name", "namespace", "text"),
    [
        ("shop", "web-0", "cart", "web-0 is in namespace 'cart', and this is the API of 'shop'"),
        ("cart", WEB, None, "web-0 is in namespace 'shop', and this is the API of 'cart'"),
        (None, Request("shop", "web-0"), "cart", "<Request shop/web-0> is not in namespace 'cart'"),
        (None, Request(None, "web-0"), None, "pods are namespaced, and this API has no namespace; pass namespace="),
    ],
)
async def test_an_object_of_another_namespace_is_refused(
    api_namespace: str | None, name: ObjectName | str, namespace: str | None, text: str
) -> None:
    async with client_of() as (client, transport):
        with pytest.raises(ValueError, match=text):
            await client.api(Pod, api_namespace).get(name, namespace=namespace)
    assert transport.requests == []


async def test_a_cluster_scoped_kind_takes_no_namespace() -> None:
    async with client_of() as (client, transport):
        with pytest.raises(ValueError, match="nodes are not namespaced; omit the namespace 'shop'"):
            await client.api(Node).get("worker-1", namespace="shop")
    assert transport.requests == []
