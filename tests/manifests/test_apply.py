"""The requests of an apply: what is waited for before what is sent."""

from __future__ import annotations

import httpx

from trioformer import open_client
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

MANIFESTS = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: default}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGET = "/apis/example.com/v1/namespaces/default/widgets/w"


class Recorder(httpx.AsyncBaseTransport):
    """Sends requests to the embedded server, and notes their methods and paths."""

    def __init__(self, server: APIServer) -> None:
        self.inner = server.http_transport()
        self.requests: list[tuple[str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, request.url.path))
        return await self.inner.handle_async_request(request)


async def test_an_object_is_sent_after_its_kind_is_known_to_be_served(api_server: APIServer) -> None:
    recorder = Recorder(api_server)
    async with open_client(api_server.config, http_transport=recorder, field_manager="me") as client:
        await apply_manifests(client, load_manifests(text=MANIFESTS))
    requests = recorder.requests
    definition = requests.index(("PATCH", f"{DEFINITIONS}/widgets.example.com"))
    # Established, which is waited for by a list and a watch, and then in discovery.
    established = requests.index(("GET", DEFINITIONS))
    discovered = requests.index(("GET", "/apis/example.com/v1"))
    widget = requests.index(("GET", WIDGET))
    assert definition < established < discovered < widget
    assert requests[-1] == ("PATCH", WIDGET)


async def test_a_dry_run_waits_for_nothing(api_server: APIServer) -> None:
    recorder = Recorder(api_server)
    async with open_client(api_server.config, http_transport=recorder, field_manager="me") as client:
        manifests = load_manifests(text=MANIFESTS)[1:]
        (result,) = await apply_manifests(client, manifests, dry_run=True)
    assert result.action == "created"
    assert [method for method, _ in recorder.requests] == ["GET", "PATCH"]


async def test_an_exported_object_is_applied_as_kubectl_does(api_server: APIServer) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {x: '1'}\n"
    async with api_server.open_client() as client:
        await apply_manifests(client, load_manifests(text=text), field_manager="me")
        stored = (await client.api(ConfigMap, "default").get("a")).metadata
        added = f"{{uid: {stored.uid}, creationTimestamp: '2026-01-01T00:00:00Z', "
        again = load_manifests(text=text.replace("{name", f"{added}name"))
        (result,) = await apply_manifests(client, again, field_manager="me")
    assert result.action == "unchanged"
