"""How an object is named: by its name, by a request of a controller, or by itself; and how values are sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.test_api import POD, client_of
from trioformer.client import ObjectRef
from trioformer.controller import Request
from trioformer.models import ObjectMeta, unstructured_kind
from trioformer.models.core_v1 import Pod, Service

WEB = Pod(metadata=ObjectMeta(name="web-0", namespace="shop"))


async def test_an_object_is_named_by_itself_a_reference_or_its_name() -> None:
    for name in [WEB, ObjectRef("shop", "web-0"), Request("shop", "web-0"), "web-0"]:
        for api_namespace in [None, "shop"]:
            async with client_of(POD, POD, POD) as (client, transport):
                pods = client.api(Pod, api_namespace)
                namespace = "shop" if api_namespace is None else None
                await pods.get(name, namespace=namespace)
                await pods.patch(name, {}, namespace=namespace)
                await pods.delete(name, namespace=namespace)
            path = "/api/v1/namespaces/shop/pods/web-0"
            assert transport.targets == [f"GET {path}", f"PATCH {path}", f"DELETE {path}"]


async def test_an_object_of_another_namespace_is_refused() -> None:
    for api_namespace, name, namespace, text in [
        ("shop", "web-0", "cart", "web-0 is in namespace 'cart'"),
        ("cart", WEB, None, "web-0 is in namespace 'shop'"),
        (None, Request("shop", "web-0"), "cart", "<Request shop/web-0> is not in namespace 'cart'"),
        (None, Request(None, "web-0"), None, "this API has no namespace"),
    ]:
        async with client_of() as (client, transport):
            with pytest.raises(ValueError, match=text):
                await client.api(Pod, api_namespace).get(name, namespace=namespace)
        assert transport.requests == []


async def test_an_object_of_a_kind_of_the_same_name_in_another_group_is_refused() -> None:
    kind = unstructured_kind("serving.knative.dev/v1", "Service", plural="services", namespaced=True)
    other: Any = kind.of({"metadata": {"name": "web", "namespace": "shop"}})
    async with client_of() as (client, transport):
        with pytest.raises(TypeError, match="the API of v1 Service"):
            await client.api(Service).delete(other)
    assert transport.requests == []
