"""How an object is named: by its name, by a request of a controller, or by itself; and how values are sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.client.test_api import POD, client_of
from tests.support.scripted_http import complete, serving
from trioformer.client import Api, ListOptions, ObjectRef, open_client
from trioformer.controller import Request
from trioformer.errors import NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta, from_json, metadata_kind, unstructured_kind
from trioformer.models.core_v1 import Pod, Service
from trioformer.pods import exec_in_pod, read_logs

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


async def test_metadata_of_an_object_names_the_object() -> None:
    for cls in [Pod, metadata_kind(Pod)]:
        text = '{"kind": "PartialObjectMetadata", "metadata": {"name": "web-0", "namespace": "shop"}}'
        async with client_of(POD) as (client, transport):
            await client.api(cls).patch(from_json(metadata_kind(Pod), text), {})
        assert transport.targets == ["PATCH /api/v1/namespaces/shop/pods/web-0"]


async def watched(pods: Api[Pod], value: str) -> None:
    async with pods.watch(resource_version=value):
        pass


async def executed(pods: Api[Pod], value: str) -> None:
    async with exec_in_pod(pods, "web-0", [value]):
        pass


async def test_a_value_is_one_value_of_the_query_that_is_sent() -> None:
    for name, send in [
        ("fieldManager", lambda pods, value: pods.patch("web-0", {}, field_manager=value)),
        ("container", lambda pods, value: read_logs(pods, "web-0", container=value)),
        ("resourceVersion", lambda pods, value: pods.list_page(ListOptions(resource_version=value))),
        ("continue", lambda pods, value: pods.list_page(ListOptions(continue_token=value))),
        ("resourceVersion", watched),
        ("command", executed),
    ]:
        for value in ["me&force=true", "a%26b", "\u00e9", "a\nb", "a.b_-~"]:
            async with (
                serving(complete(b"{}", "404 Not Found")) as server,
                open_client(ClusterConfig(server=server.url), retries=0) as client,
            ):
                is_refused = name == "fieldManager" and not value.isprintable()
                with pytest.raises(ValueError if is_refused else NotFoundError):
                    await send(client.api(Pod, "shop"), value)
            found = urlsplit(server.heads[0].split(b" ")[1].decode("ascii")) if server.heads else None
            assert (found is None) == is_refused
            if found is not None:
                flags = {(each, "true") for each in ("watch", "follow", "timestamps", "stdout", "stderr")}
                assert set(parse_qsl(found.query)) - flags == {(name, value)}
                assert found.fragment == ""
