"""No name, version or token of a server or a tenant changes the path or the query of a request."""

from __future__ import annotations

import json

import pytest

from tests.support.clients import client_of
from tests.support.scripted_http import response
from trioformer.errors import UnexpectedResponseError
from trioformer.models import ObjectMeta, resource_of
from trioformer.models.core_v1 import ConfigMap

HOSTILE_NAMES = [".", "..", "a/b", "/", "../secrets", "a%2fb", "%", "%2e%2e", ""]
QUOTED_NAMES = {
    "a?b=c": "a%3Fb%3Dc",
    "a#b": "a%23b",
    "system:x": "system%3Ax",
    "a b\n": "a%20b%0A",
    "ü\x1b": "%C3%BC%1B",
    "a;b\\c": "a%3Bb%5Cc",
}


async def test_a_name_that_is_no_path_segment_is_not_sent() -> None:
    async with client_of() as (client, transport):
        maps = client.api(ConfigMap, "default")
        for name in [*HOSTILE_NAMES, "\ud800"]:
            with pytest.raises(ValueError, match="a name must"):
                await maps.get(name)
            with pytest.raises(ValueError, match="a name must"):
                await maps.delete(name)
            with pytest.raises(ValueError, match="a name must"):
                await maps.patch(name, {})
            with pytest.raises(ValueError, match=r"a name must|a lone surrogate"):
                await maps.replace(ConfigMap(metadata=ObjectMeta(name=name)))
            with pytest.raises(ValueError, match="a subresource must"):
                await maps.get("a", subresource=name or ".")
            with pytest.raises(ValueError, match="a namespace must"):
                client.api(ConfigMap, name)
            with pytest.raises(ValueError, match="namespace"):
                await client.api(ConfigMap).create(ConfigMap(metadata=ObjectMeta(name="a", namespace=name)))
    assert transport.requests == []


async def test_other_names_are_quoted() -> None:
    for name, quoted in QUOTED_NAMES.items():
        body = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": name}})
        async with client_of(response(200, body)) as (client, transport):
            assert (await client.api(ConfigMap, name).get(name)).name == name
        assert transport.targets == [f"GET /api/v1/namespaces/{quoted}/configmaps/{quoted}"]


TOKEN = "a&watch=true#/../?x=é\n%00 +;"
QUOTED_TOKEN = "a%26watch%3Dtrue%23%2F..%2F%3Fx%3D%C3%A9%0A%2500%20%2B%3B"


async def test_continue_tokens_and_versions_of_a_server_are_quoted() -> None:
    page = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": TOKEN}, "items": []}
    first = {**page, "metadata": {"resourceVersion": TOKEN, "continue": TOKEN}}
    async with client_of(*(response(200, json.dumps(each)) for each in (first, page)), response(200)) as (
        client,
        transport,
    ):
        maps = client.api(ConfigMap, "default")
        listed = await maps.list()
        async with maps.watch(resource_version=listed.resource_version):
            pass
    path = "GET /api/v1/namespaces/default/configmaps"
    _, second, watch = (target.replace("+", "%20") for target in transport.targets)
    assert second == f"{path}?limit=500&continue={QUOTED_TOKEN}"
    assert watch == f"{path}?watch=true&resourceVersion={QUOTED_TOKEN}"


HOSTILE_PLURALS = ["widgets#", "widgets?", "..", "%2e%2e", "Widgets", "a\x1b", "x" * 1_000]
ENTRY = {"kind": "Widget", "namespaced": True, "verbs": ["list"]}


async def test_no_path_is_made_of_an_invalid_name_in_discovery() -> None:
    for plural in HOSTILE_PLURALS:
        bad, good = {"name": plural, **ENTRY}, {"name": "widgets", **ENTRY}
        lists = [json.dumps({"kind": "APIResourceList", "resources": listed}) for listed in ([bad], [bad, good])]
        async with client_of(*(response(200, listed) for listed in lists)) as (client, _):
            with pytest.raises(UnexpectedResponseError, match=r"the name of its resource, .*, is not valid") as caught:
                await client.discover("e.io/v1", "Widget")
            assert len(str(caught.value)) < 700
            assert resource_of(await client.discover("e.io/v1", "Widget")).plural == "widgets"


async def test_other_invalid_texts_in_discovery_are_ignored() -> None:
    wrong = ["a/b", "..", "\x1b[2J", "a" * 1_000, "A b"]
    entry = {"name": "widgets", "kind": "Widget", "singularName": "../x", "shortNames": ["w", *wrong]}
    more = [{"name": f"widgets/{name}", "kind": "Widget"} for name in ("status", "a/b", "..", "%2f", "")]
    kinds = [{"name": f"x{i}", "kind": f"\x1bK{i}"} for i in range(3)]
    listed = json.dumps({"resources": [{**entry, "verbs": wrong, "categories": wrong}, *more, *kinds]})
    async with client_of(response(200, listed)) as (client, _):
        found = resource_of(await client.discover("e.io/v1", "Widget"))
    assert (found.singular, found.short_names, found.verbs, found.categories) == ("widget", ("w",), (), ())
    assert found.subresources == ("status",)


async def test_an_api_version_that_changes_the_path_is_not_discovered() -> None:
    for api_version in ["e.io/../../api/v1", "e.io/v1#", "E.io/v1", "v1/", "/v1", "e..io/v1", "e.io/1"]:
        async with client_of() as (client, transport):
            with pytest.raises(ValueError, match="expected an apiVersion such as"):
                await client.discover(api_version, "Widget")
        assert transport.requests == []


async def test_the_kind_of_a_subresource_addresses_no_other_objects() -> None:
    body = '{"kind":"Order","apiVersion":"v1","metadata":{"name":"web"}}'
    async with client_of(response(200, body), response(404, "")) as (client, transport):
        order = await client.api(ConfigMap, "default").get("web", subresource="order")
        kind: type = type(order)
        assert resource_of(kind).path(namespace="x", name="web") == "/api/v1/namespaces/x/order-of-configmaps/web"
    assert len(transport.requests) == 1
