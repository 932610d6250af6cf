"""Managers of objects in the embedded server: times, the direct API, subresources and schemas that change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.raw_requests import CONFIG_MAPS, JSON, PODS, config_map, failure_of, merge_patch, pod, running
from trioformer.testing import APIServer
from trioformer.testing._storage._tracking import manager_of

APPLY = {"content-type": "application/apply-patch+yaml"}


def applied(obj: JSON, manager: str, **params: str) -> dict[str, Any]:
    """Return the arguments of an httpx request that applies an object."""
    return {"content": json.dumps(obj), "headers": APPLY, "params": {"fieldManager": manager, **params}}


def managers(obj: JSON) -> list[str]:
    return [f"{one['operation']} {one['manager']}" for one in obj["metadata"].get("managedFields", [])]


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [("kubectl/v1.36 (linux)", "kubectl"), ("", ""), ("a\tb\n", "ab"), ("ü" * 100, "ü" * 64), ("/x", "")],
)
def test_names_of_managers_are_printable_and_at_most_128_bytes(user_agent: str, expected: str) -> None:
    assert manager_of(user_agent) == expected


async def test_the_direct_api_manages_only_what_is_managed() -> None:
    server = APIServer()
    made = server.create({**config_map(), "data": {"a": "1"}})
    assert "managedFields" not in made["metadata"]  # type: ignore[operator]  # of an object's value
    server.patch("configmaps", "cm", {"data": {"b": "1"}})
    async with running(server) as http:
        obj = {**config_map(), "data": {"a": "2"}}
        refused = await http.patch(f"{CONFIG_MAPS}/cm", **applied(obj, "one"))
        taken = await http.patch(f"{CONFIG_MAPS}/cm", **applied(obj, "one", force="true"))
        server.patch("configmaps", "cm", {"data": {"a": "3"}})
        refused_again = await http.patch(f"{CONFIG_MAPS}/cm", **applied(obj, "one"))
    problem = 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    assert failure_of(refused) == (409, "Conflict", problem)
    assert managers(taken.json()) == ["Apply one", "Update before-first-apply"]
    problem = 'Apply failed with 1 conflict: conflict with "APIServer" using v1: .data.a'
    assert failure_of(refused_again) == (409, "Conflict", problem)


async def test_the_direct_api_owns_the_status_that_it_changes() -> None:
    server = APIServer()
    async with running(server) as http:
        await http.patch(f"{PODS}/web-1", **applied(pod(), "one"))
        status = {**pod(), "status": {"phase": "Running", "reason": "x"}}
        await http.patch(f"{PODS}/web-1/status", **applied(status, "one"))
        server.patch("pods", "web-1", {"status": {"reason": "y"}})
        refused = await http.patch(f"{PODS}/web-1/status", **applied(status, "one"))
    assert failure_of(refused)[2] == 'Apply failed with 1 conflict: conflict with "APIServer" using v1: .status.reason'


async def test_without_managed_fields_only_applied_objects_have_managers() -> None:
    async with running(APIServer(managed_fields=False)) as http:
        made = (await http.post(CONFIG_MAPS, json=config_map())).json()
        patched = (await http.patch(f"{CONFIG_MAPS}/cm", **merge_patch({"data": {"a": "1"}}))).json()
        obj = (await http.patch(f"{CONFIG_MAPS}/cm", **applied({**config_map(), "data": {"b": "1"}}, "one"))).json()
    assert (managers(made), managers(patched)) == ([], [])
    assert managers(obj) == ["Apply one", "Update before-first-apply"]


def definition(size: JSON, *versions: str) -> JSON:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}}
    served = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in versions
    ]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": served}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": "widgets.example.com"}, "spec": spec}


MAP = {"type": "object", "additionalProperties": {"type": "string"}}
WIDGETS = "/apis/example.com/v1/widgets/w"


def widget(version: str = "v1", **size: str) -> JSON:
    spec = {"spec": {"size": size}} if size else {}
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "w"}, **spec}


async def test_a_map_that_becomes_atomic_has_one_owner() -> None:
    server = APIServer()
    server.create(definition(MAP, "v1"))
    async with running(server) as http:
        await http.patch(WIDGETS, **applied(widget(x="1"), "one"))
        await http.patch(WIDGETS, **applied(widget(y="1"), "two"))
        changed = definition({**MAP, "x-kubernetes-map-type": "atomic"}, "v1")
        server.patch("customresourcedefinitions", "widgets.example.com", changed)
        refused = await http.patch(WIDGETS, **applied(widget(x="1"), "two"))
    message = 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    assert failure_of(refused) == (409, "Conflict", message)


async def test_a_manager_of_a_version_that_is_gone_is_forgotten() -> None:
    server = APIServer()
    server.create(definition(MAP, "v1", "v2"))
    async with running(server) as http:
        await http.patch(WIDGETS.replace("v1", "v2"), **applied(widget("v2", x="1"), "two"))
        both = (await http.patch(WIDGETS, **applied(widget(y="1"), "one"))).json()
        server.patch("customresourcedefinitions", "widgets.example.com", definition(MAP, "v1"))
        last = (await http.patch(WIDGETS, **applied(widget(x="2"), "one"))).json()
    assert (managers(both), managers(last)) == (["Apply one", "Apply two"], ["Apply one"])
    assert last["spec"] == {"size": {"x": "2"}}
