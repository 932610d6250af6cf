"""Discovery and the names of kinds, on an embedded and a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.fetch_discovery import fetch
from tests.e2e.fetch_schema import DISCOVERY
from trioformer.client import Client
from trioformer.errors import NotFoundError
from trioformer.models import KubernetesObject, ResourceInfo, Unstructured, resource_of
from trioformer.models._kinds import builtin_resources
from trioformer.models.apps_v1 import Deployment
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Event

SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def shown(info: ResourceInfo) -> dict[str, Any]:
    return {
        "kind": info.kind,
        "namespaced": info.namespaced,
        "singular": info.singular,
        "short_names": info.short_names,
        "categories": info.categories,
        "verbs": sorted(info.verbs),
    }


async def test_the_built_in_kinds_are_discovered_as_the_table_says(server_client: Client) -> None:
    found = {(info.api_version, info.plural): info for info in (await server_client.api_resources()).resources}
    for info in builtin_resources():
        if info.kind != "ComponentStatus":
            assert shown(found[info.api_version, info.plural]) == shown(info)


async def _all_lists(client: Client) -> dict[str, Any]:
    """Return the lists in both formats, without the groups of other tests."""
    found = await fetch(client)
    for path in ("api", "apis"):
        found[f"aggregated {path}"] = (await client.request("GET", f"/{path}", accept=DISCOVERY)).json()
    builtin = {path: listed for path, listed in found.items() if ".example.com/" not in path}
    for groups in (builtin["apis"]["groups"], builtin["aggregated apis"]["items"]):
        groups[:] = [group for group in groups if ".example.com" not in json.dumps(group)]
    return builtin


async def test_the_built_in_kinds_are_listed_as_by_kube_apiserver(both_clients: tuple[Client, Client]) -> None:
    embedded, real = [await _all_lists(client) for client in both_clients]
    assert embedded == real


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("deploy", Deployment),
        ("Deployment.apps", Deployment),
        ("deployments.v1.apps", Deployment),
        ("events", Event),
        ("lease.coordination", Lease),
    ],
)
async def test_a_name_is_discovered_as_its_class(
    server_client: Client, name: str, kind: type[KubernetesObject]
) -> None:
    assert await server_client.discover(name) is kind
    assert server_client.api(name).kind is kind


async def test_a_new_kind_is_found_by_each_of_its_names(server_client: Client, namespace: str) -> None:
    with pytest.raises(NotFoundError):
        await server_client.discover("zebras")  # so that the resources are known from before
    async with serve_kind(server_client, kind="Zebra") as served:
        info = resource_of(served)
        for name in ("zebra", "zebras", "Zebra", f"zebras.{info.group}", f"Zebra.v1.{info.group}"):
            with trio.fail_after(30):
                found = await _discovered(server_client, name)
            assert issubclass(found, Unstructured)
            assert resource_of(found).api_version == info.api_version
        zebras = server_client.api("zebras", namespace)
        await zebras.create(found.of({"metadata": {"name": "a"}}))
        assert [one.name for one in await zebras.list()] == ["a"]


async def _discovered(client: Client, name: str) -> type[KubernetesObject]:
    """A real server has the kind in its aggregated discovery a moment after it serves it."""
    while True:
        try:
            return await client.discover(name)
        except NotFoundError:
            await trio.sleep(0.1)
