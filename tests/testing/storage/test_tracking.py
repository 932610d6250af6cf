"""Managers of objects in the embedded server: times, the direct API, subresources and schemas that change."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.support.raw_requests import CONFIG_MAPS, JSON, PODS, config_map, failure_of, merge_patch, pod, running
from trioformer.errors import ConflictError
from trioformer.models import ResourceInfo, from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.testing._storage._tracking import manager_of

APPLY = {"content-type": "application/apply-patch+yaml"}


def applied(obj: JSON, manager: str, **params: str) -> dict[str, Any]:
    """Return the arguments of an httpx request that applies an object."""
    return {"content": json.dumps(obj), "headers": APPLY, "params": {"fieldManager": manager, **params}}


def managers(obj: JSON) -> list[str]:
    return [f"{one['operation']} {one['manager']}" for one in obj["metadata"].get("managedFields", [])]


def times(obj: JSON) -> list[str]:
    return [one.get("time", "") for one in obj["metadata"]["managedFields"]]


async def test_the_manager_is_what_the_user_agent_begins_with() -> None:
    async with running(APIServer()) as http:
        made = (await http.post(CONFIG_MAPS, json=config_map(), headers={"user-agent": "tool/1.2 (x)"})).json()
        patched = (await http.patch(f"{CONFIG_MAPS}/cm", **merge_patch({"data": {"a": "1"}}))).json()
    assert managers(made) == ["Update tool"]
    assert managers(patched) == ["Update python-httpx", "Update tool"]


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [("kubectl/v1.36 (linux)", "kubectl"), ("", ""), ("a\tb\n", "ab"), ("ü" * 100, "ü" * 64), ("/x", "")],
)
def test_names_of_managers_are_printable_and_at_most_128_bytes(user_agent: str, expected: str) -> None:
    assert manager_of(user_agent) == expected


async def test_a_writer_without_any_name_is_unknown() -> None:
    async with running(APIServer()) as http:
        made = (await http.post(CONFIG_MAPS, json=config_map(), headers={"user-agent": ""})).json()
    assert managers(made) == ["Update unknown"]


async def test_a_time_changes_only_with_the_object(autojump_clock: trio.testing.MockClock) -> None:
    obj = config_map()
    async with running(APIServer()) as http:
        first = (await http.patch(f"{CONFIG_MAPS}/cm", **applied({**obj, "data": {"a": "1"}}, "one"))).json()
        await trio.sleep(60)
        again = (await http.patch(f"{CONFIG_MAPS}/cm", **applied({**obj, "data": {"a": "1"}}, "one"))).json()
        changed = (await http.patch(f"{CONFIG_MAPS}/cm", **applied({**obj, "data": {"a": "2"}}, "one"))).json()
    assert again == first
    assert (times(first), times(changed)) == (["2026-01-01T00:00:00Z"], ["2026-01-01T00:01:00Z"])


async def test_an_apply_whose_status_is_ignored_changes_nothing(autojump_clock: trio.testing.MockClock) -> None:
    obj = {**pod(), "status": {"phase": "Running"}}
    async with running(APIServer()) as http:
        first = (await http.patch(f"{PODS}/web-1", **applied(obj, "one"))).json()
        await trio.sleep(60)
        again = (await http.patch(f"{PODS}/web-1", **applied(obj, "one"))).json()
    assert again == first


async def test_the_oldest_updater_is_the_first_entry(autojump_clock: trio.testing.MockClock) -> None:
    async with running(APIServer()) as http:
        await http.patch(f"{CONFIG_MAPS}/cm", **applied({**config_map(), "data": {"z": "1"}}, "one"))
        for manager in ("c", "a", "b"):
            await trio.sleep(1)
            patch = merge_patch({"data": {manager: "1"}})
            last = (await http.patch(f"{CONFIG_MAPS}/cm", **patch, params={"fieldManager": manager})).json()
    assert managers(last) == ["Apply one", "Update c", "Update a", "Update b"]


async def test_a_dry_run_has_managers_and_stores_none() -> None:
    async with running(APIServer()) as http:
        tried = await http.patch(f"{CONFIG_MAPS}/cm", **applied(config_map(), "one", dryRun="All"))
        assert (tried.status_code, (await http.get(f"{CONFIG_MAPS}/cm")).status_code) == (201, 404)
        await http.post(CONFIG_MAPS, json=config_map())
        obj = {**config_map(), "data": {"a": "1"}}
        tried = await http.patch(f"{CONFIG_MAPS}/cm", **applied(obj, "one", dryRun="All"))
        stored = (await http.get(f"{CONFIG_MAPS}/cm")).json()
    assert managers(tried.json()) == ["Apply one", "Update python-httpx"]
    assert managers(stored) == ["Update python-httpx"]


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
        server.replace(definition({**MAP, "x-kubernetes-map-type": "atomic"}, "v1"))
        refused = await http.patch(WIDGETS, **applied(widget(x="1"), "two"))
    message = 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    assert failure_of(refused) == (409, "Conflict", message)


async def test_a_manager_of_a_version_that_is_gone_is_forgotten() -> None:
    server = APIServer()
    server.create(definition(MAP, "v1", "v2"))
    async with running(server) as http:
        await http.patch(WIDGETS.replace("v1", "v2"), **applied(widget("v2", x="1"), "two"))
        both = (await http.patch(WIDGETS, **applied(widget(y="1"), "one"))).json()
        server.replace(definition(MAP, "v1"))
        last = (await http.patch(WIDGETS, **applied(widget(x="2"), "one"))).json()
    assert (managers(both), managers(last)) == (["Apply one", "Apply two"], ["Apply one"])
    assert last["spec"] == {"size": {"x": "2"}}


async def test_a_manager_of_another_version_has_conflicts() -> None:
    server = APIServer()
    server.create(definition(MAP, "v1", "v2"))
    async with running(server) as http:
        await http.patch(WIDGETS.replace("v1", "v2"), **applied(widget("v2", x="1"), "two"))
        refused = await http.patch(WIDGETS, **applied(widget(x="2"), "one"))
        moved = (await http.patch(WIDGETS, **applied(widget(x="2"), "two"))).json()
    assert failure_of(refused)[2] == 'Apply failed with 1 conflict: conflict with "two": .spec.size.x'
    assert [one["apiVersion"] for one in moved["metadata"]["managedFields"]] == ["example.com/v1"]


async def test_a_registered_kind_without_a_schema_accepts_every_field() -> None:
    server = APIServer()
    server.register(ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=False))
    async with running(server) as http:
        await http.patch(WIDGETS, **applied(widget(x="1"), "one"))
        refused = await http.patch(WIDGETS, **applied(widget(x="2"), "two"))
        both = (await http.patch(WIDGETS, **applied(widget(y="2"), "two"))).json()
    assert failure_of(refused)[2] == 'Apply failed with 1 conflict: conflict with "one": .spec.size.x'
    assert both["spec"] == {"size": {"x": "1", "y": "2"}}


async def test_a_client_reads_a_conflict_of_apply() -> None:
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            api = client.api(ConfigMap, "default")
            obj = {"metadata": {"name": "cm"}, "data": {"a": "1"}}
            await api.apply(from_dict(ConfigMap, obj), field_manager="one")
            with pytest.raises(ConflictError, match=r"conflict with .one.: \.data\.a"):
                await api.apply(from_dict(ConfigMap, {**obj, "data": {"a": "2"}}), field_manager="two")
        nursery.cancel_scope.cancel()
