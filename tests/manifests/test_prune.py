"""What is pruned, and what is kept when the server cannot say what there is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.manifests.test_apply import Recorder
from trioformer import Client, open_client
from trioformer.client import ClientOptions
from trioformer.errors import ManifestsFailedError, NotFoundError
from trioformer.manifests import ApplySet, apply_manifests, load_manifests
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.core_v1 import Secret, Service
from trioformer.models.discovery_v1 import EndpointSlice
from trioformer.testing import APIServer

SET = ApplySet("set", "default")
KINDS = "applyset.kubernetes.io/contains-group-kinds"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\n"
SERVICE = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default}\nspec: {ports: [{port: 80}]}\n"
SLICE = """\
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ext, namespace: default}
addressType: IPv4
endpoints: []
"""


class Server(Recorder):
    """The embedded server, with some replies of its own."""

    def __init__(self, server: APIServer) -> None:
        super().__init__(server)
        self.replies: dict[str, Any] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reply = self.replies.get(request.url.path)
        if reply is None or request.method != "GET":
            return await super().handle_async_request(request)
        self.requests.append((request.method, request.url.path))
        return httpx.Response(404, text=reply) if isinstance(reply, str) else httpx.Response(200, json=reply)


@asynccontextmanager
async def connected(api_server: APIServer) -> AsyncIterator[tuple[Client, Server]]:
    server = Server(api_server)
    async with open_client(
        api_server.config, http_transport=server, field_manager="me", options=ClientOptions(retries=0)
    ) as client:
        yield client, server


async def apply(client: Client, text: str, **options: Any) -> list[str]:
    results = await apply_manifests(client, load_manifests(text=text), prune=SET, **options)
    return [f"{result.manifest.object.kind} {result.manifest.object.name} {result.action}" for result in results]


async def kinds_of(client: Client) -> str:
    return (await client.api(Secret, "default").get("set")).metadata.annotations[KINDS]


def groups(freshness: str | None) -> dict[str, Any]:
    """Aggregated discovery with one group that is down, or without it."""
    down = [{"metadata": {"name": "down.io"}, "versions": [{"version": "v1", "freshness": freshness}]}]
    apps = {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [RESOURCE]}]}
    items = [apps, *(down if freshness else [])]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


RESOURCE = {
    "resource": "deployments",
    "responseKind": {"kind": "Deployment"},
    "scope": "Namespaced",
    "verbs": ["list", "delete"],
}


async def test_a_kind_whose_group_is_down_is_not_forgotten(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP)
        annotations = {"metadata": {"annotations": {KINDS: "ConfigMap,Foo.down.io"}}}
        await client.api(Secret, "default").patch("set", annotations)
        server.replies["/apis"] = groups("Stale")
        server.requests.clear()
        with pytest.raises(
            ManifestsFailedError, match=r"nothing was applied: .* Foo\.down\.io .* down\.io/v1"
        ) as caught:
            await apply(client, CONFIG_MAP + SERVICE)
        assert isinstance(caught.value.failures[0].error, NotFoundError)
        assert {method for method, _ in server.requests} == {"GET"}
        # No group at all is no answer either.
        server.replies["/apis"] = {"kind": "APIGroupDiscoveryList", "items": []}
        with pytest.raises(ManifestsFailedError, match=r"nothing was applied: .* Foo\.down\.io "):
            await apply(client, CONFIG_MAP)
        assert await kinds_of(client) == "ConfigMap,Foo.down.io"
        server.replies["/apis"] = groups(None)
        assert await apply(client, CONFIG_MAP) == ["ConfigMap c unchanged"]
        assert await kinds_of(client) == "ConfigMap"


async def test_a_built_in_kind_is_searched_in_a_version_that_is_served(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP)
        annotations = {"metadata": {"annotations": {KINDS: "ConfigMap,Deployment.apps"}}}
        await client.api(Secret, "default").patch("set", annotations)
        older = {"metadata": {"name": "apps"}, "versions": [{"version": "v1beta2", "resources": [RESOURCE]}]}
        server.replies["/apis"] = {**groups(None), "items": [older]}
        server.replies["/apis/apps/v1beta2/namespaces/default/deployments"] = {
            "apiVersion": "apps/v1beta2",
            "kind": "DeploymentList",
            "metadata": {"resourceVersion": "1"},
            "items": [],
        }
        await apply(client, CONFIG_MAP)
        assert ("GET", "/apis/apps/v1beta2/namespaces/default/deployments") in server.requests
        assert await kinds_of(client) == "ConfigMap"


async def test_a_kind_that_was_not_searched_stays_in_the_set(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP + SERVICE)
        api_server.fail_next(1, verb="list", resource="services", status=404)
        assert await apply(client, CONFIG_MAP) == ["ConfigMap c unchanged"]
        server.replies["/api/v1/namespaces/default/services"] = "404 page not found"
        with pytest.raises(NotFoundError):
            await apply(client, CONFIG_MAP)
        server.replies.clear()
        assert await kinds_of(client) == "ConfigMap,Service"
        assert await apply(client, CONFIG_MAP) == ["ConfigMap c unchanged", "Service s pruned"]
        assert await kinds_of(client) == "ConfigMap"


async def test_what_a_controller_has_made_of_a_member_is_not_pruned(api_server: APIServer) -> None:
    async with connected(api_server) as (client, _):
        await apply(client, CONFIG_MAP + SERVICE + SLICE)
        service = await client.api(Service, "default").get("s")
        slices = client.api(EndpointSlice, "default")
        # As the controller of EndpointSlices copies the labels of a Service.
        owner = {"apiVersion": "v1", "kind": "Service", "name": "s", "uid": service.uid, "controller": True}
        labels = dict(service.metadata.labels)
        for name, owners in (("owned", [owner]), ("copied", [])):
            metadata = {"name": name, "labels": labels, "ownerReferences": owners}
            made = from_dict(EndpointSlice, {"metadata": metadata, "addressType": "IPv4", "endpoints": []})
            await slices.create(made, field_manager="controller")
        # Somebody has applied the label with an owner, and somebody another part of an object.
        applied = {"name": "applied", "labels": labels, "ownerReferences": [owner]}
        await slices.apply({"metadata": applied, "addressType": "IPv4", "endpoints": []}, field_manager="controller")
        await slices.apply({"metadata": {"name": "copied", "annotations": {"a": "b"}}}, field_manager="other")
        text = CONFIG_MAP + SERVICE
        assert await apply(client, text) == ["ConfigMap c unchanged", "Service s unchanged", "EndpointSlice ext pruned"]
        assert {one.name for one in await slices.list()} >= {"owned", "copied", "applied"}


async def test_without_manifests_a_set_is_pruned_only_if_asked_for(api_server: APIServer) -> None:
    async with connected(api_server) as (client, _):
        await apply(client, CONFIG_MAP)
        with pytest.raises(ValueError, match=r"ApplySet 'set' .* prune_all=True"):
            await apply_manifests(client, (), prune=SET)
        with pytest.raises(ValueError, match="prune_all=True can be used only with an ApplySet"):
            await apply(client, CONFIG_MAP, prune_all=True)
        (result,) = await apply_manifests(client, (), prune=SET, prune_all=True)
        assert str(result) == "ConfigMap c in namespace default pruned"
        assert await kinds_of(client) == ""


async def test_only_an_apply_set_can_be_pruned(api_server: APIServer) -> None:
    selector: Any = "app=shop"
    async with connected(api_server) as (client, _):
        with pytest.raises(TypeError, match=r"^prune must be an ApplySet, such as ApplySet\('shop'\), not a str$"):
            await apply_manifests(client, load_manifests(text=CONFIG_MAP), prune=selector)


async def test_the_kinds_of_a_program_that_applies_at_once_stay_in_the_set(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP + SLICE)
        parents = client.api(Secret, "default")

        class Other(Server):
            """Adds a kind to the set while the first program lists what to prune."""

            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                if request.url.path.endswith("/endpointslices"):
                    added = {"metadata": {"annotations": {KINDS: "ConfigMap,EndpointSlice.discovery.k8s.io,Service"}}}
                    await parents.patch("set", added)
                return await server.handle_async_request(request)

        async with open_client(api_server.config, http_transport=Other(api_server), field_manager="me") as first:
            assert await apply(first, CONFIG_MAP) == ["ConfigMap c unchanged", "EndpointSlice ext pruned"]
        assert await kinds_of(client) == "ConfigMap,Service"


async def test_a_parent_that_another_program_makes_at_once_is_shared(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP + SERVICE)
        parent = to_dict(await client.api(Secret, "default").get("set"))
        parent["metadata"].pop("resourceVersion")
        await client.api(Secret, "default").delete("set")

        class Other(Server):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                if request.method == "POST":
                    await client.api(Secret, "default").create(from_dict(Secret, parent))
                return await server.handle_async_request(request)

        async with open_client(api_server.config, http_transport=Other(api_server), field_manager="me") as first:
            assert await apply(first, CONFIG_MAP) == ["ConfigMap c unchanged"]
        assert await kinds_of(client) == "ConfigMap,Service"


async def test_a_set_that_another_program_changes_at_once_is_read_again(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP)
        parents = client.api(Secret, "default")
        changes = [{"metadata": {"annotations": {KINDS: "ConfigMap,Pod"}}}]

        class Other(Server):
            """Changes the set before the first program does."""

            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                if changes and request.method == "PATCH" and request.url.path.endswith("/secrets/set"):
                    await parents.patch("set", changes.pop())
                return await server.handle_async_request(request)

        async with open_client(api_server.config, http_transport=Other(api_server), field_manager="me") as first:
            await apply(first, CONFIG_MAP + SERVICE)
        assert changes == []
        assert {"ConfigMap", "Service"} <= set((await kinds_of(client)).split(","))


async def test_a_page_of_a_proxy_is_not_a_missing_set_or_kind(api_server: APIServer) -> None:
    async with connected(api_server) as (client, server):
        await apply(client, CONFIG_MAP + SERVICE)
        for path in ("secrets/set", "services"):
            server.replies = {f"/api/v1/namespaces/default/{path}": "<html>no such page</html>"}
            with pytest.raises(NotFoundError):
                await apply(client, CONFIG_MAP)


async def test_an_object_that_is_not_a_set_is_not_used_as_one(api_server: APIServer) -> None:
    async with connected(api_server) as (client, _):
        await client.create(Secret(metadata=ObjectMeta(name="set", namespace="default")))
        with pytest.raises(ManifestsFailedError, match="set"):
            await apply(client, CONFIG_MAP)
