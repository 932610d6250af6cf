"""Which encoding is requested, and which one is accepted."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.support.raw_requests import pod
from tests.support.scripted_http import InMemory, response
from trioformer.cache import ReflectorOptions, SharedInformerFactory
from trioformer.client import ClientOptions, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, PartialObjectMetadata, metadata_kind, unstructured_kind
from trioformer.models._internal import Message
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

CONFIG = ClusterConfig(server="https://api.test")
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
BOTH = f"{PROTOBUF},{JSON};q=0.9"
Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
UnstructuredPod = unstructured_kind("v1", "Pod", plural="pods", namespaced=True)


async def accepted(kind: type[KubernetesObject], options: ClientOptions | None = None) -> dict[str, tuple[str, str]]:
    """Return the Accept and Content-Type of each kind of request."""
    info = kind.__resource__
    one = b'{"kind":"%s","apiVersion":"%s","metadata":{"name":"a"}}' % (info.kind.encode(), info.api_version.encode())
    replies: list[Any] = [
        response(200, b'{"kind":"%sList","metadata":{},"items":[]}' % info.kind.encode(), content_type=JSON),
        response(200, content_type=JSON),
        response(200, one, content_type=JSON),
        response(200, one, content_type=JSON),
    ]
    transport = InMemory(replies)
    async with open_client(CONFIG, http_transport=transport, options=options or ClientOptions()) as client:
        api = client.api(kind, "shop" if info.namespaced else None)
        await api.list()
        async with api.watch() as events:
            assert [event async for event in events] == []
        found = await api.get("a")
        if not isinstance(found, PartialObjectMetadata):
            await api.create(found)
    names = ("list", "watch", "get", "create")
    headers = [request.headers for request in transport.requests]
    return {
        name: (each.get("accept", ""), each.get("content-type", "")) for name, each in zip(names, headers, strict=False)
    }


@pytest.mark.parametrize("kind", [Pod, Deployment, CustomResourceDefinition])
async def test_lists_and_watches_of_built_in_kinds_request_protobuf_and_then_json(kind: type[KubernetesObject]) -> None:
    assert await accepted(kind) == {
        "list": (BOTH, ""),
        "watch": (BOTH, ""),
        "get": (JSON, ""),
        "create": (JSON, JSON),
    }


@pytest.mark.parametrize("kind", [Widget, UnstructuredPod])
async def test_other_kinds_request_json(kind: type[KubernetesObject]) -> None:
    assert set((await accepted(kind)).values()) == {(JSON, ""), (JSON, JSON)}


async def test_protobuf_is_not_requested_without_the_option() -> None:
    assert set((await accepted(Pod, ClientOptions(protobuf=False))).values()) == {(JSON, ""), (JSON, JSON)}


async def test_metadata_is_requested_in_json() -> None:
    found = await accepted(metadata_kind(Pod))
    for accept, _ in found.values():
        assert accept.startswith(f"{JSON};as=PartialObjectMetadata")
        assert PROTOBUF not in accept


async def test_a_server_that_responds_in_json_to_a_request_for_protobuf_is_read() -> None:
    for content_type in (JSON, f"{JSON}; charset=utf-8", ""):
        headers = {"content_type": content_type} if content_type else {}
        obj = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","namespace":"shop"}}'
        listed = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}' % (obj % "a")
        replies: list[Any] = [
            response(200, listed, **headers),
            response(200, '{"type":"ADDED","object":%s}\n' % (obj % "b"), **headers),
        ]
        async with open_client(CONFIG, http_transport=InMemory(replies)) as client:
            assert [found.key for found in await client.api(Pod, "shop").list()] == ["shop/a"]
            async with client.api(Pod, "shop").watch() as events:
                assert [event.object.key async for event in events] == ["shop/b"]


@pytest.mark.parametrize("protobuf", [True, False])
@pytest.mark.parametrize("watch_list", [True, False])
async def test_an_informer_reads_either_encoding(*, protobuf: bool, watch_list: bool) -> None:
    server = APIServer()
    server.create(pod("a", labels={"app": "web"}))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        options = ClientOptions(protobuf=protobuf)
        async with open_client(server.config, http_transport=server.http_transport(), options=options) as client:
            factory = SharedInformerFactory(client, options=ReflectorOptions(watch_list=watch_list))
            informer = factory.informer(Pod)
            nursery.start_soon(factory.run)
            await factory.wait_for_cache_sync()
            (found,) = informer.lister.list()
            assert (found.key, found.metadata.labels) == ("default/a", {"app": "web"})
            assert (type(found._origin) is Message) is protobuf
            nursery.cancel_scope.cancel()
